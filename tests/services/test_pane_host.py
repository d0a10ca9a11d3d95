"""pane-host as a whole, over a real bus, a real tmux and real repositories: what it says, and what it never claims."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from builders import a_status
from support import Deadline, running
from tmux_server import an_agent, the_tmux, title
from tocsin.agents.install.endpoint import write_endpoint
from tocsin.agents.install.hook_clock import read_hook_clock
from tocsin.bus.bus import Unavailable
from tocsin.contract.ids import worktree_id
from tocsin.contract.messages import MarkKind, PaneSeen, State, TurnSeen
from tocsin.contract.subjects import PANE_SEEN, PANE_STATUS, PANE_TITLED, WORKTREE_KNOWN
from tocsin.pane_host import last_values, service
from tocsin.pane_host.__main__ import alone, build
from tocsin.pane_host.last_values import LastValues
from tocsin.pane_host.memory import recall
from tocsin.pane_host.settings import PaneHostSettings
from tocsin.pane_host.sight import sight
from tocsin.runtime.clock import SystemClock
from tocsin.runtime.skew import Skew

HOST = "h"


@pytest.fixture
def server(monkeypatch):
    with the_tmux(monkeypatch) as made:
        yield made


@asynccontextmanager
async def at_work(bus, state, **settings):
    """A pane-host that runs beside the test; its own object, to look into."""
    host = build(bus, PaneHostSettings(host=HOST, **settings), state, state.parent)
    async with running(host.run()):
        yield host


async def said(bus, subject, name, holds):
    """The last value of one pane or worktree, once it is as expected."""
    last = None
    async for _ in Deadline(8, f"{subject.name} {name}, last {last}"):
        last = await bus.last(subject, HOST, name)
        if last is not None and holds(last.body):
            return last.body
    raise AssertionError


async def test_a_terminal_is_said_with_its_agent_process_folder_and_how_to_select_it(bus, server, state, tmp_path):
    tmp_path = tmp_path.resolve()
    number = server.open(an_agent("claude"), tmp_path)
    async with at_work(bus, state):
        seen = await said(bus, PANE_SEEN, server.name_of(number), lambda seen: seen.agent is not None)
    assert (seen.agent, seen.process.pid, seen.live) == ("claude", server.pane_pid(number), True)
    assert seen.cwd == str(tmp_path)
    assert seen.locator == f"{server.socket} {number}"


async def test_titles_are_said_numbered_and_the_last_one_stands(bus, server, state):
    number = server.open("exec bash --norc")
    name = server.name_of(number)
    async with at_work(bus, state):
        first = await said(bus, PANE_TITLED, name, lambda titled: True)
        server.tmux("send-keys", "-t", number, f"printf '{title('✋ wanted')}'", "Enter")
        second = await said(bus, PANE_TITLED, name, lambda titled: titled.titles[-1].text == "✋ wanted")
    assert second.titles[: len(first.titles)] == first.titles
    assert second.titles[-1].number > first.titles[-1].number
    assert second.titles[-1].at_ms >= first.titles[-1].at_ms


async def test_an_agent_that_has_left_its_terminal_is_said_to_have_left(bus, server, state):
    number = server.open("exec bash --norc")
    name = server.name_of(number)
    async with at_work(bus, state):
        await said(bus, PANE_SEEN, name, lambda seen: seen.process is None)
        server.tmux("send-keys", "-t", number, f"({an_agent('codex')})", "Enter")
        seen = await said(bus, PANE_SEEN, name, lambda seen: seen.agent == "codex")
        os.kill(seen.process.pid, signal.SIGTERM)
        left = await said(bus, PANE_SEEN, name, lambda seen: seen.process is None)
    assert (left.live, left.agent) == (True, None)


async def test_a_closed_terminal_is_said_to_be_over_once_and_then_no_more(bus, server, state):
    number, other = server.open(an_agent("claude")), server.open("exec sleep 300")
    name, stays = server.name_of(number), server.name_of(other)
    async with at_work(bus, state) as host:
        await said(bus, PANE_SEEN, name, lambda seen: seen.agent == "claude")
        server.tmux("kill-pane", "-t", number)
        over = await said(bus, PANE_SEEN, name, lambda seen: not seen.live)
        assert over.locator == f"{server.socket} {number}"
        async for _ in Deadline(5, "it is forgotten"):
            if {seen.pane for seen in host.terminals._seen.values.values()} == {stays}:
                break
        assert {titled.pane for titled in host.terminals._titled.values.values()} == {stays}


async def test_all_terminals_of_a_server_that_is_gone_are_over(bus, server, state):
    names = [server.name_of(server.open(an_agent("claude"))) for _ in range(2)]
    async with at_work(bus, state):
        for name in names:
            await said(bus, PANE_SEEN, name, lambda seen: seen.agent == "claude")
        os.kill(server.pid, signal.SIGKILL)
        for name in names:
            await said(bus, PANE_SEEN, name, lambda seen: not seen.live)


async def test_a_server_that_is_silent_is_never_taken_for_one_that_is_gone(bus, server, state):
    number = server.open(an_agent("claude"))
    name, pid = server.name_of(number), server.pid
    async with at_work(bus, state) as host:
        await said(bus, PANE_SEEN, name, lambda seen: seen.agent == "claude")
        os.kill(pid, signal.SIGSTOP)
        try:
            async for _ in Deadline(10, "the silence is noticed"):
                if any("no answer" in line for line in host.sight().blind):
                    break
            assert (await bus.last(PANE_SEEN, HOST, name)).body.live
            assert name in host.terminals.known
        finally:
            os.kill(pid, signal.SIGCONT)


async def test_what_ended_while_pane_host_was_away_is_said_when_it_is_back(bus, server, state):
    closed, kept = server.open(an_agent("claude")), server.open(an_agent("codex"))
    names = [server.name_of(number) for number in (closed, kept)]
    async with at_work(bus, state):
        before = [await said(bus, PANE_SEEN, name, lambda seen: seen.agent is not None) for name in names]
    server.tmux("kill-pane", "-t", closed)
    async with at_work(bus, state):
        await said(bus, PANE_SEEN, names[0], lambda seen: not seen.live)
        again = await said(bus, PANE_SEEN, names[1], lambda seen: seen.life != before[1].life)
    # The same process has the same identity in every life of pane-host.
    assert (again.process, again.agent) == (before[1].process, "codex")


async def test_a_server_that_died_while_pane_host_was_away_is_proven_gone_from_memory(bus, server, state):
    name = server.name_of(server.open(an_agent("claude")))
    async with at_work(bus, state):
        await said(bus, PANE_SEEN, name, lambda seen: seen.agent == "claude")
    server.end()
    async with at_work(bus, state):
        await said(bus, PANE_SEEN, name, lambda seen: not seen.live)


async def test_a_look_that_comes_before_the_former_values_are_heard_loses_no_proof(bus, server, state):
    name = server.name_of(server.open(an_agent("claude")))
    async with at_work(bus, state):
        await said(bus, PANE_SEEN, name, lambda seen: seen.agent == "claude")
    server.end()
    terminals = build(bus, PaneHostSettings(host=HOST), state, state.parent).terminals
    await terminals.look({})
    assert [known.socket for known in recall(state).servers] == [server.socket]
    terminals.former_heard = True
    await terminals.look({})
    assert recall(state).servers == ()


async def test_a_terminal_of_a_server_that_was_never_seen_is_not_declared_dead(bus, server, state):
    stranger = PaneSeen(host=HOST, pane="other.4194304.1", life="before", at_ms=1, locator="/nowhere/other %1")
    await bus.say(PANE_SEEN, stranger)
    name = server.name_of(server.open(an_agent("claude")))
    async with at_work(bus, state) as host:
        await said(bus, PANE_SEEN, name, lambda seen: seen.agent == "claude")
        async for _ in Deadline(5, "the former value was heard"):
            if stranger.pane in host.terminals.former:
                break
        await host.terminals.look({})
        assert (await bus.last(PANE_SEEN, HOST, stranger.pane)).body == stranger


async def test_a_persons_key_is_said_for_the_pane_that_it_went_to(bus, server, state):
    number = server.open("exec cat")
    name = server.name_of(number)
    async with at_work(bus, state):
        await said(bus, PANE_SEEN, name, lambda seen: seen.last_key_ms is None)
        terminal = server.attach()
        async for _ in Deadline(10, "the key is said"):
            os.write(terminal, b"x")
            seen = (await bus.last(PANE_SEEN, HOST, name)).body
            if seen.last_key_ms is not None:
                break
    assert seen.last_key_ms % 1000 == 0
    assert abs(seen.last_key_ms - seen.at_ms) < 30_000


# ------------------------------------------------------------ transcripts


def interruption(turn: str) -> str:
    row = {
        "type": "user",
        "promptId": turn,
        "sessionId": "s1",
        "message": {"content": [{"type": "text", "text": "[Request interrupted by user]"}]},
    }
    return json.dumps(row) + "\n"


def a_turn(transcript: Path, **fields):
    now_ms = SystemClock().now_ms()
    turns = (TurnSeen(number=1, started_ms=now_ms),)
    return a_status(**({"host": HOST, "transcript": str(transcript), "turns": turns, "cwd": str(transcript.parent)} | fields))


@pytest.fixture
def transcript(state):
    file = state.parent / ".claude" / "projects" / "app" / "s1.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("{}\n")
    return file


async def test_an_interruption_is_said_with_the_terminal_in_which_it_happened(bus, server, state, transcript):
    number = server.open(an_agent("claude"))
    name = server.name_of(number)
    async with at_work(bus, state) as host:
        await said(bus, PANE_SEEN, name, lambda seen: seen.agent == "claude")
        await bus.say(PANE_STATUS, a_turn(transcript, pane=name))
        async for _ in Deadline(5, "the transcript is followed"):
            if host.transcripts.followed:
                break
        with transcript.open("a") as file:
            file.write(interruption("p1"))
        seen = await said(bus, PANE_SEEN, name, lambda seen: bool(seen.marks))
        assert (seen.agent, seen.locator) == ("claude", f"{server.socket} {number}")
        (mark,) = seen.marks
        assert (mark.number, mark.kind, mark.session, mark.turn) == (1, MarkKind.INTERRUPTED, "s1", "p1")


async def test_a_session_without_a_terminal_here_has_its_marks_said_and_nothing_else(bus, server, state, transcript):
    async with at_work(bus, state):
        await bus.say(PANE_STATUS, a_turn(transcript, pane="s-1"))
        transcript.write_text(interruption("p1"))
        seen = await said(bus, PANE_SEEN, "s-1", lambda seen: bool(seen.marks))
    assert (seen.live, seen.locator, seen.agent, seen.process, seen.cwd) == (True, None, None, None, None)


async def test_a_transcript_that_another_hosts_hook_names_is_not_read(bus, server, state, transcript):
    transcript.write_text(interruption("p1"))
    async with at_work(bus, state) as host:
        await bus.say(PANE_STATUS, a_turn(transcript, host="elsewhere", pane="s-1"))
        await bus.say(PANE_STATUS, a_turn(transcript.with_name("mine.jsonl"), pane="s-2"))
        async for _ in Deadline(5, "this host's own status was heard"):
            if "s-2" in host.statuses:
                break
        assert set(host.statuses) == {"s-2"}


# ------------------------------------------------------------ worktrees


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@localhost", *words], cwd=folder, check=True, capture_output=True)


def repository(folder: Path) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-b", "main")
    git(folder, "commit", "--allow-empty", "-m", "one")
    return folder.resolve()


async def test_worktrees_are_said_from_settings_terminals_and_hooks(bus, server, state, tmp_path):
    configured, shown, hooked = (repository(tmp_path / name) for name in ("configured", "shown", "hooked"))
    server.open("exec bash --norc", shown)
    async with at_work(bus, state, repositories=str(configured)):
        await bus.say(PANE_STATUS, a_status(host=HOST, pane="s-1", state=State.DONE, cwd=str(hooked)))
        for folder in (configured, shown, hooked):
            known = await said(bus, WORKTREE_KNOWN, worktree_id(HOST, str(folder)), lambda known: known.dirty is False)
            assert (known.path, known.name, known.branch) == (str(folder), folder.name, "main")


async def test_a_removed_worktree_gets_one_tombstone_also_when_it_went_while_pane_host_was_away(bus, server, state, tmp_path):
    main = repository(tmp_path / "app")
    for name in ("one", "two"):
        git(main, "worktree", "add", "-b", name, f"../{name}")
    one, two = (worktree_id(HOST, str(main.parent / name)) for name in ("one", "two"))
    async with at_work(bus, state, repositories=str(main)):
        for name in (one, two):
            await said(bus, WORKTREE_KNOWN, name, lambda known: not known.removed)
        git(main, "worktree", "remove", "../one")
        await said(bus, WORKTREE_KNOWN, one, lambda known: known.removed)
    git(main, "worktree", "remove", "../two")
    # Nothing but what an earlier life said leads there any more.
    async with at_work(bus, state):
        await said(bus, WORKTREE_KNOWN, two, lambda known: known.removed)
        assert not (await bus.last(WORKTREE_KNOWN, HOST, worktree_id(HOST, str(main)))).body.removed


# ------------------------------------------------------------ the bus


async def test_after_the_bus_has_lost_its_memory_everything_is_said_again(bus, nats_server, server, state, tmp_path):
    main = repository(tmp_path / "app")
    name = server.name_of(server.open(an_agent("claude"), main))
    async with at_work(bus, state):
        await said(bus, WORKTREE_KNOWN, worktree_id(HOST, str(main)), lambda known: True)
        await said(bus, PANE_SEEN, name, lambda seen: seen.agent == "claude")
        nats_server.end(signal.SIGKILL)
        nats_server.start()
        async for _ in Deadline(15, "all is said again"):
            try:
                lasts = [
                    await bus.last(PANE_SEEN, HOST, name),
                    await bus.last(PANE_TITLED, HOST, name),
                    await bus.last(WORKTREE_KNOWN, HOST, worktree_id(HOST, str(main))),
                ]
            except Unavailable:
                continue
            if all(lasts):
                break


class FlakyBus:
    """Takes what it is told, unless it is away; counts its births."""

    def __init__(self) -> None:
        self.away = False
        self.born = "1"
        self.asked = 0
        self.refused = 0
        self.returns = 0
        self.said: list[object] = []

    async def say_all(self, subject, bodies) -> None:
        if self.away:
            self.refused += 1
            raise Unavailable("away")
        self.said += bodies

    async def birth(self, subject) -> str:
        if self.away:
            raise Unavailable("away")
        self.asked += 1
        return self.born


class Awake(SystemClock):
    def __init__(self) -> None:
        self.now = 1_000_000

    def awake_ms(self) -> int:
        return self.now


def seen_at(at_ms: int, **fields) -> PaneSeen:
    return PaneSeen(host=HOST, pane="p1", life="l", at_ms=at_ms, **fields)


@pytest.fixture
async def speaking(monkeypatch):
    """A bus that can go away, and what speaks to it; in haste, so that no test waits."""
    monkeypatch.setattr(last_values, "RETRY_S", 0.005)
    bus, clock = FlakyBus(), Awake()
    values = LastValues(bus, clock, Skew())
    family = values.family(PANE_SEEN)
    async with running(values.run()):
        yield bus, clock, family


async def has_said(bus, expected):
    async for _ in Deadline(5, f"{len(expected)} values are said: {expected}"):
        if bus.said == expected:
            return


async def test_what_says_nothing_new_is_not_said_again_but_renews_its_moment(speaking):
    bus, clock, family = speaking
    family.put(seen_at(1))
    await has_said(bus, [seen_at(1)])
    assert not family.put(seen_at(2))
    clock.now += last_values.AGAIN_EVERY_MS
    await has_said(bus, [seen_at(1), seen_at(2)])


async def test_while_the_bus_is_away_only_the_latest_value_waits(speaking):
    bus, _, family = speaking
    bus.away = True
    family.put(seen_at(1, agent="claude"))
    family.put(seen_at(2, agent="codex"))
    await asyncio.sleep(0)
    bus.away = False
    await has_said(bus, [seen_at(2, agent="codex")])


async def test_a_final_value_is_forgotten_only_when_it_is_on_record(speaking):
    bus, _, family = speaking
    bus.away = True
    family.put(seen_at(1, live=False), final=True)
    async for _ in Deadline(5, "it was tried"):
        if bus.refused:
            break
    assert list(family.values.values()) == [seen_at(1, live=False)]
    bus.away = False
    await has_said(bus, [seen_at(1, live=False)])
    assert family.values == {}


async def test_a_memory_that_was_born_anew_is_refilled_at_once(speaking):
    bus, _, family = speaking
    family.put(seen_at(1))
    await has_said(bus, [seen_at(1)])
    async for _ in Deadline(5, "the birth was looked at"):
        if bus.asked:
            break
    bus.born = "2"
    bus.returns += 1
    await has_said(bus, [seen_at(1), seen_at(1)])


async def test_a_connection_that_came_back_with_the_same_memory_repeats_nothing(speaking):
    bus, _, family = speaking
    family.put(seen_at(1))
    async for _ in Deadline(5, "the birth was looked at"):
        if bus.asked:
            break
    bus.returns += 1
    async for _ in Deadline(5, "the birth was looked at again"):
        if bus.asked > 1:
            break
    family.put(seen_at(2, agent="claude"))
    await has_said(bus, [seen_at(1), seen_at(2, agent="claude")])


# ------------------------------------------------------------ what cannot be seen


async def test_without_tmux_it_runs_and_says_what_it_cannot_see(bus, state, tmp_path, monkeypatch):
    main = repository(tmp_path / "app")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "git").symlink_to(shutil.which("git"))
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr(service, "SIGHT_EVERY_S", 0.05)
    async with at_work(bus, state, repositories=f"{main}:{tmp_path}/none"):
        await said(bus, WORKTREE_KNOWN, worktree_id(HOST, str(main)), lambda known: not known.removed)
        async for _ in Deadline(5, "the sight is left for doctor"):
            seen = await sight(state)
            if seen["running"] and seen.get("repositories") == 1:
                break
    assert list(seen["blind"]) == [
        "tmux is not installed: agents are known by their hooks alone",
        f"{tmp_path}/none is configured and not there",
    ]
    assert seen["host"] == HOST


async def test_spooled_events_wait_for_ingest_and_are_delivered_soon_after_it_is_back(bus, server, state):
    folder = state / "spool"
    folder.mkdir()
    event = b'tocsin-hook 1 claude\nX-Tocsin-Sent: 1796000000001\n\n{"n":1}\n\ntocsin-hook-end\n'
    (folder / "1796000000001-7-4-event.hook").write_bytes(event)
    taken: list[bytes] = []

    async def ingest(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        taken.append(head.split(b"\r\n")[0] + b" " + await reader.readexactly(8))
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        writer.close()

    async with at_work(bus, state) as host:
        async for _ in Deadline(5, "it is told that events wait"):
            if "events wait in the spool: there is no endpoint file" in host.sight().blind:
                break
        listening = await asyncio.start_server(ingest, "127.0.0.1", 0)
        async with listening:
            write_endpoint(state, f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}", "i.secret", "tocsin.test")
            async for _ in Deadline(8, "the spool is empty"):
                if not list(folder.glob("*.hook")):
                    break
    assert taken == [b'POST /hook/claude HTTP/1.1 {"n":1}\n']


async def test_hook_commands_are_told_when_the_boot_began_and_again_when_the_clock_was_set(bus, server, state, tmp_path, monkeypatch):
    monkeypatch.setattr(service, "SIGHT_EVERY_S", 0.05)
    kernel = tmp_path / "proc"
    (kernel / "sys/kernel/random").mkdir(parents=True)
    (kernel / "sys/kernel/random/boot_id").write_text("b007\n")

    async def began_ms(uptime: str) -> int:
        (kernel / "uptime").write_text(uptime)
        near_ms = SystemClock().now_ms() - float(uptime.split()[0]) * 1000
        async for _ in Deadline(5, "the clock is right"):
            clock = read_hook_clock(state)
            if clock and abs(clock.began_ms - near_ms) < 5_000:
                return clock.began_ms
        raise AssertionError

    async with at_work(bus, state) as host:
        host.boot_clock.proc = kernel
        assert await began_ms("100.00 1.00\n") - await began_ms("3700.00 1.00\n") > 3_590_000


async def test_a_state_folder_without_a_pane_host_says_so(state):
    seen = await sight(state)
    assert seen["running"] is False
    assert "tocsin pane-host" in seen["blind"][0]


async def test_a_second_pane_host_of_one_instance_stands_by_until_the_first_has_ended(state):
    first = await alone(state)
    second = asyncio.create_task(alone(state))
    done, _ = await asyncio.wait({second}, timeout=0.05)
    assert not done
    os.close(first)
    os.close(await asyncio.wait_for(second, 5))


async def test_the_command_runs_it_in_the_foreground_and_a_stop_is_clean_and_claims_nothing(bus, nats_server, server, state):
    name = server.name_of(server.open(an_agent("claude")))
    words = [sys.executable, "-m", "tocsin.cli.main", "pane-host", "--state", str(state), "--nats", nats_server.url, "--host", HOST]
    environment = os.environ | {"HOME": str(state.parent), "TOCSIN_BEAT_FILE": str(state.parent / "beat")}
    process = await asyncio.create_subprocess_exec(*words, env=environment, stderr=subprocess.DEVNULL)
    try:
        await said(bus, PANE_SEEN, name, lambda seen: seen.agent == "claude")
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 10) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert (await bus.last(PANE_SEEN, HOST, name)).body.live
