"""Views of a ledger's aggregates: a hash each, written so that an older one never overwrites a newer one.

The truth is the log; a view is what a service need not fold again at its start, and what the log is seeded from when it
is lost. Each names the log (by its birth) and the sequence that it is true of.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, cast

from redis.asyncio import Redis
from redis.exceptions import RedisError

from tocsin.contract.faults import Unavailable
from tocsin.store.keys import view, view_marker, view_set

SCRIPTS = Path(__file__).parent

LOADED_AT_ONCE = 64
"""Views read in one pipeline: a few megabytes at most."""

LOG, SEQ = "~log", "~seq"


class Written(StrEnum):
    """What became of a write."""

    WRITTEN = "WRITTEN"
    OLDER = "OLDER"  # the view is as new already
    HOLE = "HOLE"  # the view is older than what the changes start from: write all of it
    WIPED = "WIPED"  # the store has begun anew, or its views are of another log: ask for the mark again


class Mark(NamedTuple):
    """The life of the store, and the log that its views are of ("": none yet)."""

    life: str
    log: str


class View(NamedTuple):
    """One view as it is stored."""

    id: str
    log: str
    seq: int
    parts: dict[str, bytes]


class Views:
    """All views of one family. Every method raises Unavailable when the store does not answer."""

    def __init__(self, redis: Redis, family: str) -> None:
        self._redis = redis
        self._family = family
        self._write = redis.register_script((SCRIPTS / "view_write.lua").read_text())
        self._mark = redis.register_script((SCRIPTS / "view_mark.lua").read_text())

    async def mark(self, life: str, log: str = "", instead_of: str = "") -> Mark:
        """The mark, made with `life` if there is none.

        `log`: what the views are of from now on, if they were of `instead_of` or of nothing.
        """
        try:
            found = await self._mark(keys=[view_marker(self._family)], args=[life, log, instead_of])
        except (RedisError, OSError) as error:
            raise Unavailable(f"the store does not answer: {type(error).__name__}") from error
        return Mark(found[0].decode(), found[1].decode())

    async def all(self) -> AsyncIterator[View]:
        """Every view."""
        try:
            found = cast(set[bytes], await self._redis.smembers(view_set(self._family)))
            ids = sorted(one.decode() for one in found)
            for start in range(0, len(ids), LOADED_AT_ONCE):
                some = ids[start : start + LOADED_AT_ONCE]
                pipeline = self._redis.pipeline(transaction=False)
                for one in some:
                    pipeline.hgetall(view(self._family, one))
                for one, fields in zip(some, await pipeline.execute(), strict=True):
                    if fields:
                        yield _view(one, fields)
        except (RedisError, OSError) as error:
            raise Unavailable(f"the store does not answer: {type(error).__name__}") from error

    async def one(self, aggregate: str) -> View | None:
        """One view, or None."""
        try:
            fields = cast(dict[bytes, bytes], await self._redis.hgetall(view(self._family, aggregate)))
        except (RedisError, OSError) as error:
            raise Unavailable(f"the store does not answer: {type(error).__name__}") from error
        return _view(aggregate, fields) if fields else None

    async def write(
        self, mark: Mark, aggregate: str, seq: int, parts: Mapping[str, bytes], gone: Sequence[str] = (), base: int = -1
    ) -> Written:
        """Bring a view up to `seq`: with what changed since `base`, or with all of it (-1)."""
        arguments: list[str | bytes | int] = [mark.life, mark.log, aggregate, base, seq, len(parts)]
        for name, value in parts.items():
            arguments += [name, value]
        keys = [view_marker(self._family), view(self._family, aggregate), view_set(self._family)]
        try:
            return Written((await self._write(keys=keys, args=[*arguments, *gone])).decode())
        except (RedisError, OSError) as error:
            raise Unavailable(f"the store does not answer: {type(error).__name__}") from error

    async def forget(self, aggregate: str) -> None:
        """Drop a view."""
        try:
            pipeline = self._redis.pipeline(transaction=True)
            pipeline.delete(view(self._family, aggregate))
            pipeline.srem(view_set(self._family), aggregate)
            await pipeline.execute()
        except (RedisError, OSError) as error:
            raise Unavailable(f"the store does not answer: {type(error).__name__}") from error


def _view(aggregate: str, fields: Mapping[bytes, bytes]) -> View:
    named = {name.decode(): value for name, value in fields.items()}
    log, seq = named.pop(LOG, b""), named.pop(SEQ, b"0")
    return View(aggregate, log.decode(), int(seq), named)
