"""Cases from the field, each under its id: what happened to people, and what happens here."""

from builders import NOW_MS, a_status
from dispatcher_builders import AUTO, COORDINATOR, PERSON, World, a_launch, a_spec, worker
from tocsin.contract.messages import TurnSeen
from tocsin.contract.refusals import Code
from tocsin.contract.run import (
    AddTasks,
    CancelTask,
    PauseRun,
    ReopenTask,
    ReportRefused,
    StopWorker,
    TaskMoved,
    TaskState,
    UpdateTask,
    WorkReady,
    WorkReported,
)
from tocsin.dispatcher.core.draft import Draft
from tocsin.dispatcher.core.fleet import Seen, worker_row
from tocsin.dispatcher.core.life import DispatchEvent as E
from tocsin.dispatcher.core.observe import tell_ready
from tocsin.dispatcher.core.rows import run_row
from tocsin.dispatcher.core.watch import READY_MS_MAX, Sight, due

NOTHING = Seen(None, 0, None)


def test_a10_an_agent_that_died_is_neither_a_success_nor_retried_and_a_silent_one_has_not_failed():
    world = World(a_spec("T1", accept=AUTO), a_spec("T2", accept=AUTO))
    died, silent = world.begin("T1"), world.begin("T2")
    world.see(died, E.EXIT_PROVEN)
    row = worker_row(world.run, world.dispatch(died), NOTHING, world.now_ms)
    assert (row["state"], row["outcome"], row["requires_action"]) == ("finished_unverified", "finished_unverified", True)
    assert world.start("T1").code is Code.ATTEMPT_UNSETTLED, "nothing takes its place by itself"
    world.see(silent, E.HOST_SILENT)
    row = worker_row(world.run, world.dispatch(silent), NOTHING, world.now_ms)
    assert (row["state"], row["outcome"], row["liveness"]) == ("contact_lost", "outcome_unknown", "unverifiable")
    assert world.start("T2").code is Code.ATTEMPT_UNSETTLED
    assert world.states() == {"T1": "dispatched", "T2": "dispatched"}
    # Whoever decides can: it is settled as what it was, and tried again.
    assert world.say(StopWorker(dispatch=died), COORDINATOR)["state"] == "stopped"
    assert world.start("T1", retry_of=died)["fence"] == 2


def test_e01_each_attempt_shows_the_age_of_its_last_accepted_beat_and_a_rejected_one_refreshes_none():
    names = [f"t{number}" for number in range(1, 6)]
    world = World(*map(a_spec, names))
    attempts = {name: world.begin(name) for name in names}
    at_ms = {}
    for name in names:
        world.beat(attempts[name])
        at_ms[name] = world.now_ms
    refused = world.beat(attempts["t2"], caller=worker("elsewhere", "P9"), dispatch=attempts["t2"])
    assert refused.code is Code.SENDER_NOT_ASSIGNEE
    assert [event.what for event in world.events(ReportRefused)] == ["beat"], "which is mail; the accepted ones are none"
    for name in names:
        row = worker_row(world.run, world.dispatch(attempts[name]), NOTHING, world.now_ms)
        assert row["heartbeat_ms"] == world.now_ms - at_ms[name]


def test_f01_a_report_before_readiness_counts_and_the_late_readiness_failure_changes_nothing():
    world = World(a_spec("T1", accept=AUTO), a_spec("T2", "T1"))
    attempt = world.start("T1")["dispatch"]
    world.see(attempt, E.TERMINAL_MADE, pane="P1")
    told = world.report(attempt)
    assert told == {"dispatch": attempt, "task": "T1", "outcome": "succeeded", "task_state": "accepted", "current": attempt}
    before = world.run
    assert world.see(attempt, E.TURN_NOT_SEEN) == {}
    assert world.run is before
    assert world.states() == {"T1": "accepted", "T2": "ready"}
    row = worker_row(world.run, world.dispatch(attempt), Seen(None, 0, None), NOW_MS)
    assert (row["outcome"], row["report"]["outcome"]) == ("succeeded", "succeeded"), "the start is settled by the worker's report"


