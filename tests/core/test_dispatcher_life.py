"""The life of one attempt: the table, what a pane and its host show of it, and what time does to it."""

import pytest

from builders import NOW_MS, a_status
from dispatcher_builders import COORDINATOR, PROCESS, World, a_launch, a_spec
from tocsin.contract.hosting import HostFact, Saw
from tocsin.contract.messages import Ask, Evidence, Process, PromptSeen, State, Task, TurnSeen
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.run import SETTLED, AbandonWorker, DispatchState, StartWorker, StopWorker
from tocsin.dispatcher.core.life import LIFE, OPEN, UNSETTLED, advance
from tocsin.dispatcher.core.life import DispatchEvent as E
from tocsin.dispatcher.core.observe import of_fact
from tocsin.dispatcher.core.orders import START_MS_MAX, orders_of
from tocsin.dispatcher.core.watch import HOST_SILENT_MS, INTERRUPTED_MS, READY_MS_MAX, REST_MS, Sight, due, missing
from tocsin.dispatcher.core.wedge import QUIET_MS_MAX, classify

S = DispatchState
BEGUN = TurnSeen(number=1, started_ms=NOW_MS)
ENDED = TurnSeen(number=1, started_ms=NOW_MS, ended_ms=NOW_MS + 1)


# ------------------------------------------------------------------ the table


def test_nothing_leads_out_of_a_settled_state():
    assert not [step for step in LIFE if step[0] in SETTLED]


def test_every_unsettled_state_can_be_stopped_given_up_superseded_and_reported_from():
    for state in OPEN:
        assert {E.STOP_ASKED, E.ABANDONED, E.SUPERSEDED, E.REPORTED} <= {event for at, event in LIFE if at is state}


def test_only_a_report_leads_to_success():
    """No exit, quiet, commit or loss of contact does, alone or in any row."""
    reached = {S.REQUESTED}
    while True:
        more = {to for (state, event), to in LIFE.items() if state in reached and event is not E.REPORTED}
        if more <= reached:
            break
        reached |= more
    assert S.SUCCEEDED not in reached
    assert {to for (_, event), to in LIFE.items() if to is S.SUCCEEDED} == {S.SUCCEEDED}
    assert {state for (state, _), to in LIFE.items() if to is S.SUCCEEDED} == {S.REPORTED}


def test_loss_of_contact_and_an_unseen_start_settle_nothing():
    assert all(
        to in UNSETTLED for (_, event), to in LIFE.items() if event in (E.HOST_SILENT, E.TURN_NOT_SEEN, E.TURN_ENDED, E.STEP_UNKNOWN)
    )
    assert all(to in UNSETTLED for (state, event), to in LIFE.items() if event is E.EXIT_PROVEN and state is not S.STOPPING)


def test_what_is_not_in_the_table_is_refused():
    refused = advance(S.SUCCEEDED, E.TURN_SEEN)
    assert isinstance(refused, Refusal)
    assert refused.code is Code.LIFECYCLE_CONFLICT


# ------------------------------------------------------------- what is observed


def attempt(world: World | None = None, **fields) -> tuple[World, str]:
    world = world or World(a_spec("t"))
    return world, world.start("t", **fields)["dispatch"]


def test_readiness_is_a_turn_start_and_never_a_write():
    world, name = attempt(launch=a_launch(pane="p"))
    world.see(name, E.PROMPT_WRITTEN)
    assert world.dispatch(name).state is S.STARTING
    event, why = due(world.dispatch(name), Sight(a_status(turns=(BEGUN,)), text="ours")) or (None, "")
    assert event is None, "somebody else's turn in a live pane"
    event, why = due(world.dispatch(name), Sight(a_status(turns=(TurnSeen(number=3, started_ms=1, prompt="ours"),)), text="ours"))
    assert (event, why) == (E.TURN_SEEN, "its turn 3 has begun")


def test_in_a_pane_of_its_own_the_first_turn_is_its_own():
    world, name = attempt()
    world.see(name, E.TERMINAL_MADE, pane="p")
    assert due(world.dispatch(name), Sight(a_status(turns=(BEGUN,))))[0] is E.TURN_SEEN


def test_the_window_for_a_turn_start_begins_when_setup_has_ended():
    world, name = attempt()
    world.see(name, E.TAKEN)
    assert world.dispatch(name).await_turn_ms is None
    assert due(world.dispatch(name), Sight(None, waited_ms=None)) is None
    world.see(name, E.AGENT_STARTED, pane="p")
    assert world.dispatch(name).await_turn_ms == world.now_ms
    assert due(world.dispatch(name), Sight(None, waited_ms=READY_MS_MAX - 1)) is None
    assert due(world.dispatch(name), Sight(None, waited_ms=READY_MS_MAX))[0] is E.TURN_NOT_SEEN


def test_a_fact_that_comes_again_adds_nothing_and_one_behind_others_adds_what_it_knows():
    world, name = attempt()
    world.see(name, E.AGENT_STARTED, pane="p", process=PROCESS)
    before = world.run
    world.see(name, E.AGENT_STARTED, pane="p", process=PROCESS)
    assert world.run is before
    world.see(name, E.TURN_SEEN)
    world.see(name, E.TERMINAL_MADE, pane="p", process=Process(pid=8, started_ms=1, boot="b"))
    assert (world.dispatch(name).state, len(world.dispatch(name).processes)) == (S.RUNNING, 2)


