"""The bus over a real NATS: order, last values, what survives a kill, and what a wrong sequence means."""

import asyncio
import dataclasses
import os
import signal

import pytest
from nats.js.api import DiscardPolicy

from builders import a_hook, a_host_command, a_run_command, a_status
from support import Deadline, running, settled
from tocsin.bus import nats_bus
from tocsin.bus.bus import Overtaken, TooLarge, Unavailable
from tocsin.bus.nats_bus import ACK_S_MAX, BATCH_MAX, JOB_ATTEMPTS_MAX, connect, encode
from tocsin.bus.streams import all_streams, stream_of
from tocsin.contract.hosting import HostFact, Saw
from tocsin.contract.mail import WakeDue
from tocsin.contract.messages import Dead, Kind
from tocsin.contract.run import CloseRun, Outcome, PauseRun, Receipt, Refused, Report, ReportWork, RunCommand
from tocsin.contract.subjects import DEAD, HOOK_REPORTED, HOST_CMD, HOST_FACT, MIB, PANE_STATUS, RUN_CMD, WAKE_DUE


async def collect(reading, into: list, count: int | None = None) -> None:
    async for batch in reading:
        into.extend(heard for heard in batch)
        if count is not None and len(into) >= count:
            return


async def test_a_reader_gets_every_message_behind_its_position_in_order(bus):
    for number in range(600):
        await bus.say(HOOK_REPORTED, a_hook(Kind.NOTED, id=f"e{number}"))
    got: list = []
    async with bus.read(HOOK_REPORTED, after=100) as reading:
        await asyncio.wait_for(collect(reading, got, 500), 10)
    assert [heard.seq for heard in got] == list(range(101, 601))
    assert [heard.body.id for heard in got] == [f"e{number}" for number in range(100, 600)]


async def test_a_repeated_say_with_the_same_message_id_counts_once(bus):
    first = await bus.say(HOOK_REPORTED, a_hook(Kind.NOTED), msg_id="same")
    assert await bus.say(HOOK_REPORTED, a_hook(Kind.NOTED), msg_id="same") == first
    assert await bus.say(HOOK_REPORTED, a_hook(Kind.NOTED), msg_id="other") == first + 1


async def test_a_follower_gets_the_last_values_then_a_mark_then_changes(bus):
    await bus.say_all(PANE_STATUS, [a_status(pane=f"p{n % 3}", seq=n) for n in range(30)])
    batches: list = []
    async with bus.follow(PANE_STATUS) as reading:
        async for batch in reading:
            batches.append({heard.body.pane: heard.body.seq for heard in batch})
            if not batch:
                await bus.say(PANE_STATUS, a_status(pane="p1", seq=99))
            elif "p1" in batches[-1] and batches[-1]["p1"] == 99:
                break
    before_mark: dict = {}
    for batch in batches[: batches.index({})]:
        before_mark.update(batch)
    assert before_mark == {"p0": 27, "p1": 28, "p2": 29}


async def test_a_follower_of_nothing_is_told_at_once_that_there_is_nothing(bus):
    async with bus.follow(PANE_STATUS) as reading:
        async for batch in reading:
            assert batch == ()
            break


async def test_of_two_writers_who_expect_the_same_last_sequence_one_is_overtaken(bus):
    seq = await bus.say(PANE_STATUS, a_status(), after=0)
    await bus.say(PANE_STATUS, a_status(seq=2), after=seq)
    with pytest.raises(Overtaken):
        await bus.say(PANE_STATUS, a_status(seq=3), after=seq)


