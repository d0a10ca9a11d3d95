"""`tocsin open` against a running console, and a jump from the page to a real tmux."""

import asyncio
import json
import stat
from collections.abc import AsyncIterator

import httpx
import pytest

from console_builders import Console, a_console, a_row, announce, tocsin
from support import Deadline
from tmux_server import TmuxServer
from tocsin.cli.open import DOOR
from tocsin.contract.messages import Evidence, PaneRow, State
from tocsin.runtime import instance


@pytest.fixture
async def console(tmp_path, bus, store) -> AsyncIterator[Console]:
    async with a_console(tmp_path / "state", bus, store) as running:
        announce(running)
        yield running


async def tocsin_open(console: Console, *words: str, **environment: str) -> tuple[int, str, str]:
    return await tocsin("open", "--state", str(console.state), *words, **environment)


async def log_in(console: Console, address: str) -> httpx.Response:
    async with console.client(Origin=console.url) as client:
        return await client.post("/api/login", json={"ticket": address.partition("#ticket=")[2].strip()})


async def test_the_printed_address_is_good_for_one_login(console):
    code, out, _ = await tocsin_open(console, "--print")
    assert code == 0
    assert out.startswith(f"{console.url}/#ticket=")
    assert (await log_in(console, out)).json()["scope"] == "command"
    assert (await log_in(console, out)).status_code == 401


async def test_a_session_to_read_only_is_asked_for_by_a_word(console):
    _, out, _ = await tocsin_open(console, "--read-only", "--json")
    assert (await log_in(console, json.loads(out)["url"])).json()["scope"] == "read"


async def test_the_browser_is_given_a_private_file_and_no_ticket_in_its_arguments(console, tmp_path):
    seen = tmp_path / "argv"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$*" > {seen}\n')
    browser.chmod(0o700)
    code, out, err = await tocsin_open(console, BROWSER=str(browser))
    assert (code, out, err) == (0, "", "")
    door = console.state / DOOR
    assert seen.read_text() == door.as_uri()
    assert stat.S_IMODE(door.stat().st_mode) == 0o600
    address = door.read_text().partition("url=")[2].partition('"')[0]
    assert (await log_in(console, address)).status_code == 200


@pytest.mark.parametrize(("url", "code", "said"), [(None, 4, "no console runs"), ("http://127.0.0.1:9", 4, "does not answer")])
async def test_without_a_console_it_says_so(console, url, code, said):
    announce(console, url)
    got, _, err = await tocsin_open(console, "--print")
    assert got == code
    assert said in err
    assert "next:" in err


async def test_another_instances_credential_is_refused(console):
    instance.write_private(console.state / instance.COMMAND_CREDENTIAL, b"other.0123456789abcdef0123456789\n")
    code, _, err = await tocsin_open(console, "--print")
    assert code == 3
    assert "another instance's" in err


async def test_a_jump_brings_the_pane_in_front_in_the_terminal_that_its_person_uses(console):
    tmux = TmuxServer()
    try:
        tmux.open("sleep 300", session="one")
        target = tmux.open("sleep 300", session="two")
        other = tmux.open("sleep 300", session="two2")
        panes = [
            PaneRow(id=name, agent="claude", state=State.IDLE, evidence=Evidence.OBSERVED, since_ms=1, reason="rests", locator=f"{tmux.socket} {pane}")
            for name, pane in (("first", target), ("second", other))
        ]  # fmt: skip
        async with console.client(**console.bearer()) as client:
            await console.say(a_row("api", panes=tuple(panes)), a_row("far", host="elsewhere", panes=tuple(panes)))
            async for _ in Deadline(10, "the list"):
                if (await client.get("/api/worktrees")).status_code == 200:
                    break
            nobody = (await client.post("/api/jump", json={"worktree": "api-id"})).json()
            assert nobody["command"] == f"tmux -S {tmux.socket} attach-session -t {target}"
            await asyncio.to_thread(tmux.attach)
            for pane, number in ((None, target), ("second", other), ("first", target)):
                told = (await client.post("/api/jump", json={"worktree": "api-id", "pane": pane})).json()
                assert told["selected"], told
                assert tmux.tmux("list-clients", "-F", "#{pane_id}") == number
            far = (await client.post("/api/jump", json={"worktree": "far-id"})).json()
            assert (far["selected"], far["host"]) == (False, "elsewhere")
    finally:
        tmux.close()
