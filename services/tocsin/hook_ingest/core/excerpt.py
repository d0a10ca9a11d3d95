"""A few words of a question or permission, for those who ask for them: secrets masked, one line, short.

Off unless SHOW_TEXT=prompts. What looks like a secret is masked even where it may be none: a line without it still tells
enough, and it is sent over a bus and shown on screens.
"""

import re
from collections.abc import Mapping
from typing import Any

CHARACTERS_MAX = 160
"""Longest excerpt."""

READ_CHARACTERS_MAX = 1000
"""How much of a text is looked at."""

MASK = "***"

_TELLTALE = "(?:pass|pwd|secret|token|key|credential|auth|cookie|bearer)"
_NAME = rf"(?<![\w.-])(?=[\w.-]{{0,60}}?{_TELLTALE})[\w.-]{{1,80}}"
_VALUE = r"(?:\"[^\"]*\"?|'[^']*'?|[^\s\"',;&]+)"

_MASKS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"-----BEGIN .*?(?:-----END [^-]*-----|\Z)", re.DOTALL), MASK),
    # scheme://user:password@host, also without a password
    (re.compile(r"(?<=://)[^\s/@]{1,200}@"), f"{MASK}@"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[^\s\"']+"), rf"\1 {MASK}"),
    # NAME_TOKEN=value, "apiKey": "value", and --password value
    (re.compile(rf"(?i)({_NAME}[\"']?\s?[=:]\s?){_VALUE}"), rf"\1{MASK}"),
    (re.compile(rf"(?i)(?<!\S)(?=--?\w)({_NAME})\s+{_VALUE}"), rf"\1 {MASK}"),
    (re.compile(r"(?<!\S)(-u\s?[^\s:]{1,80}:)\S+"), rf"\1{MASK}"),
    # Keys that show by their beginning whose they are.
    (
        re.compile(
            r"(?<![A-Za-z0-9])(?:sk|pk|rk|gh[opusr]|github_pat|glpat|xox[a-z]|npm|hf|pypi|AIza|ya29|AKIA|ASIA|eyJ)"
            r"(?=[\w.-]*[A-Z0-9])[\w.-]{8,}"
        ),
        MASK,
    ),
    # Long runs with digits among them: hexadecimal, base64.
    (re.compile(r"(?<![A-Za-z0-9+/=_-])(?=[A-Za-z+/=_-]*\d)[A-Za-z0-9+/=_-]{32,}"), MASK),
    (re.compile(r"(?<![A-Za-z0-9])(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{20,}"), MASK),
)

_UNSHOWN = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_HALF = re.compile("[\ud800-\udfff]")


def masked_excerpt(text: str) -> str:
    """The beginning of `text`, at most CHARACTERS_MAX characters on one line, with whatever looks like a secret masked."""
    shown = _HALF.sub("\N{REPLACEMENT CHARACTER}", text[:READ_CHARACTERS_MAX])
    if len(text) > READ_CHARACTERS_MAX:
        # The last word may be the first half of a secret that nothing gives away.
        words = shown.rsplit(maxsplit=1)
        shown = words[0] if len(words) > 1 else MASK
    for pattern, mask in _MASKS:
        shown = pattern.sub(mask, shown)
    shown = _UNSHOWN.sub(" ", shown).strip()
    return shown if len(shown) <= CHARACTERS_MAX else shown[: CHARACTERS_MAX - 1] + "…"


WORDS = ("question", "command", "cmd", "plan", "file_path", "filePath", "filepath", "path", "url", "message", "title")
"""Where an agent keeps what it asks for, the most telling first."""

PLACES = ("tool_input", "toolArgs", "details", "metadata")
"""Objects that may hold one of WORDS; else the payload itself does."""


def asked_text(payload: Mapping[str, Any]) -> str | None:
    """What a question or permission is about, in the agent's own words; None when it cannot be found."""
    inner = payload.get("properties")
    payload = inner if isinstance(inner, Mapping) else payload
    for place in (*(payload.get(name) for name in PLACES), payload):
        if not isinstance(place, Mapping):
            continue
        questions = place.get("questions")
        if isinstance(questions, list) and questions and isinstance(questions[0], Mapping):
            place = questions[0]
        for name in WORDS:
            text = place.get(name)
            if isinstance(text, str) and text:
                return text
    return None
