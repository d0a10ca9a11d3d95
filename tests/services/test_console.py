"""The console over a real bus and a real store: who gets in, what is shown, what is handed on."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from builders import NOW_MS
from console_builders import a_console, a_row
from support import Deadline
from tocsin.console import service
from tocsin.console.core.day import SLOT_MS, SLOTS_MAX, Sample
from tocsin.console.core.session import SESSION_MS, Scope, Session, digest_of, key_of, sign
from tocsin.console.store import ConsoleStore, Grant
from tocsin.contract.messages import AttentionCause
from tocsin.contract.nesting import DEPTH_MAX
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.run import Receipt, Refused
from tocsin.contract.subjects import CUSTODY_CMD, MAIL_CMD, RUN_CMD, TELEMETRY_COUNTED
from tocsin.contract.telemetry import Class1Promotion, ClassDistribution, SmartToRecentSwitch
from tocsin.runtime import instance
from tocsin.runtime.clock import SystemClock
from tocsin.store import keys

BODILESS = {"/api/logout", "/api/notify/test"}
"""What is posted there says all by its address: its body is not read."""


class SetClock(SystemClock):
    """The system's clock, moved on by a test."""

    ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms


@pytest.fixture
def clock():
    return SetClock()


@pytest.fixture
async def console(tmp_path, bus, store, clock):
    async with a_console(tmp_path / "state", bus, store, clock=clock) as running:
        yield running


@asynccontextmanager
async def a_page(console, **ticket: Any) -> AsyncIterator[httpx.AsyncClient]:
    """A browser that has logged in."""
    async with console.client(Origin=console.url) as client:
        answer = await client.post("/api/login", json={"ticket": await console.ticket(**ticket)})
        assert answer.status_code == 200, answer.text
        yield client


async def listed(client: httpx.AsyncClient, count: int) -> dict[str, Any]:
    """The list, once it has so many rows."""
    async for _ in Deadline(10, f"a list of {count}"):
        answer = await client.get("/api/worktrees")
        if answer.status_code == 200 and len(answer.json()["worktrees"]) == count:
            return answer.json()
    raise AssertionError


class Ended(Exception):
    """The console has ended the stream."""


class Stream:
    """Server-sent events, read one after another; beats are passed over."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self._lines = response.aiter_lines()

    async def next(self, beats: bool = False) -> tuple[str, str, Any]:
        """Name, id and data."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(10):
            async for line in self._lines:
                if line:
                    name, _, value = line.partition(": ")
                    fields[name] = value
                elif "event" in fields and (beats or fields["event"] != "beat"):
                    return fields["event"], fields.get("id", ""), json.loads(fields["data"])
                else:
                    fields = {}
        raise Ended


@asynccontextmanager
async def streaming(client: httpx.AsyncClient, last: str | None = None, query: dict[str, str] | None = None) -> AsyncIterator[Stream]:
    async with client.stream("GET", "/api/stream", params=query, headers={"Last-Event-ID": last} if last else {}) as response:
        assert response.status_code == 200
        yield Stream(response)


# ---------------------------------------------------------------- login


async def test_a_ticket_is_exchanged_for_a_session_that_no_script_reads_and_no_other_site_sends(console):
    async with console.client(Origin=console.url) as client:
        assert (await client.get("/api/session")).status_code == 401
        answer = await client.post("/api/login", json={"ticket": await console.ticket(name="dev")})
        assert answer.json()["name"] == "dev"
        assert answer.json()["scope"] == "command"
        cookie = answer.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}
        assert (await client.get("/api/session")).json()["instance"] == instance.credential(console.state, instance.ID)


async def test_a_ticket_works_once(console):
    ticket = await console.ticket()
    async with console.client(Origin=console.url) as first, console.client(Origin=console.url) as second:
        answers = await asyncio.gather(*(client.post("/api/login", json={"ticket": ticket}) for client in (first, second)))
    assert sorted(answer.status_code for answer in answers) == [200, 401]
    refused = next(answer for answer in answers if answer.status_code == 401)
    assert refused.json()["code"] == "bad_ticket"
    assert refused.json()["next"] == ["tocsin open"]
    assert "set-cookie" not in refused.headers


