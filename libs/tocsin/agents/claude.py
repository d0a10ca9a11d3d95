"""Claude Code: what its hooks and titles say.

Silent for: a granted permission (only the call's result shows it), a refused one, a dismissed question, Esc and Ctrl+C.
The transcript that each payload names tells of those. Under a multiplexer its title rests even while it works.
Source: facts on Claude Code 2.1.332, measured; its hooks reference for what was not.
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from tocsin.agents import fields
from tocsin.agents.agent import Agent, Keyed, Payload, TitleSpeech, Translated, UnknownEvent, WakeWay
from tocsin.agents.target import target
from tocsin.contract.messages import Ask, Kind, Origin, Task

ASKING_TOOLS: Mapping[str, Ask] = MappingProxyType({"AskUserQuestion": Ask.QUESTION, "ExitPlanMode": Ask.PLAN})
"""Tools that are a question to the person: asked from the moment the call is formed, in every permission mode."""

ENDING_TOOLS = frozenset({"TaskStop", "KillShell", "KillBash"})
"""Tools that end one piece of background work."""

INJECTED_TAGS = ("<task-notification>", "<system-reminder>")
"""How a prompt begins that the program gave itself. Only at the start: further in, it is the person's text; so is an unknown tag."""

COMPACTION_START = "This session is being continued from a previous conversation"
"""How the summary begins that a compaction leaves as a prompt. No turn follows it."""

PASTED = re.compile(r"\s*<pasted_content id=\"[^\"]*\">(.*)</pasted_content id=\"[^\"]*\">\s*", re.DOTALL)
"""How a prompt looks that is nothing but one long paste."""

NOTICES: Mapping[str, tuple[Kind, Ask | None]] = MappingProxyType(
    {
        "permission_prompt": (Kind.ASK_NOTICED, Ask.PERMISSION),
        "elicitation_dialog": (Kind.ASK_NOTICED, Ask.FORM),
        "elicitation_url_dialog": (Kind.ASK_NOTICED, Ask.FORM),
        "idle_prompt": (Kind.IDLE_NOTICED, None),
    }
)
"""Notifications about this session. The rest tell of other sessions, of a login, or again of an answered form."""


