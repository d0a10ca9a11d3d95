"""What to record of a request or a notice: the one place where a custody is decided."""

from typing import Any

import msgspec

from tocsin.contract.custody import CustodyEvents, Expected, Forgotten, Release, Retain, Settled, TerminalMade, UndoRemoval, WorktreeDecided
from tocsin.contract.decision import Decision
from tocsin.contract.parties import Role
from tocsin.contract.refusals import Code, Refusal
from tocsin.release_accountant.core import notices
from tocsin.release_accountant.core.custody import WORKER_THERE, Custody, S, W, identity
from tocsin.release_accountant.core.life import CLOSING, OVER, UNDECIDED, Step
from tocsin.release_accountant.core.moves import (
    Around,
    as_before,
    become,
    close,
    dispose,
    exists,
    move,
    take_over,
    tries_again,
    worktree_leaves,
)
from tocsin.release_accountant.core.notices import Hold, Notices
from tocsin.release_accountant.core.observed import observed

Asks = Retain | Release | UndoRemoval | Notices


def decide(custody: Custody, ask: Asks, around: Around) -> Decision | Refusal:
    """What to record of a request or notice. Refuses requests; a notice that means nothing here records nothing."""
    if custody.forgotten and isinstance(ask, notices.Notice):
        return Decision()
    match ask:
        case Release():
            return _release(custody, ask, around)
        case Retain():
            return _retain(custody, ask, around)
        case UndoRemoval():
            return _undo(custody, around)
        case notices.Requested():
            return _requested(custody, ask)
        case notices.Inherits():
            return _inherits(custody, ask, around)
        case notices.WorksElsewhere():
            return Decision(move(custody, Step.FOREIGN, f"pane {ask.pane} on {ask.host} was not made by us"))
        case notices.HandedOn():
            why = f"{ask.dispatch} works in its terminal now"
            return Decision(move(custody, Step.HAND_ON, why, dispatch=ask.dispatch))
        case notices.HasSettled():
            return _settled(custody, ask, around)
        case notices.HoldChanged():
            return _hold_changed(custody, ask.hold, around)
        case notices.Observed():
            return Decision(observed(custody, ask.fact, around)) if custody.fence in (0, ask.fact.fence) else Decision()
        case notices.HostSilent():
            if ask.attempt != custody.attempt or custody.state is not S.RELEASING:
                return Decision()
            why = f"{custody.host} does not answer: it is told again until it does"
            return Decision(move(custody, Step.SILENT, why, next=tries_again(custody), **as_before(custody)))
        case notices.TimePassed():
            return _time_passed(custody, ask.hold, around)
        case notices.PlaceFree():
            return _place_free(custody, around)
        case notices.RunPurged():
            return _run_purged(custody)


# --------------------------------------------------------- what callers ask


def _told(custody: Custody, **result: Any) -> dict[str, Any]:
    return {"custody": custody.id, "state": custody.state.value, **result}


def _release(custody: Custody, ask: Release, around: Around) -> Decision | Refusal:
    if not custody.known or around.is_stranger:
        return Refusal(Code.NOT_FOUND, f"nothing is known of a Dispatch {custody.id}")
    if ask.person and around.caller.role is not Role.PERSON:
        return Refusal(Code.TAKEN_OVER, "only a person says that a terminal is theirs to close")
    if custody.state is S.RELEASED:
        return _release_again(custody, ask, around)
    if custody.state in OVER:
        return Refusal(Code.LIFECYCLE_CONFLICT, _not_ours(custody))
    if custody.state in CLOSING:
        return Decision(result=_told(custody, joined=True, already=False, next=list(custody.next)))
    if custody.taken and not ask.person:
        return Refusal(Code.TAKEN_OVER, f"{custody.id} is kept: {custody.why}")
    if not custody.settled and custody.state is not S.RELEASE_UNKNOWN:
        return Refusal(Code.LIFECYCLE_CONFLICT, f"{custody.id} is not settled: stop or abandon its worker first")
    events = close(custody, ask.reason or "it was asked for", around, ask.worktree, by=around.caller, person=ask.person)
    return Decision(events, _told(become(custody, events, around), joined=False, already=False, next=[]))


def _not_ours(custody: Custody) -> str:
    if custody.state is S.REUSED:
        return f"the terminal of {custody.id} belongs to {custody.handed_to} now: release that one"
    return f"{custody.id} works in a terminal that we did not make: {custody.why}"


def _release_again(custody: Custody, ask: Release, around: Around) -> Decision | Refusal:
    """A release of what is released: its worktree may still be there, and it may have been found alive."""
    if ask.again and custody.taken and not ask.person:
        return Refusal(Code.TAKEN_OVER, f"{custody.id} was a person's")
    if ask.again:
        alive = move(custody, Step.ALIVE, ask.reason or "something of it was found alive")
        events = alive + close(become(custody, alive, around), "it was found alive", around, ask.worktree, around.caller, ask.person)
        return Decision(events, _told(become(custody, events, around), joined=False, already=False, next=[]))
    worktree = custody.worktree
    if worktree is None or not ask.worktree or worktree.state not in (W.STANDING, W.KEPT, W.RESTORED):
        return Decision(result=_told(custody, joined=False, already=True, next=[]), duplicate=True)
    if custody.taken and not ask.person:
        return Refusal(Code.TAKEN_OVER, f"the worktree of {custody.id} is kept: a person has worked in it")
    events = worktree_leaves(custody, around, ask.reason or "it was asked for")
    return Decision(events, _told(custody, joined=False, already=False, next=[]))


