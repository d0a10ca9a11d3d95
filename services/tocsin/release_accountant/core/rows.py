"""Custodies as `show` and `list` answer them."""

from collections.abc import Iterable
from typing import Any

import msgspec

from tocsin.contract.custody import LIST_MAX, CustodyRow, CustodyState, ListCustodies
from tocsin.release_accountant.core.custody import Custody, said_by
from tocsin.release_accountant.core.obligations import obligation

NEED = {
    CustodyState.RELEASE_UNKNOWN: 0,
    CustodyState.RELEASE_PENDING: 2,
    CustodyState.RELEASING: 2,
    CustodyState.TAKEN_OVER: 3,
    CustodyState.RETAINED: 4,
    CustodyState.OWNED: 5,
    CustodyState.EXPECTED: 6,
}
"""Who needs somebody first; what is over comes last. What only waits for a decision stands behind what went wrong."""

OWED = 1
OVER = 7


def row(custody: Custody) -> CustodyRow:
    """One custody for people and programs."""
    owed = obligation(custody)
    terminal, worktree = custody.terminal, None if custody.state is CustodyState.REUSED else custody.worktree
    worktree_next = worktree.next if worktree is not None and custody.over else ()
    return CustodyRow(
        custody=custody.id,
        run=custody.run,
        task=custody.task,
        state=custody.state,
        since_ms=custody.since_ms,
        why=custody.why,
        host=custody.host,
        pane=terminal.pane if terminal else None,
        process=terminal.process if terminal else None,
        path=custody.path,
        branch=custody.branch,
        outcome=custody.outcome,
        by=said_by(custody.by),
        gate=custody.gate,
        until_ms=custody.until_ms,
        handed_to=custody.handed_to,
        proof=custody.proof,
        archive=custody.archive,
        worktree=worktree.state if worktree else None,
        worktree_why=worktree.why if worktree else "",
        worktree_until_ms=worktree.until_ms if worktree else None,
        trash=worktree.trash if worktree else None,
        obligation=owed.why if owed else None,
        next=owed.next if owed else (*custody.next, *worktree_next),
    )


def need(custody: Custody) -> tuple[int, int, str]:
    """The order of a list: who needs a decision first, then who has waited longest, then the id."""
    if custody.state in (CustodyState.OWNED, CustodyState.EXPECTED) and custody.settled:
        return OWED, custody.since_ms, custody.id
    return NEED.get(custody.state, OVER), custody.since_ms, custody.id


def fits(custody: Custody, ask: ListCustodies) -> bool:
    """True for a custody that the list is about."""
    return (
        custody.known
        and (ask.run is None or custody.run == ask.run)
        and (ask.host is None or custody.host == ask.host)
        and not (ask.open_only and custody.over)
        and not (ask.obligations_only and obligation(custody) is None)
    )


def page(custodies: Iterable[Custody], ask: ListCustodies) -> dict[str, Any]:
    """The answer to a list: one page, and how many there are in all. A page begins behind the custody `after`."""
    fitting = sorted((custody for custody in custodies if fits(custody, ask)), key=need)
    ids = [custody.id for custody in fitting]
    start = ids.index(ask.after) + 1 if ask.after in ids else 0
    end = start + max(1, min(ask.limit, LIST_MAX))
    return {
        "rows": [msgspec.to_builtins(row(custody)) for custody in fitting[start:end]],
        "total": len(fitting),
        "obligations": sum(obligation(custody) is not None for custody in fitting),
        "next": ids[end - 1] if end < len(ids) else None,
    }


def shown(custody: Custody) -> dict[str, Any]:
    """The answer to `show`."""
    return {"row": msgspec.to_builtins(row(custody)), "history": [msgspec.to_builtins(past) for past in custody.past]}
