"""What pane-host can see here, and what not: written beside its memory, read by `tocsin doctor`."""

import asyncio
import os
from pathlib import Path
from typing import Any

import msgspec

from tocsin.runtime.instance import Identity, Unusable, alive, identify, state_folder, write_private

FILE = "pane-host.sight.json"


class ServerSight(msgspec.Struct, frozen=True):
    """One tmux socket: how many panes it showed, or why it showed none."""

    socket: str
    panes: int = 0
    why: str | None = None


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """One look at pane-host itself. `blind` holds one line for a person for each thing that it cannot see."""

    process: Identity | None
    life: str
    host: str
    at_ms: int
    servers: tuple[ServerSight, ...] = ()
    panes: int = 0
    agents: int = 0
    worktrees: int = 0
    repositories: int = 0
    transcripts: int = 0
    bus_away: bool = False
    spool_waiting: int = 0
    spool_delivered: int = 0
    spool_refused: int = 0
    spool_torn: int = 0
    spool_lost: int = 0
    notices: str | None = None  # how this machine shows notices; None: it does not
    notices_failed: str | None = None  # why the last one was not shown
    blind: tuple[str, ...] = ()


def write(state: Path, sight: Sight) -> bool:
    """Leave it for doctor; False when the folder cannot be written."""
    try:
        write_private(state / FILE, msgspec.json.format(msgspec.json.encode(sight)) + b"\n")
    except Unusable:
        return False
    return True


def of_this_process() -> Identity | None:
    """This process, so that a reader can tell whether it still runs."""
    return identify(os.getpid())


def _read(state: Path) -> dict[str, Any]:
    try:
        found = msgspec.json.decode((state / FILE).read_bytes(), type=Sight)
    except (OSError, msgspec.MsgspecError):
        return {"running": False, "blind": ["no pane-host has run on this state folder: tocsin pane-host"]}
    running = found.process is not None and alive(found.process)
    said: dict[str, Any] = msgspec.to_builtins(found)
    if not running:
        said["blind"] = ["pane-host does not run: terminals, worktrees and spooled events of this machine are not looked at"]
    return said | {"running": running}


async def sight(state: Path | None = None) -> dict[str, Any]:
    """What the pane-host of an instance last said of itself, and `running`: whether it still does.

    Keys as in Sight. A pane-host that does not run is itself what cannot be seen; it is never an empty answer.
    """
    return await asyncio.to_thread(_read, state_folder(state))
