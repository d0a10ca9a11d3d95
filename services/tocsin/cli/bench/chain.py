"""Hooks: until the answer, until the list that shows the event is delivered, and how many a second, with 1,000 worktrees."""

import asyncio
import itertools
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from tocsin.bus.nats_bus import NatsBus
from tocsin.cli.bench.measure import Effort, Series, in_turn
from tocsin.cli.bench.rows import Row, Unit
from tocsin.cli.bench.site import NotMeasured, Site, bare_store, cpu_ns
from tocsin.contract.ids import HostId, worktree_id
from tocsin.contract.messages import State, WorktreeKnown, WorktreesSorted
from tocsin.contract.subjects import WORKTREE_KNOWN, WORKTREE_SORTED
from tocsin.contract.versions import decode
from tocsin.runtime.clock import SystemClock

HOST = HostId("bench")
"""Whose worktrees they are: of no machine that a pane-host looks after."""

WORKTREES = 1_000
EACH, WARM_UP = 16, 10

QUIET_S = 0.12
"""Before each sample: a list is said at once when the last one was said longer ago than the sorter's window of 100 ms."""

PINGS = 3
SENDERS = 32
"""Connections over which a burst comes."""

LIST_S_MAX = 20.0

LISTS_KEPT = 64
"""Lists of a burst that nobody has looked at yet: the last ones show its end."""


