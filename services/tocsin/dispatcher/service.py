"""The loop: answer requests, take what hosts and panes show, give hosts their orders."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import partial
from typing import Any, TypeVar

from tocsin.bus.bus import Bus, Reading
from tocsin.contract.custody import CustodyRecorded
from tocsin.contract.decision import Decision
from tocsin.contract.faults import Unavailable
from tocsin.contract.hosting import HostCommand
from tocsin.contract.messages import Body, HostKnown, PaneSeen
from tocsin.contract.metrics import DISPATCHES, GATES_OPEN, ORDERS_SAID, RUNS, TASKS, count_answer, tag
from tocsin.contract.parties import Caller, Role
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.run import (
    ANY_RUN,
    RUN_READS,
    Beat,
    CloseRun,
    CreateRun,
    Observe,
    PurgeRun,
    Receipt,
    Refused,
    RunCommand,
    RunRecorded,
    StartWorker,
    TaskState,
    run_of_dispatch,
)
from tocsin.contract.subjects import CUSTODY_EVENT, HOST_CMD, HOST_FACT, HOST_KNOWN, PANE_SEEN, PANE_STATUS, RUN_CMD, Subject
from tocsin.contract.table import Table
from tocsin.contract.tally import Sample, Tally, by_word
from tocsin.dispatcher.core.decide import decide
from tocsin.dispatcher.core.draft import Around, Draft
from tocsin.dispatcher.core.life import DispatchEvent
from tocsin.dispatcher.core.observe import miss, observe, of_fact, ready_untold, tell_ready
from tocsin.dispatcher.core.orders import orders_of
from tocsin.dispatcher.core.reads import Shown, read
from tocsin.dispatcher.core.run import Dispatch, Run
from tocsin.dispatcher.core.runs import CIRCUIT_MS, identity, parent_of
from tocsin.dispatcher.core.watch import due, missing
from tocsin.dispatcher.sights import Sights
from tocsin.ledger import Ledger
from tocsin.runtime.clock import Clock
from tocsin.runtime.logs import log

S = TypeVar("S", PaneSeen, HostKnown)

NAME = "dispatcher"
RUN_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")

LOOK_S = 0.5
"""How often limits are looked at. What a pane says is looked at when it says it."""

SWEEP_S = 30.0
"""How often it is made sure that hosts have their orders."""

QUIET_MS = 2_000
"""How long ready work must lie there with nothing under way before it is told: whoever has just added it is about to start it."""

RETRY_S, FULL_RETRY_S = 0.2, 10.0
"""When what could not be done is tried again: the bus was away; the ledger has no room."""

SELF = Caller(role=Role.SERVICE, name=NAME)


class Dispatcher:
    """One replica. All of them answer, watch and order; the ledger lets one of two win, and the other finds it done."""

    def __init__(self, bus: Bus, ledger: Ledger[Run, RunRecorded], clock: Clock, sights: Sights, host_workers_max: int = 16) -> None:
        self._bus = bus
        self._ledger = ledger
        self._clock = clock
        self._sights = sights
        self._host_workers_max = host_workers_max
        self._said: set[tuple[str, str]] = set()  # orders given in this life: (dispatch, step)
        self._births: dict[str, str] = {}
        self._other_custodies = asyncio.Event()
        self._to_order: dict[str, None] = {}
        self._order = asyncio.Event()
        self._look = asyncio.Event()
        self._quiet: dict[str, tuple[Table[str, bool], int]] = {}
        self._tally = Tally()

    def samples(self) -> Iterator[Sample]:
        """What was asked, and how the Runs stand."""
        yield from self._tally.samples()
        yield from self._ledger.samples()
        runs = self._ledger.states().values()
        open_ones = [run for run in runs if not run.closed]
        yield from by_word(RUNS, ("closed" if run.closed else "paused" if run.paused is not None else "open" for run in runs))
        yield from by_word(DISPATCHES, (run.dispatches[name].state for run in runs for name in run.unsettled))
        yield from (Sample(TASKS, (state.value,), sum(run.count(state) for run in open_ones)) for state in TaskState)
        yield Sample(GATES_OPEN, (), sum(len(run.open_gates) for run in open_ones))

    async def run(self) -> None:
        """Serve until cancelled."""
        async with (
            self._ledger,
            self._bus.serve(RUN_CMD, self.answer, name=NAME),
            _together(
                self._ledger.ended(), self._facts(), self._statuses(), self._hosts(PANE_SEEN), self._hosts(HOST_KNOWN),
                self._custodies(), self._watch(), self._give_orders(), self._sweep(),
            ) as working,
        ):  # fmt: skip
            await working

    # ------------------------------------------------------------ requests

    async def answer(self, command: RunCommand) -> Body:
        """Answer one request with its receipt or a refusal."""
        result = await self._answer(command)
        count_answer(self._tally, command.ask, result)
        return Refused.of(command.request, result) if isinstance(result, Refusal) else result

    async def _answer(self, command: RunCommand) -> Receipt | Refusal:
        if not RUN_ID.fullmatch(command.run):
            return Refusal(Code.BAD_REQUEST, "a Run id has 1 to 64 letters, digits, _ or -")
        if isinstance(command.ask, RUN_READS):
            return await self._read(command)
        if command.run == ANY_RUN or not command.request:
            return Refusal(Code.BAD_REQUEST, "a change names its Run and has a request id")
        # A heartbeat may come twice by nature: keeping its receipts would push out those that matter.
        request = "" if isinstance(command.ask, Beat) else command.request
        receipt = await self._ledger.run(
            command.run, lambda run: decide(run, command, self._around(run, command)),
            request=request, caller=command.caller, payload=command.ask, at_ms=self._clock.now_ms(),
        )  # fmt: skip
        if isinstance(receipt, Receipt) and not receipt.duplicate:
            self._after(command.run)
            if isinstance(command.ask, PurgeRun):
                with contextlib.suppress(Unavailable):  # the sweep goes on with it
                    await self._ledger.purge(command.run)
        return receipt

    async def _read(self, command: RunCommand) -> Receipt | Refusal:
        run = await self._ledger.fresh(command.run) if command.run != ANY_RUN else None
        if isinstance(run, Refusal):
            return run
        asker = command.caller
        shown = Shown(
            self._ledger.states(), self._clock.now_ms(), self._sights.of, self._sights.owed,
            lambda request: self._ledger.receipt(command.run, asker, request),
        )  # fmt: skip
        decision = read(command, run, shown)
        if isinstance(decision, Refusal):
            return decision
        return Receipt(request=command.request, result=dict(decision.result), at_ms=shown.now_ms)

    def _around(self, run: Run, command: RunCommand) -> Around:
        """What a decision must know beside its Run, as far as this verb needs it."""
        around = Around(self._clock.now_ms(), host_workers_max=self._host_workers_max)
        ask = command.ask
        if isinstance(ask, CloseRun):
            return around._replace(custody=self._sights.custodies())
        if isinstance(ask, CreateRun) and (nested_in := parent_of(command.caller, ask)) is not None:
            return around._replace(parent=self._ledger.state(run_of_dispatch(nested_in)))
        if not isinstance(ask, StartWorker):
            return around
        load, holder, circuit = 0, None, None
        for other in self._ledger.states().values():
            there = [other.dispatches[name] for name in other.unsettled]
            load += sum(one.launch.host == ask.launch.host for one in there)
            if other.id == run.id:
                continue
            holder = holder or next((one.id for one in there if _is_in(one, ask.launch.host, ask.launch.pane)), None)
            is_kin = identity(other.coordinator) == identity(run.coordinator) or run_of_dispatch(run.parent or "") == other.id
            is_open = other.circuit_ms is not None and (not other.closed or around.now_ms < other.circuit_ms + CIRCUIT_MS)
            if is_kin and is_open:
                circuit = other.id
        return around._replace(host_load=load, pane_holder=holder, circuit=circuit)

    def _after(self, run: str) -> None:
        """Something was recorded of a Run: its hosts may need orders."""
        self._to_order[run] = None
        self._order.set()
        self._look.set()

    # -------------------------------------------------------- what is seen

    async def _facts(self) -> None:
        await self._ledger.ready()
        async with self._bus.work(HOST_FACT, name=NAME) as jobs:
            async for job in jobs:
                fact = job.body
                self._sights.heard(fact.host, fact.at_ms, is_live=False)
                seen = of_fact(fact)
                if seen is not None:
                    await self._until_recorded(seen)
                await _done(job)

    async def _until_recorded(self, seen: Observe) -> None:
        """In their order: a fact that cannot be recorded now holds up those behind it."""
        while True:
            answer = await self._observe(seen)
            if not isinstance(answer, Refusal):
                return
            if answer.code not in (Code.UNAVAILABLE, Code.LEDGER_FULL):
                log("fact.refused", "warning", dispatch=seen.dispatch, saw=seen.saw, code=answer.code)
                return
            await asyncio.sleep(FULL_RETRY_S if answer.code is Code.LEDGER_FULL else RETRY_S)

    async def _observe(self, seen: Observe) -> Receipt | Refusal:
        return await self._record(run_of_dispatch(seen.dispatch), partial(observe, ask=seen), seen)

    async def _record(self, run: str, decide_on: Callable[[Draft], Decision | Refusal], payload: object) -> Receipt | Refusal:
        now_ms = self._clock.now_ms()

        def on(state: Run) -> Decision | Refusal:
            if not state.is_known:
                return Refusal(Code.NOT_FOUND, f"there is no Run {run}")
            return decide_on(Draft(state, SELF, now_ms))

        receipt = await self._ledger.run(run, on, request="", caller=SELF, payload=payload, at_ms=now_ms)
        if isinstance(receipt, Receipt) and receipt.seq:
            self._after(run)
        return receipt

    async def _statuses(self) -> None:
        async with self._bus.follow(PANE_STATUS) as reading:
            async for batch in reading:
                for heard in batch:
                    self._sights.status(heard.body)
                self._look.set()

    async def _hosts(self, subject: Subject[S]) -> None:
        """What tells that a host is there: its own word, and what it sees. A host without panes has the first alone."""
        is_live = False
        async with self._bus.follow(subject) as reading:
            async for batch in reading:
                for heard in batch:
                    self._sights.heard(heard.body.host, heard.body.at_ms, is_live)
                is_live = is_live or not batch

    async def _custodies(self) -> None:
        """Read the log of custodies; a new one from its beginning."""
        while True:
            self._other_custodies.clear()
            async with (
                self._bus.read(CUSTODY_EVENT, after=0) as reading,
                _together(self._read_custodies(reading), self._other_custodies.wait()) as working,
            ):
                await working

    async def _read_custodies(self, reading: Reading[CustodyRecorded]) -> None:
        async for batch in reading:
            for heard in batch:
                self._sights.custody(heard.body)

    # ---------------------------------------------------------- watching

    async def _watch(self) -> None:
        """Look at every unsettled attempt when a pane says something, and when time has passed."""
        await self._ledger.ready()
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._look.wait()
            self._look.clear()
            unsettled: set[str] = set()
            for run in list(self._ledger.states().values()):
                unsettled.update(run.unsettled)
                for name in list(run.unsettled):
                    await self._look_at(run, run.dispatches[name])
                await self._look_for_ready(run)
            self._sights.forget(unsettled)

    async def _look_at(self, run: Run, dispatch: Dispatch) -> None:
        sight = self._sights.sight(dispatch)
        found = due(dispatch, sight)
        if found is not None:
            event, why = found
            await self._observe(Observe(dispatch=dispatch.id, fence=dispatch.fence, saw=event, detail=why, at_ms=self._clock.now_ms()))
            if event is not DispatchEvent.TURN_ENDED:
                return
            dispatch = self._now(dispatch)
            sight = self._sights.sight(dispatch)
        told = missing(dispatch, sight)
        if told is not None:
            await self._record(run.id, partial(miss, dispatch=dispatch.id, why=told), ("missing", dispatch.id))

    def _now(self, dispatch: Dispatch) -> Dispatch:
        state = self._ledger.state(run_of_dispatch(dispatch.id))
        return dispatch if state is None else state.dispatches.get(dispatch.id, dispatch)

    async def _look_for_ready(self, run: Run) -> None:
        if run.unsettled or not run.ready or run.closed or run.paused is not None:
            self._quiet.pop(run.id, None)
            return
        seen, since_ms = self._quiet.get(run.id, (None, 0))
        if seen is not run.ready:
            self._quiet[run.id] = (run.ready, self._clock.awake_ms())
        elif since_ms >= 0 and self._clock.awake_ms() - since_ms >= QUIET_MS:
            if ready_untold(run):
                answer = await self._record(run.id, tell_ready, ("ready", run.id))
                if isinstance(answer, Refusal):
                    return
            self._quiet[run.id] = (run.ready, -1)  # told: the same set is not looked at again

    # ------------------------------------------------------------- orders

    async def _give_orders(self) -> None:
        """Say what hosts must do, as soon as it is on record."""
        await self._ledger.ready()
        while True:
            await self._order.wait()
            self._order.clear()
            while self._to_order:
                run_id = next(iter(self._to_order))
                self._to_order.pop(run_id)
                try:
                    await self._orders_for(run_id)
                except Unavailable as error:
                    log("order.waits", "warning", run=run_id, reason=str(error))
                    self._to_order[run_id] = None
                    await asyncio.sleep(RETRY_S)

    async def _orders_for(self, run_id: str) -> None:
        run = self._ledger.state(run_id)
        if run is None:
            return
        for command in orders_of(run, self._clock.now_ms()):
            await self._say_order(command)

    async def _say_order(self, command: HostCommand) -> None:
        key = (command.dispatch, command.step)
        if key in self._said:
            return
        await self._bus.say(HOST_CMD, command, msg_id=f"{command.dispatch}.{command.fence}.{command.step}")
        self._tally.add(ORDERS_SAID, tag(command.order))
        self._said.add(key)
        log("order.given", dispatch=command.dispatch, step=command.step, host=command.host)

    async def _is_new(self, subject: Subject[Any]) -> bool:
        """What keeps `subject` has begun anew since it was last asked."""
        birth = await self._bus.birth(subject)
        before = self._births.get(subject.name, birth)
        self._births[subject.name] = birth
        return birth != before

    async def _sweep(self) -> None:
        """Orders whose saying was lost are said again, purges that were cut off go on."""
        await self._ledger.ready()
        while True:
            try:
                if await self._is_new(HOST_CMD):
                    self._said.clear()
                if await self._is_new(CUSTODY_EVENT):
                    self._other_custodies.set()
                for run_id in self._ledger.unpurged():
                    await self._ledger.purge(run_id)
                for run in self._ledger.states().values():
                    if run.unsettled or run.withdrawn:
                        self._to_order[run.id] = None
                self._order.set()
            except Unavailable as error:
                log("sweep.waits", "warning", reason=str(error))
            await asyncio.sleep(SWEEP_S)


def _is_in(dispatch: Dispatch, host: str, pane: str | None) -> bool:
    return pane is not None and (dispatch.launch.host, dispatch.pane) == (host, pane)


async def _done(job: Any) -> None:
    """A job that is done and not acked comes again, and finds itself done."""
    with contextlib.suppress(Unavailable):
        await job.done()


@contextlib.asynccontextmanager
async def _together(*loops: Coroutine[Any, Any, object]) -> AsyncIterator["asyncio.Future[None]"]:
    """The loops as tasks: what is yielded ends with the first that ends, and raises what that one does."""
    tasks = [asyncio.create_task(loop) for loop in loops]

    async def first() -> None:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    waiting = asyncio.ensure_future(first())
    try:
        yield waiting
    finally:
        # A cancel that meets the very end of a client's request is swallowed (Python 3.11): ask until it is heard.
        while left := [task for task in (waiting, *tasks) if not task.done()]:
            for task in left:
                task.cancel()
            await asyncio.wait(left, timeout=0.05)
