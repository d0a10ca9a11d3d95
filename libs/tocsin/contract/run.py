"""Runs, Tasks, Dispatches and gates: what may be asked of a Run, and what is recorded of it. Terms as in the README."""

from enum import StrEnum
from typing import Any, Literal

import msgspec

from tocsin.contract.ids import HostId, PaneId, digest
from tocsin.contract.messages import Body, Part, Process
from tocsin.contract.parties import Caller
from tocsin.contract.refusals import Refusal

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
# content meets its own receipt; with other content it is refused. What a receipt's `result` holds stands with each
# verb as "Result:"; every value is plain JSON, times are UTC ms, and a field that is not known is null.

ANY_RUN = "-"
"""The `run` of a request that is about no Run in particular: ListRuns, and ListWorkers over all Runs."""


def new_run_id(caller: Caller, request: str) -> str:
    """The id of the Run that this request of this caller creates: a repeat of the request names the same Run."""
    return f"r{digest(caller.fingerprint, request)[:7]}"


def dispatch_id(run: str, task: str, fence: int) -> str:
    """The id of one attempt. Task ids hold no dot, so the Run and the Task can be read from it."""
    return f"{run}.{task}.{fence}"


def run_of_dispatch(dispatch: str) -> str:
    """The Run that a Dispatch or gate id names."""
    return dispatch.partition(".")[0]


class RunAsk(Part, frozen=True, kw_only=True, tag_field="verb"):
    """What is asked of one Run."""


class CreateRun(RunAsk, frozen=True, kw_only=True, tag="create"):
    """Make a Run and bind the caller as its coordinator. `RunCommand.run` is `new_run_id(caller, request)`.

    A vouched worker's Run is nested in its Dispatch, whatever `parent` says, and inherits its limits.
    Result: {run, generation, depth, depth_max, workers_max}.
    """

    objective: str
    workers_max: int = 8
    depth_max: int = 1
    parent: str | None = None  # the Dispatch in which this Run is nested


class UseRun(RunAsk, frozen=True, kw_only=True, tag="use"):
    """Bind the caller as coordinator: a newer generation, with a trace; the old consumer is fenced.

    Binding who is bound already changes nothing. Result: {run, generation, before: name of who had it or null}.
    """


class PauseRun(RunAsk, frozen=True, kw_only=True, tag="pause"):
    """Start nothing new. Result: {run}."""

    reason: str = ""


class ResumeRun(RunAsk, frozen=True, kw_only=True, tag="resume"):
    """Go on, and close the circuit again (also on a closed Run, whose circuit still counts). Result: {run}."""


class CloseRun(RunAsk, frozen=True, kw_only=True, tag="close"):
    """End it. Refused while an attempt is unsettled or a settled worker has no disposition, unless forced with a reason.

    Result: {run, unsettled: [dispatch], obligations: [dispatch]} (both empty unless forced).
    """

    force: str | None = None


class PurgeRun(RunAsk, frozen=True, kw_only=True, tag="purge"):
    """Forget a closed Run for good. Result: {run}."""


class AddTasks(RunAsk, frozen=True, kw_only=True, tag="add"):
    """Add one Task or a whole graph, all or nothing; order does not matter.

    Result: {tasks: [{task, state, blocked_by}] (the first 200, in the order given), total}.
    """

    tasks: tuple[TaskSpec, ...]


class UpdateTask(RunAsk, frozen=True, kw_only=True, tag="update"):
    """Change what may still change: title, text, policies; dependencies while pending, ready or blocked.

    Result: {task: <task row>}.
    """

    task: str
    title: str | None = None
    spec: str | None = None
    deps: tuple[str, ...] | None = None
    accept: Accept | None = None
    max_rounds: int | None = None
    on_settle: OnSettle | None = None


class AcceptTask(RunAsk, frozen=True, kw_only=True, tag="accept"):
    """The coordinator's or a person's verdict on a reported Task whose policy leaves it to them. Rework needs a reason.

    Result: {task: <task row>}.
    """

    task: str
    verdict: Verdict
    reason: str = ""
    commit: str | None = None


class ReopenTask(RunAsk, frozen=True, kw_only=True, tag="reopen"):
    """Bring an ended or blocked Task back, and the reviews of it. Refused under an unsettled attempt. Result: {task: <task row>}."""

    task: str
    reason: str


class CancelTask(RunAsk, frozen=True, kw_only=True, tag="cancel"):
    """End a Task without a result. Refused under an unsettled attempt: stop or abandon that first.

    `unverifiable`: it ends as that, because nobody can know its outcome. Result: {task: <task row>}.
    """

    task: str
    reason: str
    unverifiable: bool = False


