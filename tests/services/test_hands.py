"""The hands as a whole: orders in over a real bus, facts out, on a real tmux, git and processes."""

import asyncio
import json
import os
import shutil
import signal
import stat
import subprocess
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from builders import a_status
from hands_builders import (
    COMPOSER,
    DISPATCH,
    HOST,
    PYTHON,
    SERVER,
    STAYS,
    a_child,
    a_composer,
    a_host,
    a_repository,
    a_script,
    a_start,
    ends,
    git,
    left_processes,
    until,
)
from support import Deadline
from tmux_server import TmuxServer
from tocsin.contract.hosting import InterruptAgent, ReleaseTerminal, RestoreWorktree, Saw, StopAgent, TypePointer
from tocsin.contract.messages import Process, State
from tocsin.contract.run import Receipt, Refused, ReportWork, RunCommand, Where
from tocsin.contract.subjects import MAIL_CMD, PANE_SEEN, PANE_STATUS, RUN_CMD
from tocsin.pane_host.hands import cleaning, ending, tree, watching
from tocsin.pane_host.hands.checkouts import Checkouts
from tocsin.pane_host.hands.made import PANE_FOLDER


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


@pytest.fixture
def repository(tmp_path):
    return a_repository(tmp_path / "app")


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A folder of programs that is on PATH; `claude` in it has a composer."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "claude"
    program.write_text(f'#!/bin/bash\nexec -a claude {PYTHON} {COMPOSER} "$COMPOSER_LOG"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def there(path):
    return Path(path).exists()


# -------------------------------------------------------------------- start


async def test_an_agent_is_started_in_a_new_worktree_and_each_step_is_told(bus, server, state, repository):
    async with a_host(bus, state) as host:
        started = await host.started(a_child(repository))
        assert host.words() == ["worktree_ready", "terminal_made", "agent_started"]
        ready, made, _ = host.facts
        assert (ready.made, ready.branch, ready.path) == (True, "feat/login", f"{repository}-worktrees/feat~login")
        assert git(ready.path, "branch", "--show-current") == "feat/login"
        assert made.pane == f"{SERVER}.{server.pid}.0"
        assert {fact.run for fact in host.facts} == {"r1"}
        assert started.process.pid != made.process.pid
        assert Path(f"/proc/{started.process.pid}/cwd").samefile(ready.path)  # noqa: ASYNC240


async def test_the_agent_finds_who_and_where_it_is_and_its_brief(bus, server, state, tmp_path):
    script = a_script(
        'env > "$TOCSIN_FOLDER/env"',
        'cp "$TOCSIN_BRIEF" "$TOCSIN_FOLDER/read"',
        'tocsin --help > /dev/null && touch "$TOCSIN_FOLDER/found"',
        "exec sleep 300",
    )
    brief = "First line.\n'quotes' \"double\" $HOME `x` — ü\nlast"
    async with a_host(bus, state) as host:
        started = await host.started(a_start(tmp_path, script, brief=brief))
        folder = next((state / "hands" / "terminals").glob(f"*/{PANE_FOLDER}"))
        await until(lambda: (folder / "found").exists(), "the command is on its PATH")
        environment = dict(line.split("=", 1) for line in (folder / "env").read_text().splitlines() if "=" in line)
        assert (folder / "read").read_text() == brief
        assert environment["TOCSIN_PANE"] == started.pane
        assert (environment["TOCSIN_DISPATCH"], environment["TOCSIN_RUN"], environment["TOCSIN_STATE"]) == (
            DISPATCH,
            "r1",
            str(state.resolve()),
        )
        assert environment["TOCSIN_FOLDER"] == str(folder)
        assert not any(name in environment for name in ("NATS_URL", "REDIS_URL", "CLAUDECODE"))
        for private in (folder, folder / "requests", folder.parent):
            assert stat.S_IMODE(private.stat().st_mode) == 0o700


async def test_a_terminal_is_on_record_before_its_agent_boots(bus, server, state, tmp_path, monkeypatch):
    async with a_host(bus, state) as host:
        say, held = host.eyes.bus.say, asyncio.Event()

        async def slow(subject, body, **options):
            if getattr(body, "saw", None) is Saw.TERMINAL_MADE:
                await held.wait()
            return await say(subject, body, **options)

        monkeypatch.setattr(host.eyes.bus, "say", slow)
        await host.order(a_start(tmp_path, a_script('touch "$TOCSIN_FOLDER/booted"', "exec sleep 300")))
        await until(lambda: list((state / "hands" / "terminals").glob("*/runner.json")), "the runner waits")
        terminal = next((state / "hands" / "terminals").iterdir())
        assert not (terminal / "agent.json").exists()
        held.set()
        await host.saw(Saw.AGENT_STARTED)
        await until((terminal / PANE_FOLDER / "booted").exists, "the agent boots")


async def test_a_plain_folder_is_a_worktree_without_git(bus, server, state, tmp_path):
    async with a_host(bus, state) as host:
        await host.started(a_start(tmp_path))
        ready = await host.saw(Saw.WORKTREE_READY)
        assert (ready.made, ready.branch, ready.path) == (False, None, str(tmp_path.resolve()))


async def test_an_existing_worktree_is_told_with_its_branch_and_not_as_made(bus, server, state, repository):
    async with a_host(bus, state) as host:
        await host.started(a_start(repository))
        ready = await host.saw(Saw.WORKTREE_READY)
        assert (ready.made, ready.branch) == (False, "main")


async def test_a_child_branches_off_where_it_is_asked_and_a_top_level_one_off_the_main_checkout(bus, server, state, repository):
    git(repository, "worktree", "add", "-q", "-b", "side", str(repository.parent / "side"))
    (repository.parent / "side" / "more").write_text("x")
    git(repository.parent / "side", "add", "-A")
    git(repository.parent / "side", "commit", "-qm", "more")
    async with a_host(bus, state) as host:
        side = repository.parent / "side"
        await host.started(a_child(side, "a"), "r1.A.1")
        await host.started(a_start(side, where=Where.NEW_TOP_LEVEL, branch="b"), "r1.B.1")
        child, top = await host.saw(Saw.WORKTREE_READY, "r1.A.1"), await host.saw(Saw.WORKTREE_READY, "r1.B.1")
        assert git(child.path, "rev-parse", "HEAD") == git(side, "rev-parse", "HEAD")
        assert git(top.path, "rev-parse", "HEAD") == git(repository, "rev-parse", "HEAD")


async def test_changes_that_will_not_be_in_a_new_worktree_are_told(bus, server, state, repository):
    (repository / "app.py").write_text("print('changed')\n")
    async with a_host(bus, state) as host:
        await host.started(a_child(repository))
        assert "uncommitted" in (await host.saw(Saw.WORKTREE_READY)).detail


async def test_new_worktrees_go_where_the_settings_say(bus, server, state, repository, tmp_path):
    async with a_host(bus, state, worktrees=str(tmp_path / "trees")) as host:
        started = await host.started(a_child(repository))
        assert Path(started.path).parent.parent == (tmp_path / "trees").resolve()


# ----------------------------------------------------------------- refusals


def without_commits(repository, tmp_path):
    git(tmp_path, "init", "-q", str(tmp_path / "empty"))
    return a_child(tmp_path / "empty")


def bare(repository, tmp_path):
    git(tmp_path, "clone", "-q", "--bare", str(repository), str(tmp_path / "bare.git"))
    return a_child(tmp_path / "bare.git")


def no_repository(repository, tmp_path):
    (tmp_path / "plain").mkdir()
    return a_child(tmp_path / "plain")


def locked(repository, tmp_path):
    (repository / ".git" / "refs" / "heads" / "feat").mkdir()
    (repository / ".git" / "refs" / "heads" / "feat" / "login.lock").write_text("")
    return a_child(repository)


def branch_taken(repository, tmp_path):
    git(repository, "branch", "feat/login")
    return a_child(repository)


def branch_taken_in_another_case(repository, tmp_path):
    git(repository, "branch", "Feat/Login")
    return a_child(repository)


def folder_taken(repository, tmp_path):
    (tmp_path / "app-worktrees" / "Feat~Login").mkdir(parents=True)
    return a_child(repository)


def through_a_link_into_the_repository(repository, tmp_path):
    (tmp_path / "app-worktrees").symlink_to(repository)
    return a_child(repository)


REFUSALS = {
    "a repository without commits": (without_commits, "repository_unusable"),
    "a bare repository": (bare, "repository_unusable"),
    "a folder that is in no repository": (no_repository, "repository_unusable"),
    "a repository that is locked": (locked, "repository_unusable"),
    "a base that is not there": (lambda repository, _: a_child(repository, base="v9"), "base_unknown"),
    "a base that looks like an option": (lambda repository, _: a_child(repository, base="--all"), "base_unknown"),
    "a branch that is there": (branch_taken, "worktree_taken"),
    "a branch that is there in another case": (branch_taken_in_another_case, "worktree_taken"),
    "a folder that is there in another case": (folder_taken, "worktree_taken"),
    "a branch that climbs": (lambda repository, _: a_child(repository, "../x"), "bad_place"),
    "a branch that git does not take": (lambda repository, _: a_child(repository, "a..b"), "bad_place"),
    "no branch": (lambda repository, _: a_start(repository, where=Where.NEW_CHILD), "bad_place"),
    "no path": (lambda *_: a_start(None), "bad_place"),
    "a path that climbs": (lambda _, folder: a_start(f"{folder}/../etc"), "bad_place"),
    "a relative path": (lambda *_: a_start("app"), "bad_place"),
    "a path that is not there": (lambda _, folder: a_start(folder / "nowhere"), "bad_place"),
    "a file": (lambda repository, _: a_start(repository / "app.py"), "bad_place"),
    "the state folder": (lambda _, folder: a_start(folder / "state"), "bad_place"),
    "worktrees that would lie in the repository through a link": (through_a_link_into_the_repository, "bad_place"),
    "an agent that is not installed": (lambda repository, _: a_child(repository, command=("no-such-agent",)), "agent_missing"),
    "an agent without its command": (lambda repository, _: a_child(repository, command=()), "bad_request"),
    "an agent that nobody knows": (lambda repository, _: a_child(repository, agent="hal"), "unknown_agent"),
    "a setup that fails": (lambda repository, _: a_child(repository, setup="echo made > made; echo no luck; exit 3"), "setup_failed"),
}


def snapshot(folder):
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if "/state" not in str(path) and "/nats" not in str(path) and ".git/" not in str(path)
    )


