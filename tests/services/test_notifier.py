"""Notices over a real bus, a real store and a real receiver: each request once, over replicas, restarts and failures."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from builders import NOW_MS
from console_builders import a_console, a_row
from support import Deadline, running
from tocsin.console import notice_store
from tocsin.console.core.notices import Notice, Request
from tocsin.console.notice_store import NoticeStore
from tocsin.contract.ids import WorkspaceId
from tocsin.contract.notices import NoticeDue
from tocsin.contract.subjects import NOTICE_DUE, TELEMETRY_COUNTED, WORKTREE_MARKED
from tocsin.pane_host.notices import Notices
from tocsin.runtime.clock import SystemClock
from webhook_receiver import Receiver


class SetClock(SystemClock):
    """The system's clock, moved on by a test."""

    ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms


def a_blocked(name="web", prompt_ms=NOW_MS, reason="asks to run npm", **fields):
    row = a_row(name, 1, **fields)
    return msgspec.structs.replace(row, panes=(msgspec.structs.replace(row.panes[0], prompt_ms=prompt_ms, reason=reason),))


async def told(receiver: Receiver, count: int) -> list[str]:
    async for _ in Deadline(20, f"{count} notices are told"):
        if len(receiver.bodies) >= count:
            break
    return receiver.bodies


async def nothing_waits(store) -> None:
    kept = NoticeStore(store, "default")
    async for _ in Deadline(20, "no notice waits"):
        if not await kept.waiting():
            return


@asynccontextmanager
async def said_on(bus) -> AsyncIterator[list[NoticeDue]]:
    heard: list[NoticeDue] = []
    async with bus.hear(NOTICE_DUE, heard.append, lambda: None):
        yield heard


async def ask(console, method, path, body=None):
    async with console.client(**console.bearer()) as client:
        answer = await (client.get(path) if method == "GET" else client.post(path, json=body))
        return answer.status_code, answer.json()


# ---------------------------------------------------------------- what is told


async def test_a_request_is_posted_as_ntfy_takes_it_and_its_token_never_leaves_the_header(tmp_path, bus, store, receiver, capfd):
    token = tmp_path / "token"
    token.write_text("tk_0123456789\n")
    async with a_console(tmp_path / "state", bus, store, notify_url=receiver.url, notify_token_file=token) as console:
        await console.say(a_blocked("wéb"))
        assert await told(receiver, 1) == ["asks to run npm"]
        await nothing_waits(store)
        status, how = await ask(console, "GET", "/api/notify")
    (head,) = receiver.heads
    assert head[""].startswith("POST /secret-topic ")
    assert head["title"] == "=?UTF-8?B?d8OpYiBuZWVkcyB5b3U=?="
    assert (head["priority"], head["tags"], head["authorization"]) == ("default", "bell", "Bearer tk_0123456789")
    assert head["click"].startswith("http://127.0.0.1:")
    assert (status, how["webhook"]["host"], how["webhook"]["failed_last"]) == (200, "127.0.0.1", False)
    said = "".join(capfd.readouterr())
    assert "tk_0123456789" not in said
    assert "secret-topic" not in said


async def test_each_request_is_told_once_over_replicas_and_restarts_and_the_next_one_of_the_same_pane_again(tmp_path, bus, store, receiver):
    async with said_on(bus) as said:
        for life in range(2):
            async with (
                a_console(tmp_path / "state", bus, store, notify_url=receiver.url) as console,
                a_console(tmp_path / "state", bus, store, notify_url=receiver.url),
            ):
                console.version = 10 * life
                await console.say(a_blocked())
                await told(receiver, 1)
                await console.say(a_blocked(), a_row("other"))
                await nothing_waits(store)
        async with a_console(tmp_path / "state", bus, store, notify_url=receiver.url) as console:
            console.version = 30
            await console.say(a_blocked(prompt_ms=NOW_MS + 1, reason="asks a question"))
            # Whatever else was to be told was told before it: requests are claimed in order.
            assert await told(receiver, 2) == ["asks to run npm", "asks a question"]
            await nothing_waits(store)
    assert [one.text for one in said] == receiver.bodies


