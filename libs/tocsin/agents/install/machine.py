"""What an installer may know of the machine: the user's home, the environment, which agents are there, our hook command."""

import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path, PurePosixPath

from tocsin.agents.install.settings_file import read, replace_file

HOOK = PurePosixPath(".local/share/tocsin/hook")
"""The hook command below the home. It never moves: Codex switches off hooks whose command line has changed."""

PARK = "park"
"""What the hook command is told, in place of an event, when it is to wait for a wake rather than to report."""

VERSION_S_MAX = 10
"""How long an agent may take to say its version."""


def packaged(name: str) -> str:
    """The text of a file that gets installed."""
    return (resources.files("tocsin.agents.install") / "files" / name).read_text(encoding="utf-8")


@dataclass(frozen=True)
class HookCommand:
    """The program that agents call, and how our entries are told from the user's: by that program's path, never by a name in it."""

    home: Path
    below: PurePosixPath = HOOK
    before: tuple[PurePosixPath, ...] = ()
    """Where earlier versions had it."""

    @property
    def path(self) -> Path:
        """Where it is installed."""
        return self.home / self.below

    def line(self, *words: str) -> str:
        """The command line that calls it."""
        return shlex.join([str(self.path), *words])

    def starts(self, command: object) -> bool:
        """Whether `command` is a line of ours: its program lies where we install, in this home or, in a shared file, in another."""
        words = _words(command)
        return bool(words) and self._is_it(words[0])

    def is_called_by(self, command: object) -> bool:
        """Whether `command` reaches the hook command in any way, as in `sh .../hook claude`."""
        return any(self._is_it(word) for word in _words(command))

    def parks(self, command: object) -> bool:
        """Whether `command` waits for a wake, and so reports nothing."""
        return _words(command)[-1:] == [PARK]

    def _is_it(self, word: str) -> bool:
        parts = PurePosixPath(word).parts
        return any(parts[-len(known.parts) :] == known.parts for known in (self.below, *self.before))

    def write(self) -> None:
        """Install the program (0755), replaced at once where it is not there in this form. Raises OSError."""
        if self.is_current():
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(self.path, packaged("hook").encode(), mode=0o755)

    def is_current(self) -> bool:
        """Whether the installed program is this version's, and can be called. Raises OSError."""
        return read(self.path) == packaged("hook").encode() and self.path.stat().st_mode & 0o777 == 0o755

    def version(self) -> int | None:
        """The version of the installed program; None when there is none, or none of ours."""
        text = read(self.path)
        return None if text is None else version_of(text.decode(errors="replace"))


def version_of(hook: str) -> int | None:
    """The version that the text of a hook command states."""
    found = re.search(r"^# tocsin-hook (\d+)$", hook, re.MULTILINE)
    return int(found[1]) if found else None


def _words(command: object) -> list[str]:
    if not isinstance(command, str):
        return []
    try:
        return shlex.split(command)
    except ValueError:
        return []


@dataclass(frozen=True)
class Machine:
    """Where to look. `environ` names programs (PATH) and the agents' own overrides; empty: defaults below the home alone."""

    home: Path
    environ: Mapping[str, str] = field(default_factory=dict)

    def folder(self, variable: str, default: str, below: str = "") -> Path:
        """An agent's configuration folder: `$variable/below` where that is set, else `default` below the home."""
        override = self.environ.get(variable) if variable else None
        return Path(override).expanduser() / below if override else self.home / default

    def program(self, name: str) -> str | None:
        """The path of a program on PATH, or None."""
        return shutil.which(name, path=self.environ.get("PATH", ""))

    def version(self, name: str) -> tuple[int, ...] | None:
        """What `name --version` says, as numbers; None when it is not there, says none or takes too long."""
        path = self.program(name)
        if path is None:
            return None
        try:
            done = subprocess.run(
                [path, "--version"],
                capture_output=True,
                stdin=subprocess.DEVNULL,
                text=True,
                errors="replace",
                timeout=VERSION_S_MAX,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        found = re.search(r"\d+(?:\.\d+)+", done.stdout)
        return tuple(map(int, found.group().split("."))) if found else None
