"""What the console tells of the loop and hands on to it, over the real dispatcher, mailbox and release-accountant."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from console_builders import a_console, a_row
from dispatcher_builders import a_review, a_spec
from loop_builders import Loop, a_loop
from support import Deadline
from tocsin.console import moves as moving
from tocsin.console import reads as reading
from tocsin.console.moves import Moves
from tocsin.console.reads import Reads
from tocsin.contract.hosting import Saw
from tocsin.contract.run import Accept, ListRuns, OpenGate, Outcome, Receipt, ShowRun
from tocsin.contract.subjects import RUN_CMD
from tocsin.runtime import instance
from tocsin.runtime.clock import SystemClock


@pytest.fixture
async def loop(nats_server, store, bus):
    async with a_loop(nats_server.url, store, bus) as running:
        yield running


@pytest.fixture
async def console(tmp_path, bus, store):
    async with a_console(tmp_path / "state", bus, store) as running:
        yield running


@pytest.fixture
async def page(console):
    """A person's page."""
    async with console.client(Origin=console.url) as client:
        answer = await client.post("/api/login", json={"ticket": await console.ticket(name="ann")})
        assert answer.status_code == 200
        yield client


async def told(client: httpx.AsyncClient, path: str, **parameters: Any) -> dict[str, Any]:
    answer = await client.get(path, params=parameters)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def refused(client: httpx.AsyncClient, path: str, status: int) -> dict[str, Any]:
    answer = await client.get(path)
    assert answer.status_code == status, answer.text
    return answer.json()


# ---------------------------------------------------------------- looking


async def test_runs_their_tasks_and_one_of_them_are_told_as_the_command_tells_them(loop, page):
    await loop.create(a_spec("build"), a_spec("ship", "build"), a_review("check", "build"), objective="a calculator")
    dispatch = await loop.begin("build")
    (run,) = (await told(page, "/api/runs"))["rows"]
    assert (run["run"], run["objective"], run["unsettled"]) == (loop.run, "a calculator", 1)
    assert (await told(page, f"/api/runs/{loop.run}"))["run"] == run
    tasks = await told(page, f"/api/runs/{loop.run}/tasks")
    assert [(row["task"], row["state"], row["deps"], row["reviews"]) for row in tasks["rows"]] == [
        ("build", "dispatched", [], None), ("ship", "pending", ["build"], None), ("check", "pending", [], "build"),
    ]  # fmt: skip
    one = await told(page, f"/api/runs/{loop.run}/tasks/build")
    assert (sorted(one["task"]["dependents"]), [row["dispatch"] for row in one["workers"]]) == (["check", "ship"], [dispatch])
    assert tasks["now"] >= run["updated_ms"] - 60_000


async def test_lists_come_in_pages_that_say_that_they_are_pages(loop, page):
    await loop.create(*[a_spec(f"t{number}") for number in range(5)])
    first = await told(page, f"/api/runs/{loop.run}/tasks", limit=3)
    assert ([row["task"] for row in first["rows"]], first["total"]) == (["t0", "t1", "t2"], 5)
    second = await told(page, f"/api/runs/{loop.run}/tasks", limit=3, after=first["next"])
    assert ([row["task"] for row in second["rows"]], second["next"]) == (["t3", "t4"], None)
    assert (await refused(page, f"/api/runs/{loop.run}/tasks?limit=101", 422))["code"] == "bad_field"


async def test_workers_are_told_and_one_with_its_brief(loop, page):
    await loop.create(a_spec("build"), a_spec("other"))
    dispatch = await loop.begin("build", "codex")
    (row,) = (await told(page, "/api/workers"))["rows"]
    assert (row["dispatch"], row["agent"], row["state"]) == (dispatch, "codex", "running")
    assert (await told(page, "/api/workers", run=loop.run, failed=True))["rows"] == []
    one = await told(page, f"/api/workers/{dispatch}")
    assert "Do build." in one["brief"]


async def test_mail_is_told_with_what_is_unread_and_asked_and_nothing_is_taken(loop, page):
    await loop.create(a_spec("build"))
    dispatch = await loop.begin("build")
    question = await loop.ask(dispatch, "left or right?", "left", "right")
    box = await loop.until_unread(1)
    for _ in range(2):
        box = await told(page, f"/api/mail/run:{loop.run}")
        assert (box["unread"], box["delivery"], box["reader"]) == (1, None, "claude")
    (asked,) = box["questions"]
    assert (asked["id"], asked["dispatch"], asked["text"], asked["options"]) == (question, dispatch, "left or right?", ["left", "right"])
    (of_run,) = (await told(page, "/api/mail"))["rows"]
    assert (of_run["run"]["run"], of_run["box"]["unread"], len(of_run["box"]["questions"])) == (loop.run, 1, 1)
    assert (await told(page, f"/api/mail/dispatch:{dispatch}"))["unread"] == 0


