"""Shows notices on this machine, where its person has asked for that. The console has decided what is told, and when."""

import asyncio
import os
import sys
from collections.abc import Iterator

from tocsin.bus.bus import Bus
from tocsin.contract import metrics
from tocsin.contract.ids import WorkspaceId
from tocsin.contract.notices import NoticeDue
from tocsin.contract.subjects import NOTICE_DUE
from tocsin.contract.tally import Sample, Tally
from tocsin.pane_host import programs
from tocsin.pane_host.core.notice import BadCommand, Shown, Way, split, start_of
from tocsin.runtime.logs import log

SHOWN_S_MAX = 10.0
"""A program that shows a notice and takes longer is ended."""

WAITING_MAX = 20
"""Notices that wait for the one that is being shown; what comes beyond that is left out: nobody reads so many."""

ERROR_CHARS_MAX = 200


class Notices:
    """Of one workspace, on one machine."""

    def __init__(self, bus: Bus, workspace: WorkspaceId, *, desktop: bool, command: str) -> None:
        self.failed: str | None = None
        """Why the last one was not shown; None: it was, or there was none."""
        self._bus = bus
        self._workspace = workspace
        self._is_on = desktop or bool(command)
        self._command: tuple[str, ...] = ()
        if command:
            try:
                self._command = split(command)
            except BadCommand as error:
                self._is_on = False
                self.failed = f"TOCSIN_NOTIFY_COMMAND cannot be split into words: {error}"
        self._shown = Shown()
        self._waiting: asyncio.Queue[NoticeDue] = asyncio.Queue(WAITING_MAX)
        self._tally = Tally()

    @property
    def how(self) -> Way | None:
        """How they are shown here; None: not at all."""
        if not self._is_on:
            return None
        return Way.COMMAND if self._command else Way.DESKTOP

    def samples(self) -> Iterator[Sample]:
        """How many were shown."""
        return self._tally.samples()

    async def run(self) -> None:
        """Show them until cancelled."""
        if not self._is_on:
            await asyncio.Event().wait()
        async with self._bus.hear(NOTICE_DUE, self._hear, lambda: None):
            while True:
                await self._show(await self._waiting.get())

    def _hear(self, notice: NoticeDue) -> None:
        if notice.workspace != self._workspace or not self._shown.is_new(notice.id):
            return
        try:
            self._waiting.put_nowait(notice)
        except asyncio.QueueFull:
            self._fail(f"more than {WAITING_MAX} notices wait to be shown")

    async def _show(self, notice: NoticeDue) -> None:
        start = start_of(notice, self._command, sys.platform == "darwin")
        answer = await programs.ask(start.words, {**os.environ, **start.environment}, SHOWN_S_MAX)
        if answer is None:
            self._fail(f"{start.words[0]} cannot be started, or took longer than {SHOWN_S_MAX:.0f} s")
        elif answer.code:
            said = answer.errors.decode(errors="replace").strip()[-ERROR_CHARS_MAX:]
            self._fail(f"{start.words[0]} ended with {answer.code}: {said}" if said else f"{start.words[0]} ended with {answer.code}")
        else:
            self.failed = None
            self._tally.add(metrics.NOTICES_SENT, start.way)

    def _fail(self, why: str) -> None:
        self.failed = why
        self._tally.add(metrics.NOTICES_FAILED, self.how or Way.DESKTOP)
        log("notice.not_shown", "warning", why=why)
