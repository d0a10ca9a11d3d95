"""One custody: what is held true of it, folded from what is recorded."""

from typing import Any

import msgspec

from tocsin.contract.custody import (
    Archived,
    CustodyEvents,
    CustodyRecorded,
    CustodyState,
    Expected,
    Forgotten,
    MovedTo,
    Past,
    Settled,
    TerminalMade,
    WorktreeDecided,
    WorktreeReady,
    WorktreeState,
)
from tocsin.contract.ids import HostId, PaneId
from tocsin.contract.messages import Process
from tocsin.contract.parties import Caller, Role
from tocsin.contract.run import OnSettle, Restored
from tocsin.release_accountant.core.life import CLOSING, OVER

S = CustodyState
W = WorktreeState

PAST_MAX = 40
"""Decisions kept beside a custody; older ones stand in the ledger."""

START = "start"
"""The step of the order that starts an agent; its refusal leaves nothing behind."""

WORKER_THERE = "worker_there"
"""Code of a worktree that was kept because another of our workers is to work in it; looked at again when that one is over."""

NOT_THERE = "not_there"
"""Code of its host for a worktree that somebody else has removed."""

SERVICE = Caller(role=Role.SERVICE, name="release-accountant")


class Worktree(msgspec.Struct, frozen=True, kw_only=True):
    """A worktree that was made for this Dispatch, and what became of it. `attempt` grows with each order about it.

    Of a custody that is reused it says what went to the later Dispatch.
    """

    state: W = W.STANDING
    path: str
    why: str = ""
    code: str | None = None
    trash: str | None = None
    until_ms: int | None = None
    next: tuple[str, ...] = ()
    attempt: int = 0


class Terminal(msgspec.Struct, frozen=True, kw_only=True):
    """A terminal, told from every other: a pane of one tmux server life, and the process it was opened with."""

    pane: PaneId
    process: Process | None
    reused_from: str | None = None


class Custody(msgspec.Struct, frozen=True, kw_only=True):
    """What is held true of one. `attempt` grows with each release that is tried, so an answer to an older one is told apart."""

    id: str
    run: str = ""
    task: str = ""
    fence: int = 0
    host: HostId | None = None
    path: str | None = None
    branch: str | None = None
    state: S = S.EXPECTED
    since_ms: int = 0
    why: str = ""
    by: Caller = SERVICE
    terminal: Terminal | None = None
    worktree: Worktree | None = None
    outcome: str | None = None
    on_settle: OnSettle | None = None
    gate: str | None = None
    until_ms: int | None = None
    attempt: int = 0
    person: bool = False  # the release under way was asked for by the person whose it is
    taken: bool = False  # a person has ever taken it over
    removes_worktree: bool = False
    proof: str = ""
    proof_ms: int = 0
    handed_to: str | None = None
    archive: str | None = None
    archive_bytes: int = 0
    forgotten: bool = False
    next: tuple[str, ...] = ()
    past: tuple[Past, ...] = ()

    @property
    def known(self) -> bool:
        """False while nothing is recorded of it."""
        return bool(self.run)

    @property
    def settled(self) -> bool:
        """True when its Dispatch has its outcome."""
        return self.outcome is not None

    @property
    def over(self) -> bool:
        """True when nothing of its terminal is ours to close any more."""
        return self.state in OVER


def blank(custody: str) -> Custody:
    """A custody of which nothing is recorded yet."""
    return Custody(id=custody)


def identity(dispatch: str) -> tuple[str, str, int]:
    """Run, Task and fence of a Dispatch's id; ("", "", 0) for what is none."""
    parts = dispatch.rsplit(".", 2)
    if len(parts) != 3 or not all(parts) or not (parts[2].isascii() and parts[2].isdigit()):
        return "", "", 0
    return parts[0], parts[1], int(parts[2])


def said_by(caller: Caller) -> str:
    """Who it was, for people."""
    return caller.name if caller.role is Role.SERVICE else f"{caller.role.value} {caller.name}"


# ---------------------------------------------------------------- evolve


def evolve(custody: Custody, recorded: CustodyRecorded) -> Custody:
    """The custody after one record."""
    for event in recorded.events:
        custody = after(custody, event, recorded.at_ms)
    return custody


