"""May we type into a live pane? And what stands in its composer, read from the captured screen.

How a composer looks is known for few agents; what is not recognised for certain is never called empty.
Source: README, decision on typing; the looks were measured on Claude Code 2.1.332, Codex 0.171.0, Gemini CLI 0.61.0, Qwen Code 0.24.4,
opencode 1.18.33 and pi 0.73.1.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from tocsin.contract.messages import Evidence, PaneStatus, Process, State

SHOWN_MAX = 400
"""Characters of a composer's content that a fact tells."""

FOOTER_ROWS_MAX = 6
"""Rows below a composer: more of them, and it is something else on the screen."""

_STYLE = re.compile("\x1b\\[([0-9;:]*)m")
_ESCAPES = re.compile("\x1b(?:\\[[0-9;:?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|[ -/]*[0-~])|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_INVISIBLE = re.compile("[\\s\u200b\ufeff]+")


class Held(StrEnum):
    """Why nothing is typed now. The first that applies."""

    GONE = "gone"  # the terminal, or the agent that was meant, is not there any more
    NO_STATUS = "no_status"  # nothing is known of its state
    WORKING = "working"
    PROMPT = "prompt"  # a permission, question, plan or form stands
    UNCERTAIN = "uncertain"  # its state is not known for certain
    RECENT_KEY = "recent_key"
    SCROLLED = "scrolled"  # a person looks at its past: keys would go there
    COMPOSER_UNKNOWN = "composer_unknown"  # what it shows is not recognised
    COMPOSER_BUSY = "composer_busy"  # a text stands in it
    CHANGED = "changed"  # between writing and sending


@dataclass(frozen=True, slots=True)
class Screen:
    """What a terminal shows, with styles, and where its cursor is (from 0)."""

    rows: tuple[str, ...]
    cursor_x: int
    cursor_y: int
    scrolled: bool = False


@dataclass(frozen=True, slots=True)
class Composer:
    """What stands in a composer; `text` is None when none is recognised."""

    text: str | None

    @property
    def empty(self) -> bool:
        """Certainly empty."""
        return self.text == ""


@dataclass(frozen=True, slots=True)
class Look:
    """How an agent's composer looks: between two rows that consist of `above` and `below` alone, behind a `gutter`, or with neither."""

    sign: str  # its first row begins with it
    above: str = ""
    below: str = ""
    placeholder: str = ""  # what its first row shows behind the sign when it is empty
    gutter: str = ""  # every row of it begins with that; an empty row stands above the text, an empty one and the model's name below
    unasked: str = ""  # the sign in its mode that approves everything by itself
    collapsed: str = ""  # how it shows a long pasted text; the groups `lines`, `more` or `chars` count it


LOOKS: Mapping[str, Look] = MappingProxyType(
    {
        "claude": Look("❯", "─", "─", collapsed=r"\[Pasted text #\d+(?: \+(?P<more>\d+) lines?)?\]"),
        "codex": Look("›", collapsed=r"\[Pasted Content (?P<chars>\d+) chars?\]"),
        "gemini": Look(
            " >",
            "▄",
            "▀",
            "   Type your message or @path/to/file",
            unasked=" *",
            collapsed=r"\[Pasted Text: (?:(?P<lines>\d+) lines|(?P<chars>\d+) chars)\]",
        ),
        "opencode": Look("", gutter="┃", collapsed=r"\[Pasted ~(?P<lines>\d+) lines\]"),
        "pi": Look("", "─", "─", collapsed=r"\[paste #\d+ (?:\+(?P<lines>\d+) lines|(?P<chars>\d+) chars)\]"),
        "qwen": Look(
            ">",
            "─",
            "─",
            "   Type your message or @path/to/file",
            unasked="*",
            collapsed=r"\[Pasted Content (?P<chars>\d+) chars?\]",
        ),
    }
)
"""Agents whose composer we recognise."""


def plain(row: str) -> str:
    """A row without styles."""
    return _ESCAPES.sub("", row).rstrip()


def bright(row: str) -> str:
    """A row without what is dimmed (a suggestion that nobody typed), and without styles."""
    kept, dim, at = [], False, 0
    for style in _STYLE.finditer(row):
        if not dim:
            kept.append(row[at : style.start()])
        at = style.end()
        for code in (style[1] or "0").split(";"):
            dim = code == "2" or (dim and code not in ("0", "22", ""))
            if code in ("38", "48"):
                break  # a colour follows, whose numbers mean something else
    if not dim:
        kept.append(row[at:])
    return plain("".join(kept))


def _rule(row: str, sign: str) -> bool:
    text = plain(row).strip()
    return len(text) >= 20 and not text.strip(sign)


def _box(screen: Screen, look: Look) -> tuple[str, ...] | None:
    """The rows between the last two rules."""
    rows = screen.rows
    end = next((at for at in range(len(rows) - 1, -1, -1) if _rule(rows[at], look.below)), None)
    if end is None or sum(bool(plain(row)) for row in rows[end + 1 :]) > FOOTER_ROWS_MAX:
        return None
    start = next((at for at in range(end - 1, -1, -1) if _rule(rows[at], look.above)), None)
    return None if start is None or start + 1 == end else rows[start + 1 : end]


def _at_cursor(screen: Screen, look: Look) -> tuple[str, ...] | None:
    """The rows from the last one with the sign to the cursor, which stands at the end of what was typed."""
    above = screen.rows[: screen.cursor_y + 1]
    start = next((at for at in range(len(above) - 1, -1, -1) if plain(above[at]).startswith(f"{look.sign} ")), None)
    if start is None or sum(bool(plain(row)) for row in screen.rows[screen.cursor_y + 1 :]) > FOOTER_ROWS_MAX:
        return None
    return above[start:]


def _behind_gutter(screen: Screen, look: Look) -> tuple[str, ...] | None:
    """The rows of the block that the cursor is in, without the empty ones around the text and the name of the model."""

    def behind(at: int) -> str | None:
        row = plain(screen.rows[at]) if 0 <= at < len(screen.rows) else ""
        return row.lstrip()[len(look.gutter) :] if row.lstrip().startswith(look.gutter) else None

    first = last = screen.cursor_y
    while behind(first - 1) is not None:
        first -= 1
    while behind(last + 1) is not None:
        last += 1
    rows = [behind(at) for at in range(first, last + 1)]
    if len(rows) < 4 or None in rows or rows[0] or rows[-2] or not rows[-1]:
        return None
    return tuple(row or "" for row in rows[1:-2])


def read_composer(agent: str | None, screen: Screen) -> Composer:
    """What stands in the composer of `agent`."""
    look = LOOKS.get(agent or "")
    if look is None:
        return Composer(None)
    find = _box if look.above else _behind_gutter if look.gutter else _at_cursor
    rows = find(screen, look)
    first = plain(rows[0]) if rows else ""
    sign = look.unasked if look.unasked and first.startswith(look.unasked) else look.sign
    if rows is None or not first.startswith(sign):
        return Composer(None)
    behind = first[len(sign) :]
    if look.placeholder and behind == look.placeholder and len(rows) == 1:
        return Composer("")
    text = "\n".join([bright(rows[0])[len(sign) :], *map(bright, rows[1:])])
    lines = [line.replace("\u200b", "").replace("\xa0", " ").strip() for line in text.splitlines()]
    return Composer("\n".join(lines).strip())


def holds(agent: str | None, composer: Composer, text: str) -> bool:
    """True when the composer holds exactly `text`: in its own words (wherever it breaks lines), or collapsed with the right count."""
    if composer.text is None:
        return False
    if _INVISIBLE.sub("", composer.text) == _INVISIBLE.sub("", text):
        return True
    look = LOOKS.get(agent or "")
    found = re.fullmatch(look.collapsed, composer.text) if look is not None and look.collapsed else None
    if found is None:
        return False
    counted = {name: int(value) for name, value in found.groupdict().items() if value is not None}
    breaks = text.count("\n")
    expected = {"lines": breaks + 1, "more": breaks, "chars": len(text)}
    return all(expected[name] == value for name, value in counted.items())


def typable(text: str) -> str:
    """`text` as it may be pasted: nothing in it can end the paste, press a key or move the cursor."""
    return _ESCAPES.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).replace("\t", "    ").strip()


