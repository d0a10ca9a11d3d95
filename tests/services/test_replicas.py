"""Two dispatchers share their work, and a host has hands: what a handler that outlasts its ack wait, a kill within it and an order that
comes twice amount to. One process and one entry in the history, whoever did it."""

import asyncio
import contextlib
import shutil
import signal
from contextlib import AsyncExitStack

import pytest

from dispatcher_builders import a_spec
from dispatcher_service import Client, a_dispatcher, orders
from hands_builders import a_host, a_script, ends
from support import Deadline
from tocsin.bus import nats_bus
from tocsin.bus.nats_bus import connect
from tocsin.contract.faults import Unavailable
from tocsin.contract.hosting import Saw
from tocsin.contract.run import DispatchMoved, DispatchRequested, Placement, Where
from tocsin.contract.subjects import HOST_CMD, HOST_FACT
from tocsin.dispatcher import service

STARTS = a_script('echo x >> "$TOCSIN_FOLDER/starts"', "exec sleep 300")


@pytest.fixture
async def client(bus):
    return Client(bus)


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    """The ack wait and the look at orders that hosts may not have, of which both take half a minute."""
    monkeypatch.setattr(nats_bus, "JOB_ACK_S", 1.0)
    monkeypatch.setattr(service, "SWEEP_S", 0.2)


def launched(tmp_path):
    """A launch of a program that notes each of its starts."""
    return {"agent": "generic", "command": STARTS, "placement": Placement(where=Where.EXISTING, path=str(tmp_path))}


class Held:
    """A replica that stands still at one place until it is let go: what it works on there takes longer than anybody waits."""

    def __init__(self, dispatcher, what: str, moment: str) -> None:
        self.stands = asyncio.Event()
        self.free = asyncio.Event()
        self.went_on = asyncio.Event()
        self._do = getattr(dispatcher, what)
        self._moment = moment
        setattr(dispatcher, what, self._hold)

    async def _hold(self, *arguments):
        if self._moment == "after":
            await self._do(*arguments)
        self.stands.set()
        await self.free.wait()
        if self._moment == "before":
            await self._do(*arguments)
        self.went_on.set()


async def redelivered(bus) -> int:
    """How many facts were given to a dispatcher again."""
    delivered = (await bus._jetstream.consumer_info(HOST_FACT.stream, service.NAME)).delivered
    return delivered.consumer_seq - delivered.stream_seq


async def until_all_are_done(bus) -> None:
    async for _ in Deadline(10, "every fact is acknowledged"):
        info = await bus._jetstream.consumer_info(HOST_FACT.stream, service.NAME)
        if (info.num_pending, info.num_ack_pending) == (0, 0):
            return


async def one_start(client, server, host, state, dispatch: str) -> None:
    """It runs, once; what is on record of it is there once; and no second order was carried out."""
    started = await host.saw(Saw.AGENT_STARTED, dispatch)
    assert not ends(started.process.pid)
    starts = [file.read_text() for file in state.glob("hands/terminals/*/*/starts")]
    assert starts == ["x\n"]
    assert len(server.tmux("list-panes", "-a").splitlines()) == 1
    assert [event.dispatch for event in await client.events(DispatchRequested)] == [dispatch]
    history = [(event.saw, event.pane, event.process) for event in await client.events(DispatchMoved)]
    assert len(history) == len(set(history))
    assert [saw for saw, *_ in history].count("agent_started") == 1
    assert (await client.until(dispatch, "starting"))["pane"] == started.pane


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_i01_what_a_handler_holds_for_longer_than_its_ack_wait_another_replica_does_and_it_counts_once(
    nats_server, store, bus, client, server, state, tmp_path, moment
):
    """`before`, `after`: where it stands still, seen from what it puts on record."""
    async with a_dispatcher(nats_server, store) as slow, a_host(bus, state) as host:
        held = Held(slow, "_until_recorded", moment)
        await client.create(a_spec("T1"))
        dispatch = (await client.start("T1", **launched(tmp_path)))["dispatch"]
        await asyncio.wait_for(held.stands.wait(), 10)
        async with a_dispatcher(nats_server, store):
            await host.saw(Saw.AGENT_STARTED, dispatch)
            async for _ in Deadline(15, "the other one was given what the slow one holds"):
                if await redelivered(bus):
                    break
            await until_all_are_done(bus)
            assert not held.went_on.is_set()
            await one_start(client, server, host, state, dispatch)
            held.free.set()
            await asyncio.wait_for(held.went_on.wait(), 10)
            await until_all_are_done(bus)
            await one_start(client, server, host, state, dispatch)


