"""Saying and storing go side by side: what that may not cost when a holder ends, or is no longer the one, between the two."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from builders import a_hook
from support import Deadline, running, settled
from tocsin.contract.faults import Unavailable
from tocsin.contract.messages import Kind, Origin, PaneStatus, State
from tocsin.contract.subjects import HOOK_REPORTED, PANE_STATUS
from tocsin.runtime.clock import SystemClock
from tocsin.status_store.core.pane import Pane
from tocsin.status_store.service import SURE_MS, StatusStore
from tocsin.status_store.store import PaneStore
from tocsin.store.keys import PANES, pane_field


class SteppedClock(SystemClock):
    """The machine's clock, put forward by what a test says."""

    ahead_ms = 0

    def awake_ms(self) -> int:
        return super().awake_ms() + self.ahead_ms


class FaultyStore(PaneStore):
    """A store whose writes wait while `open` is cleared, and which grants no lease while `silent`."""

    def __init__(self, redis: Any, notes: list[str]) -> None:
        super().__init__(redis, "holder", "boot")
        self.open = asyncio.Event()
        self.open.set()
        self.silent = False
        self.notes = notes

    async def take(self, birth: str, now_ms: int) -> Any:
        if self.silent:
            raise Unavailable("silent")
        return await super().take(birth, now_ms)

    async def write(self, *arguments: Any) -> None:
        self.notes.append("storing")
        await self.open.wait()
        await super().write(*arguments)
        self.notes.append("stored")


class NotingBus:
    """The bus; notes when statuses are said."""

    def __init__(self, bus: Any, notes: list[str]) -> None:
        self._bus, self._notes = bus, notes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bus, name)

    async def say_all(self, subject: Any, bodies: Any) -> None:
        self._notes.append("saying")
        await self._bus.say_all(subject, bodies)


class Holder:
    """One status-store in this process, between the real servers."""

    def __init__(self, bus: Any, redis: Any) -> None:
        self.notes: list[str] = []
        self.bus, self.redis = bus, redis
        self.clock = SteppedClock()
        self.store = FaultyStore(redis, self.notes)

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        async with running(StatusStore(NotingBus(self.bus, self.notes), self.store, self.clock).run()):
            yield

    async def say(self, kind: Kind, number: int) -> None:
        await self.bus.say(HOOK_REPORTED, a_hook(kind, id=f"e{number}", at_ms=self.clock.now_ms(), origin=Origin.PERSON))

    async def shown(self, **expected: Any) -> PaneStatus:
        async for _ in Deadline(15, f"the pane shows {expected}"):
            last = await self.bus.last(PANE_STATUS, "h", "p1")
            if last is not None and all(getattr(last.body, name) == value for name, value in expected.items()):
                return last.body
        raise AssertionError

    async def stored(self) -> Pane:
        return msgspec.json.decode(await self.redis.hget(PANES, pane_field("h", "p1")), type=Pane)


@pytest.fixture
def holder(bus, store):
    return Holder(bus, store)


async def test_a_status_is_said_without_waiting_for_the_store(holder):
    async with holder.at_work():
        await holder.say(Kind.PROMPTED, 1)
        await holder.shown(state=State.WORKING)
        holder.store.open.clear()
        await holder.say(Kind.TURN_ENDED, 2)
        await holder.shown(state=State.DONE)
        assert (await holder.stored()).state is State.WORKING
        holder.store.open.set()
        async for _ in Deadline(10, "it is stored"):
            if (await holder.stored()).state is State.DONE:
                break


async def test_what_was_said_and_not_stored_is_not_taken_back_by_the_next_holder(holder, bus, store):
    async with holder.at_work():
        await holder.say(Kind.PROMPTED, 1)
        await holder.shown(turn=1)
        holder.store.open.clear()
        await holder.say(Kind.TURN_ENDED, 2)
        await holder.shown(state=State.DONE)
    said: list[PaneStatus] = []

    async def hear(message: Any) -> None:
        said.append(msgspec.json.decode(message.data, type=PaneStatus))

    await bus.client.subscribe(PANE_STATUS.all, cb=hear)
    await settled(bus.client)
    following = Holder(bus, store)
    async with following.at_work():
        async for _ in Deadline(10, "the next one has read on and says what it knows"):
            if said:
                break
        await holder.say(Kind.PROMPTED, 3)
        await holder.shown(turn=2)
    assert [status.seq for status in said if status.seq < 2] == []
    assert [past.state for past in said[-1].history] == [State.WORKING, State.DONE]


async def test_a_holder_that_may_have_lost_its_lease_stores_before_it_says(holder):
    async with holder.at_work():
        await holder.say(Kind.PROMPTED, 1)
        await holder.shown(state=State.WORKING)
        async for _ in Deadline(10, "the first one is stored too"):
            if holder.notes.count("stored") == holder.notes.count("storing") > 0:
                break
        holder.store.silent = True
        holder.clock.ahead_ms += SURE_MS
        holder.notes.clear()
        await holder.say(Kind.TURN_ENDED, 2)
        await holder.shown(state=State.DONE)
        assert holder.notes[:3] == ["storing", "stored", "saying"]


async def test_events_that_the_log_no_longer_holds_are_not_waited_for_longer_than_a_while(holder, bus, store):
    async with holder.at_work():
        await holder.say(Kind.PROMPTED, 1)
        await holder.shown(state=State.WORKING)
    await holder.say(Kind.TURN_ENDED, 2)
    for stream in (HOOK_REPORTED.stream, PANE_STATUS.stream):
        await bus.client.jetstream().purge_stream(stream)
    async with Holder(bus, store).at_work():
        assert (await holder.shown(turn=1)).state is State.WORKING
