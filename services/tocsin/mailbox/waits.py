"""Checks that are parked at this replica: who waits, and the word that something has changed."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Iterator


class Waits:
    """Tells parked checks to look at their mailbox again."""

    def __init__(self) -> None:
        self._parked: defaultdict[str, set[asyncio.Event]] = defaultdict(set)
        self.closing = False

    @contextlib.contextmanager
    def at(self, address: str) -> Iterator[asyncio.Event]:
        """An event that is set whenever this mailbox changes."""
        changed = asyncio.Event()
        self._parked[address].add(changed)
        try:
            yield changed
        finally:
            self._parked[address].discard(changed)
            if not self._parked[address]:
                del self._parked[address]

    def tell(self, address: str) -> None:
        """This mailbox has changed."""
        for changed in self._parked.get(address, ()):
            changed.set()

    def close(self) -> None:
        """The service stops: all that wait are answered now."""
        self.closing = True
        for some in self._parked.values():
            for changed in some:
                changed.set()
