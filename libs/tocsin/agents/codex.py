"""Codex CLI: what its hooks and titles say.

Its hooks run in a daemon with the environment of the pane that started it, so no pane is read from there. It reports an
interrupt, also for a refused approval and a dismissed question, but nothing at all when the model server fails.
Source: facts on Codex CLI 0.171.0, measured; its documentation for what was not.
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from tocsin.agents import fields
from tocsin.agents.agent import Agent, Keyed, Payload, TitleSpeech, Translated, UnknownEvent, WakeWay
from tocsin.agents.target import file_name, target
from tocsin.agents.titles import read_title
from tocsin.contract.messages import Ask, Kind, Origin, Reading

QUESTION_TOOL = "request_user_input"
"""A question, whatever permission_mode says: it stays `default` in Plan mode too. Where questions are off, the tool answers at once."""

REVIEWED_MODE = "bypassPermissions"
"""In this mode an automatic reviewer answers the requests, except questions."""

_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)

PATCH_CHARACTERS_MAX = 4000
"""How far into a patch its first file is looked for."""


def _said(event: str, kind: Kind, payload: Payload, **more: Any) -> Translated:
    return Translated(
        event=event,
        kind=kind,
        session=fields.session(payload, "session_id"),
        cwd=fields.path(payload, "cwd"),
        turn=fields.identity(payload, "turn_id"),
        child=fields.identity(payload, "agent_id"),
        transcript=fields.path(payload, "transcript_path"),
        **more,
    )


def _call(event: str, kind: Kind, payload: Payload, keyed: Keyed, **more: Any) -> Translated:
    given = payload.get("tool_input")
    if isinstance(given, Mapping):
        # The request adds a description to the very input that the call was announced with.
        given = {name: value for name, value in given.items() if name != "description"}
    return _said(
        event,
        kind,
        payload,
        call=fields.identity(payload, "tool_use_id"),
        tool=fields.name(payload, "tool_name"),
        target=_patched_file(given) or target(given),
        input_hash=fields.input_hash(given, keyed),
        **more,
    )


def _patched_file(given: object) -> str | None:
    command = given.get("command") if isinstance(given, Mapping) else None
    found = _PATCHED.search(command, 0, PATCH_CHARACTERS_MAX) if isinstance(command, str) else None
    return None if found is None else file_name(found[1])


def _prompted(event: str, payload: Payload, keyed: Keyed) -> Translated:
    if fields.identity(payload, "agent_id") is not None:
        return _said(event, Kind.CHILD_STARTED, payload)
    return _said(event, Kind.PROMPTED, payload, origin=Origin.PERSON, prompt_hash=fields.spoken(fields.string(payload, "prompt"), keyed))


def _tool_formed(event: str, payload: Payload, keyed: Keyed) -> Translated:
    if payload.get("tool_name") == QUESTION_TOOL:
        return _call(event, Kind.ASKED, payload, keyed, ask=Ask.QUESTION)
    return _call(event, Kind.TOOL_STARTED, payload, keyed)


def _permission_asked(event: str, payload: Payload, keyed: Keyed) -> Translated:
    if payload.get("tool_name") == QUESTION_TOOL:
        return _call(event, Kind.ASKED, payload, keyed, ask=Ask.QUESTION)
    reviewed = payload.get("permission_mode") == REVIEWED_MODE
    return _call(event, Kind.ASKED, payload, keyed, ask=Ask.PERMISSION, reviewed=reviewed)


def _lead_or_child(kind: Kind) -> Callable[[str, Payload, Keyed], Translated]:
    def read(event: str, payload: Payload, keyed: Keyed) -> Translated:
        child = fields.identity(payload, "agent_id") is not None
        return _said(event, Kind.CHILD_ENDED if child else kind, payload, interrupted=kind is Kind.TURN_INTERRUPTED)

    return read


EVENTS: Mapping[str, Callable[[str, Payload, Keyed], Translated | None]] = MappingProxyType(
    {
        # Comes with the first prompt, not at launch: an unused Codex has only a title.
        "SessionStart": lambda event, payload, keyed: _said(event, Kind.SESSION_STARTED, payload, detail=fields.word(payload, "source")),
        "SessionEnd": lambda event, payload, keyed: _said(event, Kind.SESSION_ENDED, payload, detail=fields.word(payload, "reason")),
        "UserPromptSubmit": _prompted,
        "PreToolUse": _tool_formed,
        "PermissionRequest": _permission_asked,
        "PostToolUse": lambda event, payload, keyed: _call(event, Kind.TOOL_ENDED, payload, keyed),
        "Stop": _lead_or_child(Kind.TURN_ENDED),
        "Interrupt": _lead_or_child(Kind.TURN_INTERRUPTED),
        "SubagentStart": lambda event, payload, keyed: _said(event, Kind.CHILD_STARTED, payload),
        "SubagentStop": lambda event, payload, keyed: _said(event, Kind.CHILD_ENDED, payload),
        # Always the session's own doing in mid-turn as far as is known, also where a person asked for it.
        "PostCompact": lambda event, payload, keyed: _said(event, Kind.NOTED, payload, detail=fields.word(payload, "trigger")),
    }
)
"""What each event means."""

OLD_NOTICE = "agent-turn-complete"
"""The `type` of the only payload that the old notify program gets."""

IGNORED = frozenset(
    {
        "PreCompact",
        # Says that a turn is complete for the turn that writes the title too, under another thread and before the real end,
        # and for subagents. Stop tells the truth, so this tells nothing.
        "notify",
        OLD_NOTICE,
    }
)


def translate(event: str | None, payload: Payload, keyed: Keyed) -> Translated | None:
    """What an event of Codex means. The old `notify` has no event name, only a `type`. Raises UnknownEvent, BadPayload."""
    name = fields.named(event, payload, "type" if payload.get("type") == OLD_NOTICE else "hook_event_name")
    if name in IGNORED:
        return None
    read = EVENTS.get(name)
    if read is None:
        raise UnknownEvent("Codex has no event of that name")
    return read(name, payload, keyed)


def read_own_title(text: str) -> Reading:
    """What a title says where Codex is known to run: at rest it is the project's name alone, which elsewhere says nothing."""
    reading = read_title(text, "codex")
    return Reading.IDLE if reading is Reading.NONE and text.strip() else reading


CODEX = Agent(
    name="codex",
    label="Codex",
    programs=("codex", "@openai/codex"),
    titles=TitleSpeech(busy=True, rest=True, needs_you=True),
    trusts_environment=False,
    transcript_root=".codex/sessions",
    ignored=IGNORED,
    translate=translate,
    wake=frozenset({WakeWay.IDLE_HOOK, WakeWay.TYPED}),
    read_title=read_own_title,
)
