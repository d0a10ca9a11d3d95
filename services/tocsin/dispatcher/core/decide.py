"""Every verb of a Run, and who may say it."""

from tocsin.contract.decision import Decision
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.run import (
    AbandonWorker,
    AcceptTask,
    AddTasks,
    Beat,
    CancelTask,
    CloseRun,
    CreateRun,
    GiveVerdict,
    Observe,
    OpenGate,
    PauseRun,
    PurgeRun,
    ReopenTask,
    ReportWork,
    ResolveGate,
    ResumeRun,
    RunCommand,
    StartWorker,
    StopWorker,
    UpdateTask,
    UseRun,
)
from tocsin.dispatcher.core import gates, reports, runs, starts, tasks
from tocsin.dispatcher.core.draft import Around, Draft
from tocsin.dispatcher.core.observe import observe
from tocsin.dispatcher.core.run import Run

ANYBODY = (CreateRun, UseRun, ReportWork, Beat, GiveVerdict, OpenGate, Observe)
"""Verbs that look at their caller themselves; every other one is for whoever owns the Run."""

ALSO_WHEN_CLOSED = (UseRun, ReportWork, Beat, GiveVerdict, Observe, ResumeRun, CloseRun, PurgeRun, StopWorker, AbandonWorker, StartWorker)
"""Verbs that make sense on a closed Run, or say themselves that they do not."""


def decide(run: Run, command: RunCommand, around: Around) -> Decision | Refusal:
    """What a command makes true. Pure; asked again with another `run` when somebody else wrote first."""
    draft = Draft(run, command.caller, around.now_ms)
    ask = command.ask
    if isinstance(ask, CreateRun):
        return runs.create(draft, ask, around)
    if not run.is_known:
        return absent(command.run)
    if not isinstance(ask, ANYBODY) and (refusal := runs.may_own(run, command)):
        return refusal
    if run.closed and not isinstance(ask, ALSO_WHEN_CLOSED):
        return runs.closed(run)
    match ask:
        case UseRun():
            return runs.use(draft, ask)
        case PauseRun():
            return runs.pause(draft, ask)
        case ResumeRun():
            return runs.resume(draft, ask)
        case CloseRun():
            return runs.close(draft, ask, around)
        case PurgeRun():
            return runs.purge(draft, ask)
        case AddTasks():
            return tasks.add_tasks(draft, ask)
        case UpdateTask():
            return tasks.update_task(draft, ask)
        case AcceptTask():
            return gates.accept(draft, ask)
        case ReopenTask():
            return tasks.reopen_task(draft, ask)
        case CancelTask():
            return tasks.cancel_task(draft, ask)
        case StartWorker():
            return starts.start(draft, ask, around)
        case StopWorker():
            return starts.stop(draft, ask)
        case AbandonWorker():
            return starts.abandon(draft, ask)
        case ReportWork():
            return reports.report(draft, ask)
        case Beat():
            return reports.beat(draft, ask)
        case OpenGate():
            return gates.open_gate(draft, ask, command)
        case ResolveGate():
            return gates.resolve_gate(draft, ask)
        case GiveVerdict():
            return reports.verdict(draft, ask)
        case Observe():
            return observe(draft, ask)
    return Refusal(Code.BAD_REQUEST, f"{type(ask).__name__} is a read")


def absent(run: str) -> Refusal:
    """The same answer for a Run that does not exist and one that is not the caller's to see."""
    return Refusal(Code.NOT_FOUND, f"there is no Run {run}")
