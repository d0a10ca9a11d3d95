"""`tocsin custody` and `tocsin audit` as people meet them: a real accountant, real hands, tmux, git and processes."""

import contextlib
import json
import os
import signal
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from accountant_builders import World, added, moved, requested, settled
from hands_builders import DISPATCH, HOST, a_child, a_host, a_repository, a_script, ends, git, left_processes, until
from loop_cli_builders import Command
from support import Deadline
from tocsin.contract.custody import CustodyState
from tocsin.contract.hosting import Saw
from tocsin.contract.run import DispatchState, TaskState

S = CustodyState


class Office:
    """One machine with hands, an accountant, and the command."""

    def __init__(self, world, host, command):
        self.world = world
        self.host = host
        self.command = command

    async def starts(self, order):
        """An attempt is requested and started; returns what its host has said of its agent."""
        await self.world.run_says(added("T1"), moved(TaskState.READY, "T1"), requested(DISPATCH, "T1"))
        started = await self.host.started(order)
        await self.world.becomes(S.OWNED, DISPATCH)
        return started

    async def gives_up(self):
        """Its Dispatch is abandoned: its agent is left as it is, and somebody decides."""
        await self.world.run_says(settled(DISPATCH, DispatchState.ABANDONED))
        async for _ in Deadline(10, "it is settled"):
            if (await self.world.row(DISPATCH)).outcome:
                return

    async def audit(self):
        """Exit code, and the kinds of what was found with what it is about."""
        code, out, err = await self.command.run("audit", "--json")
        assert code in (0, 1), err
        return code, [(one["kind"], one["what"]) for one in json.loads(out)["mismatches"]]

    async def custody(self, verb, *words):
        code, out, err = await self.command.run("custody", verb, DISPATCH, *words, "--json")
        return code, json.loads(out or err)


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


@pytest.fixture
async def office(nats_server, bus, store, server, state):
    world = World(nats_server.url, bus, store)
    async with a_host(bus, state) as host, world.accountant():
        yield Office(world, host, Command(state, nats_server.url, TMUX_TMPDIR=str(server.folder), TOCSIN_HOST=HOST))


@asynccontextmanager
async def shown(office, *words):
    yield (await office.command.run(*words))[1]


async def test_h01_a_worker_is_released_and_its_worktree_goes_only_when_nothing_is_lost_by_it_and_comes_back(office, tmp_path):
    repository = a_repository(tmp_path / "app")
    started = await office.starts(a_child(repository))
    path = Path((await office.world.row(DISPATCH)).path)
    assert await office.audit() == (0, [])
    await office.gives_up()
    assert await office.audit() == (1, [("obligation", DISPATCH)])
    async with shown(office, "custody", "list") as text:
        assert f"tocsin custody release {DISPATCH}" in text

    for number in range(17):
        (tmp_path / "app-worktrees" / "feat~login" / f"new{number}.py").write_text("")
    code, told = await office.custody("release")
    assert code == 0
    assert (told["row"]["state"], told["row"]["worktree"]) == ("released", "kept")
    assert "17 files not committed" in told["row"]["worktree_why"]
    assert ends(started.process.pid)
    assert is_folder(path)
    assert git(repository, "branch", "--list", "feat/login")
    assert await office.audit() == (0, [])

    git(path, "clean", "-fdq")
    code, told = await office.custody("release")
    assert (code, told["row"]["worktree"]) == (0, "trashed")
    assert not is_folder(path)
    assert await office.audit() == (0, [])
    code, told = await office.custody("undo")
    assert (code, told["row"]["worktree"], is_folder(path)) == (0, "restored", True)
    async with shown(office, "custody", "show", DISPATCH) as text:
        assert "17 files not committed" in text
        assert "worktree restored" in text


async def test_h06_what_an_agent_has_left_behind_is_listed_with_its_age_and_ended_by_its_release(office, tmp_path):
    mine = a_script("setsid sleep 301 &", "sleep 0.1; echo ready", "exec sleep 302")
    started = await office.starts(a_child(a_repository(tmp_path / "app"), command=mine))
    await until(helpers, "its helper has started")
    left = helpers()
    assert len(left) == 1
    runner = (await office.world.row(DISPATCH)).process
    for pid in (runner.pid, started.process.pid):
        os.kill(pid, signal.SIGKILL)
    await until(lambda: ends(started.process.pid), "the agent is gone")
    code, out, _ = await office.command.run("audit")
    assert code == 1
    assert f"sleep {left[0]}" in out
    assert "left_behind" in out
    await office.gives_up()
    code, told = await office.custody("release")
    assert (code, told["row"]["state"]) == (0, "released")
    assert "1 ended" in told["row"]["proof"]
    assert ends(left[0])


def helpers():
    """Processes that the scripted agent has started beside itself."""
    found = []
    for pid in left_processes(DISPATCH):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sleep\x00301"):
                found.append(pid)
    return found


def is_folder(path):
    return path.is_dir()


async def test_h04_what_a_person_has_typed_into_is_closed_by_that_person_alone(office, server, tmp_path):
    started = await office.starts(a_child(a_repository(tmp_path / "app"), command=a_script("exec cat")))
    terminal = server.attach()
    async for _ in Deadline(15, "the key is told"):
        os.write(terminal, b"x")
        if office.host.all(Saw.HUMAN_KEY):
            break
    await office.world.becomes(S.TAKEN_OVER, DISPATCH)
    await office.gives_up()
    code, told = await office.custody("release")
    assert (code, told["code"]) == (3, "taken_over")
    assert not ends(started.process.pid)
    assert await office.audit() == (0, [])
    # Its person lets it go. A key within the last second could be a later one: then it stays theirs, and they say so again.
    async for _ in Deadline(15, "it is released"):
        code, told = await office.custody("release", "--person", "--keep-worktree")
        if code == 0:
            break
    assert (told["row"]["state"], told["row"]["worktree"]) == ("released", "kept")
    assert ends(started.process.pid)


async def test_terminals_and_processes_of_which_no_ledger_knows_are_named(office, server, state):
    mine = f"TOCSIN_DISPATCH=r9.x.1 TOCSIN_STATE={state} exec sleep 300"
    number = server.open(mine)
    server.open("TOCSIN_DISPATCH=r9.y.1 TOCSIN_STATE=/another exec sleep 300")
    async for _ in Deadline(10, "the audit names it"):
        code, found = await office.audit()
        if found:
            break
    assert (code, found) == (1, [("unowned_terminal", server.name_of(number))])


async def test_nobody_there_is_no_empty_list(state):
    state.mkdir()
    code, _, err = Command(state).wait("audit", "--timeout", "1")
    assert code == 4
    assert "next:" in err
