"""Where it is measured: what is asked and looked at of a running chain, whoever started it; and the CPU time of its processes."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import psutil

from tocsin.bus.nats_bus import NatsBus
from tocsin.runtime import instance

LISTENS_S_MAX = 20.0


class NotMeasured(Exception):
    """What was to be measured did not come about; the text says what."""


@dataclass(frozen=True)
class Site:
    """A chain at work. `pids` are its Python processes, `empty` the server that does nothing."""

    state: Path
    bus: NatsBus
    redis_url: str
    ingest_port: int
    empty_port: int
    empty_pid: int
    pids: tuple[int, ...]

    @property
    def credential(self) -> str:
        """That of the hooks."""
        return instance.credential(self.state, instance.HOOK_CREDENTIAL) or ""


def wait_for_file(file: Path, what: str) -> str:
    """The text of a file, as soon as there is some. Raises NotMeasured."""
    until = time.monotonic() + LISTENS_S_MAX
    while time.monotonic() < until:
        if file.exists() and (text := file.read_text()):
            return text
        time.sleep(0.01)
    raise NotMeasured(f"{what} did not come up")


@contextmanager
def empty_server(folder: Path) -> Iterator[tuple[int, int]]:
    """The server that does nothing: its pid and port. Raises NotMeasured."""
    file = folder / "empty.port"
    process = subprocess.Popen([sys.executable, "-P", "-m", "tocsin.cli.bench.empty", str(file)])
    try:
        yield process.pid, int(wait_for_file(file, "the empty server"))
    finally:
        process.kill()
        process.wait()


def cpu_ns(pids: tuple[int, ...]) -> int:
    """CPU time of these processes, their threads included."""
    if sys.platform == "linux":
        # Their CPU-time clocks (clock_getcpuclockid(3)): exact, where /proc counts in hundredths of a second.
        return sum(time.clock_gettime_ns((~pid << 3) | 2) for pid in pids)
    return sum(int(sum(psutil.Process(pid).cpu_times()[:2]) * 1e9) for pid in pids)


async def bare_store(url: str, state: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to the store without a client, logged in."""
    place = urlsplit(url)
    if place.scheme == "unix":
        reader, writer = await asyncio.open_unix_connection(unquote(place.path))
    else:
        reader, writer = await asyncio.open_connection(place.hostname, place.port or 6379)
    password = unquote(place.password) if place.password else instance.credential(state, instance.REDIS_CREDENTIAL)
    if password:
        writer.write(b"AUTH " + password.encode() + b"\r\n")
        if (answer := await reader.readline()) != b"+OK\r\n":
            raise NotMeasured(f"the store refuses the login: {os.fsdecode(answer).strip()}")
    return reader, writer
