"""Cursor's agent: what its hooks say. Nothing in them means that the person is asked; its title is always the same.

Its hooks run in the folder of their settings file or in the project, so only the payload knows the session's folder.
Source: facts, from Cursor's documentation; not measured.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from tocsin.agents import fields
from tocsin.agents.agent import Agent, Keyed, Payload, Translated, UnknownEvent, WakeWay
from tocsin.agents.target import target
from tocsin.contract.messages import Kind, Origin

ENDS: Mapping[str, str] = MappingProxyType(
    {
        "completed": "other",
        "aborted": "other",
        "error": "other",
        "window_close": "prompt_input_exit",
        "user_close": "prompt_input_exit",
    }
)

STOPS: Mapping[str, Kind] = MappingProxyType({"aborted": Kind.TURN_INTERRUPTED, "error": Kind.TURN_FAILED})
"""What a stop's status means; every other one is an ordinary end."""


def _said(event: str, kind: Kind, payload: Payload, **more: Any) -> Translated:
    return Translated(
        event=event,
        kind=kind,
        session=fields.session(payload, "conversation_id", "session_id"),
        cwd=_folder(payload),
        turn=fields.identity(payload, "generation_id"),
        transcript=fields.path(payload, "transcript_path"),
        **more,
    )


def _folder(payload: Payload) -> str | None:
    roots = fields.listed(payload, "workspace_roots")
    first = roots[0] if roots else None
    return fields.as_path(first) if isinstance(first, str) else None


def _call(event: str, kind: Kind, payload: Payload, keyed: Keyed, **more: Any) -> Translated:
    given = payload.get("tool_input")
    return _said(
        event,
        kind,
        payload,
        call=fields.identity(payload, "tool_use_id"),
        tool=fields.name(payload, "tool_name"),
        target=target(given),
        input_hash=fields.input_hash(given, keyed),
        **more,
    )


def _plain(kind: Kind) -> Callable[[str, Payload, Keyed], Translated]:
    return lambda event, payload, keyed: _said(event, kind, payload)


def _prompted(event: str, payload: Payload, keyed: Keyed) -> Translated:
    return _said(event, Kind.PROMPTED, payload, origin=Origin.PERSON, prompt_hash=fields.spoken(fields.string(payload, "prompt"), keyed))


def _tool_failed(event: str, payload: Payload, keyed: Keyed) -> Translated:
    return _call(
        event,
        Kind.TOOL_FAILED,
        payload,
        keyed,
        interrupted=fields.flag(payload, "is_interrupt"),
        detail=fields.word(payload, "failure_type"),
    )


def _stopped(event: str, payload: Payload, keyed: Keyed) -> Translated:
    kind = STOPS.get(str(payload.get("status")), Kind.TURN_ENDED)
    return _said(event, kind, payload, interrupted=kind is Kind.TURN_INTERRUPTED)


def _session(event: str, payload: Payload, keyed: Keyed) -> Translated | None:
    if fields.flag(payload, "is_background_agent"):
        return None  # another session, in this one's environment
    if event == "sessionStart":
        return _said(event, Kind.SESSION_STARTED, payload, detail="startup")
    reason = fields.word(payload, "reason")
    return _said(
        event,
        Kind.SESSION_ENDED,
        payload,
        detail=ENDS.get(reason, reason) if reason else None,
        interrupted=reason == "aborted",
    )


EVENTS: Mapping[str, Callable[[str, Payload, Keyed], Translated | None]] = MappingProxyType(
    {
        "sessionStart": _session,
        "sessionEnd": _session,
        "beforeSubmitPrompt": _prompted,
        "preToolUse": lambda event, payload, keyed: _call(event, Kind.TOOL_STARTED, payload, keyed),
        "postToolUse": lambda event, payload, keyed: _call(event, Kind.TOOL_ENDED, payload, keyed),
        "postToolUseFailure": _tool_failed,
        # Fire for allowed calls too: work, never a question.
        "beforeShellExecution": _plain(Kind.BUSY),
        "beforeMCPExecution": _plain(Kind.BUSY),
        "beforeReadFile": _plain(Kind.BUSY),
        # May come after the stop, so they start nothing.
        "afterShellExecution": _plain(Kind.NOTED),
        "afterMCPExecution": _plain(Kind.NOTED),
        "afterFileEdit": _plain(Kind.NOTED),
        "afterAgentResponse": _plain(Kind.NOTED),
        # Their ends cannot be told apart, so children are signs of life and hold nothing.
        "subagentStart": _plain(Kind.NOTED),
        "subagentStop": _plain(Kind.NOTED),
        "stop": _stopped,
    }
)
"""What each event means."""

IGNORED = frozenset({"afterAgentThought", "preCompact"})


def translate(event: str | None, payload: Payload, keyed: Keyed) -> Translated | None:
    """What an event of Cursor means. Raises UnknownEvent, BadPayload."""
    name = fields.named(event, payload, "hook_event_name")
    if name in IGNORED:
        return None
    read = EVENTS.get(name)
    if read is None:
        raise UnknownEvent("Cursor has no event of that name")
    return read(name, payload, keyed)


CURSOR = Agent(
    name="cursor",
    label="Cursor",
    programs=("cursor-agent", "cursor-agent/versions"),
    hooks_run_in_cwd=False,
    ignored=IGNORED,
    translate=translate,
    wake=frozenset({WakeWay.IDLE_HOOK}),
    idle_cap=5,  # the `loop_limit` that an entry of its hooks has unless it says otherwise
)
