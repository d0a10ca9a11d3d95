"""Wiring: settings, bus, store, and the HTTP server with its limits."""

import asyncio
from collections.abc import Callable
from importlib.metadata import version

from tocsin.bus.bus import Bus
from tocsin.bus.nats_bus import connect
from tocsin.console.app import front_of
from tocsin.console.asker import Askers, border_of
from tocsin.console.credentials import read_credentials
from tocsin.console.moves import Moves
from tocsin.console.notice_store import NoticeStore
from tocsin.console.notifier import Notifier
from tocsin.console.service import Live
from tocsin.console.settings import ConsoleSettings
from tocsin.console.store import ConsoleStore
from tocsin.console.ways import ways_of
from tocsin.contract.ids import WorkspaceId
from tocsin.contract.metrics import STORE_CONNECTIONS
from tocsin.contract.tally import Source, Tally
from tocsin.runtime import instance
from tocsin.runtime.clock import Clock, SystemClock
from tocsin.runtime.http.server import listen, needed, server_of
from tocsin.runtime.logs import log
from tocsin.runtime.metrics import metered
from tocsin.runtime.run import run
from tocsin.store.connection import open_store


async def serve(
    settings: ConsoleSettings,
    bus: Bus,
    store: ConsoleStore,
    notice_store: NoticeStore,
    clock: Clock,
    on_start: Callable[[int], None] = lambda port: None,
    measured: Callable[[Source], None] = lambda source: None,
) -> None:
    """Show the page and tell notices until cancelled, then end the streams. Raises CannotStart.

    `on_start` is told the port, `measured` what is counted.
    """
    credentials = needed(read_credentials(settings.state))
    bound = listen(settings.console_bind, settings.console_port, "TOCSIN_CONSOLE_PORT")
    port: int = bound.getsockname()[1]
    live = Live(bus, store, clock, WorkspaceId(settings.workspace))
    notifier = Notifier(bus, live, notice_store, clock, WorkspaceId(settings.workspace), needed(ways_of(settings, port)))
    measured(live.telemetry.samples)
    moves = Moves(bus)
    measured(notifier.samples)
    about = {
        "version": version("tocsin"),
        "instance": instance.credential(settings.state, instance.ID),
        "host": settings.host,
        "workspace": settings.workspace,
    }
    askers = Askers(border_of(port, settings.console_hosts), credentials, clock)
    front = front_of(bus, store, live, moves, notifier, askers, clock, settings.host, about)

    def started() -> None:
        log("console.listening", address=settings.console_bind, port=port)
        on_start(port)

    server = server_of(front, lambda: log("http.malformed", "warning"), started)
    serving = asyncio.create_task(server.serve([bound]))
    hearing = {asyncio.create_task(one.run()) for one in (live, moves, notifier)}
    try:
        done, _ = await asyncio.wait({serving, *hearing}, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        live.close()
        front.hurry()
        server.stop()
        for task in hearing:
            task.cancel()
        await asyncio.wait({serving, *hearing})


async def main() -> None:
    """Be the console until cancelled."""
    settings = ConsoleSettings()
    links = Tally(STORE_CONNECTIONS)
    async with (
        metered("console", settings) as meter,
        connect(
            settings.nats_url, name="console", state=settings.state, credential=instance.NATS_CONSOLE_CREDENTIAL, makes_streams=False
        ) as bus,
        open_store(settings.redis_url, settings.state, links) as redis,
    ):
        meter.add(bus.samples, links.samples)
        stores = ConsoleStore(redis, settings.workspace), NoticeStore(redis, settings.workspace)
        await serve(settings, bus, *stores, SystemClock(), measured=meter.add)


if __name__ == "__main__":
    run("console", main)
