"""End an agent with proof: who it is, before; that nothing of it is left, after. Never by a name or a number alone."""

import asyncio
from collections.abc import Iterable
from typing import Any

from tocsin.contract.hosting import ReleaseTerminal, Saw, StopAgent
from tocsin.contract.ids import PaneId
from tocsin.contract.messages import Process
from tocsin.contract.refusals import Code, Refusal
from tocsin.pane_host.core.steps import Standing, Step, standing
from tocsin.pane_host.hands import runner
from tocsin.pane_host.hands.made import Made
from tocsin.pane_host.hands.screens import Failed
from tocsin.pane_host.hands.tools import Order, Tools, is_process
from tocsin.pane_host.hands.tree import carrying
from tocsin.runtime.instance import FOLDER_MODE, Identity, alive, write_private

ARCHIVE = "archive"

SHOWN_MAX = 10
"""Processes that a fact names; it always counts all."""


class Ender:
    """Ends agents in terminals that we made, and closes the terminals."""

    async def stop(self, order: Order) -> None:
        """Do one StopAgent: everything that the agent started ends, its terminal stays to be looked at."""
        ask = order.command.order
        assert isinstance(ask, StopAgent)
        made = self._meant(order, ask.pane, ask.process)
        if made is not None:
            async with order.tools.at_pane(made.pane or PaneId("")):
                await self._end(order, made, keeps_terminal=True)

    async def release(self, order: Order) -> None:
        """Do one ReleaseTerminal: the output is kept, everything ends, the terminal is closed."""
        ask = order.command.order
        assert isinstance(ask, ReleaseTerminal)
        tools = order.tools
        made = self._meant(order, ask.pane, ask.process)
        if made is None:
            return
        async with tools.at_pane(made.pane or PaneId("")):
            key_ms = await _key_ms(tools, made)
            if Step.END not in order.account.began and key_ms is not None and key_ms > order.command.at_ms:
                # It came after the order was given: whoever gave it could not know.
                order.refuse(Refusal(Code.TAKEN_OVER, "a person's key landed in it"), pane=made.pane, process=made.runner)
                return
            archived = await order.once(Step.ARCHIVE, lambda: _archive(tools, made))
            if archived.get("file"):
                order.tell(Saw.ARCHIVED, pane=made.pane, process=made.runner, detail=archived["file"], count=archived["bytes"])
            if not await self._end(order, made, keeps_terminal=ask.keep_terminal) or ask.keep_terminal:
                return
            closed = await order.once(Step.CLOSE, lambda: _close(tools, made))
            if closed["closed"]:
                order.tell(Saw.TERMINAL_CLOSED, pane=made.pane, process=made.runner, path=made.path)
            tools.cabinet.change(made, released=True)

    # ---------------------------------------------------------------- who

    def _meant(self, order: Order, pane: PaneId | None, process: Process | None) -> Made | None:
        """The terminal that is to end; None when that was told already: nothing of it, not ours, or another one."""
        tools, command = order.tools, order.command
        made = tools.cabinet.get(command.dispatch)
        if made is None and isinstance(command.order, ReleaseTerminal):
            made = _handed_on(tools, pane, process)
        if made is None:
            self._without_record(order, pane, process)
        elif made.holder is not None and made.holder.dispatch != command.dispatch:
            order.tell(
                Saw.NOT_CONFIRMED, pane=pane, process=process, code=Code.LIFECYCLE_CONFLICT.value,
                detail=f"its terminal works for {made.holder.dispatch} now: it is left alone",
                next=(f"tocsin worker show {made.holder.dispatch}",),
            )  # fmt: skip
        elif not is_process(made, process) or (pane is not None and made.pane is not None and pane != made.pane):
            found = f"pane {made.pane}, runner {made.runner.pid if made.runner else '?'}"
            order.tell(
                Saw.NOT_CONFIRMED, pane=pane, process=process, code=Code.NOT_FOUND.value,
                detail=f"another terminal than the one that was made for it ({found}): it is left alone", next=("tocsin audit",),
            )  # fmt: skip
        else:
            return made
        return None

    def _without_record(self, order: Order, pane: PaneId | None, process: Process | None) -> None:
        tools = order.tools
        carried = carrying(TOCSIN_DISPATCH=order.command.dispatch, TOCSIN_STATE=str(tools.state))
        if carried:
            order.tell(
                Saw.NOT_CONFIRMED, pane=pane, process=process, code=Code.NOT_FOUND.value, count=len(carried),
                detail=f"its record is lost, and processes carry its name: {', '.join(map(str, sorted(carried)[:SHOWN_MAX]))}",
                next=("tocsin audit",),
            )  # fmt: skip
            return
        lives = process is not None and tools.trees.runs(process)
        if lives or (process is None and pane is not None and pane in tools.eyes.terminals()):
            order.tell(
                Saw.NOT_CONFIRMED, pane=pane, process=process, code=Code.NOT_FOUND.value,
                detail="Tocsin did not make that terminal: it is left alone", next=(f"tocsin jump {pane}",) if pane else (),
            )  # fmt: skip
        else:
            order.tell(Saw.ALREADY_ENDED, pane=pane, process=process, detail="nothing of it is on this host")

    # ---------------------------------------------------------------- end

    async def _end(self, order: Order, made: Made, *, keeps_terminal: bool) -> bool:
        """End all of it, but for its runner when the terminal is to stay; tells what came of it, True when all is confirmed gone."""
        tools = order.tools
        runner_identity = tools.cabinet.runner_of(made)

        def roots() -> Iterable[Identity | None]:
            return runner_identity, tools.cabinet.agent_of(made), runner.read(tools.cabinet.setup_of(made), runner.RUNNER, Identity)

        async def act() -> dict[str, Any]:
            spare = runner_identity if keeps_terminal and runner_identity is not None and alive(runner_identity) else None
            ending = await tools.trees.end(roots, made.mark, spare=spare)
            own = runner_identity.pid if runner_identity else None
            ended = [one for pid, one in ending.ended.items() if pid != own]
            return {
                "ended": len(ended),
                "names": [f"{one.program} {one.process.pid}" for one in ended[:SHOWN_MAX]],
                "left": [f"{one.program} {one.process.pid}" for one in ending.left],
                "unseen": ending.unseen,
                "was_there": bool(ending.ended or ending.left),
            }

        # An end that was not confirmed is no end: only a confirmed one is noted as done.
        if standing(order.account, Step.END) is Standing.DONE:
            result = order.account.did[Step.END]
        else:
            if standing(order.account, Step.END) is Standing.NEW:
                order.page.began(Step.END)
            result = await act()
            if result["left"] or result["unseen"]:
                why = result["unseen"] or f"still there: {', '.join(result['left'][:SHOWN_MAX])}"
                order.tell(
                    Saw.NOT_CONFIRMED, pane=made.pane, process=made.runner, detail=why, count=result["ended"], next=("tocsin audit",)
                )
                return False
            order.page.did(Step.END, **result)
        names = f": {', '.join(result['names'])}" if result["names"] else ""
        fields: dict[str, Any] = {"pane": made.pane, "process": made.runner, "path": made.path}
        if result["was_there"]:
            order.tell(Saw.TREE_ENDED, count=result["ended"], detail=f"{result['ended']} ended{names}", **fields)
        else:
            order.tell(Saw.ALREADY_ENDED, detail="nothing of it was left", **fields)
        return True


