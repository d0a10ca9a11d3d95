"""Wiring: settings, bus, store and ledger of one dispatcher."""

from functools import partial

from tocsin.agents.fields import spoken
from tocsin.bus.nats_bus import connect
from tocsin.contract.metrics import STORE_CONNECTIONS
from tocsin.contract.refusals import Refusal
from tocsin.contract.subjects import RUN_EVENT
from tocsin.contract.tally import Tally
from tocsin.dispatcher.service import Dispatcher
from tocsin.dispatcher.settings import DispatcherSettings
from tocsin.dispatcher.sights import Sights
from tocsin.dispatcher.store import FAMILY
from tocsin.ledger import Ledger
from tocsin.runtime.clock import SystemClock
from tocsin.runtime.hashing import read_keyed
from tocsin.runtime.logs import log
from tocsin.runtime.metrics import metered
from tocsin.runtime.run import run
from tocsin.store.connection import open_store
from tocsin.store.views import Views


async def main() -> None:
    """Be a dispatcher until cancelled."""
    settings = DispatcherSettings()
    clock = SystemClock()
    keyed = read_keyed(settings.hash_key)
    if isinstance(keyed, Refusal):
        # Without the key a prompt in a live pane is not known again: such a start stays unknown, which is said.
        log("key.missing", "warning", reason=keyed.message)
    sights = Sights(clock, (lambda _: None) if isinstance(keyed, Refusal) else partial(spoken, keyed=keyed))
    links = Tally(STORE_CONNECTIONS)
    async with (
        metered("dispatcher", settings) as meter,
        connect(settings.nats_url, name="dispatcher", state=settings.state, replicas=settings.nats_replicas) as bus,
        open_store(settings.redis_url, settings.state, links) as redis,
    ):
        ledger = Ledger(bus, Views(redis, RUN_EVENT.name), FAMILY, clock.now_ms, log)
        service = Dispatcher(bus, ledger, clock, sights, settings.host_workers_max)
        meter.add(bus.samples, links.samples, service.samples)
        await service.run()


if __name__ == "__main__":
    run("dispatcher", main)
