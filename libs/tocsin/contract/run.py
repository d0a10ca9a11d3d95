"""Runs, Tasks, Dispatches and gates: what may be asked of a Run, and what is recorded of it. Terms as in the README."""

from enum import StrEnum
from typing import Any, Literal

import msgspec

from tocsin.contract.ids import HostId, PaneId
from tocsin.contract.messages import Body, Part, Process
from tocsin.contract.parties import Caller

# ---------------------------------------------------------------- words


class TaskState(StrEnum):
    """Where a Task stands. A report makes it reported; only acceptance unlocks its dependents."""

    PENDING = "pending"
    READY = "ready"
    DISPATCHED = "dispatched"
    REPORTED = "reported"
    ACCEPTED = "accepted"
    FAILED = "failed"
    BLOCKED = "blocked"  # names what blocks it
    UNVERIFIABLE = "unverifiable"  # an honest end for an outcome that nobody can know
    CANCELLED = "cancelled"


TASK_ENDS = frozenset({TaskState.ACCEPTED, TaskState.FAILED, TaskState.UNVERIFIABLE, TaskState.CANCELLED})


class DispatchState(StrEnum):
    """The life of one attempt. The legal steps stand in one table, in the dispatcher's core."""

    REQUESTED = "requested"
    STARTING = "starting"
    RUNNING = "running"
    REPORTED = "reported"
    START_UNKNOWN = "start_unknown"  # no turn start was seen: it keeps its rights, a late report settles it
    CONTACT_LOST = "contact_lost"  # neither dead nor done
    FINISHED_UNVERIFIED = "finished_unverified"  # its process or turn has ended without a report
    STOPPING = "stopping"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"
    ABANDONED = "abandoned"
    SUPERSEDED = "superseded"


SETTLED = frozenset(
    {DispatchState.SUCCEEDED, DispatchState.FAILED, DispatchState.STOPPED, DispatchState.ABANDONED, DispatchState.SUPERSEDED}
)
"""States in which an attempt has its outcome. While any attempt of a Task is in another one, no other may start."""


class Accept(StrEnum):
    """What turns a reported Task into an accepted one."""

    AUTO = "auto"
    GATE = "gate"  # a review Task's or a gate's verdict
    COORDINATOR = "coordinator"


class TaskKind(StrEnum):
    """What a Task is for."""

    WORK = "work"
    REVIEW = "review"  # judges `reviews`; its verdict comes from another worker than the author


class Verdict(StrEnum):
    """What a review or gate says."""

    ACCEPT = "accept"
    REWORK = "rework"
    REJECT = "reject"


class OnSettle(StrEnum):
    """What becomes of a worker when its Dispatch has settled, unless somebody says otherwise."""

    RELEASE = "release"
    RETAIN = "retain"
    ASK = "ask"


class Outcome(StrEnum):
    """What a worker claims."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"


class Where(StrEnum):
    """Placement is always explicit; a retry never inherits it."""

    CURRENT = "current"  # the caller's own worktree
    EXISTING = "existing"
    NEW_CHILD = "new-child"  # branches off the caller's or the Task's worktree
    NEW_TOP_LEVEL = "new-top-level"


class Placement(Part, frozen=True, kw_only=True):
    """Where an attempt works."""

    where: Where
    path: str | None = None  # existing: the worktree or folder; new-*: the repository
    branch: str | None = None  # new-*: its branch, from which the folder's name is made
    base: str | None = None  # new-*: what it branches off; default: the repository's HEAD
    setup: str | None = None  # command that prepares a new worktree
    wait_for_setup: bool = True


class TaskSpec(Part, frozen=True, kw_only=True):
    """What a Task is, as its author gave it."""

    id: str
    title: str
    spec: str
    deps: tuple[str, ...] = ()
    kind: TaskKind = TaskKind.WORK
    reviews: str | None = None
    accept: Accept = Accept.COORDINATOR
    max_rounds: int = 3
    on_settle: OnSettle | None = None  # None: retained while a review of it is open, then released
    agent: str | None = None
    parent: str | None = None


class Report(Part, frozen=True, kw_only=True):
    """A worker's claim that its Dispatch is over."""

    outcome: Outcome
    body: str
    files: tuple[str, ...] = ()
    commit: str | None = None
    path: str | None = None


