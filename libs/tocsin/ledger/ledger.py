"""The ledger of one family: decide on what the log says, append where nobody else has, keep the view behind.

The log is the truth. State of every aggregate is in memory, brought up to date by a subscription to the whole family, and by
a look at the log whenever a decision would be a refusal or nothing at all. The view in the store is written behind the
answers, with what changed alone; a store that is away delays nobody.

A log that ends before what was known of it (or is of another birth) has been lost: nothing is decided until every
aggregate is seeded again from what is known here and in the view, one `Restored` record each.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Generic, NamedTuple, TypeVar, cast
from uuid import uuid4

import msgspec

from tocsin.bus.bus import Bus, Heard
from tocsin.contract.decision import Decision
from tocsin.contract.faults import Overtaken, TooLarge, Unavailable
from tocsin.contract.messages import Body
from tocsin.contract.metrics import LEDGER_CONFLICTS, LEDGER_RESTORED
from tocsin.contract.parties import Caller, Role, payload_hash
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.run import Receipt, Refused, Restored
from tocsin.contract.tally import Sample
from tocsin.contract.versions import Unreadable
from tocsin.ledger.family import Family, Layout, Parts
from tocsin.ledger.receipts import Kept, Receipts
from tocsin.store.views import Mark, Views, Written

S = TypeVar("S", bound=msgspec.Struct)
R = TypeVar("R", bound=Body)

BYTES_MAX = 4 * 1024 * 1024
"""Largest record: the bus carries 8 MB, and a reader must be able to hold a batch of them."""

SNAPSHOT_BYTES_MAX = 2 * 1024 * 1024
"""Of one part of a snapshot; as text in a record it grows by a third."""

TRIES_MAX = 12
"""How often a command is decided again because somebody else wrote first. Eight callers at once need eight."""

LOST_ACKS_MAX = 3
CATCH_UP_S_MAX = 5.0
"""A reading that brings nothing for so long is given up, and asked for again."""

READ_ONE_BY_ONE_MAX = 16
"""Beyond so many aggregates one reading of the whole log is cheaper than a reading each."""

LARGE_BYTES = 64 * 1024
"""A record of this size is not fetched only to learn its sequence."""

STORE_RETRY_S = 1.0
STORE_LOOK_S = 5.0
"""How often the store is asked whether it is still the one that was filled."""

FLUSH_S_MAX = 2.0
CHANGES_MAX = 10_000
"""Changes that wait for a reader of `changes()`; beyond it the reader is told that some are missing."""

FULL = ("maximum bytes exceeded", "maximum messages exceeded", "insufficient resources", "insufficient storage")
"""How JetStream says that a stream that drops nothing has no room."""

_encode = msgspec.json.Encoder().encode


class Change(NamedTuple):
    """One record folded here, by whichever replica it was written."""

    id: str
    recorded: Any
    seq: int
    before: Any
    after: Any


class _Held(Generic[S]):
    """One aggregate in memory. `seq`: the last record in it."""

    __slots__ = ("after", "bytes", "id", "lock", "partial", "receipts", "seq", "state", "stored", "stored_seq", "users")

    def __init__(self, aggregate: str, state: S) -> None:
        self.id = aggregate
        self.seq = 0
        self.state = state
        self.receipts = Receipts()
        self.lock = asyncio.Lock()
        self.partial = False  # a snapshot of several parts is not all here
        self.users = 0
        self.after = 0  # sequence of the record before the last one
        self.bytes = 0  # of the last record
        self.stored: tuple[S, Receipts] | None = None  # what the view was last known to hold
        self.stored_seq = -1


class Ledger(Generic[S, R]):
    """One family's aggregates. Use as a context manager; see the package's description for how."""

    def __init__(self, bus: Bus, views: Views, family: Family[S, R], now_ms: Callable[[], int], log: Callable[..., None]) -> None:
        self._bus = bus
        self._views = views
        self._family = family
        self._layout = Layout(family)
        self._now_ms = now_ms
        self._log = log
        self._held: dict[str, _Held[S]] = {}
        self._seen = 0  # last sequence that the subscription has brought
        self._ends: dict[str, int] = {}  # last sequence of each aggregate since the subscription began anew
        self._birth = ""
        self._mark: Mark | None = None
        self._ready = asyncio.Event()
        self._dirty: dict[str, None] = {}
        self._dirt = asyncio.Event()
        self._watchers: list[asyncio.Queue[Change | None]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self.conflicts = 0
        """How often a decision was taken again because another replica had written first."""
        self.restored = 0
        """How many aggregates this replica had to seed into a log that was lost."""

    # ---------------------------------------------------------- lifetime

    async def __aenter__(self) -> "Ledger[S, R]":
        self._tasks = [asyncio.create_task(self._keep_up()), asyncio.create_task(self._keep_views())]
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None or kind is asyncio.CancelledError:
            with contextlib.suppress(TimeoutError, Unavailable):
                async with asyncio.timeout(FLUSH_S_MAX):
                    await self.flush()
        # A cancel that meets the very end of a client's request is swallowed (Python 3.11): ask until it is heard.
        while left := [task for task in self._tasks if not task.done()]:
            for task in left:
                task.cancel()
            await asyncio.wait(left, timeout=0.05)

    async def ready(self) -> None:
        """Return once everything is read: until then every command is refused as unavailable. Raises what ended the reading."""
        waiting = asyncio.create_task(self._ready.wait())
        done, _ = await asyncio.wait({waiting, *self._tasks}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        for task in done - {waiting}:
            task.result()

    async def ended(self) -> None:
        """Return never; raise what ended the reading. For a service to wait on beside its own loops."""
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    def samples(self) -> Iterator[Sample]:
        """What this replica had to do again."""
        yield Sample(LEDGER_CONFLICTS, (), self.conflicts)
        yield Sample(LEDGER_RESTORED, (), self.restored)

    # ----------------------------------------------------------- reading

    def state(self, aggregate: str) -> S | None:
        """An aggregate as it stands here; None when nothing is known of it."""
        held = self._held.get(aggregate)
        return held.state if held is not None and held.seq else None

    def states(self) -> dict[str, S]:
        """All aggregates as they stand here."""
        return {held.id: held.state for held in self._held.values() if held.seq and not held.partial and not self._family.over(held.state)}

    def seq(self, aggregate: str) -> int:
        """The last record that `state` holds; 0: none."""
        held = self._held.get(aggregate)
        return held.seq if held is not None else 0

    async def fresh(self, aggregate: str) -> S | Refusal | None:
        """An aggregate as the log has it now; None when nothing is recorded of it. Refuses: unavailable."""
        async with self._using(aggregate) as held:
            refusal = await self._look(held)
            if refusal is not None:
                return refusal
            return held.state if held.seq else None

    def receipt(self, aggregate: str, caller: Caller, request: str) -> Receipt | None:
        """The receipt of a request as it stands here."""
        held = self._held.get(aggregate)
        found = held.receipts.find(caller, request) if held is not None else None
        return found.receipt if found is not None else None

    async def changes(self) -> AsyncIterator[Change | None]:
        """Every record folded from now on, after `ready()`. None: some were missed, look at the states instead."""
        queue: asyncio.Queue[Change | None] = asyncio.Queue(CHANGES_MAX)
        self._watchers.append(queue)
        try:
            while True:
                yield await queue.get()
        finally:
            self._watchers.remove(queue)

    # ----------------------------------------------------------- writing

    async def run(
        self, aggregate: str, decide: Callable[[S], Decision | Refusal], *, request: str, caller: Caller, payload: object, at_ms: int
    ) -> Receipt | Refusal:
        """Decide on the aggregate as the log has it, and record what was decided. Refuses what `decide` does, and:
        unavailable, request_mismatch, too_large, ledger_full.
        """
        content = payload_hash(payload) if request else ""
        lost = 0
        async with self._using(aggregate) as held:
            for _ in range(TRIES_MAX):
                if held.partial or not self._ready.is_set():
                    return Refusal(
                        Code.UNAVAILABLE, f"the ledger of {self._family.subject.name} is being read; the same request may come again"
                    )
                found = held.receipts.find(caller, request) if request else None
                if found is not None:
                    return _again(found, content, is_own=lost > 0)
                decision = decide(held.state)
                if isinstance(decision, Refusal) or not decision.events:
                    before = held.seq
                    refusal = await self._look(held)
                    if refusal is not None:
                        return refusal
                    if held.seq == before:
                        return decision if isinstance(decision, Refusal) else _nothing_recorded(decision, request, at_ms)
                    continue
                recorded = self._record(held, decision, request, caller, content, at_ms)
                size = len(_encode(recorded))
                if size > BYTES_MAX:
                    return Refusal(Code.TOO_LARGE, f"it would record {size} bytes at once, the limit is {BYTES_MAX}: send it in parts")
                try:
                    seq = await self._bus.say(self._family.subject, recorded, after=held.seq)
                except Overtaken:
                    self.conflicts += 1
                    refusal = await self._look(held)
                except TooLarge as error:
                    return Refusal(Code.TOO_LARGE, f"{error}: send it in parts")
                except Unavailable as error:
                    if any(words in str(error) for words in FULL):
                        return Refusal(Code.LEDGER_FULL, f"the ledger of {self._family.subject.name} is full: nothing was recorded")
                    # Whether it is on record cannot be told from here: look, and find the receipt or decide again.
                    lost += 1
                    refusal = await self._look(held) if lost < LOST_ACKS_MAX else Refusal(Code.UNAVAILABLE, str(error))
                else:
                    self._fold(held, recorded, seq, size)
                    receipt = cast(Receipt, recorded.receipt)  # type: ignore[attr-defined]
                    return _answer(receipt, seq)
                if refusal is not None:
                    return refusal
            return Refusal(Code.UNAVAILABLE, f"{aggregate} is written by too many at once; the same request may come again")

    async def purge(self, aggregate: str) -> None:
        """Forget an aggregate for good. Its last record must say that it is over; that one stays, so that no replica
        takes the rest for lost. Raises Unavailable.
        """
        last = await self._bus.last(self._family.subject, aggregate)
        if last is not None and last.body is not None:
            await self._bus.erase(self._family.subject, aggregate)
            body: Any = last.body
            tombstone = msgspec.structs.replace(body, receipt=msgspec.structs.replace(body.receipt, after=0))
            held = _Held(aggregate, self._family.blank(aggregate))
            with contextlib.suppress(Overtaken):
                self._fold(held, tombstone, await self._bus.say(self._family.subject, tombstone, after=0))
            self._held[aggregate] = held
        await self._views.forget(aggregate)

    def unpurged(self) -> list[str]:
        """Aggregates that say that they are over, and whose purge was cut off."""
        return [held.id for held in self._held.values() if held.after and self._family.over(held.state)]

    async def flush(self) -> None:
        """Return once every view is written. Raises Unavailable while the store is away."""
        for aggregate in list(self._dirty):
            await self._write_view(aggregate)

    # ---------------------------------------------------------- catching up

    def _find(self, aggregate: str) -> _Held[S]:
        held = self._held.get(aggregate)
        if held is None:
            held = self._held[aggregate] = _Held(aggregate, self._family.blank(aggregate))
        return held

    @contextlib.asynccontextmanager
    async def _using(self, aggregate: str) -> AsyncIterator[_Held[S]]:
        """One at a time; what nothing is recorded of is not remembered, so asking for made-up names costs no memory."""
        held = self._find(aggregate)
        held.users += 1
        try:
            async with held.lock:
                yield held
        finally:
            held.users -= 1
            if not held.seq and not held.users and self._held.get(aggregate) is held:
                del self._held[aggregate]

    def _record(self, held: _Held[S], decision: Decision, request: str, caller: Caller, content: str, at_ms: int) -> R:
        refused = Refused.of(request, decision.refusal) if decision.refusal is not None else None
        receipt = Receipt(
            request=request, result=dict(decision.result), duplicate=decision.duplicate, at_ms=at_ms, after=held.seq, refused=refused
        )
        body: Any = self._family.subject.body
        recorded: R = body(
            **{self._family.key: held.id}, request=request, caller=caller, payload_hash=content, events=decision.events, receipt=receipt,
            at_ms=at_ms,
        )  # fmt: skip
        return recorded

    async def _look(self, held: _Held[S]) -> Refusal | None:
        """Bring `held` up to the log's last record of it. Refuses: unavailable, also when the log turns out to be lost."""
        try:
            if held.bytes > LARGE_BYTES and await self._bus.end(self._family.subject) <= self._seen:
                return None
            known = held.seq  # the subscription may bring more while the answer is on its way
            last = await self._bus.last(self._family.subject, held.id)
            end = last.seq if last is not None else 0
            if end < known and self._family.over(held.state):
                return None
            if end < known:
                self._doubt()
                return Refusal(Code.UNAVAILABLE, f"the log of {self._family.subject.name} has been lost and is being refilled")
            if end > held.seq:
                if last is not None and last.body is not None and _after(last.body) == held.seq:
                    self._fold(held, last.body, last.seq)
                else:
                    await self._read_one(held, end)
        except Unavailable as error:
            return Refusal(Code.UNAVAILABLE, str(error))
        if held.partial:
            return Refusal(Code.UNAVAILABLE, f"{held.id} is being refilled")
        return None

    async def _read_one(self, held: _Held[S], end: int) -> None:
        try:
            async with self._bus.read(self._family.subject, held.id, after=held.seq) as reading:
                batches = aiter(reading)
                while held.seq < end:
                    async with asyncio.timeout(CATCH_UP_S_MAX):
                        for heard in await anext(batches):
                            self._fold(held, heard.body, heard.seq)
        except TimeoutError as error:
            raise Unavailable(f"the log of {held.id} cannot be read") from error

    async def _read_many(self, ends: Mapping[str, int]) -> None:
        """Bring many aggregates up to their ends. What was purged meanwhile is left as it is."""
        behind = {one: end for one, end in ends.items() if self._find(one).seq < end}
        if len(behind) <= READ_ONE_BY_ONE_MAX:
            for one, end in behind.items():
                held = self._find(one)
                if await self._bus.end_of(self._family.subject, one) >= end > held.seq:
                    await self._read_one(held, end)
            return
        after = min(self._find(one).seq for one in behind)
        async with self._bus.read(self._family.subject, after=after) as reading:
            batches = aiter(reading)
            left = set(behind)
            while left:
                try:
                    async with asyncio.timeout(CATCH_UP_S_MAX):
                        batch = await anext(batches)
                except TimeoutError:
                    ends_now = {one: await self._bus.end_of(self._family.subject, one) for one in left}
                    left = {one for one, end in ends_now.items() if end}
                    if left:
                        raise Unavailable(f"the log of {self._family.subject.name} cannot be read") from None
                    return
                for heard in batch:
                    one = self._family.id_of(heard.body)
                    if one in behind:
                        held = self._find(one)
                        self._fold(held, heard.body, heard.seq)
                        if held.seq >= behind[one]:
                            left.discard(one)

    def _fold(self, held: _Held[S], recorded: R, seq: int, size: int | None = None) -> None:
        """One record more, if it is not in yet."""
        if seq <= held.seq:
            return
        before = held.state
        body: Any = recorded
        first = body.events[0] if body.events else None
        if isinstance(first, Restored):
            self._fold_snapshot(held, first)
        else:
            held.state, held.receipts = fold_record(self._family, held.state, held.receipts, recorded, seq)
        held.seq = seq
        held.after = _after(recorded)
        held.bytes = size if size is not None else len(_encode(recorded))
        self._soil(held.id)
        if self._ready.is_set():
            for queue in self._watchers:
                _put(queue, Change(held.id, recorded, seq, before, held.state))

    def _fold_snapshot(self, held: _Held[S], restored: Restored) -> None:
        parts = unpack(restored.snapshot)
        if restored.part > 1:
            known, _ = self._layout.changes(held.state, held.receipts, None)
            parts = {**known, **parts}
        state, held.receipts = self._layout.restore(held.id, parts)
        held.state = self._family.refilled(state)
        held.partial = restored.part < restored.of
        held.stored, held.stored_seq = None, -1

    # ------------------------------------------------------- subscription

    async def _keep_up(self) -> None:
        """Read the views, then the log, then every change, for as long as the service lives."""
        await self._load_views()
        async with self._bus.follow(self._family.subject) as reading:
            async for batch in reading:
                for heard in batch:
                    await self._hear(heard)
                if not batch:
                    await self._settle()

    async def _load_views(self) -> None:
        """What the views hold. A store that is away, or a view that cannot be read, costs a longer reading of the log."""
        try:
            self._mark = await self._views.mark(uuid4().hex)
            self._birth = self._mark.log
            async for view in self._views.all():
                if view.log != self._birth:
                    # Left over from a log that has been seeded anew since: the log itself tells.
                    continue
                try:
                    state, receipts = self._layout.restore(view.id, view.parts)
                except (msgspec.MsgspecError, ValueError, TypeError) as error:
                    self._log("view.unreadable", "warning", id=view.id, reason=str(error))
                    continue
                held = self._held[view.id] = _Held(view.id, state)
                held.receipts, held.seq = receipts, view.seq
                held.stored, held.stored_seq = (state, receipts), view.seq
            self._log("views.loaded", family=self._family.subject.name, aggregates=len(self._held))
        except Unavailable as error:
            self._log("store.unavailable", "warning", reason=str(error))

    async def _hear(self, heard: Heard[R]) -> None:
        one = self._family.id_of(heard.body)
        self._seen = max(self._seen, heard.seq)
        self._ends[one] = max(heard.seq, self._ends.get(one, 0))
        held = self._find(one)
        if heard.seq <= held.seq:
            return
        if _after(heard.body) == held.seq:
            self._fold(held, heard.body, heard.seq)
        elif self._ready.is_set():
            async with self._using(one):
                await self._look(held)

    async def _settle(self) -> None:
        """All last values have been handed over: read what is missing, and see whether the log is the one that was known."""
        while True:
            try:
                birth = await self._bus.birth(self._family.subject)
                ends, self._ends = self._ends, {}
                is_other = self._birth not in ("", birth)
                if is_other:
                    self._ready.clear()
                    self._seen = 0
                lost = [held for held in self._held.values() if held.seq and (is_other or held.seq > ends.get(held.id, 0))]
                if not is_other:
                    # What was written since is no loss.
                    known = [(held, held.seq) for held in lost]
                    lost = [held for held, seq in known if seq > await self._bus.end_of(self._family.subject, held.id)]
                if lost:
                    self._ready.clear()
                    await self._refill(lost, birth, is_other)
                await self._read_many(ends)
                before, self._birth = self._birth, birth
                await self._mark_store(instead_of=before)
                if not self._ready.is_set():
                    self._log("ledger.ready", family=self._family.subject.name, aggregates=len(self._held), birth=birth)
                    for queue in self._watchers:
                        _put(queue, None)
                self._ready.set()
                return
            except Unavailable as error:
                self._log("ledger.waiting", "warning", family=self._family.subject.name, reason=str(error))
                await asyncio.sleep(STORE_RETRY_S)

    def _doubt(self) -> None:
        """The log ends before what is known: decide nothing until that is cleared up."""
        if self._ready.is_set():
            self._ready.clear()
            self._log("ledger.lost", "error", family=self._family.subject.name)
            self._tasks.append(asyncio.create_task(self._settle()))

    # -------------------------------------------------- a log that was lost

    async def _refill(self, lost: list[_Held[S]], birth: str, is_other: bool) -> None:
        """Seed what the log has lost: one snapshot each, by whichever replica comes first. Raises Unavailable."""
        self._log("ledger.lost", "error", family=self._family.subject.name, aggregates=len(lost), birth=birth)
        for held in lost:
            async with held.lock:
                if self._family.over(held.state):
                    self._held.pop(held.id, None)
                    continue
                await self._newest(held)
                await self._seed(held, is_other)
        self._log("ledger.refilled", "warning", family=self._family.subject.name, aggregates=len(lost), seeded=self.restored)

    async def _newest(self, held: _Held[S]) -> None:
        """The view may know more than this replica did."""
        with contextlib.suppress(Unavailable, msgspec.MsgspecError):
            view = await self._views.one(held.id)
            if view is not None and view.log == self._birth and view.seq > held.seq:
                held.state, held.receipts = self._layout.restore(held.id, view.parts)
                held.seq = view.seq

    async def _seed(self, held: _Held[S], is_other: bool) -> None:
        pieces = _pack(self._layout.changes(held.state, held.receipts, None)[0])
        end = await self._bus.end_of(self._family.subject, held.id)
        at_ms = self._now_ms()
        keeper = Caller(role=Role.SERVICE, name="ledger")
        body: Any = self._family.subject.body
        known = self._family.refilled(held.state), held.receipts
        try:
            if end and (is_other or not await self._is_cut(held.id)):
                raise Overtaken(held.id)
            for number, piece in enumerate(pieces, start=1):
                restored = body(
                    **{self._family.key: held.id}, request="", caller=keeper, payload_hash="", at_ms=at_ms,
                    events=(Restored(snapshot=piece, part=number, of=len(pieces)),), receipt=Receipt(request="", at_ms=at_ms, after=end),
                )  # fmt: skip
                end = await self._bus.say(self._family.subject, restored, after=end)
            held.state, held.receipts = known
            held.seq, held.partial, held.stored, held.stored_seq = end, False, None, -1
            self.restored += 1
        except Overtaken:
            # Another replica seeds it: what it wrote is the truth now.
            held.seq, held.state, held.receipts = 0, self._family.blank(held.id), Receipts()
            held.stored, held.stored_seq = None, -1
            async with asyncio.timeout(CATCH_UP_S_MAX):
                while held.seq == 0 or held.partial:
                    await self._read_one(held, await self._bus.end_of(self._family.subject, held.id))
                    await asyncio.sleep(0.05 if held.partial else 0)
        except TimeoutError as error:
            held.state, held.receipts = known
            raise Unavailable(f"{held.id} was seeded in part") from error
        self._soil(held.id)

    async def _is_cut(self, aggregate: str) -> bool:
        """The log was put back to an earlier day, and nobody has seeded the aggregate since."""
        last = await self._bus.last(self._family.subject, aggregate)
        body: Any = last.body if last is not None else None
        return body is not None and not (body.events and isinstance(body.events[0], Restored))

    # -------------------------------------------------------------- views

    def _soil(self, aggregate: str) -> None:
        self._dirty[aggregate] = None
        self._dirt.set()

    async def _keep_views(self) -> None:
        """Write what has changed, behind the answers; fill the store again when it was wiped."""
        await self._ready.wait()
        told = False
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STORE_LOOK_S):
                    await self._dirt.wait()
            self._dirt.clear()
            if not self._ready.is_set():
                await self._ready.wait()
            try:
                if not self._dirty:
                    await self._mark_store()
                await self.flush()
                told = False
            except Unavailable as error:
                if not told:
                    self._log("store.unavailable", "warning", reason=str(error))
                told = True
                self._dirt.set()
                await asyncio.sleep(STORE_RETRY_S)

    async def _mark_store(self, instead_of: str = "") -> None:
        """See that the store is the one that was filled, and its views are of this log; else all of it must be written."""
        try:
            mark = await self._views.mark(uuid4().hex, self._birth, instead_of)
        except Unavailable:
            return
        if mark != self._mark and mark.log == self._birth:
            is_refill = self._mark is not None and self._mark.log == self._birth
            self._mark = mark
            for held in self._held.values():
                if is_refill or held.stored_seq != held.seq:
                    held.stored, held.stored_seq = (None, -1) if is_refill else (held.stored, held.stored_seq)
                    self._soil(held.id)
            if is_refill:
                self._log("store.wiped", "warning", family=self._family.subject.name, views=len(self._held))

    async def _write_view(self, aggregate: str) -> None:
        held = self._held.get(aggregate)
        if held is None or not held.seq or held.partial or self._mark is None or self._mark.log != self._birth:
            self._dirty.pop(aggregate, None)
            return
        state, receipts, seq = held.state, held.receipts, held.seq
        self._dirty.pop(aggregate, None)
        if seq == held.stored_seq:
            return
        if self._family.over(state):
            await self._views.forget(aggregate)
            return
        parts, gone = self._layout.changes(state, receipts, held.stored)
        try:
            written = await self._views.write(self._mark, aggregate, seq, parts, gone, held.stored_seq)
        except Unavailable:
            self._soil(aggregate)
            raise
        match written:
            case Written.WIPED:
                self._soil(aggregate)
                # Its life or log is another: the next round finds out which, and fills it.
                held.stored, held.stored_seq = None, -1
                await self._take_wiped()
            case Written.HOLE:
                held.stored, held.stored_seq = None, -1
                self._soil(aggregate)
            case _:
                held.stored, held.stored_seq = (state, receipts), seq

    async def _take_wiped(self) -> None:
        mark = self._mark
        await self._mark_store()
        if self._mark == mark:
            # The views are of a log that this replica does not know yet: its subscription will tell.
            raise Unavailable("the store's views are of another log")