async def test_a_ticket_is_forgotten_after_a_minute(console, store):
    ticket = await console.ticket()
    key = keys.ticket(digest_of(ticket))
    assert 50_000 < await store.pttl(key) <= 60_000
    await store.pexpire(key, 1)
    async for _ in Deadline(5, "its minute is over"):
        if not await store.exists(key):
            break
    async with console.client(Origin=console.url) as client:
        assert (await client.post("/api/login", json={"ticket": ticket})).json()["code"] == "bad_ticket"


async def test_tickets_are_shared_by_replicas_and_the_store_holds_none_that_could_be_used(console, store, bus):
    ticket = await console.ticket()
    stored = [await store.get(key) for key in await store.keys("*")]
    assert not any(ticket.encode() in value for value in stored)
    async with a_console(console.state, bus, store) as replica, replica.client(Origin=replica.url) as client:
        assert (await client.post("/api/login", json={"ticket": ticket})).status_code == 200
        # The session is good at the other one too.
        async with console.client(
            Cookie=client.headers.get("cookie", "") or "; ".join(f"{k}={v}" for k, v in client.cookies.items())
        ) as at_first:
            assert (await at_first.get("/api/session")).status_code == 200


async def test_only_the_command_credential_gets_tickets(console):
    wanted = {instance.HOOK_CREDENTIAL: "no_credential", instance.READER_CREDENTIAL: "no_credential"}
    for file, code in wanted.items():
        async with console.client(**console.bearer(file)) as client:
            answer = await client.post("/api/tickets", json={})
            assert (answer.status_code, answer.json()["code"]) == (401, code)
    async with console.client(Authorization="Bearer other.0123456789abcdef0123") as client:
        assert (await client.post("/api/tickets", json={})).json()["code"] == "foreign_instance"
    async with a_page(console) as page:
        # A session cannot multiply itself.
        assert (await page.post("/api/tickets", json={})).status_code == 401


@pytest.mark.parametrize(("body", "code"), [
    ({"name": ""}, "bad_field"), ({"name": "a\nb"}, "bad_field"), ({"name": 7}, "bad_field"), ({"scope": "all"}, "bad_field"), ([1], "bad_json"),
])  # fmt: skip
async def test_a_ticket_is_asked_for_in_proper_words(console, body, code):
    async with console.client(**console.bearer()) as client:
        assert (await client.post("/api/tickets", json=body)).json()["code"] == code


async def test_a_session_ends_and_a_used_one_is_renewed(console, clock):
    async with a_page(console) as page:
        assert "set-cookie" not in (await page.get("/api/session")).headers
        clock.ahead_ms = SESSION_MS * 2 // 3
        renewed = await page.get("/api/session")
        assert renewed.json()["until"] > clock.now_ms() + SESSION_MS // 2
        assert "set-cookie" in renewed.headers
        clock.ahead_ms += SESSION_MS + 1
        assert (await page.get("/api/worktrees")).json()["code"] == "no_session"


async def test_who_leaves_has_no_session_any_more(console):
    async with a_page(console) as page:
        await page.post("/api/logout", json={})
        assert (await page.get("/api/session")).status_code == 401


async def test_a_session_to_read_shows_everything_and_changes_nothing(console):
    async with a_page(console, scope="read") as page:
        await console.say(a_row("api"))
        assert (await listed(page, 1))["worktrees"][0]["name"] == "api"
        for path in ("/api/run/commands", "/api/jump"):
            answer = await page.post(path, json={"worktree": "api"})
            assert (answer.status_code, answer.json()["code"]) == (401, "no_credential")


async def test_without_the_store_nobody_logs_in_and_is_told_to_ask_again(console, valkey_server):
    ticket = await console.ticket()
    valkey_server.end()
    async with console.client(Origin=console.url) as client:
        answer = await client.post("/api/login", json={"ticket": ticket})
        assert (answer.status_code, answer.json()["retry"]) == (503, "same_request")


# ---------------------------------------------------------------- the border


