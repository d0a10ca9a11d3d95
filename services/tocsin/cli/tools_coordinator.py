"""The tools of a coordinator."""

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta

from tocsin.cli import mail, output, run, speak, starting
from tocsin.cli.speak import Speaker
from tocsin.cli.tools import After, Change, Dispatch, Limit, Reason, Told, Tool, Wait, told
from tocsin.cli.tools_worker import MAIL
from tocsin.contract.custody import ALL, ListCustodies, Release, Retain
from tocsin.contract.mail import ReadWakes
from tocsin.contract.run import (
    ANY_RUN,
    SETTLED,
    AbandonWorker,
    Accept,
    AcceptTask,
    AddTasks,
    CancelTask,
    CloseRun,
    ListGates,
    ListRuns,
    ListTasks,
    ListWorkers,
    OnSettle,
    OpenGate,
    PauseRun,
    Receipt,
    Refused,
    ReopenTask,
    ResolveGate,
    ResumeRun,
    RunVerb,
    ShowRequest,
    ShowRun,
    ShowTask,
    ShowWorker,
    StopWorker,
    TaskSpec,
    TaskState,
    UpdateTask,
    UseRun,
    Verdict,
    Where,
    run_of_dispatch,
)

# ------------------------------------------------------------------- Runs


class RunCreate(Change, frozen=True, kw_only=True):
    """Make a Run and own it. This pane is bound to it: no other tool has to name it."""

    objective: Annotated[str, Meta(min_length=1, description="what is to be reached")]
    workers_max: Annotated[int, Meta(ge=1)] = 8
    depth_max: Annotated[int, Meta(ge=1, description="how deep workers may have workers")] = 1

    async def do(self, speaker: Speaker) -> Told:
        """See Tool."""
        return _bound(speaker, await run.create(speaker, self.objective, self.workers_max, self.depth_max))


class RunUse(Change, frozen=True, kw_only=True):
    """Own a Run that is there; who had it is told and can act in it no more."""

    run: str

    async def do(self, speaker: Speaker) -> Told:
        """See Tool."""
        return _bound(speaker, await speaker.to_run(UseRun(), self.run))


def _bound(speaker: Speaker, receipt: Receipt | Refused) -> Told:
    if isinstance(receipt, Refused):
        return receipt
    left = speaker.bind(receipt.result["run"], receipt.result["generation"])
    return speak.told(receipt) | ({"note": left} if left else {})


class RunList(Tool, frozen=True, kw_only=True):
    """The open Runs, the latest change first."""

    closed: bool = False
    after: After = None
    limit: Limit = 50

    async def do(self, speaker: Speaker) -> Told:
        """See Tool."""
        return told(await speaker.look_at_run(ListRuns(closed=self.closed, after=self.after, limit=self.limit), ANY_RUN))


class RunShow(Tool, frozen=True, kw_only=True):
    """One Run: its state, how its Tasks stand, and a line of what comes next."""

    def ask(self) -> RunVerb:
        """See Tool."""
        return ShowRun()


class RunPause(Change, frozen=True, kw_only=True):
    """Start nothing new in the Run."""

    reason: str = ""

    def ask(self) -> RunVerb:
        """See Tool."""
        return PauseRun(reason=self.reason)


class RunResume(Change, frozen=True, kw_only=True):
    """Go on with a paused Run, and close its circuit again after three failures in a row."""

    def ask(self) -> RunVerb:
        """See Tool."""
        return ResumeRun()


class RunClose(Change, frozen=True, kw_only=True):
    """End the Run. Refused while an attempt is unsettled or a settled worker has no owner."""

    force: Annotated[str | None, Meta(description="close it all the same, for this reason")] = None

    def ask(self) -> RunVerb:
        """See Tool."""
        return CloseRun(force=self.force)


# ------------------------------------------------------------------ Tasks


class TaskAdd(Change, frozen=True, kw_only=True):
    """Add Tasks, all or nothing. `deps` are what must be accepted before. A review (`kind` review, `reviews` a Task) judges another Task."""

    tasks: Annotated[tuple[TaskSpec, ...], Meta(min_length=1)]

    def ask(self) -> RunVerb:
        """See Tool."""
        return AddTasks(tasks=self.tasks)


