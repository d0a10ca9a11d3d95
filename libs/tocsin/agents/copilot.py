"""GitHub Copilot CLI: what its hooks say. Its title is the same at work and when it waits.

The payload does not name the event, so the hook command does; only the camelCase names are installed, whose payloads have
camelCase fields. `permissionRequest` fires before the rules are looked up, also for calls that nobody is asked about: the
notification is the true sign. Source: facts, from GitHub's documentation; not measured.
"""

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from tocsin.agents import fields
from tocsin.agents.agent import Agent, Keyed, Payload, Translated, UnknownEvent, WakeWay
from tocsin.agents.target import target
from tocsin.contract.messages import Ask, Kind, Origin

QUESTION_TOOL = "ask_user"

STARTS: Mapping[str, str] = MappingProxyType({"new": "startup"})

ENDS: Mapping[str, str] = MappingProxyType(
    {
        "complete": "other",
        "error": "other",
        "abort": "other",
        "timeout": "other",
        "user_exit": "prompt_input_exit",
    }
)

NOTICES: Mapping[str, Ask] = MappingProxyType({"permission_prompt": Ask.PERMISSION, "elicitation_dialog": Ask.FORM})
"""Notifications of a dialog that stands. The rest tell of background work and of rest."""

ARGUMENTS_CHARACTERS_MAX = 64 * 1024
"""Longest text of arguments that is looked into for a program or file."""


def _said(event: str, kind: Kind, payload: Payload, **more: Any) -> Translated:
    return Translated(
        event=event,
        kind=kind,
        session=fields.session(payload, "sessionId"),
        cwd=fields.path(payload, "cwd"),
        transcript=fields.path(payload, "transcriptPath"),
        **more,
    )


def _call(event: str, kind: Kind, payload: Payload, keyed: Keyed, **more: Any) -> Translated:
    given = payload.get("toolArgs")
    return _said(
        event,
        kind,
        payload,
        tool=fields.name(payload, "toolName"),
        target=target(_arguments(given)),
        input_hash=fields.input_hash(given, keyed),
        **more,
    )


def _arguments(given: object) -> object:
    """Arguments that came as JSON text inside JSON, read; anything else as it is."""
    if not isinstance(given, str) or len(given) > ARGUMENTS_CHARACTERS_MAX:
        return given
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        return None


def _prompted(event: str, payload: Payload, keyed: Keyed) -> Translated:
    return _said(event, Kind.PROMPTED, payload, origin=Origin.PERSON, prompt_hash=fields.spoken(fields.string(payload, "prompt"), keyed))


def _tool_formed(event: str, payload: Payload, keyed: Keyed) -> Translated:
    if payload.get("toolName") == QUESTION_TOOL:
        return _call(event, Kind.ASKED, payload, keyed, ask=Ask.QUESTION)
    return _call(event, Kind.TOOL_STARTED, payload, keyed)


def _noticed(event: str, payload: Payload, keyed: Keyed) -> Translated | None:
    ask = NOTICES.get(str(payload.get("notification_type") or payload.get("notificationType")))
    return None if ask is None else _said(event, Kind.ASKED, payload, ask=ask)


def _failed(event: str, payload: Payload, keyed: Keyed) -> Translated:
    kind = Kind.NOTED if fields.flag(payload, "recoverable") else Kind.TURN_FAILED
    return _said(event, kind, payload, detail=fields.as_word(fields.part(payload, "error").get("name")))


def _session_started(event: str, payload: Payload, keyed: Keyed) -> Translated:
    source = fields.word(payload, "source")
    return _said(event, Kind.SESSION_STARTED, payload, detail=STARTS.get(source, source) if source else None)


def _session_ended(event: str, payload: Payload, keyed: Keyed) -> Translated:
    reason = fields.word(payload, "reason")
    return _said(
        event,
        Kind.SESSION_ENDED,
        payload,
        detail=ENDS.get(reason, reason) if reason else None,
        interrupted=reason == "abort",
    )


EVENTS: Mapping[str, Callable[[str, Payload, Keyed], Translated | None]] = MappingProxyType(
    {
        "sessionStart": _session_started,
        "sessionEnd": _session_ended,
        "userPromptSubmitted": _prompted,
        "preToolUse": _tool_formed,
        "permissionRequest": lambda event, payload, keyed: _said(event, Kind.NOTED, payload),
        "postToolUse": lambda event, payload, keyed: _call(event, Kind.TOOL_ENDED, payload, keyed),
        "postToolUseFailure": lambda event, payload, keyed: _call(event, Kind.TOOL_FAILED, payload, keyed),
        "agentStop": lambda event, payload, keyed: _said(event, Kind.TURN_ENDED, payload),
        "errorOccurred": _failed,
        # Named by their sort alone, and the commonest sort sends none: signs of life that hold nothing.
        "subagentStart": lambda event, payload, keyed: _said(event, Kind.NOTED, payload),
        "subagentStop": lambda event, payload, keyed: _said(event, Kind.NOTED, payload),
        "notification": _noticed,
    }
)
"""What each event means."""

IGNORED = frozenset({"userPromptTransformed", "preCompact"})


def translate(event: str | None, payload: Payload, keyed: Keyed) -> Translated | None:
    """What an event of Copilot CLI means. Raises UnknownEvent, BadPayload."""
    name = fields.named(event, payload, "hookEventName")
    if name in IGNORED:
        return None
    read = EVENTS.get(name)
    if read is None:
        raise UnknownEvent("Copilot CLI has no event of that name")
    return read(name, payload, keyed)


COPILOT = Agent(
    name="copilot",
    label="Copilot CLI",
    programs=("copilot", "@github/copilot"),
    ignored=IGNORED,
    translate=translate,
    wake=frozenset({WakeWay.IDLE_HOOK}),
    idle_cap=8,
)
