"""`tocsin mcp`: the loop's verbs as tools of an MCP server, over standard input and output."""

import argparse
import asyncio
import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tocsin.cli import speak
from tocsin.cli.callers import own_folder
from tocsin.cli.main import DONE, WANTING
from tocsin.contract.faults import Unavailable
from tocsin.contract.refusals import Code
from tocsin.contract.run import Refused

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from tocsin.cli.tools import Tool

ENDING_S_MAX = 2.0
"""How long calls that were given up may still say so at the other end."""

FOR_COORDINATORS = (
    "You coordinate other coding agents. Make a Run, add Tasks with what depends on what, start a worker for each ready Task, then wait "
    "with mail_check. A report is a claim: task_accept or a review decides. Answer questions with mail_reply. Ack each Delivery when you "
    "have dealt with it. Every settled worker is reused, retained or released. A refusal says what to do next; a lost answer is found by "
    "calling again with the same request."
)
FOR_WORKERS = (
    "You work for a coordinator who does not see this terminal. Ask with ask, look at mail_check at natural pauses, and report once with "
    "report (a review: review_verdict) when the work is over. No id has to be given."
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """For whom."""
    parser.add_argument("--role", choices=("coordinator", "worker"), help="whose tools (default: by the pane)")
    parser.add_argument("--state", type=Path, metavar="DIR", help="the instance's folder (TOCSIN_STATE)")


def run(args: argparse.Namespace) -> int:
    """Serve until standard input ends. Exit codes: 0, 1 when the extra `mcp` is not installed."""
    try:
        from mcp.server.stdio import stdio_server
    except ModuleNotFoundError:
        speak.note("the MCP server needs the extra `mcp`: pip install 'tocsin[mcp]'")
        return WANTING

    role = args.role or ("worker" if own_folder() else "coordinator")
    calls = Calls(role, args.state)
    server = _server(calls)

    async def serve() -> int:
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())
        await calls.end()
        return DONE

    return asyncio.run(serve())


class Calls:
    """Does what is called, each call as a task of its own."""

    def __init__(self, role: str, state: Path | None) -> None:
        from tocsin.cli.tools_coordinator import COORDINATOR
        from tocsin.cli.tools_worker import WORKER

        self.role = role
        self.tools: Mapping[str, type[Tool]] = WORKER if role == "worker" else COORDINATOR
        self._state = state
        self._running: set[asyncio.Task[dict[str, Any] | Refused]] = set()

    async def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any] | Refused:
        """The result, or why nothing was done. A caller who hangs up ends it, a wait at the other end included."""
        kind = self.tools.get(name)
        if kind is None:
            return speak.refusal(Code.NOT_FOUND, f"there is no tool {name}", *list(self.tools)[:5])
        try:
            tool = msgspec.convert(dict(arguments), kind)
        except msgspec.ValidationError as error:
            return speak.refusal(Code.BAD_FIELD, str(error))
        # Not in the caller's own scope: what ends a wait needs a moment when that scope is gone.
        task = asyncio.ensure_future(self._do(tool))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel()
            raise

    async def _do(self, tool: "Tool") -> dict[str, Any] | Refused:
        options = speak.Options(state=self._state, run=tool.run, request=tool.request_id)
        try:
            async with speak.open_speaker(options) as speaker:
                return await tool.do(speaker)
        except Unavailable as error:
            return speak.away(str(error), tool.request_id or "")

    async def end(self) -> None:
        """End what still runs."""
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running, timeout=ENDING_S_MAX)


def _server(calls: Calls) -> "Server[Any]":
    import mcp_types as types
    from mcp.server.lowlevel import Server

    from tocsin.cli.tools import schema

    offered = [
        types.Tool(
            name=name,
            description=" ".join((tool.__doc__ or "").split()),
            input_schema=schema(tool),
            annotations=types.ToolAnnotations(
                read_only_hint=not tool.CHANGES,
                destructive_hint=name in DESTRUCTIVE,
                idempotent_hint=not tool.CHANGES,
                open_world_hint=False,
            ),
        )
        for name, tool in calls.tools.items()
    ]

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=offered)

    async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        told = await calls.call(params.name, params.arguments or {})
        refused = isinstance(told, Refused)
        content = speak.why(told) if isinstance(told, Refused) else told
        text = types.TextContent(type="text", text=json.dumps(content, ensure_ascii=False))
        return types.CallToolResult(content=[text], structured_content=content, is_error=refused)

    instructions = FOR_WORKERS if calls.role == "worker" else FOR_COORDINATORS
    return Server("tocsin", version=version("tocsin"), instructions=instructions, on_list_tools=list_tools, on_call_tool=call_tool)


DESTRUCTIVE = frozenset({"run_close", "task_cancel", "worker_stop", "worker_abandon", "custody_release"})
"""Tools that end something."""
