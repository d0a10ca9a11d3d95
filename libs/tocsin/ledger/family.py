"""What the ledger must know of a family of aggregates, and how a state is cut into the parts that its view holds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from tocsin.contract.messages import Body
from tocsin.contract.subjects import Subject
from tocsin.contract.table import Table
from tocsin.ledger.receipts import Kept, Receipts

S = TypeVar("S", bound=msgspec.Struct)
R = TypeVar("R", bound=Body)

HEAD = "head"
"""The part that holds every plain field of a state."""

RECEIPTS = "receipt"

Parts = dict[str, bytes]
"""A state as its view holds it: JSON by name. `head`, `<table>/<key>`, `receipt/<number>`."""

_encode = msgspec.json.Encoder().encode


def _same(state: Any) -> Any:
    return state


@dataclass(frozen=True)
class Family(Generic[S, R]):
    """One subject's aggregates.

    `state`: a frozen msgspec Struct of plain values and Tables of plain values. `derived`: fields that follow from the
    others, left out of the view and filled in by `derive`. `unresolved`: what a receipt began is not settled yet, so it is
    never dropped. `over`: nothing of the aggregate need be kept. `refilled`: the state after it was put back from a snapshot.
    """

    subject: Subject[R]
    state: type[S]
    blank: Callable[[str], S]
    evolve: Callable[[S, R], S]
    derived: tuple[str, ...] = ()
    derive: Callable[[S], S] = _same
    unresolved: Callable[[S, Any], bool] = field(default=lambda state, receipt: False)
    over: Callable[[S], bool] = field(default=lambda state: False)
    refilled: Callable[[S], S] = _same

    @property
    def key(self) -> str:
        """The field of a record that names its aggregate."""
        return self.subject.keys[0]

    def id_of(self, recorded: R) -> str:
        """The aggregate that a record is of."""
        name: str = getattr(recorded, self.key)
        return name


class Layout(Generic[S]):
    """Cuts states of one type into parts and puts them together again."""

    def __init__(self, family: "Family[S, Any]") -> None:
        self._family = family
        self._tables: dict[str, tuple[type, msgspec.json.Decoder[Any]]] = {}
        self._plain: dict[str, msgspec.json.Decoder[Any]] = {}
        hints = get_type_hints(family.state)
        for name in family.state.__struct_fields__:
            if name in family.derived:
                continue
            if get_origin(hints[name]) is Table:
                key, value = get_args(hints[name])
                self._tables[name] = (key if isinstance(key, type) else str, msgspec.json.Decoder(value))
            else:
                self._plain[name] = msgspec.json.Decoder(hints[name])
        self._head = msgspec.json.Decoder(dict[str, msgspec.Raw])
        self._kept = msgspec.json.Decoder(Kept)

    def changes(self, state: S, receipts: Receipts, before: "tuple[S, Receipts] | None") -> tuple[Parts, list[str]]:
        """The parts that differ from `before` (None: all of them), and the names of those that are gone."""
        parts: Parts = {}
        gone: list[str] = []
        old, old_receipts = before if before is not None else (None, None)
        if old is None or any(getattr(state, name) != getattr(old, name) for name in self._plain):
            parts[HEAD] = _encode({name: getattr(state, name) for name in self._plain})
        tables: list[tuple[str, Table[Any, Any], Table[Any, Any] | None]] = [
            (name, getattr(state, name), getattr(old, name) if old is not None else None) for name in self._tables
        ]
        tables.append((RECEIPTS, receipts.by_number, old_receipts.by_number if old_receipts is not None else None))
        for name, table, old_table in tables:
            for key in table.changed_since(old_table) if old_table is not None else table:
                value = table.get(key)
                if value is None:
                    gone.append(f"{name}/{key}")
                else:
                    parts[f"{name}/{key}"] = _encode(value)
        return parts, gone

    def restore(self, aggregate: str, parts: Mapping[str, bytes]) -> tuple[S, Receipts]:
        """The state that `parts` hold. Parts and fields that this version does not know are left out.

        Raises msgspec.MsgspecError when a part is not of its type.
        """
        state = self._family.blank(aggregate)
        rows: dict[str, dict[Any, Any]] = {name: {} for name in self._tables}
        kept: dict[int, Kept] = {}
        plain: dict[str, Any] = {}
        for name, raw in parts.items():
            table, _, key = name.partition("/")
            if name == HEAD:
                plain = {field: self._plain[field].decode(value) for field, value in self._head.decode(raw).items() if field in self._plain}
            elif table == RECEIPTS:
                kept[int(key)] = self._kept.decode(raw)
            elif table in self._tables:
                kind, decoder = self._tables[table]
                rows[table][kind(key)] = decoder.decode(raw)
        rebuilt = msgspec.structs.replace(state, **plain, **{name: Table(cells) for name, cells in rows.items()})
        return self._family.derive(rebuilt), Receipts.of(kept)
