"""The tmux servers of this user: where they listen, and what they show. Looks only; starts no server, attaches to none."""

import asyncio
import os
import secrets
import shutil
import socket
import stat
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tocsin.pane_host.core.listing import Listing, arguments, read
from tocsin.pane_host.core.liveness import Server
from tocsin.pane_host.programs import ask

CALL_S_MAX = 2.0
"""A server that takes longer is busy or stopped: no answer, which proves nothing."""

SILENT_AGAIN_S = 5.0
"""A server that did not answer is asked again after so long, so that it holds up the looks at no other."""


@dataclass(frozen=True, slots=True)
class Look:
    """What came of asking one server. `why` says in one line what was in the way of a complete listing."""

    socket: str
    server: Server | None = None
    listing: Listing | None = None
    why: str | None = None


def socket_folder() -> Path:
    """Where tmux puts its sockets unless it is told otherwise."""
    return Path(os.environ.get("TMUX_TMPDIR") or "/tmp") / f"tmux-{os.getuid()}"  # noqa: S108  (tmux's own default)


def _identity(path: str) -> tuple[int, int] | None:
    """What tells one socket file from the next of that name; None when there is no socket."""
    try:
        file = Path(path).stat()
    except OSError:
        return None
    return (file.st_ino, file.st_ctime_ns) if stat.S_ISSOCK(file.st_mode) else None


def _refuses(path: str) -> bool:
    """True when nobody listens behind the socket file: its server is gone."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False


class Tmux:
    """All servers that can be found: the sockets in tmux's own folder, and those that the settings name."""

    def __init__(self, configured: Sequence[str], started_ms: Callable[[int], int | None]) -> None:
        self._configured = configured
        self._started_ms = started_ms
        self._mark = secrets.token_hex(8)
        self._silent: dict[str, tuple[float, Look]] = {}
        self._servers: dict[str, Server] = {}
        self._deserted: dict[str, tuple[int, int] | None] = {}
        self._environment = {name: value for name, value in os.environ.items() if name not in ("TMUX", "TMUX_PANE")}
        self.program = shutil.which("tmux")

    def sockets(self) -> list[str]:
        """The sockets that may have a server behind them, each once."""
        found = [str(Path(path).expanduser()) for path in self._configured]
        try:
            with os.scandir(socket_folder()) as entries:
                found += [entry.path for entry in entries]
        except OSError:
            pass  # no server was ever started here
        return [path for path in dict.fromkeys(map(os.path.realpath, found)) if self._may_answer(path)]

    def _may_answer(self, path: str) -> bool:
        identity = _identity(path)
        # A server that starts on a deserted socket makes the file anew.
        return identity is not None and identity != self._deserted.get(path)

    async def look(self) -> list[Look]:
        """One look at every server, all at once."""
        if self.program is None:
            self.program = shutil.which("tmux")
        if self.program is None:
            return []
        looks = await asyncio.gather(*map(self._ask, self.sockets()))
        return [look for look in looks if look.socket not in self._deserted]

    async def _ask(self, path: str) -> Look:
        since_s, silence = self._silent.get(path, (0.0, None))
        if silence is not None and time.monotonic() - since_s < SILENT_AGAIN_S:
            return silence
        look = await self._ask_now(path)
        if look.listing is not None:
            self._silent.pop(path, None)
            self._deserted.pop(path, None)
        elif path not in self._deserted:
            self._silent[path] = (time.monotonic(), look)
        return look

    async def _ask_now(self, path: str) -> Look:
        answer = await ask([self.program or "tmux", "-u", "-S", path, *arguments(self._mark)], self._environment, CALL_S_MAX)
        if answer is None:
            return Look(path, why=f"no answer within {CALL_S_MAX:g} s")
        listing = read(answer.output.decode(errors="replace"), self._mark)
        if listing is not None:
            return Look(path, self._server(path, listing.pid), listing, None if listing.complete else "it answered in part")
        if _refuses(path):
            self._deserted[path] = _identity(path)
            return Look(path)
        return Look(path, why=answer.errors.decode(errors="replace").strip().partition("\n")[0] or f"tmux ended with {answer.code}")

    def _server(self, path: str, pid: int) -> Server:
        """The life that has answered. One that died since keeps the start time that it was seen with: the proof of its end."""
        started_ms = self._started_ms(pid)
        before = self._servers.get(path)
        if started_ms is None and before is not None and before.pid == pid:
            return before
        server = self._servers[path] = Server(path, pid, started_ms)
        return server
