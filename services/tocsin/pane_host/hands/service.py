"""The loop of the hands: take an order, note it, let the bus forget it, do it, tell what was seen."""

import asyncio
import errno
from collections.abc import Awaitable, Callable, Iterator, Mapping
from types import MappingProxyType

import msgspec

from tocsin.bus.bus import Bus, Unavailable
from tocsin.contract.hosting import (
    HostCommand,
    HostOrder,
    InterruptAgent,
    ReleaseTerminal,
    RemoveWorktree,
    RestoreWorktree,
    Saw,
    StartAgent,
    StopAgent,
    TypePointer,
)
from tocsin.contract.ids import token
from tocsin.contract.metrics import ORDERS_TAKEN, tag
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.subjects import HOST_CMD
from tocsin.contract.tally import Sample
from tocsin.pane_host.core.steps import LAST, Step, expired
from tocsin.pane_host.hands.cleaning import Cleaner
from tocsin.pane_host.hands.ending import Ender
from tocsin.pane_host.hands.folders import PaneFolders
from tocsin.pane_host.hands.journal import Page
from tocsin.pane_host.hands.launcher import Launcher
from tocsin.pane_host.hands.screens import Failed
from tocsin.pane_host.hands.starting import Starter
from tocsin.pane_host.hands.tools import BrokenOff, Order, Tools
from tocsin.pane_host.hands.watching import Watcher
from tocsin.pane_host.hands.writing import Writer
from tocsin.runtime.instance import Unusable
from tocsin.runtime.logs import log

AGAIN_S = 5.0
"""An order that could not be noted comes again so soon."""

TIDY_EVERY_S = 600.0
COLLECT_EVERY_S = 5.0


