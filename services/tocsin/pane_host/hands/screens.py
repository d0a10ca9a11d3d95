"""Our own tmux server and what is done to panes: made, shown, written into, closed. Looking at all servers is tmux.py's."""

import os
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tocsin.pane_host.core.composer import Screen
from tocsin.pane_host.programs import Answer, ask
from tocsin.pane_host.tmux import socket_folder
from tocsin.runtime.instance import FILE_MODE

CALL_S_MAX = 5.0

WIDTH, HEIGHT = 200, 50
"""Of a terminal that nobody looks at; it takes the size of whoever attaches."""

HISTORY_LINES = 20_000
ARCHIVE_LINES = 5_000
"""How much of a terminal's output is kept when it ends."""

MARK_OPTION = "@tocsin"
"""The option of a pane that holds its mark."""

UNINHERITED = ("TMUX", "TMUX_PANE", "NATS_URL", "REDIS_URL")
"""What a terminal must not inherit from us, beside every TOCSIN_ variable: addresses may hold a login."""


class Failed(Exception):
    """tmux did not do it. The message is its own first line."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A pane as its server names it."""

    server_pid: int
    number: str
    pid: int


def bare_environment() -> dict[str, str]:
    """Our environment as terminals may have it."""
    return {name: value for name, value in os.environ.items() if name not in UNINHERITED and not name.startswith("TOCSIN_")}


class Screens:
    """tmux, as a hand. `name`: of our own server; other servers are written to by their socket."""

    def __init__(self, name: str) -> None:
        self.socket = os.path.realpath(socket_folder() / name)

    @property
    def program(self) -> str | None:
        """tmux, if it is installed."""
        return shutil.which("tmux")

    async def _ask(self, socket: str, *words: str) -> Answer | None:
        environment = {name: value for name, value in os.environ.items() if name not in ("TMUX", "TMUX_PANE")}
        return await ask([self.program or "tmux", "-u", "-S", socket, *words], environment, CALL_S_MAX)

    async def _do(self, socket: str, *words: str) -> str:
        answer = await self._ask(socket, *words)
        if answer is None:
            raise Failed(f"tmux did not answer within {CALL_S_MAX:g} s")
        if answer.code != 0:
            raise Failed(answer.errors.decode(errors="replace").strip().partition("\n")[0] or f"tmux ended with {answer.code}")
        return answer.output.decode(errors="replace")

    # ---------------------------------------------------------------- make

    async def open(self, session: str, mark: str, cwd: str, argv: Sequence[str]) -> Opened:
        """A new session with one pane that runs `argv`, marked. Raises Failed, also when a session of that name is there."""
        folder = Path(self.socket).parent
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        answer = await ask(
            [
                self.program or "tmux", "-u", "-f", "/dev/null", "-S", self.socket,
                "set-option", "-g", "history-limit", str(HISTORY_LINES), ";",
                "set-option", "-g", "default-terminal", "tmux-256color", ";",
                "set-option", "-s", "escape-time", "20", ";",
                "set-option", "-s", "exit-empty", "on", ";",
                "new-session", "-d", "-s", session, "-n", session, "-x", str(WIDTH), "-y", str(HEIGHT), "-c", cwd,
                "-P", "-F", "#{pid} #{pane_id} #{pane_pid}", *argv, ";",
                "set-option", "-p", "-t", f"={session}:", MARK_OPTION, mark,
            ],
            bare_environment(), CALL_S_MAX,
        )  # fmt: skip
        if answer is None or answer.code != 0:
            why = answer.errors.decode(errors="replace").strip().partition("\n")[0] if answer else ""
            raise Failed(why or "tmux did not start")
        server, number, pid = answer.output.decode().split()
        return Opened(int(server), number, int(pid))

    async def find(self, mark: str) -> Opened | None:
        """The pane with that mark on our server; None when there is none. Raises Failed when the server did not tell."""
        answer = await self._ask(self.socket, "list-panes", "-a", "-F", f"#{{pid}} #{{pane_id}} #{{pane_pid}} #{{{MARK_OPTION}}}")
        if answer is None:
            raise Failed("tmux did not answer")
        for line in answer.output.decode(errors="replace").splitlines():
            words = line.split()
            if len(words) == 4 and words[3] == mark:
                return Opened(int(words[0]), words[1], int(words[2]))
        return None

    # ---------------------------------------------------------------- show

    async def server_of(self, socket: str, number: str) -> int | None:
        """The pid of the server that has that pane now; None when nobody has it."""
        answer = await self._ask(socket, "list-panes", "-a", "-F", "#{pid} #{pane_id}")
        for line in answer.output.decode(errors="replace").splitlines() if answer is not None else ():
            pid, _, pane = line.partition(" ")
            if pane == number:
                return int(pid)
        return None

    async def screen(self, socket: str, number: str) -> Screen | None:
        """What a pane shows now, with styles; None when it cannot be told."""
        end = secrets.token_hex(8)
        words = ("display-message", "-p", "-t", number, "#{cursor_x} #{cursor_y} #{pane_in_mode} #{pane_dead}")
        answer = await self._ask(socket, *words, ";", "capture-pane", "-p", "-e", "-t", number, ";", "display-message", "-p", end)
        if answer is None or answer.code != 0:
            return None
        first, *rows = answer.output.decode(errors="replace").split("\n")
        try:
            x, y, mode, dead = first.split()
            rows = rows[: rows.index(end)]
        except ValueError:
            return None
        return None if dead == "1" else Screen(tuple(rows), int(x), int(y), scrolled=mode not in ("0", ""))

    async def last_key_ms(self, socket: str, number: str) -> int | None:
        """When a person who has that pane before them was last active, UTC ms in steps of a second; None: nobody, or nothing is told."""
        form = "#{client_activity} #{client_created} #{client_control_mode} #{client_readonly} #{pane_id}"
        answer = await self._ask(socket, "list-clients", "-F", form)
        keys = []
        for line in answer.output.decode(errors="replace").splitlines() if answer is not None else ():
            activity, created, control, readonly, pane = line.split()
            if pane == number and control != "1" and readonly != "1" and int(activity) > int(created):
                keys.append(int(activity) * 1000)
        return max(keys, default=None)

    async def history(self, socket: str, number: str) -> bytes | None:
        """All that a pane still knows of its output; None when it is not there."""
        answer = await self._ask(socket, "capture-pane", "-p", "-J", "-S", f"-{ARCHIVE_LINES}", "-t", number)
        return answer.output if answer is not None and answer.code == 0 else None

    # --------------------------------------------------------------- write

    async def paste(self, socket: str, number: str, text: str, beside: Path) -> None:
        """Paste `text` in one piece, in brackets where the program asked for them. Raises Failed. `beside`: a folder of ours."""
        name = f"tocsin-{secrets.token_hex(6)}"
        file = beside / name
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
        try:
            with os.fdopen(handle, "wb") as opened:
                opened.write(text.encode(errors="replace"))
            await self._do(socket, "load-buffer", "-b", name, str(file), ";", "paste-buffer", "-p", "-d", "-b", name, "-t", number)
        finally:
            file.unlink(missing_ok=True)

    async def press(self, socket: str, number: str, *keys: str) -> None:
        """Press keys, by tmux's names. Raises Failed; then nobody knows whether they arrived."""
        await self._do(socket, "send-keys", "-t", number, *keys)

    # --------------------------------------------------------------- close

    async def close(self, socket: str, number: str) -> None:
        """Close one pane. Raises Failed. Its server's identity is the caller's to prove: numbers start again with each server."""
        await self._do(socket, "kill-pane", "-t", number)
