"""The port: how a loop says and hears messages, whatever carries them."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from tocsin.contract.faults import Overtaken, TooLarge, Unavailable
from tocsin.contract.messages import Body
from tocsin.contract.subjects import Subject

__all__ = ["Bus", "Heard", "Last", "Overtaken", "Reading", "TooLarge", "Unavailable"]

B = TypeVar("B", bound=Body)
R = TypeVar("R", bound=Body, covariant=True)


@dataclass(frozen=True, slots=True)
class Heard(Generic[R]):
    """One message as it arrived. `seq` is its place in its stream, 0 where nothing keeps it."""

    body: R
    seq: int = 0


@dataclass(frozen=True, slots=True)
class Last(Generic[B]):
    """The last value of one subject, and its sequence, to expect when it is written again.

    `body` is None when it is of a version that this reader does not know: somebody newer (or older) says it.
    """

    body: B | None
    seq: int


class Bus(Protocol):
    """What loops and tests know of a bus."""

    @property
    def returns(self) -> int:
        """How often the connection came back; what is kept in memory only may be gone when it has grown."""
        ...

    async def say(self, subject: Subject[B], body: B, *, msg_id: str | None = None, after: int | None = None) -> int:
        """Publish one message; returns its sequence once the bus has it on record (0 for subjects that nothing keeps).

        `msg_id` makes a repeated say within two minutes count once. `after` is the expected last sequence of
        exactly this subject (0: none yet). Raises Overtaken when it is not, Unavailable when no ack comes in time,
        and TooLarge (an Unavailable too) when the bus takes no message of that size.
        """
        ...

    async def say_encoded(
        self, subject: Subject[B], name: str, payload: bytes, *, msg_id: str | None = None, after: int | None = None
    ) -> int:
        """`say` for a body that is bytes already, because it was encoded piece by piece. `name`: the whole subject that it belongs on."""
        ...

    async def say_all(self, subject: Subject[B], bodies: Sequence[B]) -> None:
        """Publish all; returns when every ack is in (what has none is published again). Raises Unavailable."""
        ...

    def read(self, subject: Subject[B], *keys: str, after: int) -> AbstractAsyncContextManager["Reading[B]"]:
        """A kept subject from the message behind sequence `after` on, in order, each once.

        There is nothing to ack: a reader keeps its position beside the state that it made of what it read.
        """
        ...

    def follow(self, subject: Subject[B], *keys: str) -> AbstractAsyncContextManager["Reading[B]"]:
        """The last value of each subject below `keys`, then every change.

        An empty batch says, once per start, that all last values have been handed over. After a gap or a
        reconnect all last values come again, with another empty batch behind them.
        """
        ...

    async def last(self, subject: Subject[B], *keys: str) -> Last[B] | None:
        """The last value of one subject, or None. Raises Unavailable."""
        ...

    async def ask(self, subject: Subject[B], body: B, *, timeout_s: float) -> Body:
        """Put a request and wait for what `subject.answer` declares, or Refused. Raises Unavailable: nobody serves it, or no answer in time."""
        ...

    def serve(self, subject: Subject[B], handler: Callable[[B], Awaitable[Body]], *, name: str) -> AbstractAsyncContextManager[None]:
        """Answer requests with what `handler` returns; all that serve under one `name` share them. A handler that raises answers nothing."""
        ...

    def hear(self, subject: Subject[B], handler: Callable[[B], None], missed: Callable[[], None]) -> AbstractAsyncContextManager[None]:
        """Have `handler` called with each message of a subject that nothing keeps, and `missed` when the bus is back: what was said while
        it was away is lost."""
        ...

    def work(self, subject: Subject[B], *keys: str, name: str) -> AbstractAsyncContextManager["Jobs[B]"]:
        """Share a kept subject with all that work under one `name`: each message goes to one of them, and again to some until it is done."""
        ...

    async def end_of(self, subject: Subject[B], *keys: str) -> int:
        """The sequence of the last message of exactly this subject; 0 when there is none. Raises Unavailable."""
        ...

    async def erase(self, subject: Subject[B], *keys: str) -> None:
        """Forget the last value of one subject, so that what is over does not pile up. Raises Unavailable."""
        ...

    async def end(self, subject: Subject[B]) -> int:
        """The sequence of the last message that the store of `subject` holds; 0 when it holds none. Raises Unavailable."""
        ...

    async def birth(self, subject: Subject[B]) -> str:
        """When the store of `subject` began; another value means that it was wiped or lost. Raises Unavailable."""
        ...

    async def clock_ahead_ms(self) -> int:
        """How far this machine's clock is ahead of the bus' (negative: behind), to half the way there and back. Raises Unavailable."""
        ...


class Job(Protocol[R]):
    """One message to work on."""

    @property
    def body(self) -> R:
        """What it carries."""
        ...

    @property
    def seq(self) -> int:
        """Its place in the stream."""
        ...

    @property
    def attempt(self) -> int:
        """1 the first time."""
        ...

    async def done(self) -> None:
        """Never send it again. Last: a crash before this brings it back."""
        ...

    async def again(self, delay_s: float) -> None:
        """Not now: hand it out again after a while. However often: only what is neither done nor put off becomes poison."""
        ...


class Jobs(Protocol[R]):
    """Messages to work on, one after another."""

    def __aiter__(self) -> AsyncIterator[Job[R]]:
        """The next message, as it comes."""
        ...


class Reading(Protocol[R]):
    """A running subscription."""

    def __aiter__(self) -> AsyncIterator[Sequence[Heard[R]]]:
        """Batches of all that was there, oldest first."""
        ...
