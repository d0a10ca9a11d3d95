"""A connection to Redis or Valkey, with the password from the instance's folder."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from redis.asyncio import Connection, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from tocsin.contract.metrics import STORE_CONNECTIONS
from tocsin.contract.tally import Tally

CREDENTIAL_FILE = "redis.credential"
ANSWER_S_MAX = 2.0
"""A store that takes longer counts as away."""


@asynccontextmanager
async def open_store(url: str, state: Path | None = None, tally: Tally | None = None) -> AsyncIterator[Redis]:
    """A client for `url`; connects with the first command, and again after a cut.

    `state`: the instance's folder, whose credential file (0600) holds the password. `tally`: counts the connections made.
    """
    file = state / CREDENTIAL_FILE if state else None
    password = file.read_text().strip() if file and file.exists() else None
    counts = tally if tally is not None else Tally()

    async def greet(connection: Connection) -> None:
        await connection.on_connect()
        counts.add(STORE_CONNECTIONS)

    # One retry: a connection that the server has closed is found out by using it.
    redis = Redis.from_url(
        url, password=password, socket_timeout=ANSWER_S_MAX, socket_connect_timeout=ANSWER_S_MAX, retry=Retry(NoBackoff(), 1),
        redis_connect_func=greet,
    )  # fmt: skip
    try:
        yield redis
    finally:
        await redis.aclose()
