"""What the accountant knows of a Run: whose work is under review, what policy its Tasks have, who was started where."""

import msgspec

from tocsin.contract.parties import Caller, Role
from tocsin.contract.run import (
    SETTLED,
    TASK_ENDS,
    CoordinatorBound,
    DispatchMoved,
    DispatchRequested,
    GateOpened,
    GateResolved,
    Launch,
    OnSettle,
    RunClosed,
    RunEvents,
    RunRecorded,
    TaskAdded,
    TaskKind,
    TaskMoved,
    TaskState,
    TaskUpdated,
)
from tocsin.contract.table import Table
from tocsin.release_accountant.core.custody import Custody, S
from tocsin.release_accountant.core.notices import HANDING_ON, Hold

ACCEPTANCE = "acceptance"
"""The gate of reported work that waits for nothing but its acceptance."""

FIX_ROUND = "fix-round"
"""The gate of work that was sent back: its worker knows it best, until another attempt is requested."""


class TaskNow(msgspec.Struct, frozen=True, kw_only=True):
    """One Task. `sent_back`: it was reported, and is to be done again. `latest`: its last Dispatch."""

    state: TaskState = TaskState.PENDING
    on_settle: OnSettle | None = None
    reviewers: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()
    sent_back: bool = False
    latest: str | None = None


class DispatchNow(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt. `outcome`: None while it is not settled."""

    task: str
    fence: int
    launch: Launch
    outcome: str | None = None


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """One Run."""

    tasks: Table[str, TaskNow] = msgspec.field(default_factory=Table)
    dispatches: Table[str, DispatchNow] = msgspec.field(default_factory=Table)
    asked_for: Table[str, str] = msgspec.field(default_factory=Table)  # a live pane, and the last Dispatch that was to work in it
    coordinator: Caller | None = None
    closed: bool = False


def evolve(work: Work, recorded: RunRecorded) -> Work:
    """What is known after one record."""
    for event in recorded.events:
        work = _after(work, event)
    return work


def _after(work: Work, event: RunEvents) -> Work:
    match event:
        case TaskAdded():
            spec = event.task
            task = work.tasks.get(spec.id, TaskNow())
            work = _with_task(work, spec.id, msgspec.structs.replace(task, on_settle=spec.on_settle))
            reviewed = spec.reviews if spec.kind is TaskKind.REVIEW else None
            if reviewed is None:
                return work
            author = work.tasks.get(reviewed, TaskNow())
            return _with_task(work, reviewed, msgspec.structs.replace(author, reviewers=(*author.reviewers, spec.id)))
        case TaskUpdated():
            task = work.tasks.get(event.task.id, TaskNow())
            return _with_task(work, event.task.id, msgspec.structs.replace(task, on_settle=event.task.on_settle))
        case TaskMoved():
            task = work.tasks.get(event.task, TaskNow())
            is_over = event.to in TASK_ENDS or event.to is TaskState.REPORTED
            sent_back = not is_over and (task.sent_back or task.state is TaskState.REPORTED)
            return _with_task(work, event.task, msgspec.structs.replace(task, state=event.to, sent_back=sent_back))
        case DispatchRequested():
            dispatch = DispatchNow(task=event.task, fence=event.fence, launch=event.launch)
            task = msgspec.structs.replace(work.tasks.get(event.task, TaskNow()), latest=event.dispatch, sent_back=False)
            work = _with_task(work, event.task, task)
            if event.launch.pane is not None:
                pane = _pane(event.launch.host, event.launch.pane)
                work = msgspec.structs.replace(work, asked_for=work.asked_for.set(pane, event.dispatch))
            return msgspec.structs.replace(work, dispatches=work.dispatches.set(event.dispatch, dispatch))
        case DispatchMoved() if event.to in SETTLED and event.dispatch in work.dispatches:
            settled = msgspec.structs.replace(work.dispatches[event.dispatch], outcome=event.to.value)
            return msgspec.structs.replace(work, dispatches=work.dispatches.set(event.dispatch, settled))
        case GateOpened():
            task = work.tasks.get(event.task, TaskNow())
            return _with_task(work, event.task, msgspec.structs.replace(task, gates=(*task.gates, event.gate)))
        case GateResolved():
            task = work.tasks.get(event.task, TaskNow())
            return _with_task(work, event.task, msgspec.structs.replace(task, gates=tuple(g for g in task.gates if g != event.gate)))
        case CoordinatorBound():
            return msgspec.structs.replace(work, coordinator=event.caller)
        case RunClosed():
            return msgspec.structs.replace(work, closed=True)
        case _:
            return work


def _pane(host: str, pane: str) -> str:
    return f"{host} {pane}"


def _with_task(work: Work, task: str, now: TaskNow) -> Work:
    return msgspec.structs.replace(work, tasks=work.tasks.set(task, now))


def hold(work: Work, dispatch: str) -> Hold | None:
    """What holds the settled worker of `dispatch` by itself; None: its work needs it no longer.

    Reported work is under review until it has its verdict: by a review Task, a gate, or whoever accepts it. Work that was
    sent back keeps its worker, who knows it best, until another attempt is requested.
    """
    known = work.dispatches.get(dispatch)
    task = work.tasks.get(known.task) if known else None
    if known is None or task is None or work.closed or task.latest != dispatch:
        return None
    if task.sent_back:
        return Hold(gate=FIX_ROUND, why=f"its work was sent back: a fix round of {known.task} is due")
    if task.state is not TaskState.REPORTED:
        return None
    reviewer = next((one for one in task.reviewers if not _ended(work, one)), None)
    if reviewer is not None:
        return Hold(gate=reviewer, why=f"the review {reviewer} of its work is open")
    if task.gates:
        return Hold(gate=task.gates[0], why=f"the gate {task.gates[0]} on its work is open")
    return Hold(gate=ACCEPTANCE, why=f"its work on {known.task} is not accepted yet")


def _ended(work: Work, task: str) -> bool:
    return task in work.tasks and work.tasks[task].state in TASK_ENDS


def is_open(work: Work, gate: str) -> bool:
    """True for a review Task or gate of the Run that has no verdict yet."""
    if work.closed:
        return False
    is_review = any(gate in task.reviewers for task in work.tasks.values()) and not _ended(work, gate)
    return is_review or any(gate in task.gates for task in work.tasks.values())


def holds(work: Work, custody: Custody) -> Hold | None:
    """What holds a worker now: an attempt that is to work in its terminal, the gate that somebody has named while that is open,
    else what holds it by itself.
    """
    if custody.terminal is not None:
        later = work.asked_for.get(_pane(custody.host or "", custody.terminal.pane))
        if later is not None and later != custody.id and work.dispatches[later].outcome is None:
            return Hold(gate=HANDING_ON, why=f"{later} is to work in its terminal")
    is_named = custody.state is S.RETAINED and custody.gate is not None and custody.by.role is not Role.SERVICE
    if is_named and custody.gate is not None and is_open(work, custody.gate):
        return Hold(gate=custody.gate, why=custody.why)
    return hold(work, custody.id)


def is_stranger(work: Work | None, caller: Caller) -> bool:
    """True for a worker who does not coordinate this Run: to them it is not there."""
    if caller.role is not Role.WORKER:
        return False
    owner = work.coordinator if work else None
    return owner is None or (owner.host, owner.pane, owner.dispatch) != (caller.host, caller.pane, caller.dispatch)
