"""A leaf of the bus, as `tocsin join` writes it and as infra/nats/leaf.conf shows it: what is said and asked there reaches the hub."""

import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from conftest import program
from support import Deadline
from tocsin.bus.bus import Unavailable
from tocsin.bus.nats_bus import connect
from tocsin.cli import embedded
from tocsin.cli.bring_up import start_nats
from tocsin.cli.supervisor import Supervisor
from tocsin.contract.messages import HostKnown
from tocsin.contract.subjects import HOST_KNOWN
from tocsin.runtime import instance

RECIPE = Path(__file__).parents[2] / "infra" / "nats" / "leaf.conf"


@pytest.fixture
async def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[str, str, str]]:
    """An instance's bus: its own address, that for leaves, and the login of a host."""
    monkeypatch.delenv("NATS_URL", raising=False)
    state = tmp_path / "s"
    instance.create(state)
    leaves = f"127.0.0.1:{embedded.free_port(None, 17422)}"
    monkeypatch.setenv("TOCSIN_LEAF_LISTEN", leaves)
    lock = instance.take_lock(state)
    assert lock is not None
    supervisor = Supervisor(state, lock, lambda line: None)
    url, _ = await start_nats(state, supervisor, {})
    async with connect(url, name="services", state=state):
        yield url, f"nats://{leaves}", instance.credential(state, instance.NATS_HOST_CREDENTIAL) or ""
    await supervisor.stop()
    os.close(lock)


def a_server(config: Path, environment: dict[str, str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([program("nats-server"), "-c", str(config), "-l", str(config.with_suffix(".log"))], env=environment)


@pytest.mark.parametrize("written_by", ["join", "recipe"])
async def test_a_host_behind_a_leaf_says_and_asks_as_if_it_were_beside_the_hub(hub: tuple[str, str, str], tmp_path: Path, written_by: str):
    _, leaves, login = hub
    user, _, password = login.partition(":")
    listen = f"127.0.0.1:{embedded.free_port(None, 17432)}"
    environment = dict(os.environ)
    config = tmp_path / "leaf.conf"
    if written_by == "join":
        config.write_text(embedded.leaf_config(name="leaf", listen=listen, hub=leaves, login=login, authority=None))
    else:
        config.write_text(RECIPE.read_text())
        given = {"LISTEN": listen, "HUB": f"nats://{login}@{leaves.rpartition('/')[2]}", "USER": user, "PASSWORD": password}
        environment |= {f"LEAF_{name}": f'"{value}"' for name, value in given.items()}
    leaf = a_server(config, environment)
    far = tmp_path / "far"
    far.mkdir()
    instance.write_private(far / instance.NATS_CREDENTIAL, login.encode())
    try:
        word = HostKnown(host="far", at_ms=1, machine="m", boot="b", label="l", version="1")
        async with connect(f"nats://{listen}", name="pane-host", state=far, makes_streams=False) as bus:
            async for _ in Deadline(20, "the leaf has found its hub"):
                try:
                    assert await bus.say(HOST_KNOWN, word, after=0) > 0
                    break
                except Unavailable:
                    continue
            last = await bus.last(HOST_KNOWN, "far")
            assert last is not None
            assert last.body == word
            assert abs(await bus.clock_ahead_ms()) < 1_000
            async with bus.follow(HOST_KNOWN) as reading:
                async for batch in reading:
                    if not batch:
                        break
                    assert [heard.body for heard in batch] == [word]
    finally:
        leaf.terminate()
        leaf.wait()
