"""What the sorter holds of all it has heard: which pane is in which worktree, and what each row says."""

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from builders import NOW_MS, a_status
from tocsin.contract.ids import worktree_id
from tocsin.contract.messages import (
    Ask,
    Evidence,
    PaneStatus,
    Past,
    PromptSeen,
    Reading,
    State,
    TitleNow,
    WorktreeKnown,
    WorktreesSorted,
)
from tocsin.sorter.core.attention import STALE_AFTER_MS
from tocsin.sorter.core.board import NO_FOLDER, Board, pane_key
from tocsin.sorter.core.places import Places, holders
from tocsin.sorter.core.ranking import CREATE_GRACE_MS

AWAKE_MS = 7_000_000


def a_worktree(path="/repo", **fields) -> WorktreeKnown:
    defaults = {"host": "h", "worktree": worktree_id(fields.get("host", "h"), path), "name": path[1:], "at_ms": NOW_MS, "path": path}
    return WorktreeKnown(**(defaults | fields))


class Told:
    """A board, and a clock of which UTC and awake time go together unless a test moves one."""

    def __init__(self, *messages, now_ms=NOW_MS, awake_ms=AWAKE_MS):
        self.now_ms, self.awake_ms = now_ms, awake_ms
        self.board = Board("default", awake_ms, dwell_ms=1_000)
        self.tell(*messages)

    def tell(self, *messages):
        for message in messages:
            hear = self.board.hear_status if isinstance(message, PaneStatus) else self.board.hear_worktree
            hear(message, self.now_ms, self.awake_ms)
        return self

    def sleep(self, ms, asleep=False):
        self.now_ms += ms
        self.awake_ms += 0 if asleep else ms
        self.board.expire(self.awake_ms)
        return self

    @property
    def rows(self):
        self.board.refresh(self.now_ms, self.awake_ms)
        return [self.board.rows[one] for one in self.board.order()]

    @property
    def row(self):
        (row,) = self.rows
        return row


# ---------------------------------------------------------------- places


def test_a_folder_is_held_by_itself_and_all_above_it():
    assert list(holders("/a/b/")) == ["/a/b", "/a", "/"]
    assert list(holders("/")) == ["/"]
    assert list(holders("")) == []


def test_a_pane_is_in_the_longest_known_path_that_holds_its_folder():
    told = Told(a_worktree("/repo"), a_worktree("/repo/wt/api"), a_status(cwd="/repo/wt/api/src"))
    assert [(row.path, len(row.panes)) for row in told.rows] == [("/repo/wt/api", 1), ("/repo", 0)]


def test_a_path_that_only_begins_alike_holds_nothing():
    assert [row.path for row in Told(a_worktree("/repo"), a_status(cwd="/repo-2")).rows] == ["/repo-2", "/repo"]


def test_a_path_of_another_host_holds_nothing():
    told = Told(a_worktree("/repo", host="other"), a_status(cwd="/repo"))
    assert sorted((row.host, len(row.panes)) for row in told.rows) == [("h", 1), ("other", 0)]


def test_an_unknown_folder_makes_a_worktree_named_after_it_until_it_is_known():
    told = Told(a_status(cwd="/work/api/src"))
    assert (told.row.name, told.row.path, told.row.attention_class) == ("src", "/work/api/src", 3)
    told.tell(a_worktree("/work/api", name="api", branch="main"))
    assert (told.row.name, told.row.path, told.row.branch, len(told.row.panes)) == ("api", "/work/api", "main", 1)


def test_a_made_worktree_keeps_its_id_when_the_very_folder_becomes_known():
    told = Told(a_status(cwd="/api"))
    before = told.row.id
    assert told.tell(a_worktree("/api", branch="main")).row.id == before
    assert told.row.branch == "main"


def test_a_made_worktree_goes_with_its_last_agent():
    told = Told(a_status(cwd="/api"))
    assert told.tell(a_status(cwd="/api", state=State.GONE)).rows == []


def test_panes_of_unknown_folder_share_one_row_of_their_host():
    told = Told(a_status(pane="p1", cwd=None), a_status(pane="p2", cwd=None))
    assert (told.row.name, len(told.row.panes)) == (NO_FOLDER, 2)


def test_a_shell_in_a_folder_that_nobody_named_makes_no_worktree():
    shell = a_status(cwd="/home", hooked=False, agent=None, state=State.IDLE, evidence=Evidence.NO_SIGNAL)
    assert Told(shell).rows == []
    assert len(Told(a_worktree("/home"), shell).row.panes) == 1


