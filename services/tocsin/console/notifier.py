"""Tells the person what needs them: claims each request once over all replicas, and is, or stands by for, the one that tells notices.

Claimed first, told then, forgotten last. A replica that dies in between leaves the notice waiting, and another tells it: after a crash
one may be told twice, under the same id, and none is lost.
"""

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from tocsin.bus.bus import Bus, Unavailable
from tocsin.console.core import notices
from tocsin.console.core.notices import Ear, Notice, Request, Why
from tocsin.console.core.quiet import Hours, is_quiet
from tocsin.console.notice_store import NoticeStore, Outcome
from tocsin.console.service import Live
from tocsin.console.webhook import Failed, Webhook
from tocsin.contract import metrics
from tocsin.contract.ids import WorkspaceId
from tocsin.contract.messages import WorktreesSorted
from tocsin.contract.notices import Mark, NoticeDue, WorktreesMarked
from tocsin.contract.subjects import NOTICE_DUE, WORKTREE_MARKED
from tocsin.contract.tally import Sample, Tally
from tocsin.listing.marks import by_worktree, latest_prompt_ms
from tocsin.runtime.clock import Clock
from tocsin.runtime.logs import log

TICK_S = 5.0
"""How often the store is looked at when nothing happens: for the right to tell, and for what waits for its time."""

BUSY_S = 0.5
"""And how often while something waits: it may be over, or its snooze may."""

DRAIN_S_MAX = 2.0
"""What a webhook has left when the service stops; after that the notice waits for another replica, or the next life."""

WEBHOOK, SCREEN = "webhook", "screen"


class Ways(NamedTuple):
    """How and when the person wants to be told."""

    webhook: Webhook | None = None
    quiet: tuple[Hours, ...] = ()
    minute_of: Callable[[int], int] = lambda _ms: 0
    """The minute of the day that the person's clock shows at a moment (UTC ms)."""
    click: str = ""