def running() -> tuple[World, str]:
    world = World(a_spec("t"))
    return world, world.begin("t")


AT_REST = {"state": State.DONE, "turns": (ENDED,)}


@pytest.mark.parametrize(
    ("fields", "rest_ms", "ended", "why"),
    [
        ({}, REST_MS, True, "at rest for long enough"),
        ({}, REST_MS - 1, False, "its report may be on its way"),
        ({"interrupted": True}, REST_MS, False, "whoever stopped it is about to speak"),
        ({"interrupted": True}, INTERRUPTED_MS, True, ""),
        ({"prompts": (PromptSeen(number=1, ask=Ask.QUESTION, since_ms=1),)}, REST_MS, False, "a person is awaited"),
        ({"state": State.WORKING}, REST_MS, False, "something of it runs on"),
        ({"background": (Task(id="b", kind="shell"),)}, REST_MS, False, "background work"),
        ({"evidence": Evidence.RESTORED}, REST_MS, False, "a memory is no news"),
        ({"evidence": Evidence.STALE}, REST_MS, False, "silence is no end"),
        ({"turns": ()}, REST_MS, False, "no turn was seen"),
        ({"turns": (BEGUN,)}, REST_MS, False, "its last turn is open"),
    ],
)
def test_a_turn_is_over_only_when_its_pane_rests_and_nobody_is_awaited(fields, rest_ms, ended, why):
    world, name = running()
    found = due(world.dispatch(name), Sight(a_status(**(AT_REST | fields)), rest_ms=rest_ms))
    assert (found is not None and found[0] is E.TURN_ENDED) == ended, why


def test_an_attempt_that_rested_and_works_again_runs_but_never_one_whose_process_has_ended():
    world, name = running()
    world.see(name, E.TURN_ENDED)
    again = a_status(turns=(ENDED, TurnSeen(number=2, started_ms=world.now_ms + 1)))
    assert due(world.dispatch(name), Sight(again))[0] is E.TURN_SEEN
    world.see(name, E.EXIT_PROVEN)
    assert due(world.dispatch(name), Sight(again)) is None
    assert world.see(name, E.TURN_SEEN) == {}
    assert world.dispatch(name).state is S.FINISHED_UNVERIFIED


def test_a_missing_report_is_due_when_the_turn_or_process_has_ended_and_only_once():
    world, name = running()
    world.see(name, E.TURN_ENDED, detail="its turn has ended")
    assert missing(world.dispatch(name), Sight(a_status(**AT_REST))) == "its turn has ended"
    other, gone = running()
    other.see(gone, E.EXIT_PROVEN)
    assert missing(other.dispatch(gone), Sight(None, ended_ms=REST_MS - 1)) is None, "its report may be on its way in a file"
    assert missing(other.dispatch(gone), Sight(None, ended_ms=REST_MS)) is not None
    waits = a_status(state=State.WAITING, prompts=(PromptSeen(number=1, ask=Ask.PLAN, since_ms=1),))
    assert missing(world.dispatch(name), Sight(waits)) is None


def test_a_silent_host_is_lost_contact_and_whatever_it_says_brings_it_back():
    world, name = running()
    assert due(world.dispatch(name), Sight(a_status(turns=(BEGUN,)), silent_ms=HOST_SILENT_MS - 1)) is None
    assert due(world.dispatch(name), Sight(a_status(turns=(BEGUN,)), silent_ms=HOST_SILENT_MS))[0] is E.HOST_SILENT
    world.see(name, E.HOST_SILENT)
    assert due(world.dispatch(name), Sight(None, silent_ms=HOST_SILENT_MS)) is None
    world.see(name, E.HOST_BACK)
    assert world.dispatch(name).state is S.RUNNING
    early, first = attempt()
    early.see(first, E.HOST_SILENT)
    early.see(first, E.HOST_BACK)
    assert early.dispatch(first).state is S.START_UNKNOWN, "no turn had been seen"


@pytest.mark.parametrize("fields", [{"live": False}, {"state": State.GONE}])
def test_a_terminal_or_process_that_is_proven_gone_is_an_exit_and_no_failure(fields):
    world, name = running()
    event, why = due(world.dispatch(name), Sight(a_status(turns=(BEGUN,), **fields)))
    world.see(name, event, detail=why)
    assert (world.dispatch(name).state, world.task("t").state) == (S.FINISHED_UNVERIFIED, "dispatched")
    assert due(world.dispatch(name), Sight(a_status(turns=(BEGUN,), **fields))) is None


