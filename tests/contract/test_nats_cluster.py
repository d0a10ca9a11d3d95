"""The bus over three nodes: what is kept on all of them, who may join, and what the loss of one costs."""

import asyncio
import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders import a_hook, a_status
from conftest import program
from support import Deadline, settled
from tocsin.bus.bus import Unavailable
from tocsin.bus.nats_bus import NatsBus, connect
from tocsin.bus.streams import all_streams
from tocsin.cli import embedded
from tocsin.cli.look_around import look_at_bus
from tocsin.contract.messages import Kind
from tocsin.contract.subjects import HOOK_REPORTED, PANE_STATUS
from tocsin.runtime import instance

LOGINS = {"service": "service:s", "console": "console:c", "reader": "reader:r", "monitor": "monitor:m", "host": "host:h"}
SYNC_S_MAX = 30
"""An election takes up to 9 s by NATS's own limits, and a reader notices 15 s of silence."""


class Cluster:
    """Nodes on free ports, with the configuration that containers get."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with (
            socket.create_server(("127.0.0.1", 0)) as a,
            socket.create_server(("127.0.0.1", 0)) as b,
            socket.create_server(("127.0.0.1", 0)) as c,
        ):
            self.routes = tuple(f"127.0.0.1:{one.getsockname()[1]}" for one in (a, b, c))
        self.nodes: dict[str, subprocess.Popen[bytes]] = {}
        self.urls: dict[str, str] = {}

    def start(self, name: str, route: str, login: str = "route:x") -> None:
        config = json.loads(
            embedded.nats_config(
                name=name, listen="127.0.0.1:-1", store=str(self.folder / name), logins=LOGINS,
                cluster=embedded.Cluster(listen=route, routes=self.routes, login=login),
            )
        ) | {"ports_file_dir": str(self.folder)}  # fmt: skip
        file = self.folder / f"{name}.conf"
        file.write_text(json.dumps(config))
        self.nodes[name] = process = subprocess.Popen([program("nats-server"), "-c", str(file), "-l", str(self.folder / f"{name}.log")])
        ports = self.folder / f"nats-server_{process.pid}.ports"
        for _ in Deadline(10, f"{name} listens"):
            if ports.exists() and ports.read_text().strip():
                break
        self.urls[name] = json.loads(ports.read_text())["nats"][0].replace("nats://", "nats://service:s@")

    def end(self, name: str, number: int) -> None:
        process = self.nodes.pop(name)
        process.send_signal(number)
        process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    one = Cluster(tmp_path)
    for number, route in enumerate(one.routes):
        one.start(f"n{number}", route)
    yield one
    for name in list(one.nodes):
        one.end(name, signal.SIGKILL)


async def told(bus: NatsBus, subject) -> dict:
    return await bus._stream_info(subject)


async def test_each_stream_is_kept_on_as_many_nodes_as_the_setting_says(cluster):
    async with connect(cluster.urls["n0"], name="test", replicas=3) as bus:
        for config in all_streams(3):
            info = await bus._jetstream.stream_info(config.name)
            assert info.config.num_replicas == 3, config.name


async def test_streams_of_one_node_are_spread_when_the_setting_comes_and_stay_so_for_those_who_do_not_have_it(cluster):
    async with connect(cluster.urls["n0"], name="test") as bus:
        await bus.say(HOOK_REPORTED, a_hook(Kind.NOTED, id="before"))
    for replicas in (3, None):
        async with connect(cluster.urls["n1"], name="test", replicas=replicas) as bus:
            info = await told(bus, HOOK_REPORTED)
            assert (info["config"]["num_replicas"], info["state"]["messages"]) == (3, 1)


async def test_what_was_acknowledged_is_asked_of_the_leader_because_another_node_may_lag_behind(cluster):
    async with connect(cluster.urls["n0"], name="test", replicas=3) as bus, connect(cluster.urls["n1"], name="spy") as spy:
        asked_of_any: list[str] = []

        async def note(message) -> None:
            asked_of_any.append(message.subject)

        await spy.client.subscribe("$JS.API.DIRECT.GET.>", cb=note)
        await settled(spy.client)
        seq = await bus.say(PANE_STATUS, a_status(host="h", pane="p", seq=7))
        last = await bus.last(PANE_STATUS, "h", "p")
        assert (last.seq, await bus.end_of(PANE_STATUS, "h", "p")) == (seq, seq)
        await settled(spy.client)
        assert asked_of_any == []


async def test_a_node_that_is_killed_takes_nothing_with_it_and_readers_and_sayers_go_on(cluster):
    acknowledged: list[int] = []
    heard: list[int] = []
    async with connect(cluster.urls["n0"], name="sayer", replicas=3) as bus:
        acknowledged += [await bus.say(HOOK_REPORTED, a_hook(Kind.NOTED)) for _ in range(50)]
        leader = (await told(bus, HOOK_REPORTED))["cluster"]["leader"]
    victim, other = leader, next(name for name in cluster.nodes if name != leader)

    async def read(bus: NatsBus) -> None:
        async with bus.read(HOOK_REPORTED, after=0) as reading:
            async for batch in reading:
                heard.extend(one.seq for one in batch)

    async with connect(cluster.urls[other], name="reader", replicas=3) as bus:
        reading = asyncio.create_task(read(bus))
        async for _ in Deadline(SYNC_S_MAX, "what was said is heard"):
            if heard == acknowledged:
                break
        cluster.end(victim, signal.SIGKILL)
        async for _ in Deadline(SYNC_S_MAX, "the bus takes events again"):
            try:
                acknowledged.append(await bus.say(HOOK_REPORTED, a_hook(Kind.NOTED), msg_id="after"))
                break
            except Unavailable:
                continue
        async for _ in Deadline(SYNC_S_MAX, "the reader goes on"):
            if heard == acknowledged:
                break
        reading.cancel()
        await asyncio.wait({reading})


async def test_who_does_not_know_the_login_of_the_nodes_does_not_join(cluster):
    cluster.start("stranger", "127.0.0.1:-1", login="route:guessed")
    log = cluster.folder / "stranger.log"
    for _ in Deadline(20, "the stranger is told"):
        if "Authorization Violation" in log.read_text():
            break
    async with connect(cluster.urls["n0"], name="test", replicas=3) as bus:
        info = await told(bus, HOOK_REPORTED)
        assert {info["cluster"]["leader"], *(one["name"] for one in info["cluster"]["replicas"])} == {"n0", "n1", "n2"}


async def test_doctor_hears_of_the_clients_of_every_node(cluster, tmp_path):
    state = tmp_path / "state"
    for name, login in ((instance.NATS_CREDENTIAL, LOGINS["service"]), (instance.NATS_MONITOR_CREDENTIAL, LOGINS["monitor"])):
        instance.make_folder(state)
        instance.write_private(state / name, login.encode())
    async with (
        connect(cluster.urls["n0"], name="sorter", replicas=3),
        connect(cluster.urls["n1"], name="mailbox"),
        connect(cluster.urls["n2"], name="dispatcher"),
    ):
        server, clients, *_ = await look_at_bus(embedded.without_login(cluster.urls["n0"]), state)
    assert server.answers
    assert {"sorter", "mailbox", "dispatcher"} <= set(clients or ())
