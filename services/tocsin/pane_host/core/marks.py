"""What a line of an agent's transcript says where its hooks are silent. A format that is not known is no evidence.

Transcripts are internal formats without a promise; only whole, exact shapes count, and no text leaves this file.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any

from tocsin.contract.messages import Mark, MarkKind

MARKS_MAX = 8
"""Marks kept per pane: one turn has one or two."""

INTERRUPTIONS = frozenset({"[Request interrupted by user]", "[Request interrupted by user for tool use]"})
"""What Claude Code writes for Esc, a refused approval and a dismissed question (measured with 2.1.332)."""

REVIEWERS = frozenset({"auto_review", "guardian_subagent"})
"""Codex's automatic approvals reviewer, and its older name."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a line says. `said_ms` is the line's own time, None when it has none."""

    kind: MarkKind
    turn: str
    session: str | None
    said_ms: int | None


def _time_ms(value: object) -> int | None:
    try:
        return int(datetime.fromisoformat(value).timestamp() * 1000) if isinstance(value, str) else None
    except (ValueError, OverflowError):
        return None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _claude(row: dict[str, Any]) -> Found | None:
    message = row.get("message")
    turn = _text(row.get("promptId"))
    # A side chain is a child's: its end is not the turn's.
    if row.get("type") != "user" or row.get("isSidechain") is True or not isinstance(message, dict) or turn is None:
        return None
    content = message.get("content")
    texts = (
        [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
        if isinstance(content, list)
        else [content]
    )
    if not any(isinstance(text, str) and text in INTERRUPTIONS for text in texts):
        return None
    return Found(MarkKind.INTERRUPTED, turn, _text(row.get("sessionId")), _time_ms(row.get("timestamp")))


def _codex(row: dict[str, Any]) -> Found | None:
    context = row.get("payload")
    if row.get("type") != "turn_context" or not isinstance(context, dict):
        return None
    turn, reviewer = _text(context.get("turn_id")), context.get("approvals_reviewer")
    if turn is None or not isinstance(reviewer, str) or reviewer not in REVIEWERS:
        return None
    return Found(MarkKind.AUTO_REVIEWED, turn, None, _time_ms(row.get("timestamp")))


@dataclass(frozen=True, slots=True)
class Format:
    """An agent's transcript: `hint` stands in every line that could be a mark, so that others are not even decoded."""

    hint: bytes
    read: Callable[[dict[str, Any]], Found | None]


FORMATS: Mapping[str, Format] = MappingProxyType(
    {"claude": Format(b"[Request interrupted by user", _claude), "codex": Format(b'"approvals_reviewer"', _codex)}
)


def read_line(agent: str, line: bytes) -> Found | None:
    """The mark in one whole line of `agent`'s transcript, or None."""
    known = FORMATS.get(agent)
    if known is None or known.hint not in line:
        return None
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return known.read(row) if isinstance(row, dict) else None


def noted(marks: tuple[Mark, ...], found: Found, session: str, now_ms: int) -> tuple[Mark, ...]:
    """The pane's marks with `found` in them; the same object when it was there already.

    `session` is the one that the hooks named, for lines that do not name theirs. A line's time may not lie ahead.
    """
    session = found.session or session
    if any((mark.kind, mark.session, mark.turn) == (found.kind, session, found.turn) for mark in marks):
        return marks
    at_ms = now_ms if found.said_ms is None else min(found.said_ms, now_ms)
    number = marks[-1].number + 1 if marks else 1
    return (*marks, Mark(number=number, kind=found.kind, session=session, turn=found.turn, at_ms=at_ms))[-MARKS_MAX:]
