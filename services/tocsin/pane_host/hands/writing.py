"""Write into a live pane: text, another look, one Enter. And interrupt a turn. What may have been pressed is never pressed again."""

import asyncio
import contextlib
import os
import signal
from dataclasses import dataclass
from typing import Any

import msgspec

from tocsin.agents.launch import interrupt_keys
from tocsin.contract.hosting import InterruptAgent, Saw, StartAgent, TypePointer
from tocsin.contract.ids import PaneId
from tocsin.contract.messages import Process, State
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.run import Launch, Where
from tocsin.pane_host.core.composer import Held, Pane, excerpt, holds, may_send, may_write, read_composer, typable
from tocsin.pane_host.core.facts import Terminal
from tocsin.pane_host.core.placement import within
from tocsin.pane_host.core.steps import Standing, Step, standing
from tocsin.pane_host.hands.made import Holder
from tocsin.pane_host.hands.screens import Failed
from tocsin.pane_host.hands.tools import Order, Tools

SETTLE_S = 0.15
"""Between two looks while a pasted text appears."""

APPEAR_S_MAX = 3.0
"""How long a pasted text may take to appear in the composer before it is left there."""

TAKEN_S_MAX = 2.0
"""How long a composer may take to let go of a text whose Enter was sent, before that is told."""

REUSE_QUIET_MS = 5_000
"""So long no key of a person, before a live pane is reused."""


@dataclass(frozen=True)
class Writing:
    """One text for one pane. `wanted`: the process that it is meant for, None for whatever agent is there."""

    pane: PaneId
    wanted: Process | None
    text: str
    quiet_ms: int


