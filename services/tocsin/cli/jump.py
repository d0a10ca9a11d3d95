"""`tocsin jump QUERY`: find a worktree and select its tmux pane."""

import argparse
import json
import os
import shlex
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from tocsin.cli import reading
from tocsin.cli.main import DONE, WANTING, refuse
from tocsin.contract.messages import Row
from tocsin.contract.refusals import Code, Refusal


def arguments(parser: argparse.ArgumentParser) -> None:
    """What to look for, and whether to go there."""
    parser.add_argument("query", metavar="QUERY", help="a name, a branch or an id, or letters of it in their order")
    parser.add_argument("--print", action="store_true", dest="only_print", help="print the command that goes there, and stay here")
    reading.arguments(parser)


def grade(text: str, query: str) -> int:
    """How well `text` fits, 0 best: equal, begins so, contains it, has its letters in order; 4 not at all. Case does not count."""
    text, query = text.casefold(), query.casefold()
    if text == query:
        return 0
    if text.startswith(query):
        return 1
    if query in text:
        return 2
    letters = iter(text)
    return 3 if all(letter in letters for letter in query) else 4


def choose(rows: Iterable[Row], query: str) -> Row | None:
    """The best fit by name, branch or id; of equal fits the one that most needs a person. None: nothing fits."""
    graded = [(min(grade(text, query) for text in (row.name, row.branch or row.name, row.id)), row.rank, row) for row in rows]
    best = min(graded, key=lambda one: one[:2], default=None)
    return best[2] if best is not None and best[0] < 4 else None


def selection(locator: str, tmux: str | None) -> tuple[list[list[str]], str | None]:
    """Commands that select a pane, and the command that the user still has to give, if this terminal does not show that server.

    `locator`: "socket-path %7". `tmux`: the value of $TMUX here.
    """
    socket, _, pane = locator.rpartition(" ")
    server = ["tmux", "-S", socket]
    select = [[*server, "select-window", "-t", pane], [*server, "select-pane", "-t", pane]]
    here = tmux.split(",")[0] if tmux else None
    if here and Path(here).resolve() == Path(socket).resolve():
        return [*select, [*server, "switch-client", "-t", pane]], None
    # A client inside another server would nest: unset, tmux attaches plainly.
    return select, shlex.join([*(["env", "-u", "TMUX"] if here else []), *server, "attach-session", "-t", pane])


def go(commands: Sequence[Sequence[str]]) -> str | None:
    """Run them; returns what went wrong with the first that failed."""
    for command in commands:
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            return "tmux is not installed here"
        if done.returncode:
            return done.stderr.strip() or f"{command[3]} failed"
    return None


def run(args: argparse.Namespace) -> int:
    """Go there. Exit codes: 0, 1 when there is no pane to go to, 3 when nothing fits, 4 when nobody can say what the list is."""

    async def work(place: reading.Place) -> int:
        found = await reading.last_list(place)
        if isinstance(found, Refusal):
            return refuse(found, args.json)
        row = choose(found.worktrees, args.query)
        if row is None:
            return refuse(Refusal(Code.NOT_FOUND, f"no worktree fits {reading.clean(args.query)}"), args.json)
        return jump(row, place.host, args)

    return reading.with_place(args, work)


def jump(row: Row, host: str, args: argparse.Namespace) -> int:
    """Go to the pane of `row` that decided its rank, else to another of its panes, else say where the folder is."""
    locator = next((pane.locator for pane in row.panes if pane.locator), None)
    commands, left = selection(locator, os.environ.get("TMUX")) if locator else ([], shlex.join(["cd", row.path]))
    elsewhere = row.host != host
    if elsewhere and left is None:
        socket, _, pane = str(locator).rpartition(" ")
        left = shlex.join(["tmux", "-S", socket, "attach-session", "-t", pane])
    wrong = None
    if commands and not elsewhere and not args.only_print:
        wrong = go(commands)
    going = bool(commands) and not elsewhere and wrong is None
    shown = left if left is not None else " && ".join(map(shlex.join, commands)) if args.only_print else None
    if args.json:
        print(
            json.dumps(
                {
                    "id": row.id, "name": row.name, "host": row.host, "path": row.path, "locator": locator, "command": shown,
                    "selected": going and not args.only_print, "problem": wrong,
                }
            )
        )  # fmt: skip
    else:
        if elsewhere:
            print(f"{reading.clean(row.name)} is on {reading.clean(row.host)}; there:")
        elif not locator:
            print(f"no terminal of {reading.clean(row.name)} is known; its folder:")
        if wrong:
            print(f"{reading.clean(row.name)}: {wrong}")
        elif shown:
            print(shown)
    return DONE if going else WANTING
