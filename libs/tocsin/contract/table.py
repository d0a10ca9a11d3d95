"""Table: a map that never changes, of which changed copies cost nothing to speak of.

State of an aggregate is made of plain values and Tables: `state.tasks.set("t1", task)` is a new Table, the old one still
says what it said. The newest version of a family holds one dict; every older one holds only how it differs from the next
newer, and takes the dict over when it is asked (so going back and forth between far-apart versions is slow; state after
state, with a step back when a write was overtaken, is not). What changed between two versions is known without a look at
the rest. For one thread, as an event loop is.
"""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final, Generic, TypeVar, cast

K = TypeVar("K")
V = TypeVar("V")

_ABSENT: Final[Any] = object()


class Table(Mapping[K, V], Generic[K, V]):
    """Look like a Mapping; `set`, `set_all` and `delete` return another Table. Iterates in no promised order."""

    __slots__ = ("_cells", "_newer", "_undo")

    def __init__(self, items: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> None:
        self._cells: dict[K, V] | None = dict(items)
        self._newer: Table[K, V] | None = None
        self._undo: dict[K, V] = {}  # what differs here from the next newer version; _ABSENT: not here

    def set(self, key: K, value: V) -> "Table[K, V]":
        """This table with `value` at `key`."""
        cells = self._own()
        before = cells.get(key, _ABSENT)
        return self if before is value else self._next({key: value})

    def set_all(self, items: Mapping[K, V]) -> "Table[K, V]":
        """This table with all of `items`."""
        return self._next(dict(items)) if items else self

    def delete(self, *keys: K) -> "Table[K, V]":
        """This table without `keys`; those that it lacks make no difference."""
        cells = self._own()
        gone = {key: cast(V, _ABSENT) for key in keys if key in cells}
        return self._next(gone) if gone else self

    def changed_since(self, older: "Table[K, V] | None") -> AbstractSet[K]:
        """Keys at which this table may differ from `older`, a former version of it; all keys of both when they are no kin."""
        self._own()
        changed: dict[K, None] = {}
        at = older
        while at is not None and at is not self:
            changed.update(dict.fromkeys(at._undo))
            at = at._newer
        if at is self:
            return changed.keys()
        return dict.fromkeys([*self, *(older or ())]).keys()

    def __getitem__(self, key: K) -> V:
        return self._own()[key]

    def __contains__(self, key: object) -> bool:
        return key in self._own()

    def __iter__(self) -> Iterator[K]:
        # A copy: whoever iterates may ask another version in between, which takes the dict away.
        return iter(list(self._own()))

    def __len__(self) -> int:
        return len(self._own())

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return dict(self._own()) == dict(other._own()) if isinstance(other, Table) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Table({self._own()!r})"

    def _next(self, items: dict[K, V]) -> "Table[K, V]":
        cells = self._own()
        if not cells:
            # An empty table may be the beginning of many: none of them takes its dict.
            return Table(items)
        after: Table[K, V] = Table.__new__(type(self))
        after._newer, after._undo, after._cells = None, {}, cells
        self._hand_over(items, after)
        return after

    def _hand_over(self, items: Mapping[K, V], after: "Table[K, V]") -> None:
        """Give the dict to `after`, with `items` written into it, and remember here what stood there before."""
        cells = cast(dict[K, V], self._cells)
        undo: dict[K, V] = {}
        for key, value in items.items():
            undo[key] = cells.get(key, _ABSENT)
            if value is _ABSENT:
                cells.pop(key, None)
            else:
                cells[key] = value
        self._cells, self._newer, self._undo = None, after, undo
        after._cells, after._newer, after._undo = cells, None, {}

    def _own(self) -> dict[K, V]:
        """The dict, taken over from the version that has it."""
        if self._cells is not None:
            return self._cells
        path = [self]
        while (newer := path[-1]._newer) is not None:
            path.append(newer)
        holder = path.pop()
        while path:
            heir = path.pop()
            holder._hand_over(dict(heir._undo), heir)
            holder = heir
        return cast(dict[K, V], self._cells)
