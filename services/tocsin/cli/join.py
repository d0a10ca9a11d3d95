"""`tocsin join`: this machine takes part in an instance that runs on another one, with its own intake, eyes and hands."""

import argparse
import sys
from pathlib import Path


def arguments(parser: argparse.ArgumentParser) -> None:
    """The invitation, and how this machine is called."""
    parser.add_argument(
        "invitation", nargs="?", metavar="FILE", help="what `tocsin invite` printed, - for stdin (default: the one kept here)"
    )
    parser.add_argument("--host", metavar="NAME", help="name of this machine in the list (TOCSIN_HOST; default: its own)")
    parser.add_argument("--bus", metavar="URL", help="another address of the bus than the invitation's")
    parser.add_argument("--state", type=Path, metavar="DIR", help="this machine's folder (TOCSIN_STATE)")
    parser.add_argument("--detach", action="store_true", help="return when this machine takes part, and go on in the background")


def run(args: argparse.Namespace) -> int:
    """Take part until asked to stop. Exit codes: 0 stopped, 2 no invitation, 3 refused, 4 the bus cannot be used."""
    from tocsin.cli.bring_up import NotStarted, caller, detached, foreground, refuse_held
    from tocsin.cli.invitation import FILE, BadInvitation
    from tocsin.cli.joining import Joining, kept
    from tocsin.runtime import instance

    state = instance.state_folder(args.state)
    try:
        refuse_held(state, caller(state))
        if args.invitation is None and not (state / FILE).exists():
            print(
                f"tocsin: {state} holds no invitation: tocsin join FILE, with what `tocsin invite` printed where the instance runs",
                file=sys.stderr,
            )
            return 2
        given = sys.stdin.buffer.read() if args.invitation == "-" else Path(args.invitation).read_bytes() if args.invitation else None
        invitation = kept(state, given, bus=args.bus, host=args.host)
        if args.detach:
            return detached(state, ("join",))
        return foreground(state, Joining(state, invitation).start)
    except BadInvitation as error:
        print(f"tocsin: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"tocsin: {args.invitation}: {error.strerror}", file=sys.stderr)
        return 2
    except (NotStarted, instance.Unusable) as error:
        print(f"tocsin: {error}", file=sys.stderr)
        return error.code if isinstance(error, NotStarted) else 3
