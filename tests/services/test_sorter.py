"""The sorter's loop: when it says a list, who says it, when the bell rings, and what a kill, a restart or a lost bus may not cost."""

import itertools
import signal
from collections.abc import Sequence

import msgspec
import pytest

from builders import NOW_MS, a_status
from support import Deadline, Service
from tocsin.bus.bus import Heard, Last, Overtaken, Unavailable
from tocsin.bus.nats_bus import connect
from tocsin.contract.ids import worktree_id
from tocsin.contract.messages import Ask, Body, Evidence, PaneStatus, PromptSeen, State, WorktreeKnown, WorktreesSorted
from tocsin.contract.subjects import ATTENTION_RAISED, PANE_STATUS, WORKTREE_KNOWN, WORKTREE_MOVED, WORKTREE_SORTED, Kept
from tocsin.runtime.clock import SystemClock
from tocsin.sorter.core.attention import STALE_AFTER_MS
from tocsin.sorter.edition import apply
from tocsin.sorter.service import Pace, Role, Sorter
from tocsin.sorter.store import ListStore
from tocsin.store.keys import list_of


class FixedClock:
    """Both clocks, moved by the test."""

    def __init__(self):
        self.passed = 0

    def now_ms(self):
        return NOW_MS + self.passed

    def awake_ms(self):
        return 1_000_000 + self.passed


class RecordingBus:
    """Last values by subject, everything said, and the faults a test asks for."""

    def __init__(self):
        self.said = []
        self.kept = {}
        self.seq = 0
        self.returns = 0
        self.away = False
        self.lose_acks = 0

    async def say(self, subject, body, *, msg_id=None, after=None):
        return await self.say_encoded(subject, subject.of(body), msgspec.json.encode(body), after=after)

    async def say_encoded(self, subject, name, payload, *, msg_id=None, after=None):
        if self.away:
            raise Unavailable("away")
        # As it travels: what a reader gets is what was encoded.
        arrived = msgspec.json.decode(payload, type=subject.body)
        if subject.kept is Kept.NOT:
            self.said.append(arrived)
            return 0
        if after is not None and after != (self.kept[name].seq if name in self.kept else 0):
            raise Overtaken(name)
        self.said.append(arrived)
        self.seq += 1
        self.kept[name] = Last(arrived, self.seq)
        if self.lose_acks:
            self.lose_acks -= 1
            raise Unavailable("no ack")
        return self.seq

    async def last(self, subject, *keys):
        if self.away:
            raise Unavailable("away")
        return self.kept.get(subject.at(*keys))

    def come_back(self, empty=False):
        """The connection was cut and is there again; a server that was started again has lost what was in memory."""
        self.returns += 1
        self.away = False
        if empty:
            self.kept.clear()
            self.seq = 0

    def of(self, kind: type[Body]) -> list:
        return [body for body in self.said if isinstance(body, kind)]

    @property
    def lists(self) -> list[WorktreesSorted]:
        return self.of(WorktreesSorted)


class MemoryStore:
    def __init__(self, body=None):
        self.encoded = None if body is None else msgspec.json.encode(body)
        self.saves = 0
        self.away = False

    async def load(self, workspace):
        if self.away:
            raise Unavailable("away")
        return None if self.encoded is None else msgspec.json.decode(self.encoded, type=WorktreesSorted)

    async def save(self, workspace, encoded):
        if self.away:
            raise Unavailable("away")
        self.saves += 1
        self.encoded = encoded


