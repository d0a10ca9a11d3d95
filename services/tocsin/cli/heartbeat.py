"""`tocsin heartbeat [PHASE]`: a worker lives and is in a phase. State of its Dispatch, never mail: it wakes nobody."""

import argparse

from tocsin.cli import shown, speak, typed
from tocsin.cli.report import worker_run
from tocsin.cli.speak import Speaker
from tocsin.contract.run import Beat, Refused

PHASE_LETTERS_MAX = 200


def arguments(parser: argparse.ArgumentParser) -> None:
    """In which phase."""
    parser.add_argument("phase", nargs="*", metavar="PHASE", help="investigating, implementing, reviewing, waiting ...")
    parser.add_argument("--dispatch", type=typed.name, metavar="DISPATCH", help="known from the pane: need not be given")
    speak.arguments(parser, limit_s=speak.KEPT_S)


def run(args: argparse.Namespace) -> int:
    """Beat. Exit codes: 0 taken, or kept for delivery; 3 refused; 4 nobody there and no place to keep it."""

    async def work(speaker: Speaker) -> int:
        named = worker_run(speaker, args.dispatch)
        beat = Beat(phase=shown.one_line(" ".join(args.phase), PHASE_LETTERS_MAX), dispatch=args.dispatch)
        receipt = await speaker.to_run(beat, named, keep=True) if isinstance(named, str) else named
        if isinstance(receipt, Refused):
            return speak.refused(receipt, args.json)
        return speak.done(receipt, args.json, "noted")

    return speak.through(args, work)
