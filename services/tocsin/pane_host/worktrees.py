"""The worktrees of this host: those of the repositories that the settings name or somebody works in, and plain folders with agents."""

import asyncio
import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tocsin.contract.ids import HostId, WorkspaceId, WorktreeId, worktree_id
from tocsin.contract.messages import WorktreeKnown
from tocsin.pane_host.core.checkouts import Listed, name_of, sayable
from tocsin.pane_host.git import Git, Stamp, Top, bare_at, branch_at, created_ms, is_folder, modified_ns, stamp_of, top_at, top_of
from tocsin.runtime.clock import Clock

REPOSITORIES_MAX = 200
"""Repositories watched at once; beyond it those in which nobody was for longest are let go."""

LIST_EVERY_MS = 30_000
"""git is asked for a repository's worktrees at least so often, for what the cheap looks at its files miss."""

LIST_SPREAD_MS = 1_000
"""With many repositories one is asked so often, so that all of them cost no more than thirty."""

EXAMINE_EVERY_MS = 30_000
TOUCHED_EVERY_MS = 5_000
"""Between two comparisons of one working tree: when nothing is known to have changed, and when something has."""

REST_FACTOR = 200
TOUCHED_REST_FACTOR = 20
FIRST_REST_FACTOR = 2
"""Rest after a comparison, in its own durations: half a percent of one core when all is quiet, a third while starting."""

PLAIN_KEPT_MS = 3_600_000
"""A plain folder without an agent is forgotten after so long: no list of worktrees speaks for it."""


NEVER = Stamp()


@dataclass(frozen=True, slots=True)
class Sought:
    """Folders to look from. `configured`: the settings name them. `agents`: agents work there. `others`: terminals are there."""

    configured: tuple[str, ...] = ()
    agents: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Round:
    """What one look found. `silent`: repositories that could not be looked into, of which nothing may be concluded."""

    found: dict[WorktreeId, WorktreeKnown]
    silent: frozenset[str]


@dataclass
class Checkout:
    """One worktree of a repository, as far as it is known."""

    top: Top
    branch: str | None
    dot_git_ns: int = 0
    stamp: Stamp = NEVER
    created_ms: int | None = None
    dirty: bool | None = None
    committed_ms: int = 0
    examined_ms: int | None = None  # awake time
    examined_stamp: Stamp | None = None
    took_ms: int = 0
    touched: bool = True


@dataclass
class Repository:
    """One repository and its worktrees. Times are awake time."""

    common_dir: str
    named_ms: int
    main: str = ""
    listed: list[Listed] | None = None
    listed_ms: int = -LIST_EVERY_MS
    moved: tuple[int, ...] = ()
    checkouts: dict[str, Checkout] = field(default_factory=dict)
    tops: dict[str, Top] = field(default_factory=dict)  # found from inside, whatever git lists


@dataclass
class Plain:
    """A folder without git in which an agent works."""

    path: str
    named_ms: int


