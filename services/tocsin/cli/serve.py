"""`tocsin serve SERVICE`: be one service until asked to stop. What the containers run; `up` starts the same modules."""

import argparse
import importlib
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

SERVICES = {
    "status-store": "tocsin.status_store.__main__",
    "sorter": "tocsin.sorter.__main__",
    "hook-ingest": "tocsin.hook_ingest.__main__",
    "dispatcher": "tocsin.dispatcher.__main__",
    "mailbox": "tocsin.mailbox.__main__",
    "release-accountant": "tocsin.release_accountant.__main__",
    "pane-host": "tocsin.pane_host.__main__",
    "console": "tocsin.console.__main__",
}
"""Every service and the module whose `main` is it, in the order in which `up` starts them."""


def main_of(service: str) -> Callable[[], Awaitable[None]]:
    """The coroutine that is the service: it reads its settings from the environment and runs until cancelled."""
    main: Callable[[], Awaitable[None]] = importlib.import_module(SERVICES[service]).main
    return main


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which service."""
    parser.add_argument("service", choices=SERVICES)
    parser.add_argument("--state", type=Path, metavar="DIR", help="the instance's folder (TOCSIN_STATE)")


def run(args: argparse.Namespace) -> int:
    """Be it; ends with the service's own exit code."""
    from tocsin.runtime.run import run as be

    if args.state:
        os.environ["TOCSIN_STATE"] = str(args.state.expanduser().resolve())
    be(args.service, main_of(args.service))
    return 0
