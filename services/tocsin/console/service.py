"""The loop: hear the list, tell every viewer what is new to it, and count the day."""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from tocsin.bus.bus import Bus, Unavailable
from tocsin.console.core.day import SLOT_MS, Sample, Tally
from tocsin.console.core.lists import Editions, change, name_of, order_of, plain_notice, whole
from tocsin.console.core.moves import Watch
from tocsin.console.core.telemetry import Telemetry
from tocsin.contract.ids import WorkspaceId, WorktreeId
from tocsin.contract.messages import WorktreesSorted
from tocsin.contract.notices import Mark, NoticeDue
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.subjects import TELEMETRY_COUNTED, WORKTREE_SORTED
from tocsin.contract.telemetry import AnyCounted, TelemetryCounted
from tocsin.listing.marks import MINE, by_worktree
from tocsin.listing.orders import SMART
from tocsin.listing.plain import plain_marks
from tocsin.runtime.clock import Clock
from tocsin.runtime.logs import log

BEAT_S = 10.0
"""How often a viewer hears that its stream lives. Its page gives up on one that is silent for more than twice as long."""

PROBE_S = 2.0
"""How often the bus is asked whether it is there: a list that nobody changes looks the same as a bus that is away."""

VIEWERS_MAX = 200
"""Streams at once. Half of what the server takes in connections is left for everything else."""


NOTICES_KEPT_MAX = 32
"""Notices that a stream which is behind can still be handed; more at one moment come as a summary."""


class Store(Protocol):
    """What the loop knows of the store."""

    async def put_sample(self, sample: Sample) -> None:
        """Keep a sample. Raises Unavailable."""
        ...


class Event(NamedTuple):
    """One event of a stream. `id`: the edition that the viewer has after it; empty when it says nothing about the list."""

    name: str
    data: dict[str, Any]
    id: str = ""