def excerpt(text: str | None) -> str:
    """The start of what a composer holds, for a person."""
    if text is None:
        return "what its composer holds cannot be told"
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"


@dataclass(frozen=True, kw_only=True)
class Pane:
    """What is known of a pane at one moment. Times are UTC ms."""

    there: bool
    process: Process | None  # the agent's, as it is now
    agent: str | None
    status: PaneStatus | None
    screen: Screen | None
    last_key_ms: int | None


REST = frozenset({State.IDLE, State.DONE})
CERTAIN = frozenset({Evidence.OBSERVED, Evidence.INFERRED})
"""Evidence that a state is so now. One from before a gap, or none, is not."""


def at_rest(pane: Pane, wanted: Process | None, now_ms: int, quiet_ms: int) -> Held | None:
    """Why nothing may be typed into a pane, whatever its composer holds; None when nothing stands against it.

    `wanted`: the process for which the text is meant, None for whatever agent is there. `quiet_ms`: so long no key of a person;
    0: whenever one came.
    """
    if not pane.there or pane.screen is None or pane.process is None or (wanted is not None and pane.process != wanted):
        return Held.GONE
    if pane.status is None:
        return Held.NO_STATUS
    if pane.status.prompts or pane.status.state in (State.BLOCKED, State.WAITING):
        return Held.PROMPT
    if pane.status.state is State.GONE:
        return Held.GONE
    if pane.status.state not in REST:
        return Held.WORKING
    if pane.status.evidence not in CERTAIN or not pane.status.hooked:
        return Held.UNCERTAIN
    if quiet_ms and pane.last_key_ms is not None and now_ms - pane.last_key_ms < quiet_ms:
        return Held.RECENT_KEY
    if pane.screen.scrolled:
        return Held.SCROLLED
    return None


def may_write(pane: Pane, wanted: Process | None, now_ms: int, quiet_ms: int) -> Held | None:
    """Why nothing is written into the pane now; None when its composer is certainly empty and all else is quiet."""
    held = at_rest(pane, wanted, now_ms, quiet_ms)
    if held is not None:
        return held
    assert pane.screen is not None
    composer = read_composer(pane.agent, pane.screen)
    if composer.text is None:
        return Held.COMPOSER_UNKNOWN
    return None if composer.empty else Held.COMPOSER_BUSY


def may_send(pane: Pane, wanted: Process | None, text: str, written_ms: int) -> Held | None:
    """Why the Enter behind our own `text` is not sent; None when the composer holds exactly it and nothing has moved since.

    `written_ms`: when it was written; a key of a person from that second on stops it.
    """
    held = at_rest(pane, wanted, now_ms=0, quiet_ms=0)
    if held is not None:
        return held
    # Keys are told in whole seconds: one in the second of our writing may have come after it.
    if pane.last_key_ms is not None and pane.last_key_ms >= written_ms // 1000 * 1000:
        return Held.RECENT_KEY
    assert pane.screen is not None
    return None if holds(pane.agent, read_composer(pane.agent, pane.screen), text) else Held.CHANGED
