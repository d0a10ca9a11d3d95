"""The state of one Run, and what each event makes of it. Only what is recorded changes it."""

from collections.abc import Iterable

import msgspec

from tocsin.contract.ids import PaneId
from tocsin.contract.messages import Part, Process
from tocsin.contract.parties import Caller
from tocsin.contract.run import (
    SETTLED,
    Beaten,
    CoordinatorBound,
    DispatchMoved,
    DispatchRequested,
    DispatchState,
    GateOpened,
    GateResolved,
    Launch,
    Outcome,
    Report,
    ReportMissing,
    ReportRefused,
    Restored,
    RunClosed,
    RunCreated,
    RunEvents,
    RunPaused,
    RunPurged,
    RunRecorded,
    RunResumed,
    TaskAdded,
    TaskKind,
    TaskMoved,
    TaskSpec,
    TaskState,
    TaskUpdated,
    Verdict,
    VerdictGiven,
    WorkReady,
    WorkReported,
)
from tocsin.contract.table import Table
from tocsin.dispatcher.core.life import DispatchEvent
from tocsin.dispatcher.core.numbers import with_number, without_number

LATE_MAX = 8
"""Late reports kept with an attempt; the log has them all."""

REFUSED_MAX = 16
"""Refused reports and beats kept with an attempt."""

VERDICTS_MAX = 32

Names = Table[str, bool]
"""A set of ids."""


class Judged(Part, frozen=True, kw_only=True):
    """A verdict on one round of a Task. `review`: the review Task, gate or caller that gave it."""

    review: str
    round: int
    verdict: Verdict
    findings: str
    commit: str | None
    by: Caller
    at_ms: int


class Task(Part, frozen=True, kw_only=True):
    """A wanted outcome. `number` grows in the order in which Tasks were added."""

    spec: TaskSpec
    number: int
    state: TaskState = TaskState.PENDING
    why: str = ""
    blocked_by: tuple[str, ...] = ()
    round: int = 1
    findings: str | None = None  # of the last verdict that sent it back, or why it was reopened
    attempts: int = 0  # the fence of the newest one
    current: str | None = None  # the newest attempt, settled or not
    reported: str | None = None  # the attempt whose report stands in this round
    gate: str | None = None  # the gate that is open on it
    verdicts: tuple[Judged, ...] = ()
    updated_ms: int = 0

    @property
    def id(self) -> str:
        """Unique in its Run."""
        return self.spec.id

    @property
    def is_held(self) -> bool:
        """Blocked by something of its own, not by what it depends on."""
        return self.state is TaskState.BLOCKED and self.blocked_by[:1] != () and self.blocked_by[0].startswith(OWN)


OWN = ("gate:", "rounds:")
"""How a Task's own blockers are told from ids of Tasks, which hold no colon."""


class RefusedSaid(Part, frozen=True, kw_only=True):
    """Something an attempt, or somebody in its name, said that did not count."""

    what: str
    code: str
    why: str
    at_ms: int
    outcome: str | None = None


class Dispatch(Part, frozen=True, kw_only=True):
    """One attempt at a Task by one worker."""

    id: str
    task: str
    fence: int
    number: int  # grows with each attempt of the Run
    state: DispatchState
    launch: Launch
    by: Caller
    brief: str
    round: int
    requested_ms: int
    since_ms: int
    retry_of: str | None = None
    settled_ms: int | None = None
    touched: bool = False  # its host has answered
    in_setup: bool = False
    pane: PaneId | None = None
    processes: tuple[Process, ...] = ()  # of its terminal and of its agent
    path: str | None = None
    await_turn_ms: int | None = None  # since when a turn start is awaited: setup is over and the prompt is with the agent
    is_written: bool = False  # its text was put into a live pane
    turn_seen_ms: int | None = None
    exited: bool = False
    why: str = ""
    code: str | None = None
    beat_ms: int | None = None
    phase: str = ""
    report: Report | None = None
    late: tuple[Report, ...] = ()
    missing_told: bool = False
    refused: tuple[RefusedSaid, ...] = ()
    stops: int = 0

    @property
    def is_settled(self) -> bool:
        """It has its outcome."""
        return self.state in SETTLED

    @property
    def is_reuse(self) -> bool:
        """It was put into a pane that lived before."""
        return self.launch.pane is not None


def gate_id(run: str, number: int) -> str:
    """The id of the Run's gate of that number, of which the first is 1."""
    return f"{run}.g{number}"


