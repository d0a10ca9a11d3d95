"""What is counted about the list: how full its classes are, what moves into the first, and who leaves its order.

Source: the seed's three events. Counted here are classes and causes alone; ids are only compared, and never told.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from tocsin.contract.ids import WorktreeId
from tocsin.contract.messages import AttentionCause, AttentionClass, Evidence, Row, State
from tocsin.contract.metrics import PROMOTIONS, SWITCHES
from tocsin.contract.tally import Sample, Tally
from tocsin.contract.telemetry import AnyCounted, Class1Promotion, ClassDistribution, SmartToRecentSwitch
from tocsin.listing.orders import RECENT, SMART

DISTRIBUTION_EVERY_MS = 30_000
"""A distribution is told at most so often, on the awake clock (the seed's throttle)."""


class Telemetry:
    """What one console has counted of one workspace's list. Both methods return what is to be said now, in order."""

    def __init__(self) -> None:
        self._classes: dict[WorktreeId, int] | None = None  # of the list before; None: there was none
        self._told_at: int | None = None
        self._tally = Tally(PROMOTIONS, SWITCHES)

    def listed(self, rows: Iterable[Row], is_sorted_smart: bool, awake_ms: int) -> list[AnyCounted]:
        """A list was published. `is_sorted_smart`: some viewer has it in that order now.

        Into class 1 goes who was not there in the list before; the first list of all tells nothing, since what was before is
        not known. Distributions are told only while somebody sorts smart, and at most every DISTRIBUTION_EVERY_MS.
        """
        rows = tuple(rows)
        before, self._classes = self._classes, {row.id: row.attention_class for row in rows}
        counted: list[AnyCounted] = []
        for row in rows:
            if before is None or row.attention_class != AttentionClass.NEEDS_YOU or before.get(row.id) == AttentionClass.NEEDS_YOU:
                continue
            promotion = Class1Promotion(cause=cause_of(row))
            self._tally.add(PROMOTIONS, promotion.cause)
            counted.append(promotion)
        if is_sorted_smart and (self._told_at is None or awake_ms - self._told_at >= DISTRIBUTION_EVERY_MS):
            self._told_at = awake_ms
            counted.append(distribution(rows))
        return counted

    def sorted_by(self, before: str | None, after: str) -> list[AnyCounted]:
        """A viewer sorts another way, by the names that `listing.orders` has. `before`: None when it has only come."""
        if (before, after) != (SMART, RECENT):
            return []
        self._tally.add(SWITCHES)
        return [SmartToRecentSwitch()]

    def samples(self) -> Iterator[Sample]:
        """The same as metrics. How full the classes are, the sorter shows."""
        return self._tally.samples()


def distribution(rows: Iterable[Row]) -> ClassDistribution:
    """How many rows stand in each class."""
    counts = Counter(row.attention_class for row in rows)
    return ClassDistribution(
        class1=counts[AttentionClass.NEEDS_YOU],
        class2=counts[AttentionClass.DONE],
        class3=counts[AttentionClass.WORKING],
        class4=counts[AttentionClass.IDLE],
        total=counts.total(),
    )


def cause_of(row: Row) -> AttentionCause:
    """What lifted a row into class 1: the state of the pane that decided, which stands first; or its title, where no hook says so."""
    pane = row.panes[0]
    if pane.evidence is Evidence.INFERRED:
        return AttentionCause.TITLE
    return AttentionCause.WAITING if pane.state is State.WAITING else AttentionCause.BLOCKED
