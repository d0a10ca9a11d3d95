"""Counting for metrics: what a metric is, and the tally that one part of a process keeps of it.

Labels hold words of ours and nothing else: no id, path, name or text can become one, whoever counts.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate, product
from typing import NamedTuple

OTHER = "other"
"""Stands for a label value that is not one of those declared."""

WORD = re.compile(r"[a-z][a-z0-9_-]{0,39}")
"""The form of a label value where the words are declared by whoever says them."""


class Sort(StrEnum):
    """How a metric grows."""

    COUNTER = "counter"  # since the process started
    GAUGE = "gauge"  # now
    HISTOGRAM = "histogram"  # seconds, by upper bounds


@dataclass(frozen=True)
class Label:
    """A dimension. `values`: all that it can have; none listed: words that its sayer declares, named in `about`."""

    name: str
    values: tuple[str, ...] = ()
    about: str = ""

    def bounded(self, value: str) -> str:
        """The value, or OTHER when it is none of this label's."""
        fits = value in self.values if self.values else WORD.fullmatch(value) is not None
        return str(value) if fits else OTHER


@dataclass(frozen=True, eq=False)
class Metric:
    """One metric. Every one has the label `service` besides: who says it."""

    name: str
    sort: Sort
    about: str
    said_by: tuple[str, ...]
    labels: tuple[Label, ...] = ()
    buckets: tuple[float, ...] = ()  # seconds


class Spread(NamedTuple):
    """A histogram's state: how many observations up to each bound, how many in all, and their sum in seconds."""

    up_to: tuple[int, ...]
    total: int
    sum: float


class Sample(NamedTuple):
    """One value of one metric now."""

    metric: Metric
    labels: tuple[str, ...]
    value: float | Spread


Source = Callable[[], Iterable[Sample]]
"""Reads what its owner knows. Asked when somebody looks, so whoever already keeps a number need not count it again."""


class _Times:
    """The observations of one histogram."""

    __slots__ = ("between", "sum")

    def __init__(self, bounds: int) -> None:
        self.between = [0] * (bounds + 1)
        self.sum = 0.0


class Tally:
    """What one part of a process has counted. An entry costs a lookup and an addition.

    Counters named at the beginning are 0 from then on, for all values of their labels, so that the first of them is seen as one.
    """

    def __init__(self, *counters: Metric) -> None:
        self._counts: dict[tuple[Metric, tuple[str, ...]], int] = {
            (metric, values): 0 for metric in counters for values in product(*(label.values for label in metric.labels))
        }
        self._times: dict[Metric, _Times] = {}

    def add(self, metric: Metric, *labels: str, by: int = 1) -> None:
        """Count. Values that the metric's labels cannot have count as OTHER."""
        key = metric, labels
        try:
            self._counts[key] += by
        except KeyError:
            key = metric, bounded(metric, labels)
            self._counts[key] = self._counts.get(key, 0) + by

    def time(self, metric: Metric, seconds: float) -> None:
        """Note how long something took."""
        times = self._times.get(metric)
        if times is None:
            times = self._times[metric] = _Times(len(metric.buckets))
        times.between[bisect_left(metric.buckets, seconds)] += 1
        times.sum += seconds

    def samples(self) -> Iterator[Sample]:
        """All of it."""
        for (metric, labels), count in list(self._counts.items()):
            yield Sample(metric, labels, count)
        for metric, times in list(self._times.items()):
            *up_to, total = accumulate(times.between)
            yield Sample(metric, (), Spread(tuple(up_to), total, times.sum))


def bounded(metric: Metric, labels: tuple[str, ...]) -> tuple[str, ...]:
    """Label values as they may be shown. Raises ValueError when there are more or fewer than the metric has."""
    return tuple(label.bounded(value) for label, value in zip(metric.labels, labels, strict=True))


def by_word(metric: Metric, found: Iterable[str]) -> Iterator[Sample]:
    """A gauge of how many of `found` are each word of the metric's one label; words that none is are 0."""
    (label,) = metric.labels
    counts = dict.fromkeys(label.values, 0)
    for word in found:
        counts[word] = counts.get(word, 0) + 1
    for word, count in counts.items():
        yield Sample(metric, (label.bounded(word),), count)