class Launch(Part, frozen=True, kw_only=True):
    """How a worker is started."""

    agent: str
    host: HostId
    placement: Placement
    model: str | None = None
    pane: PaneId | None = None  # reuse of a live pane, under the composer guard
    terminal: Literal["tmux", "process"] = "tmux"
    command: tuple[str, ...] = ()  # agent `generic`: the program to run


# -------------------------------------------------------------- commands
#
# One request = one verb with its body. The answer is a Receipt or a refusal. The same request id with the same
# content meets its own receipt; with other content it is refused.


class RunAsk(Part, frozen=True, kw_only=True, tag_field="verb"):
    """What is asked of one Run."""


class CreateRun(RunAsk, frozen=True, kw_only=True, tag="create"):
    """Make a Run and bind the caller as its coordinator."""

    objective: str
    workers_max: int = 8
    depth_max: int = 1
    parent: str | None = None  # the Dispatch in which this Run is nested


class UseRun(RunAsk, frozen=True, kw_only=True, tag="use"):
    """Bind the caller as coordinator: a newer generation, with a trace; the old consumer is fenced."""


class PauseRun(RunAsk, frozen=True, kw_only=True, tag="pause"):
    """Start nothing new."""

    reason: str = ""


class ResumeRun(RunAsk, frozen=True, kw_only=True, tag="resume"):
    """Go on, and close the circuit again."""


class CloseRun(RunAsk, frozen=True, kw_only=True, tag="close"):
    """End it. Refused while an attempt is unsettled or a settled worker has no disposition, unless forced with a reason."""

    force: str | None = None


class PurgeRun(RunAsk, frozen=True, kw_only=True, tag="purge"):
    """Forget a closed Run for good."""


class AddTasks(RunAsk, frozen=True, kw_only=True, tag="add"):
    """Add one Task or a whole graph, all or nothing."""

    tasks: tuple[TaskSpec, ...]


class UpdateTask(RunAsk, frozen=True, kw_only=True, tag="update"):
    """Change what may still change: title, text, policies; dependencies while pending or ready."""

    task: str
    title: str | None = None
    spec: str | None = None
    deps: tuple[str, ...] | None = None
    accept: Accept | None = None
    max_rounds: int | None = None
    on_settle: OnSettle | None = None


class AcceptTask(RunAsk, frozen=True, kw_only=True, tag="accept"):
    """The coordinator's or a person's verdict on a reported Task whose policy leaves it to them."""

    task: str
    verdict: Verdict
    reason: str = ""
    commit: str | None = None


class ReopenTask(RunAsk, frozen=True, kw_only=True, tag="reopen"):
    """Bring an ended Task back. Refused under an unsettled attempt."""

    task: str
    reason: str


class CancelTask(RunAsk, frozen=True, kw_only=True, tag="cancel"):
    """End a Task without a result. Refused under an unsettled attempt: stop or abandon that first."""

    task: str
    reason: str


class StartWorker(RunAsk, frozen=True, kw_only=True, tag="start"):
    """Start an attempt. Refused while any attempt of the Task is unsettled, except by superseding it with a reason."""

    task: str
    launch: Launch
    retry_of: str | None = None
    supersede: str | None = None


class StopWorker(RunAsk, frozen=True, kw_only=True, tag="stop"):
    """End the agent of an attempt. Succeeds when it has ended already."""

    dispatch: str
    reason: str = ""


class AbandonWorker(RunAsk, frozen=True, kw_only=True, tag="abandon"):
    """Give an attempt up as it is. Its agent can still be closed afterwards."""

    dispatch: str
    reason: str


