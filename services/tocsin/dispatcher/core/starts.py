"""Starting, stopping and giving up attempts. Nothing here is ever started again by itself."""

import msgspec

from tocsin.agents.registry import AGENTS
from tocsin.contract.decision import Decision
from tocsin.contract.ids import TOKEN_BYTES_MAX
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.run import (
    AbandonWorker,
    DispatchRequested,
    DispatchState,
    Launch,
    StartWorker,
    StopWorker,
    TaskState,
    Where,
    dispatch_id,
)
from tocsin.dispatcher.core.brief import brief
from tocsin.dispatcher.core.draft import Around, Draft
from tocsin.dispatcher.core.life import DispatchEvent
from tocsin.dispatcher.core.rows import clean
from tocsin.dispatcher.core.run import Dispatch, Run, Task, place, waits_on
from tocsin.dispatcher.core.runs import closed
from tocsin.dispatcher.core.tasks import found

RETRIED = frozenset(
    {DispatchState.FAILED, DispatchState.STOPPED, DispatchState.ABANDONED, DispatchState.SUPERSEDED, DispatchState.SUCCEEDED}
)


def start(draft: Draft, ask: StartWorker, around: Around) -> Decision | Refusal:
    """Order an attempt.

    Refuses: not_found, run_closed, run_paused, circuit_open, depth, placement_required, unknown_agent, bad_request,
    task_not_startable, attempt_unsettled, same_worker, composer_busy, capacity.
    """
    run = draft.run
    task = found(run, ask.task)
    if isinstance(task, Refusal):
        return task
    if (
        refusal := _run_may(run, around)
        or _launch_fits(ask.launch)
        or _task_may(run, task, ask)
        or _pane_may(run, task, ask.launch, around)
    ):
        return refusal
    current = run.dispatches.get(task.current or "")
    unsettled = current is not None and not current.is_settled
    load = len(run.unsettled) - (1 if unsettled else 0)
    if load >= run.workers_max:
        return Refusal(Code.CAPACITY, f"{load} attempts of {run.id} are unsettled, {run.workers_max} are allowed")
    if around.host_load - (1 if unsettled else 0) >= around.host_workers_max:
        return Refusal(Code.CAPACITY, f"{around.host_load} workers are on {ask.launch.host}, {around.host_workers_max} are allowed there")
    if unsettled and current is not None:
        refusal = draft.move(current.id, DispatchEvent.SUPERSEDED, why=clean(ask.supersede or ""), by=draft.caller)
        if refusal is not None:
            return refusal
    fence = task.attempts + 1
    name = dispatch_id(run.id, task.id, fence)
    launch = msgspec.structs.replace(ask.launch, agent=ask.launch.agent or task.spec.agent or "")
    draft.add(
        DispatchRequested(
            dispatch=name, task=task.id, fence=fence, launch=launch, by=draft.caller, retry_of=ask.retry_of,
            brief=brief(draft.run, draft.run.tasks[task.id]),
        )
    )  # fmt: skip
    draft.put(task.id, TaskState.DISPATCHED)
    return draft.decided({"dispatch": name, "task": task.id, "fence": fence, "host": launch.host, "state": DispatchState.REQUESTED})


def _run_may(run: Run, around: Around) -> Refusal | None:
    if run.closed:
        return closed(run)
    if run.circuit_ms is not None:
        return Refusal(Code.CIRCUIT_OPEN, f"{run.id}: {run.paused or 'three attempts in a row have failed'}")
    if run.paused is not None:
        return Refusal(Code.RUN_PAUSED, f"{run.id} is paused: {run.paused}")
    if around.circuit is not None:
        return Refusal(Code.CIRCUIT_OPEN, f"the circuit of {around.circuit}, a Run of the same coordinator, is open")
    if run.depth >= run.depth_max:
        return Refusal(Code.DEPTH, f"{run.id} lies {run.depth} deep, {run.depth_max} is allowed")
    return None


def _launch_fits(launch: Launch) -> Refusal | None:
    if launch.agent not in AGENTS:
        return Refusal(Code.UNKNOWN_AGENT, f"no agent {clean(launch.agent)[:40]!r}; there are {', '.join(AGENTS)}")
    if launch.agent == "generic" and not launch.command and launch.pane is None:
        return Refusal(Code.BAD_REQUEST, "a generic worker needs the program to run")
    if not 1 <= len(launch.host.encode()) <= TOKEN_BYTES_MAX:
        return Refusal(Code.BAD_REQUEST, "on which host?")
    placement = launch.placement
    if launch.pane is None and not placement.path:
        what = "repository" if placement.where in (Where.NEW_CHILD, Where.NEW_TOP_LEVEL) else "worktree or folder"
        return Refusal(Code.PLACEMENT_REQUIRED, f"{placement.where}: which {what}?")
    return None