async def test_what_a_replica_had_claimed_and_not_told_when_it_died_is_told_by_another(tmp_path, bus, store, receiver):
    kept = NoticeStore(store, "default")
    request = Request(worktree="web-id", host="h", pane="p-web", prompt_ms=NOW_MS, name="web", reason="asks to run npm")
    now_ms = SystemClock().now_ms()
    assert await kept.claim(request, Notice(id="n1", parts=(request,), at_ms=now_ms))
    assert not await kept.claim(request, Notice(id="n2", parts=(request,), at_ms=now_ms))
    assert await kept.hold_courier("the one that died")
    await store.pexpire("tocsin:courier:default", 1)
    async with a_console(tmp_path / "state", bus, store, notify_url=receiver.url) as console:
        await console.say(a_blocked())
        assert await told(receiver, 1) == ["asks to run npm"]
        await nothing_waits(store)
    assert receiver.heads[0]["x-tocsin-notice"] == "n1"


async def test_only_one_replica_tells_and_one_that_leaves_hands_that_on_at_once(store):
    kept = NoticeStore(store, "default")
    assert await kept.hold_courier("a")
    assert not await kept.hold_courier("b")
    assert await kept.hold_courier("a")
    assert 0 < await store.pttl("tocsin:courier:default") <= notice_store.COURIER_MS
    await kept.leave_courier("b")
    assert not await kept.hold_courier("b")
    await kept.leave_courier("a")
    assert await kept.hold_courier("b")


# ---------------------------------------------------------------- failures


async def test_a_webhook_that_fails_is_tried_again_and_screens_are_not_told_twice(tmp_path, bus, store, receiver):
    receiver.statuses = [503]
    async with said_on(bus) as said, a_console(tmp_path / "state", bus, store, notify_url=receiver.url) as console:
        await console.say(a_blocked())
        await told(receiver, 1)
        async for _ in Deadline(10, "the failure is known"):
            if (await ask(console, "GET", "/api/notify"))[1]["webhook"]["failed_last"]:
                break
        assert await told(receiver, 2) == ["asks to run npm"] * 2
        await nothing_waits(store)
        how = (await ask(console, "GET", "/api/notify"))[1]["webhook"]
    assert (how["failed_last"], how["error"]) == (False, "127.0.0.1 answers 503")
    assert len(said) == 1


@pytest.mark.parametrize("status", [302, 401, 404])
async def test_an_answer_that_asking_again_cannot_change_ends_it(tmp_path, bus, store, receiver, status):
    receiver.statuses = [status]
    async with a_console(tmp_path / "state", bus, store, notify_url=receiver.url) as console:
        await console.say(a_blocked())
        await told(receiver, 1)
        await nothing_waits(store)
        how = (await ask(console, "GET", "/api/notify"))[1]["webhook"]
    assert (how["failed_last"], how["error"]) == (True, f"127.0.0.1 answers {status}")
    assert len(receiver.heads) == 1, "no redirect is followed"


async def test_what_is_answered_while_the_webhook_is_away_is_not_told_when_it_is_back(tmp_path, bus, store, receiver):
    receiver.statuses = [503]
    async with a_console(tmp_path / "state", bus, store, notify_url=receiver.url) as console:
        await console.say(a_blocked())
        await told(receiver, 1)
        await console.say(a_row("web", 3))
        await nothing_waits(store)
    assert len(receiver.bodies) == 1


# ---------------------------------------------------------------- the person's wishes


