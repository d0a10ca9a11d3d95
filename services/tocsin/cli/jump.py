"""`tocsin jump QUERY`: find a worktree and select its tmux pane."""

import argparse
import json
import os
import shlex

from tocsin.cli import reading
from tocsin.cli.main import DONE, WANTING, refuse
from tocsin.contract.messages import Row
from tocsin.contract.refusals import Code, Refusal
from tocsin.listing.find import choose, clean
from tocsin.runtime.selecting import go, selection


def arguments(parser: argparse.ArgumentParser) -> None:
    """What to look for, and whether to go there."""
    parser.add_argument("query", metavar="QUERY", help="a name, a branch or an id, or letters of it in their order")
    parser.add_argument("--print", action="store_true", dest="only_print", help="print the command that goes there, and stay here")
    reading.arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Go there. Exit codes: 0, 1 when there is no pane to go to, 3 when nothing fits, 4 when nobody can say what the list is."""

    async def work(place: reading.Place) -> int:
        found = await reading.last_list(place)
        if isinstance(found, Refusal):
            return refuse(found, args.json)
        row = choose(found.worktrees, args.query)
        if row is None:
            return refuse(Refusal(Code.NOT_FOUND, f"no worktree fits {clean(args.query)}"), args.json)
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
            print(f"{clean(row.name)} is on {clean(row.host)}; there:")
        elif not locator:
            print(f"no terminal of {clean(row.name)} is known; its folder:")
        if wrong:
            print(f"{clean(row.name)}: {wrong}")
        elif shown:
            print(shown)
    return DONE if going else WANTING
