"""`tocsin up`: NATS, Valkey and the services on this machine, in the foreground, until Ctrl+C or `tocsin down`."""

import argparse
import sys
from pathlib import Path


def arguments(parser: argparse.ArgumentParser) -> None:
    """Where the instance is, and how it runs."""
    parser.add_argument("--state", type=Path, metavar="DIR", help="the instance's folder (TOCSIN_STATE)")
    parser.add_argument("--one-process", action="store_true", help="all services in this process: less memory, one log")
    parser.add_argument("--detach", action="store_true", help="return when the list is there, and go on in the background")


def run(args: argparse.Namespace) -> int:
    """Run until asked to stop. Exit codes: 0 stopped, 3 refused, 4 a server did not come up."""
    if sys.platform == "win32":
        print("tocsin: it runs on Linux, on macOS and in WSL2, not on Windows itself: nothing was started", file=sys.stderr)
        return 3
    from functools import partial

    from tocsin.cli.bring_up import NotStarted, detached, foreground, start
    from tocsin.runtime import instance

    try:
        state = instance.state_folder(args.state)
        if args.detach:
            return detached(state, ("up", *(["--one-process"] if args.one_process else [])))
        return foreground(state, partial(start, state, args.one_process))
    except (NotStarted, instance.Unusable) as error:
        print(f"tocsin: {error}", file=sys.stderr)
        return error.code if isinstance(error, NotStarted) else 3
