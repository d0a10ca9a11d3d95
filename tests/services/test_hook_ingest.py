"""What hook-ingest takes, what it refuses and why, and when it answers. In process, over a bus that records."""

import asyncio
import json
from collections.abc import AsyncIterator

import httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW_MS
from support import Deadline
from tocsin.agents.registry import AGENTS
from tocsin.bus.bus import Unavailable
from tocsin.contract import metrics
from tocsin.contract.ids import HostId
from tocsin.contract.messages import HookReported, Kind
from tocsin.contract.refusals import ADVICE, Code, Refusal
from tocsin.contract.subjects import HOOK_REPORTED
from tocsin.contract.tally import Sample
from tocsin.hook_ingest import publisher, service
from tocsin.hook_ingest.account import Account
from tocsin.hook_ingest.app import OPEN_PATHS, Front, rest_of
from tocsin.hook_ingest.core.payload import BODY_BYTES_MAX, Envelope, parse, report
from tocsin.hook_ingest.credentials import Credentials, read_credentials
from tocsin.hook_ingest.envelope import read_envelope
from tocsin.hook_ingest.idle import IdleHooks
from tocsin.hook_ingest.publisher import Publisher
from tocsin.hook_ingest.service import HookIngest
from tocsin.hook_ingest.settings import IngestSettings
from tocsin.runtime.hashing import read_keyed
from tocsin.runtime.http import asgi
from tocsin.runtime.http.asgi import Bodies
from tocsin.runtime.http.border import Border

PORT = 8627
HOOK = "inst1.hook-secret-hook-secret"
COMMAND = "inst1.command-secret-command-secret"
STOP = {
    "session_id": "s1", "hook_event_name": "Stop", "cwd": "/repo", "stop_hook_active": False, "background_tasks": [], "session_crons": [],
}  # fmt: skip
HEADERS = {"Host": f"127.0.0.1:{PORT}", "Content-Type": "application/json", "Authorization": f"Bearer {HOOK}"}
DEEP = b"[" * 20_000 + b"]" * 20_000


class FixedClock:
    def __init__(self) -> None:
        self.awake = 0

    def now_ms(self) -> int:
        return NOW_MS

    def awake_ms(self) -> int:
        return self.awake


class RecordingBus:
    """Keeps what is said, as the bus would encode it; fails `away` times first, and gives no ack while `held`: in time, it says so."""

    def __init__(self, away: int = 0) -> None:
        self.away = away
        self.tries: list[str | None] = []
        self.said: list[HookReported] = []
        self.free = asyncio.Event()
        self.free.set()

    def hold(self) -> None:
        self.free.clear()

    async def say(self, subject, body, *, msg_id=None, after=None) -> int:
        assert subject is HOOK_REPORTED
        self.tries.append(msg_id)
        if self.away > 0:
            self.away -= 1
            raise Unavailable("away")
        try:
            async with asyncio.timeout(publisher.SAY_S_MAX):
                await self.free.wait()
        except TimeoutError as error:
            raise Unavailable("no ack in time") from error
        subject.of(body)
        self.said.append(msgspec.json.decode(msgspec.json.encode(body), type=HookReported))
        return len(self.said)

    async def birth(self, subject) -> str:
        if self.away > 0:
            raise Unavailable("away")
        return "b1"

    async def ask(self, subject, body, *, timeout_s):
        raise Unavailable("nobody to ask")


class Ingest:
    """The whole HTTP service but its server."""

    def __init__(self, bus: RecordingBus, *, answer_first: bool = False, show_text: bool = False) -> None:
        self.bus = bus
        self.clock = FixedClock()
        self.account = Account(self.clock)
        border = Border.around(PORT, ["ingest:80"], ["http://127.0.0.1:7777"])
        credentials = Credentials(HOOK.encode(), COMMAND.encode())
        self.publisher = Publisher(bus, self.clock, self.account, answer_first=answer_first)
        hooks = HookIngest(
            agents=AGENTS, border=border, credentials=credentials, keyed=lambda text: "hash", host=HostId("here"), show_text=show_text,
            publisher=self.publisher, clock=self.clock, account=self.account, idle=IdleHooks(bus),
        )  # fmt: skip
        front = Front(hooks, rest_of(bus, tuple(AGENTS)), border, credentials, self.account)
        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(front), base_url=f"http://127.0.0.1:{PORT}")

    async def ask(self, method: str, path: str, body: bytes | dict = b"", **headers: str | bytes | None) -> httpx.Response:
        """Headers by keyword; None leaves one of HEADERS out."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        wanted = HEADERS | {name.replace("_", "-"): value for name, value in headers.items()}
        wanted = {"Content-Length": str(len(content))} | {name: value for name, value in wanted.items() if value is not None}
        request = self.client.build_request(method, path, content=content)
        request.headers = httpx.Headers(wanted)
        return await self.client.send(request)

    async def hook(self, body: bytes | dict = STOP, agent: str = "claude", **headers: str | bytes | None) -> httpx.Response:
        return await self.ask("POST", f"/hook/{agent}", body, **headers)

    def nothing_changed(self) -> bool:
        return self.bus.tries == [] and not self.account.published


@pytest.fixture
async def ingest() -> AsyncIterator[Ingest]:
    made = Ingest(RecordingBus())
    yield made
    await made.client.aclose()


def code_of(answer: httpx.Response) -> str:
    """The code of a refusal; fails when the answer is not one, or its status is not the code's."""
    refusal = answer.json()
    assert set(refusal) == {"code", "message", "retry", "next"}
    assert answer.status_code == ADVICE[Code(refusal["code"])].status
    assert answer.headers["content-type"] == "application/json"
    return refusal["code"]