async def test_wakes_are_told_for_each_run_and_for_one_mailbox(loop, page):
    await loop.create(a_spec("build"))
    await loop.ask(await loop.begin("build"), "left or right?")
    async for _ in Deadline(10, "a wake is due"):
        account = await told(page, f"/api/wakes/run:{loop.run}")
        if account["rows"]:
            break
    assert account["rows"][0]["cause"] == "question"
    assert account["hour_max"] == 30
    (of_run,) = (await told(page, "/api/wakes"))["rows"]
    assert of_run["box"]["rows"][0]["wake"] == account["rows"][0]["wake"]


async def test_custody_is_told_what_is_owed_first_and_summed_up_for_each_machine(loop, page):
    await loop.create(a_spec("build"), a_spec("asks", on_settle="ask", accept=Accept.AUTO))
    build, asks = await loop.begin("build"), await loop.begin("asks")
    await loop.report(asks)
    await loop.until_owed(asks)
    listed = await told(page, "/api/custody")
    assert [row["custody"] for row in listed["rows"]] == [asks, build]
    assert [row["custody"] for row in (await told(page, "/api/custody", owed=True))["rows"]] == [asks]
    one = await told(page, f"/api/custody/{build}")
    assert (one["row"]["state"], one["row"]["worktree"], one["history"][-1]["what"]) == ("owned", "standing", "owned")
    audit = await told(page, "/api/audit")
    assert (audit["complete"], [(ground["host"], ground["custodies"], ground["obligations"]) for ground in audit["hosts"]]) == (
        True,
        [("h", 2, 1)],
    )


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/api/runs/nowhere", 404, "not_found"),
        ("/api/workers/r1.t.1", 404, "not_found"),
        ("/api/mail/run:nowhere", 404, "not_found"),
        ("/api/mail/nobody", 404, "not_found"),
        ("/api/custody/r1.t.1", 404, "not_found"),
        (f"/api/runs/{'x' * 300}", 422, "bad_field"),
        ("/api/runs?limit=0", 422, "bad_field"),
        ("/api/mail?limit=21", 422, "bad_field"),
        (f"/api/mail/run:r1?before={10**30}", 422, "bad_field"),
    ],
)
async def test_what_is_not_there_or_not_understood_is_refused_in_the_public_form(loop, page, path, status, code):
    answer = await refused(page, path, status)
    assert answer["code"] == code
    assert answer["message"]
    assert answer["next"]


async def test_the_loop_is_told_to_sessions_and_to_the_command_credential_and_not_to_the_readers(loop, console):
    await loop.create(a_spec("build"))
    async with console.client() as stranger:
        assert (await refused(stranger, f"/api/runs/{loop.run}", 401))["code"] == "no_session"
    async with console.client(**console.bearer(instance.READER_CREDENTIAL)) as reader:
        assert (await refused(reader, f"/api/runs/{loop.run}", 401))["code"] == "no_credential"
        answer = await reader.post("/api/run/commands", json={"run": loop.run, "request": "q", "ask": {"verb": "pause"}})
        assert (answer.status_code, answer.json()["code"]) == (401, "no_credential")
    async with console.client(**console.bearer(instance.COMMAND_CREDENTIAL)) as program:
        await told(program, f"/api/runs/{loop.run}")


async def test_a_service_that_is_away_is_told_as_such_and_never_as_nothing(console, page, monkeypatch):
    monkeypatch.setattr(reading, "ASK_S_MAX", 0.2)
    answer = await refused(page, "/api/runs", 503)
    assert (answer["code"], answer["next"]) == ("unavailable", ["tocsin doctor"])


async def test_pages_that_ask_the_same_at_the_same_time_cost_one_request_and_what_is_recorded_ends_that(bus):
    asked = []

    async def answer(command: Any) -> Receipt:
        asked.append(command)
        return Receipt(request=command.request, result={"number": len(asked)})

    heard = 0
    async with bus.serve(RUN_CMD, answer, name="dispatcher"):
        reads = Reads(bus, SystemClock(), lambda: heard)
        results = await asyncio.gather(*(reads.run(ShowRun(), "r1") for _ in range(20)), reads.run(ShowRun(), "r2"))
        assert ([result["number"] for result in results[:20]], len(asked)) == ([results[0]["number"]] * 20, 2)
        assert await reads.run(ShowRun(), "r1") == results[0]
        heard += 1
        assert (await reads.run(ShowRun(), "r1"))["number"] == 3


