"""The ledger's side of an audit: what custodies hold of each machine, and what of that is owed."""

from collections.abc import Iterable
from typing import TypedDict

from tocsin.contract.custody import CustodyRow, CustodyState, WorktreeState
from tocsin.contract.ids import HostId

STANDING = frozenset({WorktreeState.STANDING, WorktreeState.KEPT, WorktreeState.RESTORED})
UNCONFIRMED = frozenset({CustodyState.RELEASE_PENDING, CustodyState.RELEASE_UNKNOWN})


class Ground(TypedDict):
    """One machine, by the ledger of custody alone. `host`: None where no machine has answered yet."""

    host: HostId | None
    custodies: int
    terminals: int
    worktrees: int
    unconfirmed: int
    taken_over: int
    obligations: int


def by_host(rows: Iterable[CustodyRow]) -> list[Ground]:
    """Custodies summed up, the machine that owes most first."""
    found: dict[HostId | None, Ground] = {}
    for row in rows:
        if row.host not in found:
            found[row.host] = Ground(host=row.host, custodies=0, terminals=0, worktrees=0, unconfirmed=0, taken_over=0, obligations=0)
        ground = found[row.host]
        ground["custodies"] += 1
        ground["terminals"] += row.pane is not None
        ground["worktrees"] += row.worktree in STANDING
        ground["unconfirmed"] += row.state in UNCONFIRMED
        ground["taken_over"] += row.state is CustodyState.TAKEN_OVER
        ground["obligations"] += row.obligation is not None
    return sorted(found.values(), key=lambda ground: (-ground["obligations"], -ground["unconfirmed"], ground["host"] or ""))
