"""Where custodies are found by what is known of them, kept up to date one change at a time."""

from collections.abc import Iterable

from tocsin.release_accountant.core.custody import WORKER_THERE, Custody, S, W
from tocsin.release_accountant.core.orders import orders

Where = tuple[str, str]
"""A host, and a pane or path on it."""


class Register:
    """Custodies by Run, by pane, by path, and those at which somebody must look again."""

    def __init__(self, custodies: Iterable[Custody] = ()) -> None:
        self._known: dict[str, Custody] = {}
        self._runs: dict[str, set[str]] = {}
        self._panes: dict[Where, set[str]] = {}
        self._paths: dict[Where, set[str]] = {}
        self._given: dict[str, str] = {}
        self._waiting: set[str] = set()
        self._ordered: set[str] = set()
        for custody in custodies:
            self.put(custody)

    def put(self, custody: Custody) -> None:
        """Note how it stands now."""
        before = self._known.get(custody.id)
        if before is not None:
            self._index(before, False)
        if custody.known and not custody.forgotten:
            self._known[custody.id] = custody
            self._index(custody, True)
        else:
            self._known.pop(custody.id, None)

    def _index(self, custody: Custody, is_in: bool) -> None:
        host = custody.host or ""
        _change(self._runs.setdefault(custody.run, set()), custody.id, is_in)
        if custody.terminal is not None and not custody.over:
            _change(self._panes.setdefault((host, custody.terminal.pane), set()), custody.id, is_in)
        if custody.path and not custody.over:
            _change(self._paths.setdefault((host, custody.path), set()), custody.id, is_in)
        if custody.handed_to and is_in:
            self._given[custody.handed_to] = custody.id
        _change(self._waiting, custody.id, is_in and waits(custody))
        _change(self._ordered, custody.id, is_in and bool(orders(custody, 0)))

    def of_run(self, run: str) -> list[Custody]:
        """All of one Run."""
        return [self._known[one] for one in sorted(self._runs.get(run, ()))]

    def owner(self, host: str, pane: str) -> Custody | None:
        """Whose a pane is now, if we made it; of several, whoever got it last."""
        found = [self._known[one] for one in self._panes.get((host, pane), ())]
        return max(found, key=lambda custody: (custody.since_ms, custody.id), default=None)

    def given_to(self, dispatch: str) -> Custody | None:
        """The custody whose terminal was handed on to this Dispatch."""
        return self._known.get(self._given.get(dispatch, ""))

    def others_at(self, custody: Custody) -> tuple[str, ...]:
        """Other custodies that are not over and have the same place to work."""
        there = self._paths.get((custody.host or "", custody.path or ""), set()) if custody.path else set()
        return tuple(sorted(there - {custody.id}))

    def waiting(self) -> list[Custody]:
        """Those of which time, a Run or somebody else's end may decide."""
        return [self._known[one] for one in sorted(self._waiting)]

    def ordered(self) -> list[Custody]:
        """Those of which orders stand unanswered."""
        return [self._known[one] for one in sorted(self._ordered)]


def _change(found: set[str], one: str, is_in: bool) -> None:
    if is_in:
        found.add(one)
    else:
        found.discard(one)


def waits(custody: Custody) -> bool:
    """True when something that is no message to it may change what becomes of it."""
    worktree = custody.worktree
    if custody.state is S.RELEASED:
        return worktree is not None and worktree.state is W.KEPT and worktree.code == WORKER_THERE
    is_held = custody.gate is not None and custody.state in (S.RETAINED, S.EXPECTED, S.OWNED)
    return is_held or (custody.state is S.RETAINED and custody.until_ms is not None)
