"""Wiring: settings, bus, store, clock."""

import secrets

from tocsin.bus.nats_bus import connect
from tocsin.contract.ids import WorkspaceId
from tocsin.runtime.clock import SystemClock
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
    async with (
        connect(settings.nats_url, name="sorter", state=settings.state) as bus,
        open_store(settings.redis_url, settings.state) as redis,
    ):
        await service.run(bus, ListStore(redis), SystemClock(), WorkspaceId(settings.workspace), new_birth, settings.pace)


if __name__ == "__main__":
    run("sorter", main)
