"""Wiring: settings, bus, store, clock."""

from tocsin.bus.nats_bus import connect
from tocsin.contract.subjects import MAIL_EVENT
from tocsin.mailbox import service
from tocsin.runtime.clock import SystemClock
from tocsin.runtime.run import run
from tocsin.runtime.settings import Settings
from tocsin.store.connection import open_store
from tocsin.store.views import Views


async def main() -> None:
    """Be a mailbox service until cancelled."""
    settings = Settings()
    async with (
        connect(settings.nats_url, name=service.NAME, state=settings.state) as bus,
        open_store(settings.redis_url, settings.state) as redis,
    ):
        await service.serve(bus, Views(redis, MAIL_EVENT.name), SystemClock())


if __name__ == "__main__":
    run(service.NAME, main)
