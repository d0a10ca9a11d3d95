"""What the console keeps in Redis: tickets for a minute, samples for a day. Every method raises Unavailable."""

from typing import cast

import msgspec
from redis.asyncio import Redis
from redis.exceptions import RedisError

from tocsin.console.core.day import SLOT_MS, SLOTS_MAX, Sample, merged, within_a_day
from tocsin.console.core.session import Scope
from tocsin.contract.faults import Unavailable
from tocsin.store import keys

TICKET_MS = 60_000
"""How long a ticket may be exchanged: a browser takes a second to open."""


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """What a ticket is exchanged for."""

    name: str
    scope: Scope


def _away(error: Exception) -> Unavailable:
    return Unavailable(f"the store does not answer: {type(error).__name__}")


class ConsoleStore:
    """Shared by all replicas."""

    def __init__(self, redis: Redis, workspace: str) -> None:
        self._redis = redis
        self._day = keys.day(workspace)

    async def put_ticket(self, digest: str, grant: Grant, lives_ms: int = TICKET_MS) -> None:
        """Remember what the ticket of this digest is good for."""
        try:
            await self._redis.set(keys.ticket(digest), msgspec.json.encode(grant), px=lives_ms)
        except (RedisError, OSError) as error:
            raise _away(error) from error

    async def take_ticket(self, digest: str) -> Grant | None:
        """What it is good for; None when nobody gave it out, or its time is over, or somebody has taken it."""
        try:
            found = cast(bytes | None, await self._redis.getdel(keys.ticket(digest)))
        except (RedisError, OSError) as error:
            raise _away(error) from error
        return msgspec.json.decode(found, type=Grant) if found is not None else None

    async def put_sample(self, sample: Sample) -> None:
        """Keep a sample; what is older than a day goes."""
        try:
            stored = await self._between(sample.slot, sample.slot)
            pipeline = self._redis.pipeline(transaction=True)
            pipeline.zremrangebyscore(self._day, sample.slot, sample.slot)
            pipeline.zadd(self._day, {msgspec.json.encode(merged(stored[-1] if stored else None, sample)): sample.slot})
            pipeline.zremrangebyscore(self._day, "-inf", sample.slot - SLOTS_MAX)
            pipeline.pexpire(self._day, SLOTS_MAX * SLOT_MS)
            await pipeline.execute()
        except (RedisError, OSError) as error:
            raise _away(error) from error

    async def samples(self, now_ms: int) -> list[Sample]:
        """The last 24 hours, oldest first."""
        try:
            return within_a_day(await self._between(now_ms // SLOT_MS - SLOTS_MAX, now_ms // SLOT_MS), now_ms)
        except (RedisError, OSError) as error:
            raise _away(error) from error

    async def _between(self, first: int, last: int) -> list[Sample]:
        found = cast(list[bytes], await self._redis.zrangebyscore(self._day, first, last))
        return [msgspec.json.decode(one, type=Sample) for one in found]
