"""Start, drain on SIGTERM or SIGINT, exit code."""

import asyncio
import contextlib
import gc
import os
import signal
import sys
from collections.abc import Awaitable, Callable

import uvloop

from tocsin.runtime import health, logs
from tocsin.runtime.settings import Settings

DRAIN_S_MAX = 4.0
"""A drain that takes longer is ended: a stop that must be forced loses more."""

OBJECTS_MAX = 5_000
"""New objects before a look for cycles among them. Services make next to none: at Python's 700, one part in twenty of a busy
service's CPU time went into looking."""


async def beat_while_running() -> None:
    """Touch the beat file as long as the loop turns."""
    while True:
        health.beat()
        await asyncio.sleep(health.BEAT_S)


async def until_stopped(main: Callable[[], Awaitable[None]]) -> int:
    """Run `main` until it ends or a signal asks; returns the exit code."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    work = asyncio.ensure_future(main())
    beats = asyncio.create_task(beat_while_running())
    asked = asyncio.create_task(stop.wait())
    await asyncio.wait({work, asked}, return_when=asyncio.FIRST_COMPLETED)
    if not work.done():
        logs.log("service.draining")
        work.cancel()
        await asyncio.wait({work}, timeout=DRAIN_S_MAX)
    for task in (beats, asked):
        task.cancel()
    if not work.done():
        logs.log("service.drain_cut", "warning", after_s=DRAIN_S_MAX)
        return 1
    with contextlib.suppress(asyncio.CancelledError):
        error = work.exception()
        if error is not None:
            logs.log("service.failed", "error", error=f"{type(error).__name__}: {error}")
            if logs.LEVELS["debug"] >= logs._threshold:
                import traceback

                traceback.print_exception(error)
            return 1
    logs.log("service.stopped")
    return 0


def run(service: str, main: Callable[[], Awaitable[None]]) -> None:
    """Be the service: never returns. Exit code 0 after a drain, 1 after a failure."""
    logs.set_up(service, Settings().log_level)
    logs.log("service.starting", pid=os.getpid())
    gc.freeze()  # modules stay: no later look passes over them, which took tens of milliseconds
    gc.set_threshold(OBJECTS_MAX)
    sys.exit(uvloop.run(until_stopped(main)))
