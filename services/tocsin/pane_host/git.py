"""Asks git, and reads the few files that tell where a checkout's things lie. Never writes into a repository."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tocsin.pane_host.core.checkouts import Listed, branch_of, read_list
from tocsin.pane_host.core.placement import TRASH
from tocsin.pane_host.programs import ask

LIST_S_MAX = 10.0
EXAMINE_S_MAX = 5.0
"""A working tree that takes longer to compare is told as unknown."""

FILE_BYTES_MAX = 4096
"""Of HEAD, `.git` and `commondir` files: one line each."""

OPTIONS = ("--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0")
"""No lock, no file monitor and no hook that a repository's own settings name: a look runs nothing of theirs."""

ENVIRONMENT = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


@dataclass(frozen=True, slots=True)
class Top:
    """Where a checkout lies: its folder, its own git folder, and the one that all checkouts of the repository share. Real paths."""

    path: str
    git_dir: str
    common_dir: str


@dataclass(frozen=True, slots=True)
class Stamp:
    """When a checkout last moved, in nanoseconds: HEAD, index and the log of HEAD; 0 for what is not there."""

    head: int = 0
    index: int = 0
    log: int = 0


def _line(file: Path) -> str | None:
    try:
        with file.open(encoding="utf-8", errors="surrogateescape") as opened:
            return opened.read(FILE_BYTES_MAX).strip()
    except OSError:
        return None


def modified_ns(file: Path) -> int:
    """When a file last changed, 0 when it is not there."""
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0


def is_folder(path: str | Path) -> bool:
    """True for a folder that is there and may be looked at."""
    return os.path.isdir(path)  # noqa: PTH112  (Path.is_dir raises where a folder above may not be entered)


def top_at(folder: str) -> Top | None:
    """The checkout whose top is exactly `folder`, None when it is none (or its git folder is gone)."""
    dot_git = Path(folder, ".git")
    if is_folder(dot_git):
        git_dir = os.path.realpath(dot_git)
    else:
        pointer = _line(dot_git)
        if pointer is None or not pointer.startswith("gitdir:"):
            return None
        git_dir = os.path.realpath(Path(folder, pointer.removeprefix("gitdir:").strip()))
    if not modified_ns(Path(git_dir, "HEAD")):
        return None
    common = _line(Path(git_dir, "commondir"))
    return Top(os.path.realpath(folder), git_dir, os.path.realpath(Path(git_dir, common)) if common else git_dir)


def top_of(folder: str) -> Top | None:
    """The innermost checkout that holds `folder`."""
    return next((top for parent in (folder, *map(str, Path(folder).parents)) if (top := top_at(parent))), None)


def bare_at(folder: str) -> str | None:
    """`folder` itself when it is a bare repository."""
    return os.path.realpath(folder) if all(modified_ns(Path(folder, name)) for name in ("HEAD", "objects", "refs")) else None


def stamp_of(top: Top) -> Stamp:
    """When the checkout last moved."""
    return Stamp(*(modified_ns(Path(top.git_dir, name)) for name in ("HEAD", "index", "logs/HEAD")))


def branch_at(top: Top) -> str | None:
    """The branch as the HEAD file names it, for when git does not answer."""
    return branch_of(_line(Path(top.git_dir, "HEAD")) or "")


def created_ms(top: Top) -> int | None:
    """When the checkout was made: the time of a file that is written then and never again."""
    once = "commondir" if top.git_dir != top.common_dir else "description"
    return modified_ns(Path(top.git_dir, once)) // 1_000_000 or None


class Git:
    """The program git, with a time limit on each question."""

    def __init__(self) -> None:
        self.program = shutil.which("git")
        self._environment: Mapping[str, str] = {
            name: value for name, value in os.environ.items() if not name.startswith("GIT_")
        } | ENVIRONMENT
        self._nul = True  # git before 2.36 knows no -z for the list of worktrees

    async def worktrees(self, common_dir: str) -> list[Listed] | None:
        """The checkouts of a repository, the main one first, without removed ones that wait in the trash; None when git does not answer."""
        words = ("--git-dir", common_dir, "worktree", "list", "--porcelain")
        listed = await self._ask(LIST_S_MAX, *words, *(("-z",) if self._nul else ()))
        if listed is None and self._nul and await self._ask(LIST_S_MAX, *words) is not None:
            self._nul = False
            listed = await self._ask(LIST_S_MAX, *words)
        if listed is None:
            return None
        return [entry for entry in read_list(listed, "\0" if self._nul else "\n") if TRASH not in entry.path.split("/")]

    async def dirty(self, top: str) -> bool | None:
        """Whether anything is changed or new in a checkout; None when git does not tell in time."""
        status = await self._ask(EXAMINE_S_MAX, "-C", top, "status", "--porcelain", "--untracked-files=normal")
        return None if status is None else bool(status)

    async def committed_ms(self, top: str) -> int:
        """When the latest commit of a checkout was made, UTC ms; 0 when there is none or git does not tell."""
        seconds = await self._ask(EXAMINE_S_MAX, "-C", top, "log", "-1", "--format=%ct", "--no-show-signature")
        return int(seconds) * 1000 if seconds and seconds.strip().isdigit() else 0

    async def _ask(self, seconds_max: float, *words: str) -> str | None:
        self.program = self.program or shutil.which("git")
        if self.program is None:
            return None
        answer = await ask([self.program, *OPTIONS, *words], self._environment, seconds_max)
        return os.fsdecode(answer.output) if answer is not None and answer.code == 0 else None