def test_a_removed_worktree_is_no_row_and_its_panes_fall_to_what_holds_them():
    told = Told(a_worktree("/repo"), a_worktree("/repo/wt"), a_status(cwd="/repo/wt"))
    told.tell(a_worktree("/repo/wt", removed=True))
    assert [(row.path, len(row.panes)) for row in told.rows] == [("/repo", 1)]
    assert Told(a_worktree("/repo", removed=True)).rows == []


def test_a_pane_or_worktree_of_another_workspace_is_not_of_this_list():
    told = Told(a_worktree("/repo"), a_status(cwd="/repo"))
    told.tell(a_status(cwd="/repo", workspace="other"))
    assert told.row.panes == ()
    assert told.tell(a_worktree("/repo", workspace="other")).rows == []


def test_of_two_worktrees_at_one_path_it_does_not_matter_which_came_first():
    for ids in (("x", "y"), ("y", "x")):
        places = Places()
        for one in ids:
            places.know("h", "/repo", one)
        assert places.worktree_of("h", "/repo/src") == "x"


# ---------------------------------------------------------------- time


def test_a_pane_is_stale_after_30_minutes_of_silence_and_its_row_says_so():
    told = Told(a_status(state=State.BLOCKED))
    assert told.board.due() == AWAKE_MS + STALE_AFTER_MS + 1
    assert told.sleep(STALE_AFTER_MS).row.attention_class == 1
    told.sleep(1)
    assert (told.row.attention_class, told.row.attention_at, told.row.evidence) == (4, 0, Evidence.STALE)
    assert told.row.reason == "no contact for 30 min: stale"


def test_a_pane_beside_the_one_that_decides_says_that_it_is_stale_too():
    told = Told(a_status(pane="p1", state=State.BLOCKED, updated_ms=NOW_MS), a_status(pane="p2", updated_ms=NOW_MS - 5_000))
    told.sleep(STALE_AFTER_MS - 4_999)
    assert [pane.evidence for pane in told.row.panes] == [Evidence.OBSERVED, Evidence.STALE]


def test_sleep_is_not_silence():
    told = Told(a_status(state=State.BLOCKED)).sleep(10 * STALE_AFTER_MS, asleep=True)
    assert told.row.attention_class == 1


def test_a_step_of_the_wall_clock_makes_nothing_stale():
    told = Told(a_status(state=State.BLOCKED))
    told.now_ms += 10 * STALE_AFTER_MS
    # Heard again, as after a reconnect: the same silence, not a longer one.
    assert told.tell(a_status(state=State.BLOCKED)).row.attention_class == 1


def test_a_status_that_was_old_when_it_was_heard_has_less_time_left():
    told = Told(a_status(state=State.BLOCKED, updated_ms=NOW_MS - STALE_AFTER_MS))
    assert told.board.due() == AWAKE_MS + 1
    assert Told(a_status(state=State.BLOCKED, updated_ms=NOW_MS - STALE_AFTER_MS - 1)).row.attention_class == 4


def test_a_status_from_the_future_is_of_no_negative_age():
    assert Told(a_status(updated_ms=NOW_MS + 60_000)).board.due() == AWAKE_MS + STALE_AFTER_MS + 1


def test_a_new_worktree_leads_the_idle_ones_for_five_minutes():
    told = Told(a_worktree("/new", created_ms=NOW_MS), a_worktree("/used", active_ms=NOW_MS + 5_000, created_ms=1))
    assert [row.name for row in told.rows] == ["new", "used"]
    assert told.board.due() == AWAKE_MS + CREATE_GRACE_MS
    assert [row.name for row in told.sleep(CREATE_GRACE_MS).rows] == ["used", "new"]


def test_hearing_of_a_new_worktree_again_does_not_make_it_younger():
    told = Told(a_worktree("/new", created_ms=NOW_MS)).sleep(60_000)
    # Somebody has set the clock back: it is no younger for that.
    told.now_ms -= 60_000
    told.tell(a_worktree("/new", created_ms=NOW_MS, dirty=True))
    assert told.board.due() == AWAKE_MS + CREATE_GRACE_MS


# ---------------------------------------------------------------- rows


def a_title(reading, since_ms=NOW_MS, text="t"):
    return TitleNow(text=text, reading=reading, since_ms=since_ms)