class Replica:
    """One sorter on a shared bus and clock, driven by hand."""

    def __init__(self, bus=None, clock=None, store=None, birth="birth", **pace):
        self.bus = bus or RecordingBus()
        self.clock = clock or FixedClock()
        self.store = store or MemoryStore()
        self.sorter = Sorter(self.bus, self.store, self.clock, "default", lambda: birth, Pace(**pace))

    def tell(self, *messages):
        for message in messages:
            hear = self.sorter.hear_statuses if isinstance(message, PaneStatus) else self.sorter.hear_worktrees
            hear([Heard(message)])
        return self

    def heard_all(self):
        self.sorter.hear_statuses([])
        self.sorter.hear_worktrees([])
        return self

    async def start(self, *messages):
        """Open, hear all last values, and say the first list."""
        await self.sorter.open()
        self.tell(*messages).heard_all()
        await self.sorter.turn()
        return self

    async def after(self, ms):
        """Let `ms` pass, then do what is due; returns how long from then until more is due."""
        self.clock.passed += ms
        due = await self.sorter.turn()
        return None if due is None else due - self.clock.awake_ms()

    def hear_last_list(self):
        """What a replica that stands by hears of the subject."""
        last = self.bus.kept.get(WORKTREE_SORTED.at("default"))
        self.sorter.hear_lists([Heard(last.body, last.seq)] if last is not None else [])


def a_worktree(path="/repo", **fields):
    defaults = {"host": "h", "worktree": worktree_id("h", path), "name": path[1:], "path": path, "at_ms": NOW_MS}
    return WorktreeKnown(**(defaults | fields))


def a_blocked(pane="p1", since_ms=NOW_MS, **fields):
    prompt = PromptSeen(number=1, ask=Ask.PERMISSION, since_ms=since_ms, tool="Bash", target="npm")
    return a_status(**({"pane": pane, "state": State.BLOCKED, "since_ms": since_ms, "updated_ms": since_ms, "prompts": (prompt,)} | fields))


def names(body: WorktreesSorted) -> list[str]:
    return [row.name for row in body.worktrees]


@pytest.fixture
async def replica():
    return await Replica().start(a_worktree("/api"), a_worktree("/web"), a_status(cwd="/api"))


# ---------------------------------------------------------------- when a list is said


async def test_no_list_is_said_before_all_last_values_are_heard():
    replica = Replica()
    await replica.sorter.open()
    replica.tell(a_worktree("/api"))
    replica.sorter.hear_worktrees([])
    await replica.sorter.turn()
    assert replica.bus.said == []
    replica.sorter.hear_statuses([])
    await replica.sorter.turn()
    (said,) = replica.bus.lists
    assert (said.birth, said.version, said.restored, names(said)) == ("birth", 1, False, ["api"])


async def test_a_start_with_nothing_to_rank_says_an_empty_list():
    assert (await Replica().start()).bus.lists[0].worktrees == ()


async def test_the_first_change_after_quiet_is_said_at_once(replica):
    await replica.after(5_000)
    replica.tell(a_status(pane="p2", cwd="/web", state=State.DONE))
    await replica.after(0)
    assert names(replica.bus.lists[-1]) == ["web", "api"]
    assert [row.rank for row in replica.bus.lists[-1].worktrees] == [1, 2]


async def test_a_burst_is_two_lists_the_first_change_and_all_the_others_at_the_end_of_the_window(replica):
    await replica.after(5_000)
    for number in range(50):
        replica.tell(a_status(pane=f"p{number}", cwd=f"/w{number}"))
        left = await replica.after(1)
    assert len(replica.bus.lists) == 2
    assert left == 100 - 49
    await replica.after(left)
    assert len(replica.bus.lists) == 3
    assert len(replica.bus.lists[-1].worktrees) == 52
    assert await replica.after(10_000) > 10_000


async def test_what_nobody_can_see_is_not_said(replica):
    said = len(replica.bus.said)
    for number in range(1, 5):
        replica.tell(a_status(cwd="/api", seq=number, updated_ms=NOW_MS + number * 1_000))
        await replica.after(1_000)
    assert len(replica.bus.said) == said
    # It travels with the next list that is said for another reason, and in its delta.
    replica.tell(a_status(pane="p2", cwd="/web"))
    await replica.after(1_000)
    assert max(row.active_at for row in replica.bus.lists[-1].worktrees) == NOW_MS + 4_000
    assert len(replica.bus.of(WORKTREE_MOVED.body)[-1].changed) == 2


async def test_a_change_that_is_taken_back_within_the_window_is_not_said(replica):
    replica.tell(a_blocked(cwd="/web", pane="p2"))
    await replica.after(1)
    replica.tell(a_blocked(cwd="/web", pane="p2", state=State.GONE))
    lists = len(replica.bus.lists)
    await replica.after(5_000)
    assert len(replica.bus.lists) == lists