class Gate(Part, frozen=True, kw_only=True):
    """A question on a Task. `round`: the round of the Task that it decides, None when it is only a question."""

    id: str
    task: str
    question: str
    options: tuple[str, ...]
    to: str
    by: Caller
    opened_ms: int
    round: int | None = None
    verdict: Verdict | None = None
    answer: str = ""
    resolved_by: Caller | None = None
    resolved_ms: int | None = None


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A coordinator's namespace. `generation` 0: nothing is recorded of it."""

    id: str
    objective: str = ""
    workers_max: int = 8
    depth: int = 0
    depth_max: int = 1
    parent: str | None = None
    coordinator: Caller | None = None
    generation: int = 0
    paused: str | None = None  # the reason
    circuit_ms: int | None = None  # since when three failures in a row keep it from starting anything
    failures: int = 0  # in a row
    closed: bool = False
    closed_why: str = ""
    purged: bool = False
    restored: bool = False
    created_ms: int = 0
    updated_ms: int = 0
    added: int = 0
    started: int = 0
    asked: int = 0
    ready_told: tuple[str, ...] = ()
    tasks: Table[str, Task] = msgspec.field(default_factory=Table)
    dispatches: Table[str, Dispatch] = msgspec.field(default_factory=Table)
    gates: Table[str, Gate] = msgspec.field(default_factory=Table)
    # What follows from the tables above.
    numbered: Table[int, str] = msgspec.field(default_factory=Table)  # Tasks by number
    in_state: Table[str, int] = msgspec.field(default_factory=Table)  # by state: the numbers of its Tasks, see numbers.py
    attempted: Table[int, str] = msgspec.field(default_factory=Table)  # attempts by number
    failed: Names = msgspec.field(default_factory=Table)  # attempts that failed
    ready: Names = msgspec.field(default_factory=Table)
    unsettled: Names = msgspec.field(default_factory=Table)
    withdrawn: Names = msgspec.field(default_factory=Table)  # attempts given up of which their host has told nothing
    open_gates: Names = msgspec.field(default_factory=Table)
    waiters: Table[str, Names] = msgspec.field(default_factory=Table)  # by Task: who waits for it
    children: Table[str, Names] = msgspec.field(default_factory=Table)  # by Task: Tasks that name it as parent
    reviews: Table[str, Names] = msgspec.field(default_factory=Table)  # by Task: review Tasks of it
    panes: Table[str, str] = msgspec.field(default_factory=Table)  # by host and pane: the newest attempt there

    @property
    def is_known(self) -> bool:
        """Something is recorded of it, and it was not purged."""
        return self.generation > 0 and not self.purged

    def count(self, state: TaskState) -> int:
        """How many Tasks are in a state."""
        return self.in_state.get(state, 0).bit_count()


DERIVED = (
    "numbered", "in_state", "attempted", "failed", "ready", "unsettled", "withdrawn", "open_gates", "waiters", "children", "reviews", "panes",
)  # fmt: skip


def blank(run: str) -> Run:
    """A Run of which nothing is recorded."""
    return Run(id=run)


def evolve(run: Run, recorded: RunRecorded) -> Run:
    """The Run after one record."""
    for event in recorded.events:
        run = apply(run, event, recorded.at_ms, recorded.caller)
    return run


def apply(run: Run, event: RunEvents, at_ms: int, caller: Caller) -> Run:
    """The Run after one event. Refuses nothing: what is recorded is true."""
    run = msgspec.structs.replace(run, updated_ms=max(run.updated_ms, at_ms))
    match event:
        case RunCreated():
            return msgspec.structs.replace(
                run, objective=event.objective, workers_max=event.workers_max, depth=event.depth, depth_max=event.depth_max,
                parent=event.parent, created_ms=at_ms,
            )  # fmt: skip
        case CoordinatorBound():
            return msgspec.structs.replace(run, coordinator=event.caller, generation=event.generation)
        case RunPaused():
            return msgspec.structs.replace(run, paused=event.reason, circuit_ms=at_ms if event.circuit else run.circuit_ms)
        case RunResumed():
            return msgspec.structs.replace(run, paused=None, circuit_ms=None, failures=0)
        case RunClosed():
            return msgspec.structs.replace(run, closed=True, closed_why=event.forced or "")
        case RunPurged():
            return Run(id=run.id, generation=run.generation, purged=True, updated_ms=run.updated_ms)
        case TaskAdded() | TaskUpdated() | TaskMoved():
            return _apply_to_task(run, event, at_ms)
        case DispatchRequested():
            return _requested(run, event, at_ms)
        case DispatchMoved():
            return _moved(run, event, at_ms)
        case WorkReported() | ReportRefused() | Beaten() | ReportMissing():
            return _said(run, event, at_ms)
        case GateOpened() | GateResolved() | VerdictGiven():
            return _judged(run, event, at_ms)
        case WorkReady():
            return msgspec.structs.replace(run, ready_told=event.tasks)
        case Restored():
            return run


