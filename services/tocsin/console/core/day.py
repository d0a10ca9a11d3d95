"""The picture of the day: how many worktrees were of each class, and how long those that needed somebody had to wait.

Coarse samples without ids. What happened while no console ran is a gap, not a zero.
"""

from collections.abc import Iterable

import msgspec

from tocsin.console.core.lists import counts
from tocsin.contract.ids import WorktreeId
from tocsin.contract.messages import AttentionClass, WorktreesSorted

SLOT_MS = 120_000
"""Length of a sample's slot: a day of them is one dot of a plot each."""

SLOTS_MAX = 24 * 3_600_000 // SLOT_MS
"""Samples kept: a day."""

WAITS_MAX = 32
"""Waits kept of one slot; nobody answers more in two minutes."""


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One slot. `slot`: UTC milliseconds over SLOT_MS. `counts`: worktrees of class 1 to 4 at its end. `waits_s`: how long, in
    seconds, each worktree had needed somebody that stopped needing one in it."""

    slot: int
    counts: tuple[int, int, int, int]
    waits_s: tuple[int, ...] = ()


class Tally:
    """Counts what the lists of one slot show. Times are UTC milliseconds."""

    def __init__(self) -> None:
        self._counts: tuple[int, int, int, int] | None = None
        self._needing: dict[WorktreeId, int] = {}
        self._waits_s: list[int] = []

    def hear(self, body: WorktreesSorted, now_ms: int) -> None:
        """A list. One that is only remembered counts for nothing: it says nothing about now."""
        if body.restored:
            return
        needing = {row.id: row.attention_at for row in body.worktrees if row.attention_class == AttentionClass.NEEDS_YOU}
        known = {row.id for row in body.worktrees}
        for one, since_ms in self._needing.items():
            # A worktree that is gone was not answered.
            if one not in needing and one in known and len(self._waits_s) < WAITS_MAX:
                self._waits_s.append(max(0, now_ms - since_ms) // 1000)
        self._needing = needing
        self._counts = counts(body)

    def take(self, slot: int) -> Sample | None:
        """The sample of a slot that is over, or is being left; None when no list was heard. The next one begins without waits."""
        if self._counts is None:
            return None
        waits, self._waits_s = tuple(self._waits_s), []
        return Sample(slot=slot, counts=self._counts, waits_s=waits)

    def silence(self) -> None:
        """Nothing is known any more: the bus is away."""
        self._counts = None
        self._needing.clear()


def merged(stored: Sample | None, fresh: Sample) -> Sample:
    """What is to be kept of a slot for which two consoles have a sample: replicas see the same lists, and the one with more
    waits has seen more of them."""
    if stored is None or len(stored.waits_s) <= len(fresh.waits_s):
        return fresh
    return msgspec.structs.replace(fresh, waits_s=stored.waits_s)


def within_a_day(samples: Iterable[Sample], now_ms: int) -> list[Sample]:
    """Samples of the last 24 hours, oldest first, one for each slot."""
    first = now_ms // SLOT_MS - SLOTS_MAX
    by_slot = {one.slot: one for one in samples if one.slot > first}
    return [by_slot[slot] for slot in sorted(by_slot)]
