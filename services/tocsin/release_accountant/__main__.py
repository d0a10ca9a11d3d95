"""Wiring: settings, bus, views, clock."""

from tocsin.bus.nats_bus import connect
from tocsin.contract.subjects import CUSTODY_EVENT
from tocsin.release_accountant.service import NAME, Accountant
from tocsin.release_accountant.works import VIEW
from tocsin.runtime.clock import SystemClock
from tocsin.runtime.run import run
from tocsin.runtime.settings import Settings
from tocsin.store.connection import open_store
from tocsin.store.views import Views


async def main() -> None:
    """Be a release-accountant until cancelled."""
    settings = Settings()
    async with (
        connect(settings.nats_url, name=NAME, state=settings.state) as bus,
        open_store(settings.redis_url, settings.state) as redis,
    ):
        await Accountant(bus, Views(redis, CUSTODY_EVENT.name), Views(redis, VIEW), SystemClock()).run()


if __name__ == "__main__":
    run(NAME, main)
