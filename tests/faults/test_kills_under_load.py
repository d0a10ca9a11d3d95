"""Everything is killed in turn while events stream in. No acknowledged event may be lost, come out of order or leave a wrong list.

`TOCSIN_FAULT_SECONDS` sets how long the stream lasts (default 12; 60 is the figure that is told of).
"""

import asyncio
import itertools
import json
import os
import random
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import redis.asyncio as redis

from support import Deadline, Service
from tocsin.agents.registry import AGENTS
from tocsin.bus.nats_bus import NatsBus, connect
from tocsin.cli.recordings import keyed
from tocsin.contract.ids import DEFAULT_WORKSPACE, HostId, PaneId
from tocsin.contract.messages import PaneStatus, WorktreesSorted
from tocsin.contract.subjects import PANE_STATUS, WORKTREE_KNOWN, WORKTREE_SORTED
from tocsin.hook_ingest.core.payload import Envelope, parse, report
from tocsin.runtime import instance
from tocsin.runtime.clock import SystemClock
from tocsin.sorter.core.board import Board as ListBoard
from tocsin.status_store.core.board import Board as PaneBoard
from tocsin.status_store.core.pane import Moment

SECONDS = float(os.environ.get("TOCSIN_FAULT_SECONDS", "12"))
PANES = 20
EVENTS_PER_SECOND = 200
HOST = "load"
CLOCK = SystemClock()


@dataclass
class Agent:
    """One scripted agent: turns with a tool call and now and then a permission, each event sent until it is acknowledged."""

    name: str
    cwd: str
    acknowledged: list[tuple[dict, int]] = field(default_factory=list)

    def script(self):
        """Events of Claude Code, turn after turn; a final one leaves the pane in a state that differs between panes."""
        seed = random.Random(self.name)
        for turn in itertools.count(1):
            prompt_id = f"{self.name}-t{turn}"
            base = {"session_id": f"s-{self.name}", "cwd": self.cwd, "prompt_id": prompt_id}
            call = {"tool_name": "Bash", "tool_input": {"command": f"make {turn}"}, "tool_use_id": f"{prompt_id}-c"}
            yield {**base, "hook_event_name": "UserPromptSubmit", "prompt": f"turn {turn}"}
            yield {**base, **call, "hook_event_name": "PreToolUse"}
            if seed.random() < 0.4:
                yield {**base, "hook_event_name": "PermissionRequest", "tool_name": "Bash", "tool_input": call["tool_input"]}
            yield {**base, **call, "hook_event_name": "PostToolUse"}
            yield {**base, "hook_event_name": "Stop", "background_tasks": []}


class Load:
    """The agents, and the hook command's part: what nobody acknowledges is sent again, as the spool does."""

    def __init__(self, port_file: Path, credential: str, agents: list[Agent]) -> None:
        self.port_file = port_file
        self.credential = credential
        self.agents = agents
        self.sent = 0
        self.retried = 0
        self.stopping = False

    async def run(self) -> None:
        async with httpx.AsyncClient(timeout=1.0) as client, asyncio.TaskGroup() as group:
            for agent in self.agents:
                group.create_task(self.one(client, agent))

    async def one(self, client: httpx.AsyncClient, agent: Agent) -> None:
        pause_s = PANES / EVENTS_PER_SECOND
        for payload in agent.script():
            if self.stopping:
                return
            sent_ms = CLOCK.now_ms()
            while not await self.post(client, agent, payload, sent_ms):
                self.retried += 1
                await asyncio.sleep(0.05)
            agent.acknowledged.append((payload, sent_ms))
            self.sent += 1
            await asyncio.sleep(pause_s)

    async def post(self, client: httpx.AsyncClient, agent: Agent, payload: dict, sent_ms: int) -> bool:
        try:
            port = int(self.port_file.read_text())
            answer = await client.post(
                f"http://127.0.0.1:{port}/hook/claude",
                content=json.dumps(payload),
                headers={
                    "Authorization": f"Bearer {self.credential}",
                    "Content-Type": "application/json",
                    "X-Tocsin-Host": HOST,
                    "X-Tocsin-Pane": agent.name,
                    "X-Tocsin-Cwd": agent.cwd,
                    "X-Tocsin-Sent": str(sent_ms),
                    "X-Tocsin-Attended": "1",
                },
            )
        except (httpx.HTTPError, OSError, ValueError):
            return False
        assert answer.status_code in (204, 503), answer.text
        return answer.status_code == 204


def expected(agents: list[Agent]) -> PaneBoard:
    """What the acknowledged events make of each pane, decided in one go and in order."""
    board = PaneBoard()
    seq = 0
    for agent in agents:
        for payload, sent_ms in agent.acknowledged:
            envelope = Envelope(host=HostId(HOST), cwd=agent.cwd, sent_ms=sent_ms, tocsin_pane=agent.name, attended=True)
            event = report(AGENTS["claude"], None, parse(json.dumps(payload).encode()), envelope, sent_ms, keyed)
            seq += 1
            board.hear(event, seq, Moment(at_ms=sent_ms, awake_ms=sent_ms))
    return board


