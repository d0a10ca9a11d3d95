"""A console over real servers, and lists that name only what a test is about."""

import asyncio
import secrets
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx
import redis.asyncio as redis

from builders import NOW_MS
from tocsin.bus.bus import Bus
from tocsin.console import __main__ as console
from tocsin.console.notice_store import NoticeStore
from tocsin.console.settings import ConsoleSettings
from tocsin.console.store import ConsoleStore
from tocsin.contract.messages import Evidence, PaneRow, Row, State, WorktreesSorted
from tocsin.contract.subjects import WORKTREE_SORTED
from tocsin.contract.tally import Source
from tocsin.runtime import instance
from tocsin.runtime.clock import Clock, SystemClock

STATES = {1: State.BLOCKED, 2: State.DONE, 3: State.WORKING, 4: State.IDLE}


def a_row(name: str, attention_class: int = 4, **fields: Any) -> Row:
    """A worktree with one pane of Claude Code."""
    since_ms = fields.get("attention_at", NOW_MS)
    pane = PaneRow(
        id=f"p-{name}",
        agent="claude",
        state=STATES[attention_class],
        evidence=Evidence.OBSERVED,
        since_ms=since_ms,
        reason=f"{name} says so",
    )
    defaults: dict[str, Any] = {
        "rank": 0, "id": f"{name}-id", "path": f"/work/{name}", "host": "h", "attention_at": NOW_MS if attention_class < 4 else 0,
        "evidence": Evidence.OBSERVED, "reason": f"{name} says so", "panes": (pane,), "branch": f"feat-{name}", "active_at": NOW_MS,
    }  # fmt: skip
    return Row(name=name, attention_class=attention_class, **(defaults | fields))


def a_list(*rows: Row, version: int = 1, birth: str = "b1", **fields: Any) -> WorktreesSorted:
    """A list in the order in which its rows are given."""
    ranked = tuple(Row(**{name: getattr(row, name) for name in row.__struct_fields__} | {"rank": at}) for at, row in enumerate(rows, 1))
    defaults: dict[str, Any] = {"workspace": "default", "at_ms": NOW_MS}
    return WorktreesSorted(birth=birth, version=version, worktrees=ranked, **(defaults | fields))


@dataclass
class Console:
    """A running console: how to speak to it, and how to say what it shows."""

    bus: Bus
    state: Path
    port: int
    task: "asyncio.Task[None]"
    sources: list[Source] = field(default_factory=list)
    version: int = 0
    birth: str = field(default_factory=lambda: secrets.token_hex(3))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def bearer(self, file: str = instance.COMMAND_CREDENTIAL) -> dict[str, str]:
        return {"Authorization": f"Bearer {instance.credential(self.state, file)}"}

    def client(self, **headers: str) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.url, headers=headers, trust_env=False, timeout=10)

    async def say(self, *rows: Row, **fields: Any) -> WorktreesSorted:
        """Publish the next list."""
        self.version += 1
        body = a_list(*rows, version=self.version, birth=self.birth, **fields)
        await self.bus.say(WORKTREE_SORTED, body)
        return body

    async def ticket(self, **body: Any) -> str:
        """A ticket, as `tocsin open` gets one."""
        async with self.client(**self.bearer()) as client:
            answer = await client.post("/api/tickets", json=body)
            assert answer.status_code == 200, answer.text
            return str(answer.json()["ticket"])


@asynccontextmanager
async def a_console(
    folder: Path, bus: Bus, store: "redis.Redis", *, clock: Clock | None = None, hosts: Sequence[str] = (), port: int = 0, **settings_: Any
) -> AsyncIterator[Console]:
    """A console that serves; its failure is the test's."""
    instance.create(folder)
    settings = ConsoleSettings(state=folder, host="h", console_port=port, console_hosts=tuple(hosts), **settings_)
    told: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    kept = ConsoleStore(store, settings.workspace), NoticeStore(store, settings.workspace)
    sources: list[Source] = []
    task = asyncio.create_task(console.serve(settings, bus, *kept, clock or SystemClock(), told.set_result, sources.append))
    await asyncio.wait({told, task}, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        task.result()
    try:
        yield Console(bus, folder, await told, task, sources)
    finally:
        task.cancel()
        await asyncio.wait({task})


def announce(console: Console, url: str | None = "") -> None:
    """The endpoint file, as `up` writes it."""
    instance.write_endpoint(
        console.state,
        instance.Endpoint(
            version=version("tocsin"), instance="i", keeper=instance.Keeper.COMPOSE, nats_url="nats://127.0.0.1:1", redis_url="redis://127.0.0.1:1",
            ingest_url="http://127.0.0.1:1", console_url=console.url if url == "" else url, host="h", workspace="default",
        ),
    )  # fmt: skip


async def tocsin(*words: str, **environment: str) -> tuple[int, str, str]:
    """The real command with nothing of this environment but `environment`: its exit code, and what it prints on stdout and stderr."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tocsin.cli", *words,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env={"PATH": "/usr/bin:/bin", **environment},
    )  # fmt: skip
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


class Proxy:
    """Stands between a browser and the console, so that a test can cut the line and mend it."""

    def __init__(self) -> None:
        self.to = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._pass, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Nothing goes through, and nobody answers."""
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        out: asyncio.StreamWriter | None = None

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            while data := await source.read(65536):
                sink.write(data)
                await sink.drain()
            sink.close()

        try:
            source, out = await asyncio.open_connection("127.0.0.1", self.to)
            await asyncio.gather(pump(reader, out), pump(source, writer))
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.transport.abort()
            if out is not None:
                out.transport.abort()