async def test_a_pane_goes_stale_at_the_exact_moment_without_any_message(replica):
    left = await replica.after(0)
    assert left == STALE_AFTER_MS + 1
    await replica.after(STALE_AFTER_MS)
    assert len(replica.bus.lists) == 1
    await replica.after(1)
    assert [row.evidence for row in replica.bus.lists[-1].worktrees if row.panes] == [Evidence.STALE]


async def test_case_c01_looking_says_nothing():
    done = [a_status(pane=f"P{one}", cwd=f"/W{one}", state=State.DONE, since_ms=NOW_MS + one * 1_000) for one in (1, 2)]
    worktrees = [a_worktree(f"/W{one}") for one in (1, 2, 3)]
    replica = await Replica().start(*worktrees, *done, a_status(pane="P3", cwd="/W3", since_ms=NOW_MS + 2_500))
    assert names(replica.bus.lists[-1]) == ["W2", "W1", "W3"]
    said = len(replica.bus.said)
    replica.tell(a_status(pane="P3", cwd="/W3", since_ms=NOW_MS + 2_500, updated_ms=NOW_MS + 6_000, seq=2))
    await replica.after(6_000)
    assert len(replica.bus.said) == said


async def test_case_c02_equal_worktrees_heard_in_any_order_also_after_a_restart_say_nothing():
    ten = [a_worktree(f"/w{one:02}", worktree=f"w{one:02}", name="api") for one in range(1, 11)]
    replica = await Replica().start(*ten)
    order = [row.id for row in replica.bus.lists[-1].worktrees]
    assert order == sorted(order)
    for feed in (ten[::-1], ten[5:] + ten[:5]):
        replica.tell(*feed)
        await replica.after(1_000)
    again = await Replica(replica.bus, replica.clock, birth="other").start(*ten[3:], *ten[:3])
    await again.after(5_000)
    assert len(replica.bus.said) == 1


async def test_each_delta_leads_from_its_list_to_the_next(replica):
    changes: Sequence[Body] = [
        a_status(pane="p2", cwd="/web", state=State.DONE),
        a_worktree("/new", created_ms=NOW_MS),
        a_blocked(cwd="/api"),
        a_worktree("/new", removed=True),
        a_status(pane="p3", cwd="/elsewhere"),
        a_status(cwd="/api", state=State.DONE, interrupted=True),
    ]
    for change in changes:
        replica.tell(change)
        await replica.after(1_000)
    lists, deltas = replica.bus.lists, replica.bus.of(WORKTREE_MOVED.body)
    assert len(deltas) == len(lists) - 1 >= len(changes)
    for before, delta, after in zip(lists, deltas, lists[1:], strict=False):
        assert (delta.birth, delta.version) == (after.birth, after.version) == (before.birth, before.version + 1)
        assert tuple(apply(before.worktrees, delta)) == after.worktrees


# ---------------------------------------------------------------- cold start


async def test_a_restart_leaves_the_list_on_the_bus_as_it_is_until_something_differs(replica):
    again = Replica(replica.bus, replica.clock, birth="other")
    await again.sorter.open()
    again.tell(a_status(cwd="/api"))
    await again.after(5_000)
    assert len(replica.bus.lists) == 1
    again.tell(a_worktree("/api"), a_worktree("/web")).heard_all()
    await again.after(5_000)
    assert len(replica.bus.lists) == 1
    again.tell(a_blocked(cwd="/web", pane="p2"))
    await again.after(0)
    assert [(body.birth, body.version) for body in replica.bus.lists] == [("birth", 1), ("birth", 2)]


async def test_a_list_that_only_the_store_has_is_served_unchanged_and_marked(replica):
    await replica.after(5_000)
    stored = msgspec.json.decode(replica.store.encoded, type=WorktreesSorted)
    again = Replica(RecordingBus(), replica.clock, replica.store, birth="later")
    await again.sorter.open()
    (said,) = again.bus.lists
    assert said == msgspec.structs.replace(stored, restored=True, birth="later", version=1)