def _handed_on(tools: Tools, pane: PaneId | None, process: Process | None) -> Made | None:
    """The terminal that was to be reused: whose start in it is refused has it all the same, for it was handed on before."""
    made = tools.cabinet.of_pane(pane) if pane is not None else None
    is_it = made is not None and process is not None and is_process(made, process)
    return made if is_it else None


async def _key_ms(tools: Tools, made: Made) -> int | None:
    """A person's last key in it, UTC ms; None when none is known of."""
    terminal = tools.eyes.terminals().get(made.pane) if made.pane else None
    fresh = await tools.screens.last_key_ms(made.socket, made.number) if made.socket and made.number else None
    return max((at_ms for at_ms in (terminal.last_key_ms if terminal else None, fresh) if at_ms is not None), default=None)


async def is_still(tools: Tools, made: Made) -> bool:
    """True when its pane is still the one that was made: on the same life of the same server."""
    if not made.socket or not made.number or made.server is None:
        return False
    pid = await tools.screens.server_of(made.socket, made.number)
    return pid == made.server.pid and tools.trees.table.started_ms(pid) == made.server.started_ms


async def _archive(tools: Tools, made: Made) -> dict[str, Any]:
    """Keep the last output; nothing when there is none."""
    shown = await tools.screens.history(made.socket, made.number) if await is_still(tools, made) and made.socket and made.number else None
    return await asyncio.to_thread(_keep, tools, made, shown)


def _keep(tools: Tools, made: Made, shown: bytes | None) -> dict[str, Any]:
    folder = tools.cabinet.folder_of(made)
    file = tools.folder / ARCHIVE / f"{folder.name}.txt"
    if shown is None and file.exists():
        return {"file": str(file), "bytes": file.stat().st_size}
    if shown is None:
        ended = tools.cabinet.end_of(made)
        shown = runner.last_bytes(folder / runner.OUTPUT, 1024 * 1024) or (ended.tail.encode() if ended else b"")
    if not shown.strip():
        return {"file": "", "bytes": 0}
    file.parent.mkdir(exist_ok=True, mode=FOLDER_MODE)
    write_private(file, shown)
    return {"file": str(file), "bytes": len(shown)}


async def _close(tools: Tools, made: Made) -> dict[str, Any]:
    """Close its terminal; True when it is not there any more. One without processes has mostly closed itself."""
    if made.terminal == "process":
        return {"closed": True}
    if await is_still(tools, made) and made.socket and made.number:
        try:
            await tools.screens.close(made.socket, made.number)
        except Failed:
            return {"closed": not await is_still(tools, made)}
    return {"closed": not await is_still(tools, made)}
