"""What `git worktree list` said, and what changed about the worktrees of this host."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tocsin.contract.ids import WorktreeId
from tocsin.contract.messages import WorktreeKnown

HEADS = "refs/heads/"


@dataclass(frozen=True, slots=True)
class Listed:
    """One entry of the list. The first entry of a list is the main checkout, or the bare repository."""

    path: str
    branch: str | None
    bare: bool = False
    prunable: bool = False


def read_list(output: str, end: str = "\0") -> list[Listed]:
    """The entries of `git worktree list --porcelain`; `end` is what ends a line (NUL with `-z`). Unknown lines are ignored."""
    entries: list[Listed] = []
    for block in output.split(end + end):
        path, branch, words = "", None, set()
        for line in block.split(end):
            key, _, value = line.partition(" ")
            if key == "worktree":
                path = value
            elif key == "branch":
                branch = value.removeprefix(HEADS)
            words.add(key)
        if path:
            entries.append(Listed(path, branch, "bare" in words, "prunable" in words))
    return entries


def branch_of(head: str) -> str | None:
    """The branch that a HEAD file names, None when it names a commit or nothing."""
    ref = head.strip().removeprefix("ref: ")
    return ref.removeprefix(HEADS) if ref.startswith(HEADS) and not ref.endswith("/.invalid") else None


def name_of(path: str) -> str:
    """What people see: the folder's name. The branch stands beside it and may change; the folder is what they made."""
    return path.rstrip("/").rpartition("/")[2] or "/"


def sayable(path: str) -> bool:
    """False for a path that is no text (bytes that are not UTF-8): it cannot travel on the bus."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def removed(said: Mapping[WorktreeId, WorktreeKnown], found: Collection[WorktreeId], silent: Collection[str]) -> list[WorktreeId]:
    """The worktrees that were said and are not found any more.

    `silent` names repositories (for plain folders: paths) that nobody could look into: nothing is removed there,
    silence is not absence.
    """
    return [
        worktree
        for worktree, known in said.items()
        if worktree not in found and not known.removed and (known.repository or known.path) not in silent
    ]
