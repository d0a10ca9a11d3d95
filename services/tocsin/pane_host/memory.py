"""What pane-host must still know after its own restart: this boot, and the tmux servers whose processes it has seen.

Without it the end of a server could never be proven later, and a process that is still there would seem another one.
"""

import os
from collections.abc import Collection
from pathlib import Path

import msgspec

from tocsin.pane_host.core.liveness import Server
from tocsin.runtime.instance import write_private

FILE = "pane-host.json"

ENDED_WITH_ITS_BOOT = 0


class ServerKnown(msgspec.Struct, frozen=True):
    """One tmux server life whose process was seen."""

    socket: str
    pid: int
    started_ms: int


class Memory(msgspec.Struct, frozen=True):
    """One boot of this machine. `began_ms`: when it began, as first measured, so that start times stay equal when the clock is set."""

    boot: str
    began_ms: int
    servers: tuple[ServerKnown, ...] = ()


def recall(state: Path) -> Memory | None:
    """What an earlier life wrote; None when there is nothing, or it is damaged."""
    try:
        return msgspec.json.decode((state / FILE).read_bytes(), type=Memory)
    except (OSError, msgspec.MsgspecError):
        return None


def of_this_boot(recalled: Memory | None, boot: str, began_ms: int) -> Memory:
    """The memory to go on with. Servers of an earlier boot ended with it: they get a start time that no process has."""
    if recalled is None:
        return Memory(boot, began_ms)
    if recalled.boot == boot:
        return recalled
    return Memory(boot, began_ms, tuple(msgspec.structs.replace(server, started_ms=ENDED_WITH_ITS_BOOT) for server in recalled.servers))


def with_servers(memory: Memory, servers: Collection[Server]) -> Memory:
    """The memory with exactly these servers, as far as their processes can be seen."""
    known = [ServerKnown(one.socket, one.pid, one.started_ms) for one in servers if one.started_ms is not None]
    return msgspec.structs.replace(memory, servers=tuple(sorted(known, key=lambda one: (one.socket, one.pid))))


def remember(state: Path, memory: Memory) -> None:
    """Write it, for the next life. Raises Unusable."""
    write_private(state / FILE, msgspec.json.encode(memory))


def new_life() -> str:
    """A name for this life, under which titles and marks are numbered."""
    return os.urandom(6).hex()
