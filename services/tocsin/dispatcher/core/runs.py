"""Verbs on a Run as a whole: who owns it, whether it starts anything, and its end."""

from tocsin.contract.decision import Decision
from tocsin.contract.parties import Caller, Role
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.run import (
    CloseRun,
    CoordinatorBound,
    CreateRun,
    PauseRun,
    PurgeRun,
    ResumeRun,
    RunClosed,
    RunCommand,
    RunCreated,
    RunPaused,
    RunPurged,
    RunResumed,
    UseRun,
)
from tocsin.dispatcher.core.draft import Around, Draft
from tocsin.dispatcher.core.rows import clean, named
from tocsin.dispatcher.core.run import Run

WORKERS_MAX = 64
DEPTH_MAX = 4
OBJECTIVE_MAX = 2_000

CIRCUIT_MS = 3_600_000
"""How long the open circuit of a closed Run still keeps its coordinator's other Runs from starting anything."""


def identity(caller: Caller | None) -> str:
    """Who a coordinator is, whatever process it runs in: its pane, else its name."""
    if caller is None:
        return ""
    return f"{caller.host}/{caller.pane}" if caller.pane else caller.name


def may_own(run: Run, command: RunCommand) -> Refusal | None:
    """May this caller decide about this Run? A person always; else whoever it is bound to.

    Refuses: consumer_fenced, sender_not_assignee.
    """
    caller = command.caller
    if command.generation is not None and command.generation != run.generation:
        return Refusal(
            Code.CONSUMER_FENCED,
            f"{run.id} is at generation {run.generation}, held by {named(run.coordinator)}; yours is {command.generation}",
        )
    if caller.role in (Role.PERSON, Role.SERVICE) or identity(caller) == identity(run.coordinator):
        return None
    if caller.role is Role.WORKER:
        return Refusal(Code.SENDER_NOT_ASSIGNEE, "a worker reports, beats, asks and judges; its coordinator decides about the Run")
    return Refusal(Code.CONSUMER_FENCED, f"{run.id} is bound to {named(run.coordinator)} (generation {run.generation})")


def create(draft: Draft, ask: CreateRun, around: Around) -> Decision | Refusal:
    """Make a Run. Refuses: bad_request, depth, not_found."""
    if draft.run.generation:
        return Refusal(Code.BAD_REQUEST, f"there is a Run {draft.run.id} already: use another request id")
    if not clean(ask.objective) or len(ask.objective) > OBJECTIVE_MAX:
        return Refusal(Code.BAD_REQUEST, f"a Run needs an objective of at most {OBJECTIVE_MAX} characters")
    if not 1 <= ask.workers_max <= WORKERS_MAX:
        return Refusal(Code.BAD_REQUEST, f"workers_max is from 1 to {WORKERS_MAX}")
    if not 1 <= ask.depth_max <= DEPTH_MAX:
        return Refusal(Code.BAD_REQUEST, f"depth_max is from 1 to {DEPTH_MAX}")
    nested_in = parent_of(draft.caller, ask)
    depth, depth_max, workers_max = 0, ask.depth_max, ask.workers_max
    if nested_in is not None:
        outer = around.parent
        if outer is None or not outer.is_known or nested_in not in outer.dispatches:
            return Refusal(Code.NOT_FOUND, f"there is no Dispatch {nested_in} to nest a Run in")
        # A new Run cannot widen what the one around it allows.
        depth, depth_max, workers_max = outer.depth + 1, outer.depth_max, min(workers_max, outer.workers_max)
        if depth >= depth_max:
            return Refusal(Code.DEPTH, f"{outer.id} allows workers {depth_max} deep: a worker of it starts none of its own")
    draft.add(RunCreated(objective=clean(ask.objective), workers_max=workers_max, depth=depth, depth_max=depth_max, parent=nested_in))
    draft.add(CoordinatorBound(generation=1, caller=draft.caller))
    return draft.decided({"run": draft.run.id, "generation": 1, "depth": depth, "depth_max": depth_max, "workers_max": workers_max})


def parent_of(caller: Caller, ask: CreateRun) -> str | None:
    """The Dispatch in which a new Run is nested: a worker's own, whatever it says; else what is asked for."""
    return caller.dispatch if caller.vouched and caller.dispatch else ask.parent


def use(draft: Draft, ask: UseRun) -> Decision | Refusal:
    """Bind the caller; who had it before is fenced, and the trace stays. Refuses: run_closed, sender_not_assignee."""
    run = draft.run
    if run.closed:
        return closed(run)
    if draft.caller.role is Role.WORKER and identity(draft.caller) != identity(run.coordinator):
        return Refusal(Code.SENDER_NOT_ASSIGNEE, "a worker cannot take over the Run that it works for")
    before = run.coordinator
    if identity(before) == identity(draft.caller):
        return Decision((), {"run": run.id, "generation": run.generation, "before": None}, duplicate=True)
    draft.add(CoordinatorBound(generation=run.generation + 1, caller=draft.caller, before=before))
    return draft.decided({"run": run.id, "generation": draft.run.generation, "before": named(before)})


def pause(draft: Draft, ask: PauseRun) -> Decision | Refusal:
    """Start nothing new. Refuses: run_closed."""
    if draft.run.closed:
        return closed(draft.run)
    if draft.run.paused is not None:
        return Decision((), {"run": draft.run.id}, duplicate=True)
    draft.add(RunPaused(reason=clean(ask.reason) or f"by {named(draft.caller)}"))
    return draft.decided({"run": draft.run.id})


def resume(draft: Draft, ask: ResumeRun) -> Decision | Refusal:
    """Go on. On a closed Run it closes the circuit and nothing else."""
    run = draft.run
    if run.paused is None and run.circuit_ms is None:
        return Decision((), {"run": run.id}, duplicate=True)
    draft.add(RunResumed())
    return draft.decided({"run": run.id})


def close(draft: Draft, ask: CloseRun, around: Around) -> Decision | Refusal:
    """End it. Refuses: obligations."""
    run = draft.run
    if run.closed:
        return Decision((), {"run": run.id, "unsettled": [], "obligations": []}, duplicate=True)
    left = sorted(run.unsettled)
    owed = sorted(
        name for name, custody in around.custody.items() if custody.is_open and name in run.dispatches and name not in run.unsettled
    )
    forced = clean(ask.force or "")
    if (left or owed) and not forced:
        what = [f"{len(left)} unsettled ({', '.join(left[:3])})"] if left else []
        what += [f"{len(owed)} without a disposition ({', '.join(owed[:3])})"] if owed else []
        return Refusal(Code.OBLIGATIONS, f"{run.id} has {' and '.join(what)}")
    draft.add(RunClosed(forced=forced or None))
    return draft.decided({"run": run.id, "unsettled": left, "obligations": owed})


def purge(draft: Draft, ask: PurgeRun) -> Decision | Refusal:
    """Forget a closed Run. Refuses: lifecycle_conflict, attempt_unsettled."""
    if not draft.run.closed:
        return Refusal(Code.LIFECYCLE_CONFLICT, f"{draft.run.id} is open: close it first")
    if draft.run.unsettled:
        return Refusal(Code.ATTEMPT_UNSETTLED, f"{', '.join(sorted(draft.run.unsettled)[:3])}: nobody would know of it any more")
    draft.add(RunPurged())
    return draft.decided({"run": draft.run.id})


def closed(run: Run) -> Refusal:
    """Refuses: run_closed."""
    return Refusal(Code.RUN_CLOSED, f"{run.id} is closed{': ' + run.closed_why if run.closed_why else ''}")