@pytest.mark.parametrize(("headers", "status", "code"), [
    ({"Host": "evil.example"}, 421, "foreign_host"),
    ({"Host": "127.0.0.1"}, 421, "foreign_host"),
    ({"Origin": "http://evil.example"}, 403, "foreign_origin"),
    ({"Origin": "null"}, 403, "foreign_origin"),
    ({"Sec-Fetch-Site": "cross-site"}, 403, "foreign_origin"),
    ({"Sec-Fetch-Site": "same-site"}, 403, "foreign_origin"),
    ({"Cookie": ""}, 401, "no_session"),
    ({"Authorization": "Bearer nonsense"}, 401, "no_credential"),
    ({"Authorization": "Basic YTpi"}, 401, "no_credential"),
])  # fmt: skip
async def test_nothing_is_read_from_elsewhere_or_without_a_session(console, headers, status, code):
    async with a_page(console) as page:
        for path in ("/api/worktrees", "/api/stream", "/api/why?a=b", "/api/day", "/api/nothing"):
            answer = await page.get(path, headers=headers)
            assert (path, answer.status_code, answer.json()["code"]) == (path, status, code)


async def api_of(console) -> list[tuple[str, str]]:
    """Method and path of all that is served below /api, with something in the place of each name in it."""
    async with console.client(**console.bearer()) as client:
        paths = (await client.get("/api/openapi.json")).json()["paths"]
    asked = [(method.upper(), path.replace("{", "").replace("}", "")) for path, methods in paths.items() for method in methods]
    return [(method, path) for method, path in asked if path.startswith("/api/")]


async def test_j01_a_web_page_gets_nothing_from_any_address_of_the_api_and_no_leave_to_ask(console, bus):
    heard: list[Any] = []

    async def handle(command):
        heard.append(command)
        return Receipt(request=command.request)

    served = await api_of(console)
    assert len(served) > 20
    assert {("GET", "/api/stream"), ("POST", "/api/run/commands"), ("POST", "/api/login"), ("GET", "/api/runs")} <= set(served)
    ask = {"verb": "list"}
    bodies = [{named: "r1", "request": "q1", "ask": ask} for named in ("run", "mailbox", "custody")]
    async with (
        bus.serve(RUN_CMD, handle, name="t"), bus.serve(MAIL_CMD, handle, name="t"), bus.serve(CUSTODY_CMD, handle, name="t"),
        a_page(console) as page,
    ):  # fmt: skip
        await console.say(a_row("api"))
        await listed(page, 1)

        async def refusal(method: str, path: str, **headers: str) -> tuple[int, str]:
            """What a browser of the person with a session is told; its cookie goes along, as the worst that could be."""
            body = bodies[0] if method == "POST" else None
            answer = await page.request(method, path, json=body, headers=headers)
            assert not [name for name in answer.headers if name.startswith("access-control")], (method, path)
            assert "/work/api" not in answer.text, (method, path)
            return answer.status_code, answer.json()["code"]

        # All but the first begin as an address of the console does.
        for origin in ("https://evil.example", "http://localhost.evil.example", f"{console.url}.evil.example", f"{console.url}0"):
            for method, path in served:
                assert await refusal(method, path, Origin=origin) == (403, "foreign_origin"), (method, path, origin)
                preflight = await page.options(path, headers={"Origin": origin, "Access-Control-Request-Method": method})
                assert preflight.status_code == 403
                assert not [name for name in preflight.headers if name.startswith("access-control")]
        for host in ("evil.example", f"evil.example:{console.port}", f"127.0.0.1:{console.port}.evil.example"):
            for method, path in served:
                assert await refusal(method, path, Host=host) == (421, "foreign_host"), (method, path, host)
        for body in bodies:
            for path in (path for method, path in served if method == "POST"):
                plain = await page.post(path, content=json.dumps(body), headers={"Content-Type": "text/plain"})
                assert (plain.status_code, plain.json()["code"]) == (415, "not_json"), path
    assert heard == []


async def test_j01_the_hook_credential_commands_and_reads_nothing_at_the_console(console):
    async with console.client(**console.bearer(instance.HOOK_CREDENTIAL)) as client:
        for method, path in await api_of(console):
            answer = await client.request(method, path, json={} if method == "POST" else None)
            if path == "/api/login":  # takes no credential but a ticket
                assert answer.json()["code"] == "bad_field"
            else:
                assert (answer.status_code, answer.json()["code"]) == (401, "no_credential"), (method, path)


async def test_a_session_changes_something_from_its_own_page_alone(console):
    async with a_page(console) as page:
        body = {"run": "r", "request": "q", "ask": {"verb": "list"}}
        del page.headers["origin"]
        assert (await page.post("/api/run/commands", json=body)).json()["code"] == "foreign_origin"
        plain = {"Content-Type": "text/plain", "Origin": console.url}
        assert (await page.post("/api/run/commands", content=json.dumps(body), headers=plain)).json()["code"] == "not_json"


