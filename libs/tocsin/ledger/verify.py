"""Is the log whole, and does each view hold what the log says? And a view made anew from the log."""

import asyncio
from collections.abc import AsyncIterator
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

import msgspec

from tocsin.bus.bus import Bus
from tocsin.contract.faults import Unavailable
from tocsin.contract.messages import Body
from tocsin.contract.run import Receipt, Restored
from tocsin.ledger.family import Family, Layout, Parts
from tocsin.ledger.ledger import fold_record, unpack
from tocsin.ledger.receipts import Receipts
from tocsin.store.views import View, Views

S = TypeVar("S", bound=msgspec.Struct)
R = TypeVar("R", bound=Body)

SILENCE_S_MAX = 5.0
"""A log that brings nothing for so long, short of its end, cannot be read."""


class Fault(StrEnum):
    """What can be wrong. The first three are losses; a view that is wrong or missing is mended by a rebuild."""

    HOLE = "hole"  # a record is missing in the log
    LOST = "lost"  # the view knows more than the log: the log was lost and has not been refilled
    UNREADABLE = "unreadable"  # a record does not fold
    WRONG = "wrong"  # the view says something else than the log
    BEHIND = "behind"  # the view is older than the log: right while a service writes, wrong when none runs
    MISSING = "missing"  # there is no view


class Finding(NamedTuple):
    """One thing that is wrong with one aggregate."""

    id: str
    fault: Fault
    detail: str


class Folded(NamedTuple):
    """One aggregate as the log tells it. `at_view`: its parts at the sequence that its view names."""

    id: str
    seq: int
    parts: Parts
    records: int
    at_view: Parts | None


class _Fold:
    def __init__(self, family: Family[Any, Any], layout: Layout[Any], aggregate: str, view_seq: int | None) -> None:
        self.family, self.layout, self.id, self.view_seq = family, layout, aggregate, view_seq
        self.state: Any = family.blank(aggregate)
        self.receipts = Receipts()
        self.seq = 0
        self.records = 0
        self.at_view: Parts | None = None
        self.findings: list[Finding] = []

    def add(self, recorded: Any, seq: int) -> None:
        receipt: Receipt = recorded.receipt
        if receipt.after != self.seq:
            self.findings.append(
                Finding(self.id, Fault.HOLE, f"record {seq} follows {receipt.after}, the one before it here is {self.seq}")
            )
        try:
            first = recorded.events[0] if recorded.events else None
            if isinstance(first, Restored):
                known = self.layout.changes(self.state, self.receipts, None)[0] if first.part > 1 else {}
                state, self.receipts = self.layout.restore(self.id, {**known, **unpack(first.snapshot)})
                self.state = self.family.refilled(state)
            else:
                self.state, self.receipts = fold_record(self.family, self.state, self.receipts, recorded, seq)
        except (LookupError, TypeError, ValueError) as error:
            self.findings.append(Finding(self.id, Fault.UNREADABLE, f"record {seq}: {type(error).__name__}: {error}"))
        self.seq = seq
        self.records += 1
        if seq == self.view_seq:
            self.at_view = self.layout.changes(self.state, self.receipts, None)[0]

    def folded(self) -> Folded:
        return Folded(self.id, self.seq, self.layout.changes(self.state, self.receipts, None)[0], self.records, self.at_view)


async def fold(bus: Bus, family: Family[S, R], views: dict[str, View]) -> AsyncIterator[tuple[Folded, list[Finding]]]:
    """Every aggregate of the log, folded from its first record. Raises Unavailable."""
    layout = Layout(family)
    end = await bus.end(family.subject)
    folds: dict[str, _Fold] = {}
    seen = 0
    async with bus.read(family.subject, after=0) as reading:
        batches = aiter(reading)
        while seen < end:
            try:
                async with asyncio.timeout(SILENCE_S_MAX):
                    batch = await anext(batches)
            except TimeoutError:
                # What was purged leaves sequences that never come; what is still there does.
                if all([await bus.end_of(family.subject, one.id) == one.seq for one in folds.values()]):
                    break
                raise Unavailable(f"the log of {family.subject.name} cannot be read to its end") from None
            for heard in batch:
                seen = heard.seq
                one = family.id_of(heard.body)
                if one not in folds:
                    known = views.get(one)
                    folds[one] = _Fold(family, layout, one, known.seq if known is not None else None)
                folds[one].add(heard.body, heard.seq)
    for done in folds.values():
        if not family.over(done.state):
            yield done.folded(), done.findings


async def verify(bus: Bus, views: Views, family: Family[S, R]) -> tuple[int, int, list[Finding]]:
    """How many aggregates and records there are, and all that is wrong. Raises Unavailable."""
    birth = await bus.birth(family.subject)
    stored = {one.id: one async for one in views.all()}
    findings: list[Finding] = []
    aggregates = records = 0
    left = dict(stored)
    async for folded, found in fold(bus, family, stored):
        aggregates += 1
        records += folded.records
        findings += found
        view = left.pop(folded.id, None)
        if view is None:
            findings.append(Finding(folded.id, Fault.MISSING, f"the log has it up to {folded.seq}"))
        elif view.log != birth:
            findings.append(Finding(folded.id, Fault.WRONG, "the view is of another log"))
        elif folded.at_view is None:
            findings.append(
                Finding(
                    folded.id,
                    Fault.LOST if view.seq > folded.seq else Fault.WRONG,
                    f"the view names record {view.seq}, the log ends at {folded.seq}",
                )
            )
        elif differing := _differing(folded.at_view, view.parts):
            findings.append(Finding(folded.id, Fault.WRONG, f"differs in {', '.join(differing[:5])}"))
        elif view.seq < folded.seq:
            findings.append(Finding(folded.id, Fault.BEHIND, f"the view is of record {view.seq}, the log ends at {folded.seq}"))
    findings += [Finding(one.id, Fault.LOST, f"the view is of record {one.seq}, the log has nothing") for one in left.values()]
    return aggregates, records, findings


async def rebuild(bus: Bus, views: Views, family: Family[S, R]) -> int:
    """Write every view anew from the log; returns how many. Raises Unavailable.

    Views that the log knows nothing of stay: they are what it would be refilled from.
    """
    birth = await bus.birth(family.subject)
    mark = await views.mark(uuid4().hex)
    mark = await views.mark(mark.life, birth, mark.log)
    written = 0
    async for folded, _ in fold(bus, family, {}):
        await views.forget(folded.id)
        await views.write(mark, folded.id, folded.seq, folded.parts)
        written += 1
    return written


def _differing(parts: Parts, stored: Parts) -> list[str]:
    return sorted(
        name for name in parts.keys() | stored.keys()
        if name not in parts or name not in stored or msgspec.json.decode(parts[name]) != msgspec.json.decode(stored[name])
    )  # fmt: skip
