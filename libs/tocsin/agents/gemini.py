"""Gemini CLI: what its hooks and titles say.

No call ids, no child ids, no event for a cancel or a refusal; a cancelled turn may end like any other. Its title is the more
complete source. Source: facts on Gemini CLI 0.61.0, measured; its documentation for what was not.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from tocsin.agents import fields
from tocsin.agents.agent import Agent, Keyed, Payload, TitleSpeech, Translated, UnknownEvent, WakeWay
from tocsin.agents.target import file_name, program, target
from tocsin.contract.messages import Ask, Kind, Origin

SHELL_TOOL = "run_shell_command"
QUESTION_TOOL = "ask_user"

NO_RESPONSE = "[no response text]"
"""What a reply is that no model gave: the turn was cancelled before the first word, failed, or its late wake was swallowed."""

ENDS: Mapping[str, str] = MappingProxyType({"exit": "prompt_input_exit"})


def _said(event: str, kind: Kind, payload: Payload, **more: Any) -> Translated:
    return Translated(
        event=event,
        kind=kind,
        session=fields.session(payload, "session_id"),
        cwd=fields.path(payload, "cwd"),
        transcript=fields.path(payload, "transcript_path"),
        **more,
    )


def _call(event: str, kind: Kind, payload: Payload, keyed: Keyed) -> Translated:
    given = payload.get("tool_input")
    if payload.get("tool_name") == SHELL_TOOL and isinstance(given, Mapping):
        # The dialog's notice knows the command alone: the hash of both must be of the same.
        given = {"command": given.get("command")}
    return _said(
        event,
        kind,
        payload,
        tool=fields.name(payload, "tool_name"),
        target=target(given),
        input_hash=fields.input_hash(given, keyed),
    )


def _dialog(event: str, payload: Payload, keyed: Keyed) -> Translated | None:
    """A dialog stands. Only for a command does the notice know the call's input; otherwise the next end of a tool is its answer."""
    if payload.get("notification_type") != "ToolPermission":
        return None
    details = fields.part(payload, "details")
    kind = details.get("type")
    if kind == QUESTION_TOOL:
        return _said(event, Kind.ASKED, payload, ask=Ask.QUESTION, tool=QUESTION_TOOL)
    if kind == "exit_plan_mode":
        return _said(event, Kind.ASKED, payload, ask=Ask.PLAN, tool="exit_plan_mode")
    if kind == "exec":
        command = fields.string(details, "command") or ""
        return _said(
            event,
            Kind.ASKED,
            payload,
            ask=Ask.PERMISSION,
            tool=SHELL_TOOL,
            target=program(command),
            input_hash=fields.input_hash({"command": command}, keyed),
        )
    changed = fields.string(details, "fileName") if kind == "edit" else None
    return _said(event, Kind.ASKED, payload, ask=Ask.PERMISSION, target=file_name(changed) if changed else None)


def _prompted(event: str, payload: Payload, keyed: Keyed) -> Translated:
    return _said(event, Kind.PROMPTED, payload, origin=Origin.PERSON, prompt_hash=fields.spoken(fields.string(payload, "prompt"), keyed))


def _turn_ended(event: str, payload: Payload, keyed: Keyed) -> Translated:
    silent = payload.get("prompt_response") == NO_RESPONSE
    return _said(event, Kind.TURN_ENDED, payload, detail="no_response" if silent else None)


def _tool_ended(event: str, payload: Payload, keyed: Keyed) -> Translated:
    failed = fields.part(payload, "tool_response").get("error") is not None
    return _call(event, Kind.TOOL_FAILED if failed else Kind.TOOL_ENDED, payload, keyed)


def _session_ended(event: str, payload: Payload, keyed: Keyed) -> Translated:
    reason = fields.word(payload, "reason")
    return _said(event, Kind.SESSION_ENDED, payload, detail=ENDS.get(reason, reason) if reason else None)


EVENTS: Mapping[str, Callable[[str, Payload, Keyed], Translated | None]] = MappingProxyType(
    {
        "SessionStart": lambda event, payload, keyed: _said(event, Kind.SESSION_STARTED, payload, detail=fields.word(payload, "source")),
        "SessionEnd": _session_ended,
        "BeforeAgent": _prompted,
        "BeforeTool": lambda event, payload, keyed: _call(event, Kind.TOOL_STARTED, payload, keyed),
        "AfterTool": _tool_ended,
        "Notification": _dialog,
        "AfterAgent": _turn_ended,
    }
)
"""What each event means."""

IGNORED = frozenset(
    {
        "BeforeModel",
        "AfterModel",  # one for each piece of an answer
        "BeforeToolSelection",
        "PreCompress",  # comes in every turn, though nothing is compressed
    }
)


def translate(event: str | None, payload: Payload, keyed: Keyed) -> Translated | None:
    """What an event of Gemini CLI means. Raises UnknownEvent, BadPayload."""
    name = fields.named(event, payload, "hook_event_name")
    if name in IGNORED:
        return None
    read = EVENTS.get(name)
    if read is None:
        raise UnknownEvent("Gemini CLI has no event of that name")
    return read(name, payload, keyed)


GEMINI = Agent(
    name="gemini",
    label="Gemini CLI",
    programs=("gemini", "@google/gemini-cli"),
    titles=TitleSpeech(busy=True, rest=True, needs_you=True),
    ends_on_cancel=True,
    transcript_root=".gemini/tmp",
    ignored=IGNORED,
    translate=translate,
    wake=frozenset({WakeWay.IDLE_HOOK, WakeWay.TYPED}),
)
