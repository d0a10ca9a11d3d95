"""The installed hook command of one home, in each shell that may be a machine's `sh`."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tocsin.agents.install.machine import HookCommand
from tocsin.agents.spool import PATTERN, Spooled, parse_spooled

SHELLS = [
    words for words in (["sh"], ["dash"], ["bash"], ["busybox", "ash"], ["mksh"], ["zsh", "--emulate", "sh"]) if shutil.which(words[0])
]
"""Each shell of this machine that is somewhere the `sh`."""

RUNTIMES = [name for name in ("node", "bun") if shutil.which(name)]
"""What can run the files that opencode and pi load."""


@dataclass
class Hook:
    """The installed command of one home, run by one shell, and the instance's folder that it reports to."""

    home: Path
    shell: Sequence[str]

    @property
    def state(self) -> Path:
        return self.home / ".local" / "state" / "tocsin"

    @property
    def program(self) -> Path:
        return HookCommand(self.home).path

    def environ(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "HOME": str(self.home)} | dict(more or {})

    def start(self, *words: str, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*self.shell, str(self.program), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd or self.home,
            env=self.environ(env),
        )

    def run(
        self, *words: str, body: bytes = b'{"hook_event_name":"Stop"}', cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> bytes:
        """What it printed. It always ends well and complains of nothing."""
        process = self.start(*(words or ("claude",)), cwd=cwd, env=env)
        printed, complaint = process.communicate(body, timeout=30)
        assert (process.returncode, complaint) == (0, b"")
        return printed

    def files(self) -> list[Path]:
        return sorted((self.state / "spool").glob(PATTERN))

    def spooled(self) -> list[Spooled]:
        events = [parse_spooled(file.read_bytes()) for file in self.files()]
        assert None not in events
        return [event for event in events if event is not None]


def a_hook(home: Path, shell: Sequence[str]) -> Hook:
    home.mkdir(exist_ok=True)
    HookCommand(home).write()
    return Hook(home, shell)