async def test_the_last_value_of_a_subject_comes_with_its_sequence_and_of_an_empty_one_is_none(bus):
    assert await bus.last(PANE_STATUS, "h", "p") is None
    seq = await bus.say(PANE_STATUS, a_status(host="h", pane="p", seq=7))
    last = await bus.last(PANE_STATUS, "h", "p")
    assert (last.body.seq, last.seq) == (7, seq)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_after_a_restart_of_the_server_readers_go_on_without_loss_and_last_values_are_asked_for_again(nats_server, number):
    got: list = []
    marks: list = []

    async def follow(reading) -> None:
        async for batch in reading:
            marks.append(len(batch))  # noqa: PERF401 (read while it grows)

    async with connect(nats_server.url, name="test") as bus, bus.read(HOOK_REPORTED, after=0) as log, bus.follow(PANE_STATUS) as last:
        tasks = [asyncio.create_task(collect(log, got)), asyncio.create_task(follow(last))]
        birth = await bus.birth(PANE_STATUS)
        await bus.say(PANE_STATUS, a_status())
        for n in range(50):
            await bus.say(HOOK_REPORTED, a_hook(Kind.NOTED, id=f"a{n}"))
        nats_server.end(number)
        with pytest.raises(Unavailable):
            await bus.say(HOOK_REPORTED, a_hook(Kind.NOTED, id="nobody hears"))
        nats_server.start()
        async for _ in Deadline(10, "the connection comes back"):
            if bus.returns == 1:
                break
        for n in range(50):
            await bus.say(HOOK_REPORTED, a_hook(Kind.NOTED, id=f"b{n}"))
        async for _ in Deadline(10, "all are read"):
            if len(got) >= 100 and marks.count(0) == 2:
                break
        assert [heard.body.id for heard in got] == [f"a{n}" for n in range(50)] + [f"b{n}" for n in range(50)]
        assert await bus.birth(PANE_STATUS) != birth, "a store in memory begins anew"
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def test_a_slow_reader_loses_nothing(bus):
    total = BATCH_MAX * 20
    for first in range(0, total, BATCH_MAX):  # each is on disk before its ack: all at once would outlast the wait for it
        await asyncio.gather(*(bus.say(HOOK_REPORTED, a_hook(Kind.NOTED, id=f"e{n}")) for n in range(first, first + BATCH_MAX)))
    got: list = []
    async with bus.read(HOOK_REPORTED, after=0) as reading:
        async for batch in reading:
            got.extend(heard.seq for heard in batch)
            await asyncio.sleep(0)
            if len(got) >= total:
                break
    assert got == list(range(1, total + 1))


class Board:
    """What a reader shows: the last status that it was handed of each pane. `held`: it takes nothing while that is cleared."""

    def __init__(self) -> None:
        self.shown: dict[str, int] = {}
        self.held = asyncio.Event()
        self.held.set()

    async def follow(self, reading) -> None:
        async for batch in reading:
            for heard in batch:
                self.shown[heard.body.pane] = heard.body.seq
            await self.held.wait()


async def say_statuses(bus, numbers: range) -> dict[str, int]:
    """Say a status of fifty panes in turn; returns what each pane's last one is."""
    statuses = [a_status(pane=f"P{number % 50}", seq=number) for number in numbers]
    await bus.say_all(PANE_STATUS, statuses)
    return {status.pane: status.seq for status in statuses}


async def test_i02_a_reader_that_falls_behind_notices_what_it_lost_reads_it_again_and_is_not_slow_for_ever(nats_server, bus, caplog):
    async with connect(nats_server.url, name="slow", pending_msgs_max=64) as slow, slow.follow(PANE_STATUS) as reading:
        board = Board()
        async with running(board.follow(reading)):
            known = await say_statuses(bus, range(50))
            async for _ in Deadline(60, "the last value of each pane is known"):
                if board.shown == known:
                    break
            board.held.clear()
            said = await say_statuses(bus, range(50, 20_050))
            board.held.set()
            async for _ in Deadline(60, "each pane shows what was said of it last"):
                if board.shown == said:
                    break
            assert slow.dropped > 0, "the queue of this reader was too small for what came"
            assert slow.reread >= 50
            assert f"{slow.dropped} dropped, {slow.reread} read again" in caplog.messages[-1]

            dropped, reread, told = slow.dropped, slow.reread, len(caplog.messages)
            for first in range(20_050, 20_150, 10):
                said |= await say_statuses(bus, range(first, first + 10))
            async for _ in Deadline(60, "each pane shows what was said of it last"):
                if board.shown == said:
                    break
            assert (slow.dropped, slow.reread, len(caplog.messages)) == (dropped, reread, told)
            assert [(queue.pending_msgs, queue.pending_bytes) for queue in slow.client._subs.values()] == [(0, 0)] * len(slow.client._subs)


async def test_i02_who_hears_what_nothing_keeps_is_told_that_a_part_was_lost(nats_server, bus):
    heard, missed = [], []
    async with (
        connect(nats_server.url, name="slow", pending_msgs_max=1) as slow,
        slow.hear(WAKE_DUE, heard.append, lambda: missed.append(len(heard))),
    ):
        await settled(slow.client)
        for number in range(50):
            await bus.say(WAKE_DUE, WakeDue(host="h", pane=f"p{number}", wake="w1", session=None, pointer="read your mail", at_ms=0))
        async for _ in Deadline(10, "each was heard or is known to be lost"):
            if len(heard) + slow.dropped == 50:
                break
        assert len(missed) == slow.dropped > 0


