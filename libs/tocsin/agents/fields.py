"""Reading an agent's payload: each reader says what it takes, so that nothing else of a payload gets through.

A field of the wrong type raises BadPayload with its name. No reader hands out free text, except `spoken`, whose
result may leave only through a keyed hash.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tocsin.agents.agent import BadPayload, Keyed, Payload
from tocsin.contract.ids import TOKEN_BYTES_MAX
from tocsin.contract.messages import Task

PATH_BYTES_MAX = 4096
"""Longest path that systems take (PATH_MAX)."""

NAME_CHARACTERS_MAX = 100
"""Longest name of a tool or file that is kept; longer ones are cut, the same way each time."""

STARTS = ("startup", "resume", "clear", "compact", "fork")
"""What `detail` says of a session's start, whatever word the agent has for it. Another word is passed on as said."""

ENDS = ("clear", "resume", "logout", "prompt_input_exit", "other")
"""What `detail` says of a session's end; `prompt_input_exit` and `logout`: the person left."""

ENDED_WORK = frozenset({"completed", "failed", "killed", "stopped", "cancelled", "canceled", "error", "done", "exited", "finished"})
"""States of background work that is over. Any other word counts as running: unknown is not done."""

WORK_KINDS: Mapping[str, str] = MappingProxyType(
    {
        "subagent": "agent",
        "local_agent": "agent",
        "local_bash": "shell",
        "bash": "shell",
        "cron": "timer",
    }
)
"""Agents' words for kinds of background work that have a word of ours; others are passed on."""

_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_HALF = re.compile("[\ud800-\udfff]")
_WORD = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_NOTHING: Payload = MappingProxyType({})


def clean(text: str) -> str:
    """`text` with every NUL, control character and lone surrogate replaced by U+FFFD: valid wherever it goes."""
    return _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", text)


def string(payload: Payload, field: str) -> str | None:
    """The text of `field` as the agent wrote it; None when absent or null."""
    value = payload.get(field)
    if value is None or isinstance(value, str):
        return value
    raise BadPayload(f"{field} is not text")


def identity(payload: Payload, field: str) -> str | None:
    """The id in `field`; None when absent, null or empty.

    An id that is longer than TOKEN_BYTES_MAX becomes a digest, the same each time: some gateways put kilobytes into call ids.
    Raises BadPayload when it holds a control character or half a character.
    """
    value = payload.get(field)
    if value is None or value == "":
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value) if abs(value) < 2**63 else None
    if not isinstance(value, str):
        raise BadPayload(f"{field} is not an id")
    if _UNSAFE.search(value):
        raise BadPayload(f"{field} holds control characters")
    raw = value.encode()
    return value if len(raw) <= TOKEN_BYTES_MAX else f"h-{hashlib.blake2b(raw, digest_size=16).hexdigest()}"


def session(payload: Payload, *fields: str) -> str:
    """The session's id in the first of `fields` that holds one. Raises BadPayload when none does."""
    for field in fields:
        found = identity(payload, field)
        if found is not None:
            return found
    raise BadPayload(f"{fields[0]} is missing")


def word(payload: Payload, field: str) -> str | None:
    """The single word in `field`, such as a reason or a mode; None when it is absent or no such word."""
    return as_word(string(payload, field))


def as_word(text: object) -> str | None:
    """`text` when it is one short word; else None."""
    return text if isinstance(text, str) and _WORD.fullmatch(text) else None


def name(payload: Payload, field: str) -> str | None:
    """The name of a tool in `field`, cleaned and cut to NAME_CHARACTERS_MAX; None when absent or empty."""
    text = string(payload, field)
    return clean(text[:NAME_CHARACTERS_MAX]) if text else None


def path(payload: Payload, field: str) -> str | None:
    """The absolute path in `field`; None when it is absent, or nothing that can be a path of this system."""
    return as_path(string(payload, field))


def as_path(text: str | None) -> str | None:
    """`text` when it is an absolute path of at most PATH_BYTES_MAX bytes without control characters; else None."""
    if not text or not text.startswith("/") or _UNSAFE.search(text) or len(text.encode()) > PATH_BYTES_MAX:
        return None
    return text


def flag(payload: Payload, field: str) -> bool:
    """The yes or no in `field`; False when absent or null."""
    value = payload.get(field)
    if value is None or isinstance(value, bool):
        return bool(value)
    raise BadPayload(f"{field} is not true or false")


def part(payload: Payload, field: str) -> Payload:
    """The object in `field`; an empty one when it holds anything else, for fields whose shape is the agent's own business."""
    value = payload.get(field)
    return value if isinstance(value, Mapping) else _NOTHING


def listed(payload: Payload, field: str) -> Sequence[Any] | None:
    """The list in `field`; None when absent or null, which is not the same as an empty one."""
    value = payload.get(field)
    if value is None or isinstance(value, list):
        return value
    raise BadPayload(f"{field} is not a list")


def spoken(text: str | None, keyed: Keyed) -> str | None:
    """The keyed hash of what was prompted, outer white space aside; None when nothing was said.

    A dispatcher that sent a text knows it again by `spoken` of the same text: agents and terminals trim what they pass on.
    """
    return keyed(_HALF.sub("\N{REPLACEMENT CHARACTER}", text.strip())) if text is not None else None


def input_hash(value: object, keyed: Keyed) -> str | None:
    """The keyed hash of a tool's input, whatever the order of its keys; None when there is none."""
    return None if value is None else keyed(json.dumps(value, sort_keys=True, separators=(",", ":")))


def kind_of_work(said: object) -> str:
    """Our word for a kind of background work, else the agent's own, else `other`."""
    text = as_word(said.replace(" ", "_")) if isinstance(said, str) else None
    return WORK_KINDS.get(text, text) if text else "other"


def background(entries: Sequence[Any] | None, kind: str = "type") -> tuple[Task, ...] | None:
    """The background work that an agent lists; None when it lists nothing at all, which is not "none".

    An entry of a shape that is not known counts as running work of its kind: a new release must not end what runs.
    """
    if entries is None:
        return None
    tasks = []
    for entry in entries:
        told: Payload = entry if isinstance(entry, Mapping) else _NOTHING
        sort = kind_of_work(told.get(kind))
        tasks.append(Task(id=identity(told, "id") or f"unnamed-{sort}", kind=sort, running=as_word(told.get("status")) not in ENDED_WORK))
    return tuple(tasks)


def named(event: str | None, payload: Payload, field: str) -> str:
    """The event's name: the one that the hook command was told, else the payload's own. Raises BadPayload when neither says one."""
    found = event or string(payload, field)
    if not found:
        raise BadPayload(f"{field} is missing")
    return found
