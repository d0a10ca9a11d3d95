"""hook-ingest behind its real HTTP server: what hostile or broken clients send over a socket, and how it stops."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from support import Deadline
from tocsin.bus.bus import Unavailable
from tocsin.bus.nats_bus import connect
from tocsin.contract.ids import session_source
from tocsin.contract.messages import HookReported
from tocsin.contract.metrics import HOOKS_GONE
from tocsin.contract.subjects import HOOK_REPORTED
from tocsin.contract.tally import Sample, Source
from tocsin.hook_ingest import __main__ as server
from tocsin.hook_ingest import publisher
from tocsin.hook_ingest.settings import IngestSettings
from tocsin.runtime import instance
from tocsin.runtime.clock import SystemClock
from tocsin.runtime.http import asgi
from tocsin.runtime.http import server as http
from tocsin.runtime.http.server import CannotStart

MIB = 1024 * 1024
STOP = b'{"session_id":"s1","hook_event_name":"Stop","cwd":"/repo"}'
BAD = b"HTTP/1.1 400"


class RecordingBus:
    """Keeps what is said; gives no ack while `free` is clear."""

    def __init__(self) -> None:
        self.tries = 0
        self.said: list[HookReported] = []
        self.free = asyncio.Event()
        self.free.set()

    async def say(self, subject, body, *, msg_id=None, after=None) -> int:
        self.tries += 1
        await self.free.wait()
        self.said.append(body)
        return len(self.said)

    async def birth(self, subject) -> str:
        raise Unavailable("nobody asks")

    async def clock_ahead_ms(self) -> int:
        raise Unavailable("nobody to ask")

    async def ask(self, subject, body, *, timeout_s):
        raise Unavailable("nobody to ask")

    @asynccontextmanager
    async def hear(self, subject, handler, missed) -> AsyncIterator[None]:
        yield


class Ingest:
    """A running service, and how to speak to it in bytes."""

    def __init__(self, bus: RecordingBus, port: int, credential: str, task: asyncio.Task, shown: Sequence[Source] = ()) -> None:
        self.bus = bus
        self.port = port
        self.task = task
        self.credential = credential
        self.shown = shown
        self.clients: list[asyncio.StreamWriter] = []

    def head(self, *more: str, host: str | None = "", length: int | None = len(STOP), path: str = "/hook/claude") -> bytes:
        lines = [f"POST {path} HTTP/1.1", "Content-Type: application/json", f"Authorization: Bearer {self.credential}", *more]
        if host is not None:
            lines.append(f"Host: {host or f'127.0.0.1:{self.port}'}")
        if length is not None:
            lines.append(f"Content-Length: {length}")
        return "\r\n".join([*lines, "", ""]).encode()

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.clients.append(writer)
        return reader, writer

    async def send(self, *data: bytes) -> bytes:
        """All that comes back until the server closes the connection."""
        reader, writer = await self.connect()
        writer.write(b"".join(data))
        return await asyncio.wait_for(reader.read(), 10)

    async def takes_hooks(self) -> bool:
        reader, writer = await self.connect()
        writer.write(self.head() + STOP)
        return (await answer(reader)).startswith(b"HTTP/1.1 204")


async def answer(reader: asyncio.StreamReader) -> bytes:
    """One answer: its head, and the body that it declares."""
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
    length = next((int(line[16:]) for line in head.split(b"\r\n") if line.startswith(b"content-length: ")), 0)
    return head + await asyncio.wait_for(reader.readexactly(length), 10)


def code_of(answered: bytes) -> str:
    return json.loads(answered.partition(b"\r\n\r\n")[2])["code"]


def settings_in(folder: Path, **more: object) -> IngestSettings:
    instance.create(folder)
    return IngestSettings(state=folder, host="here", ingest_port=0, **more)


@asynccontextmanager
async def an_ingest(folder: Path, **more: object) -> AsyncIterator[Ingest]:
    """A service that serves; its failure is the test's, its end by the test is not."""
    bus = RecordingBus()
    settings = settings_in(folder, **more)
    told: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    shown: list[Source] = []
    task = asyncio.create_task(server.serve(settings, bus, SystemClock(), told.set_result, shown.append))
    await asyncio.wait({told, task}, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        task.result()
    ingest = Ingest(bus, await told, instance.credential(folder, instance.HOOK_CREDENTIAL), task, shown)
    try:
        yield ingest
    finally:
        for writer in ingest.clients:
            writer.close()
        task.cancel()
        await asyncio.wait({task})
    if not task.cancelled():
        task.result()


@pytest.fixture
async def ingest(tmp_path: Path) -> AsyncIterator[Ingest]:
    async with an_ingest(tmp_path / "state") as made:
        yield made


# ---------------------------------------------------------------- ordinary clients


async def test_one_connection_carries_many_hooks(ingest):
    reader, writer = await ingest.connect()
    for _ in range(3):
        writer.write(ingest.head() + STOP)
        assert (await answer(reader)).startswith(b"HTTP/1.1 204")
    assert len(ingest.bus.said) == 3


async def test_hooks_sent_before_the_answers_of_earlier_ones_are_answered_in_order(ingest):
    reader, writer = await ingest.connect()
    writer.write(ingest.head() + STOP + ingest.head(path="/hook/nobody") + STOP)
    assert (await answer(reader)).startswith(b"HTTP/1.1 204")
    assert code_of(await answer(reader)) == "unknown_agent"


async def test_a_body_in_chunks_is_taken(ingest):
    reader, writer = await ingest.connect()
    writer.write(ingest.head("Transfer-Encoding: chunked", length=None))
    for byte in STOP:
        writer.write(b"1\r\n" + bytes([byte]) + b"\r\n")
    writer.write(b"0\r\n\r\n")
    assert (await answer(reader)).startswith(b"HTTP/1.1 204")


async def test_the_path_of_a_folder_arrives_as_the_bytes_that_it_has(ingest):
    reader, writer = await ingest.connect()
    body = b'{"session_id":"s1","hook_event_name":"Stop"}'
    writer.write(ingest.head("X-Tocsin-Cwd: /repo/ключ 1", length=len(body)) + body)
    await answer(reader)
    assert ingest.bus.said[0].cwd == "/repo/ключ 1"


async def test_answers_do_not_tell_what_serves_them(ingest):
    answered = await ingest.send(ingest.head(host="evil.example"))
    assert b"server:" not in answered.lower()
    assert b"uvicorn" not in answered.lower()


async def test_the_chosen_port_is_written_to_the_port_file_once_it_is_listened_on(tmp_path):
    file = tmp_path / "port"
    file.write_text("1\n")
    async with an_ingest(tmp_path / "state", ingest_port_file=file) as ingest:
        assert file.read_text() == f"{ingest.port}\n"


async def test_a_port_that_is_taken_is_named_and_no_earlier_port_stays_in_the_file(ingest, tmp_path):
    file = tmp_path / "port"
    file.write_text("1\n")
    settings = settings_in(tmp_path / "other", ingest_port_file=file).model_copy(update={"ingest_port": ingest.port})
    with pytest.raises(CannotStart, match=str(ingest.port)):
        await server.serve(settings, ingest.bus, SystemClock())
    assert not file.exists()


async def test_it_does_not_start_without_credentials(tmp_path):
    with pytest.raises(CannotStart, match=r"hook\.credential"):
        await server.serve(IngestSettings(state=tmp_path, ingest_port=0), RecordingBus(), SystemClock())


# ---------------------------------------------------------------- hostile bytes


@pytest.mark.parametrize("more", [(), ("Host: 127.0.0.1:{port}",), ("Host: evil.example", "Host: 127.0.0.1:{port}")])
async def test_no_host_or_two_hosts_are_refused(ingest, more):
    hosts = [line.format(port=ingest.port) for line in more]
    hosts = hosts * 2 if len(hosts) == 1 else hosts
    answered = await ingest.send(ingest.head(*hosts, host=None) + STOP)
    assert answered.startswith(b"HTTP/1.1 421")
    assert code_of(answered) == "foreign_host"
    assert ingest.bus.said == []


async def test_two_credentials_or_two_content_types_are_refused(ingest):
    assert code_of(await ingest.send(ingest.head("Authorization: Bearer x.y"), STOP)) == "no_credential"
    assert code_of(await ingest.send(ingest.head("Content-Type: text/plain"), STOP)) == "not_json"
    assert ingest.bus.said == []


MALFORMED = {
    "no HTTP": b"\x16\x03\x01\x02\x00",
    "bad chunk size": b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    "negative chunk size": b"Transfer-Encoding: chunked\r\n\r\n-1\r\n",
    "chunk without its end": b"Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
    "length and chunks, which two servers read differently": b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": b"Content-Length: 4\r\nContent-Length: 5\r\n\r\n{}  ",
    "negative length": b"Content-Length: -1\r\n\r\n",
    "length beyond all numbers": b"Content-Length: 99999999999999999999999\r\n\r\n",
    "a command in a header": b"X-Tocsin-Pane: w1\r\nPUB hub.admin 1\r\nx\r\n\r\n",
    "a bare line feed in a header": b"X-Tocsin-Pane: w1\nPUB hub.admin 1\r\n\r\n",
    "a bare carriage return in a header": b"X-Tocsin-Pane: w1\rPUB hub.admin 1\r\n\r\n",
    "a null byte in a header": b"X-Tocsin-Pane: w\x001\r\n\r\n",
    "a folded header": b"X-Tocsin-Pane: w1\r\n PUB hub.admin 1\r\n\r\n",
    "a space before the colon": b"X-Tocsin-Pane : w1\r\n\r\n",
}


@pytest.mark.parametrize("bad", MALFORMED.values(), ids=MALFORMED.keys())
async def test_what_is_no_http_request_is_400_and_ends_its_connection_alone(ingest, bad):
    neighbour, writer = await ingest.connect()
    head = b"" if bad.startswith(b"\x16") else ingest.head(length=None).removesuffix(b"\r\n")
    answered = await ingest.send(head, bad)
    assert answered.startswith(BAD)
    assert ingest.bus.said == []
    writer.write(ingest.head() + STOP)
    assert (await answer(neighbour)).startswith(b"HTTP/1.1 204")


async def test_an_upgrade_is_not_done(ingest):
    reader, writer = await ingest.connect()
    writer.write(ingest.head("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: eA==", "Sec-WebSocket-Version: 13", length=0))
    assert not (await answer(reader)).startswith(b"HTTP/1.1 101")
    assert await ingest.takes_hooks()


async def test_a_head_without_end_is_refused_by_its_size(ingest):
    reader, writer = await ingest.connect()
    writer.write(b"POST /hook/claude HTTP/1.1\r\n")
    with suppress(ConnectionError):
        for number in range(64):
            writer.write(f"X-{number}: {'x' * 32_000}\r\n".encode())
            await writer.drain()
    with suppress(ConnectionError):
        assert (await reader.read()).startswith(BAD)
    assert await ingest.takes_hooks()


async def test_trailers_are_not_kept(ingest):
    reader, writer = await ingest.connect()
    writer.write(ingest.head("Transfer-Encoding: chunked", "X-Tocsin-Pane: p1", length=None) + b"%x\r\n%s\r\n0\r\n" % (len(STOP), STOP))
    writer.write(b"X-Tocsin-Host: elsewhere\r\n\r\n")
    assert (await answer(reader)).startswith(b"HTTP/1.1 204")
    assert ingest.bus.said[0].host == "here"


async def test_a_connection_that_says_nothing_or_never_ends_its_head_is_closed(tmp_path, monkeypatch):
    monkeypatch.setattr(http, "HEAD_S_MAX", 0.05)
    async with an_ingest(tmp_path / "state") as ingest:
        assert await ingest.send() == b""
        assert await ingest.send(b"POST /hook/claude HT") == b""
        assert await ingest.send(b"\r\n") == b""
        for more in (b"POST /hook/claude HT", b"\r\n"):
            reader, writer = await ingest.connect()
            writer.write(ingest.head() + STOP)
            await answer(reader)
            writer.write(more)
            assert await asyncio.wait_for(reader.read(), 4) == b""


async def test_no_more_connections_are_open_than_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(http, "CONNECTIONS_MAX", 2)
    async with an_ingest(tmp_path / "state") as ingest:
        held = [await ingest.connect() for _ in range(2)]
        for reader, writer in held:
            writer.write(ingest.head() + STOP)
            await answer(reader)
        with suppress(ConnectionError):
            assert await ingest.send(ingest.head(), STOP) == b""
        held[0][1].close()
        async for _ in Deadline(5, "there is room again"):
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                if await ingest.takes_hooks():
                    break


# ---------------------------------------------------------------- bodies


async def test_a_body_that_is_declared_too_large_is_refused_before_it_is_sent(ingest):
    reader, writer = await ingest.connect()
    writer.write(ingest.head(length=200 * MIB))
    answered = await answer(reader)
    assert answered.startswith(b"HTTP/1.1 413")
    assert code_of(answered) == "too_large"
    assert b"connection: close" in answered
    assert await asyncio.wait_for(reader.read(), 10) == b""


async def test_a_client_that_waits_for_leave_is_refused_without_it(ingest):
    reader, writer = await ingest.connect()
    writer.write(ingest.head("Expect: 100-continue", length=200 * MIB))
    assert (await answer(reader)).startswith(b"HTTP/1.1 413")


async def test_a_client_that_waits_for_leave_gets_it_when_its_head_is_in_order(ingest):
    reader, writer = await ingest.connect()
    writer.write(ingest.head("Expect: 100-continue"))
    assert (await answer(reader)).startswith(b"HTTP/1.1 100")
    writer.write(STOP)
    assert (await answer(reader)).startswith(b"HTTP/1.1 204")


async def test_j02_200_mib_in_chunks_are_refused_by_size_before_they_are_read_whole(ingest):
    reader, writer = await ingest.connect()
    writer.write(ingest.head("Transfer-Encoding: chunked", length=None))
    chunk = b"%x\r\n" % MIB + b"x" * MIB + b"\r\n"
    sent = 0
    answered = asyncio.create_task(answer(reader))
    with suppress(ConnectionError):
        while sent < 200 and not answered.done():
            writer.write(chunk)
            await writer.drain()
            sent += 1
    assert (await answered).startswith(b"HTTP/1.1 413")
    # What was sent beyond the limit of 16 lies in the buffers of two sockets.
    assert sent < 40
    assert await ingest.takes_hooks()


async def test_a_body_that_comes_too_slowly_is_408_and_others_do_not_wait(tmp_path, monkeypatch):
    monkeypatch.setattr(asgi, "READ_S_MAX", 0.2)
    async with an_ingest(tmp_path / "state") as ingest:
        reader, writer = await ingest.connect()
        writer.write(ingest.head() + STOP[:10])
        assert await ingest.takes_hooks()
        answered = await answer(reader)
        assert answered.startswith(b"HTTP/1.1 408")
        assert code_of(answered) == "too_slow"
        assert await asyncio.wait_for(reader.read(), 10) == b""
        assert len(ingest.bus.said) == 1


async def test_a_client_that_leaves_within_its_body_is_counted_and_changes_nothing(ingest):
    _, writer = await ingest.connect()
    writer.write(ingest.head() + STOP[:10])
    await writer.drain()
    writer.close()
    assert await ingest.takes_hooks()
    assert len(ingest.bus.said) == 1
    async for _ in Deadline(5, "it is counted"):
        if Sample(HOOKS_GONE, (), 1) in [sample for source in ingest.shown for sample in source()]:
            break


async def test_a_body_that_nobody_reads_ends_its_connection(ingest):
    reader, writer = await ingest.connect()
    writer.write(ingest.head("Transfer-Encoding: chunked", length=None, path="/openapi.json").replace(b"POST", b"GET"))
    assert (await answer(reader)).startswith(b"HTTP/1.1 200")
    writer.write(b"4\r\nabcd\r\n")
    with suppress(ConnectionError):
        assert await asyncio.wait_for(reader.read(), 10) == b""


async def test_a_refusal_arrives_although_its_body_is_still_being_sent(ingest):
    reader, writer = await ingest.connect()
    writer.write(ingest.head("Authorization: Bearer x.y", length=MIB) + b"x" * (MIB // 2))
    answered = await answer(reader)
    assert answered.startswith(b"HTTP/1.1 401")
    assert b"connection: close" in answered


# ---------------------------------------------------------------- stopping


async def test_k06_a_stop_answers_the_hooks_in_flight_and_closes_every_connection(tmp_path):
    async with an_ingest(tmp_path / "state") as ingest:
        ingest.bus.free.clear()
        silent, _ = await ingest.connect()
        half_head, writer = await ingest.connect()
        writer.write(ingest.head()[:20])
        slow, writer = await ingest.connect()
        writer.write(ingest.head() + STOP[:10])
        in_flight, writer = await ingest.connect()
        writer.write(ingest.head() + STOP)
        async for _ in Deadline(5, "a hook is in flight"):
            if ingest.bus.tries:
                break
        ingest.task.cancel()
        async for _ in Deadline(5, "no new connection is taken"):
            with suppress(ConnectionError):
                await ingest.connect()
                continue
            break
        ingest.bus.free.set()
        assert (await answer(in_flight)).startswith(b"HTTP/1.1 204")
        assert code_of(await answer(slow)) == "too_slow"
        for reader in (silent, half_head, in_flight, slow):
            assert await asyncio.wait_for(reader.read(), 5) == b""
        await asyncio.wait_for(asyncio.wait({ingest.task}), 5)
        assert ingest.task.cancelled()


async def test_a_stop_waits_for_the_acks_of_what_was_answered_first(tmp_path):
    async with an_ingest(tmp_path / "state", ack="async") as ingest:
        ingest.bus.free.clear()
        assert await ingest.takes_hooks()
        ingest.task.cancel()
        async for _ in Deadline(5, "no new connection is taken"):
            with suppress(ConnectionError):
                await ingest.connect()
                continue
            break
        assert not ingest.task.done()
        ingest.bus.free.set()
        await asyncio.wait_for(asyncio.wait({ingest.task}), 5)
        assert len(ingest.bus.said) == 1


async def test_a_stop_names_what_was_answered_first_and_has_no_ack(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(publisher, "DRAIN_S_MAX", 0.05)
    async with an_ingest(tmp_path / "state", ack="async") as ingest:
        ingest.bus.free.clear()
        assert await ingest.takes_hooks()
        ingest.task.cancel()
        await asyncio.wait_for(asyncio.wait({ingest.task}), 5)
        assert "hook.never_acked" in capsys.readouterr().err


# ---------------------------------------------------------------- the process, on a real bus


@asynccontextmanager
async def a_process(folder: Path, nats_url: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, int]]:
    port_file = folder / "port"
    environment = os.environ | {
        "NATS_URL": nats_url, "TOCSIN_STATE": str(folder), "TOCSIN_INGEST_PORT": "0", "TOCSIN_INGEST_PORT_FILE": str(port_file),
        "TOCSIN_HOST": "here", "TOCSIN_BEAT_FILE": str(folder / "beat"),
    }  # fmt: skip
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tocsin.hook_ingest", env=environment, stderr=asyncio.subprocess.PIPE
    )
    try:
        async for _ in Deadline(20, "hook-ingest listens"):
            assert process.returncode is None, (await process.stderr.read()).decode()
            if port_file.exists():
                break
        yield process, int(port_file.read_text())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_a_hook_is_on_the_bus_once_however_often_it_is_sent_and_the_process_stops_clean(tmp_path, nats_server, bus):
    state = tmp_path / "state"
    settings_in(state)
    credential = instance.credential(state, instance.HOOK_CREDENTIAL)
    async with a_process(state, nats_server.url) as (process, port):
        ingest = Ingest(RecordingBus(), port, credential, asyncio.current_task())
        for session in (b"s1", b"s1", b"s2"):
            reader, writer = await ingest.connect()
            writer.write(ingest.head("X-Tocsin-Sent: 1800000000000") + STOP.replace(b"s1", session))
            assert (await answer(reader)).startswith(b"HTTP/1.1 204")
        first = await bus.last(HOOK_REPORTED, "here", session_source("claude", "s1"))
        second = await bus.last(HOOK_REPORTED, "here", session_source("claude", "s2"))
        assert (first.seq, first.body.session, second.seq, second.body.session) == (1, "s1", 2, "s2")
        idle, _ = await ingest.connect()
        process.send_signal(signal.SIGTERM)
        _, errors = await asyncio.wait_for(process.communicate(), 5)
        assert process.returncode == 0
        assert b"Traceback" not in errors, errors.decode()
        assert credential.encode() not in errors
        assert await asyncio.wait_for(idle.read(), 5) == b""


async def test_j02_a_bus_that_takes_a_mebibyte_has_every_event_of_hooks_of_megabytes_and_closes_no_connection(tmp_path, nats_server):
    nats_server.end()
    nats_server.payload_max = "1MB"
    nats_server.start()
    state = tmp_path / "state"
    settings_in(state)
    credential = instance.credential(state, instance.HOOK_CREDENTIAL)
    big = {
        "session_id": "s1",
        "cwd": "/repo",
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_use_id": "tu1",
        "tool_input": {},
    }
    asks = big | {"session_id": "s2", "hook_event_name": "PermissionRequest", "tool_use_id": "tu2", "tool_input": {"command": "npm i"}}
    async with (
        connect(nats_server.url, name="test") as bus, a_process(state, nats_server.url) as (process, port),
    ):  # fmt: skip
        ingest = Ingest(RecordingBus(), port, credential, asyncio.current_task())
        for event in (big | {"tool_response": {"stdout": "x" * 6 * MIB}}, asks, asks | {"session_id": "s" * 2 * MIB}):
            body = json.dumps(event).encode()
            reader, writer = await ingest.connect()
            writer.write(ingest.head(length=len(body)) + body)
            assert (await answer(reader)).startswith(b"HTTP/1.1 204")
        first = await bus.last(HOOK_REPORTED, "here", session_source("claude", "s1"))
        second = await bus.last(HOOK_REPORTED, "here", session_source("claude", "s2"))
        assert (first.body.event, first.body.call, second.body.event) == ("PostToolUse", "tu1", "PermissionRequest")
        assert await bus.end(HOOK_REPORTED) == 3
        assert process.returncode is None
    assert "maximum payload" not in (nats_server.folder / "log").read_text().lower()


async def test_while_the_bus_is_away_hooks_are_unavailable_and_afterwards_taken(tmp_path, nats_server):
    state = tmp_path / "state"
    settings_in(state)
    credential = instance.credential(state, instance.HOOK_CREDENTIAL)
    async with a_process(state, nats_server.url) as (_, port):
        ingest = Ingest(RecordingBus(), port, credential, asyncio.current_task())
        assert await ingest.takes_hooks()
        nats_server.end(signal.SIGKILL)
        reader, writer = await ingest.connect()
        writer.write(ingest.head() + STOP)
        answered = await answer(reader)
        assert answered.startswith(b"HTTP/1.1 503")
        assert code_of(answered) == "unavailable"
        nats_server.start()
        async for _ in Deadline(10, "hooks are taken again"):
            if await ingest.takes_hooks():
                break