# ---------------------------------------------------------------- taken


async def test_a_well_formed_event_is_on_record_before_the_answer(ingest):
    answer = await ingest.hook(X_Tocsin_Sent=str(NOW_MS - 5))
    assert (answer.status_code, answer.content) == (204, b"")
    [said] = ingest.bus.said
    assert (said.kind, said.session, said.agent, said.host, said.at_ms, said.sent_ms) == (
        Kind.TURN_ENDED, "s1", "claude", "here", NOW_MS, NOW_MS - 5,
    )  # fmt: skip
    assert ingest.bus.tries == [said.id]


async def test_the_same_event_sent_again_has_the_same_message_id_and_another_has_another(ingest):
    await ingest.hook(X_Tocsin_Sent="1")
    await ingest.hook(X_Tocsin_Sent="1")
    await ingest.hook(X_Tocsin_Sent="2")
    first, again, other = ingest.bus.tries
    assert first == again != other


async def test_the_host_of_an_event_is_the_one_that_its_hook_names(ingest):
    await ingest.hook(X_Tocsin_Host="laptop")
    assert ingest.bus.said[0].host == "laptop"


async def test_an_event_that_means_nothing_is_taken_counted_and_not_published(ingest):
    agent, event = next((agent.name, event) for agent in AGENTS.values() for event in sorted(agent.ignored))
    answer = await ingest.hook({"session_id": "s1", "hook_event_name": event}, agent, X_Tocsin_Event=event)
    assert answer.status_code == 204
    assert ingest.nothing_changed()
    assert ingest.account.meaningless == {agent: 1}


async def test_no_text_that_a_person_wrote_leaves(ingest):
    await ingest.hook({"session_id": "s1", "hook_event_name": "UserPromptSubmit", "cwd": "/repo", "prompt": "my secret plan"})
    await ingest.hook(STOP | {"last_assistant_message": "my secret answer"})
    assert len(ingest.bus.said) == 2
    assert "my secret" not in repr(ingest.bus.said)


@pytest.mark.parametrize(("show_text", "excerpt"), [(False, None), (True, "npm test --token ***")])
async def test_an_excerpt_of_what_is_asked_leaves_only_when_the_user_wants_it_and_masked(show_text, excerpt):
    ingest = Ingest(RecordingBus(), show_text=show_text)
    ask = {"hook_event_name": "PermissionRequest", "tool_name": "Bash", "tool_input": {"command": "npm test --token hunter2hunter2"}}
    await ingest.hook(EVENT | ask)
    assert ingest.bus.said[0].excerpt == excerpt
    assert "hunter2" not in repr(ingest.bus.said)


async def test_a_charset_beside_the_content_type_and_any_case_of_it_pass(ingest):
    assert (await ingest.hook(Content_Type="Application/JSON; charset=utf-8")).status_code == 204


@pytest.mark.parametrize("host", ["127.0.0.1:8627", "localhost:8627", "[::1]:8627", "LOCALHOST:8627", "ingest:80"])
async def test_the_loopback_names_with_our_port_and_the_allowed_hosts_pass(ingest, host):
    assert (await ingest.hook(Host=host)).status_code == 204


async def test_an_origin_that_is_allowed_by_name_passes(ingest):
    assert (await ingest.hook(Origin="http://127.0.0.1:7777")).status_code == 204


# ---------------------------------------------------------------- refused

OTHER = "inst2.hook-secret-hook-secret"
EVENT_WITHOUT_CWD = {"session_id": "s1", "hook_event_name": "Stop"}
EVENT = EVENT_WITHOUT_CWD | {"cwd": "/repo"}