class TaskList(Tool, frozen=True, kw_only=True):
    """The Tasks of the Run in the order in which they were added; long texts are cut."""

    states: Annotated[tuple[TaskState, ...], Meta(description="only those; `ready` can be started")] = ()
    after: After = None
    limit: Limit = 50

    def ask(self) -> RunVerb:
        """See Tool."""
        return ListTasks(states=self.states, after=self.after, limit=self.limit)


class TaskShow(Tool, frozen=True, kw_only=True):
    """One Task in full, with all its attempts and verdicts."""

    task: str

    def ask(self) -> RunVerb:
        """See Tool."""
        return ShowTask(task=self.task)


class TaskUpdate(Change, frozen=True, kw_only=True):
    """Change what may still change of a Task."""

    task: str
    title: str | None = None
    spec: str | None = None
    deps: tuple[str, ...] | None = None
    accept: Accept | None = None
    max_rounds: int | None = None
    on_settle: OnSettle | None = None

    def ask(self) -> RunVerb:
        """See Tool."""
        return UpdateTask(
            task=self.task, title=self.title, spec=self.spec, deps=self.deps, accept=self.accept, max_rounds=self.max_rounds,
            on_settle=self.on_settle,
        )  # fmt: skip


class TaskAccept(Change, frozen=True, kw_only=True):
    """Your verdict on a reported Task: accept unlocks what depends on it, rework sends it back with the reason, reject ends it."""

    task: str
    verdict: Verdict = Verdict.ACCEPT
    reason: Annotated[str, Meta(description="rework needs one: it is what the next attempt is told")] = ""
    commit: str | None = None

    def ask(self) -> RunVerb:
        """See Tool."""
        return AcceptTask(task=self.task, verdict=self.verdict, reason=self.reason, commit=self.commit)


class TaskReopen(Change, frozen=True, kw_only=True):
    """Bring an ended or blocked Task back."""

    task: str
    reason: Reason

    def ask(self) -> RunVerb:
        """See Tool."""
        return ReopenTask(task=self.task, reason=self.reason)


class TaskCancel(Change, frozen=True, kw_only=True):
    """End a Task without a result. Stop or abandon its worker first."""

    task: str
    reason: Reason
    unverifiable: Annotated[bool, Meta(description="it ends as that: nobody can know its outcome")] = False

    def ask(self) -> RunVerb:
        """See Tool."""
        return CancelTask(task=self.task, reason=self.reason, unverifiable=self.unverifiable)


# ---------------------------------------------------------------- workers


class WorkerStart(Change, frozen=True, kw_only=True):
    """Start an attempt at a ready Task and wait until its turn is seen. Where it works is said each time, also for a retry."""

    task: str
    where: Annotated[Where, Meta(description="this worktree, one that is there (path), or a new one (path: its repository)")]
    path: Annotated[str | None, Meta(description="default: where you are; existing needs it")] = None
    branch: str | None = None
    base: Annotated[str | None, Meta(description="what a new worktree branches off; default HEAD")] = None
    setup: Annotated[str | None, Meta(description="command that prepares a new worktree")] = None
    wait_for_setup: bool = True
    agent: Annotated[str | None, Meta(description="claude, codex ...; default: what the Task says")] = None
    model: str | None = None
    host: Annotated[str | None, Meta(description="another machine than this one")] = None
    terminal: Literal["tmux", "process"] = "tmux"
    pane: Annotated[str | None, Meta(description="reuse this live pane")] = None
    retry_of: Annotated[str | None, Meta(description="the failed or stopped attempt that it replaces")] = None
    command: Annotated[tuple[str, ...], Meta(description="agent `generic`: the program to run")] = ()
    supersede: Annotated[
        str | None, Meta(description="why an attempt that is unsettled does not count any more; it is fenced from then on")
    ] = None
    wait_s: Wait = 50

    async def do(self, speaker: Speaker) -> Told:
        """See Tool."""
        wanted = starting.Start(
            self.task, self.where, self.path, self.branch, self.base, self.setup, self.wait_for_setup, self.agent, self.model, self.host,
            self.terminal, self.pane, self.retry_of, self.command, self.supersede,
        )  # fmt: skip
        receipt = await starting.begin(speaker, wanted)
        if isinstance(receipt, Refused):
            return receipt
        seen = await starting.wait(speaker, receipt.result["dispatch"], starting.STARTED, self.wait_s)
        if isinstance(seen, Refused):
            return speak.told(receipt)
        if seen["state"] in SETTLED and seen["state"] not in starting.AT_WORK:
            return starting.failed(receipt.request, seen)
        return speak.told(receipt) | {"state": seen["state"], "turn_start": seen["turn_start"], "worker": seen}