@pytest.mark.parametrize("what", REFUSALS)
async def test_what_cannot_be_started_is_refused_and_leaves_nothing_half_made(bus, server, state, repository, tmp_path, what):
    make, code = REFUSALS[what]
    state.mkdir()
    order = make(repository, tmp_path)
    branches, before = git(repository, "branch", "--list"), snapshot(tmp_path)
    async with a_host(bus, state) as host:
        await host.order(order)
        refused = await host.saw(Saw.REFUSED)
        assert refused.code == code
        assert refused.detail
        assert refused.next
        assert snapshot(tmp_path) == before
        assert git(repository, "branch", "--list") == branches
        assert len(git(repository, "worktree", "list").splitlines()) == 1
        assert list((state / "hands" / "terminals").iterdir()) == []
        assert not server.runs()


async def test_without_tmux_a_terminal_is_refused_before_anything_is_made(bus, server, state, repository, tmp_path, monkeypatch):
    folder = tmp_path / "few"
    folder.mkdir()
    for name in ("git", "sh", "env"):
        (folder / name).symlink_to(shutil.which(name))
    monkeypatch.setenv("PATH", str(folder))
    async with a_host(bus, state) as host:
        await host.order(a_child(repository))
        assert (await host.saw(Saw.REFUSED)).code == "tmux_missing"
        assert not there(f"{repository}-worktrees")


async def test_without_space_no_worktree_is_made(bus, server, state, repository):
    async with a_host(bus, state, space_mib_min=10**9) as host:
        await host.order(a_child(repository))
        assert (await host.saw(Saw.REFUSED)).code == "no_space"


async def test_an_order_that_is_too_old_is_answered_so_and_not_done(bus, server, state, tmp_path):
    async with a_host(bus, state) as host:
        await host.order(a_start(tmp_path), expires_ms=1)
        await host.saw(Saw.EXPIRED)
        assert not server.runs()


# -------------------------------------------------------------------- setup


async def test_setup_is_waited_for_and_its_end_is_told_before_the_terminal_is_made(bus, server, state, repository):
    async with a_host(bus, state) as host:
        started = await host.started(a_child(repository, setup='echo "$TOCSIN_DISPATCH" > prepared'))
        assert host.words() == ["worktree_ready", "setup_running", "setup_ended", "terminal_made", "agent_started"]
        assert (Path(started.path) / "prepared").read_text().strip() == DISPATCH
        assert (await host.saw(Saw.SETUP_ENDED)).exit_code == 0


