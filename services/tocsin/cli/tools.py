"""What a tool for agents is: a struct whose docstring is its description, whose fields are its arguments, and whose `do` does it.

What changes something takes `request`, the id of an earlier call whose answer was lost: it counts once, however often it is called.
"""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from tocsin.cli import speak
from tocsin.cli.speak import Speaker
from tocsin.contract.run import Receipt, Refused, RunVerb

WAIT_S_MAX = 600
"""Longest wait of one call; clients end calls that take longer, and a wait can be called again."""

Told = dict[str, Any] | Refused
"""What a tool answers: the result, or why nothing was done."""

Dispatch = Annotated[str, Meta(description="id of the worker's Dispatch, RUN.TASK.N")]
Reason = Annotated[str, Meta(min_length=1, description="why; it is kept")]
Wait = Annotated[int, Meta(ge=0, le=WAIT_S_MAX, description="seconds to wait for it; waiting ends early when it is there")]
Limit = Annotated[int, Meta(ge=1, le=100, description="rows of a page")]
After = Annotated[str | None, Meta(description="`next` of the page before")]


class Tool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool that only looks."""

    CHANGES: ClassVar[bool] = False
    run: Annotated[str | None, Meta(description="another Run than the one that this pane is bound to")] = None

    @property
    def request_id(self) -> str | None:
        """The id of an earlier call, where one can be given."""
        return None

    async def do(self, speaker: Speaker) -> Told:
        """Do it."""
        named = await speaker.which_run()
        return named if isinstance(named, Refused) else told(await self.put(speaker, named))

    async def put(self, speaker: Speaker, named: str) -> Receipt | Refused:
        """Ask the Run that is meant."""
        return await speaker.look_at_run(self.ask(), named)

    def ask(self) -> RunVerb:
        """What is asked of it, for tools that ask a Run."""
        raise AssertionError(type(self).__name__)


class Change(Tool, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool that changes something."""

    CHANGES: ClassVar[bool] = True
    request: Annotated[str | None, Meta(description="id of an earlier call whose answer was lost, to have it once and only once")] = None

    @property
    def request_id(self) -> str | None:
        """See Tool."""
        return self.request

    async def put(self, speaker: Speaker, named: str) -> Receipt | Refused:
        """See Tool."""
        return await speaker.to_run(self.ask(), named)


def told(receipt: Receipt | Refused) -> Told:
    """A receipt as a tool answers it."""
    return receipt if isinstance(receipt, Refused) else speak.told(receipt)


def schema(tool: type[Tool]) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments, one object at its root; its description is told beside it.

    What may be left out is not said to be null as well: models read it, and each word costs them.
    """
    (root,), parts = msgspec.json.schema_components([tool], ref_template="#/$defs/{name}")
    found: dict[str, Any] = parts.pop(root["$ref"].rpartition("/")[2])
    fields = {
        "type": "object",
        "properties": {name: _without_null(field) for name, field in found["properties"].items()},
        "required": found.get("required", []),
        "additionalProperties": False,
    }
    return fields | ({"$defs": parts} if parts else {})


def _without_null(field: dict[str, Any]) -> dict[str, Any]:
    kinds: list[dict[str, Any]] = [kind for kind in field.get("anyOf", []) if kind != {"type": "null"}]
    if len(kinds) != 1 or field.get("default", ...) is not None:
        return field
    return {name: value for name, value in field.items() if name not in ("anyOf", "default")} | kinds[0]
