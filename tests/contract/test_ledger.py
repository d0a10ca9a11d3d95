"""The ledger over a real NATS and a real Valkey: who wins, what a repeat meets, and what survives kills and wipes."""

import asyncio
import shutil
import signal
from contextlib import asynccontextmanager

import msgspec
import pytest
import redis.asyncio as redis

from support import Deadline
from tocsin.bus.nats_bus import connect
from tocsin.contract.decision import Decision
from tocsin.contract.faults import Unavailable
from tocsin.contract.parties import Caller, Role
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.run import Receipt, Restored, RunPurged, RunRecorded, TaskAdded, TaskSpec
from tocsin.contract.subjects import MIB, RUN_EVENT
from tocsin.contract.table import Table
from tocsin.ledger import Family, Ledger
from tocsin.ledger.ledger import BYTES_MAX
from tocsin.ledger.receipts import Kept, Receipts
from tocsin.ledger.verify import Fault, rebuild, verify
from tocsin.store.keys import view
from tocsin.store.views import Views

ME = Caller(role=Role.PERSON, name="dev@h")


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """Counts notes."""

    id: str
    count: int = 0
    notes: Table[str, str] = msgspec.field(default_factory=Table)
    is_over: bool = False


def evolve(tally: Tally, recorded: RunRecorded) -> Tally:
    for event in recorded.events:
        match event:
            case TaskAdded(task=task):
                tally = msgspec.structs.replace(tally, count=tally.count + 1, notes=tally.notes.set(task.id, task.title))
            case RunPurged():
                tally = Tally(id=tally.id, is_over=True)
    return tally


FAMILY = Family(RUN_EVENT, Tally, lambda run: Tally(id=run), evolve, over=lambda tally: tally.is_over)


def note(name: str, text: str = "") -> TaskAdded:
    return TaskAdded(task=TaskSpec(id=name, title=text, spec=""))


def add(name: str, text: str = ""):
    """Add a note, unless there is one of that name."""

    def decide(tally: Tally) -> Decision | Refusal:
        if name in tally.notes:
            return Refusal(Code.TASK_EXISTS, f"{name} is {tally.notes[name]!r}")
        return Decision((note(name, text),), {"count": tally.count + 1})

    return decide


def count(tally: Tally) -> Decision:
    return Decision((note(f"n{tally.count}"),), {"count": tally.count + 1})


@asynccontextmanager
async def a_ledger(bus, store, told: list | None = None):
    def log(event, level="info", **fields):
        (told if told is not None else []).append((event, fields))

    async with Ledger(bus, Views(store, RUN_EVENT.name), FAMILY, lambda: 1000, log) as ledger:
        await ledger.ready()
        yield ledger


async def ask(ledger, decide, request="q1", run="r1", payload=None, caller=ME):
    return await ledger.run(run, decide, request=request, caller=caller, payload=payload or {"q": request}, at_ms=1)


# ------------------------------------------------------------ one command


async def test_what_was_decided_is_on_record_and_in_the_state_before_the_answer(bus, store):
    async with a_ledger(bus, store) as ledger:
        receipt = await ask(ledger, add("a", "first"))
        assert isinstance(receipt, Receipt)
        assert (receipt.seq, receipt.result, receipt.duplicate) == (1, {"count": 1}, False)
        assert ledger.state("r1").notes["a"] == "first"
        assert (await bus.last(RUN_EVENT, "r1")).body.events == (note("a", "first"),)


async def test_the_same_request_again_meets_its_own_receipt_and_changes_nothing(bus, store):
    async with a_ledger(bus, store) as ledger:
        first = await ask(ledger, count)
        again = await ask(ledger, count)
        assert (again.seq, again.result, again.duplicate) == (first.seq, first.result, True)
        assert ledger.state("r1").count == 1


async def test_the_same_request_id_with_other_content_is_refused_and_another_callers_is_not_the_same(bus, store):
    async with a_ledger(bus, store) as ledger:
        await ask(ledger, count, payload={"a": 1})
        assert (await ask(ledger, count, payload={"a": 2})).code is Code.REQUEST_MISMATCH
        other = Caller(role=Role.PERSON, name="else@h")
        assert (await ask(ledger, count, payload={"a": 2}, caller=other)).result == {"count": 2}


async def test_a_refusal_and_a_success_without_events_record_nothing(bus, store):
    async with a_ledger(bus, store) as ledger:
        await ask(ledger, add("a"))
        assert (await ask(ledger, add("a"), "q2")).code is Code.TASK_EXISTS
        assert (await ask(ledger, lambda tally: Decision((), {"seen": tally.count}), "q3")).result == {"seen": 1}
        assert await bus.end(RUN_EVENT) == 1