class Writer:
    """Writes into panes of any tmux server of this host, ours or not."""

    async def type(self, order: Order) -> None:
        """Do one TypePointer."""
        ask = order.command.order
        assert isinstance(ask, TypePointer)
        await order.tools.eyes.open()
        writing = Writing(ask.pane, ask.process, typable(ask.text), int(ask.idle_s_min * 1000))
        async with order.tools.at_pane(ask.pane):
            held, left = await self._write(order, writing)
        if held is None:
            order.tell(Saw.TYPED, pane=ask.pane, process=ask.process, wake=ask.wake, detail=left)
        elif left:
            order.tell(Saw.PROMPT_LEFT, pane=ask.pane, process=ask.process, wake=ask.wake, code=held.value, detail=left)
        else:
            why = await _why(order.tools, ask.pane, held)
            order.tell(Saw.TYPE_HELD, pane=ask.pane, process=ask.process, wake=ask.wake, code=held.value, detail=why)

    async def reuse(self, order: Order) -> None:
        """Do one StartAgent in a pane that lives: its brief goes into the composer."""
        ask = order.command.order
        assert isinstance(ask, StartAgent)
        await order.tools.eyes.open()
        pane, tools = ask.launch.pane, order.tools
        assert pane is not None
        terminal = tools.eyes.terminals().get(pane)
        process = _wanted(order, terminal)
        writing = Writing(pane, process, typable(ask.brief), REUSE_QUIET_MS)
        async with tools.at_pane(pane):
            refusal = None if _has_begun(order) else await asyncio.to_thread(_wrong_pane, ask.launch, terminal)
            if refusal is not None:
                order.refuse(refusal, pane=pane)
                return
            held, left = await self._write(order, writing)
            path = terminal.resident.cwd if terminal and terminal.resident else None
            if held is not None and not left:
                code = Code.NOT_FOUND if held is Held.GONE else Code.COMPOSER_BUSY
                order.refuse(Refusal(code, f"{held.value}: {await _why(tools, pane, held)}"), pane=pane)
                return
            # From here on the pane is this Dispatch's, whether or not its text was sent: nobody else may write into it.
            made = tools.cabinet.of_pane(pane)
            if made is not None:
                command = order.command
                holder = Holder(dispatch=command.dispatch, fence=command.fence, step=command.step, run=ask.run, task=ask.task)
                tools.cabinet.change(made, holder=holder)
                path = made.path
        order.tell(Saw.AGENT_STARTED, pane=pane, process=process, path=path, detail="it ran before")
        if held is None:
            order.tell(Saw.PROMPT_WRITTEN, pane=pane, process=process, path=path, detail=left)
        else:
            order.tell(Saw.PROMPT_LEFT, pane=pane, process=process, path=path, code=held.value, detail=left)

    # -------------------------------------------------------------- writing

    async def _write(self, order: Order, writing: Writing) -> tuple[Held | None, str]:
        """(why it was not sent or None, what is left in the composer). Nothing left and a reason: nothing was written."""
        tools = order.tools
        now = await look(tools, writing.pane)
        is_written = _has_begun(order)
        if is_written and standing(order.account, Step.ENTER) is Standing.NEW and _is_empty(now):
            began_ms = order.account.began[Step.PASTE]["at_ms"]
            if now.last_key_ms is not None and now.last_key_ms >= began_ms // 1000 * 1000:
                return Held.RECENT_KEY, "its composer is empty: a person has sent or cleared the text"
            # An earlier life was killed between noting and writing: the text is not there.
            is_written = False
        if not is_written:
            held = may_write(now, writing.wanted, tools.clock.now_ms(), writing.quiet_ms)
            if held is not None:
                return held, ""
        process = msgspec.to_builtins(writing.wanted) if writing.wanted else None
        data = {"pane": writing.pane, "text": writing.text, "at_ms": tools.clock.now_ms(), "process": process}
        await order.once(Step.PASTE, lambda: self._paste(order, writing), **data)
        held, left = await self._settled(order, writing)
        if held is not None:
            return held, left
        await order.once(Step.ENTER, lambda: self._enter(order, writing))
        return None, await self._after(order, writing)

    async def _paste(self, order: Order, writing: Writing) -> dict[str, Any]:
        terminal = order.tools.eyes.terminals().get(writing.pane)
        # Never behind anything: what stands there is another's, or our own from before we were killed.
        if terminal is not None and _is_empty(await look(order.tools, writing.pane)):
            with contextlib.suppress(Failed):  # whether it arrived is seen in the composer
                await order.tools.screens.paste(terminal.server.socket, terminal.pane.number, writing.text, order.tools.folder)
        return {}

    async def _settled(self, order: Order, writing: Writing) -> tuple[Held | None, str]:
        """Wait until the composer holds exactly our text and nothing speaks against its Enter."""
        if standing(order.account, Step.ENTER) is not Standing.NEW:
            return None, ""
        written_ms = int(order.account.began[Step.PASTE]["at_ms"])
        late_ms = order.tools.clock.awake_ms() + int(APPEAR_S_MAX * 1000)
        while True:
            await asyncio.sleep(SETTLE_S)
            now = await look(order.tools, writing.pane)
            held = may_send(now, writing.wanted, writing.text, written_ms)
            if held is None:
                return None, ""
            if held is not Held.CHANGED or order.tools.clock.awake_ms() >= late_ms:
                composer = read_composer(now.agent, now.screen) if now.screen else None
                return held, f"left in its composer: {excerpt(composer.text if composer else None)}"

    async def _enter(self, order: Order, writing: Writing) -> dict[str, Any]:
        terminal = order.tools.eyes.terminals().get(writing.pane)
        if terminal is None:
            raise Failed("the terminal has gone")
        await order.tools.screens.press(terminal.server.socket, terminal.pane.number, "Enter")
        return {}

    async def _after(self, order: Order, writing: Writing) -> str:
        """What is still in the composer a moment after the Enter; empty when our text has left it."""
        late_ms = order.tools.clock.awake_ms() + int(TAKEN_S_MAX * 1000)
        while True:
            now = await look(order.tools, writing.pane)
            composer = read_composer(now.agent, now.screen) if now.screen else None
            if composer is None or not holds(now.agent, composer, writing.text):
                return ""
            if order.tools.clock.awake_ms() >= late_ms:
                return "its Enter was sent, and the text still stands in the composer"
            await asyncio.sleep(SETTLE_S)

    # ------------------------------------------------------------- interrupt

    async def interrupt(self, order: Order) -> None:
        """Do one InterruptAgent: the agent's own keys in a terminal, a signal without one."""
        ask = order.command.order
        assert isinstance(ask, InterruptAgent)
        await order.tools.eyes.open()
        tools = order.tools
        async with tools.at_pane(ask.pane):
            status = tools.eyes.statuses().get(ask.pane)
            if not order.account.began and status is not None and status.state in (State.IDLE, State.DONE, State.GONE):
                order.tell(Saw.ALREADY_ENDED, pane=ask.pane, detail="no turn runs")
                return
            made, terminal = tools.cabinet.of_pane(ask.pane), tools.eyes.terminals().get(ask.pane)
            if made is not None and made.terminal == "process" and made.process is not None:
                process = made.process
                await order.once(Step.INTERRUPT, lambda: _signal(tools, process))
            elif terminal is not None:
                agent = (terminal.resident.agent if terminal.resident else None) or (made.agent if made else "")
                place = terminal.server.socket, terminal.pane.number
                await order.once(Step.INTERRUPT, lambda: _press(tools, place, interrupt_keys(agent)))
            else:
                order.tell(Saw.ALREADY_ENDED, pane=ask.pane, detail="there is no such terminal any more")
                return
        order.tell(Saw.INTERRUPTED, pane=ask.pane)