FACTS = [
    (Saw.WORKTREE_READY, "start", E.TAKEN),
    (Saw.SETUP_RUNNING, "start", E.TAKEN),
    (Saw.TERMINAL_MADE, "start", E.TERMINAL_MADE),
    (Saw.AGENT_STARTED, "start", E.AGENT_STARTED),
    (Saw.PROMPT_LEFT, "start", E.PROMPT_LEFT),
    (Saw.REFUSED, "start", E.HOST_REFUSED),
    (Saw.EXPIRED, "start", E.ORDER_EXPIRED),
    (Saw.UNKNOWN_STEP, "start", E.STEP_UNKNOWN),
    (Saw.EXITED, "start", E.EXIT_PROVEN),
    (Saw.LOST, "start", E.EXIT_PROVEN),
    (Saw.TREE_ENDED, "stop.1", E.STOP_PROVEN),
    (Saw.ALREADY_ENDED, "stop.2", E.STOP_PROVEN),
    (Saw.NOT_CONFIRMED, "stop.1", E.STOP_NOT_CONFIRMED),
    (Saw.TREE_ENDED, "release.1", E.EXIT_PROVEN),
    (Saw.REFUSED, "release.1", None),
    (Saw.TYPED, "wake.1", None),
    (Saw.HUMAN_KEY, "start", None),
]


@pytest.mark.parametrize(("saw", "step", "event"), FACTS)
def test_what_a_host_saw_means_this_for_its_attempt(saw, step, event):
    seen = of_fact(HostFact(host="h", dispatch="r.t.1", fence=1, step=step, saw=saw, at_ms=1))
    assert (None if seen is None else seen.saw) == event


# --------------------------------------------------------- orders and their ends


def test_the_order_to_start_stands_until_its_host_has_answered():
    world, name = attempt()
    (order,) = orders_of(world.run, world.now_ms)
    assert (order.dispatch, order.fence, order.step, order.host) == (name, 1, "start", "h")
    world.see(name, E.TAKEN)
    assert list(orders_of(world.run, world.now_ms)) == []


def test_a_stop_can_be_asked_again_and_each_one_is_a_step_of_its_own():
    world, name = running()
    for number in (1, 2):
        assert world.say(StopWorker(dispatch=name), COORDINATOR)["state"] == "stopping"
        assert [order.step for order in orders_of(world.run, world.now_ms)] == [f"stop.{number}"]
    world.see(name, E.STOP_NOT_CONFIRMED)
    assert world.dispatch(name).state is S.STOPPING
    world.see(name, E.STOP_PROVEN)
    assert (world.dispatch(name).state, world.task("t").state) == (S.STOPPED, "ready")


def test_a_stop_of_what_has_exited_is_done_at_once():
    world, name = running()
    world.see(name, E.EXIT_PROVEN)
    assert world.say(StopWorker(dispatch=name), COORDINATOR) == {"dispatch": name, "state": "stopped", "already_ended": True}
    assert list(orders_of(world.run, world.now_ms)) == []


def test_a_start_that_was_given_up_before_its_host_knew_of_it_is_withdrawn_while_it_could_still_begin():
    world, name = attempt()
    world.say(AbandonWorker(dispatch=name, reason="changed my mind"), COORDINATOR)
    assert [order.step for order in orders_of(world.run, world.now_ms)] == ["stop.0"]
    assert list(orders_of(world.run, world.now_ms + START_MS_MAX)) == []


def test_superseding_needs_a_reason_and_fences_the_attempt_before():
    world, name = running()
    assert world.start("t", supersede=" ").code is Code.ATTEMPT_UNSETTLED
    second = world.say(StartWorker(task="t", launch=a_launch(), supersede="it is stuck"), COORDINATOR)
    assert (second["fence"], world.dispatch(name).state, world.dispatch(name).why) == (2, S.SUPERSEDED, "it is stuck")
    assert world.beat(name).code is Code.STALE_DISPATCH


# ------------------------------------------------------------------- wedged?


@pytest.mark.parametrize(
    ("fields", "silent_ms", "quiet_ms", "activity"),
    [
        ({}, 0, 0, "working"),
        ({}, 0, QUIET_MS_MAX, "wedged"),
        ({"prompts": (PromptSeen(number=1, ask=Ask.PERMISSION, since_ms=1),)}, 0, QUIET_MS_MAX, "blocked"),
        ({"hooked": False}, 0, QUIET_MS_MAX, "unknown"),
        ({"evidence": Evidence.RESTORED}, 0, QUIET_MS_MAX, "unknown"),
        ({"state": State.DONE}, 0, QUIET_MS_MAX, "unknown"),
        ({"live": False}, 0, QUIET_MS_MAX, "unknown"),
        ({}, HOST_SILENT_MS, QUIET_MS_MAX, "unknown"),
    ],
)
def test_absence_of_signs_is_unknown_and_only_an_open_turn_that_can_be_seen_is_wedged(fields, silent_ms, quiet_ms, activity):
    world, name = running()
    assert classify(world.dispatch(name), a_status(**fields), silent_ms, NOW_MS + quiet_ms).activity == activity
    assert classify(world.dispatch(name), None, 0, NOW_MS).activity == "unknown"


def test_a_heartbeat_is_a_sign_of_life():
    world, name = running()
    world.beat(name)
    late_ms = NOW_MS + QUIET_MS_MAX
    assert classify(world.dispatch(name), a_status(), 0, late_ms).activity == "working"