REFUSED = [
    # what is wrong, the code, the request's changes
    ("no Host", Code.FOREIGN_HOST, {"Host": None}),
    ("a name that a page had resolved to loopback", Code.FOREIGN_HOST, {"Host": "evil.example:8627"}),
    ("another port", Code.FOREIGN_HOST, {"Host": "127.0.0.1:8628"}),
    ("no port", Code.FOREIGN_HOST, {"Host": "127.0.0.1"}),
    ("a name that only begins like ours", Code.FOREIGN_HOST, {"Host": "localhost:8627.evil.example"}),
    ("a page", Code.FOREIGN_ORIGIN, {"Origin": "https://evil.example"}),
    ("a page of a file or sandbox", Code.FOREIGN_ORIGIN, {"Origin": "null"}),
    ("an empty Origin", Code.FOREIGN_ORIGIN, {"Origin": ""}),
    ("a page that only begins like loopback", Code.FOREIGN_ORIGIN, {"Origin": "http://localhost.evil.example"}),
    ("a page that only begins like an allowed one", Code.FOREIGN_ORIGIN, {"Origin": "http://127.0.0.1:77770"}),
    ("another program's page on loopback", Code.FOREIGN_ORIGIN, {"Origin": "http://127.0.0.1:3000"}),
    ("no Content-Type", Code.NOT_JSON, {"Content_Type": None}),
    ("what a page may send without asking", Code.NOT_JSON, {"Content_Type": "text/plain"}),
    ("a form", Code.NOT_JSON, {"Content_Type": "application/x-www-form-urlencoded"}),
    ("a type that only begins like JSON", Code.NOT_JSON, {"Content_Type": "application/json-seq"}),
    ("no credential", Code.NO_CREDENTIAL, {"Authorization": None}),
    ("another scheme", Code.NO_CREDENTIAL, {"Authorization": f"Basic {HOOK}"}),
    ("no scheme", Code.NO_CREDENTIAL, {"Authorization": HOOK}),
    ("a wrong secret", Code.NO_CREDENTIAL, {"Authorization": "Bearer inst1.hook-secret-hook-secreT"}),
    ("half a secret", Code.NO_CREDENTIAL, {"Authorization": f"Bearer {HOOK[:-1]}"}),
    ("the secret without its instance", Code.NO_CREDENTIAL, {"Authorization": "Bearer hook-secret-hook-secret"}),
    ("the credential for commands", Code.NO_CREDENTIAL, {"Authorization": f"Bearer {COMMAND}"}),
    ("another instance's credential", Code.FOREIGN_INSTANCE, {"Authorization": f"Bearer {OTHER}"}),
    ("an agent that nobody knows", Code.UNKNOWN_AGENT, {"agent": "unknown-agent"}),
    ("no agent", Code.UNKNOWN_AGENT, {"agent": ""}),
    ("an agent in another case", Code.UNKNOWN_AGENT, {"agent": "Claude"}),
    ("a path below an agent", Code.UNKNOWN_AGENT, {"agent": "claude/x"}),
    ("a wildcard", Code.UNKNOWN_AGENT, {"agent": "%3E"}),
    ("a body that is declared too large", Code.TOO_LARGE, {"Content_Length": str(BODY_BYTES_MAX + 1)}),
    ("no body", Code.BAD_JSON, {"body": b""}),
    ("an array", Code.BAD_JSON, {"body": b"[]"}),
    ("a number", Code.BAD_JSON, {"body": b"42"}),
    ("null", Code.BAD_JSON, {"body": b"null"}),
    ("half an object", Code.BAD_JSON, {"body": b'{"session_id":'}),
    ("two objects", Code.BAD_JSON, {"body": b"{}{}"}),
    ("bytes that are not UTF-8", Code.BAD_TEXT, {"body": b'{"session_id":"\xff\xfe"}'}),
    ("no session", Code.BAD_FIELD, {"body": {"hook_event_name": "Stop"}}),
    ("a session of the wrong type", Code.BAD_FIELD, {"body": EVENT | {"session_id": [7]}}),
    ("an event that this agent has not", Code.UNKNOWN_EVENT, {"body": EVENT | {"hook_event_name": "evil"}}),
    ("a pane that hides a control character", Code.BAD_FIELD, {"X_Tocsin_Pane": "evil\x0bPUB"}),
    ("a pane that is not UTF-8", Code.BAD_FIELD, {"X_Tocsin_Pane": b"evil\xff"}),
    ("a host that hides a control character", Code.BAD_FIELD, {"X_Tocsin_Host": "evil\x1b[2J"}),
    ("a host that is not UTF-8", Code.BAD_FIELD, {"X_Tocsin_Host": b"evil\xff"}),
    ("a host that cannot be part of a subject", Code.BAD_FIELD, {"X_Tocsin_Host": "h" * 201}),
]


