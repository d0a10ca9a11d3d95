"""Ends exactly the processes of one agent, and proves it."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tocsin.contract.messages import Process
from tocsin.pane_host.core.tree import MARK, family, has
from tocsin.pane_host.processes import Table
from tocsin.runtime.instance import Identity, alive, identify

ASKED_S = 5.0
"""How long processes that were asked to end (SIGTERM) have for it."""

FORCED_S = 5.0
"""How long the system has to end what it was told to (SIGKILL)."""

LOOK_S = 0.05


@dataclass(frozen=True, slots=True)
class Found:
    """One process of an agent."""

    process: Process
    program: str


@dataclass
class Ending:
    """What came of ending a tree. `left` is empty when all are confirmed gone."""

    ended: dict[int, Found] = field(default_factory=dict)
    left: list[Found] = field(default_factory=list)
    unseen: str | None = None  # why the process table could not be read

    @property
    def confirmed(self) -> bool:
        """True when a look at the whole table found nothing of it any more."""
        return not self.left and self.unseen is None


def carrying(**variables: str) -> set[int]:
    """Processes of this user whose environment has exactly these variables."""
    found: set[int] = set()
    if sys.platform == "linux":
        for name in os.listdir("/proc"):  # noqa: PTH208
            if name.isdigit():
                with contextlib.suppress(OSError):
                    environment = Path(f"/proc/{name}/environ").read_bytes()
                    if all(has(environment, variable, value) for variable, value in variables.items()):
                        found.add(int(name))
        return found
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if variables.items() <= process.environ().items():
                found.add(process.pid)
    return found


def _program(pid: int) -> str:
    try:
        return str(psutil.Process(pid).name())
    except (psutil.Error, OSError):
        return "?"


@dataclass(frozen=True)
class Trees:
    """Looks at and ends process trees of this boot."""

    table: Table
    boot: str

    def process_of(self, identity: Identity | None) -> Process | None:
        """A runner's or agent's identity as everybody writes it, whether or not it still runs; None for one of another boot."""
        if identity is None or not identity.started:
            return None
        if sys.platform != "linux":
            return Process(pid=identity.pid, started_ms=round(float(identity.started) * 1000), boot=self.boot)
        boot, _, ticks = identity.started.partition(":")
        me = identify(os.getpid())
        mine_ms = self.table.started_ms(os.getpid())
        if not self.boot.startswith(boot) or me is None or mine_ms is None:
            return None
        # Both count ticks since the same moment of this boot, which the table alone knows on our clock.
        per_s = os.sysconf("SC_CLK_TCK")
        began_ms = mine_ms - int(me.started.partition(":")[2]) * 1000 // per_s
        return Process(pid=identity.pid, started_ms=began_ms + int(ticks) * 1000 // per_s, boot=self.boot)

    def runs(self, process: Process) -> bool:
        """True while exactly this process runs, on this boot."""
        return process.boot == self.boot and self.table.started_ms(process.pid) == process.started_ms

    def look(self, roots: Iterable[Identity | None], mark: str) -> dict[int, Found] | None:
        """All that lives of it now; None when the process table cannot be read."""
        living = [one.pid for one in roots if one is not None and alive(one)]
        try:
            pids = family(self.table.rows(), living, carrying(**{MARK: mark}), {os.getpid()})
        except (OSError, ValueError, subprocess.SubprocessError):
            return None
        found = {}
        for pid in pids:
            started_ms = self.table.started_ms(pid)
            if started_ms is not None:
                found[pid] = Found(Process(pid=pid, started_ms=started_ms, boot=self.boot), _program(pid))
        return found

    def _signal(self, found: Iterable[Found], number: int) -> None:
        for one in found:
            # The number alone is no identity: between the look and now another process may have got it.
            if self.runs(one.process):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(one.process.pid, number)

    async def end(self, roots: Callable[[], Iterable[Identity | None]], mark: str, *, spare: Identity | None = None) -> Ending:
        """End all of it but `spare`: asked first, then forced. `roots` is asked at each look: what is recorded may grow.

        Looks again and again, since what is ended may have started something meanwhile.
        """
        result = Ending()
        began = time.monotonic()
        asked: dict[int, Process] = {}
        while True:
            found = await asyncio.to_thread(self.look, roots(), mark)
            if found is None:
                result.unseen = "the process table could not be read"
                return result
            if spare is not None:
                found.pop(spare.pid, None)
            result.left = list(found.values())
            result.ended |= found
            late_s = time.monotonic() - began
            if not found:
                return result
            if late_s > ASKED_S + FORCED_S:
                for one in result.left:
                    result.ended.pop(one.process.pid, None)
                return result
            if late_s > ASKED_S:
                self._signal(found.values(), signal.SIGKILL)
            else:
                fresh = [one for pid, one in found.items() if asked.get(pid) != one.process]
                asked |= {one.process.pid: one.process for one in fresh}
                self._signal(fresh, signal.SIGTERM)
                # A stopped process hears nothing until it goes on.
                self._signal(fresh, signal.SIGCONT)
            await asyncio.sleep(LOOK_S)