@pytest.mark.parametrize(("what", "moment"), [("_say_order", "before"), ("_until_recorded", "before"), ("_until_recorded", "after")])
async def test_i01_what_a_replica_was_killed_in_another_one_takes_over_and_it_is_done_once(
    nats_server, store, bus, client, server, state, tmp_path, what, moment
):
    async with a_host(bus, state) as host, AsyncExitStack() as first:
        one = await first.enter_async_context(a_dispatcher(nats_server, store))
        held = Held(one, what, moment)
        await client.create(a_spec("T2"))
        dispatch = (await client.start("T2", **launched(tmp_path)))["dispatch"]
        await asyncio.wait_for(held.stands.wait(), 10)
        async with a_dispatcher(nats_server, store):
            # It is gone where it stood, and has acknowledged nothing.
            await first.aclose()
            await host.saw(Saw.AGENT_STARTED, dispatch)
            await client.until(dispatch, "starting")
            await until_all_are_done(bus)
            await one_start(client, server, host, state, dispatch)
            assert (await redelivered(bus) > 0) == (what == "_until_recorded")


def without_first_ack(bus, monkeypatch) -> list[int]:
    """The bus puts the first order on record, and its answer is lost; returns where orders came to lie."""
    say, places = bus.say, []

    async def deaf(subject, body, **options):
        place = await say(subject, body, **options)
        if subject is HOST_CMD:
            places.append(place)
            if len(places) == 1:
                raise Unavailable("no ack")
        return place

    monkeypatch.setattr(bus, "say", deaf)
    return places


async def test_i04_an_order_is_one_start_while_the_bus_remembers_its_id_and_when_it_does_not_any_more(
    nats_server, store, bus, client, server, state, tmp_path, monkeypatch
):
    async with a_dispatcher(nats_server, store) as dispatcher:
        places = without_first_ack(dispatcher._bus, monkeypatch)
        await client.create(a_spec("T1"))
        dispatch = (await client.start("T1", **launched(tmp_path)))["dispatch"]
        async for _ in Deadline(10, "the order is said again"):
            if len(places) == 2:
                break
        # It was dropped as the same message: what is answered is the place of the first.
        assert places == [1, 1]
        (order,) = await orders(bus, 1)
        config = (await bus._jetstream.stream_info(HOST_CMD.stream)).config
        await bus._jetstream.update_stream(config.evolve(duplicate_window=0.1))
        async for _ in Deadline(10, "the bus has forgotten the id, and keeps the order a second time"):
            if await bus.say(HOST_CMD, order, msg_id=f"{order.dispatch}.{order.fence}.{order.step}") == 2:
                break
        async with a_host(bus, state) as host:
            await one_start(client, server, host, state, dispatch)
            async for _ in Deadline(10, "the host has taken both"):
                if await bus.end(HOST_CMD) == 0:
                    break
            await one_start(client, server, host, state, dispatch)


async def test_i04_a_bus_that_has_lost_an_order_and_what_came_of_it_is_told_both_again_and_nothing_is_started_again(
    nats_server, store, server, state, tmp_path
):
    async with connect(nats_server.url, name="client") as bus, a_dispatcher(nats_server, store) as dispatcher:
        client = Client(bus)
        held = Held(dispatcher, "_until_recorded", "before")
        async with a_host(bus, state) as host:
            await client.create(a_spec("T1"))
            dispatch = (await client.start("T1", **launched(tmp_path)))["dispatch"]
            await host.saw(Saw.AGENT_STARTED, dispatch)
            await dispatcher._ledger.flush()
            nats_server.end(signal.SIGKILL)
            shutil.rmtree(nats_server.folder / "data")
            nats_server.start()
            async for _ in Deadline(20, "the host tells again what it has observed"):
                with contextlib.suppress(Unavailable):
                    if await bus.end(HOST_FACT):
                        break
            held.free.set()
            await client.until(dispatch, "starting")
            folder = [file.read_text() for file in state.glob("hands/terminals/*/*/starts")]
            assert folder == ["x\n"]
            assert len(server.tmux("list-panes", "-a").splitlines()) == 1