def test_a_row_shows_what_decided_first():
    told = Told(
        a_worktree("/repo", branch="main", dirty=True, active_ms=5),
        a_status(pane="work", since_ms=NOW_MS),
        a_status(
            pane="ask", state=State.BLOCKED, cause="asks to run npm", since_ms=NOW_MS - 9, locator="/tmp/s %7",
            prompts=(PromptSeen(number=1, ask=Ask.PERMISSION, since_ms=NOW_MS - 9, tool="Bash", target="npm"),),
        ),
    )  # fmt: skip
    row = told.row
    assert (row.attention_class, row.attention_at, row.evidence) == (1, NOW_MS - 9, Evidence.OBSERVED)
    assert row.reason == "asks to run npm"
    assert [pane.id for pane in row.panes] == ["ask", "work"]
    assert (row.branch, row.dirty, row.active_at, row.panes[0].locator) == ("main", True, NOW_MS, "/tmp/s %7")


def test_a_working_pane_ranks_by_when_a_person_was_last_wanted_there():
    told = Told(a_status(history=(Past(state=State.DONE, since_ms=NOW_MS - 77),), since_ms=NOW_MS))
    assert (told.row.attention_class, told.row.attention_at) == (3, NOW_MS - 77)


def test_a_pane_without_hooks_ranks_by_its_title_and_the_title_counts_from_when_it_was_first_seen():
    told = Told(a_status(hooked=False, agent="gemini", title=a_title(Reading.PERMISSION, NOW_MS - 60_000), live=True))
    assert (told.row.attention_class, told.row.attention_at, told.row.evidence) == (1, NOW_MS - 60_000, Evidence.INFERRED)


@pytest.mark.parametrize(("live", "attention_class"), [(True, 1), (None, 1), (False, 4)])
def test_only_the_title_of_a_terminal_that_is_proven_dead_is_not_heard(live, attention_class):
    told = Told(a_status(hooked=False, agent="gemini", title=a_title(Reading.PERMISSION), live=live))
    assert told.row.attention_class == attention_class


def test_a_pane_that_is_gone_asks_for_nothing_and_is_no_longer_shown():
    told = Told(a_worktree("/repo"), a_status(state=State.GONE, updated_ms=NOW_MS - 5))
    assert (told.row.attention_class, told.row.panes, told.row.active_at) == (4, (), NOW_MS - 5)


def test_a_tool_event_of_a_working_agent_changes_nothing_that_is_shown():
    told = Told(a_status())
    before = told.row
    told.sleep(1_000).tell(a_status(updated_ms=NOW_MS + 1_000, seq=2))
    assert told.row == msgspec.structs.replace(before, active_at=NOW_MS + 1_000)


def test_a_working_title_spins_without_changing_its_row():
    told = Told(a_status(title=a_title(Reading.WORKING, text="⠋ Fix it")))
    before = told.row
    assert told.tell(a_status(title=a_title(Reading.WORKING, text="⠙ Fix it"))).row == before


# ---------------------------------------------------------------- bell


def a_blocked(since_ms=NOW_MS, **fields):
    prompt = PromptSeen(number=1, ask=Ask.PERMISSION, since_ms=since_ms, tool="Bash", target="npm")
    return a_status(**({"state": State.BLOCKED, "since_ms": since_ms, "prompts": (prompt,), "cause": "asks to run npm"} | fields))


KEY = pane_key("h", "p1")


def ready(told):
    told.board.refresh(told.now_ms, told.awake_ms)
    return told.board.bell.ready(told.awake_ms)


def test_the_bell_rings_with_the_cause_and_the_reason_and_the_row_remembers_it():
    told = Told(a_blocked()).sleep(1_000)
    assert ready(told) == [KEY]
    assert told.row.rang is False
    said, _ = told.board.ring(KEY)
    assert (said.cause, said.pane, said.since_ms, said.reason) == ("blocked", "p1", NOW_MS, "asks to run npm")
    assert told.row.rang is True


def test_a_title_prompt_rings_too():
    told = Told(a_status(hooked=False, agent="gemini", title=a_title(Reading.PERMISSION))).sleep(1_000)
    assert ready(told) == [KEY]
    assert told.board.ring(KEY)[0].cause == "title"


def test_a_restored_prompt_rings_nobody_until_it_is_confirmed():
    told = Told(a_blocked(evidence=Evidence.RESTORED)).sleep(60_000)
    assert ready(told) == []
    assert told.row.attention_class == 1
    assert ready(told.tell(a_blocked())) == [KEY]


def test_a_stale_prompt_rings_nobody():
    assert ready(Told(a_blocked(updated_ms=NOW_MS - STALE_AFTER_MS - 1)).sleep(60_000)) == []


