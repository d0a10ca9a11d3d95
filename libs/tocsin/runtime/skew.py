"""How far this machine's clock is from the bus', and time in the bus' terms: machines whose clocks differ meet there."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tocsin.contract.faults import Unavailable

if TYPE_CHECKING:  # light enough for the verbs that are to answer at once
    from tocsin.runtime.clock import Clock

HARMLESS_MS = 1_000
"""Clocks this close count as one: NTP keeps them closer, and no limit of ours is finer between machines."""

STEADY_MS = 250
"""A measurement that differs by less is the same one: half the way to a far bus and back."""

MEASURE_EVERY_S = 10.0
"""A clock that somebody sets is known to be off so much later, at most."""

RETRY_S = 1.0


@dataclass
class Skew:
    """What was last measured. `ahead_ms` is 0 for a clock that is close enough: then nothing is corrected at all."""

    ahead_ms: int = 0

    def take(self, measured_ms: int) -> None:
        """A new measurement: this clock minus the bus', in ms."""
        if abs(measured_ms) <= HARMLESS_MS:
            self.ahead_ms = 0
        elif abs(measured_ms - self.ahead_ms) > STEADY_MS:
            self.ahead_ms = measured_ms

    def in_bus_time(self, own_ms: int) -> int:
        """A moment of this machine's clock as the bus' clock shows it."""
        return own_ms - self.ahead_ms

    def in_own_time(self, bus_ms: int) -> int:
        """A moment of the bus' clock as this machine's shows it."""
        return bus_ms + self.ahead_ms


@dataclass(frozen=True)
class BusTime:
    """A clock that shows UTC as the bus does; awake time is this machine's own."""

    clock: "Clock"
    skew: Skew

    def now_ms(self) -> int:
        """UTC milliseconds by the bus' clock."""
        return self.skew.in_bus_time(self.clock.now_ms())

    def awake_ms(self) -> int:
        """See Clock.awake_ms."""
        return self.clock.awake_ms()


async def keep_measured(skew: Skew, measure: Callable[[], Awaitable[int]]) -> None:
    """Measure every MEASURE_EVERY_S until cancelled; what was measured stands while the bus is away."""
    while True:
        pause_s = RETRY_S
        with contextlib.suppress(Unavailable):
            skew.take(await measure())
            pause_s = MEASURE_EVERY_S
        await asyncio.sleep(pause_s)