def _task_may(run: Run, task: Task, ask: StartWorker) -> Refusal | None:
    current = run.dispatches.get(task.current or "")
    if current is not None and not current.is_settled:
        if ask.supersede is not None and clean(ask.supersede):
            return None
        return Refusal(Code.ATTEMPT_UNSETTLED, f"{current.id} is {current.state} on {current.launch.host}")
    if ask.retry_of is not None:
        retried = run.dispatches.get(ask.retry_of)
        if retried is None or retried.task != task.id:
            return Refusal(Code.NOT_FOUND, f"{clean(ask.retry_of)[:80]} is no attempt of Task {task.id}")
        if retried.state not in RETRIED:
            return Refusal(Code.ATTEMPT_UNSETTLED, f"{retried.id} is {retried.state}")
    match task.state:
        case TaskState.READY:
            return None
        case TaskState.FAILED if ask.retry_of is not None:
            return _unmet(run, task)
        case TaskState.PENDING:
            return _unmet(run, task) or Refusal(Code.TASK_NOT_STARTABLE, f"Task {task.id} is pending")
    return Refusal(Code.TASK_NOT_STARTABLE, f"Task {task.id} is {task.state}{': ' + task.why if task.why else ''}{_hint(task, ask)}")


def _hint(task: Task, ask: StartWorker) -> str:
    if task.state is TaskState.FAILED and ask.retry_of is None:
        return f"; name the attempt that is tried again (retry of {task.current}), or reopen the Task"
    return "; it waits for a verdict" if task.state is TaskState.REPORTED else ""


def _unmet(run: Run, task: Task) -> Refusal | None:
    unmet = [name for name in waits_on(run, task.spec) if run.tasks[name].state is not TaskState.ACCEPTED and name != task.spec.reviews]
    if task.spec.reviews is not None and run.tasks[task.spec.reviews].state not in (TaskState.REPORTED, TaskState.ACCEPTED):
        unmet.append(task.spec.reviews)
    if not unmet:
        return None
    told = ", ".join(f"{name} ({run.tasks[name].state})" for name in unmet[:5])
    return Refusal(Code.TASK_NOT_STARTABLE, f"Task {task.id} waits for {told}")


def _pane_may(run: Run, task: Task, launch: Launch, around: Around) -> Refusal | None:
    """A live pane takes the next Task only when the one before is over there, and no leftover of it stands in its composer."""
    if launch.pane is None:
        return None
    if around.pane_holder is not None:
        return Refusal(Code.ATTEMPT_UNSETTLED, f"pane {launch.pane} works on {around.pane_holder}")
    there = run.dispatches.get(run.panes.get(place(launch.host, launch.pane), ""))
    if there is None:
        return None
    if not there.is_settled and there.task != task.id:
        if there.state is DispatchState.START_UNKNOWN:
            return Refusal(Code.COMPOSER_BUSY, f"pane {launch.pane} may hold an unsubmitted prompt of {there.id}")
        return Refusal(Code.ATTEMPT_UNSETTLED, f"pane {launch.pane} works on {there.id} ({there.state})")
    if task.spec.reviews is not None and any(author.pane == launch.pane for author in authors(run, task.spec.reviews)):
        return Refusal(Code.SAME_WORKER, f"pane {launch.pane} has worked on {task.spec.reviews} itself")
    return None


def authors(run: Run, task: str) -> list[Dispatch]:
    """Every attempt at a Task."""
    attempts = run.tasks[task].attempts
    names = (dispatch_id(run.id, task, fence) for fence in range(1, attempts + 1))
    return [run.dispatches[name] for name in names if name in run.dispatches]


def stop(draft: Draft, ask: StopWorker) -> Decision | Refusal:
    """End an attempt's agent. Refuses: not_found."""
    dispatch = draft.run.dispatches.get(ask.dispatch)
    if dispatch is None:
        return Refusal(Code.NOT_FOUND, f"there is no Dispatch {clean(ask.dispatch)[:120]}")
    if dispatch.is_settled:
        return Decision((), {"dispatch": dispatch.id, "state": dispatch.state, "already_ended": True})
    why = clean(ask.reason) or f"stopped by {draft.caller.name}"
    if dispatch.exited:
        refusal = draft.move(dispatch.id, DispatchEvent.STOP_PROVEN, why=f"{why}; its process had ended already", by=draft.caller)
    else:
        refusal = draft.move(dispatch.id, DispatchEvent.STOP_ASKED, why=why, by=draft.caller)
    if refusal is not None:
        return refusal
    return draft.decided({"dispatch": dispatch.id, "state": draft.run.dispatches[dispatch.id].state, "already_ended": dispatch.exited})


def abandon(draft: Draft, ask: AbandonWorker) -> Decision | Refusal:
    """Give an attempt up. Refuses: not_found, bad_request."""
    dispatch = draft.run.dispatches.get(ask.dispatch)
    if dispatch is None:
        return Refusal(Code.NOT_FOUND, f"there is no Dispatch {clean(ask.dispatch)[:120]}")
    if dispatch.is_settled:
        return Decision((), {"dispatch": dispatch.id, "state": dispatch.state}, duplicate=True)
    if not clean(ask.reason):
        return Refusal(Code.BAD_REQUEST, "say why")
    refusal = draft.move(dispatch.id, DispatchEvent.ABANDONED, why=clean(ask.reason), by=draft.caller)
    return refusal if refusal is not None else draft.decided({"dispatch": dispatch.id, "state": DispatchState.ABANDONED})