async def test_a_refusal_that_records_something_is_told_again_to_a_repeat(bus, store):
    def refuse(tally: Tally) -> Decision:
        return Decision((note("told"),), refusal=Refusal(Code.STALE_DISPATCH, "kept, and changes nothing"))

    async with a_ledger(bus, store) as ledger:
        for _ in range(2):
            answer = await ask(ledger, refuse)
            assert (answer.code, answer.message) == (Code.STALE_DISPATCH, "kept, and changes nothing")
        assert ledger.state("r1").count == 1


async def test_a_command_that_would_record_more_than_the_bus_should_carry_is_refused_and_names_the_way(bus, store):
    async with a_ledger(bus, store) as ledger:
        answer = await ask(ledger, add("a", "x" * BYTES_MAX))
        assert answer.code is Code.TOO_LARGE
        assert "in parts" in answer.message
        assert await bus.end(RUN_EVENT) == 0


async def test_j02_a_record_that_is_larger_than_the_bus_takes_is_refused_with_the_limit_and_the_ledger_goes_on(nats_server, store):
    nats_server.end()
    nats_server.payload_max = "1MB"
    nats_server.start()
    async with connect(nats_server.url, name="small") as bus, a_ledger(bus, store) as ledger:
        refused = await ask(ledger, add("a", "x" * MIB))
        assert refused.code is Code.TOO_LARGE
        assert f"the bus takes {MIB}" in refused.message
        assert ledger.state("r1") is None
        assert (await ask(ledger, add("a", "x" * (MIB - 1024)), "q2")).seq == 1
        assert (bus.returns, bus.client.stats["reconnects"]) == (0, 0)


async def test_a_full_log_drops_nothing_and_says_that_it_is_full(bus, store):
    config = (await bus._jetstream.stream_info(RUN_EVENT.stream)).config
    await bus._jetstream.update_stream(config.evolve(max_bytes=20_000))
    async with a_ledger(bus, store) as ledger:
        answers = [await ask(ledger, add(f"a{n}", "x" * 2000), f"q{n}") for n in range(12)]
        assert answers[-1].code is Code.LEDGER_FULL
        kept = ledger.state("r1").count
        assert kept == sum(isinstance(answer, Receipt) for answer in answers) > 0
        info = await bus._jetstream.stream_info(RUN_EVENT.stream)
        assert info.state.messages == kept


# ---------------------------------------------------------- two at once


async def test_two_replicas_never_both_win_and_the_loser_decides_again_on_what_the_winner_wrote(nats_server, store):
    async with (
        connect(nats_server.url, name="one") as one, connect(nats_server.url, name="two") as two,
        a_ledger(one, store) as first, a_ledger(two, store) as second,
    ):  # fmt: skip
        for number in range(30):
            results = await asyncio.gather(
                *(ask(ledger, count, f"q{number}.{who}") for who, ledger in enumerate((first, second, first, second)))
            )
            assert sorted(result.result["count"] for result in results) == [4 * number + n for n in (1, 2, 3, 4)]


async def test_a_replica_that_has_not_heard_yet_still_refuses_by_what_the_log_says(nats_server, store):
    async with (
        connect(nats_server.url, name="one") as one, connect(nats_server.url, name="two") as two,
        a_ledger(one, store) as first, a_ledger(two, store) as second,
    ):  # fmt: skip
        for number in range(20):
            await ask(first, add(f"a{number}", "one"), f"q{number}")
            answer = await ask(second, add(f"a{number}", "two"), f"p{number}")
            assert (answer.code, answer.message) == (Code.TASK_EXISTS, f"a{number} is 'one'")


async def test_a_repeat_at_another_replica_meets_the_receipt_too(nats_server, store):
    async with (
        connect(nats_server.url, name="one") as one, connect(nats_server.url, name="two") as two,
        a_ledger(one, store) as first, a_ledger(two, store) as second,
    ):  # fmt: skip
        for number in range(20):
            mine = await ask(first, count, f"q{number}")
            again = await ask(second, count, f"q{number}")
            assert (again.result, again.seq, again.duplicate) == (mine.result, mine.seq, True)


