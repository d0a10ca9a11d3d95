"""A hook's body as bytes: is it one JSON object that may be read at all? Own limits, the same with every Python."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NoReturn

from tocsin.contract.refusals import Code, Refusal

BODY_BYTES_MAX = 16 * 1024 * 1024
"""Largest body; whoever reads it from the wire stops there."""

DEPTH_MAX = 64
"""Deepest nesting. Agents need less than ten; a parser's own limit differs with its version and ends in a crash or an error."""

VALUES_MAX = 1_000_000
"""Most values in one body: sixteen million brackets would become a gigabyte of objects."""

_NOT_STRUCTURE = bytes(set(range(256)) - set(b'[]{},"'))
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]"))
_SQUARE = bytes.maketrans(b"{}", b"[]")


@dataclass(frozen=True, slots=True)
class Payload:
    """One JSON object of an agent, and the digest of the bytes that it came as."""

    fields: Mapping[str, Any]
    digest: str


class _NotFinite(ValueError):
    pass


def parse(body: bytes) -> Payload | Refusal:
    """The object in `body`. Its strings are as they came: they are made valid where one of them is kept (see report).

    Refuses: bad_text (not UTF-8), too_deep, too_large (too many values), bad_json (anything but one object; NaN and infinities too).
    """
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return Refusal(Code.BAD_TEXT, "the body is not UTF-8")
    refusal = _check_shape(body)
    if refusal is not None:
        return refusal
    try:
        fields = _decoder.decode(text)
    except _NotFinite:
        return Refusal(Code.BAD_JSON, "the body holds a number that is not finite")
    except (ValueError, RecursionError):
        return Refusal(Code.BAD_JSON, "the body is not JSON")
    if not isinstance(fields, dict):
        return Refusal(Code.BAD_JSON, "the body is JSON, but not one object")
    return Payload(fields, blake2b(body.strip(), digest_size=16).hexdigest())


def _check_shape(body: bytes) -> Refusal | None:
    """Depth and number of values, counted outside strings, by a few passes over all bytes rather than a step for each."""
    quotes, commas, opened = body.count(b'"'), body.count(b","), body.count(b"[") + body.count(b"{")
    if opened <= DEPTH_MAX and quotes + commas <= VALUES_MAX:
        return None  # neither deep nor many, wherever they stand: nearly every body
    # Pairs of backslashes first, so that every quote that is left ends or begins a string.
    quiet = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    structure = quiet.translate(_SQUARE, _NOT_STRUCTURE)
    if structure.count(b'"') > 2 * VALUES_MAX:
        return Refusal(Code.TOO_LARGE, f"the body holds more than {VALUES_MAX} values")
    # Two quotes with nothing between are a string without structure in it, or the border of two; without them the rest
    # stands inside and outside of strings as before.
    outside = b"".join(structure.replace(b'""', b"").split(b'"')[::2])
    if outside.count(b",") + outside.count(b"[") > VALUES_MAX:
        return Refusal(Code.TOO_LARGE, f"the body holds more than {VALUES_MAX} values")
    # Each round takes the innermost pairs away, so as many rounds as levels leave nothing.
    brackets = outside.translate(None, _NOT_BRACKETS)
    for _ in range(DEPTH_MAX):
        if not brackets:
            return None
        brackets = brackets.replace(b"[]", b"")
    if b"[]" in brackets:
        return Refusal(Code.TOO_DEEP, f"the body is nested deeper than {DEPTH_MAX}")
    return Refusal(Code.BAD_JSON, "the body is not JSON") if brackets else None


def _refuse_constant(_: str) -> NoReturn:
    raise _NotFinite


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _NotFinite
    return number


_decoder = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)
"""Made once: `json.loads` with these would make one for each body."""
