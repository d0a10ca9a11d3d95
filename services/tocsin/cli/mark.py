"""`tocsin mark`: what is urgent to you, and what you do not want to hear of now. Nobody else's list is moved by it."""

import argparse
import json
import time
from pathlib import Path
from typing import Any

from tocsin.cli import reading, typed
from tocsin.cli.ask_console import ask_console
from tocsin.cli.main import DONE, refuse
from tocsin.contract.refusals import Refusal
from tocsin.listing.find import clean
from tocsin.runtime.instance import state_folder

PATH = "/api/marks"


def arguments(parser: argparse.ArgumentParser) -> None:
    """What to do, and with which worktree."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    urgent = actions.add_parser("urgent", help="tell of it also in quiet hours, and louder")
    snooze = actions.add_parser("snooze", help="do not tell of it until it needs you anew, or for a time")
    snooze.add_argument("--for", dest="length", type=some_time, metavar="TIME", help="30m, 2h; what asks then still, you are told of")
    clear = actions.add_parser("clear", help="take its marks away")
    listed = actions.add_parser("list", help="what is marked")
    for one in (urgent, snooze, clear):
        one.add_argument("worktree", metavar="NAME", help="its name or id, as the list has it")
    for one in (urgent, snooze, clear, listed):
        one.add_argument("--json", action="store_true", help="machine-readable output")
        one.add_argument("--state", type=Path, metavar="DIR", help="the instance's folder (TOCSIN_STATE)")


def some_time(given: str) -> float:
    """A time in seconds, longer than nothing. Raises ArgumentTypeError."""
    if (length := typed.seconds(given)) < 1:
        raise argparse.ArgumentTypeError("write a time that is more than nothing, a second at least")
    return length


def run(args: argparse.Namespace) -> int:
    """Do it. Exit codes: 0, 3 refused, 4 when no console answers."""
    told = ask_console(state_folder(args.state), PATH, None if args.action == "list" else asked(args))
    if isinstance(told, Refusal):
        return refuse(told, args.json)
    if args.json:
        print(json.dumps(told))
    elif args.action == "list":
        print("\n".join(f"{clean(one)}: {words(mark)}" for one, mark in told["marks"].items()) or "nothing is marked")
    else:
        print(f"{clean(told['name'])}: {words(told['marks'].get(told['worktree']))}")
    return DONE


def asked(args: argparse.Namespace) -> dict[str, Any]:
    """What is asked of the console."""
    match args.action:
        case "urgent":
            return {"worktree": args.worktree, "urgent": True}
        case "snooze":
            return {"worktree": args.worktree, "snooze": "anew" if args.length is None else int(args.length * 1000)}
    return {"worktree": args.worktree, "urgent": False, "snooze": None}


def words(mark: dict[str, Any] | None) -> str:
    """A mark as a person reads it."""
    if mark is None:
        return "not marked"
    parts = ["urgent"] if mark["urgent"] else []
    snooze = mark["snooze"]
    if snooze is not None:
        until_ms = snooze["until_ms"]
        over = until_ms is not None and until_ms <= time.time_ns() // 1_000_000
        if not over:
            parts.append("snoozed until it needs you anew" if until_ms is None else f"snoozed until {reading.time_of(until_ms)}")
    return ", ".join(parts) or "not marked"
