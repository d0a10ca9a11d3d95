"""The status-store as a process between a real NATS and a real Valkey: what a kill, a wipe or a restart may not cost."""

import asyncio
import shutil
import signal

import msgspec
import pytest
import redis.asyncio as redis

from builders import a_hook
from support import Deadline, Service
from tocsin.bus.nats_bus import NatsBus, connect
from tocsin.contract.messages import Evidence, Kind, Origin, PaneStatus, State
from tocsin.contract.subjects import HOOK_REPORTED, PANE_STATUS
from tocsin.runtime.clock import SystemClock
from tocsin.status_store.core.pane import IDENTITIES_MAX, Pane
from tocsin.store.keys import PANES, STATUS_STORE, pane_field

CLOCK = SystemClock()


@pytest.fixture
def status_store(nats_server, valkey_server, tmp_path):
    with Service("tocsin.status_store", tmp_path / "s", NATS_URL=nats_server.url, REDIS_URL=valkey_server.url) as service:
        yield service


async def say(bus: NatsBus, kind: Kind, number: int | str, age_ms: int = 0, **fields) -> None:
    await bus.say(HOOK_REPORTED, a_hook(kind, id=f"e{number}", at_ms=CLOCK.now_ms() - age_ms, origin=Origin.PERSON, **fields))


async def shown(bus: NatsBus, what: str, pane: str = "p1", **expected) -> PaneStatus:
    """The status of a pane, once it is as expected."""
    async for _ in Deadline(15, what):
        last = await bus.last(PANE_STATUS, "h", pane)
        if last is not None and all(getattr(last.body, name) == value for name, value in expected.items()):
            return last.body
    raise AssertionError


async def stored(store: redis.Redis, pane: str = "p1") -> Pane | None:
    value = await store.hget(PANES, pane_field("h", pane))
    return msgspec.json.decode(value, type=Pane) if value else None


async def test_a_hook_becomes_a_status_that_is_said_and_stored(bus, store, status_store):
    await say(bus, Kind.PROMPTED, 1)
    status = await shown(bus, "the pane works", state=State.WORKING)
    assert (status.evidence, status.agent, status.session, status.turn) == (Evidence.OBSERVED, "claude", "s1", 1)
    async for _ in Deadline(10, "it is stored"):
        pane = await stored(store)
        if pane is not None:
            break
    assert pane.state is State.WORKING


async def test_after_a_kill_the_next_one_goes_on_where_the_log_was_left_and_applies_nothing_twice(bus, store, status_store):
    await say(bus, Kind.PROMPTED, 1)
    await shown(bus, "the first turn", turn=1)
    status_store.end(signal.SIGKILL)
    await say(bus, Kind.TURN_ENDED, 2)
    await say(bus, Kind.PROMPTED, 3)
    status_store.start()
    status = await shown(bus, "both were read", turn=2, state=State.WORKING)
    assert [past.state for past in status.history] == [State.WORKING, State.DONE]


async def test_a_second_instance_stands_by_and_takes_over_from_a_killed_one(bus, status_store, tmp_path):
    await say(bus, Kind.PROMPTED, 1)
    await shown(bus, "the first is active", turn=1)
    with Service("tocsin.status_store", tmp_path / "other", **status_store.environment) as other:
        async for _ in Deadline(10, "the other one is up"):
            if "service.starting" in other.log():
                break
        status_store.end(signal.SIGKILL)
        await say(bus, Kind.TURN_ENDED, 2)
        await shown(bus, "the other one has taken over", state=State.DONE)
        assert "lease.taken" in other.log()


async def test_a_drained_one_lets_the_lease_go(bus, store, status_store):
    await say(bus, Kind.PROMPTED, 1)
    await shown(bus, "it is active", turn=1)
    assert status_store.end(signal.SIGTERM) == 0
    assert await store.hget(STATUS_STORE, "until_ms") == b"0"


async def test_a_wiped_store_is_filled_again_from_memory(bus, store, status_store):
    await say(bus, Kind.PROMPTED, 1)
    await shown(bus, "it works", state=State.WORKING)
    await store.flushall()
    async for _ in Deadline(10, "the store is filled again"):
        if await stored(store) is not None:
            break
    await say(bus, Kind.TURN_ENDED, 2)
    assert (await shown(bus, "it goes on", state=State.DONE)).turn == 1


async def test_a_store_that_was_wiped_while_nobody_ran_is_made_again_from_the_log(bus, store, status_store):
    for number, kind in enumerate([Kind.PROMPTED, Kind.TURN_ENDED, Kind.PROMPTED], 1):
        await say(bus, kind, number)
    await shown(bus, "all is read", turn=2)
    status_store.end(signal.SIGTERM)
    await store.flushall()
    status_store.start()
    async for _ in Deadline(10, "the pane is there again"):
        pane = await stored(store)
        if pane is not None and pane.turn == 2:
            break
    assert [past.state for past in pane.history] == [State.WORKING, State.DONE]


