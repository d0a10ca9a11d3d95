"""What an idle hook is answered, within its own request, and the handlers that wait beside idle sessions."""

import asyncio
import contextlib
import json
import os
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from nats.aio.msg import Msg

from builders import NOW_MS
from mailbox_builders import COORDINATOR, WORKER, at_rest, at_work
from support import Deadline, running, settled
from tocsin.agents.install import endpoint
from tocsin.agents.registry import AGENTS
from tocsin.bus.bus import Unavailable
from tocsin.bus.nats_bus import NatsBus, connect
from tocsin.contract.ids import HostId
from tocsin.contract.mail import IdleAnswer, IdleQuestion, MailCommand, ReadWakes, WakeDue, WakeState
from tocsin.contract.refusals import ADVICE, Code
from tocsin.contract.run import CoordinatorBound, Outcome, Receipt, Report, RunRecorded, WorkReported
from tocsin.contract.subjects import HOOK_REPORTED, MAIL_CMD, MAIL_EVENT, MAIL_IDLE, PANE_STATUS, RUN_EVENT
from tocsin.hook_ingest import __main__ as server
from tocsin.hook_ingest import idle
from tocsin.hook_ingest.account import Account
from tocsin.hook_ingest.app import Front, rest_of
from tocsin.hook_ingest.credentials import Credentials
from tocsin.hook_ingest.idle import IdleHooks, Parking
from tocsin.hook_ingest.publisher import Publisher
from tocsin.hook_ingest.service import HookIngest
from tocsin.hook_ingest.settings import IngestSettings
from tocsin.mailbox import service
from tocsin.runtime import instance
from tocsin.runtime.clock import SystemClock
from tocsin.runtime.http.border import Border
from tocsin.store.views import Views

PORT = 8627
HOOK, COMMAND = "inst1.hook-secret-hook-secret", "inst1.command-secret-command-secret"
LINE = "Tocsin notice: 1 message (report) for Run r1. To read: tocsin mail check"
STOP = {"session_id": "s1", "hook_event_name": "Stop", "cwd": "/repo", "stop_hook_active": False}
CLOCK = SystemClock()


