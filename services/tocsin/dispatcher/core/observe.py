"""What hosts and panes show of an attempt: only our own services say it, and only what the life table knows moves anything."""

from tocsin.contract.decision import Decision
from tocsin.contract.hosting import HostFact, Saw
from tocsin.contract.parties import Role
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.run import DispatchState, Observe, ReportMissing, WorkReady
from tocsin.dispatcher.core.draft import Draft
from tocsin.dispatcher.core.life import LIFE, DispatchEvent
from tocsin.dispatcher.core.rows import clean
from tocsin.dispatcher.core.run import Dispatch, Run

START, STOP = "start", "stop"
"""Steps of orders: `start`, and `stop.<n>` for the n-th time somebody asked for an end."""

_BY_SAW = {
    Saw.WORKTREE_READY: DispatchEvent.TAKEN,
    Saw.SETUP_RUNNING: DispatchEvent.TAKEN,
    Saw.SETUP_ENDED: DispatchEvent.SETUP_ENDED,
    Saw.TERMINAL_MADE: DispatchEvent.TERMINAL_MADE,
    Saw.AGENT_STARTED: DispatchEvent.AGENT_STARTED,
    Saw.PROMPT_WRITTEN: DispatchEvent.PROMPT_WRITTEN,
    Saw.PROMPT_LEFT: DispatchEvent.PROMPT_LEFT,
    Saw.EXITED: DispatchEvent.EXIT_PROVEN,
    Saw.LOST: DispatchEvent.EXIT_PROVEN,
    Saw.FOUND: DispatchEvent.HOST_BACK,
}
_BY_SAW_ON_START = {
    Saw.REFUSED: DispatchEvent.HOST_REFUSED,
    Saw.EXPIRED: DispatchEvent.ORDER_EXPIRED,
    Saw.UNKNOWN_STEP: DispatchEvent.STEP_UNKNOWN,
}
_BY_SAW_ON_STOP = {
    Saw.TREE_ENDED: DispatchEvent.STOP_PROVEN,
    Saw.ALREADY_ENDED: DispatchEvent.STOP_PROVEN,
    Saw.NOT_CONFIRMED: DispatchEvent.STOP_NOT_CONFIRMED,
    Saw.UNKNOWN_STEP: DispatchEvent.STOP_NOT_CONFIRMED,
    Saw.REFUSED: DispatchEvent.STOP_NOT_CONFIRMED,
    Saw.EXPIRED: DispatchEvent.STOP_NOT_CONFIRMED,
}


def of_fact(fact: HostFact) -> Observe | None:
    """What a host's fact means for its attempt; None when it means nothing to it (wakes, worktrees, archives)."""
    saw = _BY_SAW.get(fact.saw)
    if saw is None and fact.step == START:
        saw = _BY_SAW_ON_START.get(fact.saw)
    if saw is None and fact.step.startswith(STOP):
        saw = _BY_SAW_ON_STOP.get(fact.saw)
    if saw is None and fact.saw in (Saw.TREE_ENDED, Saw.ALREADY_ENDED):
        saw = DispatchEvent.EXIT_PROVEN  # somebody else's order has ended it
    if saw is None:
        return None
    return Observe(
        dispatch=fact.dispatch, fence=fact.fence, saw=saw, detail=clean(fact.detail)[:500], code=fact.code, pane=fact.pane,
        process=fact.process, path=fact.path, at_ms=fact.at_ms,
    )  # fmt: skip


def observe(draft: Draft, ask: Observe) -> Decision | Refusal:
    """Take an observation; one that the life table does not know, or that tells nothing new, changes nothing.

    Refuses: sender_not_assignee, not_found, bad_request, stale_dispatch.
    """
    if draft.caller.role is not Role.SERVICE:
        return Refusal(Code.SENDER_NOT_ASSIGNEE, "only the services observe")
    dispatch = draft.run.dispatches.get(ask.dispatch)
    if dispatch is None:
        return Refusal(Code.NOT_FOUND, f"there is no Dispatch {ask.dispatch}")
    if ask.saw not in set(DispatchEvent):
        return Refusal(Code.BAD_REQUEST, f"nothing is called {clean(ask.saw)[:40]}")
    event = DispatchEvent(ask.saw)
    if ask.fence != dispatch.fence:
        return Refusal(Code.STALE_DISPATCH, f"{dispatch.id} has fence {dispatch.fence}")
    if dispatch.state is DispatchState.CONTACT_LOST and event in HOST_FACTS and not _is_news(dispatch, event, ask):
        event = DispatchEvent.HOST_BACK  # whatever a host says, it is there
    if event is DispatchEvent.HOST_BACK and dispatch.turn_seen_ms is None:
        event = DispatchEvent.HOST_BACK_EARLY
    if (dispatch.state, event) not in LIFE or not _is_news(dispatch, event, ask):
        return Decision()
    refusal = draft.move(dispatch.id, event, why=ask.detail, code=ask.code, pane=ask.pane, process=ask.process, path=ask.path)
    return refusal if refusal is not None else draft.decided()


HOST_FACTS = frozenset(
    {
        DispatchEvent.TAKEN,
        DispatchEvent.SETUP_ENDED,
        DispatchEvent.TERMINAL_MADE,
        DispatchEvent.AGENT_STARTED,
        DispatchEvent.PROMPT_WRITTEN,
    }
)
"""Steps of a start that a host may tell again: only what they add counts."""


def _is_news(dispatch: Dispatch, event: DispatchEvent, ask: Observe) -> bool:
    is_new_place = (ask.pane or dispatch.pane) != dispatch.pane or (ask.path or dispatch.path) != dispatch.path
    is_new_process = ask.process is not None and ask.process not in dispatch.processes
    match event:
        case DispatchEvent.TURN_SEEN:
            return not dispatch.exited  # a process that has ended starts no turn: what says so is late
        case DispatchEvent.EXIT_PROVEN:
            return not dispatch.exited
        case DispatchEvent.TAKEN:
            return not dispatch.touched or is_new_place
        case DispatchEvent.SETUP_ENDED:
            return dispatch.in_setup or not dispatch.touched
        case DispatchEvent.TERMINAL_MADE | DispatchEvent.AGENT_STARTED:
            return not dispatch.touched or is_new_place or is_new_process
        case DispatchEvent.PROMPT_WRITTEN:
            return not dispatch.is_written
    return True


def miss(draft: Draft, dispatch: str, why: str) -> Decision:
    """An attempt is over by all that is seen, and no report came: said once."""
    known = draft.run.dispatches.get(dispatch)
    if known is None or not is_missing(known):
        return Decision()
    draft.add(ReportMissing(dispatch=dispatch, task=known.task, why=why))
    return draft.decided()


def is_missing(dispatch: Dispatch) -> bool:
    """It has ended by what is seen, has not reported, and nobody was told."""
    return dispatch.state is DispatchState.FINISHED_UNVERIFIED and not dispatch.missing_told and dispatch.report is None


def tell_ready(draft: Draft) -> Decision:
    """Tasks are ready and nothing is under way: said once for each set of them."""
    waiting = ready_untold(draft.run)
    if waiting:
        draft.add(WorkReady(tasks=waiting))
    return draft.decided()


def ready_untold(run: Run) -> tuple[str, ...]:
    """The ready Tasks that nobody was told of as this set, while nothing is under way; else none."""
    if not run.is_known or run.closed or run.paused is not None or run.unsettled or not run.ready:
        return ()
    waiting = tuple(sorted(run.ready))
    return waiting if waiting != run.ready_told else ()
