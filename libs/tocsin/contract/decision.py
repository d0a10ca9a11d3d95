"""What a core decides about one command of an aggregate: what becomes true, and what the caller is told."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tocsin.contract.refusals import Refusal


class Decision(NamedTuple):
    """`events` become true together, `result` is the receipt's. No events: a success that records nothing.

    `refusal`: what the caller is told although `events` are recorded (a refused report that the coordinator must hear of);
    a repeat of the request is told the same. `duplicate`: what was asked is true already, and the receipt says so.
    """

    events: tuple[Any, ...] = ()
    result: Mapping[str, Any] = {}
    refusal: Refusal | None = None
    duplicate: bool = False