def test_f02_a_report_of_the_wrong_sender_is_refused_aloud_and_a_repeat_is_a_success():
    world = World(a_spec("T1"))
    older = world.begin("T1", a_launch(pane="P2"))
    world.see(older, E.EXIT_PROVEN)
    world.say(StopWorker(dispatch=older), COORDINATOR)
    attempt = world.begin("T1", a_launch(pane="P2"))
    stranger = worker("elsewhere", "P9")
    refused = world.report(attempt, caller=stranger, dispatch=attempt)
    assert refused.code is Code.SENDER_NOT_ASSIGNEE
    assert world.states() == {"T1": "dispatched"}
    world.report(attempt, caller=stranger, dispatch=attempt)
    assert len(world.events(ReportRefused)) == 1, "the coordinator sees one alert"

    stale = world.report(older, caller=worker(attempt, "P2"), dispatch=older)
    assert stale.code is Code.STALE_DISPATCH
    assert attempt in stale.message
    assert world.states() == {"T1": "dispatched"}

    assert world.report(attempt)["task_state"] == "reported"
    recorded = len(world.records)
    again = world.report(attempt)
    assert again["outcome"] == "succeeded"
    assert len(world.records) == recorded, "no second message, no second wake"

    contradiction = world.report(attempt, "failed")
    assert contradiction.code is Code.LIFECYCLE_CONFLICT
    assert world.states() == {"T1": "reported"}
    assert [event.code for event in world.events(ReportRefused)] == ["sender_not_assignee", "lifecycle_conflict"]


def test_f04_a_brief_whose_enter_was_lost_is_unknown_and_nothing_is_put_behind_it():
    world = World(a_spec("T1"), a_spec("T2"))
    attempt = world.start("T1", a_launch(pane="P2"))["dispatch"]
    world.see(attempt, E.PROMPT_WRITTEN, pane="P2")
    event, _ = due(world.dispatch(attempt), Sight(a_status(pane="P2", turns=()), text="hash", waited_ms=READY_MS_MAX))
    world.see(attempt, event)
    assert world.dispatch(attempt).state == "start_unknown"

    refused = world.start("T2", a_launch(pane="P2"))
    assert refused.code is Code.COMPOSER_BUSY
    assert attempt in refused.message

    pressed = a_status(pane="P2", turns=(TurnSeen(number=4, started_ms=NOW_MS, prompt="hash"),))
    event, _ = due(world.dispatch(attempt), Sight(pressed, text="hash", waited_ms=READY_MS_MAX))
    world.see(attempt, event)
    assert world.dispatch(attempt).state == "running", "the late start is matched to its attempt"


def test_f06_a_slow_start_keeps_its_authority_and_a_superseded_report_is_kept_and_changes_nothing():
    world = World(a_spec("T1", accept=AUTO), a_spec("T9", accept=AUTO))
    slow = world.start("T1")["dispatch"]
    world.see(slow, E.AGENT_STARTED, pane="P4")
    world.see(slow, E.TURN_NOT_SEEN)
    assert world.dispatch(slow).state == "start_unknown"
    assert world.start("T1").code is Code.ATTEMPT_UNSETTLED, "nothing takes its place by itself"
    turn = a_status(pane="P4", turns=(TurnSeen(number=1, started_ms=NOW_MS),))
    event, _ = due(world.dispatch(slow), Sight(turn))
    world.see(slow, event)
    assert world.dispatch(slow).state == "running"
    assert world.report(slow)["task_state"] == "accepted"

    first = world.start("T9")["dispatch"]
    world.see(first, E.AGENT_STARTED, pane="P5")
    world.see(first, E.TURN_NOT_SEEN)
    second = world.start("T9", supersede="it does not boot")["dispatch"]
    late = world.report(first)
    assert late.code is Code.STALE_DISPATCH
    assert second in late.message
    assert world.states()["T9"] == "dispatched"
    assert not world.dispatch(second).is_settled
    kept = world.events(WorkReported)[-1]
    assert (kept.dispatch, kept.late, kept.current) == (first, True, second)


def test_f07_of_eight_claims_one_starts_and_the_others_are_told_who_holds_it():
    world = World(a_spec("T1"))
    answers = [world.start("T1") for _ in range(8)]
    assert isinstance(answers[0], dict)
    assert {(refusal.code, answers[0]["dispatch"] in refusal.message) for refusal in answers[1:]} == {(Code.ATTEMPT_UNSETTLED, True)}
    assert len(world.run.dispatches) == 1


