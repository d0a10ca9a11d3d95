"""Where git, disk, processes, tmux and the ledger disagree: every mismatch by name, with the command that resolves it.

What could not be looked into proves nothing: it is told as such, and is no mismatch.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from tocsin.contract.custody import CustodyRow, CustodyState, WorktreeState
from tocsin.contract.ids import HostId, PaneId
from tocsin.contract.messages import Process

S = CustodyState
W = WorktreeState

SAME_START_MS = 2_000
"""Start times of one process, measured twice, differ by less: the boot's own beginning is only known so well."""

HOLDS_TERMINAL = frozenset({S.OWNED, S.TAKEN_OVER, S.RETAINED, S.RELEASE_UNKNOWN})
STANDS = frozenset({W.STANDING, W.KEPT, W.RESTORED})
"""The worktree is held to be where it was made."""

SHOWN_MAX = 6


class Kind(StrEnum):
    """What disagrees."""

    OBLIGATION = "obligation"  # a settled worker without a disposition
    TERMINAL_GONE = "terminal_gone"  # the ledger has a terminal, the machine has none
    LEFT_BEHIND = "left_behind"  # its agent is gone, what it had started lives
    ALIVE_AFTER_RELEASE = "alive_after_release"
    UNOWNED_TERMINAL = "unowned_terminal"  # the machine has a terminal of ours, the ledger has none
    UNOWNED_PROCESS = "unowned_process"
    WORKTREE_MISSING = "worktree_missing"  # the ledger has it, the disk has not
    WORKTREE_LEFT = "worktree_left"  # the disk has it, and nobody has said why it stays
    WORKTREE_UNLISTED = "worktree_unlisted"  # the disk has it, git does not know it
    WORKTREE_UNOWNED = "worktree_unowned"  # made by us, and in no custody
    WORKTREE_PRUNABLE = "worktree_prunable"  # git lists it, the disk has not got it
    TRASH_MISSING = "trash_missing"
    TRASH_OVERDUE = "trash_overdue"


class Mismatch(NamedTuple):
    """One disagreement: about what, why it is one, and the commands that resolve it."""

    kind: Kind
    what: str
    why: str
    next: tuple[str, ...]


class Shell(NamedTuple):
    """A terminal that the machine shows. `dispatch`: the mark of the process it was opened with."""

    pane: PaneId
    locator: str  # "socket-path %7"
    process: Process | None
    dispatch: str | None


class Marked(NamedTuple):
    """A process of this machine that carries the mark of a Dispatch."""

    process: Process
    program: str
    dispatch: str


class Checkout(NamedTuple):
    """A worktree as git lists it. `dispatch`: the mark that we left in it."""

    path: str
    repository: str
    prunable: bool = False
    dispatch: str | None = None


class Ground(NamedTuple):
    """What one machine shows. None: it could not be looked into."""

    host: HostId
    boot: str
    shells: Sequence[Shell] | None
    marked: Sequence[Marked] | None
    running: Collection[Process] | None  # recorded processes that run
    checkouts: Mapping[str, Checkout] | None  # by real path, of all repositories that custodies lead to
    folders: Collection[str]  # recorded paths at which something is


def audit(rows: Sequence[CustodyRow], ground: Ground, now_ms: int) -> list[Mismatch]:
    """Every mismatch, those that need a decision first. `rows`: all custodies; other machines than `ground` speak by their ledger alone."""
    here = [row for row in rows if row.host == ground.host]
    owners = {row.custody: row for row in rows}
    found = [Mismatch(Kind.OBLIGATION, row.custody, row.obligation, row.next) for row in rows if row.obligation]
    found += _terminals(here, ground, now_ms)
    found += _strangers(owners, ground, now_ms)
    found += _worktrees(here, ground, now_ms)
    found += _checkouts(owners, ground)
    return found


def same(one: Process, other: Process) -> bool:
    """True for one process, measured twice."""
    return (one.pid, one.boot) == (other.pid, other.boot) and abs(one.started_ms - other.started_ms) < SAME_START_MS


def owner_of(rows: Mapping[str, CustodyRow], dispatch: str) -> CustodyRow | None:
    """Whose custody what carries the mark of `dispatch` is in now: marks stay as they were when a terminal is handed on."""
    row = rows.get(dispatch)
    while row is not None and row.state is S.REUSED and row.handed_to is not None:
        row = rows.get(row.handed_to)
    return row


def _some(processes: Iterable[Marked], now_ms: int) -> str:
    listed = [f"{one.program} {one.process.pid}, {_age(now_ms - one.process.started_ms)} old" for one in processes]
    rest = len(listed) - SHOWN_MAX
    return "; ".join(listed[:SHOWN_MAX]) + (f" and {rest} more" if rest > 0 else "")


def _age(spent_ms: int) -> str:
    seconds = max(0, spent_ms) // 1000
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def _lives(row: CustodyRow, ground: Ground) -> bool | None:
    """Whether the recorded terminal is there; None when it could not be found out."""
    if row.process is not None:
        if row.process.boot != ground.boot:
            return False
        return None if ground.running is None else any(same(row.process, one) for one in ground.running)
    return None if ground.shells is None else any(shell.pane == row.pane for shell in ground.shells)