async def test_a_setup_that_nobody_waits_for_runs_beside_the_agent_and_its_end_is_told(bus, server, state, repository, tmp_path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    async with a_host(bus, state) as host:
        await host.started(a_child(repository, setup=f"read line < {gate}; exit 4", wait_for_setup=False))
        assert "setup_ended" not in host.words()
        await asyncio.to_thread(gate.write_text, "go\n")
        assert (await host.saw(Saw.SETUP_ENDED)).exit_code == 4
        assert "refused" not in host.words()


async def test_what_a_failed_setup_has_started_is_ended_with_it(bus, server, state, repository, tmp_path):
    note = tmp_path / "pid"
    async with a_host(bus, state) as host:
        await host.order(a_child(repository, setup=f"setsid sleep 300 & echo $! > {note}; exit 1"))
        refused = await host.saw(Saw.REFUSED)
        assert "ended with 1" in refused.detail
        await until(lambda: ends(int(note.read_text())), "its helper is gone")


async def test_a_setup_that_takes_too_long_has_failed(bus, server, state, repository):
    async with a_host(bus, state, setup_s_max=0.3) as host:
        await host.order(a_child(repository, setup="sleep 300"))
        refused = await host.saw(Saw.REFUSED)
        assert (refused.code, "longer than 0.3 s" in refused.detail) == ("setup_failed", True)


# ---------------------------------------------------------------------- end


async def test_the_end_of_an_agent_is_told_with_its_code_and_last_output(bus, server, state, tmp_path):
    async with a_host(bus, state) as host:
        started = await host.started(a_start(tmp_path, a_script("echo the last words", "exit 7")))
        ended = await host.saw(Saw.EXITED)
        assert (ended.exit_code, ended.process) == (7, started.process)
        assert "the last words" in ended.detail


async def test_an_agent_that_a_signal_ends_is_told_so(bus, server, state, tmp_path):
    async with a_host(bus, state) as host:
        started = await host.started(a_start(tmp_path))
        os.kill(started.process.pid, signal.SIGKILL)
        assert (await host.saw(Saw.EXITED)).exit_code == -signal.SIGKILL


async def test_the_terminal_of_an_ended_agent_stays_to_be_looked_at_until_it_is_released(bus, server, state, tmp_path):
    async with a_host(bus, state) as host:
        await host.started(a_start(tmp_path, a_script("echo something to read")))
        await host.saw(Saw.EXITED)
        assert "something to read" in server.tmux("capture-pane", "-p", "-t", "%0")
        await host.released()
        assert not server.runs()


async def test_a_release_keeps_the_output_and_proves_the_end(bus, server, state, tmp_path):
    async with a_host(bus, state) as host:
        started = await host.started(a_start(tmp_path, a_script("echo keep this", "exec sleep 300")))
        await until(lambda: "keep this" in server.tmux("capture-pane", "-p", "-t", "%0"), "it has spoken")
        await host.released()
        kept, ended = await host.saw(Saw.ARCHIVED), await host.saw(Saw.TREE_ENDED)
        archive = state / "hands" / "archive" / kept.detail.rpartition("/")[2]
        assert "keep this" in archive.read_text()
        assert stat.S_IMODE(archive.stat().st_mode) == 0o600
        assert ended.count == 1
        assert ends(started.process.pid)
        made = await host.saw(Saw.TERMINAL_MADE)
        assert ends(made.process.pid)
        assert (ended.pane, ended.process) == (made.pane, made.process)


async def test_a_stop_ends_the_agent_and_leaves_its_terminal(bus, server, state, tmp_path):
    async with a_host(bus, state) as host:
        started = await host.started(a_start(tmp_path))
        await host.stopped()
        await host.saw(Saw.TREE_ENDED)
        assert ends(started.process.pid)
        assert server.runs()
        await host.saw(Saw.EXITED)


async def test_a_stop_that_meets_an_exit_succeeds(bus, server, state, tmp_path):
    async with a_host(bus, state) as host:
        await host.started(a_start(tmp_path, a_script("exit 0")))
        await host.saw(Saw.EXITED)
        await host.stopped()
        await host.saw(Saw.ALREADY_ENDED)


async def test_an_agent_that_ignores_a_request_to_end_is_forced(bus, server, state, tmp_path, monkeypatch):
    monkeypatch.setattr(tree, "ASKED_S", 0.3)
    async with a_host(bus, state) as host:
        started = await host.started(a_start(tmp_path, a_script("trap '' TERM HUP", "while :; do sleep 1; done")))
        await host.released()
        assert ends(started.process.pid)


async def test_a_stop_for_what_was_never_started_says_that_nothing_of_it_is_here(bus, server, state):
    async with a_host(bus, state) as host:
        await host.stopped()
        await host.saw(Saw.ALREADY_ENDED)


async def test_a_start_that_comes_behind_its_stop_starts_nothing(bus, server, state, tmp_path):
    async with a_host(bus, state) as host:
        await host.stopped()
        await host.saw(Saw.ALREADY_ENDED)
        await host.order(a_start(tmp_path))
        assert (await host.saw(Saw.REFUSED)).code == "lifecycle_conflict"
        assert not server.runs()


async def test_a_stop_during_setup_takes_everything_back(bus, server, state, repository, tmp_path):
    note = tmp_path / "pid"
    async with a_host(bus, state) as host:
        await host.order(a_child(repository, setup=f"echo $$ > {note}; exec sleep 300"))
        await host.saw(Saw.SETUP_RUNNING)
        await until(lambda: note.exists() and note.read_text().strip(), "setup runs")
        await host.stopped()
        assert (await host.saw(Saw.REFUSED)).code == "lifecycle_conflict"
        await host.saw(Saw.ALREADY_ENDED)
        assert ends(int(note.read_text()))
        assert not there(f"{repository}-worktrees")
        assert git(repository, "branch", "--list", "feat/login") == ""


async def test_another_process_under_the_recorded_numbers_is_left_alone(bus, server, state, tmp_path):
    async with a_host(bus, state) as host:
        started = await host.started(a_start(tmp_path))
        made = await host.saw(Saw.TERMINAL_MADE)
        other = msgspec.structs.replace(made.process, started_ms=made.process.started_ms - 1)
        await host.order(ReleaseTerminal(pane=made.pane, process=other), "release-1")
        assert "another terminal" in (await host.saw(Saw.NOT_CONFIRMED)).detail
        assert not ends(started.process.pid)


async def test_a_terminal_that_tocsin_did_not_make_is_left_alone(bus, server, state):
    number = server.open("exec sleep 300")
    pane, pid = server.name_of(number), server.pane_pid(number)
    async with a_host(bus, state) as host:
        await until(lambda: pane in host.eyes.terminals.known, "it is seen")
        await host.order(StopAgent(pane=pane), "stop-1")
        assert "did not make" in (await host.saw(Saw.NOT_CONFIRMED)).detail
        assert not ends(pid)


async def test_an_agent_whose_record_is_lost_is_found_by_its_name_and_left_alone(bus, server, state, tmp_path):
    async with a_host(bus, state) as host:
        started = await host.started(a_start(tmp_path))
        host.hands.tools.cabinet.drop(next(iter(host.hands.tools.cabinet)))
        await host.stopped()
        assert "record is lost" in (await host.saw(Saw.NOT_CONFIRMED)).detail
        assert not ends(started.process.pid)


async def test_a_key_that_came_behind_the_order_to_release_is_the_persons(bus, server, state, tmp_path):
    async with a_host(bus, state) as host:
        started = await host.started(a_start(tmp_path))
        made = await host.saw(Saw.TERMINAL_MADE)
        keys = server.attach()
        for _ in Deadline(5, "the clock has passed the second of attaching"):
            os.write(keys, b"x")
            if (await host.hands.tools.screens.last_key_ms(server.socket, "%0")) is not None:
                break
        await host.order(ReleaseTerminal(pane=made.pane, process=made.process), "release-1", at_ms=made.at_ms)
        assert (await host.saw(Saw.REFUSED)).code == "taken_over"
        assert not ends(started.process.pid)


# --------------------------------------------------------- H02: release again


async def test_h02_a_release_is_confirmed_by_the_end_of_the_process_and_can_be_repeated_until_it_is_true(
    bus, server, state, tmp_path, monkeypatch
):
    monkeypatch.setattr(tree, "ASKED_S", 0.1)
    monkeypatch.setattr(tree, "FORCED_S", 0.1)
    real = tree.Trees._signal
    async with a_host(bus, state) as host:
        started = await host.started(a_start(tmp_path))
        made = await host.saw(Saw.TERMINAL_MADE)

        # The fault: whatever is sent, the process lives on.
        monkeypatch.setattr(tree.Trees, "_signal", lambda *_: None)
        for step in ("release-1", "release-2"):
            await host.order(ReleaseTerminal(pane=made.pane, process=made.process), step)
            unknown = await host.saw(Saw.NOT_CONFIRMED, step=step)
            assert str(started.process.pid) in unknown.detail
            assert not any(fact.saw is Saw.TERMINAL_CLOSED for fact in host.facts)

        monkeypatch.setattr(tree.Trees, "_signal", real)
        os.kill(started.process.pid, signal.SIGKILL)
        await host.saw(Saw.EXITED)
        await host.order(ReleaseTerminal(pane=made.pane, process=made.process), "release-3")
        await host.saw(Saw.TERMINAL_CLOSED, step="release-3")
        # Once more, from two sides at the same time: both get the same answer, and nothing is touched.
        for step in ("release-4", "release-5"):
            await host.order(ReleaseTerminal(pane=made.pane, process=made.process), step)
        for step in ("release-4", "release-5"):
            await host.saw(Saw.ALREADY_ENDED, step=step)
            await host.saw(Saw.TERMINAL_CLOSED, step=step)


async def test_h02_a_terminal_that_was_closed_by_hand_is_released_as_already_gone(bus, server, state, tmp_path):
    async with a_host(bus, state) as host:
        started = await host.started(a_start(tmp_path))
        server.tmux("kill-pane", "-t", "%0")
        await host.saw(Saw.EXITED)
        made = await host.saw(Saw.TERMINAL_MADE)
        await until(lambda: ends(started.process.pid) and ends(made.process.pid), "it is gone")
        await host.order(ReleaseTerminal(pane=made.pane, process=made.process), "release-1")
        await host.saw(Saw.ALREADY_ENDED)
        await host.saw(Saw.TERMINAL_CLOSED)


# -------------------------------------------------------------- H06: helpers

HELPERS = a_script(
    "setsid bash -c 'exec -a mcp-db sleep 300' &",
    "setsid bash -c 'exec -a dev-server sleep 300' &",
    "exec sleep 300",
)


def a_namesake():
    """A helper of the same name that belongs to somebody else."""
    return subprocess.Popen(["bash", "-c", "exec -a mcp-db sleep 300"])


def named(name):
    """Processes that call themselves so."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "cmdline").read_bytes().split(b"\0")[0] == name.encode() and not ends(int(entry.name)):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


async def test_h06_helpers_that_outlive_their_agent_are_ended_with_its_release_and_a_namesake_lives(bus, server, state, tmp_path):
    coordinators = a_namesake()
    try:
        async with a_host(bus, state) as host:
            started = await host.started(a_start(tmp_path, HELPERS))
            await until(lambda: len(named("mcp-db")) == 2 and named("dev-server"), "the helpers run")
            os.kill(started.process.pid, signal.SIGKILL)
            await host.saw(Saw.EXITED)
            assert len(named("mcp-db")) == 2
            await host.released()
            ended = await host.saw(Saw.TREE_ENDED)
            assert ended.count == 2
            assert named("mcp-db") == [coordinators.pid]
            assert named("dev-server") == []
    finally:
        coordinators.kill()
        coordinators.wait()


async def test_h06_leftovers_of_an_agent_that_died_while_nobody_watched_are_listed_and_ended_by_their_mark(bus, server, state, tmp_path):
    coordinators = a_namesake()
    try:
        async with a_host(bus, state) as host:
            started = await host.started(a_start(tmp_path, HELPERS))
            made = await host.saw(Saw.TERMINAL_MADE)
            await until(lambda: len(named("mcp-db")) == 2, "the helpers run")
        # Nobody watches: runner and agent die without a word, their helpers get another parent.
        for process in (made.process, started.process):
            os.kill(process.pid, signal.SIGKILL)
        async with a_host(bus, state) as host:
            lost = await host.saw(Saw.LOST)
            assert lost.count == 2
            assert "mcp-db" in lost.detail or "sleep" in lost.detail
            assert " s old" in lost.detail
            assert len(named("mcp-db")) == 2
            await host.order(ReleaseTerminal(pane=made.pane, process=made.process), "release-1")
            assert (await host.saw(Saw.TREE_ENDED)).count == 2
            assert named("mcp-db") == [coordinators.pid]
    finally:
        coordinators.kill()
        coordinators.wait()


# --------------------------------------------------------------- headless


async def test_a_headless_agent_runs_without_a_terminal_and_its_end_is_told(bus, server, state, tmp_path):
    async with a_host(bus, state) as host:
        script = a_script('echo "to $TOCSIN_PANE"', "read line && echo never", "exit 5")
        started = await host.started(a_start(tmp_path, script, terminal="process"))
        ended = await host.saw(Saw.EXITED)
        assert (ended.exit_code, ended.detail) == (5, f"to {started.pane}")
        assert not server.runs()
        await host.released()


async def test_whether_a_headless_agent_lives_is_said_like_that_of_any_pane(bus, server, state, tmp_path):
    async with a_host(bus, state) as host:
        started = await host.started(a_start(tmp_path, terminal="process"))
        async for _ in Deadline(5, "it is said alive"):
            seen = await bus.last(PANE_SEEN, HOST, started.pane)
            if seen is not None and seen.body.process == started.process:
                break
        await host.released()
        async for _ in Deadline(5, "it is said gone"):
            seen = await bus.last(PANE_SEEN, HOST, started.pane)
            if not seen.body.live:
                break


async def test_a_headless_agent_outlives_its_host_and_is_found_again(bus, server, state, tmp_path):
    async with a_host(bus, state) as host:
        started = await host.started(a_start(tmp_path, terminal="process"))
    assert not ends(started.process.pid)
    async with a_host(bus, state) as host:
        assert (await host.saw(Saw.FOUND)).pane == started.pane
        await host.released()
        assert ends(started.process.pid)


# ---------------------------------------------------------------- once only


async def test_i04_the_same_order_again_is_answered_with_what_was_observed_then(bus, server, state, tmp_path):
    async with a_host(bus, state) as host:
        await host.started(a_start(tmp_path, a_script('echo x >> "$TOCSIN_FOLDER/starts"', "exec sleep 300")))
        command = await host.order(a_start(tmp_path))
        page = host.hands.tools.journal.page(command)
        await until(lambda: not host.hands.tools.telling._waiting, "its facts were said again")
        assert len(page.account.facts) == 3
        assert len(server.tmux("list-panes", "-a").splitlines()) == 1
        folder = next((state / "hands" / "terminals").glob(f"*/{PANE_FOLDER}"))
        assert (folder / "starts").read_text() == "x\n"


async def test_a_host_that_comes_back_finds_its_terminals_and_tells_what_has_ended_meanwhile(bus, server, state, tmp_path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    async with a_host(bus, state) as host:
        lives = await host.started(a_start(tmp_path), "r1.A.1")
        await host.started(a_start(tmp_path, a_script(f"read line < {gate}", "exit 9")), "r1.B.1")
    await asyncio.to_thread(gate.write_text, "go\n")
    await until(lambda: list((state / "hands" / "terminals").glob("*/exit.json")), "it has ended while nobody watched")
    async with a_host(bus, state) as host:
        found = await host.saw(Saw.FOUND, "r1.A.1")
        assert found.pane == lives.pane
        assert (await host.saw(Saw.EXITED, "r1.B.1")).exit_code == 9
        assert not [fact for fact in host.facts if fact.saw in (Saw.EXITED, Saw.LOST) and fact.dispatch == "r1.A.1"]


async def test_facts_that_could_not_be_said_are_said_when_the_bus_is_back(bus, nats_server, server, state, tmp_path):
    async with a_host(bus, state) as host:
        started = await host.started(a_start(tmp_path))
        nats_server.end(signal.SIGKILL)
        os.kill(started.process.pid, signal.SIGTERM)
        page = next(iter(host.hands.tools.journal.pages.values()))
        await until(lambda: any(fact.saw is Saw.EXITED for fact in page.account.facts), "it is noted")
        nats_server.start()
        await host.saw(Saw.EXITED, seconds=30)


# ---------------------------------------------------------------- worktrees


async def made_and_released(host, repository, branch="feat/login", dispatch=DISPATCH):
    """A worktree that was made for an attempt which is over."""
    started = await host.started(a_child(repository, branch), dispatch)
    await host.released(dispatch)
    return Path(started.path)


async def test_h01_a_worktree_with_work_that_exists_nowhere_else_is_kept_with_all_of_it_counted(bus, server, state, repository):
    async with a_host(bus, state) as host:
        path = await made_and_released(host, repository)
        for number in range(3):
            (path / "app.py").write_text(f"{number}\n")
            git(path, "commit", "-qam", f"work {number}")
        for number in range(15):
            (path / f"tracked{number}").write_text("")
        git(path, "add", "-A")
        for number in range(2):
            (path / f"untracked{number}").write_text("")
        kept = await host.removal(str(path))
        assert (kept.saw, kept.code) == (Saw.WORKTREE_KEPT, "dirty")
        assert "17 files" in kept.detail
        assert "3 commits that exist nowhere else" in kept.detail
        assert kept.next
        assert path.exists()
        assert git(repository, "branch", "--list", "feat/login")


async def test_h01_a_clean_merged_worktree_goes_to_the_trash_and_comes_back_as_it_was(bus, server, state, repository):
    async with a_host(bus, state) as host:
        path = await made_and_released(host, repository)
        (path / ".git").stat()
        trashed = await host.removal(str(path))
        assert trashed.saw is Saw.WORKTREE_TRASHED
        assert not path.exists()
        assert there(trashed.detail)
        await host.order(RestoreWorktree(path=str(path), trash=trashed.detail), "restore-1")
        await host.saw(Saw.WORKTREE_RESTORED)
        assert git(path, "branch", "--show-current") == "feat/login"
        assert git(path, "status", "--porcelain") == ""
        assert not there(trashed.detail)


async def test_h01_a_worktree_that_changes_between_the_look_and_the_removal_is_kept(bus, server, state, repository, monkeypatch):
    move = Checkouts.move

    def written_meanwhile(self, path, to):
        if "trash" in to:
            Path(path, "new-file").write_text("")
        move(self, path, to)

    async with a_host(bus, state) as host:
        path = await made_and_released(host, repository)
        monkeypatch.setattr(Checkouts, "move", written_meanwhile)
        kept = await host.removal(str(path))
        assert (kept.saw, kept.code) == (Saw.WORKTREE_KEPT, "changed")
        assert (path / "new-file").exists()


async def test_h01_a_worktree_whose_state_git_does_not_tell_is_not_clean(bus, server, state, repository, monkeypatch):
    async with a_host(bus, state) as host:
        path = await made_and_released(host, repository)
        monkeypatch.setattr(Checkouts, "_changed", lambda *_: None)
        kept = await host.removal(str(path))
        assert (kept.saw, kept.code) == (Saw.WORKTREE_KEPT, "unknown")
        assert path.exists()


async def test_a_worktree_that_somebody_is_in_is_kept(bus, server, state, repository):
    async with a_host(bus, state) as host:
        path = await made_and_released(host, repository)
        other = TmuxServer("other")
        other.folder = server.folder
        other.environment = server.environment
        try:
            other.open("exec sleep 300", path)
            await until(lambda: any(terminal.cwd == str(path) for terminal in host.eyes.terminals.known.values()), "it is seen")
            kept = await host.removal(str(path))
            assert (kept.saw, kept.code) == (Saw.WORKTREE_KEPT, "in_use")
        finally:
            other.end()


async def test_a_worktree_in_which_the_agent_still_lives_is_kept(bus, server, state, repository):
    async with a_host(bus, state) as host:
        started = await host.started(a_child(repository))
        assert (await host.removal(started.path)).code == "in_use"


async def test_a_worker_whose_end_is_proven_holds_no_worktree_also_while_its_terminal_is_being_closed(
    bus, server, state, repository, monkeypatch
):
    close, closing = ending._close, asyncio.Event()

    async def slow(*words):
        await closing.wait()
        return await close(*words)

    async with a_host(bus, state) as host:
        worktree = await made_and_released(host, repository)
        reviewer = await host.started(a_start(worktree), "r1.T2.1")
        await until(lambda: reviewer.pane in host.eyes.terminals.known, "it is seen")
        monkeypatch.setattr(ending, "_close", slow)
        try:
            await host.order(ReleaseTerminal(pane=reviewer.pane, process=None), "release-1", "r1.T2.1")
            await host.saw(Saw.TREE_ENDED, "r1.T2.1")
            assert (await host.removal(str(worktree))).saw is Saw.WORKTREE_TRASHED
        finally:
            closing.set()


async def test_a_worktree_that_tocsin_did_not_make_is_kept(bus, server, state, repository):
    git(repository, "worktree", "add", "-q", "-b", "mine", str(repository.parent / "mine"))
    async with a_host(bus, state) as host:
        assert (await host.removal(str(repository.parent / "mine"))).code == "not_ours"
        assert (await host.removal(str(repository), step="remove-2")).code == "not_ours"
        assert (await host.removal(str(repository.parent / "nowhere"), step="remove-3")).code == "not_there"


async def test_nothing_comes_back_over_what_is_there_now(bus, server, state, repository):
    async with a_host(bus, state) as host:
        path = await made_and_released(host, repository)
        trashed = await host.removal(str(path))
        path.mkdir()
        await host.order(RestoreWorktree(path=str(path), trash=trashed.detail), "restore-1")
        assert (await host.saw(Saw.REFUSED)).code == "worktree_taken"
        assert there(trashed.detail)


async def test_what_is_not_in_the_trash_cannot_come_back(bus, server, state, repository):
    async with a_host(bus, state) as host:
        await host.order(RestoreWorktree(path=str(repository.parent / "x"), trash=str(repository)), "restore-1")
        assert (await host.saw(Saw.REFUSED)).code == "not_found"
        assert repository.exists()


async def test_after_its_time_a_worktree_in_the_trash_is_forgotten_with_its_branch(bus, server, state, repository, monkeypatch):
    monkeypatch.setattr(cleaning, "KEEP_MS", -1)
    async with a_host(bus, state) as host:
        path = await made_and_released(host, repository)
        trashed = await host.removal(str(path))
        await host.hands._cleaner.purge(host.hands.tools)
        assert (await host.saw(Saw.WORKTREE_PURGED)).path == str(path)
        assert not there(trashed.detail)
        assert git(repository, "branch", "--list", "feat/login") == ""
        assert list((state / "hands" / "trash").iterdir()) == []


async def test_within_its_time_nothing_is_forgotten(bus, server, state, repository):
    async with a_host(bus, state) as host:
        trashed = await host.removal(str(await made_and_released(host, repository)))
        await host.hands._cleaner.purge(host.hands.tools)
        assert there(trashed.detail)


# -------------------------------------------------------------------- typing


@asynccontextmanager
async def an_idle_claude(bus, server, folder, tmp_path, *options, **status):
    """(host, pane, log): a Claude Code whose hooks say that it is done, in a pane of a person's own."""
    log = tmp_path / "sent"
    number = server.open(a_composer(str(log), *options), tmp_path)
    pane = server.name_of(number)
    async with a_host(bus, folder) as host:
        await until(lambda: (found := host.eyes.terminals.known.get(pane)) and found.resident, "it is seen")
        defaults = {"host": HOST, "pane": pane, "state": State.DONE, "agent": "claude", "cwd": str(tmp_path.resolve())}
        await bus.say(PANE_STATUS, a_status(**(defaults | status)))
        await until(lambda: pane in host.eyes.statuses, "its status is heard")
        await until(lambda: "❯" in server.tmux("capture-pane", "-p", "-t", number), "it has drawn its composer")
        yield host, pane, log


def sent(log):
    return log.read_text().splitlines() if log.exists() else []


POINTER = "Mail waits: run `tocsin mail check` and read it."


async def test_a_pointer_is_typed_into_an_idle_pane_with_one_enter(bus, server, state, tmp_path):
    async with an_idle_claude(bus, server, state, tmp_path) as (host, pane, log):
        process = host.eyes.terminals.known[pane].resident.process
        await host.order(TypePointer(pane=pane, process=process, text=POINTER, wake="w1"), "wake-1", "w1")
        typed = await host.saw(Saw.TYPED, "w1")
        assert (typed.wake, typed.detail) == ("w1", "")
        assert sent(log) == [repr(POINTER)]


async def test_a_text_of_many_lines_goes_out_as_one(bus, server, state, tmp_path):
    text = "\n".join(f"line {number}" for number in range(8))
    async with an_idle_claude(bus, server, state, tmp_path) as (host, pane, log):
        await host.order(TypePointer(pane=pane, process=None, text=text), "wake-1", "w1")
        await host.saw(Saw.TYPED, "w1")
        assert sent(log) == [repr(text)]


async def test_a_draft_holds_the_pointer_and_stays_as_it_is(bus, server, state, tmp_path):
    async with an_idle_claude(bus, server, state, tmp_path, "draft", "half a thought") as (host, pane, log):
        await host.order(TypePointer(pane=pane, process=None, text=POINTER), "wake-1", "w1")
        assert (await host.saw(Saw.TYPE_HELD, "w1")).code == "composer_busy"
        assert "half a thought" in server.tmux("capture-pane", "-p", "-t", "%" + pane.rpartition(".")[2])
        assert sent(log) == []


@pytest.mark.parametrize(
    ("status", "code"),
    [({"state": State.WORKING}, "working"), ({"state": State.BLOCKED}, "prompt"), ({"state": State.DONE, "hooked": False}, "uncertain")],
)
async def test_an_agent_that_is_not_certainly_idle_is_not_typed_at(bus, server, state, tmp_path, status, code):
    async with an_idle_claude(bus, server, state, tmp_path, **status) as (host, pane, log):
        await host.order(TypePointer(pane=pane, process=None, text=POINTER), "wake-1", "w1")
        assert (await host.saw(Saw.TYPE_HELD, "w1")).code == code
        assert sent(log) == []


async def test_another_agent_under_the_same_pane_is_not_typed_at(bus, server, state, tmp_path):
    async with an_idle_claude(bus, server, state, tmp_path) as (host, pane, log):
        other = Process(pid=host.eyes.terminals.known[pane].resident.process.pid, started_ms=1, boot="b")
        await host.order(TypePointer(pane=pane, process=other, text=POINTER), "wake-1", "w1")
        assert (await host.saw(Saw.TYPE_HELD, "w1")).code == "gone"
        assert sent(log) == []


async def test_a_person_at_the_keys_holds_the_pointer(bus, server, state, tmp_path):
    async with an_idle_claude(bus, server, state, tmp_path) as (host, pane, log):
        keys, number = server.attach(), "%" + pane.rpartition(".")[2]
        for _ in Deadline(5, "a key counts"):
            os.write(keys, b"\x15")
            if await host.hands.tools.screens.last_key_ms(server.socket, number) is not None:
                break
        await host.order(TypePointer(pane=pane, process=None, text=POINTER), "wake-1", "w1")
        assert (await host.saw(Saw.TYPE_HELD, "w1")).code == "recent_key"
        assert sent(log) == []


async def test_f04_an_enter_that_is_swallowed_is_told_and_never_sent_again_and_nothing_is_written_behind_it(bus, server, state, tmp_path):
    async with an_idle_claude(bus, server, state, tmp_path, "swallow") as (host, pane, log):
        reuse = a_start(tmp_path.resolve(), (), agent="claude", pane=pane, brief="brief one")
        await host.order(reuse, dispatch="r1.T1.1")
        written = await host.saw(Saw.PROMPT_WRITTEN, "r1.T1.1")
        assert "still stands in the composer" in written.detail
        await host.order(msgspec.structs.replace(reuse, brief="brief two", task="T2"), dispatch="r1.T2.1")
        refused = await host.saw(Saw.REFUSED, "r1.T2.1")
        assert refused.code == "composer_busy"
        assert "unsubmitted prompt of r1.T1.1" in refused.detail
        # One Enter in all, and the text is still the first brief alone.
        assert sent(log) == ["'brief one'"]
        shown = server.tmux("capture-pane", "-p", "-t", "%" + pane.rpartition(".")[2])
        assert "brief one" in shown
        assert "brief two" not in shown


async def test_a_live_pane_is_reused_for_another_attempt_which_its_agent_then_speaks_for(
    bus, server, state, tmp_path, programs, monkeypatch
):
    log = tmp_path / "sent"
    monkeypatch.setenv("COMPOSER_LOG", str(log))
    monkeypatch.setattr("tocsin.pane_host.hands.writing.REUSE_QUIET_MS", 0)
    async with a_host(bus, state) as host:
        first = await host.started(a_start(tmp_path, (), agent="claude", brief="one"), "r1.T1.1")
        await until(lambda: (found := host.eyes.terminals.known.get(first.pane)) and found.resident, "it is seen")
        await bus.say(PANE_STATUS, a_status(host=HOST, pane=first.pane, state=State.DONE, agent="claude", cwd=str(tmp_path.resolve())))
        await until(lambda: first.pane in host.eyes.statuses, "its status is heard")
        await until(lambda: "❯" in server.tmux("capture-pane", "-p", "-t", "%0"), "it has drawn its composer")
        await host.order(a_start(tmp_path.resolve(), (), agent="claude", pane=first.pane, brief="two"), dispatch="r1.T2.1", fence=1)
        await host.saw(Saw.PROMPT_WRITTEN, "r1.T2.1")
        assert sent(log) == ["'two'"]
        made = host.hands.tools.cabinet.of_pane(first.pane)
        assert host.hands._folders.caller(made).dispatch == "r1.T2.1"
        # The first attempt's terminal is the second's now: ending the first ends nothing.
        await host.stopped("r1.T1.1")
        assert "works for r1.T2.1 now" in (await host.saw(Saw.NOT_CONFIRMED, "r1.T1.1")).detail
        assert not ends(first.process.pid)
        os.kill(first.process.pid, signal.SIGKILL)
        await host.saw(Saw.EXITED, "r1.T2.1")


async def test_a_pane_in_which_another_agent_lives_or_which_works_elsewhere_is_not_reused(bus, server, state, tmp_path):
    async with an_idle_claude(bus, server, state, tmp_path) as (host, pane, log):
        await host.order(a_start(tmp_path, (), agent="codex", pane=pane), dispatch="r1.A.1")
        assert (await host.saw(Saw.REFUSED, "r1.A.1")).code == "not_found"
        (tmp_path / "else").mkdir()
        await host.order(a_start(tmp_path / "else", (), agent="claude", pane=pane), dispatch="r1.B.1")
        assert (await host.saw(Saw.REFUSED, "r1.B.1")).code == "bad_place"
        assert sent(log) == []


async def test_the_attempt_whose_reuse_was_refused_can_release_the_terminal_that_was_handed_on_to_it(bus, server, state, tmp_path):
    async with a_host(bus, state) as host:
        started = await host.started(a_start(tmp_path), "r1.T1.1")
        made = await host.saw(Saw.TERMINAL_MADE, "r1.T1.1")
        await host.order(a_start(tmp_path, (), agent="codex", pane=made.pane), dispatch="r1.T1.2")
        await host.saw(Saw.REFUSED, "r1.T1.2")
        await host.order(ReleaseTerminal(pane=made.pane, process=made.process), "release-1", "r1.T1.2")
        ended = await host.saw(Saw.TREE_ENDED, "r1.T1.2")
        assert (ended.pane, ended.process) == (made.pane, made.process)
        assert ends(started.process.pid)


async def test_an_interrupt_is_the_agents_own_key_once(bus, server, state, tmp_path):
    async with a_host(bus, state) as host:
        started = await host.started(a_start(tmp_path, a_script("trap 'echo cancelled' INT", "while :; do sleep 0.1; done")))
        await until(lambda: started.pane in host.eyes.terminals.known, "it is seen")
        await host.order(InterruptAgent(pane=started.pane), "interrupt-1")
        await host.saw(Saw.INTERRUPTED)
        await until(lambda: "cancelled" in server.tmux("capture-pane", "-p", "-t", "%0"), "it has heard")
        assert server.tmux("capture-pane", "-p", "-t", "%0").count("cancelled") == 1
        assert not ends(started.process.pid)


async def test_a_headless_agent_is_interrupted_by_a_signal(bus, server, state, tmp_path):
    async with a_host(bus, state) as host:
        started = await host.started(a_start(tmp_path, a_script("trap 'exit 42' INT", "while :; do sleep 0.1; done"), terminal="process"))
        await host.order(InterruptAgent(pane=started.pane), "interrupt-1")
        await host.saw(Saw.INTERRUPTED)
        assert (await host.saw(Saw.EXITED)).exit_code == 42


async def test_a_persons_key_in_a_terminal_of_ours_is_told(bus, server, state, tmp_path, monkeypatch):
    monkeypatch.setattr(watching, "KEY_AGAIN_MS", 0)
    async with a_host(bus, state) as host:
        started = await host.started(a_start(tmp_path, a_script("exec cat")))
        await until(lambda: started.pane in host.eyes.terminals.known, "it is seen")
        keys = server.attach()
        async for _ in Deadline(10, "a key is told"):
            os.write(keys, b"x")
            if host.all(Saw.HUMAN_KEY):
                break
        assert host.all(Saw.HUMAN_KEY)[0].pane == started.pane


async def test_what_we_type_ourselves_is_no_persons_key(bus, server, state, tmp_path):
    async with a_host(bus, state) as host:
        started = await host.started(a_start(tmp_path, a_script("exec cat")))
        await until(lambda: started.pane in host.eyes.terminals.known, "it is seen")
        server.attach()
        server.tmux("send-keys", "-t", "%0", "hello", "Enter")
        await until(lambda: "hello" in server.tmux("capture-pane", "-p", "-t", "%0"), "it is there")
        looks = host.eyes.terminals.known[started.pane]
        await until(lambda: host.eyes.terminals.known[started.pane] is not looks, "it was looked at again")
        assert host.all(Saw.HUMAN_KEY) == []


# ------------------------------------------------------------------ folders


def put(folder, name, request, raw=None):
    """A request as the command puts it there."""
    beside = folder / "requests" / f".{name}"
    beside.write_bytes(raw if raw is not None else json.dumps(request).encode())
    beside.rename(folder / "requests" / name)


def a_report(request="q1"):
    body = {"run": "r1", "ask": {"verb": "report", "report": {"outcome": "succeeded", "body": "done"}}}
    return {"v": 1, "id": request, "subject": "run", "body": body, "cwd": "/x", "pid": 1, "sent_ms": 0}


async def answer(folder, name, seconds=10):
    file = folder / "answers" / name
    await until(file.exists, f"an answer {name}", seconds)
    return json.loads(file.read_text())


@asynccontextmanager
async def a_worker(bus, state, tmp_path):
    """(host, its folder, its AGENT_STARTED)."""
    async with a_host(bus, state) as host:
        started = await host.started(a_start(tmp_path))
        yield host, next((state / "hands" / "terminals").glob(f"*/{PANE_FOLDER}")), started


async def test_a_report_from_a_pane_reaches_its_run_with_a_caller_that_is_vouched_for(bus, server, state, tmp_path):
    heard = []

    async def dispatcher(command):
        heard.append(command)
        return Receipt(request=command.request, seq=4)

    async with a_worker(bus, state, tmp_path) as (_, folder, started), bus.serve(RUN_CMD, dispatcher, name="dispatcher"):
        put(folder, "q1.json", a_report())
        assert await answer(folder, "q1.json") == {"v": 1, "refused": False, "body": msgspec.to_builtins(Receipt(request="q1", seq=4))}
        (command,) = heard
        assert isinstance(command, RunCommand)
        assert isinstance(command.ask, ReportWork)
        caller = command.caller
        assert (caller.role, caller.host, caller.pane, caller.process, caller.dispatch, caller.vouched, caller.child) == (
            "worker", HOST, started.pane, started.process, DISPATCH, True, False,
        )  # fmt: skip
        await until(lambda: not (folder / "requests" / "q1.json").exists(), "the request is done with")


async def test_a_refusal_is_an_answer_too(bus, server, state, tmp_path):
    async def dispatcher(command):
        return Refused(request=command.request, code="stale_dispatch", message="no", retry="never", next=("stop",))

    async with a_worker(bus, state, tmp_path) as (_, folder, _), bus.serve(RUN_CMD, dispatcher, name="dispatcher"):
        put(folder, "q1.json", a_report())
        said = await answer(folder, "q1.json")
        assert (said["refused"], said["body"]["code"]) == (True, "stale_dispatch")


async def test_a_report_waits_on_disk_while_every_service_is_away_and_is_delivered_once(bus, nats_server, server, state, tmp_path):
    heard = []

    async def dispatcher(command):
        heard.append(command.request)
        return Receipt(request=command.request)

    async with a_worker(bus, state, tmp_path) as (_, folder, _):
        nats_server.end(signal.SIGKILL)
        put(folder, "q1.json", a_report())
    # The host ends, too; the report stays.
    assert (folder / "requests" / "q1.json").exists()
    nats_server.start()
    await until(lambda: bus.client.is_connected, "the bus is back")
    async with a_host(bus, state), bus.serve(RUN_CMD, dispatcher, name="dispatcher"):
        await answer(folder, "q1.json", 30)
    assert heard == ["q1"]


async def test_a_request_that_was_answered_is_not_put_again(bus, server, state, tmp_path):
    heard = []

    async def dispatcher(command):
        heard.append(command.request)
        return Receipt(request=command.request)

    async with a_worker(bus, state, tmp_path) as (_, folder, _), bus.serve(RUN_CMD, dispatcher, name="dispatcher"):
        put(folder, "q1.json", a_report())
        first = await answer(folder, "q1.json")
        await until(lambda: not list((folder / "requests").iterdir()), "it is done with")
        put(folder, "q1.json", a_report())  # a killed host had not removed it
        await until(lambda: not list((folder / "requests").iterdir()), "it is done with again")
        assert await answer(folder, "q1.json") == first
        assert heard == ["q1"]


async def test_a_parked_check_holds_up_no_report(bus, server, state, tmp_path):
    parked = asyncio.Event()

    async def dispatcher(command):
        return Receipt(request=command.request)

    async def mailbox(command):
        assert command.mailbox == f"dispatch:{DISPATCH}"
        await parked.wait()
        return Receipt(request=command.request)

    async with (
        a_worker(bus, state, tmp_path) as (_, folder, _),
        bus.serve(RUN_CMD, dispatcher, name="dispatcher"),
        bus.serve(MAIL_CMD, mailbox, name="mailbox"),
    ):
        put(folder, "c1.json", {"v": 1, "id": "c1", "subject": "mail", "body": {"ask": {"verb": "check", "wait_ms": 60_000}}})
        put(folder, "q1.json", a_report())
        await answer(folder, "q1.json")
        assert not (folder / "answers" / "c1.json").exists()
        parked.set()
        await answer(folder, "c1.json")


HOSTILE = {
    "not JSON": ("q1.json", b"{", "bad_json"),
    "not UTF-8": ("q1.json", b"\xff\xfe{}", "bad_text"),
    "over a mebibyte": ("q1.json", b" " * (1024 * 1024 + 1), "too_large"),
    "an id that is not its file's": ("q1.json", json.dumps(a_report("q2")).encode(), "bad_request"),
    "of another version": ("q1.json", json.dumps(a_report() | {"v": 9}).encode(), "bad_request"),
    "to nobody": ("q1.json", json.dumps(a_report() | {"subject": "custody"}).encode(), "bad_request"),
}


@pytest.mark.parametrize("what", HOSTILE)
async def test_a_request_that_is_none_is_answered_with_a_refusal(bus, server, state, tmp_path, what):
    name, raw, code = HOSTILE[what]
    async with a_worker(bus, state, tmp_path) as (_, folder, _):
        put(folder, name, None, raw)
        said = await answer(folder, name)
        assert (said["refused"], said["body"]["code"]) == (True, code)
        assert said["body"]["next"]


async def test_links_pipes_and_folders_in_the_place_of_requests_are_not_read(bus, server, state, tmp_path):
    secret = tmp_path / "secret.json"
    secret.write_text(json.dumps(a_report("link")))
    async with a_worker(bus, state, tmp_path) as (_, folder, _):
        (folder / "requests" / "link.json").symlink_to(secret)
        os.mkfifo(folder / "requests" / "pipe.json")
        (folder / "requests" / "folder.json").mkdir()
        (folder / "requests" / "no request").write_text("{}")
        for name in ("link.json", "pipe.json", "folder.json"):
            assert (await answer(folder, name))["refused"]
        assert secret.exists()


async def test_answers_are_never_put_through_a_link(bus, server, state, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with a_worker(bus, state, tmp_path) as (host, folder, _):
        (folder / "answers").rmdir()
        (folder / "answers").symlink_to(elsewhere)
        put(folder, "q1.json", None, b"{")
        made = next(iter(host.hands.tools.cabinet))
        folders, key = host.hands._folders._served, host.hands.tools.cabinet.folder_of(made)
        await until(lambda: key in folders and folders[key].in_flight, "it was looked at")
        assert list(elsewhere.iterdir()) == []


# ---------------------------------------------------------------------- poison


async def test_a_disk_that_takes_no_note_of_an_order_lets_it_come_again(bus, server, state, tmp_path, monkeypatch):
    from tocsin.pane_host.hands import journal, service

    monkeypatch.setattr(service, "AGAIN_S", 0.1)
    real, failures = journal.append, [OSError(28, "No space left on device")]

    def full(file, entry):
        if failures and entry.order is not None:
            raise failures.pop()
        real(file, entry)

    async with a_host(bus, state) as host:
        monkeypatch.setattr(journal, "append", full)
        await host.started(a_start(tmp_path))
        assert failures == []


async def test_one_order_that_meets_a_fault_ends_no_other(bus, server, state, repository, tmp_path, monkeypatch):
    def broken(*_, **__):
        raise ValueError("a bug")

    async with a_host(bus, state) as host:
        monkeypatch.setattr(Checkouts, "plan", broken)
        await host.order(a_child(repository), dispatch="r1.A.1")
        assert "ValueError" in (await host.saw(Saw.UNKNOWN_STEP, "r1.A.1")).detail
        await host.started(a_start(tmp_path), "r1.B.1")


async def test_no_marked_process_is_left_when_all_is_released(bus, server, state, tmp_path):
    async with a_host(bus, state) as host:
        await host.started(a_start(tmp_path, STAYS))
        mark = next(iter(host.hands.tools.cabinet)).mark
        assert left_processes(mark)
        await host.released()
        assert left_processes(mark) == []