async def test_what_rings_in_quiet_hours_comes_as_one_summary_at_their_end(tmp_path, bus, store, receiver):
    clock = SetClock()
    day_ms = 86_400_000
    clock.ahead_ms = -(clock.now_ms() % day_ms) + 23 * 3_600_000  # 23:00 UTC
    hours = {"notify_url": receiver.url, "quiet_hours": ("22:00-07:00",), "timezone": "UTC"}
    async with a_console(tmp_path / "state", bus, store, clock=clock, **hours) as console:
        await console.say(a_blocked("api"), a_blocked("docs"), a_blocked("web"), a_row("loud"))
        async for _ in Deadline(10, "all three are held"):
            how = (await ask(console, "GET", "/api/notify"))[1]
            if how["waiting"] == 3:
                break
        assert how["is_quiet"]
        await ask(console, "POST", "/api/marks", {"worktree": "loud", "urgent": True})
        await console.say(a_blocked("loud", reason="is urgent"), a_blocked("api"), a_blocked("web"), a_row("docs", 3))
        assert await told(receiver, 1) == ["is urgent"]
        assert receiver.heads[0]["priority"] == "urgent"
        clock.ahead_ms += 8 * 3_600_000  # 07:00
        assert (await told(receiver, 2))[1:] == ["api: asks to run npm\nweb: asks to run npm"]
        assert receiver.heads[1]["title"] == "2 worktrees need you"
        await nothing_waits(store)


async def test_a_snooze_holds_a_notice_back_and_is_said_on_the_bus_and_in_the_stream_and_ends_with_the_next_request(
    tmp_path, bus, store, receiver
):
    async with a_console(tmp_path / "state", bus, store, notify_url=receiver.url) as console:
        await console.say(a_row("web", 3), a_row("api", 3))
        async for _ in Deadline(10, "the list is there"):
            status, _ = await ask(console, "POST", "/api/marks", {"worktree": "web", "snooze": 1_800_000})
            if status == 200:
                break
        await ask(console, "POST", "/api/marks", {"worktree": "api", "snooze": "anew"})
        last = await bus.last(WORKTREE_MARKED, "default")
        assert [mark.worktree for mark in last.body.marks] == ["api-id", "web-id"]
        await console.say(a_blocked("api", reason="asks anew"), a_blocked("web"))
        assert await told(receiver, 1) == ["asks anew"]
        async for _ in Deadline(10, "the mark of the one that asked anew is gone"):
            marks = (await ask(console, "GET", "/api/marks"))[1]["marks"]
            if list(marks) == ["web-id"]:
                break
        assert (await ask(console, "GET", "/api/notify"))[1]["waiting"] == 1
        await ask(console, "POST", "/api/marks", {"worktree": "web", "snooze": None})
        assert await told(receiver, 2) == ["asks anew", "asks to run npm"]
        async with console.client(**console.bearer()) as client:
            assert (await client.get("/api/worktrees", params={"sort": "mine"})).status_code == 200


MARKS = [({}, 422), ({"worktree": "nobody", "urgent": True}, 404), ({"worktree": "web", "snooze": -1}, 422), ({"worktree": "web", "snooze": "x"}, 422),
         ({"worktree": "web", "urgent": "yes"}, 422), ({"worktree": "web", "louder": True}, 422)]  # fmt: skip


async def test_a_mark_is_asked_for_in_proper_words_and_by_who_may_command(tmp_path, bus, store):
    async with a_console(tmp_path / "state", bus, store) as console:
        await console.say(a_row("web", 3))
        async for _ in Deadline(10, "the list is there"):
            if (await ask(console, "GET", "/api/worktrees"))[0] == 200:
                break
        for body, status in MARKS:
            assert (await ask(console, "POST", "/api/marks", body))[0] == status, body
        async with console.client(**console.bearer("reader.credential")) as client:
            assert (await client.post("/api/marks", json={"worktree": "web", "urgent": True})).status_code == 401
            assert (await client.get("/api/marks")).json() == {"marks": {}}


