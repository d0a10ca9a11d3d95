"""The loop: requests, Runs and what hosts observed become custody; what stands unanswered is said to the hosts again."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from tocsin.bus.bus import Bus, Jobs, Reading
from tocsin.contract.custody import CustodyCommand, CustodyRecorded, ListCustodies, ShowCustody
from tocsin.contract.decision import Decision
from tocsin.contract.faults import Unavailable
from tocsin.contract.hosting import HostCommand, HostFact, Saw
from tocsin.contract.ids import HostId, PaneId, digest
from tocsin.contract.messages import Body, PaneStatus, State
from tocsin.contract.metrics import CUSTODIES, OBLIGATIONS, ORDERS_SAID, count_answer, tag
from tocsin.contract.parties import Caller, Role
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.run import (
    SETTLED,
    DispatchMoved,
    DispatchRequested,
    GateOpened,
    GateResolved,
    OnSettle,
    Receipt,
    Refused,
    RunClosed,
    RunPurged,
    RunRecorded,
    TaskAdded,
    TaskMoved,
    VerdictGiven,
)  # fmt: skip
from tocsin.contract.subjects import CUSTODY_CMD, CUSTODY_EVENT, HOST_CMD, HOST_FACT, PANE_STATUS, RUN_EVENT
from tocsin.contract.tally import Sample, Tally, by_word
from tocsin.ledger import Family, Ledger
from tocsin.release_accountant.core import notices, rows
from tocsin.release_accountant.core.custody import SERVICE, Custody, S, blank, evolve, identity
from tocsin.release_accountant.core.decide import Asks, decide
from tocsin.release_accountant.core.moves import Around
from tocsin.release_accountant.core.obligations import obligation
from tocsin.release_accountant.core.orders import orders
from tocsin.release_accountant.core.register import Register
from tocsin.release_accountant.core.work import holds, is_open, is_stranger
from tocsin.release_accountant.works import Works
from tocsin.runtime.clock import Clock
from tocsin.runtime.logs import log
from tocsin.store.views import Views

B = TypeVar("B", bound=Body)

END_AGAIN_S = 0.05

NAME = "release-accountant"

MEANS_NOTHING = frozenset(
    {
        Saw.SETUP_RUNNING, Saw.SETUP_ENDED, Saw.AGENT_STARTED, Saw.PROMPT_WRITTEN, Saw.PROMPT_LEFT, Saw.EXITED, Saw.TERMINAL_CLOSED,
        Saw.TYPED, Saw.TYPE_HELD, Saw.INTERRUPTED,
    }
)  # fmt: skip
"""Observations that change nobody's custody. That an agent has ended is no proof for what it has left behind."""

OPENS_OR_CLOSES = (TaskAdded, TaskMoved, GateOpened, GateResolved, VerdictGiven, RunClosed, DispatchRequested)
"""Events of a Run after which a worker may be held by something else, or by nothing."""

FAMILY: Family[Custody, CustodyRecorded] = Family(CUSTODY_EVENT, Custody, blank, evolve, over=lambda custody: custody.forgotten)

RETRY_S, RETRY_S_MAX = 0.2, 30.0
"""How long a message that could not be handled waits for its next turn: doubled each time."""


@dataclass(frozen=True)
class Pace:
    """Limits of the loop, milliseconds of awake time."""

    tick_ms: int = 1_000
    look_ms: int = 5_000
    """How often it is looked whether time, a Run or somebody else's end decides about a custody."""
    patience_ms: int = 10_000
    """How long a host has for its answer until a release is pending."""
    again_ms: int = 30_000
    again_ms_max: int = 1_800_000
    """An unanswered order is said again after so long, doubled each time: the bus keeps it while its host is away."""
    finish_ms: int = 10_000
    """How long a worker whose own report leads to its release may go on with the turn in which it made it."""