async def test_one_page_that_leaves_ends_no_question_of_another(bus):
    gate = asyncio.Event()

    async def answer(command: Any) -> Receipt:
        await gate.wait()
        return Receipt(request=command.request, result={"rows": []})

    async with bus.serve(RUN_CMD, answer, name="dispatcher"):
        reads = Reads(bus, SystemClock(), lambda: 0)
        first, second = (asyncio.create_task(reads.run(ListRuns(), "-")) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        gate.set()
        assert await second == {"rows": []}
        with pytest.raises(asyncio.CancelledError):
            await first


# ---------------------------------------------------------------- what has moved


@asynccontextmanager
async def watching(client: httpx.AsyncClient, topics: str) -> AsyncIterator[AsyncIterator[list[str]]]:
    """The topics of each `moved` event of a stream that stands."""
    async with client.stream("GET", "/api/stream", params={"watch": topics}) as response:
        assert response.status_code == 200
        lines = response.aiter_lines()
        assert (await anext(lines)).startswith("retry:")

        async def moved() -> AsyncIterator[list[str]]:
            name = ""
            async for line in lines:
                field, _, value = line.partition(": ")
                if field == "event":
                    name = value
                elif field == "data" and name == "moved":
                    yield json.loads(value)["topics"]

        yield moved()


async def next_of(moved: AsyncIterator[list[str]]) -> list[str]:
    async with asyncio.timeout(10):
        return await anext(moved)


async def test_a_stream_says_what_of_its_topics_has_moved_and_nothing_of_others(loop, page, bus, nats_server):
    other = Loop(bus, "another")
    await loop.create(a_spec("build"))
    async with watching(page, f"run:{loop.run},custody") as moved:
        await other.create(a_spec("elsewhere"))  # of another Run, and told by nobody
        await loop.begin("build")
        topics = await next_of(moved)
        while "custody" not in topics:
            topics = sorted({*topics, *await next_of(moved)})
        assert topics == ["custody", f"run:{loop.run}"]


async def test_many_records_at_once_are_one_hint(bus, monkeypatch):
    monkeypatch.setattr(moving, "GATHER_S", 0.5)
    moves = Moves(bus)
    news = asyncio.Event()
    with moves.watch(["run"], news) as watch:
        for _ in range(100):
            moves._hear(moving.Kind.RUN, "r1")
        assert moves.heard == 100
        async with asyncio.timeout(10):
            await news.wait()
        assert watch.take() == ["run"]
        news.clear()
        assert not news.is_set()
        assert watch.take() == []


async def test_when_the_bus_was_away_everything_that_a_page_shows_may_have_moved(nats_server, tmp_path, store, page, console):
    async with watching(page, "mail:r1,run") as moved:
        nats_server.end()
        nats_server.start()
        assert await next_of(moved) == ["mail:r1", "run"]


@pytest.mark.parametrize("watch", ["pane:p1", "run:", "run,,mail", ",".join(f"run:r{number}" for number in range(9))])
async def test_what_is_no_topic_is_refused(page, watch):
    answer = await page.get("/api/stream", params={"watch": watch})
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_field")


async def test_the_list_goes_on_beside_what_has_moved(loop, console, page):
    await loop.create(a_spec("build"))
    await console.say(a_row("api", 1))
    async with page.stream("GET", "/api/stream", params={"watch": "run"}) as response:
        seen = set()
        async for line in response.aiter_lines():
            if line == "event: list":
                await loop.begin("build")
            seen.add(line)
            if {"event: list", "event: moved"} <= seen:
                break


# ---------------------------------------------------------------- a person's commands


async def command(client: httpx.AsyncClient, kind: str, **body: Any) -> tuple[int, dict[str, Any]]:
    answer = await client.post(f"/api/{kind}/commands", json=body)
    return answer.status_code, answer.json()


async def test_a_question_is_answered_by_the_person_once_however_often_it_is_sent(loop, page):
    await loop.create(a_spec("build"))
    dispatch = await loop.begin("build")
    question = await loop.ask(dispatch, "left or right?")
    ask = {"verb": "reply", "question": question, "body": "left"}
    box = f"dispatch:{dispatch}"
    both = await asyncio.gather(*(command(page, "mail", mailbox=box, request="q1", ask=ask) for _ in range(2)))
    assert [status for status, _ in both] == [200, 200]
    status, again = await command(page, "mail", mailbox=box, request="q1", ask=ask)
    assert (status, again["duplicate"]) == (200, True)
    (row,) = (await loop.until_unread(1, box))["rows"]
    assert (row["message"]["body"], row["message"]["sender"]) == ("left", "person")
    status, answer = await command(page, "mail", mailbox=box, request="q2", ask={**ask, "body": "right"})
    assert (status, answer["code"]) == (409, "already_decided")


async def test_a_gate_that_is_put_to_a_person_is_answered_from_the_page(loop, page):
    await loop.create(a_spec("build"))
    gate = (await loop.of_run(OpenGate(task="build", question="may it go out?", to="person")))["gate"]
    assert [row["question"] for row in (await told(page, f"/api/runs/{loop.run}/gates"))["rows"]] == ["may it go out?"]
    status, receipt = await command(
        page, "run", run=loop.run, request="q1", ask={"verb": "resolve_gate", "gate": gate, "verdict": "accept"}
    )
    assert (status, receipt["result"]["task_state"]) == (200, "ready")
    assert (await told(page, f"/api/runs/{loop.run}/gates"))["rows"] == []
    (answered,) = (await told(page, f"/api/runs/{loop.run}/gates", every=True))["rows"]
    assert answered["by"].startswith("ann@console")
    status, answer = await command(
        page, "run", run=loop.run, request="q2", ask={"verb": "resolve_gate", "gate": gate, "verdict": "reject", "answer": "no"}
    )
    assert (status, answer["code"], answer["next"]) == (409, "already_decided", ["tocsin gate list"])


@pytest.mark.parametrize(("verdict", "state"), [("accept", "accepted"), ("rework", "ready"), ("reject", "failed")])
async def test_a_reported_task_is_judged_from_the_page(loop, page, verdict, state):
    await loop.create(a_spec("build"))
    await loop.report(await loop.begin("build"))
    status, receipt = await command(
        page, "run", run=loop.run, request="q1", ask={"verb": "accept", "task": "build", "verdict": verdict, "reason": "seen"}
    )
    assert (status, receipt["result"]["task"]["state"]) == (200, state)


async def test_a_worker_is_stopped_or_abandoned_from_the_page(loop, page):
    await loop.create(a_spec("build"), a_spec("other"))
    build, other = await loop.begin("build"), await loop.begin("other")
    status, receipt = await command(page, "run", run=loop.run, request="q1", ask={"verb": "stop", "dispatch": build})
    assert (status, receipt["result"]["state"]) == (200, "stopping")
    status, receipt = await command(page, "run", run=loop.run, request="q2", ask={"verb": "abandon", "dispatch": other, "reason": "lost"})
    assert (status, receipt["result"]["state"]) == (200, "abandoned")
    assert (await told(page, f"/api/workers/{other}"))["worker"]["why"].startswith("lost")


async def test_a_custody_is_retained_released_and_its_worktree_brought_back_from_the_page(loop, page):
    await loop.create(a_spec("build", on_settle="ask", accept=Accept.AUTO))
    dispatch = await loop.begin("build")
    await loop.report(dispatch, Outcome.SUCCEEDED)
    await loop.until_owed(dispatch)
    status, receipt = await command(page, "custody", custody=dispatch, request="q1", ask={"verb": "retain", "reason": "I look at it"})
    assert (status, receipt["result"]["state"]) == (200, "retained")
    status, _ = await command(page, "custody", custody=dispatch, request="q2", ask={"verb": "release", "reason": "seen", "worktree": True})
    assert status == 200
    await loop.until_custody(dispatch, "releasing")
    status, answer = await command(page, "custody", custody=dispatch, request="q3", ask={"verb": "undo"})
    assert (status, answer["code"], answer["message"]) == (409, "not_found", f"no worktree of {dispatch} is in the trash")
    await loop.released(dispatch)
    status, receipt = await command(page, "custody", custody=dispatch, request="q4", ask={"verb": "undo"})
    assert (status, receipt["result"]["worktree"]) == (200, "returning")


async def test_a_terminal_that_a_person_took_over_is_released_when_that_person_says_so(loop, page):
    await loop.create(a_spec("build", accept=Accept.AUTO))
    dispatch = await loop.begin("build")
    await loop.fact(dispatch, Saw.HUMAN_KEY)
    await loop.until_custody(dispatch, "taken_over")
    await loop.report(dispatch)
    async for _ in Deadline(10, "it is settled"):
        if (await told(page, f"/api/custody/{dispatch}"))["row"].get("outcome"):
            break
    release = {"verb": "release", "reason": "mine"}
    status, answer = await command(page, "custody", custody=dispatch, request="q1", ask=release)
    assert (status, answer["code"]) == (409, "taken_over")
    status, _ = await command(page, "custody", custody=dispatch, request="q2", ask={**release, "person": True})
    assert status == 200