def _has_begun(order: Order) -> bool:
    return Step.PASTE in order.account.began


def _wanted(order: Order, terminal: Terminal | None) -> Process | None:
    """The agent's process when the order was first looked at; a later one under the same number is another agent."""
    began = order.account.began.get(Step.PASTE, {}).get("process")
    if began is not None:
        return msgspec.convert(began, Process)
    return terminal.resident.process if terminal and terminal.resident else None


def _is_empty(now: Pane) -> bool:
    return now.screen is not None and read_composer(now.agent, now.screen).empty


def _wrong_pane(launch: Launch, terminal: Terminal | None) -> Refusal | None:
    """Refuses a pane in which another agent lives than was asked for, or which is elsewhere than it was to work."""
    if terminal is None or terminal.resident is None or terminal.resident.agent != launch.agent:
        return Refusal(Code.NOT_FOUND, f"no {launch.agent} runs in {launch.pane}")
    placement, cwd = launch.placement, terminal.resident.cwd
    if placement.where in (Where.NEW_CHILD, Where.NEW_TOP_LEVEL):
        return Refusal(Code.BAD_PLACE, "an agent that runs cannot move to a new worktree: start another one there")
    if placement.path and (cwd is None or not within(cwd, os.path.realpath(placement.path))):
        return Refusal(Code.BAD_PLACE, f"the agent in {launch.pane} works in {cwd or 'a folder that cannot be seen'}")
    return None


async def _why(tools: Tools, pane: PaneId, held: Held) -> str:
    """What stands in the way, for a person; a text of ours is named by its Dispatch."""
    now = await look(tools, pane)
    if held is Held.COMPOSER_BUSY and now.screen is not None:
        composer = read_composer(now.agent, now.screen)
        for page in tools.journal.pages.values():
            began = page.account.began.get(Step.PASTE, {})
            if began.get("pane") == pane and holds(now.agent, composer, began["text"]):
                return f"pane {pane} holds an unsubmitted prompt of {page.account.order.dispatch}"
        return f"a text stands in the composer of {pane}"
    return f"pane {pane}"


async def _press(tools: Tools, place: tuple[str, str], keys: tuple[str, ...]) -> dict[str, Any]:
    await tools.screens.press(*place, *keys)
    return {}


async def _signal(tools: Tools, process: Process) -> dict[str, Any]:
    if tools.trees.table.started_ms(process.pid) == process.started_ms:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
    return {}


async def look(tools: Tools, pane: PaneId) -> Pane:
    """What is known of a pane at this moment; its screen and last key freshly asked for."""
    terminal = tools.eyes.terminals().get(pane)
    status = tools.eyes.statuses().get(pane)
    if terminal is None:
        return Pane(there=False, process=None, agent=None, status=status, screen=None, last_key_ms=None)
    socket, number = terminal.server.socket, terminal.pane.number
    # Numbers start again with each server: the one that answers must be the one that was meant.
    there = await tools.screens.server_of(socket, number) == terminal.server.pid
    resident = terminal.resident
    alive = resident is not None and tools.trees.table.started_ms(resident.process.pid) == resident.process.started_ms
    pressed = await tools.screens.last_key_ms(socket, number) if there else None
    keys = [at_ms for at_ms in (terminal.last_key_ms, pressed) if at_ms is not None]
    return Pane(
        there=there,
        process=resident.process if resident and alive else None,
        agent=resident.agent if resident else None,
        status=status,
        screen=await tools.screens.screen(socket, number) if there else None,
        last_key_ms=max(keys, default=None),
    )
