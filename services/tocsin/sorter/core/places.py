"""In which worktree is a pane? The longest known path, on the same host, that holds the folder it was started in."""

from collections.abc import Iterator

from tocsin.contract.ids import HostId, WorktreeId


def holders(path: str) -> Iterator[str]:
    """`path` and the folders that hold it, the nearest first; none for an unknown path, which is empty."""
    path = path.rstrip("/") or path[:1]
    while path:
        yield path
        if path == "/":
            return
        path = path.rpartition("/")[0] or ("/" if path.startswith("/") else "")


class Places:
    """Known paths, and the panes that stay below them. A look costs the depth of the path, not the number of worktrees."""

    def __init__(self) -> None:
        self._known: dict[tuple[HostId, str], set[WorktreeId]] = {}
        self._below: dict[tuple[HostId, str], set[str]] = {}

    def know(self, host: HostId, path: str, worktree: WorktreeId) -> None:
        """A worktree lies at `path`."""
        self._known.setdefault((host, next(holders(path), "")), set()).add(worktree)

    def forget(self, host: HostId, path: str, worktree: WorktreeId) -> None:
        """It no longer does."""
        place = (host, next(holders(path), ""))
        at = self._known.get(place, set())
        at.discard(worktree)
        if not at:
            self._known.pop(place, None)

    def worktree_of(self, host: HostId, folder: str) -> WorktreeId | None:
        """The worktree that holds `folder`; of two at the same path the one with the smaller id, so that no order of arrival matters."""
        for path in holders(folder):
            if at := self._known.get((host, path)):
                return min(at)
        return None

    def stay(self, pane: str, host: HostId, folder: str) -> None:
        """A pane stays in `folder`."""
        for path in holders(folder):
            self._below.setdefault((host, path), set()).add(pane)

    def leave(self, pane: str, host: HostId, folder: str) -> None:
        """It no longer does."""
        for path in holders(folder):
            panes = self._below.get((host, path), set())
            panes.discard(pane)
            if not panes:
                self._below.pop((host, path), None)

    def below(self, host: HostId, path: str) -> tuple[str, ...]:
        """The panes that stay in `path` or below it."""
        return tuple(self._below.get((host, next(holders(path), "")), ()))