class Http:
    """One kept connection, on which one request after another is sent."""

    def __init__(self, port: int, credential: str) -> None:
        self.port = port
        self.credential = credential

    async def open(self) -> "Http":
        """Connect."""
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    def close(self) -> None:
        """Disconnect."""
        self.writer.close()

    async def post(self, body: bytes, pane: str, cwd: str) -> None:
        """Until the answer is here. Raises NotMeasured when it is not 204."""
        head = (
            f"POST /hook/claude HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {self.credential}\r\nX-Tocsin-Host: {HOST}\r\nX-Tocsin-Pane: {pane}\r\nX-Tocsin-Cwd: {cwd}\r\n"
            f"X-Tocsin-Sent: {SystemClock().now_ms()}\r\nX-Tocsin-Attended: 1\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self.writer.write(head.encode() + body)
        answer = await self.reader.readuntil(b"\r\n\r\n")
        if not answer.startswith(b"HTTP/1.1 204"):
            raise NotMeasured(f"a hook was answered {answer.decode(errors='replace').splitlines()[0]}")


Event = tuple[bytes, str, str]
"""The body of a hook, its pane and its folder."""


def flipped(agent: int, state: State, turn: int) -> Event:
    """The event that brings an agent into this state: its `turn` begins, or ends."""
    cwd = f"/bench/w{agent}"
    told = (
        {"hook_event_name": "UserPromptSubmit", "prompt": "go on"}
        if state is State.WORKING
        else {"hook_event_name": "Stop", "background_tasks": []}
    )
    return json.dumps({"session_id": f"s{agent}", "cwd": cwd, "prompt_id": f"{agent}-{turn}", **told}).encode(), f"p{agent}", cwd


@asynccontextmanager
async def senders(port: int, credential: str) -> AsyncIterator[list[Http]]:
    """SENDERS connections, newly opened: servers close those on which nothing comes for some seconds."""
    opened = [await Http(port, credential).open() for _ in range(SENDERS)]
    try:
        yield opened
    finally:
        for one in opened:
            one.close()


async def burst(over: Sequence[Http], events: Sequence[Event]) -> None:
    """Send all, over each connection one after another; returns with the last answer."""

    async def send(sender: Http, own: Sequence[Event]) -> None:
        for one in own:
            await sender.post(*one)

    async with asyncio.TaskGroup() as group:
        for number, sender in enumerate(over):
            group.create_task(send(sender, events[number :: len(over)]))


class Lists:
    """Lists as they come, each with the moment of its coming. `states` reads one: the states of the panes of each worktree, by folder."""

    def __init__(self, states: Callable[[bytes], dict[str, set[str]]]) -> None:
        self.came: deque[tuple[int, bytes]] = deque(maxlen=LISTS_KEPT)
        self.news = asyncio.Event()
        self.states = states
        self.last = b""

    def hear(self, data: bytes) -> None:
        """One has come."""
        self.came.append((time.perf_counter_ns(), data))
        self.news.set()

    async def until(self, agents: Sequence[int], state: State) -> int:
        """When the first list came that shows all these agents so. Raises NotMeasured."""
        try:
            async with asyncio.timeout(LIST_S_MAX):
                while True:
                    while not self.came:
                        self.news.clear()
                        await self.news.wait()
                    at_ns, self.last = self.came.popleft()
                    shown = self.states(self.last)
                    if all(state in shown.get(f"/bench/w{agent}", ()) for agent in agents):
                        return at_ns
        except TimeoutError as error:
            raise NotMeasured(f"no list shows {len(agents)} agents {state} after {LIST_S_MAX:.0f} s") from error


def states_in(data: bytes) -> dict[str, set[str]]:
    """Those of a list of Tocsin."""
    listed: WorktreesSorted = decode(WorktreesSorted, data)
    return {row.path: {pane.state for pane in row.panes} for row in listed.worktrees}


async def lists_of(bus: NatsBus) -> Lists:
    """Keep each list that is said from here on."""
    lists = Lists(states_in)

    async def hear(message: Any) -> None:
        lists.hear(message.data)

    await bus.client.subscribe(WORKTREE_SORTED.all, cb=hear)
    return lists


class Chain:
    """Agents, one in each worktree, whose events go to one server, and the lists that tell of them."""

    def __init__(self, ingest: Http, lists: Lists, worktrees: int = WORKTREES) -> None:
        self.ingest = ingest
        self.lists = lists
        self.agents = range(worktrees)
        self.next = itertools.cycle(self.agents)
        self.answers: list[float] = []
        self.state = State.DONE
        self.turn = 0

    async def fill(self) -> None:
        """Every agent is done."""
        async with senders(self.ingest.port, self.ingest.credential) as over:
            await burst(over, [flipped(agent, State.DONE, self.turn) for agent in self.agents])
            await self.lists.until(self.agents, State.DONE)

    async def prompt(self) -> int:
        """The next agent gets a prompt: nanoseconds until the list says so. Keeps those until the answer, too."""
        await asyncio.sleep(QUIET_S)
        agent = next(self.next)
        self.turn += 1
        told = flipped(agent, State.WORKING, self.turn)
        began_ns = time.perf_counter_ns()
        await self.ingest.post(*told)
        self.answers.append(time.perf_counter_ns() - began_ns)
        return await self.lists.until([agent], State.WORKING) - began_ns

    async def flip(self) -> float:
        """All agents change at once: events a second, from the first POST to the list that shows the last."""
        self.state = State.DONE if self.state is State.WORKING else State.WORKING
        self.turn += self.state is State.WORKING
        told = [flipped(agent, self.state, self.turn) for agent in self.agents]
        async with senders(self.ingest.port, self.ingest.credential) as over:
            began_ns = time.perf_counter_ns()
            await burst(over, told)
            return len(told) / ((await self.lists.until(self.agents, self.state) - began_ns) / 1e9)


async def know_worktrees(bus: NatsBus, worktrees: int) -> None:
    """All of them are known by name."""
    for agent in range(worktrees):
        path, now_ms = f"/bench/w{agent}", SystemClock().now_ms()
        known = WorktreeKnown(host=HOST, worktree=worktree_id(HOST, path), path=path, name=f"w{agent}", at_ms=now_ms)
        await bus.say(WORKTREE_KNOWN, known)


class Hops:
    """What the chain cannot do without, bare."""

    def __init__(self, empty: Http, site: Site) -> None:
        self.empty = empty
        self.site = site
        self.posts: list[float] = []

    async def open(self) -> "Hops":
        """Connect to the store."""
        self.reader, self.writer = await bare_store(self.site.redis_url, self.site.state)
        script = b"return redis.call('HSET', KEYS[1], 'f', ARGV[1])"
        self.writer.write(b"*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$%d\r\n%s\r\n" % (len(script), script))
        await self.reader.readline()
        digest = (await self.reader.readline()).strip()
        self.evalsha = b"*5\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n1\r\n$5\r\nbench\r\n$200\r\n%s\r\n" % (digest, b"x" * 200)
        return self

    def close(self) -> None:
        """Disconnect."""
        self.writer.close()

    async def all(self) -> int:
        """Nanoseconds of one POST, three PINGs and one EVALSHA, after as long a quiet. Keeps those of the POST, too."""
        await asyncio.sleep(QUIET_S)
        began_ns = time.perf_counter_ns()
        await self.empty.post(b"x" * 200, "p1", "/bench/w1")
        self.posts.append(time.perf_counter_ns() - began_ns)
        for _ in range(PINGS):
            await self.site.bus.client.flush()
        self.writer.write(self.evalsha)
        answer = await self.reader.readline()
        taken_ns = time.perf_counter_ns() - began_ns
        if not answer.startswith(b":"):
            raise NotMeasured(f"the store answers {answer!r}")
        return taken_ns


class Work:
    """Bursts, and the CPU time of one event of them beside that of one request that does nothing."""

    def __init__(self, chain: Chain, site: Site) -> None:
        self.chain = chain
        self.site = site
        self.rates, self.cpu, self.empty_cpu = Series(), Series(), Series()

    async def round(self) -> None:
        """All agents change at once, and as many empty requests."""
        before_ns, count = cpu_ns(self.site.pids), len(self.chain.agents)
        self.rates.rounds.append([await self.chain.flip()])
        self.cpu.rounds.append([(cpu_ns(self.site.pids) - before_ns) / count])
        before_ns = cpu_ns((self.site.empty_pid,))
        async with senders(self.site.empty_port, self.site.credential) as over:
            await burst(over, [flipped(agent, self.chain.state, 0) for agent in self.chain.agents])
        self.empty_cpu.rounds.append([(cpu_ns((self.site.empty_pid,)) - before_ns) / count])

    def row(self) -> Row:
        """CPU time of one event."""
        what = "Python CPU per event, hook to list"
        return Row("cpu-per-event", what, self.cpu, "CPU of one bare ASGI POST", self.empty_cpu, 6, 3.7)


async def measure(site: Site, effort: Effort) -> list[Row]:
    """The rows on hooks of an installed Tocsin."""
    worktrees, each, warm_up = effort.of(WORKTREES), effort.of(EACH), effort.of(WARM_UP)
    ingest, empty = Http(site.ingest_port, site.credential), Http(site.empty_port, site.credential)
    chain, hops = Chain(ingest, await lists_of(site.bus), worktrees), await Hops(empty, site).open()
    work = Work(chain, site)
    await know_worktrees(site.bus, worktrees)
    await chain.fill()
    for connection in (ingest, empty):
        await connection.open()
    found = await in_turn({"chain": chain.prompt, "hops": hops.all}, each, warm_up, effort.rounds)
    for _ in range(effort.rounds):
        await work.round()
    for one in (ingest, empty, hops):
        one.close()
    return [
        *latencies(found, chain.answers[warm_up:], hops.posts[warm_up:], effort.rounds, worktrees),
        Row("events", f"events a second, hook to list, {worktrees:,} worktrees", work.rates, "", None, unit=Unit.RATE, more=True),
        work.row(),
    ]


def latencies(found: dict[str, Series], answers: list[float], posts: list[float], rounds: int, worktrees: int) -> list[Row]:
    """The rows on one event at a time. `found` has `chain` and `hops`."""
    return [
        Row(
            "hook-to-list", f"hook POST to worktree.sorted delivered, {worktrees:,} worktrees",
            found["chain"], "POST + 3 PING + EVALSHA, bare", found["hops"], 3.2, 2.4,
        ),
        Row(
            "hook-answer", "hook POST, answered after the synced ack",
            Series.of(answers, rounds), "POST to an empty ASGI route", Series.of(posts, rounds), 8, 5,
        ),
    ]  # fmt: skip
