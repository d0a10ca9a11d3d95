"""Wiring: settings, bus and store of one status-store."""

import os
import socket

from tocsin.bus.nats_bus import connect
from tocsin.contract.metrics import STORE_CONNECTIONS
from tocsin.contract.tally import Tally
from tocsin.runtime.clock import SystemClock, boot
from tocsin.runtime.metrics import metered
from tocsin.runtime.run import run
from tocsin.runtime.settings import Settings
from tocsin.status_store.service import StatusStore
from tocsin.status_store.store import PaneStore
from tocsin.store.connection import open_store


async def main() -> None:
    """Be a status-store until cancelled."""
    settings = Settings()
    holder = f"{socket.gethostname()}:{os.getpid()}:{os.urandom(4).hex()}"
    links = Tally(STORE_CONNECTIONS)
    async with (
        metered("status-store", settings) as meter,
        connect(settings.nats_url, name="status-store", state=settings.state, replicas=settings.nats_replicas) as bus,
        open_store(settings.redis_url, settings.state, links) as redis,
    ):
        service = StatusStore(bus, PaneStore(redis, holder, boot()), SystemClock())
        meter.add(bus.samples, links.samples, service.samples)
        await service.run()


if __name__ == "__main__":
    run("status-store", main)