class WorkerList(Tool, frozen=True, kw_only=True):
    """The fleet, who needs somebody first. Each row says what to do next; `human_wait` tells whether a person is awaited in its pane."""

    settled: Annotated[bool, Meta(description="settled ones too")] = False
    failed: Annotated[bool, Meta(description="only those that failed")] = False
    every_run: Annotated[bool, Meta(description="of all open Runs")] = False
    after: After = None
    limit: Limit = 50

    async def do(self, speaker: Speaker) -> Told:
        """See Tool."""
        named = ANY_RUN if self.every_run else await speaker.which_run()
        if isinstance(named, Refused):
            return named
        ask = ListWorkers(settled=self.settled, failed=self.failed, after=self.after, limit=self.limit)
        return told(await speaker.look_at_run(ask, named))


class WorkerShow(Tool, frozen=True, kw_only=True):
    """One worker: its row, its brief, its reports and what was refused of it."""

    dispatch: Dispatch

    async def do(self, speaker: Speaker) -> Told:
        """See Tool."""
        return told(await speaker.look_at_run(ShowWorker(dispatch=self.dispatch), run_of_dispatch(self.dispatch)))


class WorkerRead(Tool, frozen=True, kw_only=True):
    """The last lines that a worker's terminal shows, or what is kept of it."""

    dispatch: Dispatch
    lines: Annotated[int, Meta(ge=1, le=2000)] = 100

    async def do(self, speaker: Speaker) -> Told:
        """See Tool."""
        found = await output.read(speaker, self.dispatch, output.Source.AUTO, self.lines)
        return found if isinstance(found, Refused) else found._asdict()


class WorkerStop(Change, frozen=True, kw_only=True):
    """End a worker's agent. A success also when it has ended already."""

    dispatch: Dispatch
    reason: str = ""
    wait_s: Wait = 30

    async def do(self, speaker: Speaker) -> Told:
        """See Tool."""
        receipt = await speaker.to_run(StopWorker(dispatch=self.dispatch, reason=self.reason), run_of_dispatch(self.dispatch))
        if isinstance(receipt, Refused) or receipt.result["state"] in SETTLED:
            return told(receipt)
        row = await starting.wait(speaker, self.dispatch, SETTLED, self.wait_s)
        return speak.told(receipt) | ({} if isinstance(row, Refused) else {"state": row["state"]})


class WorkerAbandon(Change, frozen=True, kw_only=True):
    """Give an attempt up as it is. Its agent may still run: custody_release closes it."""

    dispatch: Dispatch
    reason: Reason

    async def do(self, speaker: Speaker) -> Told:
        """See Tool."""
        return told(await speaker.to_run(AbandonWorker(dispatch=self.dispatch, reason=self.reason), run_of_dispatch(self.dispatch)))


# ------------------------------------------------------------------- mail


class MailReply(Change, frozen=True, kw_only=True):
    """Answer a worker's question by its id."""

    question: str
    answer: Annotated[str, Meta(min_length=1)]

    async def do(self, speaker: Speaker) -> Told:
        """See Tool."""
        return told(await mail.reply(speaker, self.question, self.answer))


class Wakes(Tool, frozen=True, kw_only=True):
    """The account of the turns that were caused in this pane: why, by which way, with what proof."""

    limit: Limit = 20

    async def do(self, speaker: Speaker) -> Told:
        """See Tool."""
        mailbox = await mail.own_mailbox(speaker)
        return mailbox if isinstance(mailbox, Refused) else told(await speaker.look_at_mailbox(ReadWakes(limit=self.limit), mailbox))


