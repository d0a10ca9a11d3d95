"""opencode: what its bus and plugin hooks say, through our plugin. Its title carries no state.

A post is the event's name beside its properties, or one object that holds both. Of a child session only the creation names the
parent; every later event carries the child's own id alone. Esc gives an error of a certain name and then two idle events.
Source: facts on opencode 1.18.33, measured; its types for older names.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from tocsin.agents import fields
from tocsin.agents.agent import Agent, Keyed, Payload, Translated, UnknownEvent, WakeWay
from tocsin.agents.target import target
from tocsin.contract.messages import Ask, Kind, Origin

ABORTED = "MessageAbortedError"
"""The error that Esc makes; an abort by the provider looks the same."""


def _said(event: str, kind: Kind, told: Payload, **more: Any) -> Translated:
    return Translated(event=event, kind=kind, session=more.pop("session", None) or fields.session(told, "sessionID"), **more)


def _session_made(event: str, told: Payload, keyed: Keyed) -> Translated:
    info = fields.part(told, "info")
    own = fields.identity(info, "id") or fields.session(told, "sessionID")
    parent = fields.identity(info, "parentID")
    cwd = fields.path(info, "directory")
    if parent is not None:
        return _said(event, Kind.CHILD_STARTED, told, session=own, parent=parent, child=own, cwd=cwd)
    return _said(event, Kind.SESSION_STARTED, told, session=own, detail="startup", cwd=cwd)


def _session_deleted(event: str, told: Payload, keyed: Keyed) -> Translated:
    info = fields.part(told, "info")
    own = fields.identity(info, "id") or fields.session(told, "sessionID")
    parent = fields.identity(info, "parentID")
    if parent is not None:
        return _said(event, Kind.CHILD_ENDED, told, session=own, parent=parent, child=own)
    return _said(event, Kind.SESSION_ENDED, told, session=own, detail="clear")


def _status(event: str, told: Payload, keyed: Keyed) -> Translated | None:
    match fields.part(told, "status").get("type"):
        case "busy":
            return _said(event, Kind.BUSY, told)
        case "retry":
            return _said(event, Kind.BUSY, told, detail="retry")
        case "idle":
            return _said(event, Kind.TURN_ENDED, told)
    return None


def _failed(event: str, told: Payload, keyed: Keyed) -> Translated | None:
    if fields.identity(told, "sessionID") is None:
        return None  # an error of the server, not of a session
    error = fields.word(fields.part(told, "error"), "name")
    if error == ABORTED:
        return _said(event, Kind.TURN_INTERRUPTED, told, interrupted=True)
    return _said(event, Kind.TURN_FAILED, told, detail=error)


def _permission_asked(event: str, told: Payload, keyed: Keyed) -> Translated:
    # Older versions name the tool in `type`.
    tool = fields.name(told, "permission") or fields.name(told, "type")
    return _said(
        event,
        Kind.ASKED,
        told,
        ask=Ask.PERMISSION,
        call=fields.identity(told, "id"),
        tool=tool,
        target=target(fields.part(told, "metadata")),
    )


def _question_asked(event: str, told: Payload, keyed: Keyed) -> Translated:
    return _said(event, Kind.ASKED, told, ask=Ask.QUESTION, call=fields.identity(told, "id"), tool="question")


def _answered(ask: Ask) -> Callable[[str, Payload, Keyed], Translated]:
    def read(event: str, told: Payload, keyed: Keyed) -> Translated:
        # Older versions: permissionID and response.
        request = fields.identity(told, "requestID") or fields.identity(told, "permissionID")
        reply = fields.word(told, "reply") or fields.word(told, "response")
        return _said(event, Kind.ANSWERED, told, ask=ask, call=request, detail="reject" if event == "question.rejected" else reply)

    return read


def _call(kind: Kind) -> Callable[[str, Payload, Keyed], Translated]:
    def read(event: str, told: Payload, keyed: Keyed) -> Translated:
        given = fields.part(told, "input")
        made = fields.part(told, "output")
        arguments = given.get("args", made.get("args"))
        return _said(
            event,
            kind,
            given,
            call=fields.identity(given, "callID"),
            tool=fields.name(given, "tool"),
            target=target(arguments),
            input_hash=fields.input_hash(arguments, keyed),
        )

    return read


def _prompted(event: str, told: Payload, keyed: Keyed) -> Translated:
    parts = fields.listed(fields.part(told, "output"), "parts") or ()
    told_parts = [part for part in parts if isinstance(part, Mapping) and isinstance(part.get("text"), str)]
    # Beside what was submitted stand texts that opencode added: a file's content, a notice.
    texts = [part["text"] for part in told_parts if part.get("synthetic") is not True]
    return _said(
        event,
        Kind.PROMPTED,
        fields.part(told, "input"),
        origin=Origin.AGENT if told_parts and not texts else Origin.PERSON,
        prompt_hash=fields.spoken("\n".join(texts) if texts else None, keyed),
    )


EVENTS: Mapping[str, Callable[[str, Payload, Keyed], Translated | None]] = MappingProxyType(
    {
        "session.created": _session_made,
        "session.deleted": _session_deleted,
        "session.status": _status,
        "session.idle": lambda event, told, keyed: _said(event, Kind.TURN_ENDED, told),
        "session.error": _failed,
        # In the middle of a turn: nothing ends by it.
        "session.compacted": lambda event, told, keyed: _said(event, Kind.COMPACTED, told, detail="auto"),
        "permission.asked": _permission_asked,
        "permission.updated": _permission_asked,
        "permission.replied": _answered(Ask.PERMISSION),
        "question.asked": _question_asked,
        "question.replied": _answered(Ask.QUESTION),
        "question.rejected": _answered(Ask.QUESTION),
        "tool.execute.before": _call(Kind.TOOL_STARTED),
        "tool.execute.after": _call(Kind.TOOL_ENDED),
        "chat.message": _prompted,
    }
)
"""What each event means."""

IGNORED = frozenset({"plugin.load", "session.updated", "session.diff"})

IGNORED_FAMILIES = frozenset(
    {"command", "file", "ide", "installation", "lsp", "mcp", "message", "permission", "plugin", "project", "pty", "question", "server"}
    | {"session", "storage", "todo", "tui", "vcs", "workspace", "worktree"}
)
"""First words of its bus events. Of these families only the events above mean something; new ones come with each release."""


def translate(event: str | None, payload: Payload, keyed: Keyed) -> Translated | None:
    """What an event of opencode means. Raises UnknownEvent, BadPayload."""
    name = fields.named(event, payload, "event" if "event" in payload else "type")
    inner = payload.get("properties")
    told = inner if isinstance(inner, Mapping) else payload
    read = EVENTS.get(name)
    if read is not None:
        return read(name, told, keyed)
    if name in IGNORED or name.partition(".")[0] in IGNORED_FAMILIES:
        return None
    raise UnknownEvent("opencode has no event of that name")


OPENCODE = Agent(
    name="opencode",
    label="opencode",
    programs=("opencode", "opencode-ai"),
    environment=("OPENCODE_PID",),
    ignored=IGNORED,
    translate=translate,
    wake=frozenset({WakeWay.NATIVE_PLUGIN, WakeWay.TYPED}),
)
