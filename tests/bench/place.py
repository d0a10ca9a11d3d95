"""Where a question is asked: servers and services of its own, on free ports, ended with it."""

import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from conftest import NatsServer, ValkeyServer
from support import Service
from tocsin.bus.nats_bus import NatsBus, connect
from tocsin.cli.bench.chain import HOST
from tocsin.cli.bench.site import wait_for_file
from tocsin.runtime import instance


@dataclass
class Place:
    """A running system: its bus, its store, its instance's folder, its processes."""

    bus: NatsBus
    nats_url: str
    redis_url: str
    state: Path
    ending: ExitStack
    pids: dict[str, int]

    def start(self, module: str, **more: str) -> None:
        """One service at work; `more`: of its environment."""
        environment = {"NATS_URL": self.nats_url, "REDIS_URL": self.redis_url, "TOCSIN_HOST": HOST, "TOCSIN_INGEST_PORT": "0", **more}
        service = self.ending.enter_context(Service(module, self.state, **environment))
        assert service.process is not None
        self.pids[module] = service.process.pid

    def port_file(self, name: str) -> Path:
        """Where something that listens writes its port."""
        return self.state / f"{name}.port"

    def port(self, name: str) -> int:
        """The port that is written there."""
        return int(wait_for_file(self.port_file(name), name))


@asynccontextmanager
async def serving(*modules: str) -> AsyncIterator[Place]:
    """These services at work, each as a process, over a NATS that syncs each write and a Valkey."""
    with ExitStack() as ending:
        # Unix socket paths must stay under 100 bytes.
        folder = Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="tb", ignore_cleanup_errors=True)))
        state = folder / "state"
        instance.create(state)
        nats, valkey = NatsServer(folder / "n"), ValkeyServer(folder / "v")
        for server in (nats, valkey):
            ending.callback(server.end)
            server.start()
        async with connect(nats.url, name="bench") as bus:
            place = Place(bus, nats.url, valkey.url, state, ending, {"bench": os.getpid()})
            for module in modules:
                place.start(module, TOCSIN_INGEST_PORT_FILE=str(place.port_file("ingest")))
            yield place