# --------------------------------------------------------- gates, custody


class GateCreate(Change, frozen=True, kw_only=True):
    """Put a question on a Task, to the coordinator or a person. It touches no running worker."""

    task: str
    question: Annotated[str, Meta(min_length=1)]
    options: tuple[str, ...] = ()
    to: Literal["coordinator", "person"] = "coordinator"

    def ask(self) -> RunVerb:
        """See Tool."""
        return OpenGate(task=self.task, question=self.question, options=self.options, to=self.to)


class GateResolve(Change, frozen=True, kw_only=True):
    """Answer a gate, once per round."""

    gate: str
    verdict: Verdict
    answer: str = ""

    async def do(self, speaker: Speaker) -> Told:
        """See Tool."""
        asked = ResolveGate(gate=self.gate, verdict=self.verdict, answer=self.answer)
        return told(await speaker.to_run(asked, run_of_dispatch(self.gate)))


class GateList(Tool, frozen=True, kw_only=True):
    """The open gates of the Run, oldest first."""

    all: Annotated[bool, Meta(description="answered ones too")] = False

    def ask(self) -> RunVerb:
        """See Tool."""
        return ListGates(all=self.all)


class RequestShow(Tool, frozen=True, kw_only=True):
    """What became of an earlier call of yours: completed, pending or absent."""

    id: str

    def ask(self) -> RunVerb:
        """See Tool."""
        return ShowRequest(id=self.id)


class CustodyList(Tool, frozen=True, kw_only=True):
    """Who owns each terminal and worktree that was made for the Run, those that need a decision first."""

    obligations_only: bool = False
    after: Annotated[str | None, Meta(description="`after` of the page before")] = None
    limit: Limit = 50

    async def do(self, speaker: Speaker) -> Told:
        """See Tool."""
        named = await speaker.which_run()
        if isinstance(named, Refused):
            return named
        asked = ListCustodies(run=named, obligations_only=self.obligations_only, after=self.after, limit=self.limit)
        return told(await speaker.look_at_custody(asked, ALL))


class CustodyRetain(Change, frozen=True, kw_only=True):
    """Keep a settled worker's terminal and worktree, for a reason."""

    dispatch: Dispatch
    reason: Reason
    gate: Annotated[str | None, Meta(description="let it go by itself with the verdict of this gate or review Task")] = None

    async def do(self, speaker: Speaker) -> Told:
        """See Tool."""
        return told(await speaker.to_custody(Retain(reason=self.reason, gate=self.gate), self.dispatch))


class CustodyRelease(Change, frozen=True, kw_only=True):
    """Close a settled worker's terminal with proof, and remove its worktree where nothing can be lost with it."""

    dispatch: Dispatch
    reason: str = ""
    worktree: bool = True

    async def do(self, speaker: Speaker) -> Told:
        """See Tool."""
        return told(await speaker.to_custody(Release(reason=self.reason, worktree=self.worktree), self.dispatch))


COORDINATOR: Mapping[str, type[Tool]] = {
    "run_create": RunCreate,
    "run_use": RunUse,
    "run_list": RunList,
    "run_show": RunShow,
    "run_pause": RunPause,
    "run_resume": RunResume,
    "run_close": RunClose,
    "task_add": TaskAdd,
    "task_list": TaskList,
    "task_show": TaskShow,
    "task_update": TaskUpdate,
    "task_accept": TaskAccept,
    "task_reopen": TaskReopen,
    "task_cancel": TaskCancel,
    "worker_start": WorkerStart,
    "worker_list": WorkerList,
    "worker_show": WorkerShow,
    "worker_read": WorkerRead,
    "worker_stop": WorkerStop,
    "worker_abandon": WorkerAbandon,
    **MAIL,
    "mail_reply": MailReply,
    "gate_create": GateCreate,
    "gate_resolve": GateResolve,
    "gate_list": GateList,
    "wakes": Wakes,
    "request_show": RequestShow,
    "custody_list": CustodyList,
    "custody_retain": CustodyRetain,
    "custody_release": CustodyRelease,
}
"""What a coordinator needs."""
