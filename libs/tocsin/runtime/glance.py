"""The list at a glance: a file in the state folder for status lines, which are drawn too often to open a connection each time.

pane-host keeps it true; who reads it needs neither the bus nor a server. Only the standard library is used here: all that a
status line imports is waited for at each drawing.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

FILE = "glance.json"

AGAIN_MS = 30_000
"""It is written so often at least, so that an old one shows that nobody keeps it any more."""

TRUSTED_MS_MAX = 3 * AGAIN_MS

NEEDS_MAX = 20
"""How many of the worktrees that need somebody are named; all are counted."""


class Need(NamedTuple):
    """A worktree that needs a person."""

    name: str
    host: str
    reason: str
    since_ms: int


class Glance(NamedTuple):
    """What a status line can show. `classes`: how many worktrees are in class 1 to 4; `needs`: those in class 1, in the list's order.

    `why`: why there is no list, if there is none; then all else is empty.
    """

    at_ms: int
    classes: tuple[int, int, int, int] = (0, 0, 0, 0)
    needs: tuple[Need, ...] = ()
    why: str | None = None


def plain(glance: Glance) -> dict[str, Any]:
    """As JSON values."""
    return glance._asdict() | {"needs": [need._asdict() for need in glance.needs]}


def read(state: Path) -> Glance | None:
    """The last glance; None when there is none that can be read."""
    try:
        fields = json.loads((state / FILE).read_bytes())
        first, second, third, fourth = map(int, fields["classes"])
        needs = tuple(Need(**need) for need in fields["needs"])
        return Glance(int(fields["at_ms"]), (first, second, third, fourth), needs, fields["why"])
    except (OSError, ValueError, TypeError, KeyError):
        return None
