"""The loop: hear, decide, store, say."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from uuid import uuid4

from tocsin.bus.bus import Bus, Heard, Reading
from tocsin.contract.faults import Unavailable
from tocsin.contract.ids import DEFAULT_WORKSPACE
from tocsin.contract.messages import Body, Evidence, HookReported, PaneSeen, PaneStatus, PaneTitled, State
from tocsin.contract.metrics import HOOKS_DEDUPLICATED, HOOKS_LATE, LEASE, PANES
from tocsin.contract.subjects import HOOK_REPORTED, PANE_SEEN, PANE_STATUS, PANE_TITLED
from tocsin.contract.tally import Sample, by_word
from tocsin.runtime.clock import Clock
from tocsin.runtime.logs import log
from tocsin.status_store.core.binding import Place
from tocsin.status_store.core.board import Board, earlier
from tocsin.status_store.core.pane import Moment, Pane, change, state_of, status
from tocsin.status_store.store import GAP_MS, PaneStore, Position
from tocsin.store.fenced import LEASE_MS, RENEW_S, Fenced, Lease, Wiped

INBOX_MAX = 8
"""Batches that wait to be decided; beyond it the bus holds the rest."""

SURE_MS = LEASE_MS - 1_000
"""So long after it asked for its lease a holder takes for granted that it has it."""

CATCH_UP_MS = 2_000
"""How long a new holder reads on in the log before it says what it knows: events that have expired never come."""

RETRY_S = 0.2
FORGET_EVERY_S = 60.0


@dataclass(frozen=True)
class Input:
    """One batch of one subject."""

    heard: Sequence[Heard[Body]]


class StatusStore:
    """One instance. `run` stands by until it may be the active one, and is it until another takes over."""

    def __init__(self, bus: Bus, store: PaneStore, clock: Clock) -> None:
        self._bus = bus
        self._store = store
        self._clock = clock
        self._term: Term | None = None
        self._repeated = self._late = 0  # of terms that are over

    def samples(self) -> Iterator[Sample]:
        """Whether this one is at work, and then the panes as they stand."""
        term = self._term
        yield Sample(LEASE, (), term is not None)
        yield Sample(HOOKS_DEDUPLICATED, (), self._repeated + (term.board.repeated if term is not None else 0))
        yield Sample(HOOKS_LATE, (), self._late + (term.board.late if term is not None else 0))
        if term is not None:
            yield from by_word(PANES, (state_of(pane)[0] for pane in term.board.panes.values()))

    async def run(self) -> None:
        """Be the active one whenever the lease is free, until cancelled."""
        while True:
            try:
                heard_ms = await self._store.heard_ms()
                asked = moment(self._clock)
                lease = await self._store.take(uuid4().hex, asked.at_ms)
                if lease is not None:
                    log("lease.taken", fence=lease.fence)
                    async with Term(self._bus, self._store, self._clock, lease, asked, heard_ms) as term, self._shown(term):
                        await term.serve()
            except Fenced:
                log("lease.lost", "warning")
            except Wiped:
                log("store.wiped", "warning")
            except Unavailable as error:
                log("store.unavailable", "warning", reason=str(error))
            await asyncio.sleep(RENEW_S)

    @contextlib.asynccontextmanager
    async def _shown(self, term: "Term") -> AsyncIterator[None]:
        self._term = term
        try:
            yield
        finally:
            self._term = None
            self._repeated += term.board.repeated
            self._late += term.board.late


class Term:
    """One holder's time: from taking the lease to losing it."""

    def __init__(self, bus: Bus, store: PaneStore, clock: Clock, lease: Lease, leased: Moment, heard_ms: int | None) -> None:
        self._bus = bus
        self._store = store
        self._clock = clock
        self._lease = lease
        self._leased = leased  # when it was asked for
        self._heard_ms = heard_ms
        self.board = Board()
        self._position = Position("", 0)
        self._inbox: asyncio.Queue[Input] = asyncio.Queue(INBOX_MAX)
        self._refill = False
        self._births: dict[str, str] = {}
        self._log_end = 0  # of the log, when this term began
        self._behind = False  # what is known is older than that, and is not said
        self._catch_up_until = 0
        self._memory_end = 0  # what the log has told up to here is a memory, unless it is quite fresh
        self._loaded_ms = 0
        self._returns = bus.returns

    async def __aenter__(self) -> "Term":
        return self

    async def __aexit__(self, *error: object) -> None:
        with contextlib.suppress(Fenced, Wiped, Unavailable):
            await self._store.release(self._lease)

    def _now(self) -> Moment:
        return moment(self._clock)

    async def serve(self) -> None:
        """Hear and decide until cancelled. Raises Fenced when another has taken over."""
        await self._load()
        async with (
            self._bus.read(HOOK_REPORTED, after=self._position.seq) as hooks,
            self._bus.follow(PANE_SEEN) as seen,
            self._bus.follow(PANE_TITLED) as titled,
            hearing(self._inbox, hooks, seen, titled) as tasks,
        ):
            tasks += [asyncio.create_task(self._keep_lease()), asyncio.create_task(self._work())]
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()

    async def _load(self) -> None:
        now = self._now()
        self._loaded_ms = now.at_ms
        loaded = await self._store.load(self._heard_ms, now)
        log_birth = await self._bus.birth(HOOK_REPORTED)
        self._log_end = await self._bus.end(HOOK_REPORTED)
        is_same_log = loaded.position.log == log_birth
        # A new log counts from one again: sequences of the old one say nothing about it.
        self.board = Board(loaded.panes if is_same_log else [change(pane, seq=0) for pane in loaded.panes])
        self._position = loaded.position if is_same_log else Position(log_birth, 0)
        if loaded.panes and (loaded.gap or not is_same_log):
            self.board.restore()
        elif loaded.gap:
            # The store is empty: the log tells what was, and nothing tells what has become of it since.
            self._memory_end = self._log_end
        log("panes.loaded", panes=len(loaded.panes), position=self._position.seq, gap=loaded.gap, same_log=is_same_log)
        self._behind = self._position.seq < self._log_end
        self._catch_up_until = now.awake_ms + CATCH_UP_MS
        if not self._behind:
            await self._say_all_again()

    async def _keep_lease(self) -> None:
        while True:
            await asyncio.sleep(RENEW_S)
            try:
                is_wiped = await self._renew()
            except Unavailable as error:
                log("store.unavailable", "warning", reason=str(error))
                continue
            if is_wiped:
                log("store.wiped", "warning", birth=self._lease.birth)
                self._refill = True
                await self._wake()
            if self._bus.returns != self._returns:
                await self._wake()

    async def _renew(self) -> bool:
        """Ask for the lease once more; whether its store has begun anew since. Raises Fenced when another holds it, Unavailable."""
        asked = self._now()
        lease = await self._store.take(uuid4().hex, asked.at_ms)
        if lease is None:
            raise Fenced("another holds the lease")
        is_wiped = lease.birth != self._lease.birth
        self._lease, self._leased = lease, asked
        return is_wiped

    async def _wake(self) -> None:
        with contextlib.suppress(asyncio.QueueFull):
            self._inbox.put_nowait(Input(()))

    async def _work(self) -> None:
        forget_at = self._clock.awake_ms() + FORGET_EVERY_S * 1000
        while True:
            for batch in await self._take():
                for heard in batch.heard:
                    self._apply(heard)
            now = self._now()
            self.board.pass_time(now)
            if now.awake_ms >= forget_at:
                forget_at = now.awake_ms + FORGET_EVERY_S * 1000
                for place in self.board.forgettable(now.at_ms):
                    self.board.forget(place)
            changed, dropped = self.board.take_changes()
            await self._record(changed, dropped)
            if self._behind and (self._position.seq >= self._log_end or now.awake_ms >= self._catch_up_until):
                await self._say_all_again()
            if self._bus.returns != self._returns:
                await self._say_what_was_lost()

    async def _take(self) -> list[Input]:
        """All that is there; waits for something, or until a limit passes."""
        due_ms = self._catch_up_until if self._behind else self.board.due_ms()
        wait_s = FORGET_EVERY_S if due_ms is None else max(0.0, (due_ms - self._clock.awake_ms()) / 1000)
        try:
            async with asyncio.timeout(min(wait_s, FORGET_EVERY_S)):
                batches = [await self._inbox.get()]
        except TimeoutError:
            return []
        while not self._inbox.empty():
            batches.append(self._inbox.get_nowait())
        return batches

    def _apply(self, heard: Heard[Body]) -> None:
        match heard.body:
            case HookReported() as event:
                if heard.seq > self._memory_end:
                    self._end_memory()
                self.board.hear(event, heard.seq, earlier(self._now(), event.at_ms))
                self._position = Position(self._position.log, heard.seq)
                if heard.seq == self._memory_end:
                    self._end_memory()
            case PaneSeen() as seen:
                self.board.seen(seen, self._now())
            case PaneTitled() as titled:
                known = set(self.board.unknown_glyphs)
                self.board.titled(titled, self._now())
                for glyph in self.board.unknown_glyphs - known:
                    log("title.glyph_unknown", "warning", glyph=f"U+{ord(glyph):04X}")

    def _end_memory(self) -> None:
        if self._memory_end:
            self._memory_end = 0
            self.board.restore(self._loaded_ms - GAP_MS)

    async def _record(self, changed: Sequence[Pane], dropped: Sequence[Place]) -> None:
        """Store and say what was decided: at the same time, because neither needs the other, as long as nobody else can have
        the lease. Who may have lost it asks first, by storing. Raises Fenced.

        What was said and not stored is decided again from the log by whoever comes next, before that one says anything.
        """
        if self._behind or not self._is_surely_ours():
            await self._write(changed, dropped)
            await self._say(() if self._behind else changed, dropped)
            return
        # Said first: somebody waits for that.
        both = [asyncio.create_task(one(changed, dropped)) for one in (self._say, self._write)]
        try:
            await asyncio.gather(*both)
        finally:
            for task in both:
                task.cancel()

    def _is_surely_ours(self) -> bool:
        """Whether the lease cannot have run out. On both clocks: one stands still while the machine sleeps, one may be set."""
        now = self._now()
        passed_ms = max(now.at_ms - self._leased.at_ms, now.awake_ms - self._leased.awake_ms)
        return 0 <= passed_ms < SURE_MS and not self._refill

    async def _write(self, changed: Sequence[Pane], dropped: Sequence[Place]) -> None:
        """Store until it is stored: what was decided is never dropped. Raises Fenced."""
        while True:
            try:
                if self._refill:
                    changed, self._refill = list(self.board.panes.values()), False
                await self._store.write(self._lease, changed, dropped, self._position, self._now())
                return
            except Wiped:
                await self._take_wiped()
            except Unavailable as error:
                log("store.unavailable", "warning", reason=str(error))
                await asyncio.sleep(RETRY_S)

    async def _take_wiped(self) -> None:
        log("store.wiped", "warning")
        with contextlib.suppress(Unavailable):
            await self._renew()
        self._refill = True

    async def _say(self, changed: Sequence[Pane], dropped: Sequence[Place]) -> None:
        """Say until every ack is in: a reader may trust the last value."""
        statuses = [*map(status, changed), *(over(place, self._clock.now_ms()) for place in dropped)]
        while statuses:
            try:
                await self._bus.say_all(PANE_STATUS, statuses)
                for place in dropped:
                    await self._bus.erase(PANE_STATUS, *place)
                return
            except Unavailable as error:
                log("bus.unavailable", "warning", reason=str(error))
                await asyncio.sleep(RETRY_S)

    async def _say_what_was_lost(self) -> None:
        """After a return of the bus: say all again if its memory is a new one."""
        returns = self._bus.returns
        with contextlib.suppress(Unavailable):
            if await self._bus.birth(PANE_STATUS) != self._births.get(PANE_STATUS.name):
                await self._say_all_again()
            if await self._bus.birth(HOOK_REPORTED) != self._position.log:
                # The log itself is new: what was read of the old one says nothing about it.
                raise Fenced("the log of hook events has begun anew")
            self._returns = returns

    async def _say_all_again(self) -> None:
        self._behind = False
        self._births[PANE_STATUS.name] = await self._bus.birth(PANE_STATUS)
        self.board.take_changes()
        await self._say(list(self.board.panes.values()), ())


def moment(clock: Clock) -> Moment:
    """Now, on both clocks."""
    return Moment(at_ms=clock.now_ms(), awake_ms=clock.awake_ms())


def over(place: Place, now_ms: int) -> PaneStatus:
    """The last word about a pane that is dropped."""
    host, pane = place
    return PaneStatus(
        host=host, pane=pane, workspace=DEFAULT_WORKSPACE, seq=0, state=State.GONE, since_ms=now_ms, updated_ms=now_ms,
        evidence=Evidence.INFERRED, cause="is no longer kept", live=False,
    )  # fmt: skip


@contextlib.asynccontextmanager
async def hearing(inbox: "asyncio.Queue[Input]", *readings: Reading[Body]) -> AsyncIterator[list["asyncio.Task[None]"]]:
    """Tasks that put what the readings bring into the inbox, each in its order; ended with the block."""

    async def pump(reading: Reading[Body]) -> None:
        async for batch in reading:
            if batch:
                await inbox.put(Input(batch))

    tasks = [asyncio.create_task(pump(reading)) for reading in readings]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
