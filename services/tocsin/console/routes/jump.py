"""Going to a worktree's terminal: selecting its tmux pane where the console can, else the command that goes there."""

import asyncio
import shlex

from fastapi import APIRouter, Request, Response

from tocsin.console.answers import answer, body_of, refuse
from tocsin.console.service import Live
from tocsin.contract.messages import Row
from tocsin.contract.refusals import Code, Refusal
from tocsin.listing.find import resolve
from tocsin.runtime.selecting import attached, go, selection


def jump(row: Row, host: str, pane: str | None = None) -> dict[str, object]:
    """What a page is told: whether the pane is in front of the person now, and the command that goes there otherwise.

    A pane is in front when a terminal that shows its tmux server was switched to it. `pane`: one of the row's, if not its first.
    """
    locator = next((one.locator for one in row.panes if one.locator and pane in (None, one.id)), None)
    told: dict[str, object] = {"selected": False, "command": None, "problem": None, "host": row.host}
    if locator is None:
        return told | {"command": shlex.join(["cd", row.path])}
    commands, attach = selection(locator, None)
    if row.host != host:
        return told | {"command": attach}
    socket, _, target = locator.rpartition(" ")
    client = attached(socket)
    if client is None:
        return told | {"command": attach}
    problem = go([*commands, ["tmux", "-S", socket, "switch-client", "-c", client, "-t", target]])
    return told | ({"selected": True} if problem is None else {"command": attach, "problem": problem})


def routes(live: Live, host: str) -> APIRouter:
    """`host`: the machine on which this console runs; panes of others cannot be selected from here."""
    router = APIRouter()

    @router.post("/api/jump")
    async def go_there(request: Request) -> Response:
        """Go to `worktree`, and there to `pane` when it is named."""
        body = await body_of(request)
        if isinstance(body, Refusal):
            return refuse(body)
        worktree, pane = body.get("worktree"), body.get("pane")
        if not isinstance(worktree, str) or not (pane is None or isinstance(pane, str)):
            return refuse(Refusal(Code.BAD_FIELD, "worktree: an id; pane: an id or nothing"))
        found = live.latest()
        row = found if isinstance(found, Refusal) else resolve(found.worktrees, worktree)
        if isinstance(row, Refusal):
            return refuse(row)
        return answer(await asyncio.to_thread(jump, row, host, pane))

    return router