class AnsweringBus:
    """Takes hooks, and answers questions about mail with what the test has ready; keeps the order of both."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.questions: list[IdleQuestion] = []
        self.answer: Callable[[IdleQuestion], IdleAnswer] = lambda question: IdleAnswer(pointer=LINE, wake="w1")
        self.hangs = False
        self.away = False

    async def say(self, subject: Any, body: Any, *, msg_id: str | None = None, after: int | None = None) -> int:
        if self.away:
            raise Unavailable("away")
        assert subject is HOOK_REPORTED
        self.heard.append("said")
        self.said = body
        return 1

    async def ask(self, subject: Any, body: IdleQuestion, *, timeout_s: float) -> IdleAnswer:
        assert subject is MAIL_IDLE
        self.heard.append("asked")
        self.questions.append(body)
        if self.hangs:
            try:
                await asyncio.wait_for(asyncio.Event().wait(), timeout_s)
            except TimeoutError as error:
                raise Unavailable("nobody answers in time") from error
        return self.answer(body)


def nobody(question: IdleQuestion) -> IdleAnswer:
    raise Unavailable("nobody answers")


class Ingest:
    """hook-ingest without its server."""

    def __init__(self, bus: Any) -> None:
        self.account = Account(CLOCK)
        border = Border.around(PORT)
        credentials = Credentials(HOOK.encode(), COMMAND.encode())
        hooks = IdleHooks(bus)
        common: dict[str, Any] = {
            "agents": AGENTS, "border": border, "credentials": credentials, "host": HostId("h"), "clock": CLOCK, "account": self.account,
            "idle": hooks,
        }  # fmt: skip
        ingest = HookIngest(keyed=lambda text: "hash", show_text=False, publisher=Publisher(bus, CLOCK, self.account), **common)
        self.parking = Parking(Front(ingest, rest_of(bus, tuple(AGENTS)), border, credentials, self.account), **common)
        transport = httpx.ASGITransport(self.parking)
        headers = {"Authorization": f"Bearer {HOOK}", "Content-Type": "application/json"}
        self.client = httpx.AsyncClient(transport=transport, base_url=f"http://127.0.0.1:{PORT}", headers=headers)

    async def hook(self, agent: str = "claude", body: dict[str, Any] | None = None, **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.client.post(f"/hook/{agent}", content=json.dumps(body or STOP), headers=named)

    async def park(self, agent: str = "claude", session: str = "s1", **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.client.get(f"/park/{agent}", headers={"X-Tocsin-Session": session} | named)


@pytest.fixture
def bus() -> AnsweringBus:
    return AnsweringBus()


@pytest.fixture
def ingest(bus: AnsweringBus) -> Ingest:
    return Ingest(bus)


# -------------------------------------------------------------- idle hooks

BLOCK = {"decision": "block", "reason": LINE}
FORMS = [
    ("claude", STOP, BLOCK),
    ("codex", STOP, BLOCK),
    ("qwen", STOP, BLOCK),
    (
        "gemini",
        {"session_id": "s1", "hook_event_name": "AfterAgent", "cwd": "/repo", "prompt_response": "ok"},
        BLOCK | {"decision": "deny"},
    ),
]


@pytest.mark.parametrize(("agent", "body", "answer"), FORMS)
async def test_an_idle_hook_is_answered_with_the_line_in_its_agents_own_form(ingest, bus, agent, body, answer):
    said = await ingest.hook(agent, body)
    assert (said.status_code, said.json()) == (200, answer)
    [question] = bus.questions
    assert (question.agent, question.session, question.host, question.parked) == (agent, "s1", "h", False)


async def test_the_event_is_on_record_before_anybody_is_asked(ingest, bus):
    await ingest.hook()
    assert bus.heard == ["said", "asked"]


async def test_an_event_that_the_bus_does_not_take_is_refused_and_nobody_is_asked(ingest, bus):
    bus.away = True
    assert (await ingest.hook()).status_code == 503
    assert bus.questions == []


@pytest.mark.parametrize("answer", [lambda question: IdleAnswer(), nobody])
async def test_with_nothing_to_say_or_nobody_to_ask_the_answer_is_as_empty_as_ever(ingest, bus, answer):
    bus.answer = answer
    said = await ingest.hook()
    assert (said.status_code, said.content) == (204, b"")


async def test_an_answer_that_does_not_come_at_once_does_not_come(ingest, bus):
    bus.hangs = True
    assert (await ingest.hook()).status_code == 204


async def test_whether_the_turn_was_itself_caused_by_an_answer_is_part_of_the_question(ingest, bus):
    await ingest.hook(body=STOP | {"stop_hook_active": True})
    await ingest.hook(body=STOP | {"stop_hook_active": "yes"})
    assert [question.stop_hook_active for question in bus.questions] == [True, False]


async def test_the_moment_of_the_question_is_that_of_the_event(ingest, bus):
    await ingest.hook(X_Tocsin_Pane="p1")
    [question] = bus.questions
    assert (question.pane, question.at_ms) == ("p1", bus.said.at_ms)


NOT_IDLE = [
    ("claude", {"session_id": "s1", "hook_event_name": "UserPromptSubmit", "cwd": "/repo", "prompt": "go"}, {}),
    ("claude", {"session_id": "s1", "hook_event_name": "Stop", "cwd": "/repo", "agent_id": "a1"}, {}),
    ("claude", STOP, {"X_Tocsin_Spooled": "1"}),
    ("codex", {"session_id": "s1", "hook_event_name": "Stop", "cwd": "/repo", "agent_id": "a1"}, {}),
    ("opencode", {"type": "session.idle", "properties": {"sessionID": "s1"}}, {"X_Tocsin_Event": "session.idle"}),
]


@pytest.mark.parametrize(("agent", "body", "headers"), NOT_IDLE)
async def test_nobody_is_asked_for_an_event_whose_hook_does_not_wait_for_the_end_of_a_turn(ingest, bus, agent, body, headers):
    assert (await ingest.hook(agent, body, **headers)).status_code == 204
    assert bus.questions == []


# ---------------------------------------------------------- parked handlers


async def test_a_parked_handler_gets_the_line_as_text(ingest, bus):
    said = await ingest.park()
    assert (said.status_code, said.text) == (200, f"{LINE}\n")
    [question] = bus.questions
    assert (question.parked, question.pane, question.session) == (True, None, "s1")


async def test_a_parked_handler_waits_for_a_hint_of_its_own_session_and_asks_again(ingest, bus):
    bus.answer = lambda question: IdleAnswer(pointer=LINE if len(bus.questions) > 1 else None)
    waiting = asyncio.create_task(ingest.park())
    async for _ in Deadline(10, "the handler is parked"):
        if bus.questions:
            break
    hint = WakeDue(host=HostId("h"), pane="p1", wake="w1", session="s2", pointer=LINE, at_ms=NOW_MS)
    ingest.parking.stir(hint)
    await asyncio.sleep(0)
    assert not waiting.done()
    ingest.parking.stir(WakeDue(host=HostId("h"), pane="p1", wake="w1", session="s1", pointer=LINE, at_ms=NOW_MS))
    assert (await waiting).status_code == 200
    assert len(bus.questions) == 2


async def test_a_request_that_was_held_long_enough_may_be_asked_again(ingest, bus, monkeypatch):
    monkeypatch.setattr(idle, "PARK_S", 0.02)
    bus.answer = lambda question: IdleAnswer()
    said = await ingest.park()
    assert (said.status_code, said.content) == (204, b"")
    assert ingest.parking._parked == {}


async def test_an_older_handler_of_the_same_session_is_let_go_when_a_newer_one_comes(ingest, bus):
    bus.answer = lambda question: IdleAnswer(pointer=LINE if len(bus.questions) > 2 else None)
    older = asyncio.create_task(ingest.park())
    async for _ in Deadline(10, "the first is parked"):
        if len(bus.questions) == 1:
            break
    newer = asyncio.create_task(ingest.park())
    answer = await older
    assert (answer.status_code, answer.json()["code"]) == (409, Code.WAITER_EXISTS)
    ingest.parking.stir(WakeDue(host=HostId("h"), pane="p1", wake="w1", session="s1", pointer=LINE, at_ms=NOW_MS))
    assert (await newer).status_code == 200


async def test_the_handler_of_the_session_before_is_let_go_when_its_client_has_begun_another(ingest, bus):
    bus.answer = lambda question: IdleAnswer(pointer=LINE if question.session == "after-clear" and len(bus.questions) > 3 else None)
    before = asyncio.create_task(ingest.park(session="before-clear", X_Tocsin_Pid="7"))
    others = asyncio.create_task(ingest.park(session="of-another", X_Tocsin_Pid="8"))
    async for _ in Deadline(10, "both are parked"):
        if len(bus.questions) == 2:
            break
    after = asyncio.create_task(ingest.park(session="after-clear", X_Tocsin_Pid="7"))
    answer = await before
    assert (answer.status_code, answer.json()["code"]) == (409, Code.WAITER_EXISTS)
    ingest.parking.stir(WakeDue(host=HostId("h"), pane="p1", wake="w1", session="after-clear", pointer=LINE, at_ms=NOW_MS))
    assert (await after).status_code == 200
    ingest.parking.close()
    assert (await others).status_code == 204


async def test_handlers_of_two_sessions_wait_beside_each_other(ingest, bus):
    bus.answer = lambda question: IdleAnswer()
    both = [asyncio.create_task(ingest.park(session=session)) for session in ("s1", "s2")]
    async for _ in Deadline(10, "both are parked"):
        if len(bus.questions) == 2:
            break
    ingest.parking.close()
    assert [(await one).status_code for one in both] == [204, 204]


async def test_a_stop_lets_all_handlers_go(ingest, bus):
    bus.answer = lambda question: IdleAnswer()
    waiting = asyncio.create_task(ingest.park())
    async for _ in Deadline(10, "the handler is parked"):
        if bus.questions:
            break
    ingest.parking.close()
    assert (await waiting).status_code == 204


async def test_a_handler_whose_client_has_left_holds_no_place(ingest, bus):
    bus.answer = lambda question: IdleAnswer()
    sent: list[Any] = []
    incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"127.0.0.1:8627"), (b"authorization", f"Bearer {HOOK}".encode()), (b"x-tocsin-session", b"s1")]
    scope = {"type": "http", "path": "/park/claude", "method": "GET", "headers": headers}
    incoming.put_nowait({"type": "http.request", "body": b"", "more_body": False})
    held = asyncio.create_task(ingest.parking(scope, incoming.get, send))
    async for _ in Deadline(10, "the handler is parked"):
        if bus.questions:
            break
    incoming.put_nowait({"type": "http.disconnect"})
    await held
    assert ingest.parking._parked == {}


@pytest.mark.parametrize(
    ("agent", "headers", "code"),
    [
        ("claude", {"Authorization": "Bearer inst1.wrong-wrong-wrong-wrong"}, Code.NO_CREDENTIAL),
        ("claude", {"Authorization": f"Bearer {COMMAND}"}, Code.NO_CREDENTIAL),
        ("claude", {"Authorization": "Bearer inst2.hook-secret-hook-secret"}, Code.FOREIGN_INSTANCE),
        ("claude", {"Host": "evil.example"}, Code.FOREIGN_HOST),
        ("claude", {"Origin": "http://evil.example"}, Code.FOREIGN_ORIGIN),
        ("codex", {}, Code.UNKNOWN_AGENT),
        ("nobody", {}, Code.UNKNOWN_AGENT),
        ("claude", {"X_Tocsin_Session": "a b"}, Code.BAD_FIELD),
        ("claude", {"X_Tocsin_Session": ""}, Code.BAD_FIELD),
        ("claude", {"X_Tocsin_Session": "x" * 201}, Code.BAD_FIELD),
    ],
)
async def test_who_may_not_park_is_refused_before_anybody_is_asked(ingest, bus, agent, headers, code):
    said = await ingest.park(agent, **headers)
    assert (said.json()["code"], said.status_code) == (code, ADVICE[code].status)
    assert bus.questions == []


async def test_no_more_handlers_are_held_than_there_is_room_for(ingest, bus, monkeypatch):
    monkeypatch.setattr(idle, "PARKED_MAX", 1)
    bus.answer = lambda question: IdleAnswer()
    waiting = asyncio.create_task(ingest.park())
    async for _ in Deadline(10, "the handler is parked"):
        if bus.questions:
            break
    assert (await ingest.park(session="s2")).status_code == 503
    ingest.parking.close()
    await waiting


async def test_a_handler_asks_again_when_mailbox_did_not_answer(bus, ingest, monkeypatch):
    monkeypatch.setattr(idle, "ASK_AGAIN_S", 0.01)
    bus.answer = lambda question: nobody(question) if len(bus.questions) < 3 else IdleAnswer(pointer=LINE, wake="w1")
    assert (await ingest.park()).text.strip() == LINE
    assert len(bus.questions) == 3


async def test_a_handler_looks_again_when_hints_may_have_been_lost(bus, ingest):
    bus.answer = lambda question: IdleAnswer() if len(bus.questions) < 2 else IdleAnswer(pointer=LINE, wake="w1")
    waiting = asyncio.create_task(ingest.park())
    async for _ in Deadline(10, "the handler is parked"):
        if bus.questions:
            break
    ingest.parking.stir_all()
    assert (await waiting).text.strip() == LINE


async def test_what_is_no_parking_goes_on_to_the_rest(ingest):
    assert (await ingest.client.get("/openapi.json")).status_code == 200


# ----------------------------------------------------------------- together


class Together:
    """Both services over one real bus, each on its own connection, and a coordinator in pane p1 that works and has a report."""

    def __init__(self, bus: NatsBus, port: int, state: Path, ingest: "asyncio.Task[None]") -> None:
        self.bus = bus
        self.state = state
        self.ingest = ingest
        credential = instance.credential(state, instance.HOOK_CREDENTIAL)
        headers = {"Authorization": f"Bearer {credential}", "Content-Type": "application/json", "X-Tocsin-Pane": "p1"}
        self.client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=20)

    async def until_wake(self, state: WakeState) -> None:
        command = MailCommand(mailbox="run:r1", request="q", caller=COORDINATOR, ask=ReadWakes(), at_ms=0)
        async for _ in Deadline(10, f"a wake that is {state}"):
            with contextlib.suppress(Unavailable):
                answer = await self.bus.ask(MAIL_CMD, command, timeout_s=1)
                if isinstance(answer, Receipt) and answer.result["rows"] and answer.result["rows"][0]["state"] == state:
                    return


@pytest.fixture
async def together(nats_server, store, tmp_path) -> AsyncIterator[Together]:
    state = tmp_path / "state"
    instance.create(state)
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    async with (
        connect(nats_server.url, name="test") as bus,
        connect(nats_server.url, name=service.NAME) as mailbox_bus,
        connect(nats_server.url, name="hook-ingest") as ingest_bus,
        running(service.serve(mailbox_bus, Views(store, MAIL_EVENT.name), CLOCK)),
        running(server.serve(IngestSettings(state=state, host="h", ingest_port=0), ingest_bus, CLOCK, port.set_result)) as ingest,
    ):
        made = Together(bus, await port, state, ingest)
        report = WorkReported(dispatch="r1.t1.1", task="t1", report=Report(outcome=Outcome.SUCCEEDED, body="done"), by=WORKER)
        recorded = RunRecorded(
            run="r1", request="", caller=COORDINATOR, payload_hash="", receipt=Receipt(request=""), at_ms=CLOCK.now_ms(),
            events=(CoordinatorBound(generation=1, caller=COORDINATOR), report),
        )  # fmt: skip
        await bus.say(PANE_STATUS, at_work(agent="claude"))
        await bus.say(RUN_EVENT, recorded)
        await made.until_wake(WakeState.HELD)
        yield made
        await made.client.aclose()


async def test_a_coordinators_stop_is_answered_by_mailbox_when_it_has_mail_and_not_again(together):
    said = await together.client.post("/hook/claude", content=json.dumps(STOP))
    assert (said.status_code, said.json()) == (200, BLOCK)
    again = await together.client.post("/hook/claude", content=json.dumps(STOP | {"stop_hook_active": True}))
    assert again.status_code == 204


async def test_the_installed_hook_that_parks_beside_an_idle_session_wakes_it_with_the_line(together):
    files = Path(endpoint.__file__).parent / "files"
    credential = instance.credential(together.state, instance.HOOK_CREDENTIAL)
    at = together.client.base_url
    endpoint.write_endpoint(together.state, str(at), credential, at.netloc.decode())
    environment = os.environ | {"TOCSIN_STATE": str(together.state)}
    words = ("sh", files / "hook", "claude", "park")
    waits = await asyncio.create_subprocess_exec(*words, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    waits.stdin.write(json.dumps(STOP).encode())
    waits.stdin.close()
    await together.bus.say(PANE_STATUS, at_rest(ended_ms=CLOCK.now_ms(), agent="claude"))
    async with asyncio.timeout(20):
        line = await waits.stderr.read()
        assert (await waits.wait(), line.decode()) == (2, f"{LINE}\n")


async def test_a_stop_of_the_service_answers_the_handlers_that_are_parked(together):
    asked: asyncio.Queue[bytes] = asyncio.Queue()

    async def hear(message: Msg) -> None:
        asked.put_nowait(message.data)

    await together.bus.client.subscribe(MAIL_IDLE.all, cb=hear)
    await settled(together.bus.client)
    stays = asyncio.create_task(together.client.get("/park/claude", headers={"X-Tocsin-Session": "s8"}))
    question = asyncio.create_task(asked.get())
    await asyncio.wait({question, stays}, timeout=10, return_when=asyncio.FIRST_COMPLETED)
    assert question.done(), f"it is not parked: {stays}"
    together.ingest.cancel()
    assert (await stays).status_code == 204
