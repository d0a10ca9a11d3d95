"""Keeps the glance of this machine's status lines true to the list."""

import asyncio
import contextlib
import json
from pathlib import Path

from tocsin.bus.bus import Bus, Unavailable
from tocsin.contract.ids import WorkspaceId
from tocsin.contract.messages import WorktreesMoved, WorktreesSorted
from tocsin.contract.subjects import WORKTREE_MOVED, WORKTREE_SORTED
from tocsin.runtime import glance
from tocsin.runtime.clock import Clock
from tocsin.runtime.instance import Unusable, write_private
from tocsin.runtime.logs import log

PACE_S = 0.5
"""The list is read so often at most: a large one changes faster than anybody looks at a status line."""


def glance_at(body: WorktreesSorted | None, now_ms: int) -> glance.Glance:
    """What a status line shows of a list; None is the list that nobody publishes."""
    if body is None:
        return glance.Glance(now_ms, why="no list yet")
    rows = body.worktrees
    first, second, third, fourth = (sum(row.attention_class == number for row in rows) for number in (1, 2, 3, 4))
    needs = (glance.Need(row.name, row.host, row.reason, row.attention_at) for row in rows[: min(first, glance.NEEDS_MAX)])
    return glance.Glance(now_ms, (first, second, third, fourth), tuple(needs))


class Glances:
    """Writes the glance at each change of the list, and again before the last one is too old to be trusted."""

    def __init__(self, bus: Bus, clock: Clock, workspace: WorkspaceId, state: Path) -> None:
        self._bus = bus
        self._clock = clock
        self._workspace = workspace
        self._state = state
        self._moved = asyncio.Event()
        self._unwritten: str | None = None

    async def run(self) -> None:
        """Keep it until cancelled. While the bus is away nothing is written: the glance ages, and is shown so."""
        async with self._bus.hear(WORKTREE_MOVED, self._hear, self._moved.set):
            while True:
                self._moved.clear()
                with contextlib.suppress(Unavailable):
                    last = await self._bus.last(WORKTREE_SORTED, self._workspace)
                    await asyncio.to_thread(self._write, glance_at(last.body if last else None, self._clock.now_ms()))
                await asyncio.sleep(PACE_S)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(glance.AGAIN_MS / 1000):
                        await self._moved.wait()

    def _hear(self, moved: WorktreesMoved) -> None:
        if moved.workspace == self._workspace:
            self._moved.set()

    def _write(self, now: glance.Glance) -> None:
        try:
            write_private(self._state / glance.FILE, json.dumps(glance.plain(now)).encode() + b"\n")
        except Unusable as error:
            if str(error) != self._unwritten:
                self._unwritten = str(error)
                log("glance.unwritten", "warning", why=self._unwritten)
