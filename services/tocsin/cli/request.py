"""`tocsin request show ID`: what became of a request of yours, when its answer was lost."""

import argparse
import json

from tocsin.cli import shown, speak, typed
from tocsin.cli.main import DONE, WANTING
from tocsin.cli.speak import Speaker
from tocsin.contract.run import Refused, ShowRequest

SAID = {
    "completed": "it was done",
    "pending": "it is under way: a start that is not settled yet",
    "absent": "nothing is on record under your name; that proves nothing more: the same command with this id does it once",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which request."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    show = actions.add_parser("show", help="completed, pending or absent")
    show.add_argument("id", metavar="ID", type=typed.name)
    show.add_argument("--person", action="store_true", help="it was asked with --person")
    speak.arguments(show, changes=False, limit_s=speak.LOOK_S)


def run(args: argparse.Namespace) -> int:
    """Show it. Exit codes: 0 completed, 1 pending or absent, 3 refused, 4 nobody there."""

    async def work(speaker: Speaker) -> int:
        named = await speaker.which_run()
        receipt = await speaker.look_at_run(ShowRequest(id=args.id), named) if isinstance(named, str) else named
        if isinstance(receipt, Refused):
            return speak.refused(receipt, args.json)
        state = receipt.result["state"]
        if args.json:
            print(json.dumps(receipt.result))
        else:
            print(f"{args.id}: {state}: {SAID.get(state, '')}")
            recorded = receipt.result["receipt"]
            if recorded:
                print(shown.plain(json.dumps(recorded["result"])))
            worker = receipt.result["worker"]
            if worker:
                print(shown.plain(f"{worker['dispatch']}: {worker['state']} {worker['why']}".rstrip()))
        return DONE if state == "completed" else WANTING

    return speak.through(args, work)
