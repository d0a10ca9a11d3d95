"""The loop: answer requests, follow what is recorded of Runs and what hands observe, look after wakes."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

from tocsin.bus.bus import Bus, Jobs
from tocsin.contract.faults import Unavailable
from tocsin.contract.hosting import HostFact
from tocsin.contract.ids import digest
from tocsin.contract.mail import IdleAnswer, IdleQuestion
from tocsin.contract.metrics import MAIL_UNREAD, MAILBOXES_DUE
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.run import RunPurged, RunRecorded
from tocsin.contract.subjects import HOST_FACT, MAIL_CMD, MAIL_IDLE, PANE_STATUS, RUN_EVENT
from tocsin.contract.tally import Sample, Source
from tocsin.ledger import Ledger
from tocsin.mailbox.commands import Commands
from tocsin.mailbox.core.addresses import run_in
from tocsin.mailbox.core.follow_up import Posts, Purge, take
from tocsin.mailbox.core.news import news_of
from tocsin.mailbox.panes import Panes
from tocsin.mailbox.store import FAMILY, Mailboxes
from tocsin.mailbox.waits import Waits
from tocsin.mailbox.waking import OTHERS_FIRST_MS, SERVICE, Waking
from tocsin.runtime.clock import Clock
from tocsin.runtime.logs import log
from tocsin.store.views import Views

NAME = "mailbox"

SWEEP_S = 30.0
"""How often what stands open is looked at again."""

AGAIN_S, FULL_AGAIN_S = 0.5, 10.0
"""When a job is tried again: the bus was away; the ledger has no room."""


class MailboxService:
    """One replica."""

    def __init__(self, bus: Bus, boxes: Mailboxes, clock: Clock) -> None:
        self._bus = bus
        self._boxes = boxes
        self._clock = clock
        self._panes = Panes()
        self._waits = Waits()
        self._waking = Waking(bus, boxes, self._panes, clock)
        self._commands = Commands(boxes, self._panes, self._waits, self._waking, clock)
        self._births: tuple[int, str] | None = None

    def samples(self) -> Iterator[Sample]:
        """What was asked, the wakes, and what nobody has read."""
        yield from self._commands.tally.samples()
        yield from self._waking.tally.samples()
        yield from self._boxes.samples()
        boxes = self._boxes.states().values()
        yield Sample(MAIL_UNREAD, (), sum(box.unread_count for box in boxes))
        yield Sample(MAILBOXES_DUE, (), sum(box.newest > 0 for box in boxes))

    async def run(self) -> None:
        """Serve until cancelled."""
        await self._boxes.ready()
        async with (
            self._bus.follow(PANE_STATUS) as statuses,
            self._bus.work(RUN_EVENT, name=NAME) as records,
            self._bus.work(HOST_FACT, name=NAME) as facts,
            self._bus.serve(MAIL_CMD, self._commands.answer, name=NAME),
            self._bus.serve(MAIL_IDLE, self._answer_idle, name=NAME),
            self._closing(),
            asyncio.TaskGroup() as tasks,
        ):
            moved: asyncio.Queue[str] = asyncio.Queue()
            tasks.create_task(self._boxes.ended())
            tasks.create_task(self._panes.follow(statuses, moved))
            tasks.create_task(self._look_where_panes_moved(moved))
            tasks.create_task(self._hear_changes())
            tasks.create_task(self._waking.run())
            tasks.create_task(self._follow_runs(records))
            tasks.create_task(self._hear_hands(facts))
            tasks.create_task(self._sweep())
            log("mailbox.ready", mailboxes=len(self._boxes.states()))

    @asynccontextmanager
    async def _closing(self) -> AsyncIterator[None]:
        """Answers all that wait, before the requests in flight are waited for."""
        try:
            yield
        finally:
            self._waits.close()

    async def _answer_idle(self, question: IdleQuestion) -> IdleAnswer:
        return await self._waking.answer_idle(question)

    async def _look_where_panes_moved(self, moved: "asyncio.Queue[str]") -> None:
        while True:
            self._waking.look_soon(await moved.get())

    async def _hear_changes(self) -> None:
        async for change in self._boxes.changes():
            if change is None:
                self._waking.look_at_all()
                continue
            self._panes.settle(change.after)
            self._waits.tell(change.id)
            self._waking.look_soon(change.id, OTHERS_FIRST_MS)

    # ------------------------------------------------------------- reactions

    async def _follow_runs(self, records: Jobs[RunRecorded]) -> None:
        async for job in records:
            mark = await self._mark()
            delay_s = AGAIN_S if mark is None else await self._take_record(job.body, f"{mark}{job.seq}")
            try:
                await (job.done() if delay_s is None else job.again(delay_s))
            except Unavailable as error:
                log("bus.unavailable", "warning", reason=str(error))

    async def _mark(self) -> str | None:
        """What tells sequences of this log from those of a lost one; None while the bus is away."""
        if self._births is None or self._births[0] != self._bus.returns:
            returns = self._bus.returns
            try:
                self._births = returns, await self._bus.birth(RUN_EVENT)
            except Unavailable:
                return None
        return f"{digest(self._births[1])[:6]}-"

    async def _take_record(self, recorded: RunRecorded, seq: str) -> float | None:
        """Bring one record of a Run into its mailboxes; None when that is done, else when to try again."""
        for address, posts in news_of(recorded, seq).items():
            delay_s = await self._post(address, posts, f"e{seq}")
            if delay_s is not None:
                return delay_s
        if any(isinstance(event, RunPurged) for event in recorded.events):
            return await self._purge(recorded.run, f"e{seq}")
        return None

    async def _post(self, address: str, posts: tuple[Posts, ...], request: str) -> float | None:
        now_ms = self._clock.now_ms()
        taken = await self._boxes.run(
            address, lambda box: take(box, posts, now_ms), request=request, caller=SERVICE, payload=posts, at_ms=now_ms
        )
        if isinstance(taken, Refusal):
            log("record.not_taken", "warning", mailbox=address, code=taken.code)
            return FULL_AGAIN_S if taken.code is Code.LEDGER_FULL else AGAIN_S
        self._waking.look_soon(address)
        return None

    async def _purge(self, run: str, request: str) -> float | None:
        for address in [address for address in self._boxes.states() if run_in(address) == run]:
            delay_s = await self._post(address, (Purge(),), request)
            if delay_s is not None:
                return delay_s
            try:
                await self._boxes.purge(address)
            except Unavailable:
                return AGAIN_S
        return None

    async def _hear_hands(self, facts: Jobs[HostFact]) -> None:
        async for job in facts:
            if job.body.wake is not None:
                await self._waking.hear_typed(job.body)
            try:
                await job.done()
            except Unavailable as error:
                log("bus.unavailable", "warning", reason=str(error))

    async def _sweep(self) -> None:
        """What a replica that was stopped has left undone: wakes, and questions that were recorded and not told yet."""
        while True:
            self._waking.look_at_all()
            for address, box in self._boxes.states().items():
                for question in box.open_questions():
                    await self._commands.tell_question(address, question.id)
            await asyncio.sleep(SWEEP_S)


async def serve(bus: Bus, views: Views, clock: Clock, show: Callable[[Source], None] = lambda source: None) -> None:
    """Be a mailbox service until cancelled. `show` is told what has numbers to show."""
    async with Ledger(bus, views, FAMILY, clock.now_ms, log) as boxes:
        service = MailboxService(bus, boxes, clock)
        show(service.samples)
        await service.run()
