"""Samples of several cases, taken in turn, and what they come to: percentiles, and a ratio to hold against a figure."""

import random
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

ROUNDS = 5
"""The ratio is taken inside a round, and the median of the ratios counts: what else the machine does falls on both sides of a round."""

Take = Callable[[], Awaitable[int]]
"""Takes one sample and returns its nanoseconds; what it does before and after is not in them."""


def percentile(samples: list[int], share: float) -> int:
    """The sample below which this share of all lies."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@dataclass
class Series:
    """The samples of one case, in nanoseconds, by round."""

    rounds: list[list[int]] = field(default_factory=list)

    @classmethod
    def of(cls, samples: list[int], rounds: int) -> "Series":
        """As many rounds of samples that were kept in their order."""
        each = len(samples) // rounds
        return cls([samples[first : first + each] for first in range(0, each * rounds, each)])

    @property
    def all(self) -> list[int]:
        """Every sample."""
        return [one for some in self.rounds for one in some]

    def us(self) -> tuple[float, float, float]:
        """Microseconds: p50, p99, max."""
        return percentile(self.all, 0.5) / 1000, percentile(self.all, 0.99) / 1000, max(self.all) / 1000

    def over(self, base: "Series") -> float:
        """The median over all rounds of the ratio of the medians."""
        return statistics.median(
            statistics.median(own) / statistics.median(other) for own, other in zip(self.rounds, base.rounds, strict=True)
        )


async def in_turn(cases: Mapping[str, Take], each: int, warm_up: int, rounds: int = ROUNDS) -> dict[str, Series]:
    """`each` samples a round of every case, one of each after the other in an order that changes; `warm_up` are thrown away."""
    found = {name: Series([[] for _ in range(rounds)]) for name in cases}
    order = list(cases)
    for step in range(-warm_up, each * rounds):
        random.shuffle(order)
        for name in order:
            taken_ns = await cases[name]()
            if step >= 0:
                found[name].rounds[step // each].append(taken_ns)
    return found


async def timed(doing: Awaitable[object]) -> int:
    """Nanoseconds until it is done."""
    began_ns = time.perf_counter_ns()
    await doing
    return time.perf_counter_ns() - began_ns


@dataclass
class Row:
    """One answer. `gate` and `stretch` are those of figures.md, for the ratio of `own` to `base` (`times` of them)."""

    question: str
    own: Series
    base_name: str
    base: Series
    gate: float
    stretch: float
    times: int = 1

    @property
    def ratio(self) -> float:
        """Own over base."""
        return self.own.over(self.base) / self.times

    @property
    def verdict(self) -> str:
        """Which of the two figures it reaches."""
        if self.ratio <= self.stretch:
            return "stretch"
        return "gate" if self.ratio <= self.gate else "MISSED"

    def fields(self) -> dict[str, object]:
        """The same for machines; times in microseconds."""
        shown = {name: dict(zip(("p50", "p99", "max"), some.us(), strict=True)) for name, some in (("own", self.own), ("base", self.base))}
        return {
            "question": self.question, "base_name": self.base_name, "times": self.times, **shown, "n": len(self.own.all),
            "rounds": len(self.own.rounds), "ratio": self.ratio, "gate": self.gate, "stretch": self.stretch, "verdict": self.verdict,
        }  # fmt: skip


def _figure(value: float) -> str:
    return f"1/{1 / value:,.1f}".removesuffix(".0") if value < 0.1 else f"{value:.2f}".rstrip("0").rstrip(".")


def _times(series: Series) -> str:
    return " / ".join(f"{us:,.0f}" if us >= 100 else f"{us:.1f}" for us in series.us())


def table(rows: list[Row]) -> str:
    """The rows for people: each with its base below it."""
    head = ("question, and its base", "n", "p50 / p99 / max, µs", "ratio", "gate", "stretch", "reaches")
    lines = [head]
    for row in rows:
        ratio, gate, stretch = map(_figure, (row.ratio, row.gate, row.stretch))
        lines.append((row.question, str(len(row.own.all)), _times(row.own), ratio, f"≤ {gate}", f"≤ {stretch}", row.verdict))
        base = f"{row.times} x {row.base_name}" if row.times > 1 else row.base_name
        lines.append((f"    {base}", str(len(row.base.all)), _times(row.base), "", "", "", ""))
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines)
