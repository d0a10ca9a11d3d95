"""A dispatcher over real servers, a coordinator who asks it, and a look at what it has ordered."""

from contextlib import asynccontextmanager
from typing import Any

from dispatcher_builders import COORDINATOR, PROCESS, a_launch
from support import Deadline, running
from tocsin.bus.nats_bus import connect
from tocsin.contract.faults import Unavailable
from tocsin.contract.hosting import HostFact, Saw
from tocsin.contract.parties import Caller
from tocsin.contract.run import (
    AddTasks,
    CreateRun,
    DispatchMoved,
    Receipt,
    Refused,
    RunCommand,
    RunRecorded,
    ShowWorker,
    StartWorker,
    new_run_id,
)
from tocsin.contract.subjects import HOST_CMD, HOST_FACT, RUN_CMD, RUN_EVENT
from tocsin.contract.versions import decode
from tocsin.dispatcher.service import Dispatcher
from tocsin.dispatcher.sights import Sights
from tocsin.dispatcher.store import FAMILY
from tocsin.ledger import Ledger
from tocsin.runtime.clock import SystemClock
from tocsin.store.views import Views


class Clock(SystemClock):
    """The machine's clocks, moved on by a test."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms

    def awake_ms(self) -> int:
        return super().awake_ms() + self.ahead_ms


class Client:
    """A coordinator at the bus."""

    def __init__(self, bus: Any, caller: Caller = COORDINATOR) -> None:
        self.bus = bus
        self.caller = caller
        self.asked = 0
        self.run = new_run_id(caller, "create")

    async def say(
        self, ask: Any, request: str | None = None, caller: Caller | None = None, run: str | None = None
    ) -> dict[str, Any] | Refused:
        """Ask until somebody answers; the result, or the refusal."""
        answer = await self.whole(ask, request, caller, run)
        return answer.result if isinstance(answer, Receipt) else answer

    async def whole(self, ask: Any, request: str | None = None, caller: Caller | None = None, run: str | None = None) -> Receipt | Refused:
        self.asked += 1
        command = RunCommand(run=run or self.run, request=request or f"q{self.asked}", caller=caller or self.caller, ask=ask, at_ms=0)
        async for _ in Deadline(20, f"an answer to {type(ask).__name__}"):
            try:
                answer = await self.bus.ask(RUN_CMD, command, timeout_s=5)
            except Unavailable:
                continue
            if isinstance(answer, Refused) and answer.code == "unavailable":
                continue
            return answer
        raise AssertionError

    async def create(self, *specs: Any, **fields: Any) -> None:
        await self.say(CreateRun(objective="get it done", **fields), "create")
        if specs:
            await self.say(AddTasks(tasks=specs))

    async def start(self, task: str, **fields: Any) -> Any:
        return await self.say(StartWorker(task=task, launch=a_launch(**fields)))

    async def fact(self, dispatch: str, saw: Saw, step: str = "start", **fields: Any) -> None:
        fence = int(dispatch.rpartition(".")[2])
        await self.bus.say(HOST_FACT, HostFact(host="h", dispatch=dispatch, fence=fence, step=step, saw=saw, at_ms=0, **fields))

    async def made(self, dispatch: str, pane: str = "p1") -> None:
        """Its host has started the agent."""
        await self.fact(dispatch, Saw.WORKTREE_READY, path="/repo")
        await self.fact(dispatch, Saw.TERMINAL_MADE, pane=pane)
        await self.fact(dispatch, Saw.AGENT_STARTED, pane=pane, process=PROCESS)
        async for _ in Deadline(10, "its agent is on record"):
            if any(event.process == PROCESS for event in await self.events(DispatchMoved)):
                return

    async def state_of(self, dispatch: str) -> str:
        shown = await self.say(ShowWorker(dispatch=dispatch))
        return shown["worker"]["state"]

    async def until(self, dispatch: str, state: str) -> dict[str, Any]:
        async for _ in Deadline(10, f"{dispatch} is {state}"):
            shown = await self.say(ShowWorker(dispatch=dispatch))
            if shown["worker"]["state"] == state:
                return shown["worker"]
        raise AssertionError

    async def records(self) -> list[RunRecorded]:
        found: list[RunRecorded] = []
        end = await self.bus.end_of(RUN_EVENT, self.run)
        seen = 0
        async with self.bus.read(RUN_EVENT, self.run, after=0) as reading:
            async for batch in reading:
                found += [heard.body for heard in batch]
                seen = max([seen, *(heard.seq for heard in batch)])
                if seen >= end:
                    return found
        raise AssertionError

    async def events(self, kind: type) -> list[Any]:
        return [event for record in await self.records() for event in record.events if isinstance(event, kind)]


@asynccontextmanager
async def a_dispatcher(nats_server, store, clock=None, **fields):
    clock = clock or Clock()
    async with connect(nats_server.url, name="dispatcher") as bus:
        ledger = Ledger(bus, Views(store, RUN_EVENT.name), FAMILY, clock.now_ms, lambda *words, **named: None)
        dispatcher = Dispatcher(bus, ledger, clock, Sights(clock, lambda text: f"hash of {text}"), **fields)
        async with running(dispatcher.run()):
            await ledger.ready()
            yield dispatcher


async def orders(bus, count: int) -> list:
    """The orders that the host has, as many as are awaited, without taking them."""
    async for _ in Deadline(10, f"{count} orders"):
        if await bus.end(HOST_CMD) >= count:
            break
    found = []
    for seq in range(1, await bus.end(HOST_CMD) + 1):
        raw = await bus._jetstream.get_msg(HOST_CMD.stream, seq)
        found.append(decode(HOST_CMD.body, raw.data))
    return found
