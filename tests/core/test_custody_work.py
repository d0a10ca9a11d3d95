"""What holds a settled worker: a review, a gate, an acceptance or a fix round, and for how long."""

from itertools import count

from builders import NOW_MS
from custody_builders import COORDINATOR, Desk
from tocsin.contract.custody import CustodyState
from tocsin.contract.parties import Caller, Role
from tocsin.contract.run import (
    CoordinatorBound,
    DispatchMoved,
    DispatchRequested,
    DispatchState,
    GateOpened,
    GateResolved,
    Launch,
    OnSettle,
    Placement,
    Receipt,
    RunClosed,
    RunRecorded,
    TaskAdded,
    TaskKind,
    TaskMoved,
    TaskSpec,
    TaskState,
    Verdict,
    Where,
)  # fmt: skip
from tocsin.release_accountant.core.notices import HANDING_ON
from tocsin.release_accountant.core.work import ACCEPTANCE, FIX_ROUND, Work, evolve, hold, holds, is_open, is_stranger

numbers = count()


def a_run(*events):
    """A Run with a Task `build`, done once, and what happened then."""
    return told(
        Work(),
        TaskAdded(task=TaskSpec(id="build", title="Build", spec="")),
        TaskMoved(task="build", to=TaskState.READY),
        requested(1),
        TaskMoved(task="build", to=TaskState.DISPATCHED),
        *events,
    )


def told(work, *events):
    recorded = RunRecorded(
        run="r1", request=f"q{next(numbers)}", caller=COORDINATOR, payload_hash="", events=events, receipt=Receipt(request=""), at_ms=NOW_MS
    )
    return evolve(work, recorded)


def requested(fence, task="build", pane=None):
    launch = Launch(agent="claude", host="h", placement=Placement(where=Where.EXISTING, path="/w/build"), pane=pane)
    return DispatchRequested(dispatch=f"r1.{task}.{fence}", task=task, fence=fence, launch=launch, by=COORDINATOR, brief="")


def moved(to):
    return TaskMoved(task="build", to=to)


A_REVIEW = TaskAdded(task=TaskSpec(id="check", title="Check", spec="", kind=TaskKind.REVIEW, reviews="build"))


def gate_of(work, dispatch="r1.build.1"):
    found = hold(work, dispatch)
    return found.gate if found else None


def test_reported_work_holds_its_worker_until_it_is_accepted():
    assert gate_of(a_run()) is None
    assert gate_of(a_run(moved(TaskState.REPORTED))) == ACCEPTANCE
    assert gate_of(a_run(moved(TaskState.REPORTED), moved(TaskState.ACCEPTED))) is None


def test_a_review_of_the_work_is_named_as_what_holds_it():
    assert gate_of(a_run(A_REVIEW, moved(TaskState.REPORTED))) == "check"
    ended = a_run(A_REVIEW, moved(TaskState.REPORTED), TaskMoved(task="check", to=TaskState.ACCEPTED))
    assert gate_of(ended) == ACCEPTANCE


def test_a_gate_on_the_work_is_named_as_what_holds_it():
    opened = GateOpened(gate="r1.g1", task="build", question="?", options=(), to="person", by=COORDINATOR)
    answered = GateResolved(gate="r1.g1", task="build", verdict=Verdict.ACCEPT, answer="", by=COORDINATOR)
    work = a_run(moved(TaskState.REPORTED), opened)
    assert gate_of(work) == "r1.g1"
    assert is_open(work, "r1.g1")
    assert not is_open(told(work, answered), "r1.g1")


def test_work_that_was_sent_back_keeps_its_worker_until_another_attempt_is_requested():
    sent_back = a_run(moved(TaskState.REPORTED), moved(TaskState.READY))
    assert gate_of(sent_back) == FIX_ROUND
    assert gate_of(told(sent_back, moved(TaskState.BLOCKED))) == FIX_ROUND
    assert gate_of(told(sent_back, moved(TaskState.CANCELLED))) is None
    again = told(sent_back, requested(2))
    assert gate_of(again) is None
    assert gate_of(told(again, moved(TaskState.DISPATCHED), moved(TaskState.REPORTED)), "r1.build.2") == ACCEPTANCE


def test_work_that_failed_without_a_report_holds_nobody():
    assert gate_of(a_run(moved(TaskState.READY))) is None
    assert gate_of(a_run(moved(TaskState.FAILED))) is None


def test_a_closed_run_holds_nobody():
    assert gate_of(a_run(moved(TaskState.REPORTED), RunClosed())) is None


def test_a_gate_that_somebody_has_named_holds_while_it_is_open():
    work = a_run(A_REVIEW, moved(TaskState.REPORTED), moved(TaskState.ACCEPTED))
    desk = Desk().made().asks()
    desk.retain(gate="check")
    assert desk.state.state is CustodyState.RETAINED
    assert holds(work, desk.state).gate == "check"
    assert holds(told(work, TaskMoved(task="check", to=TaskState.ACCEPTED)), desk.state) is None


def test_a_terminal_that_an_attempt_was_requested_for_is_kept_for_it_whatever_the_policy():
    work = a_run(moved(TaskState.REPORTED), moved(TaskState.READY), requested(2, pane="p1"))
    desk = Desk().made()
    held = holds(work, desk.state)
    assert (held.gate, "r1.build.2" in held.why) == (HANDING_ON, True)
    assert desk.settled(on_settle=OnSettle.RELEASE, hold=held).state.state is CustodyState.RETAINED
    failed = DispatchMoved(dispatch="r1.build.2", task="build", fence=2, to=DispatchState.FAILED, saw="refused")
    assert holds(told(work, failed), desk.state) is None


def test_the_outcome_of_an_attempt_is_known():
    settled = DispatchMoved(dispatch="r1.build.1", task="build", fence=1, to=DispatchState.FAILED, saw="exit_proven")
    assert a_run(settled).dispatches["r1.build.1"].outcome == "failed"


def test_a_worker_sees_the_custodies_of_the_run_that_it_coordinates_alone():
    worker = Caller(role=Role.WORKER, name="pane", host="h", pane="p1", dispatch="r0.plan.1", vouched=True)
    other = Caller(role=Role.WORKER, name="pane", host="h", pane="p2", dispatch="r0.plan.2", vouched=True)
    work = told(Work(), CoordinatorBound(generation=1, caller=worker))
    assert not is_stranger(work, worker)
    assert is_stranger(work, other)
    assert is_stranger(None, worker)
    assert not is_stranger(None, COORDINATOR)
