"""The lease and the fenced write over a real Valkey: who may write, and into which life of the store."""

import asyncio

import pytest
import redis.asyncio as redis

from support import Deadline
from tocsin.contract.faults import Unavailable
from tocsin.store.fenced import LEASE_MS, Fenced, FencedHash, Wiped
from tocsin.store.keys import PANES, STATUS_STORE

NOW_MS = 1_800_000_000_000


def holder(store: redis.Redis, name: str) -> FencedHash:
    return FencedHash(store, STATUS_STORE, PANES, name)


async def test_one_holds_the_lease_and_the_other_waits(store):
    first, second = holder(store, "a"), holder(store, "b")
    lease = await first.take("birth", NOW_MS)
    assert lease is not None
    assert lease.is_new
    assert await second.take("other", NOW_MS) is None
    renewed = await first.take("other", NOW_MS)
    assert (renewed.fence, renewed.birth, renewed.is_new) == (lease.fence, "birth", False)


async def test_a_lease_that_is_let_go_is_taken_at_once_and_the_fence_grows(store):
    first, second = holder(store, "a"), holder(store, "b")
    lease = await first.take("birth", NOW_MS)
    await first.release(lease)
    taken = await second.take("birth", NOW_MS)
    assert taken.fence > lease.fence


async def test_a_lease_that_is_not_renewed_ends_by_the_stores_own_clock(store):
    first, second = holder(store, "a"), holder(store, "b")
    lease = await first.take("birth", NOW_MS)
    async for _ in Deadline(LEASE_MS / 1000 + 5, "the lease is over"):
        taken = await second.take("birth", 0)
        if taken is not None:
            break
    assert taken.fence == lease.fence + 1, "also when the new holder's clock is far behind"


async def test_what_a_former_holder_still_sends_is_refused_and_changes_nothing(store):
    first, second = holder(store, "a"), holder(store, "b")
    old = await first.take("birth", NOW_MS)
    await first.write(old, {"p": b"1"})
    await first.release(old)
    new = await second.take("birth", NOW_MS)
    await second.write(new, {"p": b"2"})
    with pytest.raises(Fenced):
        await first.write(old, {"p": b"late", "q": b"late"}, beside={"position": "9"})
    fields, beside = await second.read()
    assert fields == {"p": b"2"}
    assert "position" not in beside


async def test_a_write_into_a_store_that_was_wiped_is_refused_until_the_lease_is_taken_again(store):
    mine = holder(store, "a")
    lease = await mine.take("birth one", NOW_MS)
    await store.flushall()
    with pytest.raises(Wiped):
        await mine.write(lease, {"p": b"1"})
    again = await mine.take("birth two", NOW_MS + 1)
    assert (again.is_new, again.birth) == (True, "birth two")
    assert again.fence > lease.fence, "a fence of before the wipe must lose against it"
    await mine.write(again, {"p": b"1"})


async def test_fields_go_and_come_in_one_step(store):
    mine = holder(store, "a")
    lease = await mine.take("birth", NOW_MS)
    await mine.write(lease, {"p": b"1", "q": b"2"}, beside={"position": "7"})
    await mine.write(lease, {"r": b"3"}, gone=["p"], beside={"position": "8"})
    fields, beside = await mine.read()
    assert fields == {"q": b"2", "r": b"3"}
    assert beside["position"] == "8"


async def test_eight_that_ask_at_once_get_one_lease(store):
    leases = await asyncio.gather(*(holder(store, f"h{n}").take("birth", NOW_MS) for n in range(8)))
    assert sum(lease is not None for lease in leases) == 1


async def test_a_store_that_is_away_is_unavailable_and_not_empty(valkey_server):
    client = redis.Redis.from_url(valkey_server.url)
    mine = holder(client, "a")
    valkey_server.end()
    with pytest.raises(Unavailable):
        await mine.read()
    with pytest.raises(Unavailable):
        await mine.take("birth", NOW_MS)
    await client.aclose()
