"""What a terminal title says about an agent.

First match wins. A status glyph in leading position comes before all words, because the words behind it are somebody's topic:
"⠋ Action Required" is an agent at work on a text of that name. Words count only right behind an agent's name, and names only
as whole tokens, because worktrees, hosts and files are named after agents too.
Source: facts on titles, section 2, whose rule numbers stand beside the rules.
"""

import re
import unicodedata

from tocsin.contract.messages import Reading

TITLE_CHARACTERS_MAX = 1000
"""How much of a title is read; agents keep below 240."""

SELECTORS = re.compile("[\N{VARIATION SELECTOR-15}\N{VARIATION SELECTOR-16}\x00-\x1f\x7f-\x9f]")

SPINNERS = "◐◑◒◓\u2800-\u28ff"
REST_GLYPHS = "◇✳"
ASKING_GLYPHS = "✋"
GLYPH = f"[✦⏲{SPINNERS}{REST_GLYPHS}{ASKING_GLYPHS}]"
"""What agents put in front to tell their status. All but those of rest and asking mean work."""

NAMES = (
    "openclaude|claude|codex|copilot|cursor|gemini|antigravity|agy|opencode2|opencode|mimo|openclaw|aider|grok|devin|zeroclaw|droid"
    "|hermes|qwen|kimi|cline"
)
"""Names that count anywhere in a title, in any case. Very short words such as amp are left out: they are ordinary text."""

ALSO_CALLED = {"opencode2": "opencode", "agy": "antigravity"}
"""Programs of an agent that are named otherwise than the agent."""

WEAK_NAMES = frozenset({"droid", "cursor"})
"""Names that are ordinary words too: alone they show no agent, but that a title may begin with Cursor."""

_TOKEN = (
    rf"(?:(?<![\w./\\@~-])(?P<name>(?i:{NAMES}))(?:\.(?i:exe|cmd|bat|ps1))?"
    # As written only, at the start or after a bar: in a sentence these are words.
    r"|(?:^|\|\s*)(?P<brand>Pi|OMP))"
    r"(?![\w/\\@-]|\.[^\W\d_])"
)
_TITLE_WORD = r"(?i:\s+(?:code|cli|agent|build)(?!\w))?"
_BETWEEN = r"(?:\s*[-–—:|·]\s*|\s+)(?i:(?:is|needs)\s+)?"
_WORD_ENDS = r"(?![\w/\\-]|\.[^\W\d_])"

_LISTING = re.compile(r'(?i:"[^"]*?\bclaude(?:\.(?:exe|cmd|bat|ps1))?"|(?:\S*[/\\])?claude(?:\.(?:exe|cmd|bat|ps1))?)\s+agents')
_CODEX_ASKS = re.compile(r"\[ [!.] \] Action Required(?=[ |]|$)")
_OPENCODE = re.compile(rf"OC\s*\|\s*(?P<busy>[{SPINNERS}])?")
_STATE_SIGN = re.compile(r"(?:^|[ |])(?:π|Pi|OMP) (?P<sign>[:!>])(?= |$)")
_LEADING = re.compile(rf'(?:^|\|\s*|(?:^|\s)")(?P<glyph>{GLYPH})(?=[\s"]|$|{GLYPH})')
_LONE_BRAILLE = re.compile(r'(?:^|[\s"|])[\u2800-\u28ff](?=[\s"|]|$)')
_PI_RESTS = re.compile(r"π(?: - |:\s*\w)")
_DOT = re.compile(rf'(?:^|[\s|"])\. {_TOKEN}')
_STAR = re.compile(rf'(?:^|[\s|"])\* {_TOKEN}')
_ASKS = re.compile(rf"{_TOKEN}{_TITLE_WORD}{_BETWEEN}(?i:action\s+required|permissions?|waiting){_WORD_ENDS}")
_RESTS = re.compile(rf"{_TOKEN}{_TITLE_WORD}{_BETWEEN}(?i:ready|idle|done){_WORD_ENDS}")
_WORKS = re.compile(rf"{_TOKEN}{_TITLE_WORD}{_BETWEEN}(?i:working|thinking|running){_WORD_ENDS}")
_NAMED = re.compile(_TOKEN)

_QWEN_STAR = re.compile(r"✳ Qwen - ")
"""Qwen Code's own form. Its star means that it waits for an approval; everybody else's is rest."""

_STATE = r"(?i:(?:is |needs )?(?:action\s+required|permissions?|waiting|ready|idle|done|working|thinking|running))"
_IN_FRONT = re.compile(rf'(?:[^|]*\|\s*)?"?(?:{GLYPH}+\s+)?(?:\. |\* )?(?:GitHub )?')
_WHOLE = re.compile(rf"{_TOKEN}{_TITLE_WORD}(?:$|\s*[-–—:|·(]|\s+{_STATE}{_WORD_ENDS})")
_APPENDED = re.compile(r" - grok$")
_GEMINI = re.compile(r"(?:✋  Action Required|◇  Ready|[✦⏲]  .+) \(.*\)$")
_PI = re.compile(rf"(?:{GLYPH}+ )?π(?: - | (?P<sign>[:!>])(?: |$)|(?P<legacy>:\s*\w))")