class Notifier:
    """One replica."""

    def __init__(self, bus: Bus, live: Live, store: NoticeStore, clock: Clock, workspace: WorkspaceId, ways: Ways) -> None:
        self.ways = ways
        self._bus = bus
        self._live = live
        self._store = store
        self._clock = clock
        self._workspace = workspace
        self._holder = secrets.token_hex(8)
        self._ear = Ear()
        self._busy = False  # something waits, or may have ended
        self._sending: dict[str, asyncio.Task[None]] = {}
        self._soon = False  # look at the store without waiting for a reason
        self._news = asyncio.Event()
        self._why_waiting = ""
        self._tally = Tally(metrics.NOTICES_SENT, metrics.NOTICES_FAILED, metrics.NOTICES_HELD, metrics.NOTICES_DROPPED)

    def samples(self) -> Iterator[Sample]:
        """What this replica has told, held and dropped."""
        return self._tally.samples()

    # ------------------------------------------------------------ the loop

    async def run(self) -> None:
        """Tell until cancelled."""
        try:
            with self._live.listener() as self._news:
                async with self._bus.hear(NOTICE_DUE, self._hear_notice, lambda: None), asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._hear_marks())
                    tasks.create_task(self._loop())
        finally:
            await self._leave()

    async def _loop(self) -> None:
        loop, this = asyncio.get_running_loop(), asyncio.current_task()
        look_at = 0.0
        # A cancel that comes while a client of the bus or the store waits may be lost in it: that it was asked for stays known.
        while this is not None and not this.cancelling():
            self._news.clear()
            body = self._body()
            heard = self._heard(body)
            if heard or self._soon or loop.time() >= look_at:
                self._soon = False
                look_at = loop.time() + await self._turn(body, heard)
                continue
            if self._busy:
                look_at = min(look_at, loop.time() + BUSY_S)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(look_at):
                    await self._news.wait()

    def _body(self) -> WorktreesSorted | None:
        """The list as it stands now; None when nobody can vouch for it."""
        body = self._live.latest()
        return body if isinstance(body, WorktreesSorted) and not body.restored and self._live.away_since_ms is None else None

    def _heard(self, body: WorktreesSorted | None) -> list[Request]:
        if body is None:
            return []
        standing = list(notices.requests(body.worktrees))
        self._ear.forget_all_but(one.place for one in standing)
        return self._ear.news(standing)

    async def _turn(self, body: WorktreesSorted | None, heard: list[Request]) -> float:
        """Do all that is due; returns after how many seconds to look again at the latest."""
        try:
            for request in heard:
                now_ms = self._clock.now_ms()
                await self._store.claim(request, notices.notice_of(request, now_ms))
                self._ear.settle(request)
            self._busy = False
            wait_s = await self._tell(body) if await self._store.hold_courier(self._holder) else TICK_S
        except Unavailable as error:
            if str(error) != self._why_waiting:
                log("notices.wait", "warning", error=str(error))
            self._why_waiting = str(error)
            await asyncio.sleep(BUSY_S)
            return 0.0
        self._why_waiting = ""
        return wait_s

    async def _tell(self, body: WorktreesSorted | None) -> float:
        now_ms = self._clock.now_ms()
        marks = await self._marks(body, now_ms)
        waiting = [one for one in await self._store.waiting() if one.id not in self._sending]
        standing = {one.place: one.prompt_ms for one in notices.requests(body.worktrees)} if body is not None else None
        quiet = is_quiet(self.ways.quiet, self.ways.minute_of(now_ms))
        plan = notices.plan(waiting, standing, by_worktree(marks), now_ms, is_quiet=quiet)
        for notice, why in plan.drop:
            await self._store.remove(notice)
            self._tally.add(metrics.NOTICES_DROPPED, why)
        for notice, why in plan.hold:
            await self._store.put(notice)
            self._tally.add(metrics.NOTICES_HELD, why)
        if plan.joined:
            await self._store.put(plan.send[0], plan.joined)
        for notice in plan.send:
            self._send(notice, marks)
        self._busy = bool(waiting) or any(mark.snooze is not None for mark in marks)
        due_ms = notices.due_ms(waiting, now_ms)
        return TICK_S if due_ms is None else min(TICK_S, (due_ms - now_ms) / 1000)

    # ------------------------------------------------------------ telling

    def _send(self, notice: Notice, marks: tuple[Mark, ...]) -> None:
        task = asyncio.create_task(self._deliver(notice, marks))
        self._sending[notice.id] = task

        def ended(_: "asyncio.Task[None]") -> None:
            del self._sending[notice.id]
            self._look()

        task.add_done_callback(ended)

    def _said(self, notice: Notice, marks: tuple[Mark, ...]) -> NoticeDue:
        body = self._body()
        several = body is not None and len({row.host for row in body.worktrees}) > 1
        told = notices.words(notice.parts, several)
        return NoticeDue(
            workspace=self._workspace, id=notice.id, at_ms=self._clock.now_ms(), title=told.title, text=told.text,
            urgent=notices.is_urgent(notice.parts, by_worktree(marks)),
            worktrees=tuple(dict.fromkeys(part.worktree for part in notice.parts)), click=self.ways.click,
        )  # fmt: skip

    async def _deliver(self, notice: Notice, marks: tuple[Mark, ...]) -> None:
        """Tell one notice by all ways that it has not gone yet. Whatever fails, it goes on waiting."""
        said = self._said(notice, marks)
        try:
            if not notice.shown:
                await self._bus.say(NOTICE_DUE, said)
                self._tally.add(metrics.NOTICES_SENT, SCREEN)
                notice = msgspec.structs.replace(notice, shown=True)
                log("notice.told", notice=notice.id, worktrees=len(said.worktrees))
                if self.ways.webhook is not None:
                    await self._store.put(notice)
            later = await self._post(notice, said) if self.ways.webhook is not None else None
            if later is None:
                await self._store.remove(notice)
            else:
                await self._store.put(later)
        except Unavailable as error:
            log("notices.wait", "warning", error=str(error))

    async def _post(self, notice: Notice, said: NoticeDue) -> Notice | None:
        """One attempt of the webhook: None when it is done with, else the notice as it waits for the next. Raises Unavailable."""
        failed = await self._attempt(said)
        if failed is None:
            return None
        later = None if failed.for_good else notices.after_failure(notice, self._clock.now_ms())
        log("notice.failed", "warning", notice=notice.id, why=str(failed), attempts=notice.attempts + 1, again=later is not None)
        if later is None:
            self._tally.add(metrics.NOTICES_DROPPED, Why.FAILED)
        return later

    async def _attempt(self, said: NoticeDue) -> Failed | None:
        """Post it once and remember what became of it. Raises Unavailable."""
        assert self.ways.webhook is not None
        outcome = await self._store.outcome(WEBHOOK)
        try:
            await self.ways.webhook.send(said)
        except Failed as failed:
            self._tally.add(metrics.NOTICES_FAILED, WEBHOOK)
            await self._store.put_outcome(WEBHOOK, msgspec.structs.replace(outcome, failed_ms=self._clock.now_ms(), error=str(failed)))
            return failed
        self._tally.add(metrics.NOTICES_SENT, WEBHOOK)
        await self._store.put_outcome(WEBHOOK, msgspec.structs.replace(outcome, sent_ms=self._clock.now_ms()))
        return None

    async def test(self) -> Failed | None:
        """Tell a notice that tells of nothing, whatever the hour. Returns why the webhook failed. Raises Unavailable."""
        said = NoticeDue(
            workspace=self._workspace, id=f"test/{secrets.token_hex(4)}", at_ms=self._clock.now_ms(), title="Tocsin rings",
            text="This is a test: nobody needs you.", click=self.ways.click,
        )  # fmt: skip
        await self._bus.say(NOTICE_DUE, said)
        self._tally.add(metrics.NOTICES_SENT, SCREEN)
        return await self._attempt(said) if self.ways.webhook is not None else None

    async def outcome(self) -> Outcome:
        """What became of the last notices that went to the webhook. Raises Unavailable."""
        return await self._store.outcome(WEBHOOK)

    async def waiting(self) -> int:
        """How many notices wait. Raises Unavailable."""
        return len(await self._store.waiting())

    # ------------------------------------------------------------ marks

    async def marks(self) -> tuple[Mark, ...]:
        """The marks as they are kept. Raises Unavailable."""
        return await self._store.marks()

    async def mark(self, mark: Mark) -> tuple[Mark, ...]:
        """Keep a mark and say it; returns all. Raises Unavailable."""
        await self._store.put_mark(mark)
        marks = await self._store.marks()
        await self._say_marks(marks)
        # What it holds back, or sets free, waits here or at another replica, which looks within seconds.
        self._busy = True
        self._look()
        return marks

    async def _marks(self, body: WorktreesSorted | None, now_ms: int) -> tuple[Mark, ...]:
        """The marks that stand, said again when what was said differs. Raises Unavailable."""
        marks = await self._store.marks()
        if body is not None:
            latest = {row.id: latest_prompt_ms(row) for row in body.worktrees}
            ended = notices.over(marks, latest, now_ms)
            for mark in ended:
                await self._store.put_mark(msgspec.structs.replace(mark, snooze=None))
            if ended:
                marks = await self._store.marks()
        last = await self._bus.last(WORKTREE_MARKED, self._workspace)
        said = last.body.marks if last is not None and last.body is not None else ()
        if marks != said:
            await self._say_marks(marks)
        return marks

    async def _say_marks(self, marks: tuple[Mark, ...]) -> None:
        await self._bus.say(WORKTREE_MARKED, WorktreesMarked(workspace=self._workspace, at_ms=self._clock.now_ms(), marks=marks))

    async def _hear_marks(self) -> None:
        async with self._bus.follow(WORKTREE_MARKED, self._workspace) as follow:
            async for batch in follow:
                for heard in batch[-1:]:
                    self._live.mark(heard.body.marks)

    def _hear_notice(self, said: NoticeDue) -> None:
        if said.workspace == self._workspace:
            self._live.notice(said)

    def _look(self) -> None:
        self._soon = True
        self._news.set()

    # ------------------------------------------------------------ ending

    async def _leave(self) -> None:
        sending = set(self._sending.values())
        if sending:
            _, late = await asyncio.wait(sending, timeout=DRAIN_S_MAX)
            for task in late:
                task.cancel()
        with contextlib.suppress(Unavailable):
            await self._store.leave_courier(self._holder)
