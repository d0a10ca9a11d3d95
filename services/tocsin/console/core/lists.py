"""What a viewer is sent: the list in the order it wants, then what differs from the one it has.

An edition is named `<birth>.<version>`. A viewer that was cut off says which one it has; while that is remembered it gets
the difference, all changes in between as one, else the whole list. So nothing is sent twice and nothing is left out.
"""

from collections import OrderedDict
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from tocsin.contract.ids import WorktreeId
from tocsin.contract.messages import AttentionClass, Row, WorktreesSorted
from tocsin.contract.notices import Mark, NoticeDue
from tocsin.listing.marks import MINE, mine
from tocsin.listing.orders import ordered
from tocsin.listing.plain import plain_row

ROWS_KEPT_MAX = 20_000
"""Rows of all remembered editions together: some 20 MB at most. Beyond it the oldest edition is forgotten."""


def name_of(body: WorktreesSorted) -> str:
    """The edition's name, which is the id of its event."""
    return f"{body.birth}.{body.version}"


class Editions:
    """The latest list, and some before it."""

    def __init__(self, rows_max: int = ROWS_KEPT_MAX) -> None:
        self._rows_max = rows_max
        self._kept: OrderedDict[str, WorktreesSorted] = OrderedDict()
        self._rows = 0

    @property
    def latest(self) -> WorktreesSorted | None:
        """The last one heard."""
        return next(reversed(self._kept.values()), None)

    def hear(self, body: WorktreesSorted) -> None:
        """Remember a list as the latest."""
        name = name_of(body)
        before = self._kept.pop(name, None)
        self._rows += len(body.worktrees) - (len(before.worktrees) if before is not None else 0)
        self._kept[name] = body
        while self._rows > self._rows_max and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            self._rows -= len(oldest.worktrees)

    def find(self, name: str | None) -> WorktreesSorted | None:
        """The edition of that name, if it is remembered."""
        return self._kept.get(name) if name else None


def _facts(body: WorktreesSorted) -> dict[str, Any]:
    return {"birth": body.birth, "version": body.version, "at": body.at_ms, "restored": body.restored, "workspace": body.workspace}


Marks = Mapping[WorktreeId, Mark]
"""What the person has marked."""

NO_MARKS: Marks = MappingProxyType({})


def _placed_by(body: WorktreesSorted, sort: str, marks: Marks = NO_MARKS, now_ms: int = 0) -> list[Row]:
    return mine(body.worktrees, marks, now_ms) if sort == MINE else ordered(body.worktrees, sort)


def order_of(body: WorktreesSorted, sort: str, marks: Marks = NO_MARKS, now_ms: int = 0) -> list[WorktreeId]:
    """All ids as they stand under `sort`."""
    return [row.id for row in _placed_by(body, sort, marks, now_ms)]


def whole(body: WorktreesSorted, sort: str, marks: Marks = NO_MARKS, now_ms: int = 0) -> dict[str, Any]:
    """All of a list under `sort`. Rows keep the rank of the smart order."""
    return {**_facts(body), "sort": sort, "worktrees": [plain_row(row) for row in _placed_by(body, sort, marks, now_ms)]}


def plain_notice(notice: NoticeDue) -> dict[str, Any]:
    """A notice as a page shows it."""
    return {"id": notice.id, "title": notice.title, "text": notice.text, "urgent": notice.urgent, "worktrees": list(notice.worktrees)}


def _placed(row: Row) -> Row:
    return msgspec.structs.replace(row, rank=0)


def change(before: WorktreesSorted, after: WorktreesSorted, sort: str, marks: Marks = NO_MARKS, now_ms: int = 0) -> dict[str, Any]:
    """What leads from one list to another: rows that are new or differ in anything but their rank, ids that left, and `order`,
    all ids as they stand under `sort`, when that is another than before."""
    had = {row.id: row for row in before.worktrees}
    order = order_of(after, sort, marks, now_ms)
    changed = [row for row in after.worktrees if row.id not in had or _placed(had[row.id]) != _placed(row)]
    staying = {row.id for row in after.worktrees}
    told: dict[str, Any] = {
        **_facts(after),
        "changed": [plain_row(row) for row in changed],
        "removed": [one for one in had if one not in staying],
    }
    # An order that time has changed may differ from what was told: it is cheap to tell it again.
    if sort == MINE or order != order_of(before, sort, marks, now_ms):
        told["order"] = order
    return told


def counts(body: WorktreesSorted) -> tuple[int, int, int, int]:
    """How many worktrees there are of each class: needs you, done, working, idle."""
    found = [0, 0, 0, 0]
    for row in body.worktrees:
        found[row.attention_class - AttentionClass.NEEDS_YOU] += 1
    return found[0], found[1], found[2], found[3]