_SIGNS = {":": Reading.WORKING, "!": Reading.PERMISSION, ">": Reading.IDLE}


def read_title(text: str, agent: str | None = None) -> Reading:
    """What the title says; NONE: nothing about an agent. `agent`: the one that is known to run there, by its name here.

    A leading glyph that is not known is no evidence: it can turn no name into an agent at rest.
    """
    title = _plain(text)
    reading = _read(title, agent)
    return Reading.NONE if reading is Reading.IDLE and _unknown_glyph(title) else reading


def _read(title: str, agent: str | None) -> Reading:
    if not title or _LISTING.fullmatch(title) or title.lower() == "cursor agent":  # 1, 2, 3
        return Reading.NONE
    if _CODEX_ASKS.match(title):  # 4
        return Reading.PERMISSION
    opencode = _OPENCODE.match(title)
    if opencode:  # 5
        return Reading.WORKING if opencode["busy"] else Reading.IDLE
    leading = _LEADING.search(title)
    sign = _STATE_SIGN.search(title)
    if sign and not (leading and leading.start("glyph") < sign.start("sign")):  # 6
        return _SIGNS[sign["sign"]]
    if leading:  # 7
        return _read_glyph(leading["glyph"], title, agent)
    if _LONE_BRAILLE.search(title):  # 8
        return Reading.WORKING
    if _PI_RESTS.match(title):  # 9
        return Reading.IDLE
    return _read_words(title)


def _read_glyph(glyph: str, title: str, agent: str | None) -> Reading:
    if glyph in ASKING_GLYPHS:
        return Reading.PERMISSION
    if glyph not in REST_GLYPHS:
        return Reading.WORKING
    if glyph == "✳" and (agent == "qwen" or (agent is None and _QWEN_STAR.match(title))):
        return Reading.PERMISSION
    return Reading.IDLE


def _read_words(title: str) -> Reading:
    for pattern, reading in (
        (_DOT, Reading.WORKING),  # 10
        (_STAR, Reading.IDLE),  # 11
        (_ASKS, Reading.PERMISSION),  # 12
        (_RESTS, Reading.IDLE),  # 13
        (_WORKS, Reading.WORKING),  # 14
    ):
        if pattern.search(title):
            return reading
    # 15: two of the names are ordinary words where nothing else speaks for them. 16, 17.
    return Reading.IDLE if any(not _is_weak(found) for found in _NAMED.finditer(title)) else Reading.NONE


def _is_weak(found: re.Match[str]) -> bool:
    name = (found["name"] or "").lower()
    return name in WEAK_NAMES and not (name == "cursor" and found.start() == 0)


def agent_in_title(text: str) -> str | None:
    """The agent that a title names, for a pane whose process is not known; None when it names none for sure.

    A name behind a status glyph counts only if the title is otherwise made as that agent makes it: a topic may name any agent.
    """
    title = _plain(text)
    if _CODEX_ASKS.match(title):
        return "codex"
    if _OPENCODE.match(title):
        return "opencode"
    if _GEMINI.match(title):
        return "gemini"
    pi = _PI.match(title.rpartition("| ")[2])
    if pi:
        return "omp" if pi["sign"] or pi["legacy"] else "pi"
    if _APPENDED.search(title):
        return "grok"
    if title.lower() == "cursor agent":
        return "cursor"
    front = _IN_FRONT.match(title)
    start = front.end() if front else 0
    found = _WHOLE.match(title, start)
    if found is None and start == 0:
        # A bare name may also begin a command line, unless it is an ordinary word.
        found = _NAMED.match(title)
        if found is not None and found["name"] and found["name"].lower() in WEAK_NAMES:
            return None
    if found is None:
        return None
    name = (found["name"] or found["brand"]).lower()
    return ALSO_CALLED.get(name, name)


def unknown_glyph(text: str) -> str | None:
    """The symbol that a title begins with, when it stands where agents put their status and means nothing known; else None.

    A new release of an agent may bring new ones: an operator should see each once.
    """
    return _unknown_glyph(_plain(text))


def _unknown_glyph(title: str) -> str | None:
    first, following = title[:1], title[1:2]
    if not first or (following and not following.isspace()):
        return None
    symbol = first > "\x7f" and unicodedata.category(first) in {"So", "Sm", "Po"}
    return first if symbol and not re.match(GLYPH, first) else None


def _plain(text: str) -> str:
    return SELECTORS.sub("", text[:TITLE_CHARACTERS_MAX]).strip()
