"""pane-host's eyes on real tmux servers: what is asked, what is proven, and that a look leaves no trace."""

import os
import shlex
import signal

import pytest

from support import Deadline
from tmux_server import TmuxServer, an_agent, title
from tocsin.contract.ids import tmux_pane
from tocsin.pane_host.core import keys
from tocsin.pane_host.core.facts import pane_id
from tocsin.pane_host.processes import boot_began_ms, table_of_this_machine
from tocsin.pane_host.tmux import Tmux


@pytest.fixture
def server(monkeypatch):
    made = TmuxServer()
    monkeypatch.setenv("TMUX_TMPDIR", str(made.folder))
    monkeypatch.delenv("TMUX", raising=False)
    yield made
    made.close()


def eyes(*configured: str) -> Tmux:
    return Tmux(configured, table_of_this_machine(boot_began_ms()).started_ms)


async def seen(tmux: Tmux):
    """What the only server shows."""
    (look,) = await tmux.look()
    assert look.listing is not None, look.why
    return look


async def test_a_pane_has_the_name_that_its_own_environment_gives_it(server, tmp_path):
    told = tmp_path / "told"
    number = server.open(f'printf "%s %s" "$TMUX" "$TMUX_PANE" >{told}.part; mv {told}.part {told}; exec sleep 300')
    for _ in Deadline(5, "the pane has told its environment"):
        if told.exists():
            break
    variable, own_number = told.read_text().split(" ")
    look = await seen(eyes())
    (pane,) = look.listing.panes
    assert own_number == number
    assert pane_id(look.server, pane.number) == tmux_pane(variable.rpartition(",")[0], own_number) == server.name_of(number)


async def test_titles_and_folders_come_as_they_are(server, tmp_path):
    odd = tmp_path / "new\nline ⠋ #{pane_id}"
    odd.mkdir()
    server.open(f"cd {shlex.quote(str(odd))}; printf '{title('⠋ Mend it | app')}'; exec sleep 300")
    tmux = eyes()
    async for _ in Deadline(5, "the title is shown"):
        (pane,) = (await seen(tmux)).listing.panes
        if (pane.title, pane.path) == ("⠋ Mend it | app", str(odd)):
            break


async def test_titles_are_read_whatever_the_locale(server, monkeypatch):
    monkeypatch.setenv("LC_ALL", "C")
    server.open(f"printf '{title('✋ wanted')}'; exec sleep 300")
    tmux = eyes()
    async for _ in Deadline(5, "the title is shown"):
        if [pane.title for pane in (await seen(tmux)).listing.panes] == ["✋ wanted"]:
            break


async def test_every_server_in_tmuxs_folder_and_every_configured_socket_is_looked_at(server, monkeypatch):
    server.open("exec sleep 300")
    second, elsewhere = TmuxServer("second"), TmuxServer("elsewhere")
    try:
        second.environment["TMUX_TMPDIR"] = str(server.folder)
        second.open("exec sleep 300")
        elsewhere.open("exec sleep 300")
        looks = await eyes(elsewhere.socket, server.socket).look()
        assert sorted(look.socket for look in looks) == sorted(
            [server.socket, f"{server.folder}/tmux-{os.getuid()}/second", elsewhere.socket]
        )
        assert all(look.listing.complete for look in looks)
    finally:
        second.close()
        elsewhere.close()


async def test_a_dead_pane_that_stays_is_shown_as_dead(server):
    server.open("exec sleep 300")
    server.tmux("set-option", "-g", "remain-on-exit", "on")
    number = server.open("exec true")
    tmux = eyes()
    async for _ in Deadline(5, "the pane is dead"):
        panes = {pane.number: pane.dead for pane in (await seen(tmux)).listing.panes}
        if panes[number]:
            break
    assert sum(panes.values()) == 1


async def test_a_server_without_sessions_answers_completely_that_it_has_no_panes(server):
    number = server.open("exec sleep 300")
    server.tmux("set-option", "-g", "exit-empty", "off")
    server.tmux("kill-pane", "-t", number)
    look = await seen(eyes())
    assert (look.listing.complete, look.listing.panes) == (True, ())


async def test_a_persons_key_counts_in_the_pane_before_them_and_a_programs_text_does_not(server):
    first, second = server.open("exec cat"), server.open("exec cat")
    tmux = eyes()
    terminal = server.attach()
    server.tmux("select-window", "-t", second)
    before = keys.remembered((await seen(tmux)).listing.clients)

    server.tmux("send-keys", "-t", first, "typed by a program")
    await _cat_has(server, first, "typed by a program")
    assert keys.typed(before, (await seen(tmux)).listing.clients) == {}

    pressed: dict[str, int] = {}
    async for _ in Deadline(5, "the key is seen"):
        # Again and again: activity moves in steps of a second.
        os.write(terminal, b"x")
        now = (await seen(tmux)).listing.clients
        pressed |= keys.typed(before, now)
        if pressed:
            break
    assert list(pressed) == [second]


async def _cat_has(server, number, text):
    async for _ in Deadline(5, f"{number} shows {text!r}"):
        if text in server.tmux("capture-pane", "-p", "-t", number):
            return


async def test_a_program_in_control_mode_is_no_person(server):
    server.open("exec cat")
    server.attach("-C")
    server.attach()
    clients = (await seen(eyes())).listing.clients
    assert sorted(client.person for client in clients) == [False, True]


async def test_a_look_attaches_nobody_and_starts_nothing(server):
    assert await eyes().look() == []
    server.open("exec sleep 300")
    await seen(eyes())
    assert server.tmux("list-clients") == ""


async def test_a_socket_whose_server_is_gone_is_asked_no_more_until_another_one_listens_there(server):
    server.open("exec sleep 300")
    tmux = eyes()
    first = await seen(tmux)
    os.kill(server.pid, signal.SIGKILL)
    async for _ in Deadline(5, "the server is gone"):
        if await tmux.look() == []:
            break
    assert tmux.sockets() == []

    server.open("exec sleep 300")
    second = await seen(tmux)
    assert second.server != first.server
    assert second.server.socket == first.server.socket


async def test_a_server_that_does_not_answer_says_nothing_and_holds_nobody_up(server):
    server.open(an_agent("claude"))
    tmux = eyes()
    pid = (await seen(tmux)).server.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        (look,) = await tmux.look()
        assert (look.server, look.listing) == (None, None)
        assert "no answer" in look.why
    finally:
        os.kill(pid, signal.SIGCONT)


async def test_a_server_that_dies_right_after_its_answer_keeps_the_start_time_that_proves_its_end(server):
    server.open("exec sleep 300")
    starts = [5_000, None]
    tmux = Tmux((), lambda pid: starts.pop(0))
    assert (await seen(tmux)).server == (await seen(tmux)).server
    assert starts == []


async def test_without_tmux_there_is_nothing_to_see_and_no_failure(server, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    tmux = eyes()
    assert (await tmux.look(), tmux.program) == ([], None)
