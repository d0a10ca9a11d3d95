"""What a custody becomes of what its host has observed: proofs, and the lack of them."""

from tocsin.contract.custody import TRASH_KEPT_MS, Archived, CustodyEvents, Expected, TerminalMade, WorktreeDecided, WorktreeReady
from tocsin.contract.hosting import HostFact, Saw
from tocsin.contract.refusals import Code
from tocsin.release_accountant.core.custody import (
    NOT_THERE,
    START,
    Custody,
    S,
    W,
    Worktree,
    identity,
    release_step,
    removal_step,
    return_step,
)
from tocsin.release_accountant.core.life import CLOSING, Step
from tocsin.release_accountant.core.moves import (
    Around,
    as_before,
    become,
    ended,
    exists,
    kept,
    move,
    releases,
    take_over,
    tries_again,
    worktree_after,
)


def observed(custody: Custody, fact: HostFact, around: Around) -> tuple[CustodyEvents, ...]:
    """What to record of one observation. An answer to an order that is not the last of its kind means nothing."""
    match fact.saw:
        case Saw.WORKTREE_READY:
            return _place_ready(custody, fact, around)
        case Saw.TERMINAL_MADE | Saw.FOUND:
            return _terminal_made(custody, fact, around)
        case Saw.HUMAN_KEY:
            return _human_key(custody, fact)
        case Saw.LOST:
            return _lost(custody, fact)
        case Saw.REFUSED if fact.step == START:
            return _start_refused(custody, fact, around)
        case Saw.WORKTREE_PURGED:
            return _purged(custody)
    if fact.step == release_step(custody):
        return _release_answered(custody, fact, around)
    if custody.worktree is not None and fact.step == removal_step(custody.worktree):
        return _removal_answered(custody, custody.worktree, fact)
    if custody.worktree is not None and fact.step == return_step(custody.worktree):
        return _return_answered(custody, custody.worktree, fact)
    return ()


def is_it(custody: Custody, fact: HostFact) -> bool:
    """False when the host speaks of another pane or process: numbers are used again."""
    terminal = custody.terminal
    if terminal is None or (custody.host is not None and fact.host != custody.host):
        return terminal is None
    if fact.pane is not None and fact.pane != terminal.pane:
        return False
    return fact.process is None or terminal.process is None or fact.process == terminal.process


def proof(custody: Custody, fact: HostFact) -> str:
    """One line that names what was proven to have ended, by whom, and how."""
    terminal = custody.terminal
    what = f"pane {terminal.pane}" if terminal else "whatever it had made"
    if terminal and terminal.process:
        what += f", pid {terminal.process.pid} started at {terminal.process.started_ms} ms of boot {terminal.process.boot}"
    ended = f", {fact.count} ended" if fact.count else ""
    detail = f": {fact.detail}" if fact.detail else ""
    return f"{fact.saw.value.replace('_', ' ')} on {fact.host} ({what}{ended}){detail}"


def _place_ready(custody: Custody, fact: HostFact, around: Around) -> tuple[CustodyEvents, ...]:
    run, task, fence = identity(fact.dispatch)
    is_inherited = custody.terminal is not None and custody.terminal.reused_from is not None
    if not run or not fact.path or custody.worktree is not None or is_inherited or custody.state is S.REUSED:
        return ()
    start: tuple[CustodyEvents, ...] = () if custody.known else (Expected(run=run, task=task, fence=fence, host=fact.host),)
    if not fact.made and (custody.terminal is not None or fact.path == custody.path):
        return start
    events = (*start, WorktreeReady(host=fact.host, path=fact.path, made=fact.made, branch=fact.branch))
    then = become(custody, events, around)
    # Told late: its terminal is over already, so nobody else will decide about its worktree.
    return events + worktree_after(then, then, around) if custody.state is S.RELEASED else events


def _terminal_made(custody: Custody, fact: HostFact, around: Around) -> tuple[CustodyEvents, ...]:
    if custody.terminal is not None:
        is_later = fact.saw is Saw.FOUND and is_it(custody, fact) and fact.at_ms > custody.proof_ms
        why = f"{fact.host} has found it alive after its end was proven"
        return move(custody, Step.ALIVE, why, next=(releases(custody),)) if is_later else ()
    run, task, fence = identity(fact.dispatch)
    if not run or fact.pane is None:
        return ()
    terminal = TerminalMade(
        dispatch=fact.dispatch, run=run, task=task, fence=fence, host=fact.host, pane=fact.pane, process=fact.process,
        path=fact.path or custody.path or "", worktree_made=custody.worktree is not None, branch=fact.branch, at_ms=fact.at_ms,
    )  # fmt: skip
    then = become(custody, (terminal,), around)
    if custody.state in CLOSING:
        # It was to be ended before we knew of its terminal: now its terminal is to be closed too.
        return (terminal, *move(custody, Step.MADE, custody.why, attempt=custody.attempt + 1, **as_before(custody)))
    if custody.state is S.RELEASED:
        alive = move(custody, Step.ALIVE, f"{fact.host} has made a terminal for it") if fact.at_ms > custody.proof_ms else ()
        return (terminal, *alive)
    return (terminal, *exists(then, around, f"its terminal was made on {fact.host}"))


def _human_key(custody: Custody, fact: HostFact) -> tuple[CustodyEvents, ...]:
    if not is_it(custody, fact) or (custody.person and custody.state in CLOSING):
        return ()
    run, task, fence = identity(fact.dispatch)
    start = () if custody.known or not run else (Expected(run=run, task=task, fence=fence, host=fact.host),)
    key = take_over(custody, f"a person's key landed in it on {fact.host}")
    return (*start, *key) if key and (custody.known or run) else ()