async def test_a_forged_cookie_is_no_session(console):
    name = f"tocsin-{instance.credential(console.state, instance.ID)}"
    forged = sign(Session(name="dev", scope=Scope.COMMAND, until_ms=SystemClock().now_ms() + 60_000), key_of(b"a guess"))
    async with console.client(Cookie=f"{name}={forged}") as client:
        assert (await client.get("/api/worktrees")).json()["code"] == "no_session"


async def test_bodies_have_a_limit_and_must_be_one_json_object(console):
    async with console.client(**console.bearer()) as client:
        assert (await client.post("/api/tickets", json={"name": "x" * 1024 * 1024})).status_code == 413
        headers = {"Content-Type": "application/json"}
        for content, code in ((b"{", "bad_json"), (b"\xff", "bad_json"), (b"[" * 100_000, "bad_json"), (b'{"a":' * 100_000, "too_deep")):
            assert (await client.post("/api/tickets", content=content, headers=headers)).json()["code"] == code


def nested(depth: int) -> bytes:
    """An object of that depth."""
    return b'{"a":' * (depth - 1) + b"{}" + b"}" * (depth - 1)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"[" * 20_000 + b"]" * 20_000, "bad_json"), (nested(5_000), "too_deep"), (nested(DEPTH_MAX + 1), "too_deep"), (nested(DEPTH_MAX), None),
        (b'{"a":1e999}', None), (b'{"a":Infinity}', "bad_json"), (b"[]", "bad_json"), (b"42", "bad_json"), (b"null", "bad_json"), (b"", "bad_json"),
    ],
)  # fmt: skip
async def test_j04_no_body_is_a_fault_of_the_console_whatever_it_holds_and_whatever_python_runs_it(console, content, code):
    async with console.client(**console.bearer(), **{"Content-Type": "application/json"}) as client:
        for path in (path for method, path in await api_of(console) if method == "POST"):
            answer = await client.post(path, content=content)
            assert answer.status_code < 500, (path, answer.text)
            assert "Infinity" not in answer.text
            if code is not None and path not in BODILESS:
                assert answer.json()["code"] == code, (path, answer.text)