def test_g01_a_failed_dependency_blocks_by_name_and_clears_by_itself():
    world = World(a_spec("T1", accept=AUTO), a_spec("T2", "T1"), a_spec("T3", "T2"), a_spec("T4", accept=AUTO))
    failing, other = world.begin("T1"), world.begin("T4")
    world.report(failing, "failed")
    assert world.states() == {"T1": "failed", "T2": "blocked", "T3": "blocked", "T4": "dispatched"}
    assert world.task("T2").why == "dependency T1 failed"
    assert world.task("T3").why == "dependency T1 failed (through T2)"
    blocked = [event.task for event in world.records[-1].events if isinstance(event, TaskMoved) and event.to is TaskState.BLOCKED]
    assert blocked == ["T2", "T3"], "one record names both"

    world.report(other)
    assert run_row(world.run)["summary"] == "quiet, nothing is under way: 1 accepted, 1 failed, 2 blocked"
    refused = world.start("T2")
    assert (refused.code, "dependency T1 failed" in refused.message) == (Code.TASK_NOT_STARTABLE, True)

    world.say(ReopenTask(task="T1", reason="try again"), COORDINATOR)
    assert world.states()["T2"] == "pending"
    world.done("T1")
    assert world.states() == {"T1": "accepted", "T2": "ready", "T3": "pending", "T4": "accepted"}
    world.check()


def test_g02_a_late_task_on_a_finished_parent_is_ready_at_once():
    world = World(a_spec("T1", accept=AUTO), a_spec("T8", accept=AUTO), a_spec("T7", accept=AUTO))
    world.done("T1")
    world.done("T8", "failed")
    seventh = world.begin("T7")
    assert world.add(a_spec("T2", "T1"))["tasks"] == [{"task": "T2", "state": "ready", "blocked_by": []}]
    assert world.add(a_spec("T3", "T1", "T2"))["tasks"][0]["state"] == "pending"
    assert world.add(a_spec("T4", "T8"))["tasks"] == [{"task": "T4", "state": "blocked", "blocked_by": ["T8"]}]
    assert world.add(a_spec("T5", "T999")).code is Code.NOT_FOUND
    assert "T5" not in world.run.tasks
    # Whichever comes first.
    earlier, later = a_spec("T6", "T7"), a_spec("T6b", "T7")
    world.add(earlier)
    world.report(seventh)
    world.add(later)
    assert (world.states()["T6"], world.states()["T6b"]) == ("ready", "ready")
    world.check()


def test_g03_a_ring_cannot_be_stored_on_any_way_in():
    world = World()
    world.add(a_spec("A"), a_spec("B", "A"))
    before = world.run
    ring = world.say(UpdateTask(task="A", deps=("B",)), COORDINATOR)
    assert (ring.code, "A -> B -> A" in ring.message) == (Code.RING, True)
    itself = world.add(a_spec("D", "D"))
    assert (itself.code, "D -> D" in itself.message) == (Code.RING, True)
    world.add(a_spec("X", "B"))
    ring = world.say(UpdateTask(task="A", deps=("X",)), COORDINATOR)
    assert (ring.code, "A -> X -> B -> A" in ring.message) == (Code.RING, True)
    # Mixed kinds of edges: a parent waits for its children, and a child depends on it.
    for family in (
        (a_spec("P", "K1", "K2"), a_spec("K1", "P"), a_spec("K2")),
        (a_spec("P"), a_spec("K1", "P", parent="P"), a_spec("K2", parent="P")),
        (a_spec("P", "K2"), a_spec("K1", parent="P"), a_spec("K2", "P")),
    ):
        assert world.say(AddTasks(tasks=family), COORDINATOR).code is Code.RING
    assert world.add(a_spec("E", "F"), a_spec("F", "E")).code is Code.RING
    assert set(world.run.tasks) == {"A", "B", "X"}
    assert list(world.run.ready) == ["A"]
    assert world.run.tasks["A"] == before.tasks["A"]
    world.check()


def test_g06_ready_work_with_nothing_under_way_is_told_once_for_each_set():
    world = World(a_spec("T1"))

    def told() -> list[tuple[str, ...]]:
        world.record(tell_ready(Draft(world.run, COORDINATOR, world.now_ms)))
        return [event.tasks for event in world.events(WorkReady)]

    attempt = world.begin("T1")
    assert told() == [], "not while an attempt is active"
    world.see(attempt, E.EXIT_PROVEN)
    world.say(StopWorker(dispatch=attempt), COORDINATOR)
    assert world.states() == {"T1": "ready"}
    assert told() == [("T1",)]
    assert told() == [("T1",)], "not repeated for the same set"
    world.add(a_spec("T5"))
    assert told() == [("T1",), ("T1", "T5")]
    world.say(PauseRun(reason="lunch"), PERSON)
    world.say(CancelTask(task="T5", reason="not now"), PERSON)
    assert len(told()) == 2, "nothing while paused"
    world.check()
