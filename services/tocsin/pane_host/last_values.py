"""What this host last said, and says again: on change, every half minute, and when the bus has lost its memory."""

import asyncio
import contextlib
from typing import Generic, TypeVar

import msgspec

from tocsin.bus.bus import Bus, Unavailable
from tocsin.contract.messages import Body, PaneSeen, PaneTitled, WorktreeKnown
from tocsin.contract.subjects import Subject
from tocsin.runtime.clock import Clock
from tocsin.runtime.logs import log
from tocsin.runtime.skew import Skew

B = TypeVar("B", bound=Body)

AGAIN_EVERY_MS = 30_000
"""The memory of the bus is refilled at least so often, whatever it lost."""

BIRTH_EVERY_MS = 5_000
"""A wiped stream whose server stayed up is noticed at least so soon; after a reconnect it is looked at once."""

RETRY_S = 0.5


def _timeless(body: Body) -> Body:
    """`body` without the moment at which it was said, to tell whether it says anything new."""
    return msgspec.structs.replace(body, at_ms=0) if hasattr(body, "at_ms") else body


def in_bus_time(body: B, skew: Skew) -> B:
    """`body` with its moments as the bus' clock shows them. A process keeps its start: that is its identity, not a moment."""
    if not skew.ahead_ms:
        return body

    def at(own_ms: int | None) -> int | None:
        return None if own_ms is None else skew.in_bus_time(own_ms)

    change = msgspec.structs.replace
    match body:
        case PaneSeen():
            marks = tuple(change(mark, at_ms=at(mark.at_ms)) for mark in body.marks)
            return change(body, at_ms=at(body.at_ms), last_key_ms=at(body.last_key_ms), marks=marks)
        case PaneTitled():
            return change(body, titles=tuple(change(title, at_ms=at(title.at_ms)) for title in body.titles))
        case WorktreeKnown():
            active_ms = at(body.active_ms) if body.active_ms else 0
            return change(body, at_ms=at(body.at_ms), active_ms=active_ms, created_ms=at(body.created_ms))
    return body


class Family(Generic[B]):
    """The last values on one family of subjects, and those of them that are still to be said."""

    def __init__(self, subject: Subject[B], spoken: asyncio.Event, skew: Skew) -> None:
        self.subject = subject
        self._skew = skew
        self.values: dict[str, B] = {}
        self._final: set[str] = set()
        self._pending: set[str] = set()
        self._spoken = spoken

    def put(self, body: B, *, final: bool = False) -> bool:
        """Say `body` unless it says what was said already; returns whether it does not.

        Its moment is kept in any case, so that what is said again tells when it was last seen to be true. A `final`
        value is forgotten once it is on record.
        """
        key = self.subject.of(body)
        before = self.values.get(key)
        self.values[key] = body
        if final:
            self._final.add(key)
        else:
            self._final.discard(key)
        if before is not None and not final and _timeless(before) == _timeless(body):
            return False
        self._pending.add(key)
        self._spoken.set()
        return True

    def forget(self, body: B) -> None:
        """Say it no more; what is on record stays until somebody else overwrites it."""
        key = self.subject.of(body)
        self.values.pop(key, None)
        self._pending.discard(key)

    def again(self) -> None:
        """Have everything said once more."""
        self._pending.update(self.values)
        self._spoken.set()

    async def say(self, bus: Bus) -> None:
        """Say what is to be said. Raises Unavailable; then it stays to be said."""
        keys = [key for key in self._pending if key in self.values]
        said = [self.values[key] for key in keys]
        self._pending.clear()
        try:
            if said:
                await bus.say_all(self.subject, [in_bus_time(body, self._skew) for body in said])
        except BaseException:
            self._pending.update(keys)
            raise
        for key, body in zip(keys, said, strict=True):
            if key in self._final and self.values.get(key) is body:
                del self.values[key]
                self._final.discard(key)


class LastValues:
    """All families of one host. Callers put values in; `run` says them."""

    def __init__(self, bus: Bus, clock: Clock, skew: Skew) -> None:
        self._bus = bus
        self._skew = skew
        self._clock = clock
        self._spoken = asyncio.Event()
        self._families: list[Family[Body]] = []
        self.away = False

    def family(self, subject: Subject[B]) -> Family[B]:
        """A place for the values of one subject."""
        made = Family(subject, self._spoken, self._skew)
        self._families.append(made)  # type: ignore[arg-type]
        return made

    async def run(self) -> None:
        """Say what is put in, until cancelled."""
        await asyncio.gather(self._say(), self._say_again())

    async def _say(self) -> None:
        while True:
            await self._spoken.wait()
            self._spoken.clear()
            try:
                for family in self._families:
                    await family.say(self._bus)
                self._told(away=False)
            except Unavailable as error:
                self._told(away=True, why=str(error))
                await asyncio.sleep(RETRY_S)
                self._spoken.set()

    def _told(self, *, away: bool, why: str = "") -> None:
        if away != self.away:
            self.away = away
            log("bus.away" if away else "bus.back", "warning" if away else "info", **({"why": why} if why else {}))

    async def _say_again(self) -> None:
        """Every half minute, and at once when the bus' memory was born anew."""
        said_ms = self._clock.awake_ms()
        asked_ms = said_ms - BIRTH_EVERY_MS
        returns = self._bus.returns
        birth: str | None = None
        while True:
            now_ms, seen_returns = self._clock.awake_ms(), self._bus.returns
            due = now_ms - said_ms >= AGAIN_EVERY_MS
            if seen_returns != returns or now_ms - asked_ms >= BIRTH_EVERY_MS:
                with contextlib.suppress(Unavailable):
                    # All these families live in the memory of one server: they are lost together.
                    born = await self._bus.birth(self._families[0].subject)
                    # A connection that came back before the first birth was known may have lost all.
                    due |= born != birth if birth is not None else seen_returns != returns
                    returns, asked_ms, birth = seen_returns, now_ms, born
            if due:
                said_ms = now_ms
                for family in self._families:
                    family.again()
            await asyncio.sleep(RETRY_S)
