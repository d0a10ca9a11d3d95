"""`tocsin ls`: the ranked list, once."""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tocsin.cli import reading
from tocsin.cli.main import DONE, refuse
from tocsin.contract.messages import Evidence, Row, WorktreesSorted
from tocsin.contract.refusals import Refusal
from tocsin.listing.age import age
from tocsin.listing.explain import CLASS_WORDS
from tocsin.listing.find import clean
from tocsin.listing.marks import signs
from tocsin.listing.plain import plain, plain_marks

if TYPE_CHECKING:
    from rich.table import Table

HEADINGS = ("#", "class", "worktree", "branch", "age", "why", "agents")

STYLES = {1: "bold red", 2: "green", 3: "cyan", 4: "dim"}

MARKS = {
    Evidence.OBSERVED: "",
    Evidence.INFERRED: " ~inferred",
    Evidence.RESTORED: " ?restored",
    Evidence.STALE: " !stale",
    Evidence.UNVERIFIABLE: " !unverifiable",
    Evidence.NO_SIGNAL: "",
}
"""How a reason is marked that nobody has observed."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which list, and how it is printed."""
    reading.arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Print the list. Exit codes: 0, or 4 when nobody can say what the list is."""

    async def work(place: reading.Place) -> int:
        found = await reading.last_listed(place)
        if isinstance(found, Refusal):
            return refuse(found, args.json)
        if args.json:
            print(json.dumps(plain(found.body) | {"marks": plain_marks(found.marks)}))
        else:
            show(found.body, found.marks, found.now_ms)
        return DONE

    return reading.with_place(args, work)


def several_hosts(rows: Sequence[Row]) -> bool:
    """True when a row must say on which machine it is."""
    return len({row.host for row in rows}) > 1


def cells(row: Row, now_ms: int, with_host: bool, marks: "reading.Marks") -> tuple[str, ...]:
    """One row as people read it; see HEADINGS. Beside its name stands how its person has marked it."""
    name = f"{row.name} ({row.host})" if with_host else row.name
    moment = row.attention_at or row.active_at
    agents = sorted({pane.agent for pane in row.panes if pane.agent})
    return tuple(
        map(
            clean,
            (
                str(row.rank),
                CLASS_WORDS[row.attention_class],
                " ".join(filter(None, (name, signs(row, marks, now_ms)))),
                (row.branch or "") + ("*" if row.dirty else ""),
                age(moment, now_ms) if moment else "",
                row.reason + MARKS[row.evidence],
                ", ".join(agents),
            ),
        )
    )


def remark(body: WorktreesSorted) -> str | None:
    """What has to be said of the whole list."""
    if body.restored:
        return (
            f"This is the list of {reading.time_of(body.at_ms)}: the services have just started and do not know yet what has changed since."
        )
    if not body.worktrees:
        return "No worktree and no agent is known. Start an agent in a terminal, or see: tocsin doctor"
    return None


def text(body: WorktreesSorted, marks: "reading.Marks", now_ms: int) -> str:
    """The list as plain text in columns, for pipes and files."""
    with_host = several_hosts(body.worktrees)
    lines = [HEADINGS, *(cells(row, now_ms, with_host, marks) for row in body.worktrees)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines)


def table(rows: Sequence[Row], now_ms: int, marks: "reading.Marks") -> "Table":
    """The list as a table for a terminal."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in HEADINGS:
        drawn.add_column(heading, overflow="ellipsis", no_wrap=heading != "why", justify="right" if heading in {"#", "age"} else "left")
    with_host = several_hosts(rows)
    for row in rows:
        drawn.add_row(*(Text(cell, style=STYLES[row.attention_class]) for cell in cells(row, now_ms, with_host, marks)))
    return drawn


def show(body: WorktreesSorted, marks: "reading.Marks", now_ms: int) -> None:
    """Print the list for a person."""
    if body.worktrees and sys.stdout.isatty():
        from rich.console import Console

        Console().print(table(body.worktrees, now_ms, marks))
    elif body.worktrees:
        print(text(body, marks, now_ms))
    said = remark(body)
    if said:
        print(said)
