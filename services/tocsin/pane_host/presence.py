"""Says that this host is there, and keeps its name: the subject of that word is the lease of the name."""

import asyncio
from importlib.metadata import version
from pathlib import Path
from socket import gethostname

import msgspec

from tocsin.bus.bus import Bus, Overtaken, Unavailable
from tocsin.contract.ids import HostId, WorkspaceId, digest
from tocsin.contract.messages import HostKnown
from tocsin.contract.subjects import HOST_KNOWN
from tocsin.pane_host.core.presence import SAY_AGAIN_MS, holds, refusal
from tocsin.runtime.clock import Clock, boot
from tocsin.runtime.logs import log
from tocsin.runtime.skew import Skew

RETRY_S = 1.0
LEAVE_S_MAX = 1.0

MACHINE_ID = Path("/etc/machine-id")


class NameTaken(Exception):
    """Another machine speaks under this host's name; the text names it and the remedy."""


def of_this_machine(host: HostId, workspace: WorkspaceId, state: Path) -> HostKnown:
    """What is said of this machine; its moment and its clock are still open."""
    name = gethostname()
    system = MACHINE_ID.read_text().strip() if MACHINE_ID.exists() else name
    return HostKnown(
        host=host, at_ms=0, machine=digest(system, str(state)), boot=boot(), label=f"{name} ({state})", version=version("tocsin"),
        workspace=workspace,
    )  # fmt: skip


class Presence:
    """The word of one host. `claim` first; `run` says it again until cancelled."""

    def __init__(self, bus: Bus, clock: Clock, skew: Skew, about: HostKnown) -> None:
        self._bus = bus
        self._clock = clock
        self._skew = skew
        self._about = about
        self._seq: int | None = None

    async def claim(self) -> None:
        """Take the name; waits while the bus is away. Raises NameTaken."""
        await self._until_said()
        log("host.present", host=self._about.host, clock_ahead_ms=self._skew.ahead_ms)

    async def run(self) -> None:
        """Say it again, and measure this machine's clock, until cancelled. Raises NameTaken."""
        while True:
            await asyncio.sleep(SAY_AGAIN_MS / 1000)
            await self._until_said()

    async def leave(self) -> None:
        """Give the name back, if it is ours and the bus is there."""
        if self._seq is None:
            return
        try:
            async with asyncio.timeout(LEAVE_S_MAX):
                await self._bus.say(HOST_KNOWN, msgspec.structs.replace(self._now(), left=True), after=self._seq)
        except (Overtaken, Unavailable, TimeoutError):
            log("host.left_unsaid")

    def _now(self) -> HostKnown:
        at_ms = self._skew.in_bus_time(self._clock.now_ms())
        return msgspec.structs.replace(self._about, at_ms=at_ms, clock_ahead_ms=self._skew.ahead_ms)

    async def _until_said(self) -> None:
        """Say it; again and again while the bus is away. Raises NameTaken."""
        while True:
            try:
                await self._measure()
                if self._seq is None:
                    await self._look()
                self._seq = await self._bus.say(HOST_KNOWN, self._now(), after=self._seq)
            except Overtaken:
                self._seq = None  # by another, or by ourselves in a word whose ack was lost
            except Unavailable:
                await asyncio.sleep(RETRY_S)
            else:
                return

    async def _measure(self) -> None:
        before_ms = self._skew.ahead_ms
        self._skew.take(await self._bus.clock_ahead_ms())
        if before_ms != self._skew.ahead_ms:
            log("clock.differs", "warning", ahead_ms=self._skew.ahead_ms)

    async def _look(self) -> None:
        """Who spoke last under this name? Raises NameTaken, Unavailable."""
        last = await self._bus.last(HOST_KNOWN, self._about.host)
        if last is not None and last.body is not None and holds(last.body, self._now()):
            raise NameTaken(refusal(last.body, self._now()))
        self._seq = last.seq if last is not None else 0
