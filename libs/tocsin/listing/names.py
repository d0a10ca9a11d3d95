"""The order of display names: as ICU's root collation has it for what people call their worktrees, and total for the rest.

Letters decide before accents, accents before case. Digits are compared one by one, never as numbers. Space, punctuation,
symbols, digits and letters follow one another in that order.
Source: README, decision 4; facts of ICU 78.
"""

import re
import unicodedata
from functools import lru_cache

NameKey = tuple[tuple[tuple[int, ...], ...], tuple[int, ...], tuple[int, ...]]
"""Letters, then accents, then case. Compares as the names do."""

_WHITE, _PUNCTUATION, _SYMBOL, _CURRENCY, _DIGIT, _LETTER = range(6)

_PUNCTUATION_ORDER = "_-,;:!?.'\"()[]{}@*/\\&#%"
_SYMBOL_ORDER = "`^+<=>|~"
_WHITE_ORDER = "\t\n\v\f\r\x85 "
_SIGNS_AND_ARROWS_AFTER = _SYMBOL_ORDER.index("^")
_OTHER_SYMBOLS_AFTER = len(_SYMBOL_ORDER)

_NEIGHBOURS = {"Pd": "-", "Pc": "_", "Pi": '"', "Pf": '"', "Ps": "{", "Pe": "}"}
"""Where punctuation beyond ASCII stands: behind the ASCII character of its kind. What has none stands behind `%`."""

_ACCENT_ORDER = "\u0301\u0300\u0306\u0302\u030c\u030a\u0308\u030b\u0303\u0307\u0338\u0327\u0328\u0304"
_STROKE = _ACCENT_ORDER.index("\u0338") + 1

_SPELLED = {"æ": "ae", "œ": "oe", "ß": "ss", "ø": "o", "đ": "d", "ð": "d", "ħ": "h", "ł": "l"}
"""Letters that differ from these only as an accent does, although Unicode does not take them apart."""

_WHOLE = frozenset("йЙ")
"""Letters of their own, although Unicode takes them apart."""

_BEHIND = {"ŋ": "n", "ə": "e"}
"""Latin letters whose name does not tell after which one they stand."""

_LATIN = re.compile(r"LATIN (?:SMALL |CAPITAL )?LETTER (?:DOTLESS )?([A-Z])\b")

_KATAKANA = range(0x30A1, 0x30F7)
_KATAKANA_TO_HIRAGANA = 0x60

NAMES_KEPT_MAX = 16_384
"""Names whose keys are kept: a worktree is ranked far more often than it is named."""

_Element = tuple[tuple[int, ...] | None, int, int]
"""Weights of one character on the three levels; no first weight: an accent on what stands before it."""

_UPPER, _VARIANT = 1, 2


def _letter(char: str) -> tuple[int, ...]:
    base = _BEHIND.get(char)
    if base is None and ord(char) > 0x7F and (named := _LATIN.match(unicodedata.name(char, ""))):
        base = named[1].lower()
    # Behind its base letter, before the next one.
    return (_LETTER, ord(char)) if base is None else (_LETTER, ord(base), ord(char))


def _weight(char: str) -> tuple[int, ...]:
    """The first level of one character that is neither an accent nor without weight."""
    if char in _WHITE_ORDER:
        return _WHITE, _WHITE_ORDER.index(char)
    if char in _PUNCTUATION_ORDER:
        return _PUNCTUATION, _PUNCTUATION_ORDER.index(char)
    if char in _SYMBOL_ORDER:
        return _SYMBOL, _SYMBOL_ORDER.index(char)
    category = unicodedata.category(char)
    if category[0] == "Z":
        return _WHITE, len(_WHITE_ORDER), ord(char)
    if category[0] == "P":
        return _PUNCTUATION, _PUNCTUATION_ORDER.index(_NEIGHBOURS.get(category, "%")), ord(char)
    if category == "Sc":
        return _CURRENCY, ord(char)
    if category[0] == "S":
        return _SYMBOL, _SIGNS_AND_ARROWS_AFTER if ord(char) < 0x2200 else _OTHER_SYMBOLS_AFTER, ord(char)
    digit = unicodedata.digit(char, -1)
    if digit >= 0:
        return _DIGIT, digit
    return _letter(char)


@lru_cache(4096)
def _elements(char: str) -> tuple[_Element, ...]:
    """One character of a composed name, taken apart."""
    category = unicodedata.category(char)
    if category in {"Cc", "Cf"} and char not in _WHITE_ORDER:
        return ()
    apart = char if char in _WHOLE else unicodedata.normalize("NFKD", char)
    variant = _VARIANT if unicodedata.decomposition(char).startswith("<") else 0
    found: list[_Element] = []
    for part in apart:
        if unicodedata.combining(part):
            # An accent that the table does not name stands behind those it does.
            at = _ACCENT_ORDER.find(part)
            found.append((None, at + 1 if at >= 0 else len(_ACCENT_ORDER) + ord(part), 0))
            continue
        lower = part.lower() if len(part.lower()) == 1 else part
        case = variant + (_UPPER if lower != part else 0)
        if ord(lower) in _KATAKANA:
            lower, case = chr(ord(lower) - _KATAKANA_TO_HIRAGANA), case + _VARIANT
        if lower == "ς":
            lower = "σ"
        spelled = _SPELLED.get(lower)
        if spelled is not None:
            found += [(_weight(one), 0, case) for one in spelled]
            found.append((None, _STROKE, 0))
        elif unicodedata.category(part) not in {"Cc", "Cf"} or part in _WHITE_ORDER:
            found.append((_weight(lower), 0, case))
    return tuple(found)


@lru_cache(NAMES_KEPT_MAX)
def name_key(name: str) -> NameKey:
    """A key that sorts names as people expect; names that only differ invisibly have equal keys. Never fails."""
    elements = [element for char in unicodedata.normalize("NFC", name) for element in _elements(char)]
    return (
        tuple(first for first, _, _ in elements if first is not None),
        tuple(second for _, second, _ in elements),
        tuple(third for first, _, third in elements if first is not None),
    )