class Worktrees:
    """All that is known of this host's worktrees. Used by one task for rounds and one for comparisons."""

    def __init__(self, git: Git, clock: Clock, host: HostId, workspace: WorkspaceId, home: Path) -> None:
        self._git = git
        self._clock = clock
        self._host = host
        self._workspace = workspace
        self._swallow_nothing = {os.path.realpath(home), "/"}
        self._repositories: dict[str, Repository] = {}
        self._plain: dict[str, Plain] = {}
        self._rest_until_ms = 0

    @property
    def repositories(self) -> int:
        """How many are watched."""
        return len(self._repositories)

    @property
    def checkouts(self) -> int:
        """How many worktrees these have."""
        return sum(len(repository.checkouts) for repository in list(self._repositories.values()))

    async def round(self, sought: Sought) -> Round:
        """Look where the folders lead, and at what changed since the last round. Cheap while nothing does."""
        await asyncio.to_thread(self._survey, sought)
        every_ms = max(LIST_EVERY_MS, LIST_SPREAD_MS * len(self._repositories))
        for repository, moved in await asyncio.to_thread(self._movements):
            if moved != repository.moved or self._clock.awake_ms() - repository.listed_ms >= every_ms:
                repository.moved = moved
                repository.listed = await self._git.worktrees(repository.common_dir)
                repository.listed_ms = self._clock.awake_ms()
        return await asyncio.to_thread(self._assemble)

    def touch(self, folders: Iterable[str]) -> None:
        """Agents have worked in these folders: what was known of changes there may be old."""
        for checkout in self._checkouts():
            prefix = checkout.top.path.rstrip("/") + "/"
            if any(folder == checkout.top.path or folder.startswith(prefix) for folder in folders):
                checkout.touched = True

    def due(self) -> Checkout | None:
        """The worktree to compare now, if any: one that has changed, else the one that was compared longest ago."""
        now_ms = self._clock.awake_ms()

        def age_ms(checkout: Checkout) -> int:
            return EXAMINE_EVERY_MS if checkout.examined_ms is None else now_ms - checkout.examined_ms

        checkouts = self._checkouts()
        for one in checkouts:
            rested = age_ms(one) >= max(TOUCHED_EVERY_MS, one.took_ms * TOUCHED_REST_FACTOR)
            if one.touched and one.examined_ms is not None and rested:
                return one
        if now_ms < self._rest_until_ms:
            return None
        oldest = max(checkouts, key=age_ms, default=None)
        return oldest if oldest is not None and age_ms(oldest) >= EXAMINE_EVERY_MS else None

    async def examine(self, checkout: Checkout) -> None:
        """Compare one working tree, and look when its latest commit was made."""
        began_ms = self._clock.awake_ms()
        first = checkout.examined_ms is None
        checkout.touched = False
        if checkout.examined_stamp != checkout.stamp:
            checkout.examined_stamp = checkout.stamp
            checkout.committed_ms = await self._git.committed_ms(checkout.top.path)
        checkout.dirty = await self._git.dirty(checkout.top.path)
        checkout.examined_ms = self._clock.awake_ms()
        checkout.took_ms = checkout.examined_ms - began_ms
        self._rest_until_ms = checkout.examined_ms + checkout.took_ms * (FIRST_REST_FACTOR if first else REST_FACTOR)

    def tell(self, checkout: Checkout) -> WorktreeKnown | None:
        """What is known of one worktree now; None when it has gone meanwhile."""
        repository = self._repositories.get(checkout.top.common_dir)
        if repository is None or repository.checkouts.get(checkout.top.path) is not checkout:
            return None
        return self._known(repository, checkout, self._clock.now_ms())

    # ------------------------------------------------------------ steps of a round

    def _checkouts(self) -> list[Checkout]:
        # Copies: a round may be at work in a thread.
        return [checkout for repository in list(self._repositories.values()) for checkout in list(repository.checkouts.values())]

    def _survey(self, sought: Sought) -> None:
        """Find the repositories and plain folders that `sought` leads to."""
        now_ms = self._clock.awake_ms()
        for folder in sought.configured:
            bare = bare_at(folder)
            if bare:
                self._name(bare, None, now_ms)
            else:
                self._seek(folder, now_ms, plain=True)
        for folder in sorted(sought.agents):
            self._seek(folder, now_ms, plain=True)
        for folder in sorted(sought.others):
            self._seek(folder, now_ms, plain=False)
        for gone in [key for key in self._repositories if not is_folder(key)]:
            del self._repositories[gone]
        by_use = sorted(self._repositories.values(), key=lambda repository: repository.named_ms, reverse=True)
        for repository in by_use[REPOSITORIES_MAX:]:
            del self._repositories[repository.common_dir]
        for path, folder_known in list(self._plain.items()):
            if not is_folder(path) or now_ms - folder_known.named_ms > PLAIN_KEPT_MS or top_of(path):
                del self._plain[path]

    def _seek(self, folder: str, now_ms: int, *, plain: bool) -> None:
        folder = os.path.realpath(folder)
        if not is_folder(folder):
            return
        top = top_of(folder)
        if top:
            self._name(top.common_dir, top, now_ms)
        elif plain and sayable(folder):
            inside = [
                path for path in self._plain if path not in self._swallow_nothing and (folder + "/").startswith(path.rstrip("/") + "/")
            ]
            self._plain.setdefault(max(inside, key=len, default=folder), Plain(folder, now_ms)).named_ms = now_ms

    def _name(self, common_dir: str, top: Top | None, now_ms: int) -> None:
        repository = self._repositories.setdefault(common_dir, Repository(common_dir, now_ms))
        repository.named_ms = now_ms
        if top:
            repository.tops[top.path] = top

    def _movements(self) -> list[tuple[Repository, tuple[int, ...]]]:
        return [(repository, self._moved(repository)) for repository in list(self._repositories.values())]

    @staticmethod
    def _moved(repository: Repository) -> tuple[int, ...]:
        """What changes when worktrees come, go or change their branch."""
        heads = [Path(checkout.top.git_dir, "HEAD") for checkout in repository.checkouts.values()]
        return tuple(map(modified_ns, [Path(repository.common_dir, "worktrees"), *heads]))

    def _assemble(self) -> Round:
        known: list[WorktreeKnown] = []
        silent: set[str] = set()
        now_ms = self._clock.now_ms()
        for repository in self._repositories.values():
            self._refresh(repository)
            if repository.listed is None:
                silent.add(repository.main)
            known += [self._known(repository, checkout, now_ms) for checkout in repository.checkouts.values()]
        known += [one for path in self._plain if (one := self._known_plain(path, now_ms))]
        return Round({one.worktree: one for one in known}, frozenset(silent))

    def _refresh(self, repository: Repository) -> None:
        listed = repository.listed or []
        tops: dict[str, Top] = {}
        branches: dict[str, str | None] = {}
        for entry in listed:
            if not entry.bare and not entry.prunable and (top := self._top_at(repository, entry.path)):
                tops[top.path], branches[top.path] = top, entry.branch
        repository.tops = {
            path: top for path in repository.tops if (top := self._top_at(repository, path)) and top.common_dir == repository.common_dir
        }
        tops |= repository.tops
        if repository.listed is None:
            # git does not answer: what was known stays, as far as it is there.
            tops |= {path: top for path in repository.checkouts if (top := top_at(path))}
        repository.main = self._main(repository, listed)
        for path in repository.checkouts.keys() - tops.keys():
            del repository.checkouts[path]
        for path, top in tops.items():
            if not sayable(path):
                continue
            checkout = repository.checkouts.setdefault(path, Checkout(top, None, created_ms=created_ms(top)))
            checkout.top, checkout.dot_git_ns = top, modified_ns(Path(path, ".git"))
            checkout.branch = branches[path] if path in branches else branch_at(top)
            stamp = stamp_of(top)
            if stamp != checkout.stamp:
                checkout.stamp, checkout.touched = stamp, True

    @staticmethod
    def _top_at(repository: Repository, path: str) -> Top | None:
        """What `top_at` says; not looked at again while the folder's `.git` is the same."""
        checkout = repository.checkouts.get(path)
        if checkout is not None and checkout.dot_git_ns == modified_ns(Path(path, ".git")) != 0:
            return checkout.top
        return top_at(path)

    @staticmethod
    def _main(repository: Repository, listed: list[Listed]) -> str:
        """The main checkout, or the repository itself where it has none."""
        first = os.path.realpath(listed[0].path) if listed else None
        if first and (first == repository.common_dir or top_at(first)):
            return first
        beside = str(Path(repository.common_dir).parent)
        return beside if top_at(beside) else repository.common_dir

    def _known(self, repository: Repository, checkout: Checkout, now_ms: int) -> WorktreeKnown:
        stamp = checkout.stamp
        moved_ms = max(stamp.head, stamp.index, stamp.log) // 1_000_000
        return WorktreeKnown(
            host=self._host,
            worktree=worktree_id(self._host, checkout.top.path),
            path=checkout.top.path,
            name=name_of(checkout.top.path),
            at_ms=now_ms,
            workspace=self._workspace,
            branch=checkout.branch,
            repository=repository.main,
            # A file's time may lie ahead (an archive, another clock); nothing was used in the future.
            active_ms=min(max(moved_ms, checkout.committed_ms), now_ms),
            created_ms=checkout.created_ms,
            dirty=checkout.dirty,
        )

    def _known_plain(self, path: str, now_ms: int) -> WorktreeKnown | None:
        try:
            file = Path(path).stat()
        except OSError:
            return None  # it went just now
        born_s = getattr(file, "st_birthtime", None)
        return WorktreeKnown(
            host=self._host,
            worktree=worktree_id(self._host, path),
            path=path,
            name=name_of(path),
            at_ms=now_ms,
            workspace=self._workspace,
            active_ms=min(file.st_mtime_ns // 1_000_000, now_ms),
            created_ms=int(born_s * 1000) if born_s else None,
        )


def folders_of(folders: Iterable[str | None]) -> frozenset[str]:
    """The folders that are there to look from."""
    return frozenset(folder for folder in folders if folder and folder.startswith("/"))


def unseen(paths: Collection[str]) -> list[str]:
    """The configured folders that are not there."""
    return [path for path in paths if not is_folder(path)]
