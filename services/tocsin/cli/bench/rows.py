"""What the samples come to: one row a question, held against its gate and its stretch goal, for people and for programs."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tocsin.cli.bench.measure import Series, percentile


class Unit(StrEnum):
    """In what a row's samples are told."""

    US = "µs"
    MS = "ms"
    S = "s"
    MB = "MB"
    RATE = "/s"
    COUNT = ""


SAMPLES_OF = {Unit.US: 1e3, Unit.MS: 1e6, Unit.S: 1e9, Unit.MB: 1e6, Unit.RATE: 1, Unit.COUNT: 1}
"""How many nanoseconds, bytes or things make one of the unit."""


class Reaches(StrEnum):
    """Which figure a row reaches."""

    STRETCH = "stretch"
    GATE = "gate"
    MISSED = "MISSED"
    NONE = ""  # there is no figure for it


class UnknownGate(Exception):
    """A gate was given for no row that was measured; the text says for which."""


@dataclass
class Row:
    """One answer: the ratio of `own` to `base` (`times` of them), or without a base the value itself in its unit.

    `name` is what programs call it. `more`: at least the gate has to be reached, else at most. No gate: told for comparison.
    """

    name: str
    question: str
    own: Series
    base_name: str
    base: Series | None
    gate: float | None = None
    stretch: float | None = None
    times: int = 1
    unit: Unit = Unit.US
    more: bool = False

    @property
    def ratios(self) -> list[float]:
        """Of each round."""
        if self.base is None:
            return [one / SAMPLES_OF[self.unit] for one in self.own.p50s]
        return [one / self.times for one in self.own.over(self.base)]

    @property
    def ratio(self) -> float:
        """The median of the rounds."""
        return statistics.median(self.ratios)

    def keeps(self, gate: float | None) -> bool:
        """Whether the ratio is on the right side of it."""
        return gate is not None and (self.ratio >= gate if self.more else self.ratio <= gate)

    @property
    def reaches(self) -> Reaches:
        """Which of the two figures it reaches."""
        if self.gate is None and self.stretch is None:
            return Reaches.NONE
        if self.keeps(self.stretch):
            return Reaches.STRETCH
        return Reaches.GATE if self.keeps(self.gate) else Reaches.MISSED

    def fields(self) -> dict[str, object]:
        """The same for programs. `value`, `base` and their p99 are in `unit`; `spread` are the least and greatest ratio of a round."""
        base = (
            {"base": None}
            if self.base is None
            else {"base": _told(self.base, self.unit, 0.5), "base_p99": _told(self.base, self.unit, 0.99)}
        )
        return {
            "name": self.name, "question": self.question, "unit": self.unit, "value": _told(self.own, self.unit, 0.5),
            "value_p99": _told(self.own, self.unit, 0.99), "n": len(self.own.all), "rounds": len(self.own.rounds),
            "base_name": self.base_name, "times": self.times, **base, "ratio": self.ratio, "spread": [min(self.ratios), max(self.ratios)],
            "at": "least" if self.more else "most", "gate": self.gate, "stretch": self.stretch,
            "met": None if self.gate is None else self.keeps(self.gate),
            "stretch_met": None if self.stretch is None else self.keeps(self.stretch),
        }  # fmt: skip


def failed(rows: Iterable[Row], gates: Mapping[str, float | None]) -> list[str]:
    """One line for each given gate that its row does not keep; None stands for the row's own. Raises UnknownGate."""
    named = {row.name: row for row in rows}
    lines = []
    for name, given in gates.items():
        row = named.get(name)
        limit = given if given is not None or row is None else row.gate
        if row is None or limit is None:
            raise UnknownGate(f"no row {name} that has a gate was measured; there are: {', '.join(named)}")
        if not row.keeps(limit):
            lines.append(f"{name}: {_figure(row.ratio)} is not {_bound(row, limit)} ({row.question})")
    return lines


def gate(text: str) -> tuple[str, float | None]:
    """`NAME` or `NAME=RATIO`, as it is given on a command line. Raises ValueError."""
    name, equals, ratio = text.partition("=")
    return name, float(ratio) if equals else None


HEAD = ("question, and its base", "n", "p50 / p99", "ratio (rounds)", "gate", "stretch", "reaches")


def cells(row: Row) -> list[tuple[str, ...]]:
    """A row as people read it, and its base below it; see HEAD."""
    spread = f"{_figure(row.ratio)} ({_figure(min(row.ratios))}..{_figure(max(row.ratios))})"
    figures = [_bound(row, one) if one is not None else "" for one in (row.gate, row.stretch)]
    lines = [(row.question, str(len(row.own.all)), _both(row.own, row.unit), spread, *figures, str(row.reaches))]
    if row.base is not None:
        base = f"{row.times} x {row.base_name}" if row.times > 1 else row.base_name
        lines.append((f"    {base}", str(len(row.base.all)), _both(row.base, row.unit), "", "", "", ""))
    return lines


def table(rows: Sequence[Row]) -> str:
    """The rows for a terminal."""
    lines = [HEAD, *(line for row in rows for line in cells(row))]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines)


def _told(series: Series, unit: Unit, share: float) -> float:
    return percentile(series.all, share) / SAMPLES_OF[unit]


def _bound(row: Row, figure: float) -> str:
    unit = f" {row.unit}" if row.base is None and row.unit else ""
    return f"{'≥' if row.more else '≤'} {_figure(figure)}{unit}"


def _figure(value: float) -> str:
    """A ratio, short: a small one as a fraction."""
    if 0 < value < 0.02:
        return f"1/{1 / value:,.0f}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}".rstrip("0").rstrip(".")


def _both(series: Series, unit: Unit) -> str:
    shown = [_told(series, unit, share) for share in (0.5, 0.99)]
    return " / ".join(f"{one:,.0f}" if one >= 100 or unit is Unit.COUNT else f"{one:.3g}" for one in shown) + (f" {unit}" if unit else "")