def after(custody: Custody, event: CustodyEvents, at_ms: int) -> Custody:
    """The custody after one event."""
    match event:
        case Expected():
            change = {"run": event.run, "task": event.task, "fence": event.fence, "host": event.host, "path": custody.path or event.path}
            return msgspec.structs.replace(custody, since_ms=custody.since_ms or at_ms, **change)
        case WorktreeReady():
            worktree = Worktree(path=event.path) if event.made else None
            return _replace(custody, host=event.host, path=event.path, branch=event.branch, worktree=custody.worktree or worktree)
        case TerminalMade():
            return _with_terminal(custody, event, at_ms)
        case Settled():
            past = _past(custody, at_ms, "settled", f"its Dispatch is {event.outcome}", SERVICE)
            return _replace(custody, outcome=event.outcome, on_settle=event.on_settle, gate=event.gate, past=past)
        case MovedTo():
            return _moved(custody, event, at_ms)
        case WorktreeDecided():
            return _worktree(custody, event, at_ms)
        case Archived():
            return _replace(custody, archive=event.file, archive_bytes=event.bytes)
        case Forgotten():
            return _replace(custody, forgotten=True)
        case Restored():
            return custody


def _replace(custody: Custody, **changes: Any) -> Custody:
    return msgspec.structs.replace(custody, **changes)


def _past(custody: Custody, at_ms: int, what: str, why: str, by: Caller) -> tuple[Past, ...]:
    return (*custody.past[-(PAST_MAX - 1) :], Past(at_ms=at_ms, what=what, why=why, by=said_by(by)))


def _with_terminal(custody: Custody, event: TerminalMade, at_ms: int) -> Custody:
    made = Worktree(path=event.path) if event.worktree_made else None
    how = f"handed on by {event.reused_from}" if event.reused_from else "made"
    return _replace(
        custody,
        run=event.run,
        task=event.task,
        fence=event.fence,
        host=event.host,
        path=event.path,
        branch=event.branch or custody.branch,
        terminal=Terminal(pane=event.pane, process=event.process, reused_from=event.reused_from),
        worktree=custody.worktree or made,
        past=_past(custody, at_ms, "terminal", f"{how}: pane {event.pane} on {event.host}", SERVICE),
    )


def _moved(custody: Custody, event: MovedTo, at_ms: int) -> Custody:
    by = event.by or SERVICE
    is_closing = event.to in CLOSING
    return _replace(
        custody,
        state=event.to,
        since_ms=at_ms,
        why=event.why,
        by=by,
        gate=event.gate,
        until_ms=event.until_ms,
        attempt=custody.attempt if event.attempt is None else event.attempt,
        person=event.person if is_closing else False,
        removes_worktree=event.worktree if is_closing else custody.removes_worktree,
        taken=custody.taken or event.to is S.TAKEN_OVER,
        proof=event.proof,
        proof_ms=event.proof_ms or custody.proof_ms,
        handed_to=event.dispatch or custody.handed_to,
        next=event.next,
        past=_past(custody, at_ms, event.to.value, event.why, by),
    )


def _worktree(custody: Custody, event: WorktreeDecided, at_ms: int) -> Custody:
    before = custody.worktree
    if before is None:
        return custody
    by = event.by or SERVICE
    return _replace(
        custody,
        worktree=Worktree(
            state=event.what,
            path=before.path,
            why=event.why,
            code=event.code,
            trash=event.trash or before.trash,
            until_ms=event.until_ms or (before.until_ms if event.what is W.RETURNING else None),
            next=event.next,
            attempt=before.attempt if event.attempt is None else event.attempt,
        ),
        past=_past(custody, at_ms, f"worktree {event.what.value}", event.why, by),
    )


def release_step(custody: Custody) -> str:
    """The step of the order that ends it; another one for each attempt."""
    return f"release-{custody.attempt}"


def removal_step(worktree: Worktree) -> str:
    """The step of the order that moves its worktree to the trash."""
    return f"remove-{worktree.attempt}"


def return_step(worktree: Worktree) -> str:
    """The step of the order that brings it back."""
    return f"restore-{worktree.attempt}"
