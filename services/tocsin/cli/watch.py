"""`tocsin watch`: the ranked list, live in this terminal."""

import argparse
import asyncio
import contextlib
import json
import sys
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from tocsin.cli import ls, reading
from tocsin.cli.main import DONE, refuse
from tocsin.contract.messages import AttentionClass, Row, WorktreesSorted
from tocsin.contract.refusals import Code, Refusal
from tocsin.listing.marks import by_worktree
from tocsin.listing.plain import plain, plain_marks
from tocsin.runtime.skew import Skew

if TYPE_CHECKING:
    from rich.console import RenderableType

    from tocsin.bus.bus import Bus

SETTLE_MS = 3_000
"""Rows keep their places for so long after the first change, but for those that begin to need a person (the seed's SORT_SETTLE_MS)."""

REDRAW_S = 1.0
"""Ages are shown to the second."""

PROBE_S = 2.0
"""How often the bus is asked whether it is there; a list that nobody changes looks the same as a bus that is away."""


class Settled:
    """Which row stands where on a screen. Rows always say what is true now; only their places wait."""

    def __init__(self, settle_ms: int = SETTLE_MS) -> None:
        self._settle_ms = settle_ms
        self._rows: dict[str, Row] = {}
        self._shown: list[str] = []
        self._due: int | None = None

    def hear(self, body: WorktreesSorted, awake_ms: int) -> None:
        """A new list. A row that begins to need a person takes its place at once; so do all when one has appeared or left."""
        before, self._rows = self._rows, {row.id: row for row in body.worktrees}
        order = list(self._rows)
        if before.keys() != self._rows.keys():
            self._shown, self._due = order, None
            return
        for one in order:
            if self._promoted(before[one], self._rows[one]):
                self._shown.remove(one)
                rank = self._rows[one].rank
                above = next((at for at, other in enumerate(self._shown) if self._rows[other].rank > rank), len(self._shown))
                self._shown.insert(above, one)
        if self._shown == order:
            self._due = None
        elif self._due is None:
            self._due = awake_ms + self._settle_ms

    @staticmethod
    def _promoted(before: Row, after: Row) -> bool:
        return after.attention_class == AttentionClass.NEEDS_YOU != before.attention_class

    def due(self) -> int | None:
        """When the places change next, if no list comes."""
        return self._due

    def rows(self, awake_ms: int) -> list[Row]:
        """The rows as they stand on the screen now."""
        if self._due is not None and awake_ms >= self._due:
            self._shown, self._due = list(self._rows), None
        return [self._rows[one] for one in self._shown]