async def test_i06_what_only_the_log_still_knows_is_unconfirmed_until_something_is_heard_of_it(bus, store, status_store):
    await say(bus, Kind.PROMPTED, 1, age_ms=60_000)
    await say(bus, Kind.PROMPTED, 2, age_ms=60_000, pane="p2", source="p2", session="s2")
    await say(bus, Kind.PROMPTED, 3, pane="p3", source="p3", session="s3")
    for pane in ("p1", "p2", "p3"):
        await shown(bus, "all work", pane, state=State.WORKING)
    status_store.end(signal.SIGKILL)
    await store.flushall()
    await bus.client.jetstream().purge_stream(PANE_STATUS.stream)
    status_store.start()
    for pane in ("p1", "p2"):
        await shown(bus, "these are from before the gap", pane, state=State.WORKING, evidence=Evidence.RESTORED)
    await shown(bus, "this one was heard just now", "p3", state=State.WORKING, evidence=Evidence.OBSERVED)
    await say(bus, Kind.TOOL_ENDED, 4)
    await shown(bus, "this one goes on", evidence=Evidence.OBSERVED)
    await shown(bus, "of that one nothing was heard", "p2", evidence=Evidence.RESTORED)


async def test_i08_a_store_whose_memory_others_have_filled_refuses_aloud_and_loses_no_key_of_ours(bus, store, status_store):
    await say(bus, Kind.PROMPTED, 1)
    await shown(bus, "it works", state=State.WORKING)
    await store.set("somebody else's", "x" * 1024)
    keys = await store.dbsize()
    await store.config_set("maxmemory", 1)
    await say(bus, Kind.TURN_ENDED, 2)
    async for _ in Deadline(10, "the log says that nothing can be stored"):
        if "used memory" in status_store.log():
            break
    assert (await stored(store)).state is State.WORKING, "it was neither changed nor evicted"
    assert await store.dbsize() == keys
    await store.config_set("maxmemory", 0)
    await shown(bus, "what was decided meanwhile is stored and said", state=State.DONE)


async def test_i08_many_events_of_forty_panes_leave_one_state_of_bounded_length_for_each_and_nothing_else(bus, store, status_store):
    """Ten thousand events: when a pane has had more of them than anything that is kept of it may hold, it grows no more."""
    panes = [f"p{number}" for number in range(40)]

    async def turns(first: int, count: int) -> None:
        for number in range(first, first + count):
            for kind in (Kind.PROMPTED, Kind.TURN_ENDED):
                said = (say(bus, kind, f"{pane}.{number}.{kind}", source=pane, pane=pane, session=pane) for pane in panes)
                await asyncio.gather(*said)
        for pane in panes:
            await shown(bus, "all are read", pane, turn=first + count - 1, state=State.DONE)

    async def kept() -> tuple[int, int]:
        async for _ in Deadline(10, "all is stored"):
            found = [await stored(store, pane) for pane in panes]
            if all(pane is not None and pane.state is State.DONE for pane in found):
                break
        assert {len(pane.history) for pane in found} == {20}
        assert await store.hlen(PANES) == 40
        return await store.dbsize(), await store.hstrlen(PANES, pane_field("h", "p0"))

    await turns(1, IDENTITIES_MAX)
    keys, length = await kept()
    await turns(IDENTITIES_MAX + 1, IDENTITIES_MAX)
    assert (await kept())[0] == keys
    # But for the digits of its numbers.
    assert (await kept())[1] < length * 1.1


async def test_what_comes_while_the_store_is_away_is_decided_when_it_is_back(bus, store, valkey_server, status_store):
    await say(bus, Kind.PROMPTED, 1)
    await shown(bus, "it works", state=State.WORKING)
    valkey_server.end(signal.SIGKILL)
    await say(bus, Kind.TURN_ENDED, 2)
    await say(bus, Kind.PROMPTED, 3)
    valkey_server.start()
    status = await shown(bus, "it is back", turn=2)
    assert [past.state for past in status.history] == [State.WORKING, State.DONE]


async def test_after_a_restart_of_the_bus_all_last_values_are_said_again(nats_server, store, status_store):
    async with connect(nats_server.url, name="test") as bus:
        await say(bus, Kind.PROMPTED, 1)
        await shown(bus, "it works", state=State.WORKING)
        nats_server.end(signal.SIGKILL)
        nats_server.start()
        async for _ in Deadline(10, "the connection is back"):
            if bus.returns:
                break
        await shown(bus, "said again without any event", state=State.WORKING, turn=1)
        await say(bus, Kind.TURN_ENDED, 2)
        await shown(bus, "and it goes on", state=State.DONE)


async def test_a_log_that_has_begun_anew_is_read_from_its_start(nats_server, store, status_store):
    async with connect(nats_server.url, name="test") as bus:
        for number in range(1, 6):
            await say(bus, Kind.PROMPTED if number % 2 else Kind.TURN_ENDED, number)
        await shown(bus, "five are read", turn=3)
        nats_server.end(signal.SIGKILL)
        shutil.rmtree(nats_server.folder / "data")
        nats_server.start()
        async for _ in Deadline(10, "the connection is back"):
            if bus.returns:
                break
        status = await shown(bus, "the state is a memory now", turn=3, evidence=Evidence.RESTORED)
        assert status.state is State.WORKING
        await say(bus, Kind.TURN_ENDED, 6)
        await shown(bus, "the new log is read", state=State.DONE)


async def test_poison_in_the_log_stops_nothing(bus, status_store):
    await bus.client.publish(HOOK_REPORTED.at("h", "s"), b'{"v": 77}')
    await say(bus, Kind.PROMPTED, 1)
    await shown(bus, "the next one is read", state=State.WORKING)