async def test_a_test_notice_tells_at_once_whether_the_webhook_took_it(tmp_path, bus, store, receiver):
    receiver.statuses = [200, 500]
    async with said_on(bus) as said, a_console(tmp_path / "state", bus, store, notify_url=receiver.url) as console:
        assert (await ask(console, "POST", "/api/notify/test", {}))[1] == {"webhook": "127.0.0.1", "failed": None}
        assert (await ask(console, "POST", "/api/notify/test", {}))[1]["failed"] == "127.0.0.1 answers 500"
        async for _ in Deadline(10, "both were said to the screens"):
            if len(said) == 2:
                break
    assert receiver.bodies[0] == "This is a test: nobody needs you."


# ---------------------------------------------------------------- the screens of a machine


async def test_a_machine_shows_each_notice_once_by_a_command_that_finds_it_in_its_environment(tmp_path, bus):
    out = tmp_path / "out"
    program = tmp_path / "show it"
    program.write_text(
        f'#!/bin/sh\nprintf "%s|%s|%s|%s\\n" "$TOCSIN_NOTICE_TITLE" "$TOCSIN_NOTICE_TEXT" "$TOCSIN_NOTICE_URGENT" "$1" >> "{out}"\n'
    )
    program.chmod(0o755)
    shown = Notices(bus, WorkspaceId("default"), desktop=False, command=f"'{program}' -x")
    notice = NoticeDue(workspace="default", id="n1", at_ms=NOW_MS, title="$(touch x); -web", text="asks \x1b to `run`", urgent=True)
    async with running(shown.run()):
        async for _ in Deadline(10, "it is shown"):
            await bus.say(NOTICE_DUE, notice)
            if out.exists() and out.read_text():
                break
        await bus.say(NOTICE_DUE, msgspec.structs.replace(notice, id="n0", workspace="other"))
        await bus.say(NOTICE_DUE, msgspec.structs.replace(notice, id="n2", title="two"))
        async for _ in Deadline(10, "the next is shown"):
            if "two" in out.read_text():
                break
    assert out.read_text() == "$(touch x); -web|asks \ufffd to `run`|1|-x\ntwo|asks \ufffd to `run`|1|-x\n"
    assert shown.failed is None


@pytest.mark.parametrize(("command", "why"), [
    ("/nowhere/at-all", "/nowhere/at-all cannot be started, or took longer than 10 s"),
    ("sh -c 'echo broken >&2; exit 3'", "sh ended with 3: broken"),
])  # fmt: skip
async def test_a_notice_that_cannot_be_shown_is_known_to_doctor(bus, command, why):
    shown = Notices(bus, WorkspaceId("default"), desktop=True, command=command)
    async with running(shown.run()):
        async for _ in Deadline(10, "it has failed"):
            await bus.say(NOTICE_DUE, NoticeDue(workspace="default", id="n1", at_ms=NOW_MS, title="t", text="t"))
            if shown.failed:
                break
    assert shown.failed == why


# ---------------------------------------------------------------- what is counted


async def test_the_console_counts_what_is_told_and_what_the_list_does_and_says_it_without_names(tmp_path, bus, store, receiver):
    counted: list = []
    async with (
        bus.hear(TELEMETRY_COUNTED, counted.append, lambda: None),
        a_console(tmp_path / "state", bus, store, notify_url=receiver.url) as console,
        console.client(**console.bearer()) as client,
    ):
        await console.say(a_row("web", 3))
        async with client.stream("GET", "/api/stream", params={"sort": "recent", "before": "smart"}) as response:
            assert response.status_code == 200
            async for _ in Deadline(10, "the switch is counted"):
                if counted:
                    break
        await console.say(a_blocked())
        await told(receiver, 1)
        await nothing_waits(store)
        async for _ in Deadline(10, "the promotion is counted"):
            if len(counted) >= 2:
                break
        numbers = {(sample.metric.name, *sample.labels): sample.value for source in console.sources for sample in source()}
    assert [type(one.counted).__name__ for one in counted] == ["SmartToRecentSwitch", "Class1Promotion"]
    assert "web" not in msgspec.json.encode(counted).decode()
    assert numbers["tocsin_notices_sent_total", "webhook"] == 1
    assert numbers["tocsin_smart_to_recent_switches_total",] == 1