class ReportWork(RunAsk, frozen=True, kw_only=True, tag="report"):
    """A worker's report. Ids come from the pane; they need not be given."""

    report: Report
    task: str | None = None
    dispatch: str | None = None


class Beat(RunAsk, frozen=True, kw_only=True, tag="beat"):
    """A heartbeat: state of the Dispatch, never mail."""

    phase: str = ""
    dispatch: str | None = None


class OpenGate(RunAsk, frozen=True, kw_only=True, tag="open_gate"):
    """Put a question on a Task to the coordinator or a person. Touches no running attempt."""

    task: str
    question: str
    options: tuple[str, ...] = ()
    to: Literal["coordinator", "person"] = "coordinator"


class ResolveGate(RunAsk, frozen=True, kw_only=True, tag="resolve_gate"):
    """Answer it, once per round."""

    gate: str
    verdict: Verdict
    answer: str = ""


class GiveVerdict(RunAsk, frozen=True, kw_only=True, tag="verdict"):
    """A review's verdict, from the worker of the review Task, on a commit."""

    verdict: Verdict
    findings: str = ""
    commit: str | None = None
    task: str | None = None


class Observe(RunAsk, frozen=True, kw_only=True, tag="observe"):
    """What a host or pane showed of an attempt; said by our own services."""

    dispatch: str
    fence: int
    saw: str  # a DispatchEvent of the life table
    detail: str = ""
    code: str | None = None
    pane: PaneId | None = None
    process: Process | None = None
    worktree: str | None = None
    path: str | None = None
    at_ms: int = 0


RunVerb = (
    CreateRun | UseRun | PauseRun | ResumeRun | CloseRun | PurgeRun | AddTasks | UpdateTask | AcceptTask | ReopenTask | CancelTask
    | StartWorker | StopWorker | AbandonWorker | ReportWork | Beat | OpenGate | ResolveGate | GiveVerdict | Observe
)  # fmt: skip


class RunCommand(Body, frozen=True, kw_only=True):
    """A request. `generation`: a coordinator's own generation, so that a fenced one is told."""

    run: str
    request: str
    caller: Caller
    ask: RunVerb
    at_ms: int
    generation: int | None = None
    timeout_ms: int = 10_000


class Receipt(Body, frozen=True, kw_only=True):
    """What a request did: recorded with the aggregate, so a repeat meets it. `result` depends on the verb."""

    request: str
    seq: int = 0
    duplicate: bool = False
    result: dict[str, Any] = msgspec.field(default_factory=dict)
    at_ms: int = 0


class Refused(Body, frozen=True, kw_only=True):
    """A request that changed nothing."""

    request: str
    code: str
    message: str
    retry: str
    next: tuple[str, ...] = ()


# ---------------------------------------------------------------- events


class RunEvent(Part, frozen=True, kw_only=True, tag_field="kind"):
    """Something that is true of a Run from here on."""


class RunCreated(RunEvent, frozen=True, kw_only=True, tag="run_created"):
    """A Run exists."""

    objective: str
    workers_max: int
    depth: int
    depth_max: int
    parent: str | None = None


class CoordinatorBound(RunEvent, frozen=True, kw_only=True, tag="coordinator_bound"):
    """Somebody owns the Run now; who owned it before is told and fenced."""

    generation: int
    caller: Caller
    before: Caller | None = None


class RunPaused(RunEvent, frozen=True, kw_only=True, tag="run_paused"):
    """Nothing new starts."""

    reason: str
    circuit: bool = False


class RunResumed(RunEvent, frozen=True, kw_only=True, tag="run_resumed"):
    """It goes on."""


class RunClosed(RunEvent, frozen=True, kw_only=True, tag="run_closed"):
    """It is over."""

    forced: str | None = None


class TaskAdded(RunEvent, frozen=True, kw_only=True, tag="task_added"):
    """A Task exists, pending."""

    task: TaskSpec


