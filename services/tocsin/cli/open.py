"""`tocsin open`: the page in your browser, logged in by a ticket that works once."""

import argparse
import getpass
import html
import json
import sys
import webbrowser
from importlib.metadata import version
from pathlib import Path

from tocsin.cli.ask_console import ask_at
from tocsin.cli.main import DONE, refuse
from tocsin.contract.refusals import Code, Refusal

DOOR = "open.html"
"""A file of the instance's folder that leads the browser to the page. Its name may stand in a process list; a ticket may not."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Whether to print the address, and what the session may."""
    parser.add_argument("--print", action="store_true", dest="only_print", help="print the address, good for one login within 60 s")
    parser.add_argument("--read-only", action="store_true", help="a session that shows everything and changes nothing")
    parser.add_argument("--json", action="store_true", help="machine-readable output; implies --print")
    parser.add_argument("--state", type=Path, metavar="DIR", help="the instance's folder (TOCSIN_STATE)")


def person() -> str:
    """The user's name, which stands beside what is commanded from the page."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "person"


def ticket_for(console_url: str, credential: str, name: str, scope: str) -> str | Refusal:
    """A ticket of the console at that address. Refuses: what it refuses; unavailable, when it does not answer."""
    said = ask_at(console_url, credential, "/api/tickets", {"name": name, "scope": scope})
    return said if isinstance(said, Refusal) else str(said["ticket"])


def run(args: argparse.Namespace) -> int:
    """Open it. Exit codes: 0, 3 refused, 4 when no console answers."""
    from tocsin.runtime import instance

    state = instance.state_folder(args.state)
    reached = instance.reach(state, version("tocsin"))
    if isinstance(reached, Refusal):
        return refuse(reached, args.json)
    if reached.console_url is None:
        return refuse(Refusal(Code.NOT_RUNNING, f"no console runs on {state}"), args.json)
    credential = instance.credential(state, instance.COMMAND_CREDENTIAL) or ""
    ticket = ticket_for(reached.console_url, credential, person(), "read" if args.read_only else "command")
    if isinstance(ticket, Refusal):
        return refuse(ticket, args.json)
    address = f"{reached.console_url}/#ticket={ticket}"
    if args.json:
        print(json.dumps({"url": address}))
    elif args.only_print:
        print(address)
    else:
        door = state / DOOR
        target = html.escape(address)
        page = f'<!doctype html><title>Tocsin</title><meta http-equiv="refresh" content="0; url={target}"><a href="{target}">Tocsin</a>\n'
        try:
            instance.write_private(door, page.encode())
        except instance.Unusable as error:
            print(f"tocsin: {error}", file=sys.stderr)
            return 3
        if not webbrowser.open(door.as_uri()):
            print(f"no browser was found here; open this address within 60 s:\n{address}")
    return DONE
