"""The loop: hear statuses and worktrees, keep the order, say the list when something shown has changed.

The subject of the list is its own lease: a list is said with the sequence that the last one must have. Who is refused has
been overtaken and stands by, with the order at hand, until a difference stands unpublished for too long.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from tocsin.bus.bus import Bus, Heard, Overtaken, Unavailable
from tocsin.contract import metrics
from tocsin.contract.ids import WorkspaceId, WorktreeId
from tocsin.contract.messages import AttentionRaised, HostKnown, PaneStatus, Row, WorktreeKnown, WorktreesSorted
from tocsin.contract.subjects import ATTENTION_RAISED, HOST_KNOWN, PANE_STATUS, WORKTREE_KNOWN, WORKTREE_MOVED, WORKTREE_SORTED
from tocsin.contract.tally import Sample, Source, Tally, by_word
from tocsin.runtime.clock import Clock
from tocsin.runtime.logs import log
from tocsin.sorter.core.bell import DWELL_MS
from tocsin.sorter.core.board import Board
from tocsin.sorter.edition import Edition, differs

RETRY_MS = 500
"""Pause before a bus that did not answer is asked again."""

COMPARE_EVERY_MS = 500
"""How often a standby looks for a difference, at most: comparing a thousand rows takes milliseconds."""

PATIENCE_MS_MAX = 60_000
"""Two replicas that see different things take the subject from each other ever more seldom, down to once in this time."""

SAVE_S_MAX = 1.0
"""Longest wait for the store at the end."""

TIMED_MAX = 1_000
"""Hooks between two lists whose way is timed; of more than that the latest ones stand for all."""


@dataclass(frozen=True)
class Pace:
    """Limits of the loop, in awake milliseconds."""

    settle_ms: int = 100  # design: at most one list per window, the first change after quiet at once
    dwell_ms: int = DWELL_MS
    patience_ms: int = 3_000  # a replica takes over within 5 s
    save_ms: int = 2_000  # lists between two saves are only missed when bus and sorter are lost together
    refill_ms: int = 35_000  # pane-host says its last values again every 30 s


class Store(Protocol):
    """What the loop knows of the store."""

    async def load(self, workspace: WorkspaceId) -> WorktreesSorted | None:
        """The last list. Raises Unavailable."""
        ...

    async def save(self, workspace: WorkspaceId, encoded: bytes) -> None:
        """Keep this list. Raises Unavailable."""
        ...


class Role(StrEnum):
    """What a sorter does for its workspace."""

    COLD = "cold"  # has not yet heard all last values: the last list stands
    ACTIVE = "active"  # publishes
    STANDBY = "standby"  # somebody else publishes


class Ring(NamedTuple):
    """An alarm that is said once the list that shows it is on record."""

    pane: str
    before: int
    said: AttentionRaised


class Sorter:
    """One replica for one workspace. `hear_*` take what came; `turn` does whatever is due and tells when to come again."""

    def __init__(
        self, bus: Bus, store: Store, clock: Clock, workspace: WorkspaceId, new_birth: Callable[[], str], pace: Pace | None = None
    ) -> None:
        self.role = Role.COLD
        self.pace = pace or Pace()
        self._bus = bus
        self._store = store
        self._clock = clock
        self._workspace = workspace
        self._name = WORKTREE_SORTED.at(workspace)
        self._new_birth = new_birth
        self._board = Board(workspace, clock.awake_ms(), self.pace.dwell_ms)
        self._complete: set[str] = set()
        self._edition: Edition | None = None  # what readers have, whoever said it
        self._seq = 0
        self._returns = bus.returns
        self._lost = False  # the bus may have lost the list
        self._away = False
        self._attempt: Edition | None = None  # has no ack and may be on record all the same
        self._awaited: set[WorktreeId] = set()  # rows of a restored list that the bus has lost and nobody has named again
        self._awaited_until = 0
        self._unsaid: set[WorktreeId] = set()  # rows that may differ from the edition's in anything
        self._must_say = False
        self._said_at = clock.awake_ms() - self.pace.settle_ms
        self._rings: list[Ring] = []
        self._differs_since: int | None = None
        self._compared_at = clock.awake_ms() - COMPARE_EVERY_MS
        self._patience_ms = self.pace.patience_ms
        self._unsaved: Edition | None = None
        self._saved_at = clock.awake_ms() - self.pace.save_ms
        self._tally = Tally(metrics.LISTS, metrics.ATTENTION_RAISED)
        self._on_the_way: deque[int] = deque(maxlen=TIMED_MAX)  # when hooks came that the next list will show (UTC ms)

    def samples(self) -> Iterator[Sample]:
        """What this one has said, and the list that stands."""
        yield from self._tally.samples()
        yield Sample(metrics.LEASE, (), self.role is Role.ACTIVE)
        if self._edition is not None:
            yield Sample(metrics.LIST_VERSION, (), self._edition.version)
            yield from by_word(metrics.ROWS, (str(row.attention_class) for row in self._edition.rows.values()))

    # ------------------------------------------------------------ hearing

    def hear_statuses(self, batch: Sequence[Heard[PaneStatus]]) -> None:
        """Statuses, or word that all last ones have been heard."""
        now_ms, awake_ms = self._clock.now_ms(), self._clock.awake_ms()
        # What is overdue was due before this was heard.
        self._board.expire(awake_ms)
        for heard in batch:
            came_ms = self._board.hear_status(heard.body, now_ms, awake_ms)
            if came_ms is not None and self.role is Role.ACTIVE:
                self._on_the_way.append(came_ms)
        if not batch:
            self._hear_end(PANE_STATUS.name)

    def hear_worktrees(self, batch: Sequence[Heard[WorktreeKnown]]) -> None:
        """Worktrees, or word that all last ones have been heard."""
        now_ms, awake_ms = self._clock.now_ms(), self._clock.awake_ms()
        self._board.expire(awake_ms)
        for heard in batch:
            self._board.hear_worktree(heard.body, now_ms, awake_ms)
        if not batch:
            self._hear_end(WORKTREE_KNOWN.name)

    def hear_hosts(self, batch: Sequence[Heard[HostKnown]]) -> None:
        """Words of hosts that they are there. None is awaited: only hosts that have spoken can fall silent."""
        now_ms, awake_ms = self._clock.now_ms(), self._clock.awake_ms()
        for heard in batch:
            self._board.hear_host(heard.body, now_ms, awake_ms)

    def hear_lists(self, batch: Sequence[Heard[WorktreesSorted]]) -> None:
        """Lists that somebody else says, while this one stands by; or word that all have been heard."""
        if self.role is not Role.STANDBY:
            return
        if not batch:
            self._hear_end(WORKTREE_SORTED.name)
        elif batch[-1].seq != self._seq:
            self._adopt(batch[-1].body, batch[-1].seq)

    def _hear_end(self, name: str) -> None:
        self._complete.add(name)
        if self._bus.returns != self._returns:
            self._returns = self._bus.returns
            self._lost = True

    # ------------------------------------------------------------ at work

    async def turn(self) -> int | None:
        """Do all that is due; returns the awake moment at which more is due, None when only news brings more."""
        try:
            due = await self._turn()
        except Unavailable as error:
            if not self._away:
                log("bus.away", "warning", error=str(error))
            self._away = True
            return self._clock.awake_ms() + RETRY_MS
        self._away = False
        return due

    async def save(self) -> None:
        """Keep what readers have, if the store does not have it yet."""
        edition, self._unsaved = self._unsaved, None
        if edition is None:
            return
        self._saved_at = self._clock.awake_ms()
        try:
            await self._store.save(self._workspace, edition.encoded)
        except Unavailable as error:
            log("list.not_saved", "warning", error=str(error))
            self._unsaved = self._unsaved or edition

    async def open(self) -> None:
        """Find the last list. When only the store has it, say it again as it was, marked: better old than nothing. Raises Unavailable."""
        last = await self._bus.last(WORKTREE_SORTED, self._workspace)
        if last is not None:
            self._adopt(last.body, last.seq)
            if last.body is not None and last.body.restored:
                self._await_rows()
            return
        try:
            stored = await self._store.load(self._workspace)
        except Unavailable as error:
            # It would only bridge the time until all is heard.
            log("list.not_loaded", "warning", error=str(error))
            return
        if stored is None:
            return
        # A new birth: readers may have seen later versions than the store has.
        old = Edition.of(stored)
        restored = Edition(self._workspace, self._new_birth(), 1, old.at_ms, old.order, old.rows, old.tails, restored=True)
        self._adopt(stored, 0)
        try:
            self._seq = await self._bus.say_encoded(WORKTREE_SORTED, self._name, restored.encoded, after=0)
        except Overtaken:
            await self.open()
            return
        self._edition = restored
        self._await_rows()
        log("list.restored", rows=len(restored.order))

    def _await_rows(self) -> None:
        """The bus has lost what it knew: that it has handed over all last values says nothing until they have been said again."""
        self._awaited = set(self._edition.rows) if self._edition is not None else set()
        self._awaited_until = self._clock.awake_ms() + self.pace.refill_ms

    async def _turn(self) -> int | None:
        now_ms, awake_ms = self._clock.now_ms(), self._clock.awake_ms()
        self._board.expire(awake_ms)
        if self._lost:
            await self._look_at_the_bus()
        self._refresh(now_ms, awake_ms)
        if self.role is Role.COLD:
            due = self._begin(awake_ms)
        elif self.role is Role.STANDBY:
            due = self._stand_by(awake_ms)
        else:
            due = None
        if self.role is Role.ACTIVE:
            due = await self._publish(now_ms, awake_ms)
        if self._unsaved is not None and self._clock.awake_ms() >= self._saved_at + self.pace.save_ms:
            await self.save()
        save_at = None if self._unsaved is None else self._saved_at + self.pace.save_ms
        return min((at for at in (due, save_at, self._board.due()) if at is not None), default=None)

    def _refresh(self, now_ms: int, awake_ms: int) -> None:
        """Bring the rows up to date, and see whether anything that is shown differs from the published list."""
        changed, moved = self._board.refresh(now_ms, awake_ms)
        self._unsaid |= changed
        if self._awaited:  # from nothing, too, a view of keys is taken by a walk over all of them
            self._awaited -= self._board.rows.keys()
        shown = self._edition.rows if self._edition is not None else {}
        self._must_say |= moved or any(differs(shown.get(one), self._board.rows.get(one)) for one in changed)

    def _begin(self, awake_ms: int) -> int | None:
        """Leave the cold start once all last values have been heard, or the rows that a lost bus must hear again, or time is up."""
        if not {PANE_STATUS.name, WORKTREE_KNOWN.name} <= self._complete:
            return None
        if self._awaited and awake_ms < self._awaited_until:
            return self._awaited_until
        self._awaited.clear()
        self.role = Role.ACTIVE
        self._must_say = True
        log("sorter.active", rows=len(self._board.rows))
        return None

    # --------------------------------------------------------- publishing

    async def _publish(self, now_ms: int, awake_ms: int) -> int | None:
        """Say the list if it is due; returns when to come again."""
        for pane in self._board.bell.ready(awake_ms):
            said, before = self._board.ring(pane)
            self._rings.append(Ring(pane, before, said))
        self._refresh(now_ms, awake_ms)
        if self._must_say:
            settled_at = self._said_at + self.pace.settle_ms
            if awake_ms < settled_at:
                return settled_at
            await self._say(now_ms, awake_ms)
            if self.role is not Role.ACTIVE:
                return self._clock.awake_ms()
            if self._must_say:
                return self._clock.awake_ms() + self.pace.settle_ms
        self._on_the_way.clear()  # what is not on record now changed nothing that is shown
        if self._rings:
            await self._ring()
        return self._board.bell.due()

    async def _say(self, now_ms: int, awake_ms: int) -> None:
        before = self._edition or Edition.first(self._workspace, self._new_birth())
        unsaid, self._unsaid = self._unsaid, set()
        changed: dict[WorktreeId, Row | None] = {one: self._board.rows.get(one) for one in unsaid}
        edition = before.next(now_ms, self._board.order(), changed)
        # A list of another life, or one that the bus has lost, is said again also when it is the same.
        again = self._edition is None or before.restored or self._seq == 0
        self._must_say = False
        if not again and edition.same_to_see(before, unsaid):
            self._unsaid |= {one for one in unsaid if before.rows.get(one) != edition.rows.get(one)}
            return
        try:
            seq = await self._bus.say_encoded(WORKTREE_SORTED, self._name, edition.encoded, after=self._seq)
        except (Overtaken, Unavailable) as error:
            self._unsaid |= unsaid
            self._must_say = True
            if isinstance(error, Unavailable):
                self._attempt = edition
                raise
            await self._look_at_the_bus()
            return
        self._said_at = awake_ms
        self._on_record(edition, seq)
        self._tally.add(metrics.LISTS)
        while self._on_the_way:
            self._tally.time(metrics.CHAIN, max(0, self._clock.now_ms() - self._on_the_way.popleft()) / 1000)
        if before.version:
            # A reader that misses it finds a gap in the versions, and asks for the list.
            with contextlib.suppress(Unavailable):
                await self._bus.say(WORKTREE_MOVED, edition.moved(before, unsaid))
        await self._ring()

    def _on_record(self, edition: Edition, seq: int) -> None:
        self._edition, self._seq = edition, seq
        self._unsaved = edition
        self._attempt = None

    async def _ring(self) -> None:
        """Say the alarms whose rows are on record. After that: who holds the lease has rung, nobody else will."""
        while self._rings:
            ring = self._rings[0]
            # A prompt that was answered while the bus was away needs nobody any more.
            if self._board.bell.has_rung(ring.pane):
                await self._bus.say(ATTENTION_RAISED, ring.said)
                self._tally.add(metrics.ATTENTION_RAISED, ring.said.cause)
                log("bell.rang", worktree=ring.said.worktree, pane=ring.said.pane, cause=ring.said.cause.value)
            self._rings.pop(0)

    # -------------------------------------------------------------- lease

    async def _look_at_the_bus(self) -> None:
        """Who said the last list? Raises Unavailable."""
        last = await self._bus.last(WORKTREE_SORTED, self._workspace)
        self._lost = False
        if last is None:
            # The bus keeps lists in memory and was started again.
            self._seq = 0
            self._must_say = True
            self._differs_since = self._clock.awake_ms() if self.role is Role.STANDBY else None
            return
        if last.seq == self._seq:
            return
        if self._attempt is not None and last.body is not None and Edition.of(last.body) == self._attempt:
            # Ours, whose ack was lost.
            self._on_record(self._attempt, last.seq)
            return
        if self.role is Role.ACTIVE:
            self._step_back()
        self._adopt(last.body, last.seq)

    def _adopt(self, body: WorktreesSorted | None, seq: int) -> None:
        """Somebody else said this list: it is what readers have now. None: another version of Tocsin said it."""
        self._edition, self._seq = Edition.of(body) if body is not None else None, seq
        self._unsaved = self._attempt = None
        self._unsaid = {*(self._edition.rows if self._edition is not None else ()), *self._board.rows}
        self._differs_since = None
        self._must_say = True
        if body is None:
            log("list.of_another_version", "warning", seq=seq)
            return
        self._board.remember_rings(body, self._clock.now_ms(), self._clock.awake_ms())

    def _step_back(self) -> None:
        for ring in reversed(self._rings):
            self._board.bell.take_back(ring.pane, ring.before, self._clock.now_ms(), self._clock.awake_ms())
            self._board.touch(ring.pane)
        self._rings.clear()
        self._on_the_way.clear()
        self.role = Role.STANDBY
        log("sorter.standing_by")

    def _stand_by(self, awake_ms: int) -> int | None:
        """Take over when a difference between this order and the published one has stood for too long."""
        # A prompt that should have rung, and no list says that it did.
        unrung = bool(self._board.bell.ready(awake_ms))
        if self._must_say or (unrung and self._differs_since is None):
            compare_at = self._compared_at + COMPARE_EVERY_MS
            if awake_ms < compare_at:
                return compare_at
            self._compared_at = awake_ms
            self._must_say = False
            if self._agrees() and not unrung:
                self._differs_since = None
                self._patience_ms = self.pace.patience_ms
            elif self._differs_since is None:
                self._differs_since = awake_ms
        if self._differs_since is None:
            return self._board.bell.due()
        takes_over_at = self._differs_since + self._patience_ms
        if awake_ms < takes_over_at:
            return takes_over_at
        self.role = Role.ACTIVE
        self._patience_ms = min(2 * self._patience_ms, PATIENCE_MS_MAX)
        self._differs_since = None
        self._must_say = True
        log("sorter.took_over", seq=self._seq)
        return None

    def _agrees(self) -> bool:
        if self._edition is None or self._seq == 0 or self._edition.restored or list(self._edition.order) != self._board.order():
            return False
        shown, rows = self._edition.rows, self._board.rows
        # Whether it rang is for the one to say who rings.
        self._unsaid = {one for one in self._unsaid if shown.get(one) != rows.get(one)}
        return not any(differs(shown.get(one), rows.get(one), but=("active_at", "rang")) for one in self._unsaid)


async def run(
    bus: Bus, store: Store, clock: Clock, workspace: WorkspaceId, new_birth: Callable[[], str], pace: Pace | None = None,
    show: Callable[[Source], None] = lambda source: None,
) -> None:  # fmt: skip
    """Keep one workspace's list true, until cancelled. `show` is told what has numbers to show."""
    sorter = Sorter(bus, store, clock, workspace, new_birth, pace)
    show(sorter.samples)
    news = asyncio.Event()

    async def hear_statuses() -> None:
        async with bus.follow(PANE_STATUS) as reading:
            async for batch in reading:
                sorter.hear_statuses(batch)
                news.set()

    async def hear_worktrees() -> None:
        async with bus.follow(WORKTREE_KNOWN) as reading:
            async for batch in reading:
                sorter.hear_worktrees(batch)
                news.set()

    async def hear_hosts() -> None:
        async with bus.follow(HOST_KNOWN) as reading:
            async for batch in reading:
                sorter.hear_hosts(batch)
                news.set()

    async def hear_lists() -> None:
        async with bus.follow(WORKTREE_SORTED, workspace) as reading:
            async for batch in reading:
                sorter.hear_lists(batch)
                news.set()
                if sorter.role is not Role.STANDBY:
                    return

    while True:
        try:
            await sorter.open()
            break
        except Unavailable as error:
            log("bus.away", "warning", error=str(error))
            await asyncio.sleep(RETRY_MS / 1000)
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(hear_statuses())
            tasks.create_task(hear_worktrees())
            tasks.create_task(hear_hosts())
            lists: asyncio.Task[None] | None = None
            while True:
                news.clear()
                due = await sorter.turn()
                if sorter.role is Role.STANDBY and (lists is None or lists.done()):
                    lists = tasks.create_task(hear_lists())
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(None if due is None else max(0, due - clock.awake_ms()) / 1000):
                        await news.wait()
    finally:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SAVE_S_MAX):
                await sorter.save()
