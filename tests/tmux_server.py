"""A tmux server of a test's own, in a folder of its own; ended by its own kill-server."""

import os
import pty
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support import Deadline


class TmuxServer:
    """`tmux -L NAME` in a folder of its own. Paths are short: a socket's may have 100 bytes."""

    def __init__(self, name: str = "test") -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tmx", dir="/tmp")).resolve()
        self.name = name
        self.environment = {key: value for key, value in os.environ.items() if key not in ("TMUX", "TMUX_PANE")}
        self.environment |= {"TMUX_TMPDIR": str(self.folder), "LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}
        self.clients: list[tuple[subprocess.Popen[bytes], int]] = []

    @property
    def socket(self) -> str:
        return str(self.folder / f"tmux-{os.getuid()}" / self.name)

    def tmux(self, *words: str) -> str:
        command = ["tmux", "-u", "-f", "/dev/null", "-L", self.name, *words]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=True).stdout.strip()

    def open(self, command: str, folder: Path | str = "/", session: str | None = None) -> str:
        """A new pane (in a new window) that runs `command`; returns its number."""
        where = (
            ["new-session", "-d", "-x", "80", "-y", "24", "-s", session or "main"] if session or not self.runs() else ["new-window", "-d"]
        )
        return self.tmux(*where, "-P", "-F", "#{pane_id}", "-c", str(folder), command)

    def runs(self) -> bool:
        try:
            self.tmux("list-sessions")
        except subprocess.CalledProcessError:
            return False
        return True

    @property
    def pid(self) -> int:
        return int(self.tmux("display-message", "-p", "#{pid}"))

    def pane_pid(self, number: str) -> int:
        return int(self.tmux("display-message", "-p", "-t", number, "#{pane_pid}"))

    def name_of(self, number: str) -> str:
        """The pane's id as everybody writes it."""
        return f"{self.name}.{self.pid}.{number.lstrip('%')}"

    def attach(self, *words: str) -> int:
        """A person at a terminal; returns the descriptor to type into."""
        before = len(self.tmux("list-clients").splitlines())
        master, slave = pty.openpty()
        command = ["tmux", "-u", "-L", self.name, *words, "attach"]
        client = subprocess.Popen(command, env=self.environment, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
        os.close(slave)
        self.clients.append((client, master))
        for _ in Deadline(5, "the client is attached"):
            if len(self.tmux("list-clients").splitlines()) > before:
                return master
        raise AssertionError

    def end(self) -> None:
        """End the server, and only it."""
        if self.runs():
            self.tmux("kill-server")
        for client, master in self.clients:
            client.kill()
            client.wait()
            os.close(master)
        self.clients.clear()

    def close(self) -> None:
        self.end()
        shutil.rmtree(self.folder)


def an_agent(name: str, seconds: int = 300) -> str:
    """A command line whose process calls itself `name`."""
    return f"exec bash -c 'exec -a {name} sleep {seconds}'"


def title(text: str) -> str:
    """What a program prints to set its terminal's title."""
    return f"\\033]2;{text}\\033\\\\"


@contextmanager
def the_tmux(monkeypatch: pytest.MonkeyPatch, name: str = "test") -> Iterator[TmuxServer]:
    """A tmux server that is the one of this process, as a pane-host beside the test finds it."""
    made = TmuxServer(name)
    monkeypatch.setenv("TMUX_TMPDIR", str(made.folder))
    monkeypatch.delenv("TMUX", raising=False)
    try:
        yield made
    finally:
        made.close()
