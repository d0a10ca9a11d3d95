"""The port: how a loop says and hears messages, whatever carries them."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from tocsin.contract.messages import Body
from tocsin.contract.subjects import Subject

B = TypeVar("B", bound=Body)


class Unavailable(Exception):
    """The bus or store does not answer. The same request may be tried again; nothing is known to have changed."""


class Overtaken(Exception):
    """Somebody else wrote this subject first: the expected last sequence is no longer the last."""


@dataclass(frozen=True, slots=True)
class Heard(Generic[B]):
    """One message as it arrived. `seq` is its place in its stream, 0 where nothing keeps it."""

    body: B
    seq: int = 0
    redelivered: bool = False


@dataclass(frozen=True, slots=True)
class Batch(Generic[B]):
    """All messages that were there. Ack last: what is not acked comes again."""

    heard: Sequence[Heard[B]]
    acks: Sequence["Ack"] = field(default=(), repr=False)

    async def ack(self) -> None:
        """Say that the whole batch is handled. Returns when the bus has been told."""
        for ack in self.acks:
            await ack.ack()


class Ack(Protocol):
    """How one message of a batch is settled."""

    async def ack(self) -> None:
        """Never send it again."""
        ...


@dataclass(frozen=True, slots=True)
class Last(Generic[B]):
    """The last value of one subject, and its sequence, to expect when it is written again."""

    body: B
    seq: int


class Bus(Protocol):
    """What loops and tests know of a bus."""

    async def say(self, subject: Subject[B], body: B, *, msg_id: str | None = None, after: int | None = None) -> int:
        """Publish one message; returns its sequence once the bus has it on record (0 for subjects that nothing keeps).

        `msg_id` makes a repeated say within two minutes count once. `after` is the expected last sequence of
        exactly this subject (0: none yet). Raises Overtaken when it is not, Unavailable when no ack comes in time.
        """
        ...

    async def say_all(self, subject: Subject[B], bodies: Sequence[B]) -> None:
        """Publish all; returns when every ack is in (what has none is published again). Raises Unavailable."""
        ...

    def hear(self, subject: Subject[B], *, name: str) -> AsyncIterator[Batch[B]]:
        """Work through a kept subject, in order, as the durable reader `name`; unacked messages come again."""
        ...

    def follow(self, subject: Subject[B], *keys: str) -> AbstractAsyncContextManager["Following[B]"]:
        """The last value of each subject below `keys`, then every change: see Following."""
        ...

    async def last(self, subject: Subject[B], *keys: str) -> Last[B] | None:
        """The last value of one subject, or None. Raises Unavailable."""
        ...

    async def birth(self, subject: Subject[B]) -> str:
        """When the store of `subject` began; another value means that it was wiped or lost."""
        ...


class Following(Protocol[B]):
    """A reader of last values. It never misses a change for good: after a gap or a reconnect all last values come again."""

    def __aiter__(self) -> AsyncIterator[Sequence[Heard[B]]]:
        """Batches of what came; an empty batch says once that all last values of the start have been handed over."""
        ...