def fold_record(family: Family[S, R], state: S, receipts: Receipts, recorded: R, seq: int) -> tuple[S, Receipts]:
    """State and receipts after one record that is no snapshot."""
    body: Any = recorded
    after = family.evolve(state, recorded)
    if not body.request:
        return after, receipts
    kept = Kept(
        who=body.caller.fingerprint,
        request=body.request,
        payload_hash=body.payload_hash,
        receipt=msgspec.structs.replace(body.receipt, seq=seq),
    )
    return after, receipts.add(kept, lambda receipt: family.unresolved(after, receipt))


def _after(recorded: Body) -> int:
    receipt: Receipt = recorded.receipt  # type: ignore[attr-defined]
    return receipt.after


def _again(found: Kept, content: str, is_own: bool) -> Receipt | Refusal:
    """What a request is answered whose receipt is on record. `is_own`: it was recorded by this very attempt, whose ack was lost."""
    if found.payload_hash != content:
        return Refusal(Code.REQUEST_MISMATCH, f"request {found.request} was used for something else")
    answer = _answer(found.receipt, found.receipt.seq)
    return answer if is_own or isinstance(answer, Refusal) else msgspec.structs.replace(answer, duplicate=True)


def _answer(receipt: Receipt, seq: int) -> Receipt | Refusal:
    if receipt.refused is not None:
        return Refusal(Code(receipt.refused.code), receipt.refused.message)
    return msgspec.structs.replace(receipt, seq=seq)


