"""`tocsin wakes`: the account of every turn that we caused or tried to cause: why, by which way, and what shows that it came about."""

import argparse
import json
from collections.abc import Mapping
from typing import Any

from tocsin.cli import mail, reading, shown, speak, typed
from tocsin.cli.main import DONE
from tocsin.cli.speak import Speaker
from tocsin.contract.mail import ReadWakes
from tocsin.contract.run import Refused

HEADINGS = ("wake", "time", "state", "cause", "way", "messages", "proof")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Whose, and how many."""
    parser.add_argument("--mailbox", type=typed.name, metavar="ADDRESS", help="run:ID or dispatch:ID (default: your own)")
    parser.add_argument("--limit", type=typed.count, default=50, metavar="N", help="how many, newest first (default 50)")
    speak.arguments(parser, changes=False, limit_s=speak.LOOK_S)


def run(args: argparse.Namespace) -> int:
    """Show it. Exit codes: 0, 3 refused, 4 nobody there."""

    async def work(speaker: Speaker) -> int:
        mailbox = await mail.own_mailbox(speaker, args.mailbox)
        receipt = await speaker.look_at_mailbox(ReadWakes(limit=args.limit), mailbox) if isinstance(mailbox, str) else mailbox
        if isinstance(receipt, Refused):
            return speak.refused(receipt, args.json)
        rows = receipt.result["rows"]
        if args.json:
            print(json.dumps(receipt.result))
        elif rows:
            print(shown.columns(HEADINGS, [cells(row) for row in rows]))
        else:
            print(f"{mailbox or 'Your mailbox'} has woken nobody.")
        if rows and not args.json:
            print(f"{receipt.result['hour']} of at most {receipt.result['hour_max']} in the last hour; {receipt.result['unread']} unread.")
        return DONE

    return speak.through(args, work)


def cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """One wake as people read it; see HEADINGS."""
    return (
        row["wake"], reading.time_of(row.get("at_ms") or 0), row["state"], row.get("cause") or "-", row.get("rung") or "-",
        str(len(row.get("messages") or ())), row.get("proof") or "-",
    )  # fmt: skip
