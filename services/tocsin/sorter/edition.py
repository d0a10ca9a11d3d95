"""One published list: what it says, how it is encoded piece by piece, and how the next one differs from it.

A row is encoded once, when it changes; its rank stands in front of it, so a list of a thousand is mostly a join of bytes.
"""

import contextlib
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from tocsin.contract.ids import WorkspaceId, WorktreeId
from tocsin.contract.messages import Row, WorktreesMoved, WorktreesSorted

FEW = 8
"""Up to so many rows are found one by one: a search of a list is much faster than a look at each of its items."""

_encoder = msgspec.json.Encoder()
_HEAD = b'{"rank":0,'
_NO_ROWS = b'"worktrees":[]'
_heads: list[bytes] = []
"""The beginning of the row of each rank, behind the comma that parts it from the row before."""


def heads(count: int) -> list[bytes]:
    """The beginnings of the first `count` rows."""
    while len(_heads) < count:
        comma = b"," if _heads else b""
        _heads.append(b'%b{"rank":%d,' % (comma, len(_heads) + 1))
    return _heads if len(_heads) == count else _heads[:count]


def tail(row: Row) -> bytes:
    """A row of rank 0 as it travels, without its rank, which is the first field of every row."""
    encoded = _encoder.encode(row)
    if not encoded.startswith(_HEAD):
        raise AssertionError("a row's rank is no longer its first field")
    return encoded[len(_HEAD) :]


def without(order: Sequence[WorktreeId], some: Set[WorktreeId]) -> list[WorktreeId]:
    """`order` without `some`."""
    if len(some) > FEW:
        return [one for one in order if one not in some]
    left = list(order)
    for one in some:
        # Those that are new, or gone already, are not in it.
        with contextlib.suppress(ValueError):
            left.remove(one)
    return left


def ranked(row: Row, rank: int) -> Row:
    """The same row at `rank`."""
    return msgspec.structs.replace(row, rank=rank)


def differs(before: Row | None, after: Row | None, *, but: Iterable[str] = ("active_at",)) -> bool:
    """True when somebody who looks would see a difference. Fields in `but` are no reason to say a list again."""
    if before is None or after is None:
        return before is not after
    if before == after:
        return False
    same: dict[str, Any] = {field: getattr(before, field) for field in but}
    return msgspec.structs.replace(after, **same) != before


@dataclass(frozen=True)
class Edition:
    """A list as published. Rows are held without their rank, which is their place in `order`."""

    workspace: WorkspaceId
    birth: str
    version: int
    at_ms: int
    order: Sequence[WorktreeId]
    rows: Mapping[WorktreeId, Row]
    tails: Mapping[WorktreeId, bytes]
    restored: bool = False

    @classmethod
    def of(cls, body: WorktreesSorted) -> "Edition":
        """The edition that `body` carries."""
        rows = {row.id: ranked(row, 0) for row in body.worktrees}
        tails = {one: tail(row) for one, row in rows.items()}
        return cls(body.workspace, body.birth, body.version, body.at_ms, list(rows), rows, tails, body.restored)

    @classmethod
    def first(cls, workspace: WorkspaceId, birth: str) -> "Edition":
        """Before anything was published."""
        return cls(workspace, birth, 0, 0, [], {}, {})

    def next(
        self, at_ms: int, order: Sequence[WorktreeId], changed: Mapping[WorktreeId, Row | None], *, restored: bool = False
    ) -> "Edition":
        """The list after this one; `changed` holds every row that is another or, as None, is no more."""
        rows, tails = dict(self.rows), dict(self.tails)
        for one, row in changed.items():
            if row is None:
                rows.pop(one, None)
                tails.pop(one, None)
            else:
                rows[one] = row
                tails[one] = tail(row)
        return Edition(self.workspace, self.birth, self.version + 1, at_ms, order, rows, tails, restored)

    @cached_property
    def encoded(self) -> bytes:
        """The whole list as it travels and as it is stored: what encoding a WorktreesSorted gives, joined from pieces at once."""
        count = len(self.order)
        said = WorktreesSorted(
            workspace=self.workspace, birth=self.birth, version=self.version, at_ms=self.at_ms, worktrees=(), restored=self.restored
        )
        before, _, after = _encoder.encode(said).partition(_NO_ROWS)
        pieces = [before + _NO_ROWS[:-1]] * (2 * count + 1) + [b"]" + after]
        pieces[1:-1:2] = heads(count)
        pieces[2:-1:2] = map(self.tails.__getitem__, self.order)
        return b"".join(pieces)

    def same_to_see(self, before: "Edition", among: Iterable[WorktreeId], *, but: Iterable[str] = ("active_at",)) -> bool:
        """True when nothing shown differs from `before`: neither the order nor a row `among` those that may."""
        return self.order == before.order and not any(differs(before.rows.get(one), self.rows.get(one), but=but) for one in among)

    def moved(self, before: "Edition", among: Iterable[WorktreeId]) -> WorktreesMoved:
        """What a reader of `before` needs: rows among `among` that changed or passed others, and those that are gone.

        Applied as the contract says (take `removed` and `changed` out, put `changed` back at their ranks) it gives this list.
        """
        removed = {one for one in among if one in before.rows and one not in self.rows}
        changed = {one for one in among if one in self.rows and self.rows[one] != before.rows.get(one)}
        stayed_before, stayed = without(before.order, removed | changed), without(self.order, changed)
        if stayed != stayed_before:
            # What the others did not pass by themselves was passed by rows that show no change of their own.
            changed |= {one for one, other in zip(stayed, stayed_before, strict=True) if one != other}
        if len(changed) <= FEW:
            places = sorted((self.order.index(one) + 1, one) for one in changed)
        else:
            places = [(rank, one) for rank, one in enumerate(self.order, 1) if one in changed]
        return WorktreesMoved(
            workspace=self.workspace,
            birth=self.birth,
            version=self.version,
            at_ms=self.at_ms,
            changed=tuple(ranked(self.rows[one], rank) for rank, one in places),
            removed=tuple(sorted(removed)),
        )


def apply(before: Sequence[Row], moved: WorktreesMoved) -> list[Row]:
    """The rows after a delta, as any reader may do it. The caller has compared birth and version."""
    gone = {*moved.removed, *(row.id for row in moved.changed)}
    rows = [row for row in before if row.id not in gone]
    for row in moved.changed:
        rows.insert(row.rank - 1, row)
    return [ranked(row, rank) for rank, row in enumerate(rows, 1)]
