"""Hooks: until the answer, and until the list that shows the event is delivered, with 1,000 worktrees and one event at a time."""

import asyncio
import itertools
import json
import time
from typing import Any

from bench.measure import ROUNDS, Row, Series, in_turn
from bench.place import HOST, Place, serving
from tocsin.bus.nats_bus import NatsBus
from tocsin.contract.ids import worktree_id
from tocsin.contract.messages import State, WorktreeKnown, WorktreesSorted
from tocsin.contract.subjects import WORKTREE_KNOWN, WORKTREE_SORTED
from tocsin.contract.versions import decode
from tocsin.runtime import instance
from tocsin.runtime.clock import SystemClock

WORKTREES = 1_000
EACH, WARM_UP = 16, 10

QUIET_S = 0.12
"""Before each sample: a list is said at once when the last one was said longer ago than the sorter's window of 100 ms."""

PINGS = 3


class Http:
    """One kept connection, on which one request after another is sent."""

    def __init__(self, port: int, credential: str) -> None:
        self.port = port
        self.credential = credential

    async def open(self) -> "Http":
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    def close(self) -> None:
        self.writer.close()

    async def post(self, body: bytes, pane: str, cwd: str) -> None:
        """Until the answer is here; anything but 204 ends the bench."""
        head = (
            f"POST /hook/claude HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {self.credential}\r\nX-Tocsin-Host: {HOST}\r\nX-Tocsin-Pane: {pane}\r\nX-Tocsin-Cwd: {cwd}\r\n"
            f"X-Tocsin-Sent: {SystemClock().now_ms()}\r\nX-Tocsin-Attended: 1\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self.writer.write(head.encode() + body)
        answer = await self.reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 204"), answer


class Chain:
    """Agents, one in each worktree, and the lists that tell of them."""

    def __init__(self, ingest: Http) -> None:
        self.ingest = ingest
        self.lists: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue()
        self.agents = itertools.count()
        self.answers: list[int] = []

    async def listen(self, bus: NatsBus) -> None:
        """Keep each list and when it came."""

        async def hear(message: Any) -> None:
            self.lists.put_nowait((time.perf_counter_ns(), message.data))

        await bus.client.subscribe(WORKTREE_SORTED.all, cb=hear)

    async def hook(self, agent: int, event: str, **fields: Any) -> None:
        """One event of one agent."""
        cwd = f"/bench/w{agent}"
        payload = {"session_id": f"s{agent}", "cwd": cwd, "prompt_id": f"{agent}-1", "hook_event_name": event, **fields}
        await self.ingest.post(json.dumps(payload).encode(), f"p{agent}", cwd)

    async def until(self, agent: int, state: State) -> int:
        """When the first list came that shows this agent so."""
        while True:
            at_ns, data = await asyncio.wait_for(self.lists.get(), 20)
            listed: WorktreesSorted = decode(WorktreesSorted, data)
            home = worktree_id(HOST, f"/bench/w{agent}")
            if any(row.id == home and any(pane.state is state for pane in row.panes) for row in listed.worktrees):
                return at_ns

    async def fill(self, bus: NatsBus) -> None:
        """Every worktree is known and its agent is done."""
        for agent in range(WORKTREES):
            path, now_ms = f"/bench/w{agent}", SystemClock().now_ms()
            known = WorktreeKnown(host=HOST, worktree=worktree_id(HOST, path), path=path, name=f"w{agent}", at_ms=now_ms)
            await bus.say(WORKTREE_KNOWN, known)
            await self.hook(agent, "Stop", background_tasks=[])
        await self.until(WORKTREES - 1, State.DONE)

    async def prompt(self) -> int:
        """The next agent gets a prompt: nanoseconds until the list says so. Keeps those until the answer, too."""
        await asyncio.sleep(QUIET_S)
        agent = next(self.agents)
        began_ns = time.perf_counter_ns()
        await self.hook(agent, "UserPromptSubmit", prompt="go on")
        self.answers.append(time.perf_counter_ns() - began_ns)
        return await self.until(agent, State.WORKING) - began_ns


class Hops:
    """What the chain cannot do without, bare."""

    def __init__(self, empty: Http, place: Place) -> None:
        self.empty = empty
        self.place = place
        self.posts: list[int] = []

    async def open(self) -> "Hops":
        self.reader, self.writer = await asyncio.open_unix_connection(str(self.place.valkey))
        script = b"return redis.call('HSET', KEYS[1], 'f', ARGV[1])"
        self.writer.write(b"*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$%d\r\n%s\r\n" % (len(script), script))
        await self.reader.readline()
        digest = (await self.reader.readline()).strip()
        self.evalsha = b"*5\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n1\r\n$5\r\nbench\r\n$200\r\n%s\r\n" % (digest, b"x" * 200)
        return self

    def close(self) -> None:
        self.writer.close()

    async def all(self) -> int:
        """Nanoseconds of one POST, three PINGs and one EVALSHA, after as long a quiet. Keeps those of the POST, too."""
        await asyncio.sleep(QUIET_S)
        began_ns = time.perf_counter_ns()
        await self.empty.post(b"x" * 200, "p1", "/bench/w1")
        self.posts.append(time.perf_counter_ns() - began_ns)
        for _ in range(PINGS):
            await self.place.bus.client.flush()
        self.writer.write(self.evalsha)
        answer = await self.reader.readline()
        taken_ns = time.perf_counter_ns() - began_ns
        assert answer.startswith(b":"), answer
        return taken_ns


async def measure() -> list[Row]:
    """The rows on hooks."""
    async with serving("tocsin.hook_ingest", "tocsin.status_store", "tocsin.sorter", "bench.empty") as place:
        credential = instance.credential(place.state, instance.HOOK_CREDENTIAL) or ""
        ingest, empty = [await Http(place.port(name), credential).open() for name in ("ingest", "empty")]
        chain, hops = Chain(ingest), await Hops(empty, place).open()
        await chain.listen(place.bus)
        await chain.fill(place.bus)
        found = await in_turn({"chain": chain.prompt, "hops": hops.all}, EACH, WARM_UP)
        for connection in (ingest, empty, hops):
            connection.close()
    answers, posts = (Series.of(some[WARM_UP:], ROUNDS) for some in (chain.answers, hops.posts))
    return [
        Row(
            f"hook POST to worktree.sorted, {WORKTREES:,} worktrees",
            found["chain"],
            "POST + 3 PING + EVALSHA, bare",
            found["hops"],
            3.2,
            2.4,
        ),
        Row("hook POST, answered after the synced ack", answers, "POST to an empty ASGI route", posts, 8, 5),
    ]