class Hands:
    """The hands of one host. Orders for one Dispatch are done one after another, for several at the same time."""

    def __init__(self, bus: Bus, tools: Tools, watcher: Watcher, folders: PaneFolders) -> None:
        self._bus = bus
        self.tools = tools
        self._watcher = watcher
        self._folders = folders
        self._launcher = Launcher()
        starter, writer, ender, self._cleaner = Starter(self._launcher), Writer(), Ender(), Cleaner()
        self._start, self._reuse = starter.start, writer.reuse
        self._do: Mapping[type[HostOrder], Callable[[Order], Awaitable[None]]] = MappingProxyType(
            {
                StartAgent: self._begin,
                StopAgent: ender.stop,
                ReleaseTerminal: ender.release,
                InterruptAgent: writer.interrupt,
                TypePointer: writer.type,
                RemoveWorktree: self._cleaner.remove,
                RestoreWorktree: self._cleaner.restore,
            }
        )
        self._turns: dict[str, asyncio.Lock] = {}
        self._running: dict[tuple[str, int, str], tuple[Order, asyncio.Task[None]]] = {}

    def samples(self) -> Iterator[Sample]:
        """What was ordered, and what came of it."""
        return self.tools.telling.tally.samples()

    async def run(self) -> None:
        """Work until cancelled. What an earlier life has left undone comes first."""
        for page in self.tools.journal.pages.values():
            for number in page.account.unsaid:
                self.tools.telling.again(page, number)
        await self._watcher.find_again()
        try:
            async with asyncio.TaskGroup() as loops:
                loops.create_task(self.tools.telling.run())
                self._resume()
                loops.create_task(self._hear())
                loops.create_task(self._watcher.run())
                loops.create_task(self._folders.run())
                loops.create_task(self._collect())
                loops.create_task(self._tidy())
        finally:
            for _, task in self._running.values():
                task.cancel()

    def _resume(self) -> None:
        undone = [page for page in self.tools.journal.pages.values() if not page.account.over]
        # A stop that came behind a start must be known before that start goes on.
        for page in sorted(undone, key=lambda page: page.account.order.at_ms):
            self._set_about(page)

    async def _hear(self) -> None:
        async with self._bus.work(HOST_CMD, self.tools.host, name=f"pane-host-{token(self.tools.host)}") as jobs:
            async for job in jobs:
                try:
                    self.take(self._in_own_time(job.body))
                    await job.done()
                except OSError as error:
                    log("order.not_noted", "error", why=error.strerror)
                    await job.again(AGAIN_S)
                except Unavailable as error:
                    # It comes again, and meets its own journal.
                    log("order.unacked", "warning", why=str(error))

    async def _collect(self) -> None:
        while True:
            self._launcher.collect()
            await asyncio.sleep(COLLECT_EVERY_S)

    async def _tidy(self) -> None:
        while True:
            await self._cleaner.purge(self.tools)
            await self._watcher.tidy(self._folders)
            await self._folders.drop_unread(self.tools.clock.now_ms())
            await asyncio.sleep(TIDY_EVERY_S)

    # ------------------------------------------------------------------ take

    def _in_own_time(self, command: HostCommand) -> HostCommand:
        """An order with its moments on this machine's clock, on which keys and limits are here."""
        own, expires_ms = self.tools.skew.in_own_time, command.expires_ms
        return msgspec.structs.replace(command, at_ms=own(command.at_ms), expires_ms=None if expires_ms is None else own(expires_ms))

    def take(self, command: HostCommand) -> None:
        """Note an order on disk and set about it. One that is known already is answered with what was observed for it."""
        known = self.tools.journal.page(command)
        if known is not None:
            for number in range(len(known.account.facts)):
                self.tools.telling.again(known, number)
            return
        page = self.tools.journal.open(command)
        self.tools.telling.tally.add(ORDERS_TAKEN, tag(command.order))
        log("order.taken", dispatch=command.dispatch, fence=command.fence, step=command.step, order=type(command.order).__name__)
        if expired(command, self.tools.clock.now_ms()):
            Order(self.tools, page).tell(Saw.EXPIRED, detail="it was too old when it was read")
            page.over()
            return
        self._set_about(page)

    def _set_about(self, page: Page) -> None:
        order = Order(self.tools, page)
        command = order.command
        ask = command.order
        if isinstance(ask, StartAgent):
            order.stopped = self._was_stopped(command)
        elif isinstance(ask, StopAgent | ReleaseTerminal):
            for other, task in self._running.values():
                if isinstance(other.command.order, StartAgent) and _ends(command, other.command):
                    other.stopped = True
                    task.cancel()
        key = command.dispatch, command.fence, command.step
        task = asyncio.create_task(self._carry_out(order))
        self._running[key] = order, task
        task.add_done_callback(lambda _: self._finished(order))

    def _finished(self, order: Order) -> None:
        command, account = order.command, order.account
        key = command.dispatch, command.fence, command.step
        self._running.pop(key, None)
        if order.stopped and not account.over and (not account.began or Step.TERMINAL in account.did):
            # Either nothing of it was begun, or it has a terminal, which is for its stop to end.
            if not account.facts:
                order.refuse(Refusal(Code.LIFECYCLE_CONFLICT, "it was stopped before it was started"))
            order.page.over()
        if not any(other[0] == key[0] for other in self._running):
            self._turns.pop(key[0], None)

    def _was_stopped(self, start: HostCommand) -> bool:
        """True when a stop for the same attempt was taken before its start: nothing is begun any more that is to be over."""
        return any(
            isinstance(page.account.order.order, StopAgent | ReleaseTerminal) and _ends(page.account.order, start)
            for page in self.tools.journal.of_dispatch(start.dispatch)
        )

    # ----------------------------------------------------------------- do

    async def _begin(self, order: Order) -> None:
        ask = order.command.order
        assert isinstance(ask, StartAgent)
        await (self._reuse(order) if ask.launch.pane is not None else self._start(order))

    async def _carry_out(self, order: Order) -> None:
        """Do one order to its end, after those that came before it for the same Dispatch."""
        command = order.command
        try:
            async with self._turns.setdefault(command.dispatch, asyncio.Lock()):
                if not any(fact.saw in LAST for fact in order.account.facts):
                    await self._do[type(command.order)](order)
        except BrokenOff as error:
            order.tell(Saw.UNKNOWN_STEP, detail=f"killed while it did `{error.step}`: whether that took effect cannot be told")
        except Failed as error:
            order.tell(Saw.UNKNOWN_STEP, detail=f"tmux: {error}")
        except (OSError, Unusable) as error:
            self._broken(order, error)
        except Exception as error:  # noqa: BLE001 - one order that meets a bug must not end the hands of all others
            log("order.failed", "error", dispatch=command.dispatch, step=command.step, error=f"{type(error).__name__}: {error}")
            order.tell(Saw.UNKNOWN_STEP, detail=f"it met a fault of Tocsin ({type(error).__name__})")
        order.page.over()

    def _broken(self, order: Order, error: OSError | Unusable) -> None:
        """The machine refuses: no space, no right, no folder."""
        log("order.broken", "error", dispatch=order.command.dispatch, step=order.command.step, error=str(error))
        cause = error.__cause__ if isinstance(error, Unusable) else error
        full = isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT)
        if full and not order.account.did:
            order.refuse(Refusal(Code.NO_SPACE, "the disk is full"))
        else:
            order.tell(Saw.UNKNOWN_STEP, code=Code.NO_SPACE.value if full else None, detail=str(error))


def _ends(stop: HostCommand, start: HostCommand) -> bool:
    """True when `stop` means the attempt that `start` starts; a later attempt of the same name is not meant by an earlier stop."""
    return stop.dispatch == start.dispatch and stop.fence >= start.fence