async def statuses(bus: NatsBus) -> dict[str, PaneStatus]:
    found: dict[str, PaneStatus] = {}
    async with bus.follow(PANE_STATUS, HOST) as values:
        async for batch in values:
            if not batch:
                return found
            found |= {heard.body.pane: heard.body for heard in batch}
    return found


async def last_list(bus: NatsBus) -> WorktreesSorted | None:
    last = await bus.last(WORKTREE_SORTED, DEFAULT_WORKSPACE)
    return last.body if last is not None else None


async def full_sort(bus: NatsBus) -> list[str]:
    """The order that a sorter would make that has just read everything."""
    board = ListBoard(DEFAULT_WORKSPACE, CLOCK.awake_ms())
    async with bus.follow(WORKTREE_KNOWN) as known:
        async for batch in known:
            if not batch:
                break
            for heard in batch:
                board.hear_worktree(heard.body, CLOCK.now_ms(), CLOCK.awake_ms())
    async with bus.follow(PANE_STATUS) as values:
        async for batch in values:
            if not batch:
                break
            for heard in batch:
                board.hear_status(heard.body, CLOCK.now_ms(), CLOCK.awake_ms())
    board.refresh(CLOCK.now_ms(), CLOCK.awake_ms())
    return list(board.order())


async def test_nothing_acknowledged_is_lost_and_the_list_is_right_whatever_is_killed(nats_server, valkey_server, tmp_path):
    state = tmp_path / "i"
    instance.create(state)
    credential = instance.credential(state, instance.HOOK_CREDENTIAL)
    environment = {
        "NATS_URL": nats_server.url,
        "REDIS_URL": valkey_server.url,
        "TOCSIN_HOST": HOST,
        "TOCSIN_INGEST_PORT": "0",
        "TOCSIN_INGEST_PORT_FILE": str(state / "port"),
        "TMUX_TMPDIR": str(tmp_path),
    }
    services = {name: Service(f"tocsin.{name}", state, **environment) for name in ("hook_ingest", "status_store", "sorter", "pane_host")}
    agents = [Agent(f"p{n:02}", f"/load/w{n // 2:02}") for n in range(PANES)]
    load = Load(state / "port", credential, agents)

    def again(name: str) -> Callable[[], None]:
        def kill_and_start() -> None:
            services[name].end(signal.SIGKILL)
            services[name].start()

        return kill_and_start

    def nats() -> None:
        nats_server.end(signal.SIGKILL)
        nats_server.start()

    def valkey() -> None:
        valkey_server.end(signal.SIGKILL)
        valkey_server.start()

    async def wipe() -> None:
        client = redis.Redis.from_url(valkey_server.url)
        await client.flushall()
        await client.aclose()

    faults = [*map(again, services), nats, valkey, wipe]
    try:
        for service in services.values():
            service.start()
        streaming = asyncio.create_task(load.run())
        async for _ in Deadline(20, "the stream runs"):
            if load.sent > 100:
                break
        pause_s = SECONDS / (len(faults) + 1)
        for fault in faults:
            await asyncio.sleep(pause_s)
            outcome = await asyncio.to_thread(fault) if not asyncio.iscoroutinefunction(fault) else await fault()
            assert outcome is None
        await asyncio.sleep(pause_s)
        load.stopping = True
        await asyncio.wait_for(streaming, 30)
        board = expected(agents)
        async with connect(nats_server.url, name="test") as bus:
            wanted = {pane: (found.turn, found.state, found.prompts_opened) for (_, pane), found in board.panes.items()}
            async for _ in Deadline(30, "every last status is published"):
                now = await statuses(bus)
                if {pane: (one.turn, one.state, one.prompts_opened) for pane, one in now.items()} == wanted:
                    break
            for agent in agents:
                told, held = now[PaneId(agent.name)], board.panes[HostId(HOST), PaneId(agent.name)]
                assert [(past.state, past.interrupted) for past in told.history] == [
                    (past.state, past.interrupted) for past in held.history
                ], f"{agent.name}: no event lost, none out of order"
                assert [turn.prompt is not None for turn in told.turns] == [True] * len(told.turns)
            async for _ in Deadline(30, "the published order is the full sort's"):
                published = await last_list(bus)
                if published is not None and [row.id for row in published.worktrees] == await full_sort(bus):
                    break
        print(f"\n{load.sent} events acknowledged, {load.retried} attempts had to be repeated, {len(faults)} faults")
    finally:
        load.stopping = True
        for service in services.values():
            if service.process is not None:
                service.end(signal.SIGKILL)
