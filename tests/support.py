"""Waiting for a condition with a deadline, and where test data lies."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

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
