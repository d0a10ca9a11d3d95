"""Killed at each named moment of each step, and started again: one process, one Enter, one worktree. Case I01: effects are keyed."""

import asyncio
import os
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from builders import a_status
from hands_builders import (
    HOST,
    a_child,
    a_composer,
    a_host,
    a_repository,
    a_script,
    a_start,
    an_order,
    ends,
    git,
    until,
)
from tocsin.contract.hosting import InterruptAgent, ReleaseTerminal, RemoveWorktree, RestoreWorktree, Saw, TypePointer
from tocsin.contract.messages import State
from tocsin.contract.subjects import HOST_CMD, PANE_STATUS
from tocsin.pane_host.core.steps import Step
from tocsin.pane_host.hands.made import PANE_FOLDER

MOMENTS = ("noted", "done")


@asynccontextmanager
async def killed_at(bus, state, moment, step):
    """A host that kills itself at that moment; the block gives it its orders, and ends when it is dead."""
    script = Path(__file__).parents[1] / "hands_process.py"
    words = [sys.executable, str(script), str(state.resolve()), bus.client.connected_url.geturl(), moment, step]
    with (state.parent / "killed.log").open("w") as log:
        process = await asyncio.create_subprocess_exec(*words, stdout=log, stderr=log)
    try:
        yield
        await asyncio.wait_for(process.wait(), 20)
        assert process.returncode == -signal.SIGKILL, (state.parent / "killed.log").read_text()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


STARTS = a_script('echo x >> "$TOCSIN_FOLDER/starts"', "exec sleep 300")


@pytest.mark.parametrize("terminal", ["tmux", "process"])
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("step", [Step.WORKTREE, Step.SETUP, Step.PREPARE, Step.TERMINAL, Step.TOLD, Step.GO])
async def test_i01_a_start_goes_on_where_it_was(bus, server, state, tmp_path, moment, step, terminal):
    repository = a_repository(tmp_path / "app")
    order = a_child(repository, command=STARTS, setup="echo x >> ../setups", terminal=terminal)
    async with killed_at(bus, state, moment, step):
        await bus.say(HOST_CMD, an_order(order))
    async with a_host(bus, state) as host:
        started = await host.saw(Saw.AGENT_STARTED)
        folder = next((state / "hands" / "terminals").glob(f"*/{PANE_FOLDER}"))
        await until((folder / "starts").exists, "the agent runs")
        assert (folder / "starts").read_text() == "x\n"
        assert (tmp_path / "app-worktrees" / "setups").read_text() == "x\n"
        assert len(git(repository, "worktree", "list").splitlines()) == 2
        assert not ends(started.process.pid)
        if terminal == "tmux":
            assert len(server.tmux("list-panes", "-a").splitlines()) == 1
        assert {fact.saw for fact in host.facts} >= {Saw.WORKTREE_READY, Saw.SETUP_RUNNING, Saw.SETUP_ENDED, Saw.TERMINAL_MADE}
        assert Saw.REFUSED not in {fact.saw for fact in host.facts}
        await host.released()
        assert ends(started.process.pid)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("step", [Step.ARCHIVE, Step.END, Step.CLOSE])
async def test_a_release_goes_on_where_it_was(bus, server, state, tmp_path, moment, step):
    async with a_host(bus, state) as host:
        started = await host.started(a_start(tmp_path, a_script("echo keep this", "exec sleep 300")))
        made = await host.saw(Saw.TERMINAL_MADE)
        await until(lambda: "keep this" in server.tmux("capture-pane", "-p", "-t", "%0"), "it has spoken")
    async with killed_at(bus, state, moment, step):
        await bus.say(HOST_CMD, an_order(ReleaseTerminal(pane=made.pane, process=made.process), "release-1", at_ms=made.at_ms + 60_000))
    async with a_host(bus, state) as host:
        await host.saw(Saw.TERMINAL_CLOSED)
        ended = [fact.saw for fact in host.facts if fact.saw in (Saw.TREE_ENDED, Saw.ALREADY_ENDED)]
        assert len(ended) == 1
        kept = await host.saw(Saw.ARCHIVED)
        assert "keep this" in await asyncio.to_thread(Path(kept.detail).read_text)
        assert ends(started.process.pid)
        assert ends(made.process.pid)
        assert not server.runs()


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_removal_goes_on_where_it_was_and_so_does_its_undoing(bus, server, state, tmp_path, moment):
    repository = a_repository(tmp_path / "app")
    async with a_host(bus, state) as host:
        path = (await host.started(a_child(repository))).path
        await host.released()
    async with killed_at(bus, state, moment, Step.TRASH):
        await bus.say(HOST_CMD, an_order(RemoveWorktree(path=path), "remove-1"))
    async with a_host(bus, state) as host:
        trashed = await host.saw(Saw.WORKTREE_TRASHED)
        assert len(git(repository, "worktree", "list").splitlines()) == 2
    async with killed_at(bus, state, moment, Step.RESTORE):
        await bus.say(HOST_CMD, an_order(RestoreWorktree(path=path, trash=trashed.detail), "restore-1"))
    async with a_host(bus, state) as host:
        await host.saw(Saw.WORKTREE_RESTORED)
        assert git(path, "status", "--porcelain") == ""
        assert list((state / "hands" / "trash").iterdir()) == []


