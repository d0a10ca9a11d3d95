"""Answers to what was published with a reply subject: the server's acks, and what services answer to requests.

nats-py's `publish_async` never settles a refused publish, and its `request` waits to the end of its time for an answer that was
lost with the connection.
"""

import asyncio
import itertools
from collections import deque
from typing import NamedTuple

from tocsin.bus.client import Client

NO_RESPONDERS = b"NATS/1.0 503"
"""How the headers begin of what the server answers where nobody listens."""


class Lost(Exception):
    """The connection was lost, and the answer with it."""


class Reply(NamedTuple):
    """An answer as it came."""

    data: bytes
    headers: bytes | None

    @property
    def is_nobodys(self) -> bool:
        """Nobody listens on that subject."""
        return not self.data and self.headers is not None and self.headers.startswith(NO_RESPONDERS)


Waiting = asyncio.Future[Reply]


class Answers:
    """One inbox for all of a connection. `s_max`: how long an answer is waited for whose asker says nothing else."""

    def __init__(self, client: Client, s_max: float) -> None:
        self._s_max = s_max
        self._loop = asyncio.get_running_loop()  # asking for it costs a system call (Python 3.11)
        self._inbox = client.new_inbox()
        self._waiting: dict[bytes, Waiting] = {}
        self._numbers = itertools.count()
        # A timer for each publish cost more than its encoding. All may wait equally long, so one timer, for the oldest, serves all.
        self._limits: deque[tuple[float, Waiting]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    async def listen(self, client: Client) -> None:
        """Hear the answers; once per connection object, reconnects included."""
        await client.subscribe_at_once(f"{self._inbox}.*", self._hear)

    def expect(self, s_max: float | None = None) -> tuple[str, Waiting]:
        """A reply subject, and the answer that will come there: TimeoutError after the limit, Lost with the connection. To be forgotten
        in any case."""
        reply = f"{self._inbox}.{next(self._numbers):x}"
        self._waiting[reply.encode()] = answer = self._loop.create_future()
        if s_max is None:
            self._limit(answer)
        else:
            timer = self._loop.call_later(s_max, _fail, answer, TimeoutError())
            answer.add_done_callback(lambda _: timer.cancel())
        return reply, answer

    def forget(self, reply: str) -> None:
        """Nobody waits there any more."""
        answer = self._waiting.pop(reply.encode(), None)
        if answer is not None and not answer.cancel() and not answer.cancelled():
            answer.exception()  # looked at, so that nobody complains that it was not

    def lose(self) -> None:
        """The connection is lost: what was asked over it is not waited for."""
        for answer in self._waiting.values():
            _fail(answer, Lost())

    def _limit(self, answer: Waiting) -> None:
        while self._limits and self._limits[0][1].done():
            self._limits.popleft()
        self._limits.append((self._loop.time() + self._s_max, answer))
        if self._timer is None:
            self._timer = self._loop.call_later(self._s_max, self._expire)

    def _expire(self) -> None:
        while self._limits and (self._limits[0][1].done() or self._limits[0][0] <= self._loop.time()):
            _, answer = self._limits.popleft()
            _fail(answer, TimeoutError())
        self._timer = self._loop.call_at(self._limits[0][0], self._expire) if self._limits else None

    def _hear(self, subject: bytes, reply: bytes, data: bytes, headers: bytes | None) -> None:
        answer = self._waiting.get(subject)
        if answer is not None and not answer.done():
            answer.set_result(Reply(data, headers))


def _fail(answer: Waiting, error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)
