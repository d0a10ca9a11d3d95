"""Wiring: settings, bus, store, clock."""

from tocsin.bus.nats_bus import connect
from tocsin.contract.metrics import STORE_CONNECTIONS
from tocsin.contract.subjects import MAIL_EVENT
from tocsin.contract.tally import Tally
from tocsin.mailbox import service
from tocsin.runtime.clock import SystemClock
from tocsin.runtime.metrics import metered
from tocsin.runtime.run import run
from tocsin.runtime.settings import Settings
from tocsin.store.connection import open_store
from tocsin.store.views import Views


async def main() -> None:
    """Be a mailbox service until cancelled."""
    settings = Settings()
    links = Tally(STORE_CONNECTIONS)
    async with (
        metered(service.NAME, settings) as meter,
        connect(settings.nats_url, name=service.NAME, state=settings.state, replicas=settings.nats_replicas) as bus,
        open_store(settings.redis_url, settings.state, links) as redis,
    ):
        meter.add(bus.samples, links.samples)
        await service.serve(bus, Views(redis, MAIL_EVENT.name), SystemClock(), meter.add)


if __name__ == "__main__":
    run(service.NAME, main)
