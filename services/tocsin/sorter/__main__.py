"""Wiring: settings, bus, store, clock."""

import secrets

from tocsin.bus.nats_bus import connect
from tocsin.contract.ids import WorkspaceId
from tocsin.contract.metrics import STORE_CONNECTIONS
from tocsin.contract.tally import Tally
from tocsin.runtime.clock import SystemClock
from tocsin.runtime.memory import keep_freed
from tocsin.runtime.metrics import metered
from tocsin.runtime.run import run
from tocsin.sorter import service
from tocsin.sorter.settings import SorterSettings
from tocsin.sorter.store import ListStore
from tocsin.store.connection import open_store


def new_birth() -> str:
    """A name for a line of lists that continues no other."""
    return secrets.token_hex(6)


async def main() -> None:
    """Be the sorter of one workspace until cancelled."""
    settings = SorterSettings()
    keep_freed()
    links = Tally(STORE_CONNECTIONS)
    async with (
        metered("sorter", settings) as meter,
        connect(settings.nats_url, name="sorter", state=settings.state, replicas=settings.nats_replicas) as bus,
        open_store(settings.redis_url, settings.state, links) as redis,
    ):
        meter.add(bus.samples, links.samples)
        await service.run(bus, ListStore(redis), SystemClock(), WorkspaceId(settings.workspace), new_birth, settings.pace, meter.add)


if __name__ == "__main__":
    run("sorter", main)
