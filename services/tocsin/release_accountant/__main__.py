"""Wiring: settings, bus, views, clock."""

from tocsin.bus.nats_bus import connect
from tocsin.contract.metrics import STORE_CONNECTIONS
from tocsin.contract.subjects import CUSTODY_EVENT
from tocsin.contract.tally import Tally
from tocsin.release_accountant.service import NAME, Accountant
from tocsin.release_accountant.works import VIEW
from tocsin.runtime.clock import SystemClock
from tocsin.runtime.metrics import metered
from tocsin.runtime.run import run
from tocsin.runtime.settings import Settings
from tocsin.store.connection import open_store
from tocsin.store.views import Views


async def main() -> None:
    """Be a release-accountant until cancelled."""
    settings = Settings()
    links = Tally(STORE_CONNECTIONS)
    async with (
        metered(NAME, settings) as meter,
        connect(settings.nats_url, name=NAME, state=settings.state, replicas=settings.nats_replicas) as bus,
        open_store(settings.redis_url, settings.state, links) as redis,
    ):
        service = Accountant(bus, Views(redis, CUSTODY_EVENT.name), Views(redis, VIEW), SystemClock())
        meter.add(bus.samples, links.samples, service.samples)
        await service.run()


if __name__ == "__main__":
    run(NAME, main)