class Screen:
    """What the watcher sees: the last list, and whether the bus is there."""

    def __init__(self) -> None:
        self.settled = Settled()
        self.body: WorktreesSorted | None = None
        self.cut_off_ms: int | None = None
        self.skew = Skew()
        self.marks: reading.Marks = {}

    def now_ms(self) -> int:
        """What time it is for the list: by the bus' clock, where this machine's is off."""
        return self.skew.in_bus_time(time.time_ns() // 1_000_000)

    def note(self) -> str | None:
        """What has to be said beside the rows."""
        if self.cut_off_ms is not None:
            since = reading.time_of(self.cut_off_ms)
            return f"Cut off from the bus since {since}: what is shown may be old. Still trying."
        return ls.remark(self.body) if self.body is not None else None

    def draw(self, workspace: str, awake_ms: int) -> "RenderableType":
        """For a terminal."""
        from rich.console import Group
        from rich.text import Text

        if self.body is None:
            return Text(self.note() or reading.nobody_publishes(workspace))
        rows = self.settled.rows(awake_ms)
        parts: list[RenderableType] = [ls.table(rows, self.now_ms(), self.marks)] if rows else []
        note = self.note()
        return Group(*parts, Text(note, style="bold")) if note else Group(*parts)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which list; `--json` prints each as one line."""
    reading.arguments(parser)


def awake_ms() -> int:
    """The clock on which places settle."""
    return time.monotonic_ns() // 1_000_000


async def lists(bus: "Bus", workspace: str) -> AsyncIterator[WorktreesSorted | None]:
    """The list as it stands, or None when there is none, then each that follows, over reconnects; the same one is handed out once."""
    from tocsin.contract.subjects import WORKTREE_SORTED

    last: tuple[str, int, int] | None = None
    async with bus.follow(WORKTREE_SORTED, workspace) as follow:
        async for batch in follow:
            if not batch and last is None:
                yield None
            for heard in batch[-1:]:
                if (heard.body.birth, heard.body.version, heard.seq) != last:
                    last = heard.body.birth, heard.body.version, heard.seq
                    yield heard.body


async def probe(bus: "Bus", screen: Screen) -> None:
    """Notice that the bus is away, that it is there again, and what time it has."""
    from tocsin.bus.bus import Unavailable

    while True:
        await asyncio.sleep(PROBE_S)
        try:
            screen.skew.take(await bus.clock_ahead_ms())
        except Unavailable:
            if screen.cut_off_ms is None:
                screen.cut_off_ms = time.time_ns() // 1_000_000
                if not sys.stdout.isatty():
                    print(f"tocsin: {screen.note()}", file=sys.stderr, flush=True)
        else:
            screen.cut_off_ms = None


async def hear_marks(bus: "Bus", workspace: str, screen: Screen) -> None:
    """Know what the person has marked. A bus that has no marks, of another version, is no reason to show no list."""
    from tocsin.contract.subjects import WORKTREE_MARKED

    async with bus.follow(WORKTREE_MARKED, workspace) as follow:
        async for batch in follow:
            for heard in batch[-1:]:
                screen.marks = by_worktree(heard.body.marks)


async def print_lines(bus: "Bus", place: reading.Place, screen: Screen, as_json: bool) -> None:
    """For pipes and files: every list, as JSON or as text."""
    async for body in lists(bus, place.workspace):
        screen.body = body
        if body is None:
            print(f"tocsin: {reading.nobody_publishes(place.workspace)}", file=sys.stderr, flush=True)
        elif as_json:
            print(json.dumps(plain(body) | {"marks": plain_marks(screen.marks)}), flush=True)
        else:
            print(time.strftime("--- %H:%M:%S"))
            ls.show(body, screen.marks, screen.now_ms())
            sys.stdout.flush()


async def draw_live(bus: "Bus", place: reading.Place, screen: Screen) -> None:
    """For a terminal: one picture, drawn again when something changes."""
    from rich.console import Console
    from rich.live import Live

    news = asyncio.Event()

    async def hear() -> None:
        try:
            async for body in lists(bus, place.workspace):
                if body is not None:
                    screen.settled.hear(body, awake_ms())
                screen.body = body
                news.set()
        finally:
            news.set()

    hearing = asyncio.create_task(hear())
    try:
        await news.wait()
        with Live(console=Console(), auto_refresh=False, screen=False, vertical_overflow="crop") as live:
            while not hearing.done():
                live.update(screen.draw(place.workspace, awake_ms()), refresh=True)
                due = screen.settled.due()
                wait_s = REDRAW_S if due is None else min(REDRAW_S, max(0, due - awake_ms()) / 1000)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await news.wait()
                news.clear()
        await hearing
    finally:
        hearing.cancel()


def run(args: argparse.Namespace) -> int:
    """Watch until Ctrl+C. Exit code 4 when the bus is away at the start; later it is waited for."""

    async def work(place: reading.Place) -> int:
        from tocsin.bus.bus import Unavailable

        screen = Screen()
        try:
            async with reading.connect(place) as bus:
                with contextlib.suppress(Unavailable):
                    screen.skew.take(await bus.clock_ahead_ms())
                screen.marks = await reading.marks_of(bus, place.workspace)
                beside = [asyncio.create_task(probe(bus, screen)), asyncio.create_task(hear_marks(bus, place.workspace, screen))]
                try:
                    if args.json or not sys.stdout.isatty():
                        await print_lines(bus, place, screen, args.json)
                    else:
                        await draw_live(bus, place, screen)
                finally:
                    for task in beside:
                        task.cancel()
        except Unavailable as error:
            return refuse(Refusal(Code.UNAVAILABLE, str(error)), args.json)
        return DONE

    return reading.with_place(args, work)