async def test_a_removal_that_was_broken_off_looks_again_before_it_moves_anything(bus, server, state, tmp_path):
    repository = a_repository(tmp_path / "app")
    async with a_host(bus, state) as host:
        path = (await host.started(a_child(repository))).path
        await host.released()
    async with killed_at(bus, state, "noted", Step.TRASH):
        await bus.say(HOST_CMD, an_order(RemoveWorktree(path=path), "remove-1"))
    (tmp_path / "app-worktrees" / "feat~login" / "new").write_text("work of a person")
    async with a_host(bus, state) as host:
        assert (await host.saw(Saw.WORKTREE_KEPT)).code == "dirty"


POINTER = "Mail waits: run `tocsin mail check` and read it."

ENTERS = {
    ("noted", Step.PASTE): (Saw.TYPED, 1),
    ("done", Step.PASTE): (Saw.TYPED, 1),
    # Whether the Enter was sent cannot be told any more: it is never sent again.
    ("noted", Step.ENTER): (Saw.UNKNOWN_STEP, 0),
    ("done", Step.ENTER): (Saw.UNKNOWN_STEP, 1),
}


async def an_idle_claude(bus, server, folder, log):
    number = server.open(a_composer(str(log)), folder)
    pane = server.name_of(number)
    await bus.say(PANE_STATUS, a_status(host=HOST, pane=pane, state=State.DONE, agent="claude", cwd=str(folder)))
    await until(lambda: "❯" in server.tmux("capture-pane", "-p", "-t", number), "it has drawn its composer")
    return pane, number


@pytest.mark.parametrize(("moment", "step"), ENTERS)
async def test_a_text_is_sent_by_one_enter_or_told_as_unknown(bus, server, state, tmp_path, moment, step):
    saw, enters = ENTERS[moment, step]
    log = tmp_path / "sent"
    pane, _ = await an_idle_claude(bus, server, tmp_path.resolve(), log)
    async with killed_at(bus, state, moment, step):
        await bus.say(HOST_CMD, an_order(TypePointer(pane=pane, process=None, text=POINTER), "wake-1"))
    async with a_host(bus, state) as host:
        await host.saw(saw)
        assert (log.read_text().splitlines() if log.exists() else []) == [repr(POINTER)] * enters


async def test_a_text_that_somebody_has_changed_meanwhile_is_left_to_them(bus, server, state, tmp_path):
    log = tmp_path / "sent"
    pane, number = await an_idle_claude(bus, server, tmp_path.resolve(), log)
    async with killed_at(bus, state, "done", Step.PASTE):
        await bus.say(HOST_CMD, an_order(TypePointer(pane=pane, process=None, text=POINTER), "wake-1"))
    server.tmux("send-keys", "-t", number, "-l", " and more")
    async with a_host(bus, state) as host:
        left = await host.saw(Saw.PROMPT_LEFT)
        assert "and more" in left.detail
        assert not log.exists()


async def test_i01_nothing_is_typed_twice_when_the_answer_was_not_heard(bus, server, state, tmp_path):
    log = tmp_path / "sent"
    pane, _ = await an_idle_claude(bus, server, tmp_path.resolve(), log)
    command = an_order(TypePointer(pane=pane, process=None, text=POINTER), "wake-1")
    async with a_host(bus, state) as host:
        await bus.say(HOST_CMD, command)
        await host.saw(Saw.TYPED)
    async with a_host(bus, state) as host:
        await bus.say(HOST_CMD, command)
        await until(lambda: not host.hands.tools.telling._waiting and host.facts, "it is answered with what was observed then")
    assert log.read_text().splitlines() == [repr(POINTER)]


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_cancel_key_that_may_have_been_pressed_is_not_pressed_again(bus, server, state, tmp_path, moment):
    note = tmp_path / "interrupts"
    async with a_host(bus, state) as host:
        started = await host.started(a_start(tmp_path, a_script(f"trap 'echo x >> {note}' INT", "while :; do sleep 0.1; done")))
    async with killed_at(bus, state, moment, Step.INTERRUPT):
        await bus.say(HOST_CMD, an_order(InterruptAgent(pane=started.pane), "interrupt-1"))
    async with a_host(bus, state) as host:
        await host.saw(Saw.UNKNOWN_STEP)
        if moment == "done":
            await until(note.exists, "the first one arrived")
        assert (note.read_text() if note.exists() else "") == ("x\n" if moment == "done" else "")


def test_every_step_that_hands_know_is_killed_in_one_of_these_tests():
    killed = {Step.WORKTREE, Step.SETUP, Step.PREPARE, Step.TERMINAL, Step.TOLD, Step.GO}
    killed |= {Step.ARCHIVE, Step.END, Step.CLOSE, Step.TRASH, Step.RESTORE, Step.INTERRUPT} | {step for _, step in ENTERS}
    assert killed == set(Step)


async def test_an_agent_does_not_notice_that_its_host_was_killed(bus, server, state, tmp_path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    script = Path(__file__).parents[1] / "hands_process.py"
    words = [sys.executable, str(script), str(state.resolve()), bus.client.connected_url.geturl()]
    with (tmp_path / "host.log").open("w") as log:
        process = await asyncio.create_subprocess_exec(*words, stdout=log, stderr=log)
    try:
        await bus.say(HOST_CMD, an_order(a_start(tmp_path, a_script(f"read line < {gate}", 'echo "$line" > heard', "exit 3"))))
        await until(lambda: list((state / "hands" / "terminals").glob("*/agent.json")), "the agent runs")
    finally:
        process.send_signal(signal.SIGKILL)
        await process.wait()
    await asyncio.to_thread(gate.write_text, "still here\n")
    await until((tmp_path / "heard").exists, "the agent goes on")
    async with a_host(bus, state) as host:
        assert (await host.saw(Saw.EXITED)).exit_code == 3
