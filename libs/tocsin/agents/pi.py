"""pi: what its extension events say. It has no permission dialogs of its own, and its title carries no state.

Source: facts on pi 0.73.1, measured; its documentation for `agent_settled` and tool events.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from tocsin.agents import fields
from tocsin.agents.agent import Agent, Keyed, Payload, Translated, UnknownEvent, WakeWay
from tocsin.agents.target import target
from tocsin.contract.messages import Kind

STARTS: Mapping[str, str] = MappingProxyType({"new": "clear"})

ENDS: Mapping[str, str] = MappingProxyType({"quit": "prompt_input_exit", "new": "clear", "fork": "resume"})

RELOADED = "reload"
"""The extensions are read again; the session goes on."""

STOPS: Mapping[str, Kind] = MappingProxyType({"aborted": Kind.TURN_INTERRUPTED, "error": Kind.TURN_FAILED})
"""What the last message's stop reason means; every other one is an ordinary end."""


def _said(event: str, kind: Kind, payload: Payload, **more: Any) -> Translated:
    return Translated(
        event=event,
        kind=kind,
        session=fields.session(payload, "session", "sessionId"),
        cwd=fields.path(payload, "cwd"),
        **more,
    )


def _plain(kind: Kind) -> Callable[[str, Payload, Keyed], Translated]:
    return lambda event, payload, keyed: _said(event, kind, payload)


def _session(event: str, payload: Payload, keyed: Keyed) -> Translated:
    reason = fields.word(payload, "reason")
    if reason == RELOADED:
        return _said(event, Kind.NOTED, payload, detail=reason)
    if event == "session_start":
        return _said(event, Kind.SESSION_STARTED, payload, detail=STARTS.get(reason, reason) if reason else "startup")
    return _said(event, Kind.SESSION_ENDED, payload, detail=ENDS.get(reason, reason) if reason else "other")


def _prompted(event: str, payload: Payload, keyed: Keyed) -> Translated:
    # Who wrote it only `input` knows; and that comes also for texts that start no turn.
    return _said(event, Kind.PROMPTED, payload, prompt_hash=fields.spoken(fields.string(payload, "prompt"), keyed))


def _call(kind: Kind) -> Callable[[str, Payload, Keyed], Translated]:
    def read(event: str, payload: Payload, keyed: Keyed) -> Translated:
        failed = kind is Kind.TOOL_ENDED and payload.get("isError") is True
        given = payload.get("args")
        return _said(
            event,
            Kind.TOOL_FAILED if failed else kind,
            payload,
            call=fields.identity(payload, "toolCallId"),
            tool=fields.name(payload, "toolName"),
            target=target(given),
            input_hash=fields.input_hash(given, keyed),
        )

    return read


def _turn_ended(event: str, payload: Payload, keyed: Keyed) -> Translated:
    kind = STOPS.get(str(_stop_reason(payload)), Kind.TURN_ENDED)
    return _said(event, kind, payload, interrupted=kind is Kind.TURN_INTERRUPTED)


def _stop_reason(payload: Payload) -> object:
    if "stopReason" in payload:
        return payload["stopReason"]
    last = (fields.listed(payload, "messages") or [None])[-1]
    return last.get("stopReason") if isinstance(last, Mapping) else None


EVENTS: Mapping[str, Callable[[str, Payload, Keyed], Translated | None]] = MappingProxyType(
    {
        "session_start": _session,
        "session_shutdown": _session,
        "input": _plain(Kind.NOTED),
        "before_agent_start": _prompted,
        "agent_start": _plain(Kind.BUSY),
        "turn_start": _plain(Kind.BUSY),
        "tool_execution_start": _call(Kind.TOOL_STARTED),
        "tool_execution_end": _call(Kind.TOOL_ENDED),
        "turn_end": _plain(Kind.NOTED),  # one request to the model is over, not the person's turn
        # A retry or a compaction may follow, and then agent_start again; agent_settled is the true end, where a version has it.
        "agent_end": _turn_ended,
        "agent_settled": _turn_ended,
        "session_compact": lambda event, payload, keyed: _said(event, Kind.NOTED, payload),
    }
)
"""What each event means."""

IGNORED = frozenset(
    {
        "extension.load",
        "message_start",
        "message_update",
        "message_end",
        "tool_call",  # the same call again, before it may be blocked
        "tool_result",
        "tool_execution_update",
        "session_before_compact",
    }
)


def translate(event: str | None, payload: Payload, keyed: Keyed) -> Translated | None:
    """What an event of pi means. Raises UnknownEvent, BadPayload."""
    name = fields.named(event, payload, "event" if "event" in payload else "type")
    if name in IGNORED:
        return None
    read = EVENTS.get(name)
    if read is None:
        raise UnknownEvent("pi has no event of that name")
    return read(name, payload, keyed)


PI = Agent(
    name="pi",
    label="pi",
    programs=("pi", "@mariozechner/pi-coding-agent"),
    ignored=IGNORED,
    translate=translate,
    wake=frozenset({WakeWay.NATIVE_PLUGIN, WakeWay.TYPED}),
)
