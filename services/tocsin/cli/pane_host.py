"""`tocsin pane-host`: be the hands and eyes of this machine, in the foreground."""

import argparse
import os


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("--state", metavar="DIR", help="the instance's folder (default: TOCSIN_STATE, else ~/.local/state/tocsin)")
    parser.add_argument("--nats", metavar="URL", help="the bus (default: NATS_URL, else where the instance runs)")
    parser.add_argument("--host", metavar="NAME", help="name of this machine in the list (default: TOCSIN_HOST, else as the instance says)")
    parser.add_argument("--workspace", metavar="NAME", help="the list that its panes belong to")


def run(args: argparse.Namespace) -> int:
    """Run until interrupted; ends with the service's own exit code."""
    from tocsin.runtime.instance import endpoint, state_folder

    state = state_folder(args.state)
    reached = endpoint(state)
    chosen = {
        "TOCSIN_STATE": (str(state), None),
        "NATS_URL": (args.nats, reached.nats_url if reached else None),
        "TOCSIN_HOST": (args.host, reached.host if reached else None),
        "TOCSIN_WORKSPACE": (args.workspace, reached.workspace if reached else None),
    }
    # Settings are read from the environment; an option comes before it, the instance's own word behind it.
    for name, (asked, otherwise) in chosen.items():
        if asked:
            os.environ[name] = asked
        elif otherwise:
            os.environ.setdefault(name, otherwise)

    from tocsin.pane_host.__main__ import main
    from tocsin.runtime.run import run as run_service

    run_service("pane-host", main)
    return 0
