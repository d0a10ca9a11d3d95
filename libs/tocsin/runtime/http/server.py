"""The HTTP server: uvicorn with limits where it has none, ended by whoever runs it. Only wiring imports it."""

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tocsin.contract.refusals import Refusal
from tocsin.runtime.http.asgi import App
from tocsin.runtime.listening import bind

T = TypeVar("T")

CONNECTIONS_MAX = 512
"""Half of the open files that a process usually has; beyond it a connection is closed at once, and hooks spool."""

HEAD_BYTES_MAX = 64 * 1024
"""Request line and headers. A path may have 4 KB, and nothing else in them is long."""

HEAD_S_MAX = 5.0
"""Longest time for request line and headers, and for a connection to say nothing at all."""

KEEP_ALIVE_S = 5
DRAIN_S_MAX = 3
"""Bodies have half a second more, acks 0.7 s, refused bodies another half: a drain that takes longer is stuck."""


class CannotStart(Exception):
    """The service cannot be what it is asked to be; the text says what to change."""


class _Nowhere(list[tuple[bytes, bytes]]):
    """Where trailers go, which nobody reads and which have no limit."""

    def append(self, _: tuple[bytes, bytes]) -> None:
        """Drop it."""


class LimitedHttp(HttpToolsProtocol):
    """uvicorn's HTTP with limits where it has none: the head's size and time, trailers, connections, bodies that nobody reads."""

    malformed: ClassVar[Callable[[], None]]
    """Called for what is no HTTP request."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_bytes = 0
        self._in_head = False
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a head, unless there are too many connections."""
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS_MAX:
            transport.close()
        else:
            self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse, then see whether a head grows too large or a body comes that nobody reads."""
        super().data_received(data)
        if self.transport.is_closing():
            return
        answered = self.cycle is None or self.cycle.response_complete
        if self._in_head or (answered and (self.cycle is None or not self.cycle.more_body)):
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX:
                self.send_400_response("The head of the request is too large.")
            elif self._head_timer is None:
                self._wait_for_head()
        elif answered:
            self.transport.close()

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self._in_head = True

    def on_headers_complete(self) -> None:
        """The head is there."""
        self._in_head = False
        self._head_bytes = 0
        self._stop_waiting()
        super().on_headers_complete()
        self.headers = _Nowhere()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP request, and have it counted."""
        type(self).malformed()
        super().send_400_response(msg)

    def _wait_for_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_S_MAX, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


class Server(uvicorn.Server):
    """uvicorn that leaves signals to whoever runs it, does not tick, and tells when it listens."""

    def __init__(self, config: uvicorn.Config, on_start: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_start = on_start
        self._stopping = asyncio.Event()

    def capture_signals(self) -> contextlib.AbstractContextManager[None]:  # type: ignore[override]
        """Signals are heard by runtime.run."""
        return contextlib.nullcontext()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then say so."""
        await super().startup(sockets)
        self._on_start()

    async def main_loop(self) -> None:
        """Nothing to do until it is time to stop: an idle service costs no CPU."""
        await self._stopping.wait()

    def stop(self) -> None:
        """Listen no more; `serve` returns when all requests are answered."""
        self._stopping.set()


def needed(found: T | Refusal) -> T:
    """What was found. Raises CannotStart when it was refused: without it there is no service."""
    if isinstance(found, Refusal):
        raise CannotStart(found.message)
    return found


def listen(address: str, port: int, variable: str) -> socket.socket:
    """A bound socket; `variable` is the setting that chooses its port. Raises CannotStart when the address is not ours or the port is taken."""
    try:
        return bind(address, port)
    except OSError as error:
        raise CannotStart(f"cannot listen on {address} port {port}: {error.strerror}; {variable} chooses another") from error


def server_of(app: App, malformed: Callable[[], None], on_start: Callable[[], None]) -> Server:
    """The server of one app. `malformed` is called for what is no HTTP request, `on_start` once it listens."""
    return Server(
        uvicorn.Config(
            app,
            http=type("CountedHttp", (LimitedHttp,), {"malformed": staticmethod(malformed)}),
            interface="asgi3",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=DRAIN_S_MAX,
        ),
        on_start,
    )