async def test_a_change_is_handed_to_every_replica_once(nats_server, store):
    async with (
        connect(nats_server.url, name="one") as one, connect(nats_server.url, name="two") as two,
        a_ledger(one, store) as first, a_ledger(two, store) as second,
    ):  # fmt: skip
        got: dict[int, list] = {0: [], 1: []}

        async def watch(index, ledger):
            async for change in ledger.changes():
                got[index].append((change.before.count, change.after.count, change.seq))

        watching = [asyncio.create_task(watch(index, ledger)) for index, ledger in enumerate((first, second))]
        await asyncio.sleep(0)
        for number in range(10):
            await ask((first, second)[number % 2], count, f"q{number}")
        async for _ in Deadline(5, "both have heard all"):
            if all(len(heard) >= 10 for heard in got.values()):
                break
        assert got[0] == got[1] == [(n, n + 1, n + 1) for n in range(10)]
        for task in watching:
            task.cancel()


class LosesAcks:
    """A bus whose next say is on record and not acked."""

    def __init__(self, bus):
        self._bus = bus
        self.lose = 0

    def __getattr__(self, name):
        return getattr(self._bus, name)

    async def say(self, *args, **kwargs):
        seq = await self._bus.say(*args, **kwargs)
        if self.lose:
            self.lose -= 1
            raise Unavailable("no ack")
        return seq


async def test_a_command_whose_ack_was_lost_finds_itself_on_record_and_is_no_duplicate(bus, store):
    lossy = LosesAcks(bus)
    async with a_ledger(lossy, store) as ledger:
        await ask(ledger, count)
        lossy.lose = 1
        receipt = await ask(ledger, count, "q2")
        assert (receipt.result, receipt.seq, receipt.duplicate) == ({"count": 2}, 2, False)
        assert await bus.end(RUN_EVENT) == 2


# ------------------------------------------------------------------ views


async def flushed(ledger) -> None:
    async for _ in Deadline(5, "the views are written"):
        await ledger.flush()
        if not ledger._dirty:
            return


async def test_a_view_holds_what_the_log_says_and_only_what_changed_is_written(bus, store):
    async with a_ledger(bus, store) as ledger:
        await ask(ledger, add("a", "1"))
        await flushed(ledger)
        await store.hset(view(RUN_EVENT.name, "r1"), "notes/a", b'"untouched"')
        await ask(ledger, add("b", "2"), "q2")
        await flushed(ledger)
        stored = await Views(store, RUN_EVENT.name).one("r1")
        assert (stored.seq, stored.parts["notes/a"], stored.parts["notes/b"]) == (2, b'"untouched"', b'"2"')
        _, _, findings = await verify(bus, Views(store, RUN_EVENT.name), FAMILY)
        assert [(one.id, one.fault, one.detail) for one in findings] == [("r1", Fault.WRONG, "differs in notes/a")]
        assert await rebuild(bus, Views(store, RUN_EVENT.name), FAMILY) == 1
        assert await verify(bus, Views(store, RUN_EVENT.name), FAMILY) == (1, 2, [])


async def test_an_older_view_never_overwrites_a_newer_one_and_one_with_a_hole_is_refused(store):
    views = Views(store, "run.event")
    mark = await views.mark("life", "log")
    assert await views.write(mark, "r1", 5, {"head": b"5"}) == "WRITTEN"
    assert await views.write(mark, "r1", 4, {"head": b"4"}) == "OLDER"
    assert await views.write(mark, "r1", 5, {"head": b"other"}, base=4) == "OLDER"
    assert await views.write(mark, "r1", 9, {"head": b"9"}, base=7) == "HOLE"
    assert await views.write(mark, "r1", 7, {"head": b"7"}, gone=["x"], base=3) == "WRITTEN"
    assert (await views.one("r1")).parts == {"head": b"7"}


async def test_a_write_into_another_life_of_the_store_or_of_another_log_is_refused(store):
    views = Views(store, "run.event")
    mark = await views.mark("life", "log")
    await store.flushall()
    assert await views.write(mark, "r1", 1, {"head": b"1"}) == "WIPED"
    other = await views.mark("life2", "log2")
    assert await views.write(other._replace(log="log"), "r1", 1, {"head": b"1"}) == "WIPED"
    assert (await views.mark("life3", "log3", "log")).log == "log2", "who does not know the log that is there does not replace it"
    assert (await views.mark("life3", "log3", "log2")) == ("life2", "log3")


