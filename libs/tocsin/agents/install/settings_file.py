"""Changes a user's settings file without losing anything: read, edited as text, written whole, its first state kept beside it."""

import contextlib
import os
import stat
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tocsin.agents.install.jsonc import Broken
from tocsin.contract.refusals import Code, Refusal

TRIES_MAX = 3
"""How often a file that somebody writes at the same moment is read and merged anew before that is refused."""

BACKUP_SUFFIX = ".before-tocsin"
"""Ends the name of the copy of a file's first state. No agent reads files of that name."""

Edit = Callable[[str | None], str | None]
"""(text, or None where there is no file) -> text, or None where there is to be none. Raises Broken. Called again after a clash."""


@dataclass(frozen=True)
class Change:
    """What became of a file. The texts are as read and as written, None for no file."""

    before: str | None
    after: str | None

    @property
    def changed(self) -> bool:
        """Whether anything was written."""
        return self.before != self.after


def replace_file(path: Path, content: bytes, *, mode: int, expected: bytes | None = None, guarded: bool = False) -> bool:
    """Write `content` to `path` so that a reader finds the old or the new file, whole, also after a power cut.

    With `guarded`, nothing is written when the file no longer holds `expected` (None: no file); then False. Raises OSError.
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        if guarded and read(path) != expected:
            return False
        Path(name).replace(path)
        name = ""
    finally:
        if name:
            Path(name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        # Some file systems cannot sync a folder; the content is on disk either way.
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    return True


def read(path: Path) -> bytes | None:
    """What the file holds, or None when there is none. Raises OSError."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def backup_of(path: Path) -> Path:
    """Where the first state of the file `path` is kept: beside the name that the user knows, not beside a link's target."""
    return path.with_name(path.name + BACKUP_SUFFIX)


def update(path: Path, edit: Edit) -> Change | Refusal:
    """Write what `edit` makes of the file at `path`, its mode kept; through a symlink, which stays one.

    Refuses broken_settings (it is no UTF-8, `edit` raises Broken, or it may not be written) and changed_meanwhile
    (somebody wrote it between each of TRIES_MAX reads and writes). After a refusal the file is as it was found.
    """
    try:
        target = path.resolve()
        for _ in range(TRIES_MAX):
            held = read(target)
            before = None if held is None else held.decode()
            after = edit(before)
            if after == before:
                return Change(before, after)
            if after is None:
                if read(target) == held:
                    target.unlink(missing_ok=True)
                    return Change(before, after)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            mode = 0o600 if held is None else stat.S_IMODE(target.stat().st_mode)
            if replace_file(target, after.encode(), mode=mode, expected=held, guarded=True):
                return Change(before, after)
    except UnicodeDecodeError:
        return Refusal(Code.BROKEN_SETTINGS, f"{path} is not UTF-8; it was left as it is")
    except Broken as broken:
        return Refusal(Code.BROKEN_SETTINGS, f"{path}, line {broken.line}: {broken}; the file was left as it is")
    except (OSError, RuntimeError) as error:  # RuntimeError: a circle of links
        return Refusal(Code.BROKEN_SETTINGS, f"{path}: {getattr(error, 'strerror', None) or error}; the file was left as it is")
    return Refusal(Code.CHANGED_MEANWHILE, f"{path} is being written by somebody else; it was left as they wrote it")
