"""How bytes come in and go out: bodies read within limits, answers, refusals."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec

from tocsin.contract.refusals import Code, Refusal

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HELD_BODIES_MAX = 8
"""Most memory for bodies that are still arriving, over all requests: so many of the largest."""

READ_S_MAX = 5.0
"""Longest time for a body to arrive. The hook command itself gives up after one second."""

HURRIED_READ_S_MAX = 0.5
"""What is left of that time for bodies that are arriving when the service is told to stop."""

LINGER_S_MAX = 0.5
LINGER_BYTES_MAX = 1024 * 1024
"""How long, and how much of, a refused body is thrown away before the connection is closed. A connection that is closed on
unread bytes is reset, and some systems then throw away the answer that had already arrived."""


class Disconnected(Exception):
    """The client has gone, so there is nobody to answer."""


class Bodies:
    """All bodies that are arriving now. `bytes_max`: the largest that is taken."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.held_bytes = 0
        self._read_s_max = READ_S_MAX
        self._deadlines: set[asyncio.Timeout] = set()

    async def read(self, receive: Receive, declared_bytes: int) -> bytes | Refusal:
        """The whole body. `declared_bytes` is its Content-Length, 0 when the client does not say.

        Refuses: too_large, without reading on; too_slow; unavailable, when all bodies together hold too much. Raises Disconnected.
        """
        if declared_bytes > self.bytes_max:
            return Refusal(Code.TOO_LARGE, f"the body has {declared_bytes} bytes, the limit is {self.bytes_max}")
        if _is_whole(receive):
            # Nearly every body has come with its head; a timer for each would cost more than reading it.
            whole: bytes = (await receive()).get("body", b"")
            return whole if len(whole) <= self.bytes_max else self._too_large()
        body = bytearray()
        held = 0
        try:
            async with asyncio.timeout(self._read_s_max) as deadline:
                self._deadlines.add(deadline)
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Disconnected
                    chunk: bytes = message.get("body", b"")
                    held += len(chunk)
                    self.held_bytes += len(chunk)
                    if held > self.bytes_max:
                        return self._too_large()
                    if self.held_bytes > HELD_BODIES_MAX * self.bytes_max:
                        return Refusal(Code.UNAVAILABLE, "too much is arriving at once")
                    last = not message.get("more_body", False)
                    if last and not body:
                        return chunk
                    body += chunk
                    if last:
                        return bytes(body)
        except TimeoutError:
            return Refusal(Code.TOO_SLOW, "the body did not arrive in time")
        finally:
            self._deadlines.discard(deadline)
            self.held_bytes -= held

    def _too_large(self) -> Refusal:
        return Refusal(Code.TOO_LARGE, f"the body is over the limit of {self.bytes_max} bytes")

    def hurry(self) -> None:
        """From now on, let a body take HURRIED_READ_S_MAX at most, also those that are arriving."""
        self._read_s_max = HURRIED_READ_S_MAX
        latest = asyncio.get_running_loop().time() + HURRIED_READ_S_MAX
        for deadline in self._deadlines:
            when = deadline.when()
            if when is not None and when > latest:
                deadline.reschedule(latest)


def _is_whole(receive: Receive) -> bool:
    """Whether the whole body is here already: uvicorn's request says so, another server's nothing."""
    request = getattr(receive, "__self__", None)
    return getattr(request, "more_body", True) is False and not getattr(request, "disconnected", True)


async def _linger(receive: Receive) -> None:
    left = LINGER_BYTES_MAX
    try:
        async with asyncio.timeout(LINGER_S_MAX):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    return
    except TimeoutError:
        return


async def answer_nothing(send: Send) -> None:
    """204: done, and there is nothing to say."""
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body"})


async def answer_refusal(refusal: Refusal, send: Send, unread: Receive | None = None) -> None:
    """Say what was refused and what helps. `unread`: where the rest of the body still comes from; the connection is closed then."""
    body = msgspec.json.encode(refusal.public())
    status = refusal.advice.status
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if unread is not None:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": unread is not None})
    if unread is not None:
        await _linger(unread)
        await send({"type": "http.response.body"})
