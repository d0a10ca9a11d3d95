"""What holds of a pane whatever it hears, in whatever order, however often."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW_MS, a_hook
from tocsin.contract.messages import (
    HISTORY_MAX,
    TURNS_MAX,
    Ask,
    HookReported,
    Kind,
    Mark,
    MarkKind,
    Origin,
    PaneSeen,
    PaneTitled,
    Process,
    State,
    Task,
    Titled,
)
from tocsin.status_store.core.board import Board
from tocsin.status_store.core.evidence import due_ms, pass_time
from tocsin.status_store.core.hooks import TWICE_MS, hear, stamp_of
from tocsin.status_store.core.pane import CALLS_MAX, IDENTITIES_MAX, Lead, Moment, Pane, state_of

CALLS = st.sampled_from([None, "c1", "c2", "c3"])
TURNS = st.sampled_from([None, "t1", "t2"])


@st.composite
def hooks(draw: st.DrawFn) -> HookReported:
    """Any event, sent at any time within ten seconds."""
    at_ms = NOW_MS + draw(st.integers(0, 10_000))
    sent = draw(st.sampled_from([None, at_ms, at_ms - 50, at_ms - 700]))
    return a_hook(
        draw(st.sampled_from(list(Kind))),
        id=f"e{draw(st.integers(0, 10**6))}",
        at_ms=at_ms,
        sent_ms=sent,
        agent=draw(st.sampled_from(["claude", "codex", "gemini", "qwen", "opencode"])),
        session=draw(st.sampled_from(["s1", "s1", "s1", "s2"])),
        turn=draw(TURNS),
        child=draw(st.sampled_from([None, None, "k1", "k2"])),
        call=draw(CALLS),
        tool=draw(st.sampled_from([None, "Bash", "Edit"])),
        input_hash=draw(st.sampled_from([None, "h1", "h2"])),
        prompt_hash=draw(st.sampled_from([None, "p1", "p2"])),
        origin=draw(st.sampled_from([None, *Origin])),
        ask=draw(st.sampled_from([None, *Ask])),
        detail=draw(st.sampled_from([None, "startup", "clear", "compact", "manual", "exit", "other"])),
        tasks=draw(st.sampled_from([None, (), (Task(id="k1", kind="agent"),), (Task(id="sh", kind="shell"),)])),
        timers=draw(st.booleans()),
        interrupted=draw(st.booleans()),
        attended=draw(st.sampled_from([None, True, False])),
        spooled=draw(st.booleans()),
    )


def moment_of(event: HookReported) -> Moment:
    return Moment(at_ms=event.at_ms, awake_ms=event.at_ms)


def heard(events: list[HookReported], pane: Pane | None = None, first: int = 1) -> Pane:
    pane = pane or Pane(host="h", pane="p1")
    for seq, event in enumerate(events, first):
        pane = hear(pass_time(pane, moment_of(event)), event, moment_of(event), seq)
    return pane


@given(st.lists(hooks(), max_size=40))
def test_what_is_shown_follows_from_the_three_facts_and_every_list_is_bounded(events):
    pane = Pane(host="h", pane="p1")
    for seq, event in enumerate(events, 1):
        before = pane
        pane = hear(pane, event, moment_of(event), seq)
        assert (pane.state, pane.interrupted) == state_of(pane)
        if (pane.state, pane.interrupted) == (before.state, before.interrupted):
            assert pane.since_ms == before.since_ms, "the moment moves only when the state does"
        assert pane.held <= {child.id for child in pane.roster}
        assert pane.prompts_opened - pane.prompts_closed == len(pane.pending)
        assert len({(prompt.owner, prompt.number) for prompt in pane.pending}) == len(pane.pending)
        assert len(pane.history) <= HISTORY_MAX
        assert len(pane.turns) <= TURNS_MAX
        assert len(pane.identities) <= IDENTITIES_MAX
        assert len(pane.calls) <= CALLS_MAX
        assert pane.turn >= before.turn
        assert pane.updated_ms >= before.updated_ms


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[HookReported], list[HookReported]]:
    """Events of which each has an id of its own, and the same with some of them delivered again anywhere behind themselves."""
    once = [msgspec.structs.replace(event, id=f"e{number}") for number, event in enumerate(draw(st.lists(hooks(), max_size=20)))]
    again: dict[int, list[HookReported]] = {}
    for number, event in enumerate(once):
        for behind in draw(st.lists(st.integers(number, len(once) - 1), max_size=1)):
            again.setdefault(behind, []).append(event)
    return once, [one for number, event in enumerate(once) for one in (event, *again.get(number, ()))]


@given(st.lists(hooks(), min_size=1, max_size=30), st.data())
def test_an_event_whose_place_in_the_log_was_passed_changes_nothing(events, data):
    pane = heard(events)
    again = data.draw(st.integers(0, len(events) - 1))
    assert hear(pane, events[again], moment_of(events[-1]), again + 1) == pane


@given(logs())
def test_an_event_that_comes_again_changes_nothing_but_the_count_of_those(log):
    once, with_repeats = log
    pane, other = heard(once), heard(with_repeats)
    assert other.repeated - pane.repeated == len(with_repeats) - len(once)
    assert msgspec.structs.replace(other, seq=pane.seq, repeated=pane.repeated) == pane


def test_a_prompt_of_a_session_that_was_left_starts_no_turn_when_it_comes_again_after_that_session_is_back():
    straggler = a_hook(Kind.PROMPTED, id="late", session="s1", at_ms=NOW_MS + 3_000)
    log = [
        a_hook(Kind.SESSION_STARTED, id="first", session="s1", at_ms=NOW_MS),
        a_hook(Kind.SESSION_STARTED, id="other", session="s2", at_ms=NOW_MS + 1_000),
        straggler,
        a_hook(Kind.SESSION_STARTED, id="back", session="s1", at_ms=NOW_MS + 2_000),
    ]
    pane = heard(log)
    assert hear(pane, straggler, moment_of(straggler), 5).state is pane.state is State.IDLE


def test_a_second_hooks_permission_asks_nobody_when_it_comes_again_after_the_answer():
    asks = a_hook(Kind.ASKED, id="ask", call=None, tool="Bash", ask=Ask.PERMISSION, at_ms=NOW_MS)
    twin = msgspec.structs.replace(asks, id="twin")
    tools = [a_hook(Kind.TOOL_ENDED, id=f"t{number}", call=f"c{number}", tool="Edit", at_ms=NOW_MS + number) for number in range(1, 5)]
    pane = heard([a_hook(Kind.PROMPTED, id="p", at_ms=NOW_MS), asks, twin, a_hook(Kind.ANSWERED, id="yes", at_ms=NOW_MS), *tools])
    assert hear(pane, twin, moment_of(twin), 100).state is pane.state is State.WORKING


@given(logs(), st.integers(-TWICE_MS, TWICE_MS))
def test_a_hook_that_is_registered_twice_moves_what_one_does(log, apart_ms):
    events, _ = log
    pane = heard(events)
    for event in events[-1:]:
        twin = msgspec.structs.replace(event, id="twin", sent_ms=stamp_of(event) + apart_ms)
        other = hear(pane, twin, moment_of(event), len(events) + 1)
        forgiven = {"seq": pane.seq, "repeated": pane.repeated, "identities": pane.identities}
        assert msgspec.structs.replace(other, **forgiven) == pane


@given(st.lists(hooks(), max_size=30), st.integers(0, 30))
def test_a_restart_at_any_event_ends_in_the_same_state(events, cut):
    stored = msgspec.json.decode(msgspec.json.encode(heard(events[:cut])), type=Pane)
    assert heard(events[cut:], stored, min(cut, len(events)) + 1) == heard(events)


@given(st.lists(hooks(), max_size=30))
def test_a_child_never_starts_or_ends_its_parents_turn(events):
    pane = heard(events)
    for kind in Kind:
        event = a_hook(
            kind,
            id=f"child {kind}",
            child="k9",
            agent="claude",
            session=pane.session or "s1",
            at_ms=NOW_MS + 20_000,
            attended=True,
            ask=Ask.PERMISSION,
        )
        after = hear(pane, event, moment_of(event), 999)
        assert after.lead is pane.lead, kind


@given(st.lists(hooks(), max_size=30), st.integers(0, 3_600_000))
def test_a_limit_that_has_passed_is_over_and_none_is_left_in_the_past(events, later_ms):
    moment = Moment(at_ms=NOW_MS + 10_000 + later_ms, awake_ms=NOW_MS + 10_000 + later_ms)
    pane = pass_time(heard(events), moment)
    due = due_ms(pane)
    assert due is None or due > moment.awake_ms
    assert pass_time(pane, moment) == pane
    assert (pane.state, pane.interrupted) == state_of(pane)


@given(st.lists(hooks(), max_size=30), st.permutations(range(6)))
def test_stragglers_of_a_turn_that_has_ended_move_nothing(events, order):
    """A whole turn whose stamps order it, delivered in any order behind the prompt, ends as done."""
    begin = NOW_MS + 60_000
    turn = [
        a_hook(Kind.TOOL_STARTED, id="x1", call="c7", tool="Bash", turn="t9"),
        a_hook(Kind.TOOL_ENDED, id="x2", call="c7", tool="Bash", turn="t9"),
        a_hook(Kind.TOOL_STARTED, id="x3", call="c8", tool="Edit", turn="t9"),
        a_hook(Kind.TOOL_ENDED, id="x4", call="c8", tool="Edit", turn="t9"),
        a_hook(Kind.NOTED, id="x5", turn="t9"),
        a_hook(Kind.TURN_ENDED, id="x6", turn="t9", tasks=()),
    ]
    stamped = [msgspec.structs.replace(event, sent_ms=begin + 100 * number) for number, event in enumerate(turn)]
    prompt = a_hook(Kind.PROMPTED, id="x0", turn="t9", at_ms=begin, sent_ms=begin - 1, origin=Origin.PERSON)
    arriving = [msgspec.structs.replace(stamped[index], at_ms=begin + 1000 + place) for place, index in enumerate(order)]
    start = (
        heard(events, first=1) if all(event.session == "s1" and event.agent == "claude" for event in events) else Pane(host="h", pane="p1")
    )
    pane = start
    for seq, event in enumerate([prompt, *arriving], 1000):
        pane = hear(pane, event, moment_of(event), seq)
    if not pane.pending and not pane.held:
        assert (pane.lead, pane.state) == (Lead.DONE, State.DONE)


@st.composite
def sights(draw: st.DrawFn) -> PaneSeen:
    process = draw(st.sampled_from([None, Process(pid=7, started_ms=1, boot="b"), Process(pid=8, started_ms=2, boot="b")]))
    marks = draw(st.sampled_from([(), (Mark(number=1, kind=MarkKind.INTERRUPTED, session="s1", at_ms=NOW_MS),)]))
    return PaneSeen(
        host="h", pane="p1", life="l", at_ms=NOW_MS + draw(st.integers(0, 10_000)), live=draw(st.booleans()), process=process,
        agent=draw(st.sampled_from([None, "claude", "codex"])), cwd="/repo", last_key_ms=draw(st.sampled_from([None, NOW_MS + 5_000])), marks=marks,
    )  # fmt: skip


@st.composite
def titles(draw: st.DrawFn) -> PaneTitled:
    text = draw(st.sampled_from(["✳ Claude Code", "◐ Claude Code", "[ ! ] Action Required | x", "zsh", "", "⠋ x | project"]))
    return PaneTitled(host="h", pane="p1", life="l", titles=(Titled(number=draw(st.integers(1, 30)), text=text, at_ms=NOW_MS),))


@given(st.lists(st.one_of(hooks(), sights(), titles()), max_size=40))
def test_a_board_takes_anything_and_every_pane_on_it_stays_consistent(inputs):
    board = Board()
    for seq, one in enumerate(inputs, 1):
        now = Moment(at_ms=NOW_MS + 10_000 + seq, awake_ms=NOW_MS + 10_000 + seq)
        match one:
            case HookReported():
                board.hear(one, seq, now)
            case PaneSeen():
                board.seen(one, now)
            case PaneTitled():
                board.titled(one, now)
        board.pass_time(now)
        due = board.due_ms()
        assert due is None or due > now.awake_ms
    for pane in board.panes.values():
        assert (pane.state, pane.interrupted) == state_of(pane)
        if pane.live is False:
            assert pane.state in (State.GONE, State.IDLE) or pane.hooked