@dataclass
class Said:
    """An order that stands. `ours`: it was said here; else another replica has recorded it, and says it unless it dies first."""

    first_ms: int
    last_ms: int
    wait_ms: int
    ours: bool


class Accountant:
    """One replica. All decide on the same ledger; who writes first has decided."""

    def __init__(self, bus: Bus, views: Views, work_views: Views, clock: Clock, pace: Pace | None = None) -> None:
        self._bus = bus
        self._clock = clock
        self._pace = pace or Pace()
        self._ledger: Ledger[Custody, CustodyRecorded] = Ledger(bus, views, FAMILY, clock.now_ms, log)
        self._works = Works(bus, work_views)
        self._register = Register()
        self._said: dict[tuple[str, str], Said] = {}
        self._working: set[tuple[str, str]] = set()
        self._tally = Tally()

    def samples(self) -> Iterator[Sample]:
        """What was asked, and how custodies stand."""
        yield from self._tally.samples()
        yield from self._ledger.samples()
        custodies = self._ledger.states().values()
        yield from by_word(CUSTODIES, (one.state for one in custodies))
        yield Sample(OBLIGATIONS, (), sum(obligation(one) is not None for one in custodies))

    async def run(self) -> None:
        """Account until cancelled."""
        async with self._ledger:
            tasks = [asyncio.create_task(self._works.run()), asyncio.create_task(self._ledger.ended())]
            try:
                await self._ledger.ready()
                self._register = Register(self._ledger.states().values())
                async with (
                    self._bus.serve(CUSTODY_CMD, self._answer, name=NAME),
                    self._bus.work(RUN_EVENT, name=NAME) as runs,
                    self._bus.work(HOST_FACT, name=NAME) as facts,
                    self._bus.follow(PANE_STATUS) as panes,
                ):
                    tasks += [
                        asyncio.create_task(loop)
                        for loop in (
                            self._watch(),
                            self._see_panes(panes),
                            self._work(runs, self._hear_run),
                            self._work(facts, self._hear_fact),
                            self._tick(),
                        )
                    ]
                    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        task.result()
            finally:
                await end(tasks)

    # ------------------------------------------------------------ requests

    async def _answer(self, command: CustodyCommand) -> Receipt | Refused:
        answer = await self._ask(command)
        count_answer(self._tally, command.ask, answer)
        return Refused.of(command.request, answer) if isinstance(answer, Refusal) else answer

    async def _ask(self, command: CustodyCommand) -> Receipt | Refusal:
        ask, caller = command.ask, command.caller
        if isinstance(ask, ListCustodies):
            visible = [one for one in self._ledger.states().values() if not is_stranger(self._works.of(one.run), caller)]
            return Receipt(request=command.request, result=rows.page(visible, ask), at_ms=self._clock.now_ms())
        if isinstance(ask, ShowCustody):
            found = await self._ledger.fresh(command.custody)
            if isinstance(found, Refusal):
                return found
            if found is None or not found.known or is_stranger(self._works.of(found.run), caller):
                return Refusal(Code.NOT_FOUND, f"nothing is known of a Dispatch {command.custody}")
            return Receipt(request=command.request, result=rows.shown(found), at_ms=self._clock.now_ms())
        if not command.request:
            return Refusal(Code.BAD_REQUEST, "a request that changes something carries an id")
        return await self._decide(command.custody, ask, command.request, caller)

    async def _decide(self, custody: str, ask: Asks, request: str = "", caller: Caller = SERVICE) -> Receipt | Refusal:
        """Decide, record, and say the orders that follow. Notices that may come twice need no request id: twice they mean nothing."""
        now_ms = self._clock.now_ms()

        def choose(state: Custody) -> Decision | Refusal:
            work = self._works.of(state.run)
            gate = getattr(ask, "gate", None)
            around = Around(
                now_ms=now_ms,
                caller=caller,
                workers_there=self._register.others_at(state),
                gate_is_open=gate is not None and work is not None and is_open(work, gate),
                is_stranger=is_stranger(work, caller),
            )
            return decide(state, ask, around)

        receipt = await self._ledger.run(custody, choose, request=request, caller=caller, payload=ask, at_ms=now_ms)
        state = self._ledger.state(custody)
        if isinstance(receipt, Receipt) and state is not None:
            self._register.put(state)
            await self._say_new_orders(state)
        if isinstance(receipt, Receipt) and receipt.seq and state is not None:
            last = state.past[-1] if state.past else None
            what, why = (last.what, last.why) if last else ("", "")
            log("custody.recorded", custody=custody, seq=receipt.seq, state=state.state, what=what, why=why)
        return receipt

    async def _notice(self, custody: str, ask: notices.Notices, request: str = "") -> None:
        """Tell a custody something that nobody wishes. Raises Unavailable."""
        answer = await self._decide(custody, ask, request)
        if isinstance(answer, Refusal):
            if answer.code in (Code.UNAVAILABLE, Code.LEDGER_FULL):
                raise Unavailable(answer.message)
            log("notice.refused", "error", custody=custody, code=answer.code, reason=answer.message)

    # -------------------------------------------------------- what is heard

    async def _work(self, jobs: Jobs[B], handle: Callable[[B, int], Awaitable[None]]) -> None:
        """Handle messages one after another; done last, so that a crash brings a message back."""
        async for job in jobs:
            try:
                await handle(job.body, job.seq)
                await job.done()
            except Unavailable as error:
                log("job.put_off", "warning", seq=job.seq, attempt=job.attempt, reason=str(error))
                await job.again(min(RETRY_S_MAX, RETRY_S * 2 ** min(job.attempt, 10)))

    async def _hear_run(self, recorded: RunRecorded, seq: int) -> None:
        """What a Run has recorded: attempts requested and settled, reviews opened and closed."""
        await self._works.read_to(seq)
        for event in recorded.events:
            match event:
                case DispatchRequested():
                    await self._requested(event.dispatch, recorded.run)
                case DispatchMoved() if event.to in SETTLED:
                    await self._has_settled(event.dispatch, recorded.run, event.to.value)
                case RunPurged():
                    await self._purged(recorded.run)
        if any(isinstance(event, OPENS_OR_CLOSES) for event in recorded.events):
            for custody in self._register.of_run(recorded.run):
                await self._look_at_hold(custody)

    async def _requested(self, dispatch: str, run: str) -> None:
        """Note that something may be made for an attempt; a terminal that it reuses changes hands before anything else is decided."""
        work = self._works.of(run)
        known = work.dispatches.get(dispatch) if work else None
        if known is None:
            return
        launch = known.launch
        await self._notice(
            dispatch, notices.Requested(run=run, task=known.task, fence=known.fence, host=launch.host, path=launch.placement.path)
        )
        if launch.pane is not None:
            await self._reuse(dispatch, launch.host, launch.pane)

    async def _reuse(self, dispatch: str, host: HostId, pane: PaneId) -> None:
        state = self._ledger.state(dispatch)
        if state is None or state.terminal is not None or state.state is not S.EXPECTED:
            return
        earlier = self._register.given_to(dispatch) or self._register.owner(host, pane)
        if earlier is None:
            await self._notice(dispatch, notices.WorksElsewhere(host=host, pane=pane))
            return
        # First out of the earlier one's hands: nothing may close it under the later one.
        await self._notice(earlier.id, notices.HandedOn(dispatch=dispatch))
        given = self._ledger.state(earlier.id)
        if given is None or given.terminal is None or given.handed_to != dispatch:
            return
        await self._notice(
            dispatch,
            notices.Inherits(
                earlier=given.id,
                host=host,
                pane=pane,
                process=given.terminal.process,
                path=given.path or "",
                worktree_made=given.worktree is not None,
                branch=given.branch,
                taken_over=given.taken,
            ),
        )

    async def _has_settled(self, dispatch: str, run: str, outcome: str) -> None:
        await self._requested(dispatch, run)
        work = self._works.of(run)
        known = work.dispatches.get(dispatch) if work else None
        task = work.tasks.get(known.task) if work and known else None
        state = self._ledger.state(dispatch)
        host = known.launch.host if known else state.host if state and state.host else HostId("")
        if work is None or known is None or task is None:
            # Nobody can tell its policy any more: somebody decides.
            await self._notice(dispatch, notices.HasSettled(host=host, outcome=outcome, on_settle=OnSettle.ASK, hold=None))
            return
        held = holds(work, state) if state is not None else None
        await self._notice(dispatch, notices.HasSettled(host=host, outcome=outcome, on_settle=task.on_settle, hold=held))
        # A verdict that came while this was recorded has found nobody to let go.
        state = self._ledger.state(dispatch)
        if state is not None:
            await self._look_at_hold(state)

    async def _look_at_hold(self, custody: Custody) -> None:
        """Let go of what a verdict has freed. What is known of a Run that nobody can read any more changes nothing."""
        work = self._works.of(custody.run)
        if work is None or custody.gate is None or not custody.settled:
            return
        now = holds(work, custody)
        if now is None or now.gate != custody.gate:
            await self._notice(custody.id, notices.HoldChanged(hold=now))

    async def _purged(self, run: str) -> None:
        for custody in self._register.of_run(run):
            await self._notice(custody.id, notices.RunPurged())
            state = self._ledger.state(custody.id)
            if state is not None and state.forgotten:
                await self._ledger.purge(custody.id)

    async def _hear_fact(self, fact: HostFact, _seq: int) -> None:
        """What a host has observed, told to whoever has the terminal now."""
        if fact.saw in MEANS_NOTHING or not identity(fact.dispatch)[0]:
            return
        owner, fence = fact.dispatch, fact.fence
        while (state := self._ledger.state(owner)) is not None and state.state is S.REUSED and state.handed_to:
            owner, fence = state.handed_to, identity(state.handed_to)[2]
        told = msgspec.structs.replace(fact, dispatch=owner, fence=fence)
        # Made of what was observed: the same observation said twice is one.
        request = digest(fact.host, fact.dispatch, str(fact.fence), fact.step, fact.saw, str(fact.at_ms), fact.detail)
        await self._notice(owner, notices.Observed(fact=told), f"fact-{request}")
        await self._free_places(owner)

    async def _free_places(self, ended: str) -> None:
        """Where a worker has ended, the worktree of another that is over may go now."""
        state = self._ledger.state(ended)
        if state is not None and state.over:
            for custody in self._register.waiting():
                if custody.id != ended and (custody.host, custody.path) == (state.host, state.path):
                    await self._notice(custody.id, notices.PlaceFree())

    async def _watch(self) -> None:
        """Keep the register true to what every replica records."""
        async for change in self._ledger.changes():
            if change is None:
                self._register = Register(self._ledger.states().values())
                continue
            # As it stands by now: a change may have waited here while later ones were recorded by this replica.
            state = self._ledger.state(change.id) or change.after
            self._register.put(state)
            # Whoever has recorded it says its orders; if they die first, we do after a while.
            for order in () if self._may_finish(state) else orders(state, 0):
                self._said.setdefault((order.dispatch, order.step), self._said_now(ours=False))

    async def _see_panes(self, panes: Reading[PaneStatus]) -> None:
        """Know which panes are in a turn; a release that waited for its end goes on with it."""
        async for batch in panes:
            for heard in batch:
                place = heard.body.host, heard.body.pane
                if heard.body.state is State.WORKING:
                    self._working.add(place)
                elif place in self._working:
                    self._working.discard(place)
                    owner = self._register.owner(*place)
                    if owner is not None:
                        await self._say_new_orders(owner)

    # --------------------------------------------------------------- orders

    def _may_finish(self, custody: Custody) -> bool:
        """True while the end of a worker's turn is waited for: it has reported in it, and nobody has asked to end it."""
        if custody.state is not S.RELEASING or custody.by.role is not Role.SERVICE or custody.terminal is None:
            return False
        is_fresh = 0 <= self._clock.now_ms() - custody.since_ms < self._pace.finish_ms
        return is_fresh and (custody.host or "", custody.terminal.pane) in self._working

    def _said_now(self, ours: bool) -> Said:
        now_ms = self._clock.awake_ms()
        return Said(now_ms, now_ms, self._pace.again_ms, ours)

    async def _say_new_orders(self, custody: Custody) -> None:
        if self._may_finish(custody):
            return
        for order in orders(custody, self._clock.now_ms()):
            said = self._said.get((order.dispatch, order.step))
            if said is None or not said.ours:
                self._said[order.dispatch, order.step] = self._said_now(ours=True)
                await self._say(order)

    async def _say(self, order: HostCommand) -> None:
        """Say an order. If the bus does not take it now, it is said again by the clock: what was recorded stands."""
        try:
            await self._bus.say(HOST_CMD, order, msg_id=f"{order.dispatch}.{order.fence}.{order.step}")
            self._tally.add(ORDERS_SAID, tag(order.order))
            log("order.said", dispatch=order.dispatch, step=order.step, host=order.host)
        except Unavailable as error:
            self._said[order.dispatch, order.step].last_ms -= self._pace.again_ms
            log("order.unsaid", "warning", dispatch=order.dispatch, step=order.step, reason=str(error))

    async def _tick(self) -> None:
        """What the passing of time decides."""
        look_ms = 0
        while True:
            try:
                await self._see_to_orders()
                if self._clock.awake_ms() >= look_ms:
                    look_ms = self._clock.awake_ms() + self._pace.look_ms
                    await self._look_again()
            except Unavailable as error:
                log("tick.put_off", "warning", reason=str(error))
            await asyncio.sleep(self._pace.tick_ms / 1000)

    async def _see_to_orders(self) -> None:
        """Say again what stands unanswered; a release whose host is silent is pending."""
        standing: set[tuple[str, str]] = set()
        for custody in self._register.ordered():
            if self._may_finish(custody):
                continue
            for order in orders(custody, self._clock.now_ms()):
                key = order.dispatch, order.step
                standing.add(key)
                said, now_ms = self._said.get(key), self._clock.awake_ms()
                if said is None:
                    self._said[key] = self._said_now(ours=True)
                    await self._say(order)
                elif now_ms - said.last_ms >= said.wait_ms:
                    said.last_ms, said.wait_ms = now_ms, min(said.wait_ms * 2, self._pace.again_ms_max)
                    await self._say(order)
                if said is not None and custody.state is S.RELEASING and now_ms - said.first_ms >= self._pace.patience_ms:
                    await self._notice(custody.id, notices.HostSilent(attempt=custody.attempt))
        for key in set(self._said) - standing:
            del self._said[key]

    async def _look_again(self) -> None:
        """What a crash, a lost message or the clock has left behind."""
        now_ms = self._clock.now_ms()
        for custody in self._register.waiting():
            await self._look_at_hold(custody)
            if custody.until_ms is not None and custody.until_ms <= now_ms:
                work = self._works.of(custody.run)
                await self._notice(custody.id, notices.TimePassed(hold=holds(work, custody) if work else None))
            if custody.over and not self._register.others_at(custody):
                await self._notice(custody.id, notices.PlaceFree())


async def end(tasks: Sequence["asyncio.Task[None]"]) -> None:
    """Cancel and wait. A cancel that meets the very end of a request of nats-py is swallowed (Python 3.11): asked again."""
    while not all(task.done() for task in tasks):
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=END_AGAIN_S)
