"""nats-py's client, with what it does not do for us."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from nats.aio.client import Client as NatsClient
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

T = TypeVar("T")

AtOnce = Callable[[bytes, bytes, bytes, bytes | None], None]
"""Hears subject, reply subject, data and headers."""


def times_told_to_stop() -> int:
    """How often this task was cancelled."""
    task = asyncio.current_task()
    return task.cancelling() if task is not None else 0


async def _heeding(answer: Awaitable[T]) -> T:
    """What `answer` gives. Raises CancelledError when this task was told to stop meanwhile: `wait_for` of Python 3.11, in which nats-py
    waits, forgets a cancel that meets the answer, and a loop would go on for ever."""
    before = times_told_to_stop()
    try:
        return await answer
    finally:
        if times_told_to_stop() > before:
            raise asyncio.CancelledError


def fields(headers: bytes) -> dict[str, str]:
    """The headers of one message, behind the line with its status."""
    return {name: value.strip() for line in headers.decode().splitlines()[1:] for name, colon, value in [line.partition(":")] if colon}


class Client(NatsClient):
    """Its requests heed a cancel (JetStream's calls and acks are such requests), and it can hand over what comes on a subscription at
    once: nats-py's own way, over a queue and a task, costs more than all that is done with most messages."""

    def __init__(self) -> None:
        super().__init__()
        self._at_once: dict[int, AtOnce] = {}

    async def subscribe_at_once(self, subject: str, hear: AtOnce) -> Subscription:
        """Have `hear` called with each message as it came. It must not take long, nor raise."""
        subscription = await self.subscribe(subject)
        self._at_once[subscription._id] = hear
        return subscription

    async def request(self, *arguments: Any, **options: Any) -> Msg:
        """See nats-py."""
        return await _heeding(super().request(*arguments, **options))

    def _remove_sub(self, sid: int, max_msgs: int = 0) -> None:
        super()._remove_sub(sid, max_msgs)
        self._at_once.pop(sid, None)

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: Any) -> None:
        hear = self._at_once.get(sid)
        if hear is None:
            await super()._process_msg(sid, subject, reply, data, headers)
        else:
            hear(subject, reply, data, headers)