def published(told):
    return WorktreesSorted(workspace="default", birth="b", version=1, at_ms=told.now_ms, worktrees=tuple(told.rows))


def test_after_a_restart_nothing_rings_again_that_the_last_list_says_has_rung():
    first = Told(a_blocked()).sleep(1_000)
    ready(first)
    first.board.ring(KEY)
    again = Told(now_ms=first.now_ms + 5_000)
    again.board.remember_rings(published(first), again.now_ms, again.awake_ms)
    again.tell(a_blocked())
    assert ready(again.sleep(60_000)) == []
    assert again.row.rang is True


def test_after_a_restart_what_had_not_rung_rings():
    first = Told(a_blocked()).sleep(900)
    again = Told(now_ms=first.now_ms + 5_000)
    again.board.remember_rings(published(first), again.now_ms, again.awake_ms)
    again.tell(a_blocked())
    assert ready(again) == [KEY]


# ---------------------------------------------------------------- order of arrival

PATHS = ("/r", "/r/a", "/r/a/b", "/s")
HOSTS = ("h", "g")

statuses = st.builds(
    a_status,
    host=st.sampled_from(HOSTS),
    pane=st.sampled_from(("p1", "p2")),
    workspace=st.sampled_from(("default", "default", "other")),
    cwd=st.none() | st.sampled_from(PATHS),
    state=st.sampled_from(State),
    interrupted=st.booleans(),
    hooked=st.booleans(),
    agent=st.none() | st.just("claude"),
    live=st.none() | st.booleans(),
    since_ms=st.integers(NOW_MS - 3, NOW_MS),
    updated_ms=st.integers(NOW_MS - STALE_AFTER_MS - 3, NOW_MS - STALE_AFTER_MS + 3) | st.just(NOW_MS),
    evidence=st.sampled_from((Evidence.OBSERVED, Evidence.RESTORED)),
    title=st.none() | st.builds(a_title, st.sampled_from(Reading), st.integers(NOW_MS - 3, NOW_MS)),
)
worktrees = st.builds(
    a_worktree,
    st.sampled_from(PATHS),
    host=st.sampled_from(HOSTS),
    workspace=st.sampled_from(("default", "default", "other")),
    active_ms=st.integers(0, 3) | st.just(NOW_MS),
    created_ms=st.none() | st.just(NOW_MS) | st.integers(NOW_MS - CREATE_GRACE_MS, NOW_MS - CREATE_GRACE_MS + 3),
    removed=st.booleans(),
)


class ArrivalDoesNotMatter(RuleBasedStateMachine):
    """However the messages came, the rows are those of a board that hears only the last values, in any order."""

    def __init__(self):
        super().__init__()
        self.told = Told()
        self.last = {}

    @rule(message=statuses | worktrees)
    def tell(self, message):
        self.told.tell(message)
        self.last[message.host, getattr(message, "pane", None), getattr(message, "worktree", None)] = message

    @rule(ms=st.integers(0, 4) | st.just(CREATE_GRACE_MS))
    def sleep(self, ms):
        self.told.sleep(ms)

    @rule(random=st.randoms())
    def hear_all_again(self, random):
        messages = list(self.last.values())
        random.shuffle(messages)
        self.told.tell(*messages)

    @invariant()
    def same_rows(self):
        fresh = Told(now_ms=self.told.now_ms, awake_ms=self.told.awake_ms).tell(*reversed(self.last.values()))
        assert self.told.rows == fresh.rows
        assert self.told.board.rows.keys() == set(self.told.board.order())
        assert self.told.board.due() == fresh.board.due()


ArrivalDoesNotMatter.TestCase.settings = settings(max_examples=120, stateful_step_count=30, deadline=None)
TestArrivalDoesNotMatter = ArrivalDoesNotMatter.TestCase


def test_each_hook_of_a_pane_that_stays_where_it_is_tells_when_it_came():
    board = Board("default", NOW_MS)
    path = "/repo"
    known = WorktreeKnown(worktree=worktree_id("h", path), workspace="default", host="h", path=path, name="repo", at_ms=NOW_MS)
    board.hear_worktree(known, NOW_MS, NOW_MS)
    for came_ms in (NOW_MS, NOW_MS + 1, NOW_MS + 2):
        status = a_status(host="h", cwd=path, since_ms=NOW_MS, updated_ms=came_ms, hooked=True)
        assert board.hear_status(status, came_ms, came_ms) == came_ms
        assert board.hear_status(status, came_ms, came_ms) is None, "said again, it is no news"