async def test_after_the_bus_was_lost_the_old_list_stands_until_its_rows_are_heard_again(replica):
    await replica.after(5_000)
    again = Replica(RecordingBus(), replica.clock, replica.store, birth="later")
    await again.start(a_worktree("/api"))
    # All that the empty bus had was heard, and it was not all.
    assert [body.restored for body in again.bus.lists] == [True]
    again.tell(a_status(cwd="/api"), a_worktree("/web"))
    await again.after(1_000)
    assert [(body.version, body.restored) for body in again.bus.lists] == [(1, True), (2, False)]


async def test_rows_that_nobody_names_again_are_waited_for_only_so_long(replica):
    await replica.after(5_000)
    again = Replica(RecordingBus(), replica.clock, replica.store, birth="later")
    await again.start(a_worktree("/api"))
    left = await again.after(0)
    assert left == Pace.refill_ms
    await again.after(left)
    assert names(again.bus.lists[-1]) == ["api"]
    assert again.bus.lists[-1].restored is False


async def test_a_store_that_is_away_holds_nothing_up():
    store = MemoryStore()
    store.away = True
    replica = await Replica(store=store).start(a_worktree("/api"))
    await replica.after(10_000)
    assert names(replica.bus.lists[-1]) == ["api"]


async def test_lists_are_stored_at_most_once_in_two_seconds_and_the_last_one_always(replica):
    saves = replica.store.saves
    for number in range(20):
        replica.tell(a_status(cwd="/api", state=(State.DONE, State.WORKING)[number % 2], since_ms=NOW_MS + number))
        left = await replica.after(200)
    assert 1 <= replica.store.saves - saves <= 3
    await replica.after(left)
    await replica.after(2_000)
    assert msgspec.json.decode(replica.store.encoded, type=WorktreesSorted) == replica.bus.lists[-1]


# ---------------------------------------------------------------- lease


@pytest.fixture
async def two():
    """An active replica and one that stands by, both with the same order."""
    old = await Replica().start(a_worktree("/api"), a_status(cwd="/api"))
    new = await Replica(old.bus, old.clock, birth="other").start(a_worktree("/api"), a_status(cwd="/api"))
    both(old, new, a_worktree("/web"))
    await new.after(1_000)
    await old.after(0)
    assert (old.sorter.role, new.sorter.role) == (Role.STANDBY, Role.ACTIVE)
    old.hear_last_list()
    return old, new


def both(one, other, *messages):
    one.tell(*messages)
    other.tell(*messages)


async def test_who_is_refused_stands_by_and_the_line_of_lists_goes_on(two):
    old, _ = two
    assert [(body.birth, body.version) for body in old.bus.lists] == [("birth", 1), ("birth", 2)]


async def test_a_standby_says_nothing_while_the_active_one_does(two):
    old, new = two
    for number in range(30):
        both(old, new, a_status(cwd="/api", state=(State.DONE, State.WORKING)[number % 2], since_ms=NOW_MS + number))
        await new.after(500)
        old.hear_last_list()
        await old.after(0)
    assert old.sorter.role is Role.STANDBY
    assert old.bus.lists[-1].version == 2 + 30


async def test_a_standby_takes_over_when_a_difference_has_stood_for_three_seconds(two):
    old, _ = two
    old.tell(a_blocked(cwd="/web", pane="p2", since_ms=NOW_MS + 1_000))
    left = await old.after(500)
    assert left is not None
    said = len(old.bus.lists)
    await old.after(2_999)
    assert len(old.bus.lists) == said
    await old.after(1)
    assert old.sorter.role is Role.ACTIVE
    assert names(old.bus.lists[-1]) == ["web", "api"]
    assert (old.bus.lists[-1].birth, old.bus.lists[-1].version) == ("birth", 3)


async def test_a_standby_does_not_take_over_for_what_nobody_can_see(two):
    old, _ = two
    old.tell(a_status(cwd="/api", updated_ms=NOW_MS + 500, seq=2))
    for _ in range(10):
        await old.after(1_000)
    assert old.sorter.role is Role.STANDBY


