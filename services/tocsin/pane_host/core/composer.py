"""May we type into a live pane? And what stands in its composer, read from the captured screen.

How a composer looks is known for few agents; what is not recognised for certain is never called empty.
Source: README, decision on typing; the looks were measured on Claude Code 2.1.332, Codex 0.171.0, Gemini CLI 0.61.0, Qwen Code 0.24.4,
opencode 1.18.33 and pi 0.73.1.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

from tocsin.contract.messages import Evidence, PaneStatus, Process, State

SHOWN_MAX = 400
"""Characters of a composer's content that a fact tells."""

FOOTER_ROWS_MAX = 6
"""Rows below a composer: more of them, and it is something else on the screen."""

_STYLE = re.compile("\x1b\\[([0-9;:]*)m")
_COLOURS = frozenset(str(code) for code in (*range(30, 38), *range(90, 98)))
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
    edge: str = ""  # the row below it begins with that, and is as wide as it is
    gutter: str = ""  # every row of it begins with that; an empty row stands above the text, an empty one and the model's name below
    unasked: str = ""  # the sign in its mode that approves everything by itself
    collapsed: str = ""  # how it shows a long pasted text; the groups `lines`, `more` or `chars` count it
    named: str = ""  # it may suggest a text (see `_is_suggested`), and what is drafted has another colour only behind one of these


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
        "opencode": Look("", gutter="┃", edge="╹", collapsed=r"\[Pasted ~(?P<lines>\d+) lines\]"),
        "pi": Look("", "─", "─", collapsed=r"\[paste #\d+ (?:\+(?P<lines>\d+) lines|(?P<chars>\d+) chars)\]"),
        "qwen": Look(
            ">",
            "─",
            "─",
            "   Type your message or @path/to/file",
            unasked="*",
            collapsed=r"\[Pasted Content (?P<chars>\d+) chars?\]",
            named="/@",
        ),
    }
)
"""Agents whose composer we recognise."""


def plain(row: str) -> str:
    """A row without styles."""
    return _ESCAPES.sub("", row).rstrip()


@dataclass(frozen=True, slots=True)
class _Pen:
    """How a text is drawn, as far as that tells who wrote it. `colour`: as in its escape sequence, None: the terminal's own."""

    dim: bool = False
    underlined: bool = False
    colour: str | None = None

    def after(self, style: str) -> "_Pen":
        """The pen after the codes of one escape sequence."""
        pen, codes = self, (style or "0").split(";")
        while codes:
            code = codes.pop(0)
            match code.partition(":")[0]:
                case "0" | "":
                    pen = _Pen()
                case "2" | "22":
                    pen = replace(pen, dim=code == "2")
                case "4" | "24":
                    pen = replace(pen, underlined=code not in ("24", "4:0"))
                case "39":
                    pen = replace(pen, colour=None)
                case "38" | "48" as ground:
                    # The numbers behind it belong to it, and mean something else.
                    count = {"5": 2, "2": 4}.get(codes[0], 0) if codes and ":" not in code else 0
                    colour, codes = ";".join((code, *codes[:count])), codes[count:]
                    pen = replace(pen, colour=colour) if ground == "38" else pen
                case some if some in _COLOURS:
                    pen = replace(pen, colour=some)
        return pen


def _drawn(row: str, pen: _Pen = _Pen()) -> tuple[list[tuple[str, _Pen]], _Pen]:
    """The pieces of a row, each with its pen, and the pen that the next row begins with."""
    pieces, at = [], 0
    for style in _STYLE.finditer(row):
        pieces.append((row[at : style.start()], pen))
        pen, at = pen.after(style[1]), style.end()
    return [*pieces, (row[at:], pen)], pen


def bright(row: str) -> str:
    """A row without what is dimmed (a suggestion that nobody typed), and without styles."""
    return plain("".join(text for text, pen in _drawn(row)[0] if not pen.dim))


def _rule(row: str, sign: str) -> bool:
    text = plain(row).strip()
    return len(text) >= 20 and not text.strip(sign)


def _between(screen: Screen, look: Look) -> range | None:
    """Where the rows between the last two rules are."""
    rows = screen.rows
    end = next((at for at in range(len(rows) - 1, -1, -1) if _rule(rows[at], look.below)), None)
    if end is None or sum(bool(plain(row)) for row in rows[end + 1 :]) > FOOTER_ROWS_MAX:
        return None
    start = next((at for at in range(end - 1, -1, -1) if _rule(rows[at], look.above)), None)
    return None if start is None or start + 1 == end else range(start + 1, end)


def _box(screen: Screen, look: Look) -> tuple[str, ...] | None:
    """The rows between the last two rules."""
    found = _between(screen, look)
    return None if found is None else screen.rows[found.start : found.stop]


def _is_suggested(screen: Screen, look: Look, sign: str) -> bool:
    """Whether the composer offers a text that nobody typed. It shows in how it is drawn: the cursor stands at its first character,
    which has the terminal's own colour, and everything behind has one other colour.

    A draft with the cursor at its start has one colour throughout. Only the name of a file or command is drawn otherwise in it:
    a text that may hold one is therefore never called suggested, and neither is a single character.
    """
    found = _between(screen, look)
    if found is None or (screen.cursor_x, screen.cursor_y) != (len(sign) + 1, found.start):
        return False
    pen, shown = _Pen(), list[tuple[str, _Pen]]()
    for at, row in enumerate(screen.rows[: found.stop]):
        pieces, pen = _drawn(row, pen)
        if at in found:
            glyphs = [(glyph, drawn) for text, drawn in pieces for glyph in _ESCAPES.sub("", text)][len(sign) + 1 :]
            # What fills a row up to its end was not written.
            shown += glyphs[: len("".join(glyph for glyph, _ in glyphs).rstrip())]
    (_, first), rest = shown[0] if shown else ("", _Pen()), shown[1:]
    colours = {drawn.colour for _, drawn in rest}
    return (
        first.underlined
        and first.colour is None
        and len(colours) == 1
        and None not in colours
        and not any(drawn.underlined for _, drawn in rest)
        and not any(glyph in look.named for glyph, _ in shown)
    )


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
    edge = plain(screen.rows[last + 1]).lstrip() if last + 1 < len(screen.rows) else ""
    width = len(edge) - len(look.gutter) if edge.startswith(look.edge) else None
    # On a wide terminal something else stands to the right of the composer, which is as wide as its lower edge.
    rows = [text[:width].rstrip() if (text := behind(at)) is not None else None for at in range(first, last + 1)]
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
    if look.named and _is_suggested(screen, look, sign):
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