def _terminals(rows: Sequence[CustodyRow], ground: Ground, now_ms: int) -> Iterable[Mismatch]:
    by_id = {row.custody: row for row in rows}
    left: dict[str, list[Marked]] = {}
    for one in ground.marked or ():
        owner = owner_of(by_id, one.dispatch)
        if owner is not None:
            left.setdefault(owner.custody, []).append(one)
    for row in rows:
        lives, marked = _lives(row, ground), left.get(row.custody, [])
        release = f"tocsin custody release {row.custody}{' --person' if row.state is S.TAKEN_OVER else ''}"
        if row.state in HOLDS_TERMINAL and row.pane is not None and lives is False and not row.obligation:
            resolve = (release,) if row.outcome else (f"tocsin worker show {row.custody}", f"tocsin worker stop {row.custody}")
            if marked:
                yield Mismatch(
                    Kind.LEFT_BEHIND, row.custody, f"its agent is gone, what it had started lives: {_some(marked, now_ms)}", resolve
                )
            else:
                yield Mismatch(Kind.TERMINAL_GONE, row.custody, f"it is {_word(row)}, and pane {row.pane} is gone", resolve)
        elif row.state is S.RELEASED and (lives or marked):
            what = f": {_some(marked, now_ms)}" if marked else f": pid {row.process.pid}" if row.process else ""
            yield Mismatch(
                Kind.ALIVE_AFTER_RELEASE, row.custody, f"it is released, and something of it lives{what}", (f"{release} --again",)
            )


def _word(row: CustodyRow) -> str:
    return row.state.value.replace("_", " ")


def _strangers(owners: Mapping[str, CustodyRow], ground: Ground, now_ms: int) -> Iterable[Mismatch]:
    """Marked by us, and in nobody's custody."""
    in_shells: set[str] = set()
    for shell in ground.shells or ():
        if shell.dispatch is not None and owner_of(owners, shell.dispatch) is None:
            in_shells.add(shell.dispatch)
            socket, _, number = shell.locator.rpartition(" ")
            yield Mismatch(
                Kind.UNOWNED_TERMINAL, shell.pane, f"it was made for {shell.dispatch}, of which no ledger knows",
                (f"tmux -S {socket} capture-pane -p -t {number}", f"tmux -S {socket} kill-pane -t {number}"),
            )  # fmt: skip
    loose: dict[str, list[Marked]] = {}
    for one in ground.marked or ():
        if owner_of(owners, one.dispatch) is None and one.dispatch not in in_shells:
            loose.setdefault(one.dispatch, []).append(one)
    for dispatch, processes in sorted(loose.items()):
        why = f"started for {dispatch}, of which no ledger knows: {_some(processes, now_ms)}"
        yield Mismatch(Kind.UNOWNED_PROCESS, dispatch, why, (f"kill {' '.join(str(one.process.pid) for one in processes)}",))


def _worktrees(rows: Sequence[CustodyRow], ground: Ground, now_ms: int) -> Iterable[Mismatch]:
    standing = {row.path for row in rows if row.worktree in STANDS}
    for row in rows:
        path, release = row.path, f"tocsin custody release {row.custody}"
        if row.worktree is None or path is None or row.state is S.REUSED:
            continue
        is_there = path in ground.folders
        if row.worktree in STANDS and not is_there:
            resolve = (release,) if row.outcome else (f"tocsin worker show {row.custody}",)
            yield Mismatch(Kind.WORKTREE_MISSING, path, f"it was made for {row.custody}, and is not there", resolve)
        elif row.worktree in STANDS and ground.checkouts is not None and path not in ground.checkouts:
            yield Mismatch(Kind.WORKTREE_UNLISTED, path, f"it was made for {row.custody}, and git does not know it", (f"ls -la {path}",))
        elif row.state is S.RELEASED and row.worktree is W.STANDING and is_there:
            yield Mismatch(Kind.WORKTREE_LEFT, path, f"{row.custody} is released, and nobody has said why it stays", (release,))
        elif row.worktree is W.PURGED and is_there and path not in standing:
            yield Mismatch(Kind.WORKTREE_LEFT, path, f"{row.custody} has no worktree any more, and something is there", (f"ls -la {path}",))
        if row.worktree is W.TRASHED and row.trash is not None:
            is_over = (row.worktree_until_ms or 0) <= now_ms
            if row.trash not in ground.folders and not is_over:
                why = f"the worktree of {row.custody} is to be kept there, and is not"
                yield Mismatch(Kind.TRASH_MISSING, row.trash, why, (f"tocsin custody undo {row.custody}",))
            elif row.trash in ground.folders and is_over:
                why = f"the worktree of {row.custody} was there for its time, and is there still"
                yield Mismatch(Kind.TRASH_OVERDUE, row.trash, why, ("tocsin doctor",))


def _checkouts(owners: Mapping[str, CustodyRow], ground: Ground) -> Iterable[Mismatch]:
    trash = {row.trash for row in owners.values() if row.trash is not None}
    for checkout in (ground.checkouts or {}).values():
        if checkout.prunable:
            why = f"git of {checkout.repository} lists it, and nothing is there"
            yield Mismatch(Kind.WORKTREE_PRUNABLE, checkout.path, why, (f"git -C {checkout.repository} worktree prune -v",))
        elif checkout.dispatch is not None and checkout.dispatch not in owners and checkout.path not in trash:
            why = f"it was made for {checkout.dispatch}, of which no ledger knows"
            resolve = (f"git -C {checkout.path} status", f"git -C {checkout.repository} worktree remove {checkout.path}")
            yield Mismatch(Kind.WORKTREE_UNOWNED, checkout.path, why, resolve)
