"""Hears what is recorded of Runs, mailboxes and custodies, and wakes the streams of the pages that show it."""

import asyncio
import contextlib
from collections.abc import Iterable, Iterator

from tocsin.bus.bus import Bus
from tocsin.console.core.moves import Kind, Watch, Watches, run_of_mailbox
from tocsin.contract.run import run_of_dispatch
from tocsin.contract.subjects import CUSTODY_EVENT, MAIL_EVENT, RUN_EVENT

GATHER_S = 0.1
"""How long hints are gathered: one step of the loop is several records in several ledgers."""


class Moves:
    """Shared by all streams of this console."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._watches = Watches()
        self._news: dict[Watch, asyncio.Event] = {}
        self._timer: asyncio.TimerHandle | None = None
        self.heard = 0
        """Grows with everything that is recorded: what was read before may be another thing now."""

    async def run(self) -> None:
        """Hear until cancelled."""
        async with (
            self._bus.hear(RUN_EVENT, lambda record: self._hear(Kind.RUN, record.run), self._missed),
            self._bus.hear(MAIL_EVENT, lambda record: self._hear(Kind.MAIL, run_of_mailbox(record.mailbox)), self._missed),
            self._bus.hear(CUSTODY_EVENT, lambda record: self._hear(Kind.CUSTODY, run_of_dispatch(record.custody)), self._missed),
        ):
            await asyncio.Event().wait()

    @contextlib.contextmanager
    def watch(self, topics: Iterable[str], news: asyncio.Event) -> Iterator[Watch]:
        """Hear of `topics` while this lasts: `news` is set whenever one of them has moved."""
        watch = Watch(topics)
        self._watches.add(watch)
        self._news[watch] = news
        try:
            yield watch
        finally:
            del self._news[watch]
            self._watches.remove(watch)

    def _hear(self, kind: Kind, run: str) -> None:
        self.heard += 1
        if self._watches.hear(kind, run):
            self._tell_soon()

    def _missed(self) -> None:
        self.heard += 1
        if self._watches.hear_anything():
            self._tell_soon()

    def _tell_soon(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(GATHER_S, self._tell)

    def _tell(self) -> None:
        self._timer = None
        for watch in self._watches.tell():
            self._news[watch].set()