async def test_two_that_see_different_things_soon_stop_taking_the_subject_from_each_other(two):
    old, new = two
    old.tell(a_worktree("/only-old"))
    new.tell(a_worktree("/only-new"))
    last_said = []
    for second in range(600):
        if second % 10 == 0:
            both(old, new, a_status(cwd="/api", state=(State.DONE, State.WORKING)[second // 10 % 2], since_ms=NOW_MS + second))
        for one in (old, new):
            one.hear_last_list()
            await one.after(0)
        last_said.append("only-old" in names(old.bus.lists[-1]))
        old.clock.passed += 1_000
    changes_of_speaker = sum(one != other for one, other in itertools.pairwise(last_said))
    assert 1 <= changes_of_speaker <= 6


async def test_an_ack_that_was_lost_is_no_defeat(replica):
    replica.bus.lose_acks = 1
    replica.tell(a_status(pane="p2", cwd="/web"))
    left = await replica.after(1_000)
    await replica.after(left)
    assert replica.sorter.role is Role.ACTIVE
    replica.tell(a_blocked(cwd="/web", pane="p2"))
    await replica.after(1_000)
    assert [body.version for body in replica.bus.lists] == [1, 2, 3]


async def test_a_bus_that_is_away_is_asked_again_and_gets_the_list_as_it_is_then(replica):
    replica.bus.away = True
    replica.tell(a_status(pane="p2", cwd="/web"))
    assert await replica.after(1_000) == 500
    replica.tell(a_status(pane="p3", cwd="/docs"))
    assert await replica.after(500) == 500
    replica.bus.away = False
    await replica.after(500)
    assert len(replica.bus.lists) == 2
    assert [pane.id for row in replica.bus.lists[-1].worktrees for pane in row.panes] == ["p1", "p3", "p2"]


async def test_a_bus_that_has_lost_the_list_gets_it_again(replica):
    replica.bus.come_back(empty=True)
    replica.heard_all()
    await replica.after(1_000)
    first, second = replica.bus.lists
    assert (second.version, second.worktrees) == (2, first.worktrees)
    replica.tell(a_blocked(cwd="/web", pane="p2"))
    await replica.after(1_000)
    assert replica.bus.lists[-1].version == 3


async def test_a_bus_that_lost_the_list_unnoticed_gets_it_with_the_next_change(replica):
    replica.bus.kept.clear()
    replica.bus.seq = 0
    replica.tell(a_blocked(cwd="/web", pane="p2"))
    left = await replica.after(1_000)
    await replica.after(left)
    assert names(replica.bus.kept[WORKTREE_SORTED.at("default")].body) == ["web", "api"]
    assert replica.sorter.role is Role.ACTIVE


async def test_a_standby_refills_a_bus_that_has_lost_the_list_when_the_active_one_does_not(two):
    old, _ = two
    old.bus.come_back(empty=True)
    old.heard_all()
    await old.after(1_000)
    assert WORKTREE_SORTED.at("default") not in old.bus.kept
    await old.after(3_000)
    assert old.bus.kept[WORKTREE_SORTED.at("default")].body.version == 3


# ---------------------------------------------------------------- bell


def raised(bus):
    return [(body.name, body.pane) for body in bus.of(ATTENTION_RAISED.body)]


async def test_the_bell_rings_once_a_second_after_the_prompt_and_its_row_says_so_first(replica):
    replica.tell(a_blocked(cwd="/web", pane="p2", since_ms=NOW_MS))
    assert await replica.after(200) == 800
    assert raised(replica.bus) == []
    await replica.after(800)
    assert raised(replica.bus) == [("web", "p2")]
    assert replica.bus.lists[-1].worktrees[0].rang is True
    assert replica.bus.said.index(replica.bus.of(ATTENTION_RAISED.body)[0]) > replica.bus.said.index(replica.bus.lists[-1])
    for _ in range(5):
        replica.tell(a_blocked(cwd="/web", pane="p2", since_ms=NOW_MS, updated_ms=NOW_MS + 5_000))
        await replica.after(1_000)
    assert len(raised(replica.bus)) == 1


async def test_a_prompt_that_a_rule_answers_rings_nobody(replica):
    replica.tell(a_blocked(cwd="/web", pane="p2", since_ms=NOW_MS))
    await replica.after(300)
    replica.tell(a_status(cwd="/web", pane="p2", since_ms=NOW_MS + 300))
    await replica.after(5_000)
    assert raised(replica.bus) == []


async def test_a_second_agent_of_a_worktree_rings_for_itself(replica):
    replica.tell(a_blocked(cwd="/web", pane="p2", since_ms=NOW_MS))
    await replica.after(1_000)
    replica.tell(a_blocked(cwd="/web", pane="p3", since_ms=NOW_MS + 1_000))
    await replica.after(1_000)
    assert raised(replica.bus) == [("web", "p2"), ("web", "p3")]


async def test_a_restored_prompt_and_one_that_has_rung_ring_nobody_after_a_restart(replica):
    rung = a_blocked(cwd="/web", pane="p2", since_ms=NOW_MS)
    restored = a_blocked(cwd="/api", since_ms=NOW_MS, evidence=Evidence.RESTORED)
    replica.tell(rung)
    await replica.after(1_000)
    again = await Replica(replica.bus, replica.clock, birth="other").start(a_worktree("/api"), a_worktree("/web"), restored, rung)
    await again.after(60_000)
    assert raised(replica.bus) == [("web", "p2")]


async def test_a_prompt_in_its_dwell_when_the_sorter_dies_rings_after_the_restart(replica):
    blocked = a_blocked(cwd="/web", pane="p2", since_ms=NOW_MS)
    replica.tell(blocked)
    await replica.after(900)
    again = Replica(replica.bus, replica.clock, birth="other")
    again.clock.passed += 5_000
    await again.start(a_worktree("/api"), a_worktree("/web"), a_status(cwd="/api"), blocked)
    await again.after(200)
    assert raised(replica.bus) == [("web", "p2")]


async def test_of_two_replicas_only_the_one_whose_list_is_on_record_rings(two):
    old, new = two
    both(old, new, a_blocked(cwd="/web", pane="p2", since_ms=NOW_MS + 1_000))
    await new.after(0)
    old.hear_last_list()
    for step in (500, 500, 0):
        await new.after(step)
        old.hear_last_list()
        await old.after(0)
    assert raised(old.bus) == [("web", "p2")]


async def test_who_was_overtaken_before_it_rang_leaves_it_to_the_other_and_rings_if_that_one_dies():
    old = await Replica().start(a_worktree("/web"))
    new = await Replica(old.bus, old.clock, birth="other").start(a_worktree("/web"))
    both(old, new, a_blocked(cwd="/web", since_ms=NOW_MS))
    await new.after(500)  # says the list, then dies
    await old.after(500)
    assert raised(old.bus) == []
    assert old.sorter.role is Role.STANDBY
    old.hear_last_list()
    # Nothing shown differs, and still: the alarm is due, and nobody says that it rang.
    assert await old.after(0) == 3_000
    await old.after(2_999)
    assert raised(old.bus) == []
    await old.after(1)
    assert raised(old.bus) == [("web", "p1")]


async def test_what_was_answered_while_the_bus_was_away_rings_nobody(replica):
    replica.tell(a_blocked(cwd="/web", pane="p2", since_ms=NOW_MS))
    await replica.after(200)
    replica.bus.away = True
    await replica.after(1_000)
    replica.tell(a_status(cwd="/web", pane="p2", since_ms=NOW_MS + 1_000))
    await replica.after(500)
    replica.bus.away = False
    await replica.after(500)
    await replica.after(5_000)
    assert raised(replica.bus) == []


async def test_an_alarm_that_the_bus_did_not_take_is_said_when_it_is_back(replica):
    replica.tell(a_blocked(cwd="/web", pane="p2", since_ms=NOW_MS))
    await replica.after(200)
    replica.bus.away = True
    await replica.after(1_000)
    replica.bus.away = False
    await replica.after(500)
    await replica.after(500)
    assert raised(replica.bus) == [("web", "p2")]


# ---------------------------------------------------------------- as a process


@pytest.fixture
def start_sorter(nats_server, valkey_server, tmp_path):
    started = []

    def start(**settings):
        service = Service("tocsin.sorter", tmp_path / f"s{len(started)}", NATS_URL=nats_server.url, REDIS_URL=valkey_server.url, **settings)
        started.append(service)
        return service.__enter__()

    yield start
    for service in started:
        service.__exit__(None, None, None)


async def listed(bus, what, **expected):
    """The list, once its first row is as expected."""
    async for _ in Deadline(20, what):
        last = await bus.last(WORKTREE_SORTED, "default")
        if (
            last is not None
            and last.body.worktrees
            and all(getattr(last.body.worktrees[0], name) == value for name, value in expected.items())
        ):
            return last.body
    raise AssertionError


async def say(bus, *messages):
    for message in messages:
        await bus.say(PANE_STATUS if isinstance(message, PaneStatus) else WORKTREE_KNOWN, message)


async def test_a_status_on_the_bus_becomes_the_top_of_the_list(bus, start_sorter):
    now_ms = SystemClock().now_ms()
    start_sorter()
    await say(bus, a_worktree("/api"), a_worktree("/web"), a_status(cwd="/api", since_ms=now_ms, updated_ms=now_ms))
    await listed(bus, "the working one", name="api", attention_class=3)
    await say(bus, a_blocked("p2", cwd="/web", since_ms=now_ms))
    found = await listed(bus, "the one that needs a person, and rang", name="web", attention_class=1, rang=True)
    assert names(found) == ["web", "api"]


async def test_a_kill_and_a_restart_lose_nothing_that_was_said_meanwhile(bus, store, start_sorter):
    now_ms = SystemClock().now_ms()
    sorter = start_sorter()
    await say(bus, a_worktree("/api"), a_status(cwd="/api", since_ms=now_ms, updated_ms=now_ms))
    before = await listed(bus, "the first list", attention_class=3)
    sorter.end(signal.SIGKILL)
    await say(bus, a_status(cwd="/api", state=State.DONE, since_ms=now_ms, updated_ms=now_ms))
    sorter.start()
    after = await listed(bus, "what was said meanwhile", attention_class=2)
    assert (after.birth, after.restored) == (before.birth, False)
    assert after.version > before.version


async def test_a_second_replica_goes_on_when_the_first_is_killed(bus, start_sorter):
    now_ms = SystemClock().now_ms()
    first = start_sorter()
    await say(bus, a_worktree("/api"))
    await listed(bus, "the first list", name="api")
    start_sorter(TOCSIN_PATIENCE_MS="500")
    first.end(signal.SIGKILL)
    await say(bus, a_blocked(cwd="/api", since_ms=now_ms))
    await listed(bus, "the second one's list", attention_class=1)


async def test_a_restarted_nats_gets_the_list_again(nats_server, bus, store, start_sorter):
    now_ms = SystemClock().now_ms()
    start_sorter()
    await say(bus, a_worktree("/api"), a_blocked(cwd="/api", since_ms=now_ms))
    before = await listed(bus, "the list", attention_class=1, rang=True)
    nats_server.end(signal.SIGKILL)
    nats_server.start()
    async with connect(nats_server.url, name="again") as later:
        after = await listed(later, "the list again", attention_class=1)
    assert (after.birth, after.worktrees) == (before.birth, before.worktrees)


async def test_when_bus_and_sorter_are_lost_the_stored_list_is_served(nats_server, bus, store, start_sorter):
    sorter = start_sorter()
    await say(bus, a_worktree("/api"))
    await listed(bus, "the list", name="api")
    async for _ in Deadline(10, "the list is stored"):
        if await store.get(list_of("default")):
            break
    assert names(await ListStore(store).load("default")) == ["api"]
    sorter.end(signal.SIGKILL)
    nats_server.end(signal.SIGKILL)
    nats_server.start()
    sorter.start()
    async with connect(nats_server.url, name="again") as later:
        found = await listed(later, "the old list", name="api")
        assert found.restored is True
        await say(later, a_worktree("/api", branch="main"))
        await listed(later, "the list of what is heard now", branch="main")


async def test_a_stored_list_of_another_version_is_no_list(store):
    await store.set(list_of("default"), b'{"v": 99}')
    assert await ListStore(store).load("default") is None