class TaskUpdated(RunEvent, frozen=True, kw_only=True, tag="task_updated"):
    """What it is has changed."""

    task: TaskSpec


class TaskMoved(RunEvent, frozen=True, kw_only=True, tag="task_moved"):
    """It stands elsewhere now. `blocked_by`: what keeps it, for blocked ones."""

    task: str
    to: TaskState
    why: str = ""
    blocked_by: tuple[str, ...] = ()
    round: int | None = None
    findings: str | None = None


class DispatchRequested(RunEvent, frozen=True, kw_only=True, tag="dispatch_requested"):
    """An attempt is to be started; the fence grows with each attempt of the Task."""

    dispatch: str
    task: str
    fence: int
    launch: Launch
    by: Caller
    brief: str
    retry_of: str | None = None


class DispatchMoved(RunEvent, frozen=True, kw_only=True, tag="dispatch_moved"):
    """Its life went on by an observation or a request."""

    dispatch: str
    task: str
    fence: int
    to: DispatchState
    saw: str
    why: str = ""
    code: str | None = None
    by: Caller | None = None
    pane: PaneId | None = None
    process: Process | None = None
    path: str | None = None


class WorkReported(RunEvent, frozen=True, kw_only=True, tag="work_reported"):
    """A worker's report counts. `late`: of an attempt that is not the current one: kept and shown, and changes nothing."""

    dispatch: str
    task: str
    report: Report
    by: Caller
    late: bool = False
    current: str | None = None


class ReportRefused(RunEvent, frozen=True, kw_only=True, tag="report_refused"):
    """A report or beat did not count; its sender and the coordinator are told. Escalations are never silenced."""

    dispatch: str | None
    task: str | None
    code: str
    why: str
    by: Caller
    what: str  # report, beat
    report: Report | None = None
    current: str | None = None


class Beaten(RunEvent, frozen=True, kw_only=True, tag="beaten"):
    """A heartbeat of an attempt."""

    dispatch: str
    phase: str
    at_ms: int


class ReportMissing(RunEvent, frozen=True, kw_only=True, tag="report_missing"):
    """An attempt's turn or process has ended, no report came, nobody human is awaited. Once per attempt."""

    dispatch: str
    task: str
    why: str


class GateOpened(RunEvent, frozen=True, kw_only=True, tag="gate_opened"):
    """A question stands on a Task."""

    gate: str
    task: str
    question: str
    options: tuple[str, ...]
    to: str
    by: Caller


class GateResolved(RunEvent, frozen=True, kw_only=True, tag="gate_resolved"):
    """It is answered."""

    gate: str
    task: str
    verdict: Verdict
    answer: str
    by: Caller


class VerdictGiven(RunEvent, frozen=True, kw_only=True, tag="verdict_given"):
    """A review has judged a Task's round."""

    review: str
    task: str
    verdict: Verdict
    findings: str
    commit: str | None
    by: Caller


class WorkReady(RunEvent, frozen=True, kw_only=True, tag="work_ready"):
    """Tasks are ready and no attempt is unsettled: `tasks` is the set, said once per set."""

    tasks: tuple[str, ...]


class Restored(RunEvent, frozen=True, kw_only=True, tag="restored"):
    """The log was lost; this is what the view held, as one snapshot (JSON)."""

    snapshot: bytes


RunEvents = (
    RunCreated | CoordinatorBound | RunPaused | RunResumed | RunClosed | TaskAdded | TaskUpdated | TaskMoved | DispatchRequested
    | DispatchMoved | WorkReported | ReportRefused | Beaten | ReportMissing | GateOpened | GateResolved | VerdictGiven | WorkReady | Restored
)  # fmt: skip


class RunRecorded(Body, frozen=True, kw_only=True):
    """One accepted command of a Run: its events, all or nothing, and its receipt."""

    run: str
    request: str
    caller: Caller
    payload_hash: str
    events: tuple[RunEvents, ...]
    receipt: Receipt
    at_ms: int
