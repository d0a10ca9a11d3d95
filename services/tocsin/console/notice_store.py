"""What the console keeps in Redis of notices and marks, shared by all replicas. Every method raises Unavailable."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import msgspec
from redis.asyncio import Redis
from redis.exceptions import RedisError

from tocsin.console.core.notices import Notice, Request
from tocsin.contract.faults import Unavailable
from tocsin.contract.ids import token
from tocsin.contract.notices import Mark
from tocsin.store import keys

TOLD_MS = 7 * 24 * 3_600_000
"""How long it is remembered of which prompt of a pane the person was told. A prompt that stands longer may be told again after a restart."""

COURIER_MS = 15_000
"""A replica that tells notices and does not renew that right is waited for so long."""

HERE = Path(__file__).parent


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the last notices that went one way (UTC ms; 0: never). `error`: of the last failure, without secrets."""

    sent_ms: int = 0
    failed_ms: int = 0
    error: str = ""

    @property
    def failed_last(self) -> bool:
        """Whether the last one failed."""
        return self.failed_ms > self.sent_ms


class NoticeStore:
    """Of one workspace."""

    def __init__(self, redis: Redis, workspace: str) -> None:
        self._redis = redis
        self._workspace = workspace
        self._notices = keys.notices(workspace)
        self._courier = keys.courier(workspace)
        self._marks = keys.marks(workspace)
        self._outcomes = keys.outcomes(workspace)
        self._claim = redis.register_script((HERE / "claim_notice.lua").read_text())
        self._hold = redis.register_script((HERE / "hold_courier.lua").read_text())

    # ------------------------------------------------------------ notices

    async def claim(self, request: Request, notice: Notice) -> bool:
        """Let the notice of a request wait; False when some replica has done so before."""
        async with _answering():
            told = keys.told(self._workspace, request.host, request.pane)
            arguments: list[str | bytes | int] = [request.prompt_ms, TOLD_MS, notice.id, msgspec.json.encode(notice)]
            return bool(await self._claim(keys=[told, self._notices], args=arguments))

    async def hold_courier(self, holder: str) -> bool:
        """Be the one that tells notices, or go on being it; False while another one is."""
        async with _answering():
            return bool(await self._hold(keys=[self._courier], args=[holder, COURIER_MS]))

    async def leave_courier(self, holder: str) -> None:
        """Let another one tell them at once."""
        async with _answering():
            await self._hold(keys=[self._courier], args=[holder, 0])

    async def waiting(self) -> list[Notice]:
        """Notices that wait."""
        async with _answering():
            found = cast(dict[bytes, bytes], await self._redis.hgetall(self._notices))
        return [msgspec.json.decode(one, type=Notice) for one in found.values()]

    async def put(self, notice: Notice, instead_of: Sequence[str] = ()) -> None:
        """Let this one wait, in the place of others when they are named."""
        async with _answering():
            pipeline = self._redis.pipeline(transaction=True)
            if instead_of:
                pipeline.hdel(self._notices, *instead_of)
            pipeline.hset(self._notices, notice.id, msgspec.json.encode(notice))
            await pipeline.execute()

    async def remove(self, notice: Notice) -> None:
        """It is told, or over."""
        async with _answering():
            await self._redis.hdel(self._notices, notice.id)

    # ------------------------------------------------------------ marks

    async def marks(self) -> tuple[Mark, ...]:
        """All marks, by worktree."""
        async with _answering():
            found = cast(dict[bytes, bytes], await self._redis.hgetall(self._marks))
        return tuple(sorted((msgspec.json.decode(one, type=Mark) for one in found.values()), key=lambda mark: mark.worktree))

    async def put_mark(self, mark: Mark) -> None:
        """Keep a mark; one that says nothing goes."""
        async with _answering():
            if mark.urgent or mark.snooze is not None:
                await self._redis.hset(self._marks, token(mark.worktree), msgspec.json.encode(mark))
            else:
                await self._redis.hdel(self._marks, token(mark.worktree))

    # ------------------------------------------------------------ outcomes

    async def put_outcome(self, way: str, outcome: Outcome) -> None:
        """Remember what became of the last notice that went this way."""
        async with _answering():
            await self._redis.hset(self._outcomes, way, msgspec.json.encode(outcome))

    async def outcome(self, way: str) -> Outcome:
        """What became of the last ones."""
        async with _answering():
            found = cast(bytes | None, await self._redis.hget(self._outcomes, way))
        return msgspec.json.decode(found, type=Outcome) if found is not None else Outcome()


@asynccontextmanager
async def _answering() -> AsyncIterator[None]:
    try:
        yield
    except (RedisError, OSError) as error:
        raise Unavailable(f"the store does not answer: {type(error).__name__}") from error
