"""What hosts are to be told: follows from what is recorded, so an order whose saying was lost is said again."""

from tocsin.contract.hosting import HostCommand, HostOrders, ReleaseTerminal, RemoveWorktree, RestoreWorktree, StopAgent
from tocsin.release_accountant.core.custody import Custody, S, W, release_step, removal_step, return_step
from tocsin.release_accountant.core.life import CLOSING


def orders(custody: Custody, now_ms: int) -> tuple[HostCommand, ...]:
    """The orders that stand unanswered, at most one for the terminal and one for the worktree.

    A terminal that nobody has told us of cannot be closed by name: its host ends what it has made of the Dispatch.
    """
    if not custody.host:
        return ()
    standing: list[tuple[str, HostOrders]] = []
    if custody.state in CLOSING:
        terminal = custody.terminal
        end = ReleaseTerminal(pane=terminal.pane, process=terminal.process) if terminal else StopAgent()
        standing.append((release_step(custody), end))
    worktree = custody.worktree
    # Not while its terminal lives, or was found alive again.
    if worktree is not None and worktree.state is W.LEAVING and custody.state is S.RELEASED:
        standing.append((removal_step(worktree), RemoveWorktree(path=worktree.path, branch=custody.branch)))
    if worktree is not None and worktree.state is W.RETURNING and worktree.trash is not None:
        standing.append((return_step(worktree), RestoreWorktree(path=worktree.path, trash=worktree.trash)))
    return tuple(
        HostCommand(host=custody.host, dispatch=custody.id, fence=custody.fence, step=step, order=order, at_ms=now_ms)
        for step, order in standing
    )