async def test_a_start_goes_on_from_the_views_and_from_what_the_log_has_beyond_them(bus, store):
    async with a_ledger(bus, store) as ledger:
        for number in range(5):
            await ask(ledger, count, f"q{number}", run=f"r{number % 2}")
        await flushed(ledger)
        await ledger._bus.say(RUN_EVENT, RunRecorded(
            run="r0", request="x", caller=ME, payload_hash="h", events=(note("late"),), at_ms=1, receipt=Receipt(request="x", after=5)
        ), after=5)  # fmt: skip
    told: list = []
    async with a_ledger(bus, store, told) as ledger:
        assert {one: state.count for one, state in ledger.states().items()} == {"r0": 4, "r1": 2}
        assert (await ask(ledger, count, "q4", run="r0")).duplicate
        assert ("views.loaded", {"family": "run.event", "aggregates": 2}) in told


async def test_a_store_that_was_wiped_is_filled_again_from_what_is_known(bus, store):
    told: list = []
    async with a_ledger(bus, store, told) as ledger:
        for number in range(4):
            await ask(ledger, count, f"q{number}", run=f"r{number}")
        await flushed(ledger)
        await store.flushall()
        await ask(ledger, count, "q9", run="r0")
        async for _ in Deadline(10, "all views are back"):
            with_all = await verify(bus, Views(store, RUN_EVENT.name), FAMILY)
            if with_all == (4, 5, []):
                break
        assert "store.wiped" in [event for event, _ in told]


async def test_with_a_wiped_store_a_start_reads_the_whole_log(bus, store):
    async with a_ledger(bus, store) as ledger:
        for number in range(60):
            await ask(ledger, count, f"q{number}", run=f"r{number % 20}")
    await store.flushall()
    async with a_ledger(bus, store) as ledger:
        assert {state.count for state in ledger.states().values()} == {3}
        assert len(ledger.states()) == 20
        await flushed(ledger)
        assert await verify(bus, Views(store, RUN_EVENT.name), FAMILY) == (20, 60, [])


async def test_a_store_that_is_away_delays_no_command_and_is_brought_up_to_date_when_it_is_back(bus, valkey_server):
    client = redis.Redis.from_url(valkey_server.url)
    async with a_ledger(bus, client) as ledger:
        await ask(ledger, count)
        valkey_server.end(signal.SIGKILL)
        for number in range(5):
            assert isinstance(await ask(ledger, count, f"p{number}"), Receipt)
        valkey_server.start()
        async for _ in Deadline(15, "the view is up to date"):
            try:
                if await verify(bus, Views(client, RUN_EVENT.name), FAMILY) == (1, 6, []):
                    break
            except Unavailable:
                continue
    await client.aclose()


# ------------------------------------------------------- the log is lost


def wipe(nats_server) -> None:
    nats_server.end(signal.SIGKILL)
    shutil.rmtree(nats_server.folder / "data")
    nats_server.start()


async def test_a_log_that_was_wiped_is_seeded_from_the_views_with_one_snapshot_each_and_then_goes_on(nats_server, store):
    async with connect(nats_server.url, name="one") as bus, a_ledger(bus, store) as ledger:
        for number in range(6):
            await ask(ledger, count, f"q{number}", run=f"r{number % 2}")
        await flushed(ledger)
    wipe(nats_server)
    told: list = []
    async with connect(nats_server.url, name="two") as bus, a_ledger(bus, store, told) as ledger:
        assert "ledger.lost" in [event for event, _ in told]
        assert {one: state.count for one, state in ledger.states().items()} == {"r0": 3, "r1": 3}
        assert ledger.restored == 2
        last = (await bus.last(RUN_EVENT, "r0")).body
        assert [type(event) for event in last.events] == [Restored]
        assert (await ask(ledger, count, "q4", run="r0")).duplicate, "receipts survive with the state"
        assert (await ask(ledger, count, "q9", run="r0")).result == {"count": 4}
        await flushed(ledger)
        assert await verify(bus, Views(store, RUN_EVENT.name), FAMILY) == (2, 3, [])


async def test_a_log_that_is_wiped_under_running_replicas_is_seeded_once_and_nothing_is_decided_meanwhile(nats_server, store):
    told: list = []
    async with (
        connect(nats_server.url, name="one") as one, connect(nats_server.url, name="two") as two,
        a_ledger(one, store, told) as first, a_ledger(two, store, told) as second,
    ):  # fmt: skip
        for number in range(8):
            await ask((first, second)[number % 2], count, f"q{number}", run=f"r{number % 4}")
        wipe(nats_server)
        counts = []
        for ledger, request in ((first, "p1"), (second, "p2")):
            async for _ in Deadline(20, "commands are taken again"):
                answer = await ask(ledger, count, request, run="r0")
                if isinstance(answer, Receipt):
                    counts.append(answer.result["count"])
                    break
                assert answer.code is Code.UNAVAILABLE
        assert counts == [3, 4]
        async for _ in Deadline(20, "every aggregate is there"):
            if await one.end(RUN_EVENT) >= 6 and first._ready.is_set() and second._ready.is_set():
                break
        records = []
        async with one.read(RUN_EVENT, after=0) as reading:
            async for batch in reading:
                records += [heard.body for heard in batch]
                if len(records) >= 6:
                    break
        snapshots = [record.run for record in records if isinstance(record.events[0], Restored)]
        assert sorted(snapshots) == ["r0", "r1", "r2", "r3"], "one snapshot each, whoever was first"


