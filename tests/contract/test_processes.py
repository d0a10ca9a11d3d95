"""Agents found below real terminals, and identities that no other process can take over."""

import os
import signal
import subprocess
import sys

import pytest

from support import Deadline
from tmux_server import TmuxServer, an_agent
from tocsin.pane_host.core.liveness import Server
from tocsin.pane_host.memory import Memory, of_this_boot, recall, remember, with_servers
from tocsin.pane_host.processes import PortableTable, ProcTable, Residents, boot_began_ms, boot_id, words_of

BEGAN_MS = boot_began_ms()
TABLES = [PortableTable(), *([ProcTable(BEGAN_MS)] if sys.platform == "linux" else [])]


@pytest.fixture(params=TABLES, ids=lambda table: type(table).__name__)
def residents(request):
    return Residents(request.param, boot_id())


@pytest.fixture
def server():
    made = TmuxServer()
    yield made
    made.close()


def lives_in(residents, server, number, agent):
    """The agent below a pane, once it is the one that is waited for."""
    pid = server.pane_pid(number)
    for _ in Deadline(5, f"{agent} lives in {number}"):
        found = residents.find([pid])
        resident = found.get(pid)
        if pid in found and (resident.agent if resident else None) == agent:
            return resident
    raise AssertionError


def test_an_agent_is_found_with_its_process_and_folder(residents, server, tmp_path):
    number = server.open(an_agent("claude"), tmp_path)
    resident = lives_in(residents, server, number, "claude")
    assert (resident.process.pid, resident.process.boot) == (server.pane_pid(number), boot_id())
    assert resident.cwd == os.path.realpath(tmp_path)
    assert residents.alive(resident.process)


def test_an_agent_is_found_below_a_shell_and_missed_when_it_has_left(residents, server):
    number = server.open("exec bash --norc")
    lives_in(residents, server, number, None)
    server.tmux("send-keys", "-t", number, f"({an_agent('codex')})", "Enter")
    resident = lives_in(residents, server, number, "codex")
    assert resident.process.pid != server.pane_pid(number)
    os.kill(resident.process.pid, 15)
    assert lives_in(residents, server, number, None) is None
    assert not residents.alive(resident.process)


def test_the_agent_in_front_is_the_one_that_a_person_sees(residents, server):
    number = server.open("exec bash --norc -m")
    server.tmux("send-keys", "-t", number, f"({an_agent('claude')})", "Enter")
    stopped = lives_in(residents, server, number, "claude")
    server.tmux("send-keys", "-t", number, "C-z")
    server.tmux("send-keys", "-t", number, f"({an_agent('codex')})", "Enter")
    lives_in(residents, server, number, "codex")
    assert residents.alive(stopped.process)


def test_a_daemon_without_a_terminal_is_not_in_the_pane(residents, server, tmp_path):
    told = tmp_path / "pid"
    program = f"import os; os.fork() or (os.setsid(), open('{told}', 'w').write(str(os.getpid())), os.execvp('sleep', ['codex', '300']))"
    number = server.open(f'python3 -c "{program}"; exec sleep 300')
    for _ in Deadline(5, "the daemon has started"):
        if told.exists() and told.read_text() and words_of(int(told.read_text()))[:1] == ("codex",):
            break
    try:
        assert lives_in(residents, server, number, None) is None
    finally:
        os.kill(int(told.read_text()), signal.SIGKILL)


def test_a_terminal_that_cannot_be_seen_is_left_out_rather_than_called_empty(residents):
    over = subprocess.Popen(["true"])
    over.wait()
    assert residents.find([over.pid]) == {}


def test_start_times_are_the_same_at_every_look_and_tell_processes_apart(residents):
    first = residents.table.started_ms(os.getpid())
    assert first == residents.table.started_ms(os.getpid())
    child = subprocess.Popen(["sleep", "300"])
    try:
        assert residents.table.started_ms(child.pid) >= first
    finally:
        child.kill()
    # Killed and not yet collected: it is no more.
    for _ in Deadline(5, "the child is over"):
        if residents.table.started_ms(child.pid) is None:
            break
    child.wait()


def test_start_times_stay_the_same_when_the_clock_was_set_between_two_lives(tmp_path):
    first = of_this_boot(recall(tmp_path), "boot", BEGAN_MS)
    remember(tmp_path, first)
    again = of_this_boot(recall(tmp_path), "boot", BEGAN_MS + 3_600_000)
    assert again.began_ms == BEGAN_MS


def test_the_servers_of_an_earlier_boot_are_known_to_be_over(tmp_path):
    remember(tmp_path, with_servers(Memory("before", 1), [Server("/s", 7, 5_000), Server("/unseen", 8, None)]))
    (server,) = of_this_boot(recall(tmp_path), "now", 2).servers
    assert (server.socket, server.pid, server.started_ms) == ("/s", 7, 0)


def test_a_damaged_memory_is_none(tmp_path):
    (tmp_path / "pane-host.json").write_text("{")
    assert recall(tmp_path) is None