class Live:
    """The list as it stands, and everybody who looks at it."""

    def __init__(self, bus: Bus, store: Store, clock: Clock, workspace: WorkspaceId, beat_s: float = BEAT_S) -> None:
        self.workspace = workspace
        self.away_since_ms: int | None = None
        self._bus = bus
        self._store = store
        self._clock = clock
        self._beat_s = beat_s
        self._editions = Editions()
        self._heard = False  # all last values were handed over: no list now means that nobody publishes one
        self.telemetry = Telemetry()
        self._viewers: dict[asyncio.Event, str] = {}  # and the order that each has chosen
        self.marks: Mapping[WorktreeId, Mark] = {}
        """What the person has marked."""
        self._listeners: set[asyncio.Event] = set()
        self._notices: deque[NoticeDue] = deque(maxlen=NOTICES_KEPT_MAX)
        self._notices_heard = 0
        self._tally = Tally()
        self._closed = False

    # ------------------------------------------------------------ reading

    def latest(self) -> WorktreesSorted | Refusal:
        """The list. Refuses: unavailable, no_list; a list that nobody can vouch for is never shown as an empty one."""
        body = self._editions.latest
        if body is not None:
            return body
        if self.away_since_ms is not None or not self._heard:
            return Refusal(Code.UNAVAILABLE, "the bus does not answer, so nobody knows the list")
        return Refusal(Code.NO_LIST, f"nobody publishes the list of workspace {self.workspace} yet: is the sorter running?")

    @contextlib.asynccontextmanager
    async def viewer(self, sort: str, before: str | None) -> AsyncIterator[asyncio.Event | None]:
        """Look at the list: an event that is set whenever something is new. None when too many look already.

        `before`: the order that this viewer had until now, if it has only chosen another.
        """
        if len(self._viewers) >= VIEWERS_MAX:
            yield None
            return
        news = asyncio.Event()
        self._viewers[news] = sort
        try:
            await self._count(self.telemetry.sorted_by(before, sort))
            yield news
        finally:
            del self._viewers[news]

    @contextlib.contextmanager
    def listener(self) -> Iterator[asyncio.Event]:
        """An event that is set whenever something is new, for another part of this console."""
        news = asyncio.Event()
        self._listeners.add(news)
        try:
            yield news
        finally:
            self._listeners.discard(news)

    async def stream(self, news: asyncio.Event, watch: Watch, sort: str, has: str | None, until_ms: int) -> AsyncIterator[Event]:
        """What a viewer is told that has the edition `has` (None: nothing), until the service stops or `until_ms` (UTC) is over.

        `list`: all of it. `change`: what differs. `none`: there is no list, and why. `bus`: whether the bus is away, and since
        when. `moved`: `topics` of `watch` that have moved. `marks`: the person's, and the order that follows from them. `notice`:
        something to show now. `beat`: the stream lives. Each carries `now`, the service's clock.
        """
        known = self._editions.find(has)
        refused: str | None = None
        away: int | None = None
        marks: Mapping[WorktreeId, Mark] = {}  # a page forgets them with its stream
        notices = self._notices_heard
        # A viewer that was cut off and has missed nothing must see that its line stands again.
        yield self._event("beat", {})
        while not self._closed and self._clock.now_ms() < until_ms:
            news.clear()
            body = self.latest()
            if moved := watch.take():
                yield self._event("moved", {"topics": moved})
            if self.away_since_ms != away:
                away = self.away_since_ms
                yield self._event("bus", {"away_since": away})
            if isinstance(body, Refusal):
                if refused != body.code:
                    refused = body.code
                    yield self._event("none", body.public())
            elif known is None:
                known, refused = body, None
                yield self._event("list", whole(body, sort, self.marks, self._clock.now_ms()), name_of(body))
            elif known != body:
                before, known, refused = known, body, None
                yield self._event("change", change(before, body, sort, self.marks, self._clock.now_ms()), name_of(body))
            if self.marks != marks:
                marks = self.marks
                order = {"order": order_of(known, sort, marks, self._clock.now_ms())} if known is not None and sort == MINE else {}
                yield self._event("marks", {"marks": plain_marks(marks)} | order)
            for notice in self._notices_after(notices):
                yield self._event("notice", plain_notice(notice))
            notices = self._notices_heard
            try:
                async with asyncio.timeout(self._beat_s):
                    await news.wait()
            except TimeoutError:
                yield self._event("beat", {})

    def _event(self, name: str, data: dict[str, Any], edition: str = "") -> Event:
        return Event(name, {**data, "now": self._clock.now_ms()}, edition)

    def mark(self, marks: Iterable[Mark]) -> None:
        """These are the person's marks now."""
        self.marks = by_worktree(marks)
        self._tell()

    def notice(self, notice: NoticeDue) -> None:
        """Show this on every page that shows notices."""
        self._notices.append(notice)
        self._notices_heard += 1
        self._tell()

    def _notices_after(self, heard: int) -> list[NoticeDue]:
        new = min(self._notices_heard - heard, len(self._notices))
        return list(self._notices)[-new:] if new else []

    def close(self) -> None:
        """End every stream: the service stops, and a page that is told so looks for another replica at once."""
        self._closed = True
        self._tell()

    # ------------------------------------------------------------ hearing

    async def run(self) -> None:
        """Hear until cancelled."""
        hearing = [asyncio.create_task(self._hear()), asyncio.create_task(self._probe()), asyncio.create_task(self._sample())]
        try:
            done, _ = await asyncio.wait(hearing, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in hearing:
                task.cancel()
            await asyncio.wait(hearing)
            await self._put(self._clock.now_ms() // SLOT_MS)

    async def _hear(self) -> None:
        async with self._bus.follow(WORKTREE_SORTED, self.workspace) as follow:
            async for batch in follow:
                self._heard = True
                self._here()
                for heard in batch[-1:]:
                    self._editions.hear(heard.body)
                    self._tally.hear(heard.body, self._clock.now_ms())
                self._tell()
                for heard in batch:
                    if not heard.body.restored:
                        is_sorted_smart = SMART in self._viewers.values()
                        await self._count(self.telemetry.listed(heard.body.worktrees, is_sorted_smart, self._clock.awake_ms()))

    async def _count(self, counted: Iterable[AnyCounted]) -> None:
        """Say what was counted. What the bus does not take is lost: it is no fact that anything depends on."""
        with contextlib.suppress(Unavailable):
            for one in counted:
                await self._bus.say(TELEMETRY_COUNTED, TelemetryCounted(workspace=self.workspace, at_ms=self._clock.now_ms(), counted=one))

    async def _probe(self) -> None:
        while True:
            await asyncio.sleep(PROBE_S)
            try:
                await self._bus.birth(WORKTREE_SORTED)
            except Unavailable as error:
                if self.away_since_ms is None:
                    self.away_since_ms = self._clock.now_ms()
                    self._tally.silence()
                    log("bus.away", "warning", error=str(error))
                    self._tell()
            else:
                self._here()

    def _here(self) -> None:
        if self.away_since_ms is not None:
            self.away_since_ms = None
            self._tell()

    def _tell(self) -> None:
        for news in (*self._viewers, *self._listeners):
            news.set()

    async def _sample(self) -> None:
        while True:
            now_ms = self._clock.now_ms()
            slot = now_ms // SLOT_MS
            await asyncio.sleep(((slot + 1) * SLOT_MS - now_ms) / 1000)
            await self._put(slot)

    async def _put(self, slot: int) -> None:
        sample = self._tally.take(slot)
        if sample is None:
            return
        try:
            await self._store.put_sample(sample)
        except Unavailable as error:
            log("sample.not_stored", "warning", error=str(error))