def _apply_to_task(run: Run, event: TaskAdded | TaskUpdated | TaskMoved, at_ms: int) -> Run:
    if isinstance(event, TaskAdded):
        task = Task(spec=event.task, number=run.added + 1, updated_ms=at_ms)
        return put_task(link(msgspec.structs.replace(run, added=run.added + 1), event.task), task)
    if isinstance(event, TaskUpdated):
        task = run.tasks[event.task.id]
        run = link(unlink(run, task.spec), event.task)
        return put_task(run, msgspec.structs.replace(task, spec=event.task, updated_ms=at_ms))
    task = run.tasks[event.task]
    return put_task(
        run,
        msgspec.structs.replace(
            task, state=event.to, why=event.why, blocked_by=event.blocked_by, updated_ms=at_ms,
            round=task.round if event.round is None else event.round,
            findings=task.findings if event.findings is None else event.findings,
            # A report stands until the Task goes back to where it can be started.
            reported=None if event.to in (TaskState.PENDING, TaskState.READY, TaskState.DISPATCHED) else task.reported,
        ),
    )  # fmt: skip


def _requested(run: Run, event: DispatchRequested, at_ms: int) -> Run:
    task = run.tasks[event.task]
    target = run.tasks.get(task.spec.reviews or "")
    dispatch = Dispatch(
        id=event.dispatch, task=event.task, fence=event.fence, number=run.started + 1, state=DispatchState.REQUESTED,
        launch=event.launch, by=event.by, brief=event.brief, retry_of=event.retry_of, requested_ms=at_ms, since_ms=at_ms,
        # A reviewer's attempt belongs to the round that it judges.
        round=target.round if target is not None else task.round,
        pane=event.launch.pane,
    )  # fmt: skip
    run = put_task(run, msgspec.structs.replace(task, attempts=event.fence, current=event.dispatch, updated_ms=at_ms))
    return put_dispatch(msgspec.structs.replace(run, started=run.started + 1), dispatch)


def _moved(run: Run, event: DispatchMoved, at_ms: int) -> Run:
    dispatch = run.dispatches[event.dispatch]
    processes = dispatch.processes
    if event.process is not None and event.process not in processes:
        processes = (*processes, event.process)
    changed = msgspec.structs.replace(
        dispatch, state=event.to, why=event.why or (dispatch.why if event.to is dispatch.state else ""),
        code=event.code or (dispatch.code if event.to is dispatch.state else None),
        since_ms=at_ms if event.to is not dispatch.state else dispatch.since_ms,
        settled_ms=at_ms if event.to in SETTLED and not dispatch.is_settled else dispatch.settled_ms,
        pane=event.pane or dispatch.pane, path=event.path or dispatch.path, processes=processes,
    )  # fmt: skip
    match event.saw:
        case DispatchEvent.TAKEN:
            changed = msgspec.structs.replace(changed, touched=True, in_setup=True)
        case DispatchEvent.SETUP_ENDED:
            changed = msgspec.structs.replace(changed, touched=True, in_setup=False)
        case DispatchEvent.TERMINAL_MADE | DispatchEvent.AGENT_STARTED:
            # Setup is over by then. A live pane has its agent already: there the text is what is waited for.
            since_ms = dispatch.await_turn_ms if dispatch.is_reuse else at_ms
            changed = msgspec.structs.replace(changed, touched=True, in_setup=False, await_turn_ms=since_ms)
        case DispatchEvent.PROMPT_WRITTEN:
            changed = msgspec.structs.replace(changed, touched=True, in_setup=False, await_turn_ms=at_ms, is_written=True)
        case DispatchEvent.TURN_SEEN:
            changed = msgspec.structs.replace(changed, touched=True, turn_seen_ms=dispatch.turn_seen_ms or at_ms)
        case DispatchEvent.EXIT_PROVEN:
            changed = msgspec.structs.replace(changed, touched=True, exited=True)
        case DispatchEvent.STOP_ASKED:
            changed = msgspec.structs.replace(changed, stops=dispatch.stops + 1)
        case DispatchEvent.OUTCOME_SUCCEEDED:
            run = msgspec.structs.replace(run, failures=0)
    if event.to is DispatchState.FAILED and dispatch.state is not DispatchState.FAILED:
        run = msgspec.structs.replace(run, failures=run.failures + 1)
    return put_dispatch(run, changed)


