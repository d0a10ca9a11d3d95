"""Where an attempt works: names of new worktrees, and which paths are refused.

Folder names are a reversible encoding of the branch. Letters of both cases stand for themselves, so two branches that
differ in case alone would share a folder on some file systems: names are therefore compared without case.
"""

from collections.abc import Iterable
from pathlib import PurePosixPath
from urllib.parse import unquote_to_bytes

from tocsin.contract.ids import digest
from tocsin.contract.refusals import Code, Refusal

FOLDER_BYTES_MAX = 200
"""Most file systems take 255 bytes; the rest is for what tools put behind a name."""

PATH_BYTES_MAX = 1024

BESIDE = "-worktrees"
"""Behind a repository's name: the folder beside it that holds its new worktrees, unless the settings name another."""

TRASH = ".tocsin-trash"
"""In the folder of a worktree: where removed ones wait, on the same file system."""

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.+@=,")


def folder_of_branch(branch: str) -> str | Refusal:
    """The folder name of a branch: `/` is written `~`, and other bytes outside the plain ones as `%XX`.

    Reversible with `branch_of_folder`. Refuses: bad_place, for a name that is empty, too long, no text or begins with a dot.
    """
    try:
        raw = branch.encode()
    except UnicodeEncodeError:
        return Refusal(Code.BAD_PLACE, "the branch's name is no text")
    name = "".join("~" if byte == 0x2F else chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in raw)
    if not name or name.startswith((".", "-")):
        return Refusal(Code.BAD_PLACE, "a branch's name may not be empty or begin with a dot or a dash")
    if len(name) > FOLDER_BYTES_MAX:
        return Refusal(Code.BAD_PLACE, f"the branch's name makes a folder name of {len(name)} bytes, the limit is {FOLDER_BYTES_MAX}")
    return name


def branch_of_folder(name: str) -> str:
    """The branch that `folder_of_branch` encoded."""
    return unquote_to_bytes(name.replace("~", "/")).decode()


def same_name(one: str, other: str) -> bool:
    """True when a file system that ignores case could take the one for the other."""
    return one.casefold() == other.casefold()


def taken(name: str, there: Iterable[str]) -> str | None:
    """The entry that `name` would collide with, or None."""
    return next((entry for entry in there if same_name(name, entry)), None)


def root_for(repository: str, configured: str) -> str:
    """Where new worktrees of a repository go. `repository`: real path of its main checkout; `configured`: TOCSIN_WORKTREES or nothing.

    Beside the repository as a folder of its own name with BESIDE behind it; below a configured folder one folder for each
    repository, told apart by a digest of its path.
    """
    path = PurePosixPath(repository)
    if configured:
        return str(PurePosixPath(configured) / f"{path.name}-{digest(repository)[:8]}")
    return str(path.parent / f"{path.name}{BESIDE}")


def checked_path(path: str | None) -> str | Refusal:
    """A path as it was given, if it may be looked at at all.

    Refuses: bad_place, for one that is missing, relative, climbs with `..`, is too long or no text.
    """
    if not path:
        return Refusal(Code.BAD_PLACE, "the placement names no path")
    if "\0" in path or any(part == ".." for part in path.split("/")) or not path.startswith("/"):
        return Refusal(Code.BAD_PLACE, "a path must be absolute and may not climb with `..`")
    try:
        length = len(path.encode())
    except UnicodeEncodeError:
        return Refusal(Code.BAD_PLACE, "the path is no text")
    if length > PATH_BYTES_MAX:
        return Refusal(Code.BAD_PLACE, f"the path has {length} bytes, the limit is {PATH_BYTES_MAX}")
    return path


def within(path: str, folder: str) -> bool:
    """True when `path` is `folder` or lies in it. Both are real paths."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def may_hold(root: str, repository: str, state: str) -> Refusal | None:
    """Refuses: bad_place, for a folder of new worktrees that lies inside the repository or the state folder. Real paths."""
    for forbidden, what in ((repository, "the repository itself"), (state, "the state folder of Tocsin")):
        if within(root, forbidden):
            return Refusal(Code.BAD_PLACE, f"new worktrees would lie in {what}: set TOCSIN_WORKTREES to another folder")
    return None
