"""Wiring: settings, the bus, and the HTTP server with its limits."""

import asyncio
from collections.abc import Callable

from tocsin.agents.registry import AGENTS
from tocsin.bus.bus import Bus
from tocsin.bus.nats_bus import connect
from tocsin.contract.ids import HostId
from tocsin.contract.subjects import WAKE_DUE
from tocsin.contract.tally import Source
from tocsin.hook_ingest.account import Account
from tocsin.hook_ingest.app import Front, rest_of
from tocsin.hook_ingest.credentials import read_credentials
from tocsin.hook_ingest.idle import IdleHooks, Parking
from tocsin.hook_ingest.publisher import SAY_S_MAX, Publisher
from tocsin.hook_ingest.service import HookIngest
from tocsin.hook_ingest.settings import IngestSettings
from tocsin.runtime import instance
from tocsin.runtime.clock import Clock, SystemClock
from tocsin.runtime.hashing import read_keyed
from tocsin.runtime.http.border import Border
from tocsin.runtime.http.server import listen, needed, server_of
from tocsin.runtime.logs import log
from tocsin.runtime.metrics import metered
from tocsin.runtime.run import run
from tocsin.runtime.skew import BusTime, Skew, keep_measured


async def serve(
    settings: IngestSettings,
    bus: Bus,
    clock: Clock,
    on_start: Callable[[int], None] = lambda port: None,
    show: Callable[[Source], None] = lambda source: None,
) -> None:
    """Take hooks until cancelled, then answer those in flight. `on_start` is told the port, `show` what has numbers to show. Raises CannotStart.

    Events are stamped in the bus' time, also where this machine's clock is off.
    """
    skew = Skew()
    bus_time = BusTime(clock, skew)
    credentials = needed(read_credentials(settings.hook_credential, settings.command_credential))
    keyed = needed(read_keyed(settings.hash_key))
    if settings.ingest_port_file is not None:
        settings.ingest_port_file.unlink(missing_ok=True)  # an earlier life's port would mislead
    bound = listen(settings.ingest_bind, settings.ingest_port, "TOCSIN_INGEST_PORT")
    port: int = bound.getsockname()[1]
    account = Account(clock)
    border = Border.around(port, settings.allowed_hosts, settings.allowed_origins)
    publisher = Publisher(bus, clock, account, answer_first=settings.ack == "async")
    idle = IdleHooks(bus)
    hooks = HookIngest(
        agents=AGENTS,
        border=border,
        credentials=credentials,
        keyed=keyed,
        host=HostId(settings.host),
        show_text=settings.show_text == "prompts",
        publisher=publisher,
        clock=bus_time,
        account=account,
        idle=idle,
        skew=skew,
    )
    parking = Parking(
        Front(hooks, rest_of(bus, tuple(AGENTS)), border, credentials, account),
        agents=AGENTS,
        border=border,
        credentials=credentials,
        host=HostId(settings.host),
        idle=idle,
        clock=bus_time,
        account=account,
    )

    show(account.samples)
    show(parking.samples)

    def started() -> None:
        if settings.ingest_port_file is not None:
            instance.write_private(settings.ingest_port_file, f"{port}\n".encode())
        log("ingest.listening", address=settings.ingest_bind, port=port, ack=settings.ack)
        on_start(port)

    server = server_of(parking, account.malform, started)
    measuring = asyncio.create_task(keep_measured(skew, bus.clock_ahead_ms))
    serving = asyncio.create_task(server.serve([bound]))
    try:
        async with bus.hear(WAKE_DUE, parking.stir, parking.stir_all):
            await asyncio.shield(serving)
    finally:
        measuring.cancel()
        hooks.hurry()
        parking.close()
        server.stop()
        await serving
        await publisher.drain()


async def main() -> None:
    """Be hook-ingest until cancelled."""
    settings = IngestSettings()
    async with (
        metered("hook-ingest", settings) as meter,
        connect(
            settings.nats_url,
            name="hook-ingest",
            state=settings.state,
            makes_streams=settings.makes_streams,
            replicas=settings.nats_replicas,
            ack_s_max=SAY_S_MAX,
        ) as bus,
    ):
        meter.add(bus.samples)
        await serve(settings, bus, SystemClock(), show=meter.add)


if __name__ == "__main__":
    run("hook-ingest", main)
