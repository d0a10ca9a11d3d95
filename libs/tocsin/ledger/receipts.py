"""Receipts of one aggregate: what the same request id means when it comes again. Kept within bounds, oldest dropped first."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from tocsin.contract.messages import Part
from tocsin.contract.parties import Caller
from tocsin.contract.run import Receipt
from tocsin.contract.table import Table

RECEIPTS_MAX = 10_000
"""Receipts of one aggregate; beyond it the oldest that are resolved go."""

AGE_MS_MAX = 30 * 24 * 3_600_000
"""A receipt older than this goes too: nobody retries a request of last month."""

LOOKS_MAX = 4
"""Old receipts looked at for each new one: the cost of a command does not grow with what is kept."""


class Kept(Part, frozen=True, kw_only=True):
    """One receipt, and whose request it answers."""

    who: str
    request: str
    payload_hash: str
    receipt: Receipt


class Receipts(NamedTuple):
    """All of one aggregate, numbered in the order in which they came."""

    by_number: Table[int, Kept] = Table()
    by_request: Table[str, int] = Table()
    first: int = 1
    next: int = 1

    @classmethod
    def of(cls, kept: Mapping[int, Kept]) -> "Receipts":
        """Put together from what a view holds."""
        numbers = {_name(one.who, one.request): number for number, one in sorted(kept.items())}
        return cls(Table(kept), Table(numbers), min(kept, default=1), max(kept, default=0) + 1)

    def find(self, caller: Caller, request: str) -> Kept | None:
        """The receipt of this caller's request, or None."""
        number = self.by_request.get(_name(caller.fingerprint, request))
        return None if number is None else self.by_number.get(number)

    def add(self, one: Kept, unresolved: Callable[[Receipt], bool]) -> "Receipts":
        """With one more, and without the oldest beyond the bounds. What is unresolved is put behind the others instead."""
        table, names, first, number = self
        names = names.set(_name(one.who, one.request), number)
        table = table.set(number, one)
        number += 1
        for _ in range(LOOKS_MAX):
            if first >= number - 1:
                break
            oldest = table.get(first)
            if oldest is None:
                first += 1
                continue
            if len(table) <= RECEIPTS_MAX and oldest.receipt.at_ms >= one.receipt.at_ms - AGE_MS_MAX:
                break
            name = _name(oldest.who, oldest.request)
            table = table.delete(first)
            if unresolved(oldest.receipt):
                table, names = table.set(number, oldest), names.set(name, number)
                number += 1
            else:
                names = names.delete(name)
            first += 1
        return Receipts(table, names, first, number)


def _name(who: str, request: str) -> str:
    return f"{who}\x1f{request}"
