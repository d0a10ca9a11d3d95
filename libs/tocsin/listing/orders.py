"""Other orders of the same rows, to set beside the one that is kept: what a person would have seen under another rule."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tocsin.contract.messages import Row
from tocsin.listing.names import name_key

SMART = "smart"
"""The order that is kept, in which rows are published."""

RECENT = "recent"

KEYS: Mapping[str, Callable[[Row], Any]] = {
    RECENT: lambda row: (-row.active_at, name_key(row.name), row.id),
    "oldest-first": lambda row: (row.active_at, name_key(row.name), row.id),
    "name": lambda row: (name_key(row.name), row.id),
}
"""The other orders."""


def ordered(rows: Sequence[Row], policy: str) -> list[Row]:
    """`rows`, which stand in the smart order, under `policy`: `smart`, `recent`, `oldest-first` or `name`."""
    return list(rows) if policy == SMART else sorted(rows, key=KEYS[policy])
