"""How verbs show things: texts that a terminal only shows, rows in columns, pages that say they are pages."""

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Controls other than line ends and tabs, marks that turn the direction of writing, and half characters."""


def plain(given: str) -> str:
    """Text that a terminal only shows, and that can be sent: what is unsafe becomes U+FFFD."""
    return _UNSAFE.sub("\ufffd", given.replace("\r\n", "\n"))


def one_line(given: str, limit: int = 0) -> str:
    """The text in one line, cut to `limit` characters when it is not 0."""
    flat = " ".join(plain(given).split())
    return flat if not limit or len(flat) <= limit else f"{flat[: limit - 1]}\u2026"


def columns(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows below their headings, each column as wide as its widest cell; the last one as it comes."""
    lines = [tuple(headings), *(tuple(one_line(cell) for cell in row) for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(headings))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines)


def page(result: Mapping[str, Any], command: Sequence[str]) -> str | None:
    """What has to be said of a list that is only a page of it: how many there are, and the command that goes on."""
    cursor = result.get("next")
    if cursor is None:
        return None
    return f"{len(result['rows'])} of {result['total']}; the next ones: {shlex.join([*command, '--after', str(cursor)])}"


def age(spent_ms: int | None) -> str:
    """A stretch of time in one unit: 8s, 12m, 3h, 5d; - when it is not known."""
    if spent_ms is None:
        return "-"
    seconds = max(0, spent_ms) // 1000
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