async def test_i08_every_stream_has_a_bound_as_the_server_has_it(bus):
    configs = [(await bus._jetstream.stream_info(stream.name)).config for stream in all_streams()]
    assert len(configs) > 5
    for config in configs:
        assert 0 < config.max_bytes <= 2 * 1024**3, config.name
        assert config.max_msgs_per_subject == 1 or config.max_age or config.discard == DiscardPolicy.NEW, config.name


SMALL = 64 * 1024
"""Bytes of a stream in place of its hundreds of mebibytes. The bound is the server's own and a single number of the stream's
configuration, so what holds at this size holds at a million events."""

MUCH = 2_000


async def fill(bus, subject, some) -> None:
    """Make the stream of `subject` small, with all else as it is declared, and say much more than it holds."""
    await bus._jetstream.update_stream(stream_of(dataclasses.replace(subject, bytes_max=SMALL), 1))
    for first in range(0, MUCH, BATCH_MAX):
        await asyncio.gather(*(bus.say(subject, some(number)) for number in range(first, min(first + BATCH_MAX, MUCH))))


@pytest.mark.parametrize(
    ("subject", "some"),
    [
        (HOOK_REPORTED, lambda number: a_hook(Kind.NOTED, id=f"e{number}", pane=f"p{number % 40}")),
        (HOST_FACT, lambda number: HostFact(host="h", dispatch="d", fence=1, step=f"s{number}", saw=Saw.TYPED, at_ms=0)),
        (DEAD, lambda number: Dead(service="test", subject="s", reason=f"r{number}", at_ms=0, body=b"{")),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
async def test_i08_a_log_keeps_to_its_bound_with_a_reader_or_without_one_and_the_newest_stays(bus, subject, some):
    read: list = []
    async with bus.read(subject, after=0) as reading, running(collect(reading, read)):
        await fill(bus, subject, some)
        async for _ in Deadline(10, "the reader has the newest"):
            if read and read[-1].seq == MUCH:
                break
    state = (await bus._jetstream.stream_info(subject.stream)).state
    assert 0 < state.bytes <= SMALL
    assert (state.last_seq, state.messages) == (MUCH, MUCH - state.first_seq + 1)
    assert state.first_seq > 1


async def test_i08_what_is_done_leaves_the_queue_and_of_last_values_each_pane_has_one(bus):
    for number in range(100):
        await bus.say(HOST_CMD, a_host_command(step=f"s{number}"))
    async with bus.work(HOST_CMD, "h", name="pane-host-h") as jobs:
        async for job in jobs:
            await job.done()
            if job.seq == 100:
                break
    await bus.say_all(PANE_STATUS, [a_status(pane=f"P{number % 40}", seq=number) for number in range(MUCH)])
    assert [(await bus._jetstream.stream_info(one.stream)).state.messages for one in (HOST_CMD, PANE_STATUS)] == [0, 40]


@pytest.fixture
async def small_bus(nats_server):
    """A connection to a server that takes messages of a mebibyte, which is what one takes by default."""
    nats_server.end()
    nats_server.payload_max = "1MB"
    nats_server.start()
    async with connect(nats_server.url, name="small") as connected:
        assert connected.client.max_payload == MIB
        yield connected


async def test_j02_what_is_larger_than_the_bus_takes_is_refused_before_it_is_sent_and_nothing_else_on_the_line_is_hurt(small_bus):
    name, before = HOOK_REPORTED.at("h", "s"), {"msg_id": "m1", "after": 0}
    headers = len(b"NATS/1.0\r\nNats-Msg-Id: m1\r\nNats-Expected-Last-Subject-Sequence: 0\r\n\r\n")
    for extra in (1, headers, 2 * MIB):
        with pytest.raises(TooLarge, match=f"the bus takes {MIB}"):
            await small_bus.say_encoded(HOOK_REPORTED, name, b"x" * (MIB - headers + extra), **before)
    with pytest.raises(TooLarge):
        await small_bus.say_encoded(WAKE_DUE, WAKE_DUE.at("h", "p"), b"x" * (MIB + 1))
    assert await small_bus.end(HOOK_REPORTED) == 0
    # With its headers it is as large as the server takes, to the byte.
    assert await small_bus.say_encoded(HOOK_REPORTED, name, b"x" * (MIB - headers), **before) == 1
    assert (small_bus.returns, small_bus.client.stats["reconnects"]) == (0, 0)


async def test_j02_a_request_or_an_answer_that_is_too_large_is_a_refusal_with_the_limit_and_not_a_silence(small_bus):
    asked: list[str] = []

    async def handle(command: RunCommand) -> Receipt:
        asked.append(command.request)
        return Receipt(request=command.request, result={"told": "x" * (3 * MIB if command.request == "long answer" else 10)})

    report = ReportWork(report=Report(outcome=Outcome.SUCCEEDED, body="x" * 3 * MIB))
    async with small_bus.serve(RUN_CMD, handle, name="dispatcher"):
        for ask, request in ((report, "long request"), (PauseRun(), "long answer")):
            refused = await small_bus.ask(RUN_CMD, a_run_command(ask, request=request), timeout_s=5)
            assert (type(refused), refused.request, refused.code, refused.retry) == (Refused, request, "too_large", "after_change")
            assert f"the bus takes {MIB}" in refused.message
        answer = await small_bus.ask(RUN_CMD, a_run_command(PauseRun(), request="short"), timeout_s=5)
        assert answer.result == {"told": "x" * 10}
    assert asked == ["long answer", "short"]
    assert (small_bus.returns, small_bus.client.stats["reconnects"]) == (0, 0)


async def heard_behind(bus, *poison: bytes) -> list[str]:
    """The ids of what a reader of hooks hears when these messages stand in the log, and a good one behind them."""
    for one in poison:
        await bus.client.publish(HOOK_REPORTED.at("h", "s"), one)
    await bus.say(HOOK_REPORTED, a_hook(Kind.NOTED, id="good"))
    got: list = []
    async with bus.read(HOOK_REPORTED, after=0) as reading:
        await asyncio.wait_for(collect(reading, got, 1), 10)
    return [heard.body.id for heard in got]


async def test_poison_is_buried_with_its_reason_and_the_reader_goes_on(bus):
    assert await heard_behind(bus, b'{"v": 99, "id": 1}', b"not json") == ["good"]
    dead: list = []
    async with bus.read(DEAD, after=0) as reading:
        await asyncio.wait_for(collect(reading, dead, 2), 10)
    assert dead[0].body.reason == "version 99, this reader knows 1"
    assert dead[0].body.body == b'{"v": 99, "id": 1}'
    assert bus.poison == 2


@pytest.mark.parametrize("of", ["the whole", "a field that nobody knows"])
async def test_j04_a_message_that_is_nested_without_end_is_poison_as_any_other_and_ends_no_reader(bus, of):
    deep = b"[" * 100_000 + b"]" * 100_000
    poison = deep if of == "the whole" else encode(a_hook(Kind.NOTED))[:-1] + b',"later":' + deep + b"}"
    assert await heard_behind(bus, poison) == ["good"]
    assert poison.startswith((await bus.last(DEAD)).body.body)


async def test_j02_poison_as_large_as_a_message_may_be_is_put_aside_by_its_beginning_and_ends_no_reader(bus):
    poison = b"not json " + b"x" * (bus.client.max_payload - 100)
    assert await heard_behind(bus, poison) == ["good"]
    dead = (await bus.last(DEAD)).body
    assert dead.body == poison[: len(dead.body)]
    assert len(dead.body) < MIB
    assert f"of {len(poison)} bytes" in dead.reason


async def test_poison_that_cannot_be_put_aside_ends_no_reader_and_as_a_job_it_stays_until_it_can(bus, monkeypatch, caplog):
    monkeypatch.setattr(nats_bus, "JOB_ACK_S", 0.1)
    await bus._jetstream.delete_stream(DEAD.stream)
    for subject in (HOOK_REPORTED.at("h", "s"), HOST_CMD.at("h")):
        await bus.client.publish(subject, b"not json")
    await bus.say(HOOK_REPORTED, a_hook(Kind.NOTED, id="good"))
    await bus.say(HOST_CMD, a_host_command(step="good"))
    got: list = []
    async with bus.read(HOOK_REPORTED, after=0) as reading:
        await asyncio.wait_for(collect(reading, got, 1), 10)
    assert [heard.body.id for heard in got] == ["good"]
    done: list[str] = []

    async def work() -> None:
        async with bus.work(HOST_CMD, "h", name="pane-host-h") as jobs:
            async for job in jobs:
                await job.done()
                done.append(job.body.step)

    async with running(work()):
        async for _ in Deadline(10, "the good one is done"):
            if done == ["good"]:
                break
        assert any("could not be put aside" in message for message in caplog.messages)
        await bus.make_streams()
        async for _ in Deadline(20, "the other is put aside"):
            if await bus.end(HOST_CMD) == 0:
                break
    assert (await bus.last(DEAD)).body.subject == HOST_CMD.at("h")


async def test_a_request_is_answered_by_one_of_those_who_serve_or_refused(bus):
    async def handle(command: RunCommand) -> Receipt | Refused:
        if isinstance(command.ask, CloseRun):
            return Refused(request=command.request, code="run_closed", message="it is closed", retry="never")
        return Receipt(request=command.request, result={"run": command.run})

    async with bus.serve(RUN_CMD, handle, name="dispatcher"), bus.serve(RUN_CMD, handle, name="dispatcher"):
        answers = [await bus.ask(RUN_CMD, a_run_command(PauseRun(), request=f"q{n}"), timeout_s=5) for n in range(10)]
        refused = await bus.ask(RUN_CMD, a_run_command(CloseRun(), request="q"), timeout_s=5)
    assert [answer.request for answer in answers] == [f"q{n}" for n in range(10)]
    assert (type(refused), refused.code) == (Refused, "run_closed")


async def test_what_was_asked_over_a_connection_that_is_lost_is_unavailable_and_not_waited_for(nats_server):
    asked = asyncio.Event()

    async def handle(command: RunCommand) -> Receipt:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with (
        connect(nats_server.url, name="served") as other,
        connect(nats_server.url, name="asking") as bus,
        other.serve(RUN_CMD, handle, name="dispatcher"),
    ):
        answer = asyncio.create_task(bus.ask(RUN_CMD, a_run_command(PauseRun(), request="q"), timeout_s=3600))
        await asyncio.wait_for(asked.wait(), 10)
        nats_server.end(signal.SIGKILL)
        with pytest.raises(Unavailable):
            await asyncio.wait_for(answer, 30)
        nats_server.start()


async def test_a_request_that_nobody_serves_is_unavailable(bus):
    with pytest.raises(Unavailable):
        await bus.ask(RUN_CMD, a_run_command(PauseRun()), timeout_s=1)


async def test_a_job_that_is_not_done_comes_again_and_one_that_is_done_does_not(bus):
    for number in range(3):
        await bus.say(HOST_CMD, a_host_command(step=f"s{number}"))
    seen: list = []
    async with bus.work(HOST_CMD, "h", name="pane-host-h") as jobs:
        async for job in jobs:
            seen.append((job.body.step, job.attempt))
            if job.body.step == "s1" and job.attempt == 1:
                await job.again(0.01)
            else:
                await job.done()
            if len(seen) == 4:
                break
    assert seen == [("s0", 1), ("s1", 1), ("s2", 1), ("s1", 2)]
    assert await bus.end(HOST_CMD) == 0, "the queue is empty"


async def test_a_job_that_is_put_off_is_no_poison_however_often_and_another_gets_it_from_who_stops(nats_server, bus, monkeypatch):
    monkeypatch.setattr(nats_bus, "JOB_ACK_S", 0.3)
    await bus.say(HOST_CMD, a_host_command(step="waits"))
    await bus.say(HOST_CMD, a_host_command(step="next"))
    tries: list[tuple[str, int]] = []
    async with (
        asyncio.timeout(30), connect(nats_server.url, name="one") as one, one.work(HOST_CMD, "h", name="pane-host-h") as jobs,
    ):  # fmt: skip
        async for job in jobs:
            tries.append((job.body.step, job.attempt))
            if job.body.step == "next":
                await job.done()
            elif job.attempt <= 2 * JOB_ATTEMPTS_MAX:
                await job.again(0.01)
            else:
                await job.again(60)
                break
    assert [attempt for step, attempt in tries if step == "waits"] == list(range(1, 2 * JOB_ATTEMPTS_MAX + 2))
    assert ("next", 1) in tries[:3], "what is put off holds up nothing"
    async with bus.work(HOST_CMD, "h", name="pane-host-h") as jobs:
        async for job in jobs:
            assert job.body.step == "waits"
            await job.done()
            break
    assert await bus.end(HOST_CMD) == 0
    assert await bus.end(DEAD) == 0


async def test_a_job_that_is_put_off_for_longer_than_its_ack_wait_is_given_to_nobody_else_meanwhile(nats_server, bus, monkeypatch):
    monkeypatch.setattr(nats_bus, "JOB_ACK_S", 0.3)
    await bus.say(HOST_CMD, a_host_command(step="waits"))
    tries: list[int] = []

    async def another() -> None:
        async with connect(nats_server.url, name="two") as two, two.work(HOST_CMD, "h", name="pane-host-h") as jobs:
            async for job in jobs:
                raise AssertionError(job.body)

    async with bus.work(HOST_CMD, "h", name="pane-host-h") as jobs:
        async for job in jobs:
            tries.append(job.attempt)
            if job.attempt == 2:
                await job.done()
                break
            tasks = asyncio.create_task(another())
            await job.again(1.5)
    assert tries == [1, 2]
    assert not tasks.done()
    tasks.cancel()
    await asyncio.wait({tasks})


async def test_a_job_with_which_whoever_takes_it_dies_is_buried_with_its_reason(nats_server, bus, monkeypatch):
    monkeypatch.setattr(nats_bus, "JOB_ACK_S", 0.05)
    monkeypatch.setattr(nats_bus, "JOB_ATTEMPTS_MAX", 3)
    await bus.say(HOST_CMD, a_host_command(step="deadly"))
    for _ in range(3):
        async with connect(nats_server.url, name="dies") as one, one.work(HOST_CMD, "h", name="pane-host-h") as jobs:
            async for job in jobs:
                assert job.body.step == "deadly"
                break
    async with bus.work(HOST_CMD, "h", name="pane-host-h") as jobs:

        async def work() -> None:
            async for job in jobs:
                raise AssertionError(job.body)

        async with running(work()):
            async for _ in Deadline(10, "it is buried"):
                if (last := await bus.last(DEAD)) is not None:
                    break
    assert last.body.reason == "not done after 3 attempts"
    assert await bus.end(HOST_CMD) == 0


async def test_the_end_of_one_subject_is_what_its_next_writer_expects(bus):
    assert await bus.end_of(PANE_STATUS, "h", "p1") == 0
    seq = await bus.say(PANE_STATUS, a_status(host="h", pane="p1"))
    await bus.say(PANE_STATUS, a_status(host="h", pane="p2"))
    assert await bus.end_of(PANE_STATUS, "h", "p1") == seq


async def test_who_is_told_to_stop_while_an_answer_comes_in_stops(bus):
    """Python 3.11's `wait_for` forgets a cancel that meets the answer: a loop that asks went on for ever, and its service did not end."""
    await bus.say(PANE_STATUS, a_status(pane="p1"))

    async def asks() -> None:
        while True:
            await bus.birth(PANE_STATUS)

    for _ in range(300):
        asking = asyncio.create_task(asks())
        await bus.client.flush()  # an answer is on its way
        asking.cancel()
        done, _ = await asyncio.wait({asking}, timeout=5)
        assert done, "it goes on"


async def test_a_connection_may_wait_less_long_for_its_acks_than_others(nats_server):
    async with connect(nats_server.url, name="patient") as patient, connect(nats_server.url, name="hasty", ack_s_max=0.1) as hasty:
        os.kill(nats_server.process.pid, signal.SIGSTOP)
        try:
            waiting = asyncio.create_task(patient.say(HOOK_REPORTED, a_hook(Kind.NOTED, id="patient")))
            with pytest.raises(Unavailable):
                await hasty.say(HOOK_REPORTED, a_hook(Kind.NOTED, id="hasty"))
            assert not waiting.done()
        finally:
            os.kill(nats_server.process.pid, signal.SIGCONT)
        assert await waiting > 0


async def test_what_a_silent_server_does_not_acknowledge_is_unavailable_and_the_next_that_it_does_is_said(nats_server):
    async with connect(nats_server.url, name="test") as bus:
        await bus.say(HOOK_REPORTED, a_hook(Kind.NOTED, id="before"))
        os.kill(nats_server.process.pid, signal.SIGSTOP)
        try:
            first = asyncio.create_task(bus.say(HOOK_REPORTED, a_hook(Kind.NOTED, id="first")))
            given_up = asyncio.create_task(bus.say(HOOK_REPORTED, a_hook(Kind.NOTED, id="given up")))
            await asyncio.wait({first, given_up}, timeout=ACK_S_MAX / 2)
            given_up.cancel()
            second = asyncio.create_task(bus.say(HOOK_REPORTED, a_hook(Kind.NOTED, id="second")))
            with pytest.raises(Unavailable):
                await first
            with pytest.raises(Unavailable):
                await second
            assert given_up.cancelled()
        finally:
            os.kill(nats_server.process.pid, signal.SIGCONT)
        await bus.say(HOOK_REPORTED, a_hook(Kind.NOTED, id="after"))
