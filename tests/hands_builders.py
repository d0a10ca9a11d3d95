"""A host with hands, on a tmux server, repositories and a bus of the test's own; orders for it, and the facts that it says."""

import os
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from support import Deadline, running
from tocsin.bus.nats_bus import connect
from tocsin.contract.hosting import HostCommand, HostFact, HostOrder, ReleaseTerminal, RemoveWorktree, Saw, StartAgent, StopAgent
from tocsin.contract.run import Launch, Placement, Where
from tocsin.contract.subjects import HOST_CMD, HOST_FACT
from tocsin.pane_host.__main__ import build
from tocsin.pane_host.hands.service import Hands
from tocsin.pane_host.service import PaneHost
from tocsin.pane_host.settings import PaneHostSettings

HOST = "h"
SERVER = "hands"
DISPATCH = "r1.T1.1"


def git(folder: Path | str, *words: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=Dev", "-c", "user.email=dev@example.invalid", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def a_repository(folder: Path) -> Path:
    """A repository with one commit on main."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "app.py").write_text("print('hello')\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    return folder.resolve()


def a_script(*lines: str) -> tuple[str, ...]:
    """A scripted agent."""
    return ("/bin/sh", "-c", "\n".join(lines))


STAYS = a_script("echo ready", "exec sleep 300")
"""An agent that starts and stays."""


def an_order(order: HostOrder, step: str = "start", dispatch: str = DISPATCH, **fields: Any) -> HostCommand:
    defaults: dict[str, Any] = {"host": HOST, "dispatch": dispatch, "fence": 1, "step": step, "at_ms": fields.pop("at_ms", 0)}
    return HostCommand(order=order, **(defaults | fields))


def a_start(
    path: Path | str | None, command: tuple[str, ...] = STAYS, *, where: Where = Where.EXISTING, brief: str = "Do it.", **fields: Any
) -> StartAgent:
    """Start the agent `generic`; what does not belong to the launch belongs to the placement."""
    launch = {name: fields.pop(name) for name in ("agent", "pane", "terminal", "model") if name in fields}
    placement = Placement(where=where, path=None if path is None else str(path), **fields)
    agent = launch.pop("agent", "generic")
    return StartAgent(
        run="r1", task="T1", brief=brief, launch=Launch(agent=agent, host=HOST, placement=placement, command=command, **launch)
    )


def a_child(repository: Path, branch: str = "feat/login", **fields: Any) -> StartAgent:
    """Start it in a new worktree."""
    return a_start(repository, where=Where.NEW_CHILD, branch=branch, **fields)


class Host:
    """A host with hands that runs beside the test. Facts are read from the bus, in the order in which they were said."""

    def __init__(self, bus: Any, eyes: PaneHost, hands: Hands) -> None:
        self.bus = bus
        self.eyes = eyes
        self.hands = hands
        self.facts: list[HostFact] = []

    async def order(self, order: HostOrder, step: str = "start", dispatch: str = DISPATCH, **fields: Any) -> HostCommand:
        fields.setdefault("at_ms", self.eyes.clock.now_ms())
        command = an_order(order, step, dispatch, **fields)
        await self.bus.say(HOST_CMD, command)
        return command

    async def saw(self, saw: Saw, dispatch: str = DISPATCH, step: str | None = None, seconds: float = 15) -> HostFact:
        """The first fact of that kind, once it is said."""
        async for _ in Deadline(
            seconds, f"{saw} of {dispatch}; so far {[(fact.saw.value, fact.code, fact.detail[:200]) for fact in self.facts]}"
        ):
            for fact in self.facts:
                if fact.saw is saw and fact.dispatch == dispatch and step in (None, fact.step):
                    return fact
        raise AssertionError

    def all(self, saw: Saw) -> list[HostFact]:
        return [fact for fact in self.facts if fact.saw is saw]

    def words(self, dispatch: str = DISPATCH) -> list[str]:
        return [fact.saw.value for fact in self.facts if fact.dispatch == dispatch]

    async def started(self, order: StartAgent, dispatch: str = DISPATCH) -> HostFact:
        """Start an agent; the fact that tells its process."""
        await self.order(order, dispatch=dispatch)
        return await self.saw(Saw.AGENT_STARTED, dispatch)

    async def released(self, dispatch: str = DISPATCH, step: str = "release-1") -> HostFact:
        made = await self.saw(Saw.TERMINAL_MADE, dispatch)
        await self.order(ReleaseTerminal(pane=made.pane, process=made.process), step, dispatch)
        return await self.saw(Saw.TERMINAL_CLOSED, dispatch, step)

    async def stopped(self, dispatch: str = DISPATCH, step: str = "stop-1") -> None:
        await self.order(StopAgent(), step, dispatch)

    async def removal(self, path: str, dispatch: str = DISPATCH, step: str = "remove-1", branch: str | None = None) -> HostFact:
        """What came of removing a worktree."""
        await self.order(RemoveWorktree(path=path, branch=branch), step, dispatch)
        async for _ in Deadline(15, f"an answer about {path}; so far {self.words(dispatch)}"):
            for fact in self.facts:
                if fact.step == step and fact.dispatch == dispatch and fact.saw in (Saw.WORKTREE_TRASHED, Saw.WORKTREE_KEPT, Saw.REFUSED):
                    return fact
        raise AssertionError

    async def _read(self) -> None:
        async with self.bus.read(HOST_FACT, HOST, after=0) as reading:
            async for batch in reading:
                self.facts += [heard.body for heard in batch]


def built(bus: Any, state: Path, **settings: Any) -> PaneHost:
    state.mkdir(exist_ok=True)
    return build(bus, PaneHostSettings(host=HOST, tmux_server=SERVER, **settings), state.resolve(), state.parent)


@asynccontextmanager
async def a_host(bus: Any, state: Path, **settings: Any) -> AsyncIterator[Host]:
    """A host at work, on a connection of its own, until the test leaves the block."""
    async with connect(bus.client.connected_url.geturl(), name="pane-host") as own:
        eyes = built(own, state, **settings)
        host = Host(bus, eyes, eyes.hands)
        async with running(host._read()), running(eyes.run()):
            yield host


def left_processes(mark: str) -> list[int]:
    """Processes whose environment holds `mark` as a value."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if f"={mark}".encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def ends(pid: int) -> bool:
    """True when no process of that number runs any more (a zombie has ended)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


async def until(condition: Any, what: str, seconds: float = 10) -> None:
    async for _ in Deadline(seconds, what):
        if condition():
            return


COMPOSER = Path(__file__).parent / "scripted_composer.py"
PYTHON = os.path.realpath(sys.executable)


def a_composer(*words: str) -> str:
    """A command line whose process calls itself `claude` and has its composer."""
    line = " ".join(map(shlex.quote, [PYTHON, str(COMPOSER), *words]))
    return f"exec bash -c {shlex.quote(f'exec -a claude {line}')}"
