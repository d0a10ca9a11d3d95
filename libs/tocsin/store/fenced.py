"""A lease with a fence, and writes that only its current holder can make, into the life of the store that it knows.

The fence grows with each holder, so what a paused or cut-off holder still sends is refused. The birth mark tells a
store that was wiped: the holder must fill it again before it may go on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from tocsin.contract.faults import Unavailable
from tocsin.store.scripts import Script

LEASE_MS = 3_000
"""How long a holder that does not renew is still waited for. A replica takes over within 5 s."""

RENEW_S = 1.0

SCRIPTS = Path(__file__).parent


class Fenced(Exception):
    """Another holder has the lease: step back."""


class Wiped(Exception):
    """The store has begun anew since the lease was taken: fill it again."""


@dataclass(frozen=True)
class Lease:
    """The right to write. `birth` is the store's; `is_new` says that nothing from before is in it."""

    fence: int
    birth: str
    is_new: bool


class FencedHash:
    """A hash that only the holder of a lease may write, and what the holder remembers beside it."""

    def __init__(self, redis: Redis, lease_key: str, hash_key: str, holder: str) -> None:
        self._redis = redis
        self._keys = [lease_key, hash_key]
        self._holder = holder
        self._take = Script(redis, (SCRIPTS / "take_lease.lua").read_text())
        self._write = Script(redis, (SCRIPTS / "fenced_write.lua").read_text())

    async def take(self, birth: str, now_ms: int) -> Lease | None:
        """Take or renew the lease; None while another holds it. `birth` marks the store if nothing has marked it yet.

        Raises Unavailable.
        """
        answer = await self._run(self._take, [self._holder, LEASE_MS, birth, now_ms])
        if answer is None:
            return None
        fence, found, is_new = answer
        return Lease(int(fence), found.decode(), bool(int(is_new)))

    async def write(
        self, lease: Lease, fields: Mapping[str, bytes], gone: Sequence[str] = (), beside: Mapping[str, str] | None = None
    ) -> None:
        """Set `fields`, remove `gone`, and remember `beside`, all or nothing. Raises Fenced, Wiped, Unavailable."""
        arguments: list[str | bytes | int] = [lease.fence, lease.birth, len(fields)]
        for field, value in fields.items():
            arguments += [field, value]
        beside = beside or {}
        arguments.append(len(beside))
        for name, text in beside.items():
            arguments += [name, text]
        arguments += gone
        await self._run(self._write, arguments)

    async def read(self) -> tuple[dict[str, bytes], dict[str, str]]:
        """All fields, and what is remembered beside them. Raises Unavailable."""
        try:
            pipeline = self._redis.pipeline(transaction=True)
            pipeline.hgetall(self._keys[1])
            pipeline.hgetall(self._keys[0])
            fields, beside = await pipeline.execute()
        except (RedisError, OSError) as error:
            raise Unavailable(f"the store does not answer: {type(error).__name__}") from error
        return {name.decode(): value for name, value in fields.items()}, {name.decode(): value.decode() for name, value in beside.items()}

    async def release(self, lease: Lease) -> None:
        """Let the lease go, so that another need not wait. Raises Fenced, Wiped, Unavailable."""
        await self.write(lease, {}, beside={"until_ms": "0"})

    async def _run(self, script: Script, arguments: Sequence[str | bytes | int]) -> list[bytes] | None:
        try:
            result: list[bytes] | None = await script.run(self._keys, arguments)
        except ResponseError as error:
            text = str(error)
            if text.startswith("FENCED"):
                raise Fenced(text) from error
            if text.startswith("WIPED"):
                raise Wiped(text) from error
            raise Unavailable(f"the store refuses: {text}") from error
        except (RedisConnectionError, RedisTimeoutError, OSError) as error:
            raise Unavailable(f"the store does not answer: {type(error).__name__}") from error
        return result
