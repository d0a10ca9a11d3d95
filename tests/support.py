"""Waiting for a condition with a deadline, and where test data lies."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from nats.aio.client import Client

DATA = Path(__file__).parent / "data"


class Deadline:
    """Iterate until the condition in the loop's body holds; fails with what was waited for when time is up."""

    def __init__(self, seconds: float, what: str) -> None:
        self.end = time.monotonic() + seconds
        self.what = what

    def _check(self) -> None:
        assert time.monotonic() < self.end, f"not in time: {self.what}"

    def __iter__(self) -> Iterator[None]:
        pause = time.sleep
        while True:
            self._check()
            yield
            pause(0.01)

    async def __aiter__(self) -> AsyncIterator[None]:
        while True:
            self._check()
            yield
            await asyncio.sleep(0.01)


@asynccontextmanager
async def running(coroutine: Coroutine[Any, Any, None]) -> AsyncIterator["asyncio.Task[None]"]:
    """A loop that runs beside the test and is ended with it; its failure is the test's."""
    task = asyncio.create_task(coroutine)
    try:
        yield task
        if task.done():
            task.result()
    finally:
        task.cancel()
        await asyncio.wait({task})


async def settled(client: Client) -> None:
    """Until the server has taken all that this client has sent, subscriptions included: nats-py's `flush` pings before what waits to be sent."""
    inbox = client.new_inbox()
    subscription = await client.subscribe(inbox)
    await client.publish(inbox, b"")
    await subscription.next_msg(timeout=10)
    await subscription.unsubscribe()


async def settled_in_silence(client: Client) -> None:
    """The same for one that may say nothing: by the second ping, what the first one overtook has been sent."""
    await client.flush()
    await client.flush()


class Service:
    """One service as a process of its own, as it runs for its users."""

    def __init__(self, module: str, folder: Path, **environment: str) -> None:
        self.module = module
        self.folder = folder
        self.environment = environment
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> "Service":
        self.folder.mkdir(exist_ok=True, parents=True)
        environment = {**os.environ, "TOCSIN_STATE": str(self.folder), "TOCSIN_BEAT_FILE": str(self.folder / "beat"), **self.environment}
        with (self.folder / f"{self.module}.log").open("ab") as log:
            self.process = subprocess.Popen([sys.executable, "-m", self.module], env=environment, stderr=log, stdout=log)
        return self

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait; returns the exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        code = self.process.wait(10)
        self.process = None
        return code

    def log(self) -> str:
        return (self.folder / f"{self.module}.log").read_text()

    def __enter__(self) -> "Service":
        return self.start()

    def __exit__(self, *error: object) -> None:
        if self.process is not None:
            self.end(signal.SIGKILL)
