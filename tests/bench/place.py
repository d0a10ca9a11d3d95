"""Where a question is asked: servers and services of its own, on free ports, ended with it."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from conftest import NatsServer, ValkeyServer
from support import Deadline, Service
from tocsin.bus.nats_bus import NatsBus, connect
from tocsin.runtime import instance

HOST = "bench"


@dataclass
class Place:
    """A running system: its bus, its store's socket, its instance's folder."""

    bus: NatsBus
    nats_url: str
    valkey: Path
    state: Path

    def port(self, name: str) -> int:
        """The port that a service has written into its file."""
        file = self.state / f"{name}.port"
        for _ in Deadline(20, f"{name} listens"):
            if file.exists() and file.read_text().strip():
                break
        return int(file.read_text())


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
        environment = {
            "NATS_URL": nats.url, "REDIS_URL": valkey.url, "TOCSIN_HOST": HOST, "TOCSIN_INGEST_PORT": "0",
            "TOCSIN_INGEST_PORT_FILE": str(state / "ingest.port"), "EMPTY_PORT_FILE": str(state / "empty.port"),
        }  # fmt: skip
        for module in modules:
            ending.enter_context(Service(module, state, **environment))
        async with connect(nats.url, name="bench") as bus:
            yield Place(bus, nats.url, valkey.socket, state)