async def test_the_page_itself_is_open_and_forbids_whatever_is_not_its_own(console):
    async with console.client() as client:
        for path in ("/", "/runs/anything"):
            page = await client.get(path)
            assert page.status_code == 200
            assert "<title>Tocsin</title>" in page.text
        policy = page.headers["content-security-policy"]
        assert policy.startswith("default-src 'self'; ")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        script = await client.get("/main.js")
        assert "javascript" in script.headers["content-type"]
        again = await client.get("/main.js", headers={"If-None-Match": script.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        for path in ("/nothing.js", "/../settings.py", "/%2e%2e/settings.py"):
            assert (await client.get(path)).status_code == 404


async def test_another_address_that_is_named_may_be_used_and_its_page_may_speak(tmp_path, bus, store):
    async with a_console(tmp_path / "s", bus, store, hosts=["box.local:80"]) as console, console.client(Host="box.local:80") as client:
        login = {"ticket": await console.ticket()}
        assert (await client.post("/api/login", json=login, headers={"Origin": "http://other.local"})).status_code == 403
        assert (await client.post("/api/login", json=login, headers={"Origin": "http://box.local:80"})).status_code == 200


# ---------------------------------------------------------------- the list


async def test_the_list_is_that_of_ls_under_each_order(console):
    async with console.client(**console.bearer(instance.READER_CREDENTIAL)) as client:
        await console.say(a_row("web", 1, active_at=5), a_row("api", 4, active_at=9), a_row("Docs", 4, active_at=1))
        told = await listed(client, 3)
        assert list(told["worktrees"][0])[:9] == ["rank", "id", "name", "path", "host", "class", "attention_at", "evidence", "reason"]
        orders = {
            sort: [row["name"] for row in (await client.get("/api/worktrees", params={"sort": sort})).json()["worktrees"]]
            for sort in ("smart", "recent", "oldest-first", "name")
        }
        assert orders == {
            "smart": ["web", "api", "Docs"],
            "recent": ["api", "web", "Docs"],
            "oldest-first": ["Docs", "web", "api"],
            "name": ["api", "Docs", "web"],
        }
        assert (await client.get("/api/worktrees", params={"sort": "best"})).json()["code"] == "bad_field"


async def test_no_list_is_not_an_empty_list(console):
    async with console.client(**console.bearer()) as client:
        async for _ in Deadline(5, "the bus has said that there is none"):
            answer = await client.get("/api/worktrees")
            if answer.json()["code"] == "no_list":
                break
        assert answer.status_code == 503
        async with streaming(client) as stream:
            assert (await stream.next())[0] == "none"
            await console.say()
            name, _, data = await stream.next()
            assert (name, data["worktrees"]) == ("list", [])


async def test_a_stream_begins_with_the_list_and_goes_on_with_what_differs(console):
    async with console.client(**console.bearer()) as client:
        body = await console.say(a_row("api"), a_row("web"))
        await listed(client, 2)
        async with streaming(client) as stream:
            name, one, data = await stream.next()
            assert (name, one) == ("list", f"{body.birth}.1")
            assert [row["name"] for row in data["worktrees"]] == ["api", "web"]
            await console.say(a_row("web", 1), a_row("api"))
            name, one, data = await stream.next()
            assert (name, one) == ("change", f"{body.birth}.2")
            assert [row["name"] for row in data["changed"]] == ["web"]
            assert data["order"] == ["web-id", "api-id"]


async def test_a_stream_that_was_cut_goes_on_behind_what_the_viewer_has(console):
    async with console.client(**console.bearer()) as client:
        await console.say(a_row("api"), a_row("web"))
        await listed(client, 2)
        async with streaming(client) as stream:
            _, has, _ = await stream.next()
        await console.say(a_row("api", reason="first"), a_row("web"))
        await console.say(a_row("api", reason="second"), a_row("web"), a_row("new"))
        await listed(client, 3)
        for stream_again in (streaming(client, has), streaming(client, query={"after": has})):
            async with stream_again as stream:
                name, now, data = await stream.next()
                assert name == "change"
                assert {row["id"]: row["reason"] for row in data["changed"]} == {"api-id": "second", "new-id": "new says so"}
        async with streaming(client, now) as stream:
            # It has everything: the next thing it hears is new.
            await console.say(a_row("api", reason="third"), a_row("web"), a_row("new"))
            name, _, data = await stream.next()
            assert (name, [row["reason"] for row in data["changed"]]) == ("change", ["third"])


async def test_a_viewer_that_has_missed_nothing_hears_at_once_that_its_line_stands(console):
    async with console.client(**console.bearer()) as client:
        body = await console.say(a_row("api"))
        await listed(client, 1)
        async with asyncio.timeout(service.BEAT_S / 2), streaming(client, f"{body.birth}.{body.version}") as stream:
            assert (await stream.next(beats=True))[0] == "beat"


async def test_a_viewer_with_an_edition_that_nobody_remembers_gets_the_whole_list(console):
    async with console.client(**console.bearer()) as client:
        await console.say(a_row("api"))
        await listed(client, 1)
        for has in ("b9.7", "nonsense", "%C3%A9"):
            async with streaming(client, has) as stream:
                assert (await stream.next())[0] == "list"


async def test_a_stream_tells_that_it_lives_and_ends_with_its_session(tmp_path, bus, store, clock, monkeypatch):
    monkeypatch.setattr(service.Live.__init__, "__defaults__", (0.05,))
    async with a_console(tmp_path / "s", bus, store, clock=clock) as console, a_page(console) as page, streaming(page) as stream:
        async for _ in Deadline(5, "a beat"):
            name, _, data = await stream.next(beats=True)
            if name == "beat":
                break
        assert data["now"] >= NOW_MS // 2
        clock.ahead_ms = SESSION_MS + 1
        async for _ in Deadline(5, "the stream ends"):
            try:
                await stream.next(beats=True)
            except Ended:
                break


async def test_viewers_hear_that_the_bus_is_away_and_that_it_is_back(console, nats_server, monkeypatch):
    async with console.client(**console.bearer()) as client:
        await console.say(a_row("api"))
        await listed(client, 1)
        async with streaming(client) as stream:
            assert (await stream.next())[0] == "list"
            nats_server.end()
            name, _, data = await stream.next()
            assert name == "bus"
            assert data["away_since"] > 0
            # What was known stays readable: it is marked, not hidden.
            assert (await client.get("/api/worktrees")).status_code == 200
            assert (await client.get("/health")).status_code == 503
            nats_server.start()
            name, _, data = await stream.next()
            assert (name, data["away_since"]) == ("bus", None)


async def test_a_stop_ends_every_stream_at_once(tmp_path, bus, store):
    async with a_console(tmp_path / "s", bus, store) as console, console.client(**console.bearer()) as client, streaming(client) as stream:
        await stream.next()
        console.task.cancel()
        with pytest.raises(Ended):
            await stream.next()
        async with asyncio.timeout(2):
            await asyncio.wait({console.task})


async def test_beyond_so_many_viewers_a_stream_ends_before_it_says_anything(console, monkeypatch):
    monkeypatch.setattr(service, "VIEWERS_MAX", 1)
    async with console.client(**console.bearer()) as client, streaming(client) as first:
        await first.next()
        async with streaming(client) as second:
            with pytest.raises(Ended):
                await second.next()


async def test_why_says_in_one_line_what_the_command_says(console):
    async with console.client(**console.bearer()) as client:
        await console.say(a_row("web", 1, reason="asks to run npm"), a_row("api", 2))
        await listed(client, 2)
        why = (await client.get("/api/why", params={"a": "api", "b": "web"})).json()
        assert why["line"] == "web stands above api: needs you (asks to run npm) comes before done (api says so)"
        assert why["decided_by"] == "class"
        here = (await client.get("/api/why", params={"a": "web"})).json()
        assert here["line"].startswith("web is 1 of 2: needs you since ")
        assert (await client.get("/api/why", params={"a": "nobody"})).status_code == 404
        assert (await client.get("/api/why")).json()["code"] == "bad_field"
        assert (await client.get("/api/why", params={"a": "web", "offset": 10_000})).json()["code"] == "bad_field"


async def test_why_tells_times_by_the_readers_clock(console, clock):
    clock.ahead_ms = NOW_MS - SystemClock().now_ms()  # so that the moment is today's
    async with console.client(**console.bearer()) as client:
        await console.say(a_row("web", 1))
        await listed(client, 1)
        lines = [(await client.get("/api/why", params={"a": "web", "offset": offset})).json()["line"] for offset in (0, 60)]
        assert "since 08:00:00" in lines[0]
        assert "since 09:00:00" in lines[1]


async def test_what_is_counted_of_the_list_is_said_without_ids_and_only_for_viewers_that_sort_smart(console, bus):
    heard = []
    async with bus.hear(TELEMETRY_COUNTED, heard.append, lambda: None), console.client(**console.bearer()) as client:
        await console.say(a_row("api", 3))
        await listed(client, 1)
        async with streaming(client, query={"sort": "recent"}) as stream:
            await stream.next()
            await console.say(a_row("api", 1))
            await stream.next()
            async with streaming(client) as smart:
                await smart.next()
                await console.say(a_row("api", 1), a_row("web", 2))
                await smart.next()
                async with streaming(client, query={"sort": "recent", "before": "smart"}) as switched:
                    await switched.next()
                    async for _ in Deadline(5, "all of it was said"):
                        if len(heard) == 3:
                            break
    assert [one.counted for one in heard] == [
        Class1Promotion(cause=AttentionCause.BLOCKED),
        ClassDistribution(class1=1, class2=1, total=2),
        SmartToRecentSwitch(),
    ]


# ---------------------------------------------------------------- the day


async def test_the_day_survives_the_console_and_holds_no_ids(tmp_path, bus, store, clock):
    async with a_console(tmp_path / "s", bus, store, clock=clock) as console, console.client(**console.bearer()) as client:
        await console.say(a_row("secret-name", 1, attention_at=clock.now_ms() - 5_000))
        await listed(client, 1)
        await console.say(a_row("secret-name", 3))
        async for _ in Deadline(5, "the second list"):
            if (await client.get("/api/worktrees")).json()["version"] == 2:
                break
    async with a_console(tmp_path / "s", bus, store, clock=clock) as console, console.client(**console.bearer()) as client:
        day = (await client.get("/api/day")).json()
        assert day["slot_ms"] == SLOT_MS
        (sample,) = day["samples"]
        assert sample["counts"] == [0, 0, 1, 0]
        assert [5 <= wait <= 60 for wait in sample["waits_s"]] == [True]
    assert b"secret" not in b"".join(await store.zrange(keys.day("default"), 0, -1))


async def test_the_store_keeps_a_day_and_no_more(store):
    kept = ConsoleStore(store, "default")
    for slot in (0, 1, SLOTS_MAX, SLOTS_MAX + 1):
        await kept.put_sample(Sample(slot=slot, counts=(0, 0, 0, 1)))
    assert await store.zcard(keys.day("default")) == 2
    assert 0 < await store.pttl(keys.day("default")) <= SLOTS_MAX * SLOT_MS


async def test_a_ticket_that_was_put_is_taken_by_one(store):
    kept = ConsoleStore(store, "default")
    grant = Grant(name="dev", scope=Scope.READ)
    await kept.put_ticket("d", grant)
    assert sorted(map(str, await asyncio.gather(kept.take_ticket("d"), kept.take_ticket("d")))) == sorted(map(str, (None, grant)))


# ---------------------------------------------------------------- commands


@pytest.mark.parametrize(
    ("path", "subject", "body"),
    [
        ("/api/run/commands", RUN_CMD, {"run": "r1", "request": "q1", "ask": {"verb": "list"}}),
        ("/api/mail/commands", MAIL_CMD, {"mailbox": "run:r1", "request": "q1", "ask": {"verb": "check"}}),
        ("/api/custody/commands", CUSTODY_CMD, {"custody": "d1", "request": "q1", "ask": {"verb": "show"}}),
    ],
)
async def test_a_command_goes_on_with_the_person_as_its_caller(console, bus, path, subject, body):
    heard = []

    async def handle(command):
        heard.append(command)
        return Receipt(request=command.request, seq=7, result={"ok": True})

    async with bus.serve(subject, handle, name="test"), a_page(console, name="dev") as page:
        answer = await page.post(path, json=body)
        assert answer.status_code == 200, answer.text
        assert answer.json()["seq"] == 7
    assert heard[0].caller.role == "person"
    assert heard[0].caller.name == "dev@console"
    assert not heard[0].caller.vouched
    assert heard[0].at_ms > 0


async def test_a_refused_command_says_why_and_what_next(console, bus):
    refusal = Refusal(Code.RUN_CLOSED, "it is over")

    async def handle(command):
        public = refusal.public()
        return Refused(
            request=command.request, code=refusal.code, message=refusal.message, retry=refusal.advice.retry, next=tuple(public["next"])
        )

    async with bus.serve(RUN_CMD, handle, name="test"), a_page(console) as page:
        answer = await page.post("/api/run/commands", json={"run": "r1", "request": "q1", "ask": {"verb": "list"}})
        assert answer.status_code == 409
        assert {"code": "run_closed", "message": "it is over"}.items() <= answer.json().items()
        assert answer.json()["next"]


async def test_nobody_says_who_they_are(console):
    async with a_page(console) as page:
        caller = {"role": "service", "name": "dispatcher"}
        answer = await page.post("/api/run/commands", json={"run": "r", "request": "q", "caller": caller, "ask": {}})
        assert (answer.status_code, answer.json()["code"]) == (422, "bad_field")


async def test_a_command_that_nobody_serves_is_unavailable(console):
    async with a_page(console) as page:
        ask = {"verb": "list"}
        answer = await page.post("/api/run/commands", json={"run": "r1", "request": "q1", "ask": ask})
        assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
        answer = await page.post("/api/run/commands", json={"run": "", "request": "q1", "ask": ask})
        assert (answer.status_code, answer.json()["code"]) == (422, "bad_field")


# ---------------------------------------------------------------- jump


async def test_where_no_pane_can_be_selected_the_command_that_goes_there_is_told(console):
    async with a_page(console) as page:
        await console.say(a_row("api"), a_row("far", host="elsewhere"))
        await listed(page, 2)
        told = (await page.post("/api/jump", json={"worktree": "api-id"})).json()
        assert told == {"selected": False, "command": "cd /work/api", "problem": None, "host": "h"}
        assert (await page.post("/api/jump", json={"worktree": "nobody"})).status_code == 404
        assert (await page.post("/api/jump", json={})).json()["code"] == "bad_field"
