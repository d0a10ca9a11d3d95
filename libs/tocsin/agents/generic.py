"""Any script or tool without a file of its own: a small vocabulary that it can post, in place of titles or beside them.

`POST /hook/generic` takes one JSON object:

| field | needed | meaning |
|---|---|---|
| `event` | yes | one of EVENTS |
| `session` | yes | an id of the caller's choice, the same for all events of one life of the script |
| `cwd` | no | absolute path of the folder it works in; the hook command fills it in |
| `ask` | no | with `asked`: `permission` (the default), `question`, `plan` or `form` |
| `call` | no | with `asked` and `answered`: which prompt, when more than one can stand |
| `tool` | no | with `asked`: what it is about, a short name, which is shown |
| `child` | no | with `child_started` and `child_ended`: which one |
| `reason` | no | with `failed` and `left`: one word |

A turn is `prompted` ... `ended`. Between them `asked` puts the pane in front of the person and `answered` takes it back.
"""

from collections.abc import Mapping
from types import MappingProxyType

from tocsin.agents import fields
from tocsin.agents.agent import Agent, BadPayload, Keyed, Payload, Translated, UnknownEvent
from tocsin.contract.messages import Ask, Kind

EVENTS: Mapping[str, Kind] = MappingProxyType(
    {
        "started": Kind.SESSION_STARTED,  # it is there and at rest
        "prompted": Kind.PROMPTED,  # work begins
        "busy": Kind.BUSY,  # work still goes on: say it within every half hour
        "asked": Kind.ASKED,
        "answered": Kind.ANSWERED,
        "ended": Kind.TURN_ENDED,  # done: somebody should look
        "failed": Kind.TURN_FAILED,
        "interrupted": Kind.TURN_INTERRUPTED,  # stopped by a person, who knows it
        "child_started": Kind.CHILD_STARTED,
        "child_ended": Kind.CHILD_ENDED,
        "left": Kind.SESSION_ENDED,
    }
)
"""What each event means."""

_CHILDREN = frozenset({Kind.CHILD_STARTED, Kind.CHILD_ENDED})
_DETAILS: Mapping[Kind, str] = MappingProxyType({Kind.SESSION_STARTED: "startup", Kind.SESSION_ENDED: "prompt_input_exit"})


def translate(event: str | None, payload: Payload, keyed: Keyed) -> Translated | None:
    """What a script's event means. Raises UnknownEvent, BadPayload."""
    name = fields.named(event, payload, "event")
    kind = EVENTS.get(name)
    if kind is None:
        raise UnknownEvent("the generic agent has no event of that name")
    child = fields.identity(payload, "child")
    if kind in _CHILDREN and child is None:
        raise BadPayload("child is missing")
    return Translated(
        event=name,
        kind=kind,
        session=fields.session(payload, "session"),
        cwd=fields.path(payload, "cwd"),
        call=fields.identity(payload, "call"),
        child=child,
        tool=fields.name(payload, "tool"),
        ask=_ask(payload) if kind is Kind.ASKED else None,
        detail=fields.word(payload, "reason") or _DETAILS.get(kind),
        interrupted=kind is Kind.TURN_INTERRUPTED,
    )


def _ask(payload: Payload) -> Ask:
    said = fields.string(payload, "ask") or Ask.PERMISSION
    try:
        return Ask(said)
    except ValueError as error:
        raise BadPayload("ask is not permission, question, plan or form") from error


GENERIC = Agent(name="generic", label="script", programs=(), translate=translate, turn_start_signal=False)