class StartWorker(RunAsk, frozen=True, kw_only=True, tag="start"):
    """Start an attempt. Refused while any attempt of the Task is unsettled, except by superseding it with a reason.

    Placement is never taken from an earlier attempt. Result: {dispatch, task, fence, host, state} (`requested`: nothing runs yet).
    """

    task: str
    launch: Launch
    retry_of: str | None = None
    supersede: str | None = None


class StopWorker(RunAsk, frozen=True, kw_only=True, tag="stop"):
    """End the agent of an attempt. Succeeds when it has ended already. Result: {dispatch, state, already_ended: bool}."""

    dispatch: str
    reason: str = ""


class AbandonWorker(RunAsk, frozen=True, kw_only=True, tag="abandon"):
    """Give an attempt up as it is. Its agent can still be closed afterwards. Result: {dispatch, state}."""

    dispatch: str
    reason: str


class ReportWork(RunAsk, frozen=True, kw_only=True, tag="report"):
    """A worker's report. Ids come from the pane; they need not be given.

    Result: {dispatch, task, outcome, task_state, current}; the receipt says `duplicate` when it was on record already.
    A report of an attempt that is not the current one is kept, and answered with `stale_dispatch` and the current one's id.
    """

    report: Report
    task: str | None = None
    dispatch: str | None = None


class Beat(RunAsk, frozen=True, kw_only=True, tag="beat"):
    """A heartbeat: state of the Dispatch, never mail. Result: {dispatch, state}."""

    phase: str = ""
    dispatch: str | None = None


class OpenGate(RunAsk, frozen=True, kw_only=True, tag="open_gate"):
    """Put a question on a Task to the coordinator or a person. Touches no running attempt; a Task not yet started waits for it.

    Result: {gate, task}.
    """

    task: str
    question: str
    options: tuple[str, ...] = ()
    to: Literal["coordinator", "person"] = "coordinator"


class ResolveGate(RunAsk, frozen=True, kw_only=True, tag="resolve_gate"):
    """Answer it, once per round. Result: {gate, task, verdict, task_state}."""

    gate: str
    verdict: Verdict
    answer: str = ""


class GiveVerdict(RunAsk, frozen=True, kw_only=True, tag="verdict"):
    """A review's verdict, from the worker of the review Task, on a commit. It is that worker's report as well.

    `task`: the review Task, when it is not the caller's own. Result: {review, task, verdict, task_state, round}.
    """

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
    path: str | None = None
    at_ms: int = 0


class ShowRun(RunAsk, frozen=True, kw_only=True, tag="show"):
    """One Run. Result: {run: <run row>}.

    <run row>: {run, objective, state: open|paused|circuit|closed, why, generation, coordinator: <caller> or null, depth, depth_max,
    parent, workers_max, tasks: {<task state>: count}, unsettled: count, open_gates: count, quiet: bool (ready work or none, and
    nothing unsettled), summary: one line for a person, restored: bool (the log was lost once and refilled from the view),
    created_ms, updated_ms}.
    """


class ListRuns(RunAsk, frozen=True, kw_only=True, tag="list"):
    """Runs, latest change first, with `RunCommand.run` = ANY_RUN. Closed ones only when asked for.

    Result: {rows: [<run row>], total, next: cursor for `after` or null}.
    """

    closed: bool = False
    after: str | None = None
    limit: int = 50


class ListTasks(RunAsk, frozen=True, kw_only=True, tag="tasks"):
    """Tasks of one Run in the order in which they were added. `states` empty: all.

    Result: {rows: [<task row, spec cut to 160 characters, with spec_cut: bool>], total, next: cursor for `after` or null}.

    <task row>: {task, title, spec, kind, reviews, deps, parent, accept, max_rounds, on_settle, agent, state, why, blocked_by: [what],
    round, findings, attempts, current: dispatch or null, gate: open gate or null, report: {outcome, body, files, commit, path} or
    null, dependents: [task] (ShowTask alone), updated_ms}.
    """

    states: tuple[TaskState, ...] = ()
    after: str | None = None
    limit: int = 50


class ShowTask(RunAsk, frozen=True, kw_only=True, tag="task"):
    """One Task with all its attempts, oldest first.

    Result: {task: <task row>, workers: [<worker row>], verdicts: [{review, by, verdict, findings, commit, round}]}.
    """

    task: str