def _said(event: str, kind: Kind, payload: Payload, **more: Any) -> Translated:
    return Translated(
        event=event,
        kind=kind,
        session=fields.session(payload, "session_id"),
        cwd=fields.path(payload, "cwd"),
        turn=fields.identity(payload, "prompt_id"),
        child=more.pop("child", None) or fields.identity(payload, "agent_id"),
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
    prompt = fields.string(payload, "prompt") or ""
    pasted = PASTED.fullmatch(prompt)
    if pasted is not None:
        prompt = pasted[1]
    origin = Origin.PERSON
    if prompt.startswith(INJECTED_TAGS):
        origin = Origin.AGENT
    elif prompt.startswith(COMPACTION_START):
        origin = Origin.COMPACTION
    return _said(event, Kind.PROMPTED, payload, origin=origin, prompt_hash=fields.spoken(prompt, keyed))


def _tool_formed(event: str, payload: Payload, keyed: Keyed) -> Translated:
    ask = ASKING_TOOLS.get(str(payload.get("tool_name")))
    return _call(event, Kind.TOOL_STARTED if ask is None else Kind.ASKED, payload, keyed, ask=ask)


def _permission_asked(event: str, payload: Payload, keyed: Keyed) -> Translated:
    # The request of an asking tool keeps the tool's own kind: with name and input it is then known as the same prompt.
    ask = ASKING_TOOLS.get(str(payload.get("tool_name")), Ask.PERMISSION)
    # In this mode whatever is not allowed beforehand is refused by itself; nobody sees a dialog.
    reviewed = ask is Ask.PERMISSION and payload.get("permission_mode") == "dontAsk"
    return _call(event, Kind.ASKED, payload, keyed, ask=ask, reviewed=reviewed)


def _tool_ended(event: str, payload: Payload, keyed: Keyed) -> Translated:
    stopped = None
    if str(payload.get("tool_name")) in ENDING_TOOLS:
        given = fields.part(payload, "tool_input")
        stopped = fields.identity(given, "task_id") or fields.identity(given, "shell_id")
    return _call(event, Kind.TOOL_ENDED, payload, keyed, launched=_launched(fields.part(payload, "tool_response")), stopped=stopped)


def _launched(response: Payload) -> Task | None:
    shell = fields.identity(response, "backgroundTaskId")
    if shell is not None:
        return Task(id=shell, kind="shell")
    if response.get("status") != "async_launched":
        return None
    child = fields.identity(response, "agentId")
    if child is not None:
        return Task(id=child, kind="agent")
    other = fields.identity(response, "taskId")
    return None if other is None else Task(id=other, kind=fields.kind_of_work(response.get("taskType")))


def _turn_ended(event: str, payload: Payload, keyed: Keyed) -> Translated:
    if fields.identity(payload, "agent_id") is not None:
        return _child_ended(event, payload, keyed)
    return _said(
        event,
        Kind.TURN_ENDED,
        payload,
        tasks=fields.background(fields.listed(payload, "background_tasks")),
        timers=bool(fields.listed(payload, "session_crons")),
    )


def _turn_failed(event: str, payload: Payload, keyed: Keyed) -> Translated:
    kind = Kind.TURN_FAILED if fields.identity(payload, "agent_id") is None else Kind.CHILD_ENDED
    return _said(event, kind, payload, detail=fields.word(payload, "error"))


def _child_ended(event: str, payload: Payload, keyed: Keyed) -> Translated:
    # Its background_tasks are the parent's, and older than the end itself: they still name this child.
    return _said(event, Kind.CHILD_ENDED, payload)


def _teammate_rests(event: str, payload: Payload, keyed: Keyed) -> Translated:
    # A teammate at rest holds its lead's pane no longer than a child that has ended; work given to it starts it again.
    child = fields.identity(payload, "agent_id") or fields.identity(payload, "teammate_name")
    return _said(event, Kind.NOTED if child is None else Kind.CHILD_ENDED, payload, child=child, detail="idle")


def _noticed(event: str, payload: Payload, keyed: Keyed) -> Translated | None:
    meaning = NOTICES.get(str(payload.get("notification_type")))
    return None if meaning is None else _said(event, meaning[0], payload, ask=meaning[1])


def _form(event: str, payload: Payload, keyed: Keyed) -> Translated:
    answered = event == "ElicitationResult"
    return _said(
        event,
        Kind.ANSWERED if answered else Kind.ASKED,
        payload,
        ask=Ask.FORM,
        call=fields.identity(payload, "elicitation_id"),
        tool=fields.name(payload, "mcp_server_name"),
        detail=fields.word(payload, "action") if answered else None,
    )


EVENTS: Mapping[str, Callable[[str, Payload, Keyed], Translated | None]] = MappingProxyType(
    {
        "SessionStart": lambda event, payload, keyed: _said(event, Kind.SESSION_STARTED, payload, detail=fields.word(payload, "source")),
        "SessionEnd": lambda event, payload, keyed: _said(event, Kind.SESSION_ENDED, payload, detail=fields.word(payload, "reason")),
        "UserPromptSubmit": _prompted,
        "PreToolUse": _tool_formed,
        "PermissionRequest": _permission_asked,
        "PermissionDenied": lambda event, payload, keyed: _call(event, Kind.DENIED, payload, keyed),
        "PostToolUse": _tool_ended,
        # An abort that reached the tool; the turn may go on.
        "PostToolUseFailure": lambda event, payload, keyed: _call(
            event, Kind.TOOL_FAILED, payload, keyed, interrupted=fields.flag(payload, "is_interrupt")
        ),
        "Stop": _turn_ended,
        "StopFailure": _turn_failed,
        "SubagentStart": lambda event, payload, keyed: _said(event, Kind.CHILD_STARTED, payload),
        "SubagentStop": _child_ended,
        "TeammateIdle": _teammate_rests,
        "Notification": _noticed,
        "Elicitation": _form,
        "ElicitationResult": _form,
        "PostCompact": lambda event, payload, keyed: _said(event, Kind.COMPACTED, payload, detail=fields.word(payload, "trigger")),
    }
)
"""What each event means."""

IGNORED = frozenset(
    {
        "Setup",
        "InstructionsLoaded",
        "ConfigChange",
        "CwdChanged",  # a cd moves the agent, not its pane to another worktree
        "DirectoryAdded",
        "FileChanged",
        "WorktreeCreate",
        "WorktreeRemove",
        "UserPromptExpansion",
        "MessageDisplay",  # not ordered against Stop
        "PostToolBatch",
        "TaskCreated",  # an entry of a to-do list, not a turn
        "TaskCompleted",
        "PreCompact",  # comes also before a compaction that is then dropped
    }
)


def translate(event: str | None, payload: Payload, keyed: Keyed) -> Translated | None:
    """What an event of Claude Code means. Raises UnknownEvent, BadPayload."""
    name = fields.named(event, payload, "hook_event_name")
    if name in IGNORED:
        return None
    read = EVENTS.get(name)
    if read is None:
        raise UnknownEvent("Claude Code has no event of that name")
    return read(name, payload, keyed)


CLAUDE = Agent(
    name="claude",
    label="Claude Code",
    programs=("claude", "@anthropic-ai/claude-code", "claude/versions"),
    titles=TitleSpeech(busy=True, rest=True),
    queues_prompts=True,
    transcript_root=".claude/projects",
    environment=("CLAUDE_PID", "CLAUDE_CODE_SESSION_ATTENDED"),
    ignored=IGNORED,
    translate=translate,
    wake=frozenset({WakeWay.IDLE_HOOK, WakeWay.NATIVE_PARK, WakeWay.TYPED}),
    idle_cap=8,
)