def _nothing_recorded(decision: Decision, request: str, at_ms: int) -> Receipt | Refusal:
    if decision.refusal is not None:
        return decision.refusal
    return Receipt(request=request, result=dict(decision.result), duplicate=decision.duplicate, at_ms=at_ms)


def _put(queue: "asyncio.Queue[Change | None]", change: Change | None) -> None:
    if queue.full():
        while not queue.empty():
            queue.get_nowait()
        queue.put_nowait(None)
        return
    queue.put_nowait(change)


def _pack(parts: Parts) -> list[bytes]:
    """A state's parts as pieces that fit a record each, always cut in the same way."""
    pieces: list[dict[str, msgspec.Raw]] = [{}]
    size = 0
    for name, raw in sorted(parts.items()):
        if pieces[-1] and size + len(raw) > SNAPSHOT_BYTES_MAX:
            pieces.append({})
            size = 0
        pieces[-1][name] = msgspec.Raw(raw)
        size += len(raw) + len(name)
    return [_encode(piece) for piece in pieces]


def unpack(piece: bytes) -> Parts:
    """The parts that one piece of a snapshot holds. Raises Unreadable."""
    try:
        return {name: bytes(raw) for name, raw in msgspec.json.decode(piece, type=dict[str, msgspec.Raw]).items()}
    except msgspec.MsgspecError as error:
        raise Unreadable(f"a snapshot cannot be read: {error}") from error
