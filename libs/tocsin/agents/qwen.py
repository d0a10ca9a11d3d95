"""Qwen Code: what its hooks and titles say. Names and answers are Claude-like, the order is not.

A permission is asked *before* the call is announced, so the announcement is the grant. After each tool result comes a prompt
event with nothing in it. A cancel shows only as the idle notice, which comes at once and not after a minute.
Source: facts on Qwen Code 0.24.4, measured.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from tocsin.agents import fields
from tocsin.agents.agent import Agent, Keyed, Payload, TitleSpeech, Translated, UnknownEvent, WakeWay
from tocsin.agents.target import target
from tocsin.agents.titles import read_title
from tocsin.contract.messages import Ask, Kind, Origin, Reading, Task

ASKING_TOOLS: Mapping[str, Ask] = MappingProxyType({"ask_user_question": Ask.QUESTION, "exit_plan_mode": Ask.PLAN})


def _said(event: str, kind: Kind, payload: Payload, **more: Any) -> Translated:
    return Translated(
        event=event,
        kind=kind,
        session=fields.session(payload, "session_id"),
        cwd=fields.path(payload, "cwd"),
        turn=fields.identity(payload, "prompt_id"),
        child=None if kind is Kind.IDLE_NOTICED else fields.identity(payload, "agent_id"),
        transcript=fields.path(payload, "transcript_path"),
        **more,
    )


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


def _prompted(event: str, payload: Payload, keyed: Keyed) -> Translated:
    if fields.identity(payload, "agent_id") is not None:
        return _said(event, Kind.CHILD_STARTED, payload)
    submitted = fields.string(payload, "submitted_prompt")
    prompt = fields.string(payload, "prompt") if submitted is None else submitted
    if submitted is None and not prompt:
        return _said(event, Kind.NOTED, payload)
    # Only what a person submitted comes with submitted_prompt; a hook's answer that goes on as a prompt does not.
    origin = Origin.AGENT if submitted is None else Origin.PERSON
    return _said(event, Kind.PROMPTED, payload, origin=origin, prompt_hash=fields.spoken(prompt, keyed))


def _permission_asked(event: str, payload: Payload, keyed: Keyed) -> Translated:
    ask = ASKING_TOOLS.get(str(payload.get("tool_name")), Ask.PERMISSION)
    return _call(event, Kind.ASKED, payload, keyed, ask=ask, reviewed=_nobody_can_answer(payload))


def _nobody_can_answer(payload: Payload) -> bool:
    """A child's request is refused by itself; no dialog is shown for it."""
    return fields.identity(payload, "agent_id") is not None


def _turn_ended(event: str, payload: Payload, keyed: Keyed) -> Translated:
    if fields.identity(payload, "agent_id") is not None:
        return _said(event, Kind.CHILD_ENDED, payload)
    return _said(
        event,
        Kind.TURN_ENDED,
        payload,
        tasks=_background(payload),
        timers=bool(fields.listed(payload, "crons")),
    )


def _background(payload: Payload) -> tuple[Task, ...] | None:
    # Its entries have no type: those with an agent_type are children.
    entries = fields.listed(payload, "background_tasks")
    if entries is None:
        return None
    told = [entry if isinstance(entry, Mapping) else {} for entry in entries]
    return fields.background([{**entry, "type": "agent"} if entry.get("agent_type") else entry for entry in told])


def _turn_failed(event: str, payload: Payload, keyed: Keyed) -> Translated:
    kind = Kind.TURN_FAILED if fields.identity(payload, "agent_id") is None else Kind.CHILD_ENDED
    return _said(event, kind, payload, detail=fields.word(payload, "error"))


def _noticed(event: str, payload: Payload, keyed: Keyed) -> Translated | None:
    match payload.get("notification_type"):
        case "idle_prompt":
            return _said(event, Kind.IDLE_NOTICED, payload)
        case "permission_prompt":
            return _said(event, Kind.ASK_NOTICED, payload, ask=Ask.PERMISSION, reviewed=_nobody_can_answer(payload))
    return None


EVENTS: Mapping[str, Callable[[str, Payload, Keyed], Translated | None]] = MappingProxyType(
    {
        "SessionStart": lambda event, payload, keyed: _said(event, Kind.SESSION_STARTED, payload, detail=fields.word(payload, "source")),
        "SessionEnd": lambda event, payload, keyed: _said(event, Kind.SESSION_ENDED, payload, detail=fields.word(payload, "reason")),
        "UserPromptSubmit": _prompted,
        "PermissionRequest": _permission_asked,
        "PermissionDenied": lambda event, payload, keyed: _call(event, Kind.DENIED, payload, keyed),
        # Also of the asking tools: they are asked with their permission, and answered by now.
        "PreToolUse": lambda event, payload, keyed: _call(event, Kind.TOOL_STARTED, payload, keyed),
        "PostToolUse": lambda event, payload, keyed: _call(event, Kind.TOOL_ENDED, payload, keyed),
        "PostToolUseFailure": lambda event, payload, keyed: _call(
            event, Kind.TOOL_FAILED, payload, keyed, interrupted=fields.flag(payload, "is_interrupt")
        ),
        "Stop": _turn_ended,
        "StopFailure": _turn_failed,
        "SubagentStart": lambda event, payload, keyed: _said(event, Kind.CHILD_STARTED, payload),
        "SubagentStop": lambda event, payload, keyed: _said(event, Kind.CHILD_ENDED, payload),
        "Notification": _noticed,
        "PostCompact": lambda event, payload, keyed: _said(event, Kind.COMPACTED, payload, detail=fields.word(payload, "trigger")),
    }
)
"""What each event means."""

IGNORED = frozenset({"InstructionsLoaded", "PreCompact", "Setup", "TaskCreated", "TaskCompleted", "PostToolBatch", "UserPromptExpansion"})


def translate(event: str | None, payload: Payload, keyed: Keyed) -> Translated | None:
    """What an event of Qwen Code means. Raises UnknownEvent, BadPayload."""
    name = fields.named(event, payload, "hook_event_name")
    if name in IGNORED:
        return None
    read = EVENTS.get(name)
    if read is None:
        raise UnknownEvent("Qwen Code has no event of that name")
    return read(name, payload, keyed)


def read_own_title(text: str) -> Reading:
    """What a title says where Qwen Code is known to run: its star waits for an approval, whatever follows it."""
    return read_title(text, "qwen")


QWEN = Agent(
    name="qwen",
    label="Qwen Code",
    programs=("qwen", "@qwen-code/qwen-code"),
    titles=TitleSpeech(busy=True, rest=True, needs_you=True),
    idle_notice_ends=True,
    starts_after_grant=True,
    transcript_root=".qwen/projects",
    ignored=IGNORED,
    translate=translate,
    wake=frozenset({WakeWay.IDLE_HOOK, WakeWay.TYPED}),
    idle_cap=7,  # its eighth turn end in a row is the last, whatever the hook answers
    read_title=read_own_title,
)
