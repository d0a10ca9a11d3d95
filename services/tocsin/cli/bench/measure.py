"""Samples of several cases, taken in turn: what else the machine does falls on the case and on its base alike."""

import random
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

ROUNDS = 5
"""The ratio is taken inside a round, and the median of the ratios counts."""

Take = Callable[[], Awaitable[int]]
"""Takes one sample and returns it, in nanoseconds or bytes; what it does before and after is not in it."""


@dataclass(frozen=True)
class Effort:
    """How much is measured: `few` for a look whether it measures at all."""

    rounds: int = ROUNDS
    few: bool = False

    def of(self, samples: int) -> int:
        """Samples of one round, or other numbers that a look needs less of."""
        return max(1, samples // 20) if self.few else samples


def percentile(samples: Sequence[float], share: float) -> float:
    """The sample below which this share of all lies."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@dataclass
class Series:
    """The samples of one case, by round. Times are nanoseconds, sizes bytes."""

    rounds: list[list[float]] = field(default_factory=list)

    @classmethod
    def of(cls, samples: Sequence[float], rounds: int) -> "Series":
        """As many rounds of samples that were kept in their order."""
        each = len(samples) // rounds
        return cls([list(samples[first : first + each]) for first in range(0, each * rounds, each)])

    @property
    def all(self) -> list[float]:
        """Every sample."""
        return [one for some in self.rounds for one in some]

    @property
    def p50s(self) -> list[float]:
        """The median of each round."""
        return [statistics.median(some) for some in self.rounds]

    def over(self, base: "Series") -> list[float]:
        """The ratio of the medians, of each round."""
        return [own / other for own, other in zip(self.p50s, base.p50s, strict=True)]


async def in_turn(cases: Mapping[str, Take], each: int, warm_up: int, rounds: int = ROUNDS) -> dict[str, Series]:
    """`each` samples a round of every case, one of each after the other in an order that changes; `warm_up` are thrown away."""
    found = {name: Series([[] for _ in range(rounds)]) for name in cases}
    order = list(cases)
    for step in range(-warm_up, each * rounds):
        random.shuffle(order)
        for name in order:
            taken = await cases[name]()
            if step >= 0:
                found[name].rounds[step // each].append(taken)
    return found


async def timed(doing: Awaitable[object]) -> int:
    """Nanoseconds until it is done."""
    began_ns = time.perf_counter_ns()
    await doing
    return time.perf_counter_ns() - began_ns
