"""`tocsin mcp` as an agent's client meets it: the official SDK's own client, over standard input and output."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec
import pytest
from mcp import Client, StdioServerParameters

from loop_cli_builders import (
    ANSWERED,
    ASKED,
    CREATED,
    EMPTY_INBOX,
    SERVER,
    STARTED,
    Command,
    PaneHost,
    a_delivery,
    a_message,
    a_run_row,
    a_shown_worker,
    a_task_row,
    a_worker_row,
    mails,
    runs,
    serving,
    taken,
)
from support import settled
from tocsin.cli.main import main
from tocsin.cli.tools import schema
from tocsin.cli.tools_coordinator import COORDINATOR
from tocsin.cli.tools_worker import WORKER
from tocsin.contract.custody import ALL, ListCustodies, Release, Retain
from tocsin.contract.mail import AckMail, CheckMail, EndWait, MailType, ReplyMail
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.run import AddTasks, CreateRun, GiveVerdict, Receipt, ReportWork, StartWorker, Verdict
from tocsin.contract.subjects import CUSTODY_CMD, MAIL_CMD, RUN_CMD


@asynccontextmanager
async def connected(command: Command, *words: str) -> AsyncIterator[Client]:
    """A client of `tocsin mcp`, started as that command would be."""
    started = StdioServerParameters(
        command=sys.executable, args=["-m", "tocsin.cli", "mcp", *words], env=command.environment, cwd=command.cwd
    )  # fmt: skip
    async with Client(started) as client:
        yield client


@pytest.fixture
def tocsin(nats_server, tmp_path) -> Command:
    return Command(tmp_path, nats_server.url, **SERVER)


async def test_a_coordinator_gets_the_loops_tools_with_a_line_and_a_schema_each(tocsin):
    async with connected(tocsin) as client:
        tools = (await client.list_tools()).tools
        assert "Every settled worker" in (client.instructions or "")
    assert {tool.name for tool in tools} == set(COORDINATOR)
    assert all(tool.description and len(tool.description) < 200 for tool in tools)
    assert all(tool.input_schema["type"] == "object" for tool in tools)
    hints = {tool.name: tool.annotations for tool in tools}
    assert hints["worker_list"].read_only_hint
    assert hints["worker_stop"].destructive_hint


async def test_a_call_is_the_verbs_own_request_and_its_result_is_structured(bus, tocsin):
    async with (
        runs(bus, create=CREATED, add={"tasks": [{"task": "api", "state": "ready", "blocked_by": []}]}) as got,
        connected(tocsin) as client,
    ):
        made = await client.call_tool("run_create", {"objective": "build it", "request": "q7"})
        added = await client.call_tool("task_add", {"tasks": [{"id": "api", "title": "the API", "spec": "write it"}]})
    assert not made.is_error
    assert (made.structured_content["run"], made.structured_content["request"]) == ("r1", "q7")
    assert json.loads(made.content[0].text) == made.structured_content
    assert added.structured_content["tasks"][0]["state"] == "ready"
    created, asked = got
    assert isinstance(created.ask, CreateRun)
    assert created.caller.pane == "default.4711.3"
    assert isinstance(asked.ask, AddTasks)
    assert (asked.run, asked.generation) == ("r1", 1)


async def test_a_refusal_is_an_error_with_its_next_steps(bus, tocsin):
    async with runs(bus, close=Refusal(Code.OBLIGATIONS, "r1.api.1 has no owner")), connected(tocsin) as client:
        refused = await client.call_tool("run_close", {"run": "r1"})
    assert refused.is_error
    assert (refused.structured_content["code"], refused.structured_content["retry"]) == ("obligations", "after_change")
    assert "tocsin audit" in refused.structured_content["next"]


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("task_add", {"tasks": []}, "bad_field"),
        ("task_add", {"tasks": [{"id": "a"}]}, "bad_field"),
        ("task_show", {"task": "a", "nothing": 1}, "bad_field"),
        ("mail_check", {"wait_s": 100_000}, "bad_field"),
        ("worker_start", {"task": "a", "where": "anywhere"}, "bad_field"),
        ("mail_ack", {"delivery": "d1", "run": "r1"}, "stale_delivery"),
        ("no_such_tool", {}, "not_found"),
    ],
)
async def test_what_makes_no_sense_is_refused_by_name_and_asks_nobody(tocsin, bus, name, arguments, code):
    async with runs(bus) as got, mails(bus) as also, connected(tocsin) as client:
        refused = await client.call_tool(name, arguments)
        # And the server goes on.
        assert (await client.list_tools()).tools
    assert refused.is_error
    assert refused.structured_content["code"] == code
    assert got + also == []


async def test_a_start_is_told_as_far_as_it_was_seen(bus, tocsin, tmp_path):
    rows = [{"state": "starting", "turn_start": "awaited"}, {"state": "start_unknown", "turn_start": "not_seen"}]

    def answer(ask: Any) -> dict[str, Any]:
        return STARTED if isinstance(ask, StartWorker) else a_shown_worker(**rows.pop(0))

    async with serving(bus, RUN_CMD, answer) as got, connected(tocsin) as client:
        said = await client.call_tool("worker_start", {"task": "api", "where": "current", "agent": "codex", "run": "r1"})
        refused = await client.call_tool("worker_start", {"task": "api", "where": "existing", "agent": "codex", "run": "r1"})
    assert not said.is_error
    assert (said.structured_content["state"], said.structured_content["turn_start"]) == ("start_unknown", "not_seen")
    assert got[0].ask.launch.placement.path == str(tmp_path.resolve())
    assert refused.structured_content["code"] == "placement_required"


async def test_mail_is_taken_acked_and_answered(bus, tocsin):
    answers = {"check": a_delivery(a_message()), "ack": {"acked": "run:r1.d1"}, "reply": {"question": "r1.api.1.qa7", "message": "m"}}
    async with mails(bus, **answers) as got, connected(tocsin) as client:
        handed = await client.call_tool("mail_check", {"run": "r1", "wait_s": 5, "types": ["question"]})
        await client.call_tool("mail_ack", {"delivery": handed.structured_content["delivery"]})
        await client.call_tool("mail_reply", {"question": "r1.api.1.qa7", "answer": "81"})
    check, ack, reply = (command.ask for command in got)
    assert isinstance(check, CheckMail)
    assert check.types == (MailType.QUESTION,)
    assert (ack, reply) == (AckMail(delivery="run:r1.d1"), ReplyMail(question="r1.api.1.qa7", body="81"))


async def test_a_call_that_is_given_up_ends_its_wait_at_the_other_end_too(bus, tocsin):
    parked: asyncio.Queue[Any] = asyncio.Queue()

    async def handle(command: Any) -> Receipt:
        await parked.put(command)
        if isinstance(command.ask, CheckMail):
            await asyncio.Event().wait()
        return Receipt(request=command.request)

    async with bus.serve(MAIL_CMD, handle, name="fake"):
        await settled(bus.client)
        async with connected(tocsin) as client:
            async with anyio.create_task_group() as calls:
                calls.start_soon(client.call_tool, "mail_check", {"run": "r1", "wait_s": 600})
                wait = await asyncio.wait_for(parked.get(), 20)
                calls.cancel_scope.cancel()
            ended = await asyncio.wait_for(parked.get(), 20)
    assert ended.ask == EndWait(wait=wait.request)


async def test_custody_is_looked_at_and_decided(bus, tocsin):
    async with serving(bus, CUSTODY_CMD, lambda _: {"rows": [], "state": "retained"}) as got, connected(tocsin) as client:
        await client.call_tool("custody_list", {"run": "r1", "obligations_only": True})
        await client.call_tool("custody_retain", {"dispatch": "r1.api.1", "reason": "its review is open", "gate": "check"})
        await client.call_tool("custody_release", {"dispatch": "r1.api.1", "worktree": False})
    assert [(command.custody, command.ask) for command in got] == [
        (ALL, ListCustodies(run="r1", obligations_only=True)),
        ("r1.api.1", Retain(reason="its review is open", gate="check")),
        ("r1.api.1", Release(worktree=False)),
    ]


RESULTS: dict[str, dict[str, Any]] = {
    "show": {"run": a_run_row()},
    "list": {"rows": [a_run_row()], "total": 1, "next": None},
    "tasks": {"rows": [a_task_row()], "total": 1, "next": None},
    "task": {"task": a_task_row(), "workers": [], "verdicts": []},
    "workers": {"rows": [a_worker_row()], "total": 1, "next": None, "scope": "r1"},
    "worker": a_shown_worker(),
    "gates": {"rows": [], "total": 0},
    "request": {"request": "q", "state": "absent", "receipt": None, "worker": None},
    "use": CREATED,
    "stop": {"dispatch": "r1.api.1", "state": "stopped", "already_ended": True},
}

CALLS = [
    ("run_use", {"run": "r1"}, "use"),
    ("run_list", {}, "list"),
    ("run_show", {}, "show"),
    ("run_pause", {"reason": "lunch"}, "pause"),
    ("run_resume", {}, "resume"),
    ("task_list", {"states": ["ready"]}, "tasks"),
    ("task_show", {"task": "api"}, "task"),
    ("task_update", {"task": "api", "deps": []}, "update"),
    ("task_accept", {"task": "api", "verdict": "rework", "reason": "no tests"}, "accept"),
    ("task_reopen", {"task": "api", "reason": "again"}, "reopen"),
    ("task_cancel", {"task": "api", "reason": "no need"}, "cancel"),
    ("worker_list", {"every_run": True}, "workers"),
    ("worker_show", {"dispatch": "r1.api.1"}, "worker"),
    ("worker_stop", {"dispatch": "r1.api.1"}, "stop"),
    ("worker_abandon", {"dispatch": "r1.api.1", "reason": "lost"}, "abandon"),
    ("gate_create", {"task": "api", "question": "which port?"}, "open_gate"),
    ("gate_resolve", {"gate": "r1.g1", "verdict": "accept"}, "resolve_gate"),
    ("gate_list", {}, "gates"),
    ("request_show", {"id": "q"}, "request"),
]


async def test_every_tool_of_a_run_puts_its_own_verb(bus, tocsin):
    async with serving(bus, RUN_CMD, lambda ask: RESULTS.get(ask.__struct_config__.tag, {"run": "r1"})) as got, connected(tocsin) as client:
        for name, arguments, verb in CALLS:
            said = await client.call_tool(name, {"run": "r1"} | arguments)
            assert not said.is_error, (name, said.structured_content)
            assert got[-1].ask.__struct_config__.tag == verb, name


async def test_nobody_there_is_unavailable_with_the_id_to_call_again(tmp_path):
    async with connected(Command(tmp_path).with_(NATS_URL="")) as client:
        refused = await client.call_tool("run_pause", {"run": "r1", "request": "q7"})
    assert refused.is_error
    assert refused.structured_content["code"] == "unavailable"
    assert "--request q7" in refused.structured_content["next"][0]


# ---------------------------------------------------------------- a worker


@pytest.fixture
def pane(tmp_path) -> PaneHost:
    return PaneHost(tmp_path / "pane")


@pytest.fixture
def inside(pane, tmp_path) -> Command:
    return pane.command(tmp_path)


async def test_a_worker_gets_a_workers_tools_and_has_to_name_nothing(inside, pane):
    answers = {
        "report": {"dispatch": "r1.api.1"}, "beat": {}, "verdict": {}, "ask": ASKED, "inbox": EMPTY_INBOX,
        "check": a_delivery(ANSWERED, delivery="dispatch:r1.api.1.d1"), "ack": {"acked": ""},
    }  # fmt: skip
    async with pane.serving(lambda request: taken(**answers[request["body"]["ask"]["verb"]])(request)), connected(inside) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == set(WORKER)
        answer = await client.call_tool("ask", {"question": "which port?"})
        await client.call_tool("heartbeat", {"phase": "reviewing"})
        await client.call_tool("review_verdict", {"verdict": "rework", "findings": "no tests", "commit": "abc"})
        await client.call_tool("report", {"outcome": "succeeded", "body": "done", "files": ["a.py"]})
    assert answer.structured_content["body"] == "81"
    asks = {request["body"]["ask"]["verb"]: request["body"] for request in pane.got}
    assert msgspec.convert(asks["verdict"]["ask"], GiveVerdict) == GiveVerdict(verdict=Verdict.REWORK, findings="no tests", commit="abc")
    assert msgspec.convert(asks["report"]["ask"], ReportWork).report.files == ("a.py",)
    assert not any({"caller", "run"} & set(body) for body in asks.values())


async def test_the_role_can_be_named(inside):
    async with connected(inside, "--role", "coordinator") as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == set(COORDINATOR)


def test_no_schema_says_that_what_may_be_left_out_is_null():
    for tool in {**COORDINATOR, **WORKER}.values():
        assert {"type": "null"} not in [kind for field in schema(tool)["properties"].values() for kind in field.get("anyOf", [])]


def test_without_the_extra_it_says_how_to_get_it(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp.server.stdio", None)
    assert main(["mcp"]) == 1
    assert "pip install 'tocsin[mcp]'" in capsys.readouterr().err
