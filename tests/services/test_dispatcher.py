"""The dispatcher over a real NATS and a real Valkey: requests, orders, what hosts and panes show, kills and wipes."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import AsyncExitStack

import pytest

from builders import a_status
from dispatcher_builders import PERSON, PROCESS, a_launch, a_spec, worker
from dispatcher_service import Client, Clock, a_dispatcher, orders
from support import Deadline, Service
from tocsin.bus.nats_bus import connect, encode
from tocsin.contract.custody import CustodyRecorded, CustodyState, MovedTo, Settled
from tocsin.contract.faults import Unavailable
from tocsin.contract.hosting import Saw, StartAgent, StopAgent
from tocsin.contract.messages import Ask, Evidence, PaneSeen, PromptSeen, State, TurnSeen
from tocsin.contract.run import (
    ANY_RUN,
    Accept,
    AddTasks,
    Beat,
    CloseRun,
    CreateRun,
    DispatchMoved,
    DispatchRequested,
    ListRuns,
    ListTasks,
    ListWorkers,
    Outcome,
    PurgeRun,
    Receipt,
    Refused,
    Report,
    ReportMissing,
    ReportWork,
    RunCommand,
    ShowRequest,
    ShowRun,
    ShowTask,
    StartWorker,
    StopWorker,
    WorkReady,
    new_run_id,
)
from tocsin.contract.subjects import CUSTODY_EVENT, HOST_CMD, HOST_FACT, MIB, PANE_SEEN, PANE_STATUS, RUN_CMD, RUN_EVENT
from tocsin.dispatcher import service
from tocsin.dispatcher.core import watch
from tocsin.dispatcher.core.reports import BODY_BYTES_MAX
from tocsin.dispatcher.service import Dispatcher
from tocsin.dispatcher.store import FAMILY
from tocsin.ledger.verify import verify
from tocsin.store.keys import view
from tocsin.store.views import Views


@pytest.fixture
async def client(bus):
    return Client(bus)


async def test_a_start_is_on_record_then_ordered_and_its_facts_move_it(nats_server, store, client, bus):
    async with a_dispatcher(nats_server, store):
        await client.create(a_spec("t1", accept=Accept.AUTO), a_spec("t2", "t1"))
        started = await client.start("t1")
        (order,) = await orders(bus, 1)
        assert (order.dispatch, order.fence, order.step, type(order.order)) == (started["dispatch"], 1, "start", StartAgent)
        assert "Task t1" in order.order.brief
        await client.made(started["dispatch"])
        row = await client.until(started["dispatch"], "starting")
        await bus.say_all(PANE_STATUS, [a_status(turns=(TurnSeen(number=1, started_ms=1),), process=PROCESS, live=True)])
        row = await client.until(started["dispatch"], "running")
        assert (row["pane"], row["path"], row["turn_start"], row["activity"]) == ("p1", "/repo", "seen", "working")

        report = ReportWork(report=Report(outcome=Outcome.SUCCEEDED, body="done", commit="abc1234"))
        caller = worker(started["dispatch"], "p1", PROCESS)
        told = await client.say(report, caller=caller)
        assert (told["task_state"], told["outcome"]) == ("accepted", "succeeded")
        shown = await client.say(ShowTask(task="t1"))
        assert shown["task"]["report"]["commit"] == "abc1234"
        assert [row["state"] for row in shown["workers"]] == ["succeeded"]
        assert [row["state"] for row in (await client.say(ListTasks()))["rows"]] == ["accepted", "ready"]


async def test_the_same_request_meets_its_receipt_also_at_another_replica_and_its_state_can_be_asked(nats_server, store, client):
    async with a_dispatcher(nats_server, store), a_dispatcher(nats_server, store):
        await client.create(a_spec("t1"))
        asked = StartWorker(task="t1", launch=a_launch())
        first = await client.whole(asked, "mine")
        for _ in range(6):
            again = await client.whole(asked, "mine")
            assert (again.result, again.seq, again.duplicate) == (first.result, first.seq, True)
        other = await client.whole(StartWorker(task="t1", launch=a_launch(host="elsewhere")), "mine")
        assert other.code == "request_mismatch"
        shown = await client.say(ShowRequest(id="mine"))
        assert (shown["state"], shown["worker"]["dispatch"]) == ("pending", first.result["dispatch"])
        assert (await client.say(ShowRequest(id="never")))["state"] == "absent"
        assert (await client.say(ShowRequest(id="mine"), caller=PERSON))["state"] == "absent", "another caller's"


async def test_f07_of_eight_claims_in_one_instant_on_two_processes_exactly_one_starts_in_a_hundred_rounds(
    nats_server, valkey_server, bus, tmp_path
):
    rounds, claimants, lost, a_run_holds = 101, 8, 3, 60
    places = {"NATS_URL": nats_server.url, "REDIS_URL": valkey_server.url}
    async with AsyncExitStack() as stack:
        for replica in ("a", "b"):
            stack.enter_context(Service("tocsin.dispatcher", tmp_path / replica, **places))
        clients = [Client(await stack.enter_async_context(connect(nats_server.url, name=f"c{n}")), PERSON) for n in range(claimants)]
        owner = clients[0]
        claims = []
        for number in range(rounds):
            if number % a_run_holds == 0:
                run = new_run_id(PERSON, f"from {number}")
                for client in clients:
                    client.run = run
                await owner.say(CreateRun(objective="claim", workers_max=a_run_holds), f"from {number}")
                await owner.say(AddTasks(tasks=tuple(a_spec(f"T{n}") for n in range(number, number + a_run_holds))))
            claim, ask = f"{owner.run}.T{number}.1", StartWorker(task=f"T{number}", launch=a_launch(host=f"h{number}"))
            requests = [f"claim-{number}-{who}" for who in range(claimants)]
            async with connect(nats_server.url, name="gone", makes_streams=False) as gone:
                answers = await asyncio.gather(
                    *(
                        send(gone, owner.run, ask, requests[who]) if who == lost else client.whole(ask, requests[who])
                        for who, client in enumerate(clients)
                    )
                )
            won = [answer.result["dispatch"] for answer in answers if isinstance(answer, Receipt)]
            refused = [answer for answer in answers if isinstance(answer, Refused)]
            assert {(answer.code, claim in answer.message) for answer in refused} == {("attempt_unsettled", True)}
            its = await owner.say(ShowRequest(id=requests[lost]))
            if won:
                assert (won, its["state"]) == ([claim], "absent"), "nothing is left of who lost and has gone"
            else:
                assert (its["state"], its["worker"]["dispatch"]) == ("pending", claim), "who has gone has won, and finds it by the request"
            assert [event.dispatch for event in await owner.events(DispatchRequested) if event.task == f"T{number}"] == [claim]
            claims.append(claim)
        assert sorted(order.dispatch for order in await orders(bus, rounds)) == sorted(claims), "one order for each"


async def send(bus, run: str, ask: StartWorker, request: str) -> None:
    """Send a request without waiting for its answer."""
    command = RunCommand(run=run, request=request, caller=PERSON, ask=ask, at_ms=0)
    await bus.client.publish(RUN_CMD.of(command), encode(command), reply=bus.client.new_inbox())


async def test_a_claim_whose_caller_has_gone_is_found_by_its_request(nats_server, store, client, bus):
    async with a_dispatcher(nats_server, store):
        await client.create(a_spec("t1"))
        command = RunCommand(run=client.run, request="lost", caller=client.caller, ask=StartWorker(task="t1", launch=a_launch()), at_ms=0)
        with pytest.raises(Unavailable):
            await bus.ask(RUN_CMD, command, timeout_s=0.0001)
        async for _ in Deadline(5, "the attempt exists"):
            shown = await client.say(ShowRequest(id="lost"))
            if shown["state"] == "pending":
                break
        assert shown["worker"]["task"] == "t1"


async def test_a_turn_start_that_is_not_seen_in_time_is_unknown_and_a_late_one_is_believed(nats_server, store, client, bus):
    clock = Clock()
    async with a_dispatcher(nats_server, store, clock):
        await client.create(a_spec("t1"))
        dispatch = (await client.start("t1"))["dispatch"]
        await client.fact(dispatch, Saw.SETUP_RUNNING, path="/repo")
        await client.until(dispatch, "starting")
        await bus.say(PANE_SEEN, PaneSeen(host="h", pane="p1", life="l", at_ms=clock.now_ms()))
        clock.ahead_ms += watch.READY_MS_MAX + 1
        await client.made(dispatch)
        assert await client.state_of(dispatch) == "starting", "setup takes as long as it takes"
        clock.ahead_ms += watch.READY_MS_MAX + 1
        await bus.say(PANE_SEEN, PaneSeen(host="h", pane="p1", life="l", at_ms=clock.now_ms()))
        row = await client.until(dispatch, "start_unknown")
        assert (row["turn_start"], row["outcome"], row["attention"]) == ("not_seen", "outcome_unknown", ["unverifiable"])
        await bus.say(PANE_STATUS, a_status(turns=(TurnSeen(number=1, started_ms=1),)))
        await client.until(dispatch, "running")


async def test_a_host_that_falls_silent_is_lost_contact_and_nothing_else_and_it_comes_back(nats_server, store, client, bus):
    clock = Clock()
    async with a_dispatcher(nats_server, store, clock):
        await client.create(a_spec("t1"))
        dispatch = (await client.start("t1"))["dispatch"]
        await client.made(dispatch)
        await bus.say(PANE_STATUS, a_status(turns=(TurnSeen(number=1, started_ms=1),)))
        await client.until(dispatch, "running")
        clock.ahead_ms += watch.HOST_SILENT_MS + 1000
        row = await client.until(dispatch, "contact_lost")
        assert (row["liveness"], row["liveness_reason"]) == ("unverifiable", "host_unavailable")
        assert (await client.start("t1")).code == "attempt_unsettled", "loss of contact never permits a second editor"
        await bus.say(PANE_SEEN, PaneSeen(host="h", pane="p1", life="l", at_ms=clock.now_ms()))
        await client.until(dispatch, "running")


@pytest.mark.parametrize("ends", ["turn", "process"])
async def test_a_missing_report_is_told_once_by_all_replicas_together(nats_server, store, client, bus, ends):
    async with a_dispatcher(nats_server, store), a_dispatcher(nats_server, store):
        await client.create(a_spec("t1"))
        dispatch = (await client.start("t1"))["dispatch"]
        await client.made(dispatch)
        turn = TurnSeen(number=1, started_ms=1)
        await bus.say(PANE_STATUS, a_status(turns=(turn,)))
        await client.until(dispatch, "running")
        if ends == "turn":
            await bus.say(PANE_STATUS, a_status(state=State.DONE, turns=(TurnSeen(number=1, started_ms=1, ended_ms=2),)))
        else:
            await client.fact(dispatch, Saw.EXITED, exit_code=0, detail="bye")
        row = await client.until(dispatch, "finished_unverified")
        async for _ in Deadline(10, "the missing report is told"):
            if await client.events(ReportMissing):
                break
        async with a_dispatcher(nats_server, store) as late:
            await late._ledger.ready()
            assert [event.dispatch for event in await client.events(ReportMissing)] == [dispatch]
        assert row["outcome"] == "finished_unverified"
        assert (await client.say(ShowTask(task="t1")))["task"]["state"] == "dispatched"
        # It may still come.
        report = ReportWork(report=Report(outcome=Outcome.SUCCEEDED, body="late, and true"))
        assert (await client.say(report, caller=worker(dispatch, "p1", PROCESS)))["task_state"] == "reported"


async def test_while_a_person_is_awaited_no_report_is_missing(nats_server, store, client, bus):
    async with a_dispatcher(nats_server, store):
        await client.create(a_spec("t1"))
        dispatch = (await client.start("t1"))["dispatch"]
        await client.made(dispatch)
        standing = a_status(
            state=State.BLOCKED, turns=(TurnSeen(number=1, started_ms=1),), prompts=(PromptSeen(number=1, ask=Ask.PERMISSION, since_ms=1),)
        )
        await bus.say(PANE_STATUS, standing)
        row = await client.until(dispatch, "running")
        assert (row["human_wait"], row["activity"], row["attention"], row["requires_action"]) == (
            "permission",
            "blocked",
            ["approval"],
            True,
        )
        assert (await client.say(ListWorkers(), run=ANY_RUN))["rows"][0]["next"]["kind"] == "answer"


async def test_g06_ready_work_is_told_once_when_nothing_is_under_way(nats_server, store, client):
    clock = Clock()
    async with a_dispatcher(nats_server, store, clock), a_dispatcher(nats_server, store, clock):
        await client.create(a_spec("t1"))
        async for _ in Deadline(10, "it is told"):
            if await client.events(WorkReady):
                break
        clock.ahead_ms += 3_600_000
        await client.say(AddTasks(tasks=(a_spec("t5"),)))
        async for _ in Deadline(10, "the other set is told"):
            told = [event.tasks for event in await client.events(WorkReady)]
            if len(told) > 1:
                break
        assert told == [("t1",), ("t1", "t5")]


async def test_a_stop_is_ordered_and_one_that_meets_an_exit_succeeds(nats_server, store, client, bus):
    async with a_dispatcher(nats_server, store):
        await client.create(a_spec("t1"))
        dispatch = (await client.start("t1"))["dispatch"]
        await client.made(dispatch)
        await client.until(dispatch, "starting")
        assert (await client.say(StopWorker(dispatch=dispatch)))["state"] == "stopping"
        order = (await orders(bus, 2))[1]
        assert (order.step, order.order) == ("stop.1", StopAgent(pane="p1", process=PROCESS))
        await client.fact(dispatch, Saw.EXITED)
        await client.until(dispatch, "stopped")
        again = await client.say(StopWorker(dispatch=dispatch))
        assert again == {"dispatch": dispatch, "state": "stopped", "already_ended": True}


async def test_a_host_that_refuses_leaves_the_task_startable_and_three_in_a_row_open_the_circuit_for_other_runs_too(
    nats_server, store, client, bus
):
    async with a_dispatcher(nats_server, store):
        await client.create(a_spec("t1"))
        for number in range(1, 4):
            dispatch = (await client.start("t1"))["dispatch"]
            await client.fact(dispatch, Saw.REFUSED, code="agent_missing", detail="claude is not installed")
            row = await client.until(dispatch, "failed")
            assert (row["code"], row["fence"]) == ("agent_missing", number)
        assert (await client.start("t1")).code == "circuit_open"
        other = Client(bus)
        other.run = "rother"
        await other.say(CreateRun(objective="around it"), "another")
        await other.say(AddTasks(tasks=(a_spec("t1"),)))
        refused = await other.start("t1")
        assert (refused.code, client.run in refused.message) == ("circuit_open", True)


async def test_a_host_takes_only_as_many_workers_as_it_may_over_all_runs(nats_server, store, client, bus):
    async with a_dispatcher(nats_server, store, host_workers_max=2):
        await client.create(a_spec("t1"), a_spec("t2"))
        other = Client(bus, PERSON)
        await other.create(a_spec("t1"), a_spec("t2"))
        await client.start("t1")
        await other.start("t1")
        assert (await other.start("t2")).code == "capacity"
        assert isinstance(await other.start("t2", host="another"), dict)


async def test_heartbeats_are_state_of_the_attempt_and_keep_no_receipts(nats_server, store, client):
    clock = Clock()
    async with a_dispatcher(nats_server, store, clock):
        await client.create(a_spec("t1"))
        dispatch = (await client.start("t1"))["dispatch"]
        await client.made(dispatch)
        await client.until(dispatch, "starting")
        caller = worker(dispatch, "p1", PROCESS)
        for _ in range(3):
            assert await client.say(Beat(phase="testing"), "same", caller=caller) == {"dispatch": dispatch, "state": "running"}
        clock.ahead_ms += 60_000
        row = (await client.say(ListWorkers()))["rows"][0]
        assert (row["heartbeat"], row["phase"], row["heartbeat_ms"] >= 60_000) == ("fresh", "testing", True)
        assert (await client.say(ShowRequest(id="same"), caller=caller))["state"] == "absent"


async def test_a_run_is_closed_only_when_every_worker_has_its_disposition(nats_server, store, client, bus):
    async with a_dispatcher(nats_server, store) as dispatcher:
        await client.create(a_spec("t1", accept=Accept.AUTO))
        dispatch = (await client.start("t1"))["dispatch"]
        assert (await client.say(CloseRun())).code == "obligations"
        await client.made(dispatch)
        await client.until(dispatch, "starting")
        await client.say(ReportWork(report=Report(outcome=Outcome.SUCCEEDED, body="x")), caller=worker(dispatch, "p1"))

        async def custody(*events):
            record = CustodyRecorded(
                custody=dispatch, request="", caller=PERSON, payload_hash="", events=events, receipt=Receipt(request=""), at_ms=0
            )
            await bus.say(CUSTODY_EVENT, record)

        await custody(MovedTo(to=CustodyState.OWNED, why="made"), Settled(outcome="succeeded"))
        async for _ in Deadline(5, "the custody is seen"):
            if dispatcher._sights.custodies():
                break
        (row,) = (await client.say(ListWorkers()))["rows"]
        assert (row["custody"], row["next"]["command"]) == ("owned", ["tocsin", "custody", "release", dispatch])
        assert (await client.say(CloseRun())).code == "obligations"
        await custody(MovedTo(to=CustodyState.RELEASED, why="by its policy"))
        async for _ in Deadline(5, "it may be closed"):
            answer = await client.say(CloseRun())
            if isinstance(answer, dict):
                break
        assert (await client.say(AddTasks(tasks=(a_spec("t9"),)))).code == "run_closed"
        assert (await client.say(ListRuns(), run=ANY_RUN))["rows"] == []
        assert [row["state"] for row in (await client.say(ListRuns(closed=True), run=ANY_RUN))["rows"]] == ["closed"]
        await client.say(PurgeRun())
        assert (await client.say(ShowRun())).code == "not_found"
        assert len(await client.records()) == 1, "only that it is gone"


async def test_an_unknown_run_and_a_foreign_one_are_answered_the_same(nats_server, store, client, bus):
    """J06: the worker of one Run learns nothing of another, not even whether it is there."""
    async with a_dispatcher(nats_server, store):
        await client.create(a_spec("t1"))
        foreign = worker("rother.t.1", "p9")
        for ask in (ShowRun(), ListTasks(), ShowTask(task="t1"), ListWorkers(), AddTasks(tasks=(a_spec("x"),))):
            absent = await client.say(ask, run="rnone", caller=foreign)
            assert (absent.code, absent.message) == ("not_found", "there is no Run rnone")
            if not isinstance(ask, AddTasks):
                shown = await client.say(ask, caller=foreign)
                assert (shown.code, shown.message) == ("not_found", f"there is no Run {client.run}")
        assert (await client.say(ShowRun(), run="../x")).code == "bad_request"


@pytest.mark.parametrize("name", ["r *", "team >", ">", "a.b", "r1\r\nPUB hub.admin 1\r\nx", "ключ 1"])
async def test_j06_a_run_that_would_be_more_or_less_than_one_name_is_refused_and_nothing_is_on_record_of_it(
    nats_server, store, client, bus, name
):
    async with a_dispatcher(nats_server, store):
        await client.create(a_spec("t1"))
        records = await bus.end(RUN_EVENT)
        for ask in (CreateRun(objective="get it done"), AddTasks(tasks=(a_spec("t2"),)), ShowRun()):
            assert (await client.say(ask, run=name)).code == "bad_request"
        assert await bus.end(RUN_EVENT) == records
        assert (await client.say(ListTasks()))["total"] == 1


# ------------------------------------------------------------ kills and wipes


async def test_a_graph_of_ten_thousand_tasks_is_taken_at_once_or_refused_whole(nats_server, store, client):
    async with a_dispatcher(nats_server, store):
        await client.create()
        told = await client.say(AddTasks(tasks=tuple(a_spec(f"t{n}", *([f"t{n - 1}"] if n else [])) for n in range(10_000))))
        assert (told["total"], len(told["tasks"])) == (10_000, 200)
        refused = await client.say(AddTasks(tasks=tuple(a_spec(f"u{n}", spec="x" * 600) for n in range(9_000))))
        assert (refused.code, "in parts" in refused.message) == ("too_large", True)
        page = await client.say(ListTasks(limit=100, after="t9949"))
        assert ([row["task"] for row in page["rows"]][-1], page["total"], page["next"]) == ("t9999", 10_000, None)


async def test_j02_a_report_of_megabytes_is_refused_with_the_limit_and_its_task_is_still_there_to_be_reported(
    nats_server, store, client, bus
):
    async with a_dispatcher(nats_server, store):
        await client.create(a_spec("A"))
        dispatch = (await client.start("A"))["dispatch"]
        await client.made(dispatch)
        caller = worker(dispatch, "p1", PROCESS)
        for size in (BODY_BYTES_MAX + 1, 3 * MIB, bus.client.max_payload):
            refused = await client.say(ReportWork(report=Report(outcome=Outcome.SUCCEEDED, body="x" * size)), caller=caller)
            assert refused.code == "too_large"
            assert str(bus.client.max_payload if size >= bus.client.max_payload else BODY_BYTES_MAX) in refused.message
            assert (await client.say(ShowTask(task="A")))["task"]["state"] == "dispatched"
        whole = ReportWork(report=Report(outcome=Outcome.SUCCEEDED, body="x" * BODY_BYTES_MAX))
        assert (await client.say(whole, caller=caller))["task_state"] == "reported"
        assert (await client.say(ShowTask(task="A")))["task"]["report"]["body"] == "x" * BODY_BYTES_MAX
        assert (bus.returns, bus.client.stats["reconnects"]) == (0, 0)


async def test_i08_what_hosts_see_while_the_ledger_is_full_is_on_record_when_there_is_room(nats_server, store, client, bus, monkeypatch):
    monkeypatch.setattr(service, "FULL_RETRY_S", 0.05)
    async with a_dispatcher(nats_server, store):
        await client.create(a_spec("t1"))
        dispatch = (await client.start("t1"))["dispatch"]
        await client.made(dispatch)
        stream = await bus._jetstream.stream_info(RUN_EVENT.stream)
        await bus._jetstream.update_stream(stream.config.evolve(max_bytes=stream.state.bytes + 10))
        assert (await client.say(AddTasks(tasks=(a_spec("t2"),)))).code == "ledger_full"
        await client.fact(dispatch, Saw.EXITED, exit_code=0)
        await client.fact(dispatch, Saw.REFUSED, code="agent_missing")
        async for _ in Deadline(10, "the first is held up"):
            info = await bus._jetstream.consumer_info(HOST_FACT.stream, service.NAME)
            if (info.num_pending, info.num_ack_pending) == (1, 1):
                break
        assert await client.state_of(dispatch) == "starting"
        await bus._jetstream.update_stream(stream.config)
        await client.until(dispatch, "finished_unverified")


async def test_i04_a_start_is_ordered_once_however_often_it_is_asked_and_another_attempt_is_another_order(nats_server, store):
    async with connect(nats_server.url, name="client") as bus:
        client = Client(bus)
        async with a_dispatcher(nats_server, store):
            await client.create(a_spec("T1"))
            ask = StartWorker(task="T1", launch=a_launch())
            first = (await client.say(ask, "start"))["dispatch"]
            assert (await client.whole(ask, "start")).duplicate
            await orders(bus, 1)
            await client.fact(first, Saw.REFUSED, code="agent_missing", detail="no such program")
            await client.until(first, "failed")
            retried = StartWorker(task="T1", launch=a_launch(), retry_of=first)
            second = (await client.say(retried, "retry"))["dispatch"]
            assert [order.dispatch for order in await orders(bus, 2)] == [first, second]
            assert (await client.whole(retried, "retry")).duplicate
        nats_server.end(signal.SIGKILL)
        nats_server.start()
        async with a_dispatcher(nats_server, store):
            # Another life and a bus that has been away: the request meets its own record, and what it asked for is not asked again.
            again = await client.whole(retried, "retry")
            assert (again.result["dispatch"], again.duplicate) == (second, True)
            assert [event.dispatch for event in await client.events(DispatchRequested)] == [first, second]
            starts = {(order.dispatch, order.fence, order.step) for order in await orders(bus, 2) if isinstance(order.order, StartAgent)}
            assert starts == {(first, 1, "start"), (second, 2, "start")}, (
                "an order that is said again has the same key, by which its host knows it"
            )


async def test_an_order_whose_saying_was_lost_is_said_by_the_next_life(nats_server, store, client, bus, monkeypatch):
    async def lose(self, command):
        raise asyncio.CancelledError

    with monkeypatch.context() as patch:
        patch.setattr(Dispatcher, "_say_order", lose)
        async with a_dispatcher(nats_server, store):
            await client.create(a_spec("t1"))
            dispatch = (await client.start("t1"))["dispatch"]
    assert await bus.end(HOST_CMD) == 0
    async with a_dispatcher(nats_server, store):
        (order,) = await orders(bus, 1)
        assert order.dispatch == dispatch


async def test_an_attempt_that_was_given_up_before_its_host_knew_of_it_is_withdrawn(nats_server, store, client, bus):
    async with a_dispatcher(nats_server, store):
        await client.create(a_spec("t1"))
        first = (await client.start("t1"))["dispatch"]
        await client.say(StartWorker(task="t1", launch=a_launch(host="other"), supersede="its host is away"))
        given = await orders(bus, 3)
        assert [(order.host, order.dispatch, order.step) for order in given if order.host == "h"] == [
            ("h", first, "start"),
            ("h", first, "stop.0"),
        ]


async def test_with_a_wiped_store_and_then_a_wiped_bus_the_run_goes_on(nats_server, store, client):
    async with connect(nats_server.url, name="client") as bus:
        client = Client(bus)
        async with a_dispatcher(nats_server, store) as dispatcher:
            await client.create(a_spec("t1"), a_spec("t2", "t1"))
            dispatch = (await client.start("t1"))["dispatch"]
            await client.made(dispatch)
            await client.until(dispatch, "starting")
            await store.flushall()
        async with a_dispatcher(nats_server, store) as dispatcher:
            assert await client.state_of(dispatch) == "starting"
            await dispatcher._ledger.flush()
    nats_server.end(signal.SIGKILL)
    shutil.rmtree(nats_server.folder / "data")
    nats_server.start()
    async with connect(nats_server.url, name="client") as bus:
        client = Client(bus)
        async with a_dispatcher(nats_server, store) as dispatcher:
            assert (await client.say(ShowRun()))["run"]["restored"]
            assert await client.state_of(dispatch) == "starting"
            report = ReportWork(report=Report(outcome=Outcome.SUCCEEDED, body="done"))
            assert (await client.say(report, caller=worker(dispatch, "p1", PROCESS)))["task_state"] == "reported"
            assert (await client.say(CreateRun(objective="get it done"), "create"))["run"] == client.run, "receipts too"
            await dispatcher._ledger.flush()
            _, _, findings = await verify(bus, Views(store, RUN_EVENT.name), FAMILY)
            assert findings == []


async def test_killed_at_any_moment_as_its_own_process_it_goes_on_where_the_log_stands(
    nats_server, valkey_server, store, client, bus, tmp_path
):
    one = Service("tocsin.dispatcher", tmp_path / "state", NATS_URL=nats_server.url, REDIS_URL=valkey_server.url)
    with one:
        await client.create(*(a_spec(f"t{n}") for n in range(6)))
        dispatches = []
        for number in range(6):
            asking = asyncio.create_task(client.start(f"t{number}"))
            await asyncio.sleep(0.001 * number)
            one.end(signal.SIGKILL)
            one.start()
            answer = await asking
            # The answer may have been lost with the process: the same request was put again until one came.
            dispatches.append(answer["dispatch"])
        given = await orders(bus, 6)
        assert {order.dispatch for order in given} == set(dispatches)
        assert [event.dispatch for event in await client.events(DispatchRequested)] == dispatches
        assert (await client.say(ShowRun()))["run"]["unsettled"] == 6
        assert one.end() == 0


async def test_facts_that_come_twice_and_late_change_nothing(nats_server, store, client, bus):
    async with a_dispatcher(nats_server, store), a_dispatcher(nats_server, store):
        await client.create(a_spec("t1"))
        dispatch = (await client.start("t1"))["dispatch"]
        for _ in range(3):
            await client.made(dispatch)
        await client.until(dispatch, "starting")
        await bus.say(PANE_STATUS, a_status(turns=(TurnSeen(number=1, started_ms=1),), evidence=Evidence.OBSERVED))
        await client.until(dispatch, "running")
        await client.made(dispatch)
        await client.fact("rnone.t1.1", Saw.EXITED)
        await client.fact(dispatch, Saw.EXITED)
        await client.until(dispatch, "finished_unverified")
        moves = [event.saw for event in await client.events(DispatchMoved)]
        assert moves.count("turn_seen") == moves.count("exit_proven") == moves.count("agent_started") == 1


# ------------------------------------------------------------ the verb `ledger`


def ledger_verb(nats_server, valkey_server, tmp_path, *words: str):
    environment = {**os.environ, "NATS_URL": nats_server.url, "REDIS_URL": valkey_server.url, "TOCSIN_STATE": str(tmp_path)}
    return subprocess.run(
        [sys.executable, "-m", "tocsin.cli", "ledger", *words], env=environment, capture_output=True, text=True, check=False
    )


async def test_the_verb_tells_a_wrong_view_and_a_rebuild_mends_it(nats_server, valkey_server, store, client, tmp_path):
    async with a_dispatcher(nats_server, store):
        await client.create(a_spec("t1"))
    await store.hset(view(RUN_EVENT.name, client.run), "head", b'{"objective": "forged"}')
    wrong = await asyncio.to_thread(ledger_verb, nats_server, valkey_server, tmp_path, "verify", "run", "--json")
    (told,) = json.loads(wrong.stdout)["ledgers"]
    assert (wrong.returncode, told["whole"], [one["fault"] for one in told["findings"]]) == (1, False, ["wrong"])
    mended = await asyncio.to_thread(ledger_verb, nats_server, valkey_server, tmp_path, "rebuild", "run")
    assert (mended.returncode, "1 views written anew" in mended.stdout) == (0, True)
    whole = await asyncio.to_thread(ledger_verb, nats_server, valkey_server, tmp_path, "verify")
    assert whole.returncode == 0, whole.stderr
    assert "run: 2 records of 1 aggregates, nothing to tell" in whole.stdout


def test_the_verb_names_a_ledger_that_does_not_exist(nats_server, valkey_server, tmp_path):
    refused = ledger_verb(nats_server, valkey_server, tmp_path, "verify", "cake")
    assert (refused.returncode, "no ledger cake" in refused.stderr) == (3, True)
