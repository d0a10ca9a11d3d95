"""A Lua script that is run often, on a connection of its own.

What redis-py's client does around each command (a pool, a check of the connection, retries, metrics) costs four times as
much as the command. Here its connection is spoken to directly: it still signs in, limits its waits and parses.
"""

import asyncio
from collections.abc import Sequence
from hashlib import sha1
from typing import Any

from redis.asyncio import Connection, Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError, ResponseError

from tocsin.store.connection import ANSWER_S_MAX


class Script:
    """One script. The client that it is made from closes its connection."""

    def __init__(self, redis: Redis, text: str) -> None:
        self._pool = redis.connection_pool
        self._text = text
        self._digest = sha1(text.encode(), usedforsecurity=False).hexdigest()  # the server's name for it
        self._connection: Connection | None = None
        self._turn = asyncio.Lock()

    async def run(self, keys: Sequence[str], arguments: Sequence[str | bytes | int]) -> Any:
        """What the script answers. Raises redis-py's ResponseError for its refusal, its ConnectionError, or TimeoutError.

        It may run twice when its answer is lost with the connection.
        """
        async with self._turn, asyncio.timeout(ANSWER_S_MAX):
            try:
                return await self._ask(keys, arguments)
            except RedisConnectionError:
                # A connection that the server has closed is found out by using it.
                return await self._ask(keys, arguments)

    async def _ask(self, keys: Sequence[str], arguments: Sequence[str | bytes | int]) -> Any:
        if self._connection is None:
            self._connection = await self._pool.get_connection()  # type: ignore[no-untyped-call]
            # Its own limit makes a task for each send; `run` limits the whole.
            self._connection.socket_timeout = None
        connection = self._connection
        try:
            try:
                await connection.send_command("EVALSHA", self._digest, len(keys), *keys, *arguments)
                return await connection.read_response()
            except NoScriptError:
                await connection.send_command("EVAL", self._text, len(keys), *keys, *arguments)
                return await connection.read_response()
        except ResponseError:
            raise
        except BaseException:
            # An answer that is still to come would be taken for that of the next command.
            await connection.disconnect(nowait=True)
            raise