async def test_a_large_aggregate_is_seeded_in_parts(nats_server, store):
    async with connect(nats_server.url, name="one") as bus, a_ledger(bus, store) as ledger:
        for number in range(4):
            await ask(ledger, add(f"a{number}", str(number) * 1_500_000), f"q{number}")
        await flushed(ledger)
    wipe(nats_server)
    async with connect(nats_server.url, name="two") as bus:
        async with a_ledger(bus, store) as ledger:
            notes = ledger.state("r1").notes
            assert {name: (text[0], len(text)) for name, text in notes.items()} == {f"a{n}": (str(n), 1_500_000) for n in range(4)}
        await store.flushall()
        async with a_ledger(bus, store) as ledger:
            assert len(ledger.state("r1").notes) == 4, "also when it is read from the log alone"


async def test_when_both_stores_are_wiped_there_is_nothing_and_nothing_is_made_up(nats_server, store):
    async with connect(nats_server.url, name="one") as bus, a_ledger(bus, store) as ledger:
        await ask(ledger, count)
    wipe(nats_server)
    await store.flushall()
    async with connect(nats_server.url, name="two") as bus, a_ledger(bus, store) as ledger:
        assert ledger.states() == {}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_a_restart_of_the_bus_loses_nothing_and_the_same_request_goes_on(nats_server, store, number):
    async with connect(nats_server.url, name="one") as bus, a_ledger(bus, store) as ledger:
        await ask(ledger, count)
        nats_server.end(number)
        assert (await ask(ledger, count, "q2")).code is Code.UNAVAILABLE
        nats_server.start()
        async for _ in Deadline(20, "commands are taken again"):
            answer = await ask(ledger, count, "q2")
            if isinstance(answer, Receipt):
                break
        assert answer.result == {"count": 2}
        assert ledger.restored == 0


# ------------------------------------------------------------------ purge


async def test_what_is_purged_is_gone_everywhere_and_is_not_taken_for_lost(nats_server, store):
    async with (
        connect(nats_server.url, name="one") as one, connect(nats_server.url, name="two") as two,
        a_ledger(one, store) as first, a_ledger(two, store) as second,
    ):  # fmt: skip
        await ask(first, add("secret", "text"))
        await ask(first, lambda tally: Decision((RunPurged(),)), "q2")
        await first.purge("r1")
        assert first.states() == {}
        async for _ in Deadline(5, "the other has heard"):
            if second.states() == {}:
                break
        assert await Views(store, RUN_EVENT.name).one("r1") is None
        assert [type(event) for event in (await one.last(RUN_EVENT, "r1")).body.events] == [RunPurged]
        assert await verify(one, Views(store, RUN_EVENT.name), FAMILY) == (0, 0, [])
    async with connect(nats_server.url, name="three") as bus, a_ledger(bus, store) as ledger:
        assert ledger.states() == {}
        assert ledger.restored == 0


# --------------------------------------------------------------- receipts


def kept(number: int, at_ms: int = 0) -> Kept:
    return Kept(who="me", request=f"q{number}", payload_hash="", receipt=Receipt(request=f"q{number}", at_ms=at_ms))


def test_the_oldest_receipts_go_first_and_what_is_unresolved_stays(monkeypatch):
    monkeypatch.setattr("tocsin.ledger.receipts.RECEIPTS_MAX", 3)
    receipts = Receipts()
    for number in range(8):
        receipts = receipts.add(kept(number), lambda receipt: receipt.request == "q1")
    assert {one.request for one in receipts.by_number.values()} >= {"q1", "q6", "q7"}
    assert "q0" not in {one.request for one in receipts.by_number.values()}
    assert len(receipts.by_number) <= 4


def test_a_receipt_older_than_thirty_days_goes_whenever_another_comes():
    receipts = Receipts().add(kept(1, at_ms=0), lambda receipt: False)
    receipts = receipts.add(kept(2, at_ms=31 * 24 * 3_600_000), lambda receipt: False)
    assert [one.request for one in receipts.by_number.values()] == ["q2"]
