"""What is known of every Run, read from the Runs' ledger and kept in a view of our own, so that a lost log costs nothing."""

import asyncio
from uuid import uuid4

import msgspec

from tocsin.bus.bus import Bus, Heard, Reading
from tocsin.contract.faults import Unavailable
from tocsin.contract.run import RunPurged, RunRecorded
from tocsin.contract.subjects import RUN_EVENT
from tocsin.ledger.family import Family, Layout
from tocsin.ledger.receipts import Receipts
from tocsin.release_accountant.core.work import Work, evolve
from tocsin.runtime.logs import log
from tocsin.store.views import Mark, Views, Written

VIEW = "custody.work"
"""Name of the views: one for each Run, and POSITION."""

POSITION = "-"
"""The view whose sequence says up to which record of the log the others are written."""

FLUSH_S = 1.0
RETRY_S = 0.5
CATCH_UP_S_MAX = 5.0


class Works:
    """All Runs, as far as their ledger has been read."""

    def __init__(self, bus: Bus, views: Views) -> None:
        self._bus = bus
        self._views = views
        family: Family[Work, RunRecorded] = Family(RUN_EVENT, Work, lambda run: Work(), evolve)
        self._layout = Layout(family)
        self._works: dict[str, Work] = {}
        self._stored: dict[str, tuple[Work, int]] = {}  # what a view holds, and its sequence
        self._purged: set[str] = set()
        self._position = 0
        self._stored_position = 0
        self._birth = ""
        self._mark: Mark | None = None
        self._moved = asyncio.Condition()

    def of(self, run: str) -> Work | None:
        """What is known of a Run; None when nothing is."""
        return self._works.get(run)

    async def read_to(self, seq: int) -> None:
        """Return once the record `seq` is read. Raises Unavailable when that takes too long."""
        try:
            async with asyncio.timeout(CATCH_UP_S_MAX), self._moved:
                await self._moved.wait_for(lambda: self._position >= seq)
        except TimeoutError as error:
            raise Unavailable("the ledger of Runs is still being read") from error

    async def run(self) -> None:
        """Read for as long as the service lives."""
        await self._load()
        while True:
            try:
                await self._follow()
            except Unavailable as error:
                log("works.waiting", "warning", reason=str(error))
                await asyncio.sleep(RETRY_S)

    async def _follow(self) -> None:
        """Read until the log turns out to be another one; that one is read from its beginning."""
        birth = await self._bus.birth(RUN_EVENT)
        if birth != self._birth:
            # What is known stays: the new log is seeded with what its dispatcher knew, which is no event to us.
            log("works.new_log", before=self._birth, after=birth)
            self._birth, self._position, self._stored_position = birth, 0, 0
        async with self._bus.read(RUN_EVENT, after=self._position) as reading:
            task = asyncio.create_task(self._read(reading))
            try:
                await self._keep_views(task)
            finally:
                task.cancel()
                await asyncio.wait({task})

    async def _read(self, reading: Reading[RunRecorded]) -> None:
        async for batch in reading:
            for heard in batch:
                self._fold(heard)
            async with self._moved:
                self._moved.notify_all()

    def _fold(self, heard: Heard[RunRecorded]) -> None:
        recorded = heard.body
        if any(isinstance(event, RunPurged) for event in recorded.events):
            self._works.pop(recorded.run, None)
            self._purged.add(recorded.run)
        else:
            self._works[recorded.run] = evolve(self._works.get(recorded.run, Work()), recorded)
        self._position = heard.seq

    # -------------------------------------------------------------- views

    async def _load(self) -> None:
        try:
            self._mark = await self._views.mark(uuid4().hex)
            async for view in self._views.all():
                if view.id == POSITION:
                    self._position, self._birth = view.seq, view.log
                    continue
                try:
                    work, _ = self._layout.restore(view.id, view.parts)
                except (msgspec.MsgspecError, ValueError, TypeError) as error:
                    log("works.view_unreadable", "warning", run=view.id, reason=str(error))
                    self._works.clear()
                    self._position = 0
                    return
                self._works[view.id] = work
                self._stored[view.id] = (work, view.seq)
            self._stored_position = self._position
        except Unavailable as error:
            log("store.unavailable", "warning", reason=str(error))

    async def _keep_views(self, reading: "asyncio.Task[None]") -> None:
        """Write what has changed, behind the decisions; return when the log is no longer the one that is read."""
        returns = self._bus.returns
        while True:
            await asyncio.wait({reading}, timeout=FLUSH_S)
            if reading.done():
                reading.result()
                return
            try:
                if self._bus.returns != returns and await self._bus.birth(RUN_EVENT) != self._birth:
                    return
                returns = self._bus.returns
                await self._flush()
            except Unavailable as error:
                log("works.waiting", "warning", reason=str(error))

    async def _flush(self) -> None:
        if self._position == self._stored_position and not self._purged:
            return
        position = self._position
        life = self._mark.life if self._mark else uuid4().hex
        mark = await self._views.mark(life, self._birth, self._mark.log if self._mark else "")
        if mark.log != self._birth:
            return
        if mark != self._mark:
            # The store or the log began anew: all of it is to be written.
            self._mark, self._stored = mark, {}
        for run in list(self._purged):
            await self._views.forget(run)
            self._purged.discard(run)
        for run, work in list(self._works.items()):
            if self._stored.get(run, (None, 0))[0] is not work and not await self._write(mark, run, work, position):
                return
        await self._views.write(mark, POSITION, position, {}, (), -1)
        self._stored_position = position

    async def _write(self, mark: Mark, run: str, work: Work, position: int) -> bool:
        """Bring the view of one Run up to now; False when the store has begun anew."""
        stored, base = self._stored.get(run, (None, -1))
        parts, gone = self._layout.changes(work, Receipts(), None if stored is None else (stored, Receipts()))
        written = await self._views.write(mark, run, position, parts, gone, base)
        if written is Written.HOLE:
            parts, gone = self._layout.changes(work, Receipts(), None)
            written = await self._views.write(mark, run, position, parts, gone, -1)
        if written is Written.WIPED:
            return False
        self._stored[run] = (work, position)
        return True