class ListWorkers(RunAsk, frozen=True, kw_only=True, tag="workers"):
    """The fleet: attempts of one Run (ANY_RUN: of all open Runs), who needs somebody first. `settled`: settled ones too.

    Result: {rows: [<worker row>], total, next: cursor for `after` or null, scope: run or "all"}.

    <worker row>: {dispatch, run, task, title, fence, current: bool, agent, host, pane, path, state, since_ms, why, code,
    liveness: live|exited|unverifiable, liveness_reason, outcome: in_progress|succeeded|failed|outcome_unknown|finished_unverified|
    stopped|abandoned|superseded, activity: working|blocked|unknown|wedged, activity_reason,
    attention: [guidance|input|approval|failure|interruption|stale|unverifiable|completion], requires_action: bool,
    human_wait: "permission"|"question"|"plan"|"form" | "none" (looked, nobody is awaited) | "unknown" (nobody could look),
    turn_start: seen|not_seen|awaited, heartbeat: none|fresh|stale, heartbeat_ms: age or null, phase,
    custody: a CustodyState or null, next: {kind: inspect|release|recover|answer|none, command: [argv]}, report: or null,
    late_reports: count, requested_ms, settled_ms}.
    """

    settled: bool = False
    failed: bool = False  # only those that failed
    after: str | None = None
    limit: int = 50


class ShowWorker(RunAsk, frozen=True, kw_only=True, tag="worker"):
    """One attempt. Result: {worker: <worker row>, launch, brief, late_reports: [report], refused: [{what, code, why}]}."""

    dispatch: str


class ListGates(RunAsk, frozen=True, kw_only=True, tag="gates"):
    """Gates of one Run, oldest first; `all` shows answered ones too.

    Result: {rows: [{gate, task, question, options, to, open: bool, verdict, answer, by, opened_ms, resolved_ms}], total}.
    """

    all: bool = False


class ShowRequest(RunAsk, frozen=True, kw_only=True, tag="request"):
    """What became of the caller's own request.

    Result: {request, state: completed|pending|absent, receipt: or null, worker: <worker row> or null}.
    `pending`: it started an attempt whose start is not settled yet. `absent`: no receipt under this caller, which proves nothing more.
    """

    id: str


RUN_READS = (ShowRun, ListRuns, ListTasks, ShowTask, ListWorkers, ShowWorker, ListGates, ShowRequest)
"""Verbs that change nothing and keep no receipt. `limit` is at most PAGE_MAX."""

PAGE_MAX = 100

RunVerb = (
    CreateRun | UseRun | PauseRun | ResumeRun | CloseRun | PurgeRun | AddTasks | UpdateTask | AcceptTask | ReopenTask | CancelTask
    | StartWorker | StopWorker | AbandonWorker | ReportWork | Beat | OpenGate | ResolveGate | GiveVerdict | Observe
    | ShowRun | ListRuns | ListTasks | ShowTask | ListWorkers | ShowWorker | ListGates | ShowRequest
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


class Refused(Body, frozen=True, kw_only=True):
    """A request that changed nothing."""

    request: str
    code: str
    message: str
    retry: str
    next: tuple[str, ...] = ()

    @classmethod
    def of(cls, request: str, refusal: Refusal) -> "Refused":
        """A refusal as the answer to a request."""
        advice = refusal.advice
        return cls(request=request, code=refusal.code.value, message=refusal.message, retry=advice.retry.value, next=advice.next)


class Receipt(Body, frozen=True, kw_only=True):
    """What a request did: recorded with the aggregate, so a repeat meets it. `result` depends on the verb.

    In the log: `after` is the sequence of the record before this one of the same aggregate (0: it is the first), so that a hole
    can be told; `refused` is what the caller was told although something was recorded.
    """

    request: str
    seq: int = 0  # of the record, 0 when nothing was recorded
    duplicate: bool = False
    result: dict[str, Any] = msgspec.field(default_factory=dict)
    at_ms: int = 0
    after: int = 0
    refused: Refused | None = None


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


class RunPurged(RunEvent, frozen=True, kw_only=True, tag="run_purged"):
    """Nothing of it is kept any more."""


class Restored(RunEvent, frozen=True, kw_only=True, tag="restored"):
    """The log was lost; this is what the view held, as one snapshot (JSON), in `of` parts when it is large.

    For any ledger: put it into the union of the family's events. The ledger alone writes and folds it.
    """

    snapshot: bytes
    part: int = 1
    of: int = 1


RunEvents = (
    RunCreated | CoordinatorBound | RunPaused | RunResumed | RunClosed | TaskAdded | TaskUpdated | TaskMoved | DispatchRequested
    | DispatchMoved | WorkReported | ReportRefused | Beaten | ReportMissing | GateOpened | GateResolved | VerdictGiven | WorkReady
    | RunPurged | Restored
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
