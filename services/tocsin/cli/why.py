"""`tocsin why A [B]`: why a worktree stands where it stands, or above or below another."""

import argparse
import json

from tocsin.cli import reading
from tocsin.cli.main import DONE, refuse
from tocsin.contract.refusals import Refusal
from tocsin.listing.explain import decider, why_above, why_here
from tocsin.listing.find import clean, resolve
from tocsin.listing.plain import plain_row


def arguments(parser: argparse.ArgumentParser) -> None:
    """One worktree or two."""
    parser.add_argument("worktree", metavar="A", help="id, name, or the beginning of one")
    parser.add_argument("other", metavar="B", nargs="?", help="the worktree to compare with")
    reading.arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Print one line. Exit codes: 0, 3 when no worktree or several are called so, 4 when nobody can say what the list is."""

    async def work(place: reading.Place) -> int:
        found = await reading.last_list(place)
        if isinstance(found, Refusal):
            return refuse(found, args.json)
        rows = [resolve(found.worktrees, named) for named in (args.worktree, args.other) if named is not None]
        for row in rows:
            if isinstance(row, Refusal):
                return refuse(row, args.json)
        known = sorted((row for row in rows if not isinstance(row, Refusal)), key=lambda row: row.rank)
        if len(known) == 1 or known[0].id == known[1].id:
            line, decided_by = why_here(known[0], len(found.worktrees), reading.time_of), None
        else:
            line, decided_by = why_above(known[0], known[1], reading.time_of), decider(known[0], known[1]).value
        if args.json:
            print(json.dumps({"line": line, "decided_by": decided_by, "worktrees": [plain_row(row) for row in known]}))
        else:
            print(clean(line))
        return DONE

    return reading.with_place(args, work)