def _said(run: Run, event: WorkReported | ReportRefused | Beaten | ReportMissing, at_ms: int) -> Run:
    dispatch = run.dispatches.get(event.dispatch or "")
    if dispatch is None:
        return run
    match event:
        case WorkReported(late=True):
            return put_dispatch(run, msgspec.structs.replace(dispatch, late=(*dispatch.late, event.report)[-LATE_MAX:]))
        case WorkReported():
            run = put_dispatch(run, msgspec.structs.replace(dispatch, report=event.report))
            return put_task(run, msgspec.structs.replace(run.tasks[event.task], reported=event.dispatch, updated_ms=at_ms))
        case ReportRefused():
            outcome = event.report.outcome if event.report is not None else None
            said = RefusedSaid(what=event.what, code=event.code, why=event.why, at_ms=at_ms, outcome=outcome)
            return put_dispatch(run, msgspec.structs.replace(dispatch, refused=(*dispatch.refused, said)[-REFUSED_MAX:]))
        case Beaten():
            return put_dispatch(run, msgspec.structs.replace(dispatch, beat_ms=event.at_ms, phase=event.phase))
        case ReportMissing():
            return put_dispatch(run, msgspec.structs.replace(dispatch, missing_told=True))


def _judged(run: Run, event: GateOpened | GateResolved | VerdictGiven, at_ms: int) -> Run:
    task = run.tasks[event.task]
    if isinstance(event, GateOpened):
        gate = Gate(
            id=event.gate, task=event.task, question=event.question, options=event.options, to=event.to, by=event.by,
            opened_ms=at_ms, round=task.round if task.state is TaskState.REPORTED else None,
        )  # fmt: skip
        run = msgspec.structs.replace(run, asked=run.asked + 1)
        return put_gate(put_task(run, msgspec.structs.replace(task, gate=event.gate)), gate)
    if isinstance(event, GateResolved):
        gate = msgspec.structs.replace(
            run.gates[event.gate], verdict=event.verdict, answer=event.answer, resolved_by=event.by, resolved_ms=at_ms
        )
        judged = Judged(
            review=event.gate, round=task.round, verdict=event.verdict, findings=event.answer, commit=None, by=event.by, at_ms=at_ms
        )
        still = None if task.gate == event.gate else task.gate
        return put_gate(put_task(run, msgspec.structs.replace(task, gate=still, verdicts=_kept(task, judged))), gate)
    judged = Judged(
        review=event.review, round=task.round, verdict=event.verdict, findings=event.findings, commit=event.commit, by=event.by, at_ms=at_ms
    )
    run = put_task(run, msgspec.structs.replace(task, verdicts=_kept(task, judged)))
    review = run.tasks.get(event.review)
    attempt = run.dispatches.get(review.current or "") if review is not None else None
    if review is None or attempt is None:
        return run
    # A verdict is its worker's report as well.
    body = f"{event.verdict}: {event.findings}" if event.findings else event.verdict.value
    said = Report(outcome=Outcome.SUCCEEDED, body=body, commit=event.commit)
    run = put_task(run, msgspec.structs.replace(review, reported=attempt.id, updated_ms=at_ms))
    return put_dispatch(run, msgspec.structs.replace(attempt, report=said))


def _kept(task: Task, judged: Judged) -> tuple[Judged, ...]:
    return (*task.verdicts, judged)[-VERDICTS_MAX:]


# ------------------------------------------------------------ what follows from what


def place(host: str, pane: str) -> str:
    """The key of `Run.panes`."""
    return f"{host}/{pane}"


def put_task(run: Run, task: Task) -> Run:
    """The Run with a Task as it is now, and what follows from its state."""
    before = run.tasks.get(task.id)
    numbered, in_state, ready = run.numbered, run.in_state, run.ready
    if before is None:
        numbered = numbered.set(task.number, task.id)
    if before is None or before.state is not task.state:
        if before is not None:
            in_state = in_state.set(before.state, without_number(in_state[before.state], task.number))
        in_state = in_state.set(task.state, with_number(in_state.get(task.state, 0), task.number))
        ready = ready.set(task.id, True) if task.state is TaskState.READY else ready.delete(task.id)
    return msgspec.structs.replace(run, tasks=run.tasks.set(task.id, task), numbered=numbered, in_state=in_state, ready=ready)


