"""Quiet hours: times of the day, by the person's clock, in which nothing rings but what is marked urgent."""

import re
from collections.abc import Iterable
from typing import NamedTuple

_HOURS = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)-([01]?\d|2[0-3]):([0-5]\d)")


class BadHours(ValueError):
    """What was written is no span of hours."""


class Hours(NamedTuple):
    """From one minute of the day until before another; over midnight when the second is the smaller one, the whole day when both are the same."""

    begin: int
    end: int

    def __str__(self) -> str:
        return "-".join(f"{minute // 60:02}:{minute % 60:02}" for minute in self)

    def cover(self, minute: int) -> bool:
        """Whether a minute of the day, 0 to 1439, lies within."""
        if self.begin < self.end:
            return self.begin <= minute < self.end
        return minute >= self.begin or minute < self.end


def hours(spans: Iterable[str]) -> tuple[Hours, ...]:
    """Spans as a person writes them: `22:00-07:00`. Raises BadHours."""
    found = []
    for span in spans:
        match = _HOURS.fullmatch(span)
        if match is None:
            raise BadHours(f"{span!r} is no span of hours such as 22:00-07:00")
        begin_h, begin_m, end_h, end_m = map(int, match.groups())
        found.append(Hours(60 * begin_h + begin_m, 60 * end_h + end_m))
    return tuple(found)


def is_quiet(spans: Iterable[Hours], minute: int) -> bool:
    """Whether it is quiet at a minute of the day. What the clock shows decides: an hour that is skipped in spring is not quiet, one that
    comes twice in autumn is quiet twice."""
    return any(span.cover(minute) for span in spans)
