"""The neighbours of a release-accountant on a real bus and store: the Run's dispatcher, a host's hands, and callers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import msgspec

from builders import NOW_MS
from custody_builders import A1, COORDINATOR, RUNNER
from support import Deadline, running
from tocsin.bus.bus import Unavailable
from tocsin.bus.nats_bus import connect
from tocsin.contract.custody import CustodyCommand, CustodyRow, CustodyState, ShowCustody
from tocsin.contract.hosting import HostCommand, HostFact, Saw
from tocsin.contract.run import (
    DispatchMoved,
    DispatchRequested,
    DispatchState,
    Launch,
    Placement,
    Receipt,
    Refused,
    RunRecorded,
    TaskAdded,
    TaskMoved,
    TaskSpec,
    Where,
)
from tocsin.contract.subjects import CUSTODY_CMD, CUSTODY_EVENT, HOST_CMD, HOST_FACT, RUN_EVENT
from tocsin.release_accountant.service import Accountant, Pace, end
from tocsin.release_accountant.works import VIEW
from tocsin.runtime.clock import SystemClock
from tocsin.store.views import Views

QUICK = Pace(tick_ms=20, look_ms=40, patience_ms=60_000, again_ms=60_000)
"""Looks often, and gives hosts time."""


class World:
    """The accountant's neighbours: the Run's dispatcher, the host's hands, and callers."""

    def __init__(self, url, bus, store) -> None:
        self.url = url
        self.bus = bus
        self.store = store
        self.orders: list[HostCommand] = []
        self.numbers = count()

    @asynccontextmanager
    async def accountant(self, pace: Pace = QUICK, over=lambda bus: bus) -> AsyncIterator[None]:
        """One replica at work, with a connection of its own, as a process has it. `over`: what its bus is put behind."""
        async with connect(self.url, name="release-accountant") as bus:
            views = Views(self.store, CUSTODY_EVENT.name), Views(self.store, VIEW)
            async with running(Accountant(over(bus), *views, SystemClock(), pace).run()):
                yield

    @asynccontextmanager
    async def hands(self) -> AsyncIterator[None]:
        """Take the orders of host h, in their order."""

        async def take() -> None:
            async with self.bus.work(HOST_CMD, "h", name="test-hands") as jobs:
                async for job in jobs:
                    self.orders.append(job.body)
                    await job.done()

        task = asyncio.create_task(take())
        try:
            yield
        finally:
            await end([task])

    async def run_says(self, *events, run="r1") -> None:
        number = next(self.numbers)
        await self.bus.say(
            RUN_EVENT,
            RunRecorded(
                run=run, request=f"d{number}", caller=COORDINATOR, payload_hash="", events=events, receipt=Receipt(request=""), at_ms=NOW_MS
            ),
        )

    async def host_says(self, saw: Saw, step="start", dispatch=A1, **fields: Any) -> None:
        fence = int(dispatch.rpartition(".")[2])
        defaults: dict[str, Any] = {
            "host": "h",
            "at_ms": NOW_MS + next(self.numbers),
            "pane": "p1",
            "process": RUNNER,
            "path": "/w/build",
            "branch": "b",
        }
        await self.bus.say(HOST_FACT, HostFact(saw=saw, step=step, dispatch=dispatch, fence=fence, **(defaults | fields)))

    async def ask(self, ask, custody=A1, caller=COORDINATOR, request=None):
        command = CustodyCommand(custody=custody, request=request or f"q{next(self.numbers)}", caller=caller, ask=ask, at_ms=NOW_MS)
        async for _ in Deadline(10, "the accountant answers"):
            try:
                answer = await self.bus.ask(CUSTODY_CMD, command, timeout_s=2)
            except Unavailable:
                continue
            if not (isinstance(answer, Refused) and answer.code == "unavailable"):
                return answer
        raise AssertionError

    async def row(self, custody=A1) -> CustodyRow | None:
        answer = await self.ask(ShowCustody(), custody)
        return msgspec.convert(answer.result["row"], CustodyRow) if isinstance(answer, Receipt) else None

    async def becomes(self, state: CustodyState, custody=A1) -> CustodyRow:
        row = None
        async for _ in Deadline(10, f"{custody} is {state}"):
            row = await self.row(custody)
            if row is not None and row.state is state:
                return row
        raise AssertionError(row)

    async def ordered(self, kind: type, number: int = 1) -> HostCommand:
        """The order of that kind, once so many of them were said."""
        async for _ in Deadline(10, f"{number} of {kind.__name__} were said"):
            found = [order for order in self.orders if isinstance(order.order, kind)]
            if len(found) >= number:
                return found[number - 1]
        raise AssertionError

    async def starts(self, dispatch=A1, task="build", made=True, **launch: Any) -> None:
        """An attempt is requested, and its host makes a terminal."""
        await self.run_says(requested(dispatch, task, **launch))
        await self.host_says(Saw.WORKTREE_READY, dispatch=dispatch, made=made)
        await self.host_says(Saw.TERMINAL_MADE, dispatch=dispatch)
        await self.becomes(CustodyState.OWNED, dispatch)

    async def records(self, custody=A1) -> int:
        """How many records the ledger has of it."""
        end, found = await self.bus.end_of(CUSTODY_EVENT, custody), 0
        async with self.bus.read(CUSTODY_EVENT, custody, after=0) as reading:
            async for batch in reading:
                found += len(batch)
                if any(heard.seq >= end for heard in batch):
                    return found
        raise AssertionError


def requested(dispatch, task="build", pane=None, where=Where.NEW_CHILD, path=None):
    launch = Launch(agent="claude", host="h", placement=Placement(where=where, path=path), pane=pane)
    fence = int(dispatch.rpartition(".")[2])
    return DispatchRequested(dispatch=dispatch, task=task, fence=fence, launch=launch, by=COORDINATOR, brief="")


def added(task="build", **fields):
    return TaskAdded(task=TaskSpec(id=task, title=task, spec="", **fields))


def moved(to, task="build"):
    return TaskMoved(task=task, to=to)


def settled(dispatch=A1, to=DispatchState.SUCCEEDED):
    _, task, fence = dispatch.rsplit(".", 2)
    return DispatchMoved(dispatch=dispatch, task=task, fence=int(fence), to=to, saw="reported")
