"""A decision in the making: events, and the Run as it will be when they are on record."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tocsin.contract.decision import Decision
from tocsin.contract.parties import Caller
from tocsin.contract.refusals import Refusal
from tocsin.contract.run import (
    SETTLED,
    DispatchMoved,
    DispatchState,
    RunEvents,
    RunPaused,
    TaskKind,
    TaskMoved,
    TaskState,
)
from tocsin.dispatcher.core.life import DispatchEvent, advance
from tocsin.dispatcher.core.run import Dispatch, Run, Task, apply, waits_on

FAILURES_MAX = 3
"""Attempts that fail in a row before the circuit opens."""

BLOCKERS_MAX = 20
"""Blockers named on one Task."""


class Custody(NamedTuple):
    """What the accountant holds true of an attempt's terminal. `is_open`: it still needs a disposition."""

    state: str
    is_open: bool


class Around(NamedTuple):
    """What a decision must know beside its Run."""

    now_ms: int
    host_load: int = 0  # unsettled attempts on the host of a start, over all Runs
    host_workers_max: int = 16
    circuit: str | None = None  # another Run of the same coordinator whose circuit is open
    pane_holder: str | None = None  # an unsettled attempt of another Run in the pane that is to be reused
    parent: Run | None = None  # the Run in which a new one is nested
    custody: Mapping[str, Custody] = {}


class Draft:
    """Collects events; each is applied at once, so that what is decided next sees it."""

    def __init__(self, run: Run, caller: Caller, at_ms: int) -> None:
        self.run = run
        self.caller = caller
        self.at_ms = at_ms
        self.events: list[RunEvents] = []

    def add(self, event: RunEvents) -> None:
        """One thing more that becomes true."""
        self.events.append(event)
        self.run = apply(self.run, event, self.at_ms, self.caller)

    def decided(self, result: Mapping[str, Any] | None = None, refusal: Refusal | None = None) -> Decision:
        """What was drafted, as a decision."""
        return Decision(tuple(self.events), result or {}, refusal)

    # ----------------------------------------------------------- attempts

    def move(self, dispatch: str, event: DispatchEvent, **facts: Any) -> Refusal | None:
        """Let something happen to an attempt, and to its Task as far as that follows. Refuses: lifecycle_conflict."""
        before = self.run.dispatches[dispatch]
        after = advance(before.state, event)
        if isinstance(after, Refusal):
            return after
        self.add(DispatchMoved(dispatch=dispatch, task=before.task, fence=before.fence, to=after, saw=event, **facts))
        if after in SETTLED and not before.is_settled:
            self._settled(self.run.dispatches[dispatch])
        return None

    def _settled(self, dispatch: Dispatch) -> None:
        task = self.run.tasks[dispatch.task]
        if task.current == dispatch.id and task.state is TaskState.DISPATCHED:
            match dispatch.state:
                case DispatchState.FAILED if dispatch.report is None:
                    self.release(task.id, f"{dispatch.id} did not start: {dispatch.why or dispatch.code or 'no reason given'}")
                case DispatchState.STOPPED | DispatchState.ABANDONED:
                    self.release(task.id, f"{dispatch.id} was {dispatch.state}")
        if dispatch.state is DispatchState.FAILED and self.run.failures == FAILURES_MAX:
            self.add(RunPaused(reason=f"{FAILURES_MAX} attempts in a row have failed, the last one {dispatch.id}", circuit=True))

    # -------------------------------------------------------------- Tasks

    def put(self, task: str, to: TaskState, why: str = "", **facts: Any) -> None:
        """Move a Task, and whoever waits for it."""
        self.add(TaskMoved(task=task, to=to, why=why, **facts))
        self.spread([task])

    def release(self, task: str, why: str, **facts: Any) -> None:
        """Put a Task back to where it waits or can be started: that follows from what it depends on."""
        state, reason, blocked_by = standing(self.run, self.run.tasks[task])
        self.put(task, state, reason or why, blocked_by=blocked_by, **facts)

    def spread(self, changed: Iterable[str]) -> None:
        """Find out anew where everybody stands who waits for what has changed."""
        queue = [waiter for task in changed for waiter in self.run.waiters.get(task, ())]
        while queue:
            task = self.run.tasks.get(queue.pop(0))
            if task is not None and self.settle(task):
                queue += self.run.waiters.get(task.id, ())

    def settle(self, task: Task) -> bool:
        """Move one Task to where it stands by what it waits for; True when that may move others too."""
        if task.state not in (TaskState.PENDING, TaskState.READY, TaskState.BLOCKED) or task.is_held:
            return False
        state, why, blocked_by = standing(self.run, task)
        if (state, blocked_by) == (task.state, task.blocked_by):
            return False
        self.add(TaskMoved(task=task.id, to=state, why=why, blocked_by=blocked_by))
        # Pending or ready is the same to those who wait for it; blocked is not.
        return TaskState.BLOCKED in (state, task.state)


BROKEN = frozenset({TaskState.FAILED, TaskState.CANCELLED, TaskState.UNVERIFIABLE})


def standing(run: Run, task: Task) -> tuple[TaskState, str, tuple[str, ...]]:
    """Where a Task that is not under way stands by what it waits for: state, why, and what blocks it at the root."""
    is_ready = True
    blockers: dict[str, str] = {}
    for name in waits_on(run, task.spec):
        other = run.tasks[name]
        is_reviewed = task.spec.kind is TaskKind.REVIEW and name == task.spec.reviews
        if other.state in BROKEN:
            blockers.setdefault(name, f"dependency {name} {_told(other)}")
        elif other.is_held:
            blockers.setdefault(name, f"dependency {name} is blocked: {other.why}")
        elif other.state is TaskState.BLOCKED:
            for root in other.blocked_by:
                if root in run.tasks:
                    blockers.setdefault(root, f"dependency {root} {_told(run.tasks[root])} (through {name})")
        elif not (other.state is TaskState.ACCEPTED or (is_reviewed and other.state is TaskState.REPORTED)):
            is_ready = False
    if blockers:
        roots = sorted(blockers)[:BLOCKERS_MAX]
        return TaskState.BLOCKED, "; ".join(blockers[root] for root in roots[:3]), tuple(roots)
    return (TaskState.READY if is_ready else TaskState.PENDING), "", ()


def _told(task: Task) -> str:
    match task.state:
        case TaskState.FAILED:
            return "failed"
        case TaskState.CANCELLED:
            return "was cancelled"
        case TaskState.UNVERIFIABLE:
            return "ended unverifiable"
    return f"is {task.state}"