def _retain(custody: Custody, ask: Retain, around: Around) -> Decision | Refusal:
    if not custody.known or around.is_stranger:
        return Refusal(Code.NOT_FOUND, f"nothing is known of a Dispatch {custody.id}")
    if not ask.reason.strip():
        return Refusal(Code.BAD_REQUEST, "say why it is to be kept")
    if ask.until_ms is not None and ask.until_ms <= around.now_ms:
        return Refusal(Code.BAD_REQUEST, "the time until which it is to be kept has passed")
    if ask.gate is not None and not around.gate_is_open:
        return Refusal(Code.NOT_FOUND, f"no review or gate {ask.gate} of this Run is open")
    if custody.state is S.TAKEN_OVER:
        return Refusal(Code.TAKEN_OVER, f"{custody.id} is kept already: {custody.why}")
    if custody.taken and around.caller.role is not Role.PERSON:
        return Refusal(Code.TAKEN_OVER, f"{custody.id} was a person's")
    events = move(custody, Step.KEEP, ask.reason, by=around.caller, until_ms=ask.until_ms, gate=ask.gate)
    if not events:
        return Refusal(Code.LIFECYCLE_CONFLICT, f"{custody.id} is {custody.state.value.replace('_', ' ')}: it cannot be retained any more")
    return Decision(events, _told(become(custody, events, around)))


def _undo(custody: Custody, around: Around) -> Decision | Refusal:
    worktree = custody.worktree
    if around.is_stranger or worktree is None or custody.state is S.REUSED or worktree.state in (W.STANDING, W.KEPT, W.LEAVING):
        return Refusal(Code.NOT_FOUND, f"no worktree of {custody.id} is in the trash")
    told = {"custody": custody.id, "path": worktree.path}
    if worktree.state in (W.RETURNING, W.RESTORED):
        return Decision(result={**told, "worktree": worktree.state.value})
    if worktree.state is W.PURGED or (worktree.until_ms or 0) <= around.now_ms:
        return Refusal(Code.EXPIRED, f"the worktree of {custody.id} was in the trash for its time, and cannot be brought back")
    returning = WorktreeDecided(
        what=W.RETURNING, why="it was asked for", by=around.caller, trash=worktree.trash, until_ms=worktree.until_ms,
        attempt=worktree.attempt + 1,
    )  # fmt: skip
    return Decision((returning,), {**told, "worktree": W.RETURNING.value})


# ------------------------------------------------------ what is recorded of Runs


def _requested(custody: Custody, ask: notices.Requested) -> Decision:
    if custody.known and (custody.terminal is not None or custody.host is not None):
        return Decision()
    return Decision((Expected(run=ask.run, task=ask.task, fence=ask.fence, host=ask.host, path=ask.path),))


def _inherits(custody: Custody, ask: notices.Inherits, around: Around) -> Decision:
    if custody.terminal is not None or custody.state is not S.EXPECTED:
        return Decision()
    run, task, fence = identity(custody.id)
    terminal = TerminalMade(
        dispatch=custody.id, run=run, task=task, fence=fence, host=ask.host, pane=ask.pane, process=ask.process, path=ask.path,
        worktree_made=ask.worktree_made, branch=ask.branch, at_ms=around.now_ms, reused_from=ask.earlier,
    )  # fmt: skip
    if ask.taken_over:
        return Decision((terminal, *take_over(custody, f"a person had taken it over from {ask.earlier}")))
    return Decision((terminal, *exists(become(custody, (terminal,), around), around, f"{ask.earlier} has handed it on")))


def _settled(custody: Custody, ask: notices.HasSettled, around: Around) -> Decision:
    if custody.settled:
        return Decision()
    run, task, fence = identity(custody.id)
    if not run:
        return Decision()
    start: tuple[CustodyEvents, ...] = () if custody.known else (Expected(run=run, task=task, fence=fence, host=ask.host),)
    was_decided = custody.state not in UNDECIDED  # somebody keeps it, or has it: the outcome changes nothing
    gate = custody.gate if was_decided else ask.hold.gate if ask.hold else None
    settled = Settled(outcome=ask.outcome, review_open=ask.hold is not None, gate=gate, on_settle=ask.on_settle)
    start = (*start, settled)
    return Decision(start if was_decided else start + dispose(become(custody, start, around), ask.hold, around))


def _hold_changed(custody: Custody, hold: Hold | None, around: Around) -> Decision:
    if not custody.settled or custody.gate is None:
        return Decision()
    if hold is not None:
        is_news = custody.state is S.RETAINED and hold.gate != custody.gate
        return Decision(move(custody, Step.KEEP, hold.why, gate=hold.gate) if is_news else ())
    return Decision(dispose(msgspec.structs.replace(custody, gate=None), None, around))


def _time_passed(custody: Custody, hold: Hold | None, around: Around) -> Decision:
    if custody.until_ms is None or custody.until_ms > around.now_ms or custody.state is not S.RETAINED:
        return Decision()
    let_go = move(custody, Step.LET_GO, "the time for which it was kept is over")
    if not custody.settled:
        return Decision(let_go)
    return Decision(let_go + dispose(become(custody, let_go, around), hold, around))


def _place_free(custody: Custody, around: Around) -> Decision:
    worktree = custody.worktree
    if worktree is None or worktree.code != WORKER_THERE or worktree.state is not W.KEPT or custody.state is not S.RELEASED:
        return Decision()
    return Decision() if around.workers_there else Decision(worktree_leaves(custody, around, "nobody works in it any more"))


def _run_purged(custody: Custody) -> Decision:
    """It is forgotten once nothing of it is ours: what can still be brought back or is still owed is kept."""
    worktree = custody.worktree
    is_gone = worktree is None or custody.state is S.REUSED or worktree.state in (W.PURGED, W.RESTORED)
    return Decision((Forgotten(),)) if custody.over and is_gone and not custody.forgotten else Decision()