@pytest.mark.parametrize(("code", "changes"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
async def test_it_refuses(ingest, capsys, code, changes):
    answer = await ingest.hook(**changes)
    assert code_of(answer) == code
    assert ingest.nothing_changed()
    assert ingest.account.refused == {code: 1}
    [line] = capsys.readouterr().err.splitlines()
    assert json.loads(line)["code"] == code
    for secret in ("hook-secret", "command-secret", "evil", "s1", "/repo"):
        assert secret not in line
        assert secret not in answer.text


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"])
async def test_a_hook_is_reported_with_post_alone(ingest, method):
    answer = await ingest.ask(method, "/hook/claude", STOP)
    assert answer.status_code == 404
    assert "access-control-allow-origin" not in answer.headers
    assert ingest.nothing_changed()


async def test_the_checks_come_in_the_order_of_their_cost_and_what_they_tell(ingest):
    wrong = {
        "Host": "evil.example", "Origin": "https://evil.example", "Content_Type": "text/plain", "Authorization": None,
        "agent": "nobody", "Content_Length": str(BODY_BYTES_MAX + 1), "body": b"[]",
    }  # fmt: skip
    mended = [
        ("Host", HEADERS["Host"], Code.FOREIGN_HOST),
        ("Origin", None, Code.FOREIGN_ORIGIN),
        ("Content_Type", "application/json", Code.NOT_JSON),
        ("Authorization", f"Bearer {HOOK}", Code.NO_CREDENTIAL),
        ("agent", "claude", Code.UNKNOWN_AGENT),
        ("Content_Length", None, Code.TOO_LARGE),
        ("body", {"hook_event_name": "Stop"}, Code.BAD_JSON),
        ("body", STOP, Code.BAD_FIELD),
    ]
    for name, right, code in mended:
        assert code_of(await ingest.hook(**wrong)) == code
        wrong[name] = right
    assert (await ingest.hook(**wrong)).status_code == 204


async def test_a_refused_credential_says_how_to_show_one(ingest):
    assert (await ingest.hook(Authorization=None)).headers["www-authenticate"] == "Bearer"


async def test_a_credential_that_is_missing_wrong_for_commands_or_of_another_instance_is_told_apart(ingest):
    shown = [None, f"Bearer {HOOK[:-1]}", f"Bearer {COMMAND}", f"Bearer {OTHER}"]
    assert len({(await ingest.hook(Authorization=one)).json()["message"] for one in shown}) == 4


async def test_a_connection_is_closed_when_its_body_was_not_read_and_kept_when_it_was(ingest):
    assert (await ingest.hook(Authorization=None)).headers["connection"] == "close"
    assert "connection" not in (await ingest.hook(b"[]")).headers


async def test_refusals_of_one_code_write_one_line_a_second_and_the_next_tells_how_many_were_left_out(ingest, capsys):
    for _ in range(5):
        await ingest.hook(Authorization=None)
    await ingest.hook(Host="evil.example")
    ingest.clock.awake += 1000
    await ingest.hook(Authorization=None)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["code"], line.get("unsaid_before")) for line in lines] == [
        ("no_credential", None), ("foreign_host", None), ("no_credential", 4),
    ]  # fmt: skip
    assert ingest.account.refused[Code.NO_CREDENTIAL] == 6


async def test_no_more_hooks_wait_at_once_than_the_limit(ingest, monkeypatch):
    monkeypatch.setattr(service, "IN_FLIGHT_MAX", 2)
    ingest.bus.hold()
    waiting = [asyncio.create_task(ingest.hook(X_Tocsin_Sent=str(n))) for n in range(2)]
    async for _ in Deadline(5, "two hooks wait"):
        if ingest.account.in_flight == 2:
            break
    assert code_of(await ingest.hook()) == Code.UNAVAILABLE
    ingest.bus.free.set()
    assert [answer.status_code for answer in await asyncio.gather(*waiting)] == [204, 204]
    assert ingest.account.in_flight == 0
    assert (await ingest.hook()).status_code == 204


# ---------------------------------------------------------------- bodies


def arriving(*chunks: bytes, ends: bool = True):
    """An ASGI receive that hands over `chunks`; behind them the body ends, or nothing comes."""
    left = list(chunks)

    async def receive():
        if not left:
            await asyncio.Event().wait()
        chunk = left.pop(0)
        return {"type": "http.request", "body": chunk, "more_body": bool(left) or not ends}

    receive.left = left
    return receive


async def test_a_body_in_pieces_is_one_body():
    assert await Bodies(BODY_BYTES_MAX).read(arriving(b"ab", b"", b"c"), 0) == b"abc"