def put_dispatch(run: Run, dispatch: Dispatch) -> Run:
    """The Run with an attempt as it is now."""
    unsettled = run.unsettled.delete(dispatch.id) if dispatch.is_settled else run.unsettled.set(dispatch.id, True)
    withdrawn = run.withdrawn
    if dispatch.state in (DispatchState.SUPERSEDED, DispatchState.ABANDONED) and not dispatch.touched:
        withdrawn = withdrawn.set(dispatch.id, True)
    panes = run.panes
    if dispatch.pane is not None:
        key = place(dispatch.launch.host, dispatch.pane)
        there = run.dispatches.get(panes.get(key, ""))
        if there is None or there.number <= dispatch.number:
            panes = panes.set(key, dispatch.id)
    is_failed = dispatch.state is DispatchState.FAILED
    return msgspec.structs.replace(
        run, dispatches=run.dispatches.set(dispatch.id, dispatch), attempted=run.attempted.set(dispatch.number, dispatch.id),
        failed=run.failed.set(dispatch.id, True) if is_failed else run.failed.delete(dispatch.id),
        unsettled=unsettled, withdrawn=withdrawn, panes=panes,
    )  # fmt: skip


def put_gate(run: Run, gate: Gate) -> Run:
    """The Run with a gate as it is now."""
    is_open = gate.verdict is None
    open_gates = run.open_gates.set(gate.id, True) if is_open else run.open_gates.delete(gate.id)
    return msgspec.structs.replace(run, gates=run.gates.set(gate.id, gate), open_gates=open_gates)


def waits_on(run: Run, spec: TaskSpec) -> Iterable[str]:
    """The Tasks that a Task waits for: its dependencies, its children, and what it reviews."""
    yield from spec.deps
    yield from run.children.get(spec.id, ())
    if spec.kind is TaskKind.REVIEW and spec.reviews is not None and spec.reviews not in spec.deps:
        yield spec.reviews


def link(run: Run, spec: TaskSpec) -> Run:
    """The Run with a Task's edges."""
    waiters, children, reviews = run.waiters, run.children, run.reviews
    for dep in spec.deps:
        waiters = _with(waiters, dep, spec.id)
    if spec.parent is not None:
        children = _with(children, spec.parent, spec.id)
        waiters = _with(waiters, spec.id, spec.parent)
    if spec.reviews is not None:
        reviews = _with(reviews, spec.reviews, spec.id)
        waiters = _with(waiters, spec.reviews, spec.id)
    return msgspec.structs.replace(run, waiters=waiters, children=children, reviews=reviews)


def unlink(run: Run, spec: TaskSpec) -> Run:
    """The Run without a Task's edges to its dependencies; the others never change, and the same edge may be there twice."""
    waiters = run.waiters
    for dep in spec.deps:
        if dep != spec.reviews and dep not in run.children.get(spec.id, ()):
            left = waiters.get(dep, Names()).delete(spec.id)
            waiters = waiters.set(dep, left) if left else waiters.delete(dep)
    return msgspec.structs.replace(run, waiters=waiters)


def _with(index: Table[str, Names], key: str, name: str) -> Table[str, Names]:
    return index.set(key, index.get(key, Names()).set(name, True))


def derive(run: Run) -> Run:
    """The Run with everything that follows from its Tasks, attempts and gates."""
    run = msgspec.structs.replace(run, **{name: Table() for name in DERIVED})
    in_state: dict[str, int] = {}
    for task in sorted(run.tasks.values(), key=lambda task: task.number):
        run = link(run, task.spec)
        in_state[task.state] = with_number(in_state.get(task.state, 0), task.number)
    numbered = {task.number: task.id for task in run.tasks.values()}
    ready = {task.id: True for task in run.tasks.values() if task.state is TaskState.READY}
    run = msgspec.structs.replace(run, numbered=Table(numbered), in_state=Table(in_state), ready=Table(ready))
    for dispatch in sorted(run.dispatches.values(), key=lambda dispatch: dispatch.number):
        run = put_dispatch(run, dispatch)
    for gate in run.gates.values():
        run = put_gate(run, gate)
    return run


def refilled(run: Run) -> Run:
    """The Run after its log was lost and it was put back from its view."""
    return msgspec.structs.replace(run, restored=True)
