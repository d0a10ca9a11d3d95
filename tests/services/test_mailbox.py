"""The mailbox service over a real bus and store: requests, what follows from Runs, parked checks, wakes, replicas and restarts."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import redis.asyncio as redis

from builders import a_status
from mailbox_builders import COORDINATOR, SHELL, SUCCESSOR, WORKER, at_rest, at_work
from support import Deadline, running
from tocsin.bus.nats_bus import JOB_ATTEMPTS_MAX, NatsBus, connect
from tocsin.contract.faults import Unavailable
from tocsin.contract.hosting import HostCommand, HostFact, Saw, TypePointer
from tocsin.contract.mail import (
    AckMail,
    AskQuestion,
    CheckMail,
    EndWait,
    IdleAnswer,
    IdleQuestion,
    MailCommand,
    MailType,
    MailVerb,
    Message,
    ReadMail,
    ReadWakes,
    ReplyMail,
    SendMail,
    WakeDue,
    WakeState,
    Woken,
)
from tocsin.contract.messages import Body
from tocsin.contract.parties import Caller
from tocsin.contract.run import (
    CoordinatorBound,
    DispatchMoved,
    DispatchRequested,
    DispatchState,
    Launch,
    Outcome,
    Placement,
    Receipt,
    Refused,
    Report,
    RunEvent,
    RunPurged,
    RunRecorded,
    Where,
    WorkReported,
)
from tocsin.contract.subjects import DEAD, HOST_CMD, HOST_FACT, MAIL_CMD, MAIL_EVENT, MAIL_IDLE, PANE_STATUS, RUN_EVENT, WAKE_DUE
from tocsin.contract.versions import decode
from tocsin.mailbox import service
from tocsin.runtime.clock import SystemClock
from tocsin.store.views import Views

CLOCK = SystemClock()
LAUNCH = Launch(agent="codex", host="h", placement=Placement(where=Where.CURRENT))
REQUESTED = DispatchRequested(dispatch="r1.t1.1", task="t1", fence=1, launch=LAUNCH, by=COORDINATOR, brief="")
STARTED = DispatchMoved(dispatch="r1.t1.1", task="t1", fence=1, to=DispatchState.RUNNING, saw="turn_seen", pane="p9")
REPORTED = WorkReported(dispatch="r1.t1.1", task="t1", report=Report(outcome=Outcome.SUCCEEDED, body="done"), by=WORKER)


class Mail:
    """What tests ask of the service and tell it."""

    def __init__(self, bus: NatsBus, store: "redis.Redis", url: str) -> None:
        self.bus = bus
        self.store = store
        self.url = url
        self.count = 0

    async def serve(self) -> None:
        """Be one replica, on a connection of its own."""
        async with connect(self.url, name=service.NAME) as bus:
            await service.serve(bus, Views(self.store, MAIL_EVENT.name), CLOCK)

    async def ask(self, verb: MailVerb, caller: Caller = COORDINATOR, mailbox: str = "run:r1", request: str = "", **fields: Any) -> Body:
        self.count += 1
        command = MailCommand(mailbox=mailbox, request=request or f"q{self.count}", caller=caller, ask=verb, at_ms=CLOCK.now_ms(), **fields)
        return await self.bus.ask(MAIL_CMD, command, timeout_s=20)

    async def done(self, verb: MailVerb, caller: Caller = COORDINATOR, mailbox: str = "run:r1", **fields: Any) -> Receipt:
        answer = await self.ask(verb, caller, mailbox, **fields)
        assert isinstance(answer, Receipt), answer
        return answer

    async def refused(self, verb: MailVerb, caller: Caller = COORDINATOR, mailbox: str = "run:r1", **fields: Any) -> Refused:
        answer = await self.ask(verb, caller, mailbox, **fields)
        assert isinstance(answer, Refused), answer
        return answer

    async def record(self, *events: RunEvent, run: str = "r1") -> None:
        """Something is recorded of a Run."""
        recorded = RunRecorded(
            run=run, request="", caller=COORDINATOR, payload_hash="", events=events, receipt=Receipt(request=""), at_ms=CLOCK.now_ms()
        )
        await self.bus.say(RUN_EVENT, recorded)

    async def unread(self, mailbox: str = "run:r1", caller: Caller = SHELL) -> int:
        answer = await self.ask(ReadMail(), caller, mailbox)
        return answer.result["unread"] if isinstance(answer, Receipt) else -1

    async def until_unread(self, count: int, mailbox: str = "run:r1") -> None:
        async for _ in Deadline(10, f"{count} unread messages in {mailbox}"):
            if await self.unread(mailbox) == count:
                return

    async def wakes(self, mailbox: str = "run:r1") -> list[dict[str, Any]]:
        return (await self.done(ReadWakes(), SHELL, mailbox)).result["rows"]

    async def until_wake(self, state: WakeState, mailbox: str = "run:r1") -> dict[str, Any]:
        async for _ in Deadline(10, f"a wake that is {state}"):
            rows = await self.wakes(mailbox)
            if rows and rows[0]["state"] == state:
                return rows[0]
        raise AssertionError

    async def steps(self, mailbox: str = "run:r1") -> list[Woken]:
        """Every step of every wake that the ledger holds."""
        end = await self.bus.end_of(MAIL_EVENT, mailbox)
        found: list[Woken] = []
        async with self.bus.read(MAIL_EVENT, mailbox, after=0) as reading:
            async for batch in reading:
                found += [event for heard in batch for event in heard.body.events if isinstance(event, Woken)]
                if batch and batch[-1].seq >= end:
                    return found
        raise AssertionError


@pytest.fixture
async def mail(bus: NatsBus, store: "redis.Redis", nats_server: Any) -> AsyncIterator[Mail]:
    """A replica that serves, and a Run with a coordinator in pane p1 and a worker in pane p9."""
    made = Mail(bus, store, nats_server.url)
    async with running(made.serve()):
        await a_run(made)
        yield made


async def a_run(made: Mail) -> None:
    await is_served(made)
    await made.record(CoordinatorBound(generation=1, caller=COORDINATOR), REQUESTED)
    await made.record(STARTED)
    await made.until_unread(0)
    await made.until_unread(0, "dispatch:r1.t1.1")


async def is_served(made: Mail) -> None:
    async for _ in Deadline(10, "somebody serves"):
        with contextlib.suppress(Unavailable):
            if not isinstance(answer := await made.ask(ReadMail(), SHELL), Refused) or answer.code != "unavailable":
                return


class Hints:
    """Hints for parked waits, as they are said."""

    def __init__(self, bus: NatsBus) -> None:
        self.bus = bus
        self.said: list[WakeDue] = []

    async def __aenter__(self) -> "Hints":
        async def hear(message: Any) -> None:
            self.said.append(decode(WakeDue, message.data))

        self.subscription = await self.bus.client.subscribe(WAKE_DUE.all, cb=hear)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.subscription.unsubscribe()


def a_question(**fields: Any) -> IdleQuestion:
    defaults: dict[str, Any] = {
        "host": "h", "pane": "p1", "agent": "claude", "session": "s1", "stop_hook_active": False, "at_ms": CLOCK.now_ms(),
    }  # fmt: skip
    return IdleQuestion(**(defaults | fields))


def guidance(body: str = "try the other way") -> SendMail:
    return SendMail(message=Message(id="", type=MailType.GUIDANCE, sender="", subject="", body=body, at_ms=0))


# ------------------------------------------------------------------ mail


async def test_a_report_becomes_mail_that_is_handed_out_until_it_is_acked(mail):
    await mail.record(REPORTED)
    await mail.until_unread(1)
    first = await mail.done(CheckMail())
    again = await mail.done(CheckMail())
    assert first.result["delivery"] == again.result["delivery"]
    assert (first.result["repeat"], again.result["repeat"]) == (False, True)
    [message] = first.result["messages"]
    assert (message["type"], message["sender"], message["body"]) == ("report", "dispatch:r1.t1.1", "done")
    acked = await mail.done(AckMail(delivery=first.result["delivery"]))
    assert (acked.duplicate, await mail.unread()) == (False, 0)
    assert (await mail.done(AckMail(delivery=first.result["delivery"]))).duplicate
    assert (await mail.done(CheckMail())).result["messages"] == []


async def test_i04_a_record_that_is_heard_again_is_the_same_message_whatever_the_bus_remembers(mail):
    await mail.record(REPORTED)
    await mail.until_unread(1)
    # Another life reads the log from its beginning, as if nothing had ever been acked.
    await mail.bus._jetstream.delete_consumer(RUN_EVENT.stream, service.NAME)
    await mail.record(REPORTED)
    await mail.until_unread(2)
    rows = (await mail.done(ReadMail(), SHELL)).result["rows"]
    assert len({row["message"]["id"] for row in rows}) == 2


async def test_i08_a_full_ledger_refuses_aloud_takes_nothing_back_and_what_a_run_told_meanwhile_comes_when_there_is_room(mail, monkeypatch):
    monkeypatch.setattr(service, "FULL_AGAIN_S", 0.05)
    put_off: list[str] = []
    monkeypatch.setattr(service, "log", lambda event, *level, **fields: put_off.append(event))
    stream = await mail.bus._jetstream.stream_info(MAIL_EVENT.stream)
    small = stream.config.evolve(max_bytes=stream.state.bytes + 30_000)
    await mail.bus._jetstream.update_stream(small)
    sent = 0
    while isinstance(answer := await mail.ask(guidance(f"{sent} " + "x" * 500)), Receipt):
        sent += 1
    assert (answer.code, sent > 20) == ("ledger_full", True)
    await mail.record(REPORTED)
    async for _ in Deadline(20, "the report was put off more often than a job that nobody survives is given out"):
        if put_off.count("record.not_taken") > JOB_ATTEMPTS_MAX + 5:
            break
    assert await mail.unread() == sent
    state = (await mail.bus._jetstream.stream_info(MAIL_EVENT.stream)).state
    assert state.bytes <= small.max_bytes
    await mail.bus._jetstream.update_stream(stream.config)
    await mail.until_unread(sent + 1)
    rows = (await mail.done(ReadMail(limit=100), SHELL)).result["rows"]
    assert {row["message"]["body"].split()[0] for row in rows} == {*map(str, range(sent)), "done"}
    assert await mail.bus.end(DEAD) == 0


async def test_a_repeated_request_meets_its_own_delivery(mail):
    await mail.record(REPORTED)
    await mail.until_unread(1)
    first = await mail.done(CheckMail(), request="same")
    again = await mail.done(CheckMail(), request="same")
    assert again.duplicate
    assert again.result["delivery"] == first.result["delivery"]
    assert again.result["messages"] == first.result["messages"]


async def test_the_same_request_with_other_content_is_refused(mail):
    await mail.done(guidance("one"), mailbox="dispatch:r1.t1.1", request="same")
    assert (await mail.refused(guidance("two"), mailbox="dispatch:r1.t1.1", request="same")).code == "request_mismatch"


@pytest.mark.parametrize(
    ("mailbox", "caller", "code"),
    [
        ("dispatch:r1.t9.1", COORDINATOR, "no_reader"),
        ("run:r9", COORDINATOR, "no_reader"),
        ("nonsense", COORDINATOR, "not_found"),
        ("@all", SHELL, "run_required"),
        ("run:r1", Caller(role=WORKER.role, name="w", dispatch="r2.t1.1", vouched=True), "not_found"),
        ("run:r1", Caller(role=WORKER.role, name="w", dispatch="r1.t1.1"), "sender_not_assignee"),
    ],
)
async def test_a_send_that_nobody_would_read_or_that_is_not_allowed_is_refused_with_its_next_step(mail, mailbox, caller, code):
    refused = await mail.refused(guidance(), caller, mailbox)
    assert refused.code == code
    assert refused.next


async def test_a_sender_cannot_say_who_it_is_and_control_characters_do_not_travel(mail):
    forged = Message(id="x", type=MailType.STATUS, sender="person", subject="s", body="a\x1b[31mb", at_ms=0)
    await mail.done(SendMail(message=forged), WORKER)
    [row] = (await mail.done(ReadMail(), SHELL)).result["rows"]
    assert row["message"]["sender"] == "dispatch:r1.t1.1"
    assert row["message"]["body"] == "a\ufffd[31mb"
    assert row["message"]["id"] != "x"


async def test_a_group_reaches_the_live_workers_of_its_run_and_a_repeat_reaches_the_same_ones(mail):
    await mail.record(msgspec.structs.replace(REQUESTED, dispatch="r1.t2.1", task="t2"))
    await mail.until_unread(0, "dispatch:r1.t2.1")
    send = SendMail(message=msgspec.structs.replace(guidance().message, run="r1"))
    first = await mail.done(send, mailbox="@codex", request="same")
    assert first.result["to"] == ["r1.t1.1", "r1.t2.1"]
    await mail.record(msgspec.structs.replace(REQUESTED, dispatch="r1.t3.1", task="t3"))
    await mail.until_unread(0, "dispatch:r1.t3.1")
    again = await mail.done(send, mailbox="@codex", request="same")
    assert again.result["to"] == first.result["to"]
    assert await mail.unread("dispatch:r1.t1.1") == await mail.unread("dispatch:r1.t2.1") == 1
    assert await mail.unread("dispatch:r1.t3.1") == 0


async def test_a_rebind_fences_the_old_coordinator_and_frees_its_batch(mail):
    await mail.record(REPORTED)
    await mail.until_unread(1)
    held = (await mail.done(CheckMail())).result["delivery"]
    await mail.record(CoordinatorBound(generation=2, caller=SUCCESSOR, before=COORDINATOR))
    async for _ in Deadline(10, "the new coordinator reads"):
        answer = await mail.ask(CheckMail(), SUCCESSOR)
        if isinstance(answer, Receipt):
            break
    assert answer.result["delivery"] != held
    assert len(answer.result["messages"]) == 1
    assert (await mail.refused(CheckMail(), COORDINATOR)).code == "consumer_fenced"
    assert (await mail.refused(AckMail(delivery=held), SUCCESSOR)).code == "stale_delivery"


async def test_the_mail_of_a_run_that_is_purged_is_gone(mail):
    await mail.record(REPORTED)
    await mail.until_unread(1)
    await mail.record(RunPurged())
    async for _ in Deadline(10, "the mailboxes are gone"):
        answer = await mail.ask(ReadMail(), SHELL)
        if isinstance(answer, Refused) and isinstance(await mail.ask(ReadMail(), SHELL, "dispatch:r1.t1.1"), Refused):
            return


# ------------------------------------------------------------- questions


async def test_a_question_reaches_the_coordinator_and_its_answer_the_asker_and_both_are_closed(mail):
    question = (await mail.done(AskQuestion(question="left?", options=("yes", "no")), WORKER, request="ask")).result["question"]
    assert (await mail.done(AskQuestion(question="left?", options=("yes", "no")), WORKER, request="ask")).duplicate
    [message] = (await mail.done(CheckMail())).result["messages"]
    assert (message["id"], message["type"], message["options"]) == (question, "question", ["yes", "no"])
    waits = await mail.refused(guidance(), mailbox="dispatch:r1.t1.1")
    assert waits.code == "asker_waits"
    assert question in waits.message
    await mail.done(ReplyMail(question=question, body="yes"))
    [answer] = (await mail.done(CheckMail(), WORKER, "dispatch:r1.t1.1")).result["messages"]
    assert (answer["type"], answer["thread"], answer["body"]) == ("answer", question, "yes")
    assert (await mail.refused(ReplyMail(question=question, body="no"))).code == "already_decided"
    await mail.done(guidance(), mailbox="dispatch:r1.t1.1")


async def test_a_question_of_a_dispatch_that_is_settled_needs_no_answer(mail):
    question = (await mail.done(AskQuestion(question="left?"), WORKER)).result["question"]
    await mail.record(msgspec.structs.replace(STARTED, to=DispatchState.STOPPED))
    async for _ in Deadline(10, "the question is closed"):
        if not (await mail.done(ReadMail(), SHELL, "dispatch:r1.t1.1")).result["questions"]:
            break
    assert (await mail.refused(ReplyMail(question=question, body="yes"))).code == "already_decided"


# ------------------------------------------------------------ parked checks


async def parked(mail: Mail, **fields: Any) -> "asyncio.Task[Body]":
    """A check that waits, once the log holds that it does."""
    before = await mail.bus.end_of(MAIL_EVENT, "run:r1")
    task = asyncio.create_task(mail.ask(CheckMail(wait_ms=15_000), **fields))
    async for _ in Deadline(10, "the check is parked"):
        if await mail.bus.end_of(MAIL_EVENT, "run:r1") > before:
            return task
    raise AssertionError


async def test_a_parked_check_is_answered_by_the_mail_it_waits_for_and_nobody_is_woken(mail):
    await mail.bus.say(PANE_STATUS, at_rest(agent="claude"))
    task = await parked(mail)
    await mail.record(REPORTED)
    answer = await task
    assert isinstance(answer, Receipt)
    assert [message["type"] for message in answer.result["messages"]] == ["report"]
    assert await mail.wakes() == []


async def test_the_time_limit_of_a_wait_reaches_the_service(mail):
    answer = await mail.done(CheckMail(wait_ms=50))
    assert (answer.result["delivery"], answer.result["messages"]) == (None, [])


async def test_a_caller_that_hangs_up_ends_its_wait(mail):
    task = await parked(mail, request="parked")
    await mail.done(EndWait(wait="parked"))
    answer = await task
    assert isinstance(answer, Receipt)
    assert answer.result["messages"] == []


async def test_another_callers_wait_is_refused_while_one_is_parked_and_the_same_callers_takes_its_place(mail):
    first = await parked(mail, request="first")
    other = msgspec.structs.replace(COORDINATOR, name="another command")
    assert (await mail.refused(CheckMail(wait_ms=5_000), other)).code == "waiter_exists"
    second = await parked(mail, request="second")
    answer = await first
    assert isinstance(answer, Receipt)
    assert answer.result["messages"] == []
    await mail.record(REPORTED)
    answer = await second
    assert isinstance(answer, Receipt)
    assert len(answer.result["messages"]) == 1


async def test_a_parked_check_of_a_coordinator_that_is_replaced_is_told_so(mail):
    task = await parked(mail)
    await mail.record(CoordinatorBound(generation=2, caller=SUCCESSOR))
    answer = await task
    assert isinstance(answer, Refused)
    assert answer.code == "consumer_fenced"


# ------------------------------------------------------------------ wakes


async def test_an_idle_claude_gets_a_hint_and_the_handler_that_asks_gets_the_line_once(mail):
    await mail.bus.say(PANE_STATUS, at_rest(agent="claude"))
    async with Hints(mail.bus) as hints:
        await mail.record(REPORTED)
        async for _ in Deadline(10, "a hint"):
            if hints.said:
                break
    assert (hints.said[0].pane, hints.said[0].session) == ("p1", "s1")
    claims = [await mail.bus.ask(MAIL_IDLE, a_question(pane=None, parked=True), timeout_s=2) for _ in range(2)]
    assert all(isinstance(claim, IdleAnswer) for claim in claims)
    lines = [claim.pointer for claim in claims]
    assert lines[0] is not None
    assert "tocsin mail check" in lines[0]
    assert lines[1] is None
    await mail.bus.say(PANE_STATUS, at_work(2, started_ms=CLOCK.now_ms(), agent="claude"))
    row = await mail.until_wake(WakeState.DELIVERED)
    assert (row["rung"], row["proof"], row["cause"]) == ("native", "turn 2 has started", "report")
    assert len(await mail.wakes()) == 1


async def test_an_idle_codex_is_typed_to_and_the_hands_and_the_turn_prove_it(mail):
    await mail.bus.say(PANE_STATUS, at_rest(agent="codex"))
    await mail.record(REPORTED)
    async with mail.bus.work(HOST_CMD, "h", name="hands") as orders:
        async for job in orders:
            order: HostCommand = job.body
            await job.done()
            break
    assert isinstance(order.order, TypePointer)
    assert order.order.pane == "p1"
    fact = HostFact(
        host="h", dispatch=order.dispatch, fence=order.fence, step=order.step, saw=Saw.TYPED, at_ms=CLOCK.now_ms(), wake=order.order.wake
    )
    await mail.bus.say(HOST_FACT, fact)
    async for _ in Deadline(10, "the word of the hands is heard"):
        if (await mail.wakes())[0]["proof"] == "written":
            break
    await mail.bus.say(PANE_STATUS, at_work(2, started_ms=CLOCK.now_ms(), agent="codex"))
    await mail.until_wake(WakeState.DELIVERED)


async def test_an_idle_hook_is_answered_for_its_own_session_alone(mail):
    await mail.bus.say(PANE_STATUS, at_work(agent="claude"))
    await mail.record(REPORTED)
    await mail.until_wake(WakeState.HELD)
    nested = await mail.bus.ask(MAIL_IDLE, a_question(session="s2"), timeout_s=2)
    elsewhere = await mail.bus.ask(MAIL_IDLE, a_question(pane="p5"), timeout_s=2)
    assert (nested.pointer, elsewhere.pointer) == (None, None)
    own = await mail.bus.ask(MAIL_IDLE, a_question(), timeout_s=2)
    assert own.pointer is not None
    assert (await mail.wakes())[0]["rung"] == "idle_hook"
    assert (await mail.bus.ask(MAIL_IDLE, a_question(), timeout_s=2)).pointer is None


async def test_a_session_whose_environment_names_no_pane_is_found_by_its_id(mail):
    await mail.bus.say(PANE_STATUS, at_work(agent="codex"))
    await mail.record(REPORTED)
    await mail.until_wake(WakeState.HELD)
    answer = await mail.bus.ask(MAIL_IDLE, a_question(pane=None, agent="codex"), timeout_s=2)
    assert answer.pointer is not None


async def test_a_worker_with_mail_is_called_when_its_turn_ends(mail):
    await mail.bus.say(PANE_STATUS, at_work(agent="codex", pane="p9", session="s9"))
    await mail.done(guidance(), mailbox="dispatch:r1.t1.1")
    await mail.until_wake(WakeState.HELD, "dispatch:r1.t1.1")
    answer = await mail.bus.ask(MAIL_IDLE, a_question(pane=None, agent="codex", session="s9"), timeout_s=2)
    assert "Dispatch r1.t1.1" in answer.pointer


async def test_heartbeats_and_status_wake_nobody(mail):
    await mail.bus.say(PANE_STATUS, at_rest(agent="claude"))
    status = SendMail(message=Message(id="", type=MailType.STATUS, sender="", subject="", body="half way", at_ms=0))
    for _ in range(5):
        await mail.done(status, WORKER)
    await mail.until_unread(5)
    assert await mail.wakes() == []


# -------------------------------------------------- replicas and restarts


async def test_two_replicas_wake_once(bus, store, nats_server):
    made = Mail(bus, store, nats_server.url)
    async with running(made.serve()), running(made.serve()), Hints(bus) as hints:
        await a_run(made)
        await bus.say(PANE_STATUS, at_rest(agent="claude"))
        for _ in range(5):
            await made.record(REPORTED)
        await made.until_unread(5)
        await bus.ask(MAIL_IDLE, a_question(pane=None, parked=True), timeout_s=2)
        await bus.say(PANE_STATUS, at_work(2, started_ms=CLOCK.now_ms(), agent="claude"))
        await made.until_wake(WakeState.DELIVERED)
        await bus.say(PANE_STATUS, at_rest(2, ended_ms=CLOCK.now_ms(), agent="claude"))
        await made.done(guidance(), SHELL, "dispatch:r1.t1.1")
    assert len({hint.wake for hint in hints.said}) == 1
    offers = [(step.wake, step.rung) for step in await made.steps() if step.state is WakeState.OFFERED and not step.claimed]
    assert len({wake for wake, _ in offers}) == 1
    assert len(offers) == len(set(offers))


async def test_after_a_restart_and_a_wiped_store_the_same_unread_mail_wakes_nobody_again(bus, store, nats_server):
    made = Mail(bus, store, nats_server.url)
    async with running(made.serve()):
        await a_run(made)
        await bus.say(PANE_STATUS, at_rest(agent="claude"))
        await made.record(REPORTED)
        await made.until_wake(WakeState.OFFERED)
        await bus.ask(MAIL_IDLE, a_question(pane=None, parked=True), timeout_s=2)
        await bus.say(PANE_STATUS, at_work(2, started_ms=CLOCK.now_ms(), agent="claude"))
        await made.until_wake(WakeState.DELIVERED)
    await store.flushall()
    await bus.say(PANE_STATUS, at_rest(2, ended_ms=CLOCK.now_ms(), agent="claude"))
    async with running(made.serve()), Hints(bus) as hints:
        await is_served(made)
        # Something new is told, and by then the old one has been looked at.
        await made.record(REPORTED)
        async for _ in Deadline(10, "the new one is told"):
            if hints.said:
                break
    told = {step.wake: step.messages for step in await made.steps()}
    [first, second] = told.values()
    assert (len(first), len(second)) == (1, 1)
    assert first != second


async def test_a_question_whose_replica_was_stopped_before_it_was_told_is_told_by_the_next(bus, store, nats_server, monkeypatch):
    made = Mail(bus, store, nats_server.url)

    async def stopped(self: object, address: str, question: str) -> None:
        return None

    with monkeypatch.context() as patched:
        patched.setattr("tocsin.mailbox.commands.Commands.tell_question", stopped)
        async with running(made.serve()):
            await a_run(made)
            await made.done(AskQuestion(question="left?"), WORKER)
            assert await made.unread() == 0
    async with running(made.serve()):
        await is_served(made)
        await made.until_unread(1)


def test_a_status_of_the_builders_is_of_the_coordinators_pane():
    assert (a_status().host, a_status().pane, a_status().session) == ("h", "p1", "s1")