async def test_reading_stops_at_the_limit():
    piece = b"x" * (BODY_BYTES_MAX // 4)
    receive = arriving(*[piece] * 50)
    refusal = await Bodies(BODY_BYTES_MAX).read(receive, 0)
    assert isinstance(refusal, Refusal)
    assert refusal.code == Code.TOO_LARGE
    assert len(receive.left) == 50 - 5


async def test_a_body_of_exactly_the_limit_is_read():
    half = b"x" * (BODY_BYTES_MAX // 2)
    body = await Bodies(BODY_BYTES_MAX).read(arriving(half, half), BODY_BYTES_MAX)
    assert isinstance(body, bytes)
    assert len(body) == BODY_BYTES_MAX


async def test_all_bodies_together_hold_a_bounded_memory_and_give_it_back(monkeypatch):
    monkeypatch.setattr(asgi, "HELD_BODIES_MAX", 1)
    bodies = Bodies(10)
    slow = asyncio.create_task(bodies.read(arriving(b"123456", ends=False), 0))
    async for _ in Deadline(5, "the first body has begun"):
        if bodies.held_bytes == 6:
            break
    refusal = await bodies.read(arriving(b"12345"), 0)
    assert isinstance(refusal, Refusal)
    assert refusal.code == Code.UNAVAILABLE
    slow.cancel()
    await asyncio.wait({slow})
    assert bodies.held_bytes == 0
    assert await bodies.read(arriving(b"12345"), 0) == b"12345"


async def test_a_body_that_does_not_arrive_in_time_is_refused(monkeypatch):
    monkeypatch.setattr(asgi, "READ_S_MAX", 0.01)
    refusal = await Bodies(BODY_BYTES_MAX).read(arriving(b"{", ends=False), 0)
    assert isinstance(refusal, Refusal)
    assert refusal.code == Code.TOO_SLOW


async def test_a_stop_hurries_bodies_that_arrive_now_or_later(monkeypatch):
    monkeypatch.setattr(asgi, "HURRIED_READ_S_MAX", 0.01)
    monkeypatch.setattr(asgi, "READ_S_MAX", 60)
    bodies = Bodies(BODY_BYTES_MAX)
    arriving_now = asyncio.create_task(bodies.read(arriving(b"{", ends=False), 0))
    async for _ in Deadline(5, "the body has begun"):
        if bodies.held_bytes:
            break
    bodies.hurry()
    arriving_later = bodies.read(arriving(b"{", ends=False), 0)
    for refusal in await asyncio.wait_for(asyncio.gather(arriving_now, arriving_later), 10):
        assert isinstance(refusal, Refusal)
        assert refusal.code == Code.TOO_SLOW


# ---------------------------------------------------------------- the envelope


def envelope_of(**headers: bytes) -> Envelope | Refusal:
    return read_envelope({b"x-tocsin-" + name.replace("_", "-").encode(): value for name, value in headers.items()}, HostId("here"))


def test_the_envelope_holds_what_the_hook_says():
    assert envelope_of(
        event=b"Stop", cwd="/repo/ключ 1".encode(), sent=b"1800000000000", sent_now=b"1800000000500", spooled=b"1", tmux=b"/tmp/s,39,0",
        tmux_pane=b"%7", pane=b"p1", pid=b"4242", attended=b"0", host=b"laptop",
    ) == Envelope(
        host=HostId("laptop"), cwd="/repo/ключ 1", sent_ms=1_800_000_000_000, sent_now_ms=1_800_000_000_500, spooled=True,
        tmux="/tmp/s,39,0", tmux_pane="%7", tocsin_pane="p1", pid=4242, attended=False, event="Stop",
    )  # fmt: skip


def test_an_envelope_that_says_nothing_is_of_our_host_and_knows_nothing():
    nothing = Envelope(
        host=HostId("here"), cwd=None, sent_ms=None, sent_now_ms=None, spooled=False, tmux=None, tmux_pane=None, tocsin_pane=None, pid=None,
        attended=None, event=None,
    )  # fmt: skip
    assert envelope_of() == nothing
    assert envelope_of(event=b"", cwd=b"", sent=b"", spooled=b"", tmux=b"", pane=b"", pid=b"", attended=b"", host=b"") == nothing


@pytest.mark.parametrize(
    "bad",
    [
        {"sent": b"-5"}, {"sent": b"1e999"}, {"sent": b"NaN"}, {"sent": b"9" * 16}, {"sent": b"1, 2"}, {"sent": "١٢".encode()},
        {"sent_now": b"soon"}, {"pid": b"0x1"}, {"attended": b"maybe"}, {"spooled": b"yes, no"},
    ],
)  # fmt: skip
def test_a_number_or_a_yes_that_cannot_be_read_is_dropped(bad):
    assert envelope_of(**bad) == envelope_of()


async def test_a_folder_or_a_terminal_that_cannot_be_one_is_dropped_and_the_event_is_taken(ingest):
    answer = await ingest.hook(EVENT_WITHOUT_CWD, X_Tocsin_Cwd=b"/re\xffpo", X_Tocsin_Tmux=b"\xff,1,0", X_Tocsin_Tmux_Pane=b"%1")
    assert answer.status_code == 204
    assert (ingest.bus.said[0].cwd, ingest.bus.said[0].pane) == (None, None)


NAMES = ["event", "cwd", "sent", "sent-now", "spooled", "tmux", "tmux-pane", "pane", "pid", "attended", "host"]


@given(st.sampled_from(list(AGENTS.values())), st.dictionaries(st.sampled_from(NAMES), st.binary(max_size=300)))
def test_whatever_the_headers_hold_there_is_a_report_on_one_subject_or_a_refusal(agent, headers):
    envelope = read_envelope({b"x-tocsin-" + name.encode(): value for name, value in headers.items()}, HostId("here"))
    if isinstance(envelope, Refusal):
        return
    payload = parse(json.dumps(EVENT_WITHOUT_CWD).encode())
    reported = report(agent, envelope.event, payload, envelope, NOW_MS, str)
    if isinstance(reported, HookReported):
        assert len(HOOK_REPORTED.of(reported).split(".")) == 4
        msgspec.json.encode(reported).decode()


# ---------------------------------------------------------------- when it answers


async def test_nothing_is_answered_before_the_bus_has_the_event_on_record(ingest):
    ingest.bus.hold()
    asked = asyncio.create_task(ingest.hook())
    async for _ in Deadline(5, "the event is on its way"):
        if ingest.bus.tries:
            break
    assert not asked.done()
    ingest.bus.free.set()
    assert (await asked).status_code == 204


async def test_a_bus_that_is_away_is_unavailable_and_the_same_request_may_come_again(ingest):
    ingest.bus.away = 1
    answer = await ingest.hook()
    assert code_of(answer) == Code.UNAVAILABLE
    assert answer.json()["retry"] == "same_request"
    assert (await ingest.hook()).status_code == 204
    assert ingest.bus.tries[0] == ingest.bus.tries[1]


async def test_a_bus_that_gives_no_ack_is_unavailable_before_the_hook_command_gives_up(ingest):
    ingest.bus.hold()
    assert publisher.SAY_S_MAX < 1
    assert code_of(await asyncio.wait_for(ingest.hook(), 10)) == Code.UNAVAILABLE


async def test_with_answer_first_the_answer_does_not_wait_for_the_ack():
    ingest = Ingest(RecordingBus(), answer_first=True)
    ingest.bus.hold()
    assert (await ingest.hook()).status_code == 204
    assert (ingest.bus.said, ingest.account.unacked) == ([], 1)
    ingest.bus.free.set()
    await ingest.publisher.drain()
    assert (len(ingest.bus.said), ingest.account.unacked, ingest.account.never_acked) == (1, 0, 0)


async def test_with_answer_first_an_event_is_said_again_under_the_same_id_until_its_ack():
    ingest = Ingest(RecordingBus(away=2), answer_first=True)
    assert (await ingest.hook()).status_code == 204
    await ingest.publisher.drain()
    assert ingest.bus.tries == [ingest.bus.said[0].id] * 3
    assert ingest.account.never_acked == 0


async def test_with_answer_first_no_more_events_are_without_ack_than_the_limit(monkeypatch):
    monkeypatch.setattr(publisher, "UNACKED_MAX", 2)
    ingest = Ingest(RecordingBus(), answer_first=True)
    ingest.bus.hold()
    for number in range(2):
        assert (await ingest.hook(X_Tocsin_Sent=str(number))).status_code == 204
    third = asyncio.create_task(ingest.hook(X_Tocsin_Sent="3"))
    async for _ in Deadline(5, "the third is on its way"):
        if len(ingest.bus.tries) == 3:
            break
    assert not third.done()
    ingest.bus.free.set()
    assert (await third).status_code == 204
    await ingest.publisher.drain()


async def test_with_answer_first_an_event_that_never_has_an_ack_is_counted_and_named(capsys, monkeypatch):
    monkeypatch.setattr(publisher, "DRAIN_S_MAX", 0.01)
    ingest = Ingest(RecordingBus(), answer_first=True)
    ingest.bus.hold()
    await ingest.hook()
    await ingest.publisher.drain()
    assert (ingest.account.never_acked, ingest.account.unacked) == (1, 0)
    assert json.loads(capsys.readouterr().err.splitlines()[-1])["id"] == ingest.bus.tries[0]


async def test_with_answer_first_trying_ends_before_the_bus_forgets_the_id():
    ingest = Ingest(RecordingBus(away=1000), answer_first=True)
    await ingest.hook()
    async for _ in Deadline(5, "the event was tried"):
        if ingest.bus.tries:
            break
    ingest.clock.awake += publisher.RETRY_MS_MAX
    async for _ in Deadline(5, "the event is given up"):
        if ingest.account.never_acked and not ingest.account.unacked:
            break
    assert publisher.RETRY_MS_MAX < 120_000


# ---------------------------------------------------------------- beside the hooks


@pytest.mark.parametrize("path", sorted(OPEN_PATHS))
async def test_health_and_description_are_open_to_programs_and_closed_to_pages(ingest, path):
    assert (await ingest.ask("GET", path, Authorization=None)).status_code == 200
    assert code_of(await ingest.ask("GET", path, Origin="https://evil.example")) == Code.FOREIGN_ORIGIN
    assert code_of(await ingest.ask("GET", path, Host="evil.example:8627")) == Code.FOREIGN_HOST
    assert code_of(await ingest.ask("POST", path, b"{}")) == Code.NOT_FOUND


async def test_health_is_unavailable_while_the_bus_does_not_answer(ingest):
    ingest.bus.away = 1
    assert code_of(await ingest.ask("GET", "/health")) == Code.UNAVAILABLE


async def test_metrics_count_what_was_taken_and_refused(ingest):
    await ingest.hook()
    await ingest.hook(Authorization=None)
    told = list(ingest.account.samples())
    assert Sample(metrics.HOOKS_PUBLISHED, ("claude",), 1) in told
    assert Sample(metrics.REQUESTS_REFUSED, ("no_credential",), 1) in told
    assert Sample(metrics.REQUESTS_REFUSED, ("too_large",), 0) in told


async def test_metrics_are_not_shown_where_hooks_report(ingest):
    assert code_of(await ingest.ask("GET", "/metrics", Authorization=f"Bearer {COMMAND}")) == Code.NOT_FOUND


async def test_the_description_holds_the_hook_route_with_every_status_that_it_answers(ingest):
    described = (await ingest.ask("GET", "/openapi.json")).json()
    route = described["paths"]["/hook/{agent}"]["post"]
    assert route["parameters"][0]["schema"]["enum"] == list(AGENTS)
    assert {str(ADVICE[code].status) for _, code, _ in REFUSED} | {"204", "408", "503"} <= set(route["responses"])
    assert "/health" in described["paths"]


@pytest.mark.parametrize(
    ("credential", "code"), [(None, "no_credential"), (HOOK, "no_credential"), (OTHER, "foreign_instance"), (COMMAND, "not_found")]
)
async def test_elsewhere_only_the_command_credential_learns_that_nothing_is_there(ingest, credential, code):
    answer = await ingest.ask("POST", "/api/anything", b"{}", Authorization=credential and f"Bearer {credential}")
    assert code_of(answer) == code


# ---------------------------------------------------------------- credentials and settings


def test_credentials_of_one_instance_are_read_as_they_are_made(tmp_path):
    (tmp_path / "hook").write_text(f"{HOOK}\n")
    (tmp_path / "command").write_text(f"{COMMAND}\n")
    credentials = read_credentials(tmp_path / "hook", tmp_path / "command")
    assert isinstance(credentials, Credentials)
    assert credentials.may_report(f"Bearer {HOOK}".encode()) is None
    assert credentials.may_command(f"bearer {COMMAND}".encode()) is None
    assert "secret" not in repr(credentials)


@pytest.mark.parametrize(
    ("hook", "command"),
    [
        (None, COMMAND), (HOOK, None), ("", COMMAND), ("changeme", COMMAND), ("inst1.short", COMMAND),
        (".no-instance-no-instance", COMMAND), (f"{HOOK}\n{HOOK}", COMMAND), (HOOK, HOOK), (HOOK, "inst2.command-secret-command-secret"),
    ],
)  # fmt: skip
def test_credentials_that_are_missing_weak_or_no_pair_are_refused_without_being_told(tmp_path, hook, command):
    for name, content in (("hook", hook), ("command", command)):
        if content is not None:
            (tmp_path / name).write_text(content)
    refusal = read_credentials(tmp_path / "hook", tmp_path / "command")
    assert isinstance(refusal, Refusal)
    assert refusal.code == Code.BROKEN_SETTINGS
    assert "secret" not in refusal.message


def test_the_keyed_hash_depends_on_the_key_and_takes_any_text(tmp_path):
    hashes = set()
    for name, content in (("a", "k" * 43), ("b", "l" * 43)):
        (tmp_path / name).write_text(f"{content}\n")
        keyed = read_keyed(tmp_path / name)
        assert not isinstance(keyed, Refusal)
        assert keyed("text") == keyed("text") != keyed("other")
        hashes |= {keyed("text"), keyed("\ud800")}
    assert len(hashes) == 4


def test_a_hash_key_that_is_missing_or_weak_is_refused(tmp_path):
    (tmp_path / "weak").write_text("key")
    for name in ("weak", "missing"):
        refusal = read_keyed(tmp_path / name)
        assert isinstance(refusal, Refusal)
        assert refusal.code == Code.BROKEN_SETTINGS


def test_settings_come_from_the_environment(monkeypatch, tmp_path):
    for name, value in {
        "STATE": str(tmp_path), "INGEST_PORT": "0", "ALLOWED_HOSTS": "hook-ingest:8627, 10.0.0.7:80,", "ACK": "async",
        "HASH_KEY_FILE": "/run/key", "INGEST_PORT_FILE": "",
    }.items():  # fmt: skip
        monkeypatch.setenv(f"TOCSIN_{name}", value)
    settings = IngestSettings()
    assert (settings.ingest_bind, settings.ingest_port, settings.ingest_port_file) == ("127.0.0.1", 0, None)
    assert settings.allowed_hosts == ("hook-ingest:8627", "10.0.0.7:80")
    assert (settings.allowed_origins, settings.ack, settings.show_text) == ((), "async", "none")
    assert settings.hook_credential == tmp_path / "hook.credential"
    assert settings.command_credential == tmp_path / "command.credential"
    assert str(settings.hash_key) == "/run/key"


# ---------------------------------------------------------------- cases


async def test_j01_a_web_page_can_neither_report_nor_read_and_the_hook_credential_cannot_command(ingest):
    page = {"Origin": "https://evil.example", "Authorization": None}
    assert (await ingest.hook(Content_Type="text/plain", **page)).status_code == 403
    preflight = await ingest.ask("OPTIONS", "/api/runs", Access_Control_Request_Method="POST", **page)
    assert preflight.status_code == 403
    assert not [name for name in preflight.headers if name.startswith("access-control")]
    assert code_of(await ingest.ask("GET", "/api/status", Host="evil.example:7001", Authorization=None)) == Code.FOREIGN_HOST
    prefix = await ingest.ask("POST", "/api/runs", b"{}", Origin="http://localhost.evil.example", Authorization=f"Bearer {COMMAND}")
    assert code_of(prefix) == Code.FOREIGN_ORIGIN
    assert code_of(await ingest.ask("GET", "/api/stream", **page)) == Code.FOREIGN_ORIGIN
    assert ingest.nothing_changed()
    assert (await ingest.hook()).status_code == 204
    assert code_of(await ingest.ask("POST", "/api/runs", b"{}")) == Code.NO_CREDENTIAL


async def test_j02_a_tool_result_of_megabytes_is_kept_with_its_ids_and_small_on_the_bus(ingest):
    big = {
        "session_id": "s1", "hook_event_name": "PostToolUse", "cwd": "/repo", "tool_name": "Bash", "tool_use_id": "tu1",
        "tool_input": {"command": "npm test"}, "tool_response": {"stdout": "x" * 6 * 1024 * 1024},
    }  # fmt: skip
    assert (await ingest.hook(big)).status_code == 204
    ask = {
        "session_id": "s2", "hook_event_name": "PermissionRequest", "cwd": "/repo", "tool_name": "Bash", "tool_use_id": "tu2",
        "tool_input": {"command": "npm i"},
    }  # fmt: skip
    assert (await ingest.hook(ask)).status_code == 204
    first, second = ingest.bus.said
    assert (first.kind, first.call) == (Kind.TOOL_ENDED, "tu1")
    assert (second.kind, second.session) == (Kind.ASKED, "s2")
    assert len(msgspec.json.encode(first)) < 4096


@pytest.mark.parametrize("field", ["session_id", "cwd", "tool_name", "tool_use_id", "transcript_path", "prompt_id"])
async def test_j02_a_huge_value_in_any_field_that_is_kept_never_reaches_the_bus(ingest, field):
    event = {"session_id": "s1", "hook_event_name": "PostToolUse", "cwd": "/repo", "tool_name": "Bash", "tool_use_id": "tu1"}
    answer = await ingest.hook(event | {field: "/" + "x" * 2 * 1024 * 1024})
    assert answer.status_code in (204, 422)
    assert all(len(msgspec.json.encode(said)) < 64 * 1024 for said in ingest.bus.said)


@pytest.mark.parametrize("body", [DEEP, b"[]", b"42", b"null", b""])
async def test_j04_a_body_that_is_deep_or_no_object_is_400(ingest, body):
    assert (await ingest.hook(body)).status_code == 400
    assert ingest.nothing_changed()


async def test_j04_a_valid_event_with_a_deep_input_is_taken_or_400(ingest):
    deep = b'{"a":' * 5000 + b"1" + b"}" * 5000
    body = b'{"session_id":"s1","hook_event_name":"PreToolUse","cwd":"/repo","tool_name":"Bash","tool_input":' + deep + b"}"
    assert (await ingest.hook(body)).status_code in (204, 400)


async def test_j04_a_number_beyond_all_bounds_is_refused_or_never_said(ingest):
    await ingest.hook(b'{"session_id":"s1","hook_event_name":"Stop","cwd":"/repo","a":1e999}')
    assert b"Infinity" not in b"".join(msgspec.json.encode(said) for said in ingest.bus.said)


async def test_j04_an_unknown_agent_is_404(ingest):
    assert (await ingest.hook(b"{}", "unknown-agent")).status_code == 404
    assert ingest.nothing_changed()


@pytest.mark.parametrize("name", ["a.b", "r *", "team >", "ключ 1", "../up", "a/b", " x ".strip()])
async def test_j06_a_hostile_name_stays_one_token_of_the_subject(ingest, name):
    answer = await ingest.hook(X_Tocsin_Pane=name.encode(), X_Tocsin_Host=name.encode())
    assert answer.status_code == 204
    [said] = ingest.bus.said
    assert said.host == name
    assert len(HOOK_REPORTED.of(said).split(".")) == 4
    assert not set(HOOK_REPORTED.of(said)) & set("*> /")


async def test_j06_a_pane_in_the_body_is_nobody_s_pane(ingest):
    await ingest.hook(STOP | {"pane": "w1\r\nPUB hub.admin 1\r\nx"})
    assert "hub.admin" not in repr(ingest.bus.said)