def _lost(custody: Custody, fact: HostFact) -> tuple[CustodyEvents, ...]:
    """Its runner and its agent are gone. Processes that they have left behind (`count`) are ended by a release alone.

    A gate holds what is left of it until its verdict, an unsettled Dispatch until its outcome.
    """
    is_held = custody.state is S.RETAINED and custody.gate is not None
    if fact.count or is_held or not is_it(custody, fact) or not (custody.settled or custody.state is S.TAKEN_OVER):
        return ()
    kept_for = f"; it was kept: {custody.why}" if custody.state in (S.RETAINED, S.TAKEN_OVER) else ""
    worktree = custody.state is S.RELEASE_UNKNOWN and custody.removes_worktree
    return move(custody, Step.GONE, f"{fact.host} has found it gone{kept_for}", attempt=custody.attempt + 1, worktree=worktree)


def _start_refused(custody: Custody, fact: HostFact, around: Around) -> tuple[CustodyEvents, ...]:
    """Its host left nothing half-made behind, except in a terminal that it was only to reuse."""
    if custody.terminal is not None and custody.terminal.reused_from is not None:
        return ()
    if fact.at_ms <= custody.proof_ms:
        return ()  # told before: whatever was asked for since, an old word ends nothing
    code = fact.code or "refused"
    ended = move(custody, Step.ENDED, f"its start was refused ({code})", proof=proof(custody, fact), proof_ms=fact.at_ms)
    if not ended or custody.worktree is None:
        return ended
    return (*ended, WorktreeDecided(what=W.PURGED, why="its start was refused, and its host left nothing behind"))


def _release_answered(custody: Custody, fact: HostFact, around: Around) -> tuple[CustodyEvents, ...]:
    detail = f": {fact.detail}" if fact.detail else ""
    match fact.saw:
        case Saw.UNKNOWN_STEP if custody.state is S.RELEASED:
            why = f"its processes have ended, and whether its terminal is closed cannot be told{detail}"
            return move(custody, Step.ALIVE, why, next=tries_again(custody))
        case Saw.TREE_ENDED | Saw.ALREADY_ENDED if is_it(custody, fact):
            return ended(custody, proof(custody, fact), fact, around)
        case Saw.ARCHIVED:
            return (Archived(file=fact.detail, bytes=fact.count),) if fact.detail and fact.detail != custody.archive else ()
        case Saw.REFUSED if fact.code == Code.TAKEN_OVER:
            return take_over(custody, f"a person has used it on {fact.host}")
        case Saw.EXPIRED:
            why = f"{fact.host} read the order too late: it is told again"
            return move(custody, Step.SILENT, why, next=tries_again(custody), attempt=custody.attempt + 1, **as_before(custody))
        case Saw.TREE_ENDED | Saw.ALREADY_ENDED:
            why = f"{fact.host} speaks of another process than the recorded one{detail}"
        case Saw.NOT_CONFIRMED | Saw.UNKNOWN_STEP | Saw.REFUSED:
            code = f" ({fact.code})" if fact.code else ""
            why = f"its end is not confirmed: {fact.saw.value.replace('_', ' ')}{code}{detail}"
        case _:
            return ()
    return move(custody, Step.NOT_CONFIRMED, why, by=custody.by, next=tries_again(custody))


def _removal_answered(custody: Custody, worktree: Worktree, fact: HostFact) -> tuple[CustodyEvents, ...]:
    if worktree.state is not W.LEAVING:
        return ()
    match fact.saw:
        case Saw.WORKTREE_TRASHED:
            until_ms = fact.at_ms + TRASH_KEPT_MS
            return (
                WorktreeDecided(what=W.TRASHED, why=worktree.why, trash=fact.detail, until_ms=until_ms, next=(f"tocsin custody undo {custody.id}",)),
            )  # fmt: skip
        case Saw.WORKTREE_KEPT if fact.code == NOT_THERE:
            return (WorktreeDecided(what=W.PURGED, why=fact.detail, code=fact.code),)
        case Saw.WORKTREE_KEPT:
            return (WorktreeDecided(what=W.KEPT, why=fact.detail, code=fact.code, next=(*fact.next, releases(custody))),)
        case Saw.REFUSED | Saw.UNKNOWN_STEP | Saw.EXPIRED | Saw.NOT_CONFIRMED:
            return (kept(custody, f"what it holds is not known: {fact.detail or fact.saw.value.replace('_', ' ')}", fact.code),)
    return ()


def _return_answered(custody: Custody, worktree: Worktree, fact: HostFact) -> tuple[CustodyEvents, ...]:
    if worktree.state is not W.RETURNING:
        return ()
    match fact.saw:
        case Saw.WORKTREE_RESTORED:
            return (WorktreeDecided(what=W.RESTORED, why="it was brought back", next=(f"tocsin custody release {custody.id}",)),)
        case Saw.REFUSED if fact.code == Code.NOT_FOUND:
            return (WorktreeDecided(what=W.PURGED, why=fact.detail, code=fact.code),)
        case Saw.REFUSED | Saw.UNKNOWN_STEP | Saw.EXPIRED | Saw.NOT_CONFIRMED:
            why = f"it could not be brought back: {fact.detail or fact.saw.value.replace('_', ' ')}"
            again = (f"tocsin custody undo {custody.id}",)
            return (WorktreeDecided(what=W.TRASHED, why=why, code=fact.code, trash=worktree.trash, until_ms=worktree.until_ms, next=again),)
    return ()


def _purged(custody: Custody) -> tuple[CustodyEvents, ...]:
    if custody.worktree is None or custody.worktree.state is not W.TRASHED:
        return ()
    return (WorktreeDecided(what=W.PURGED, why="it was in the trash for its time"),)
