"""`tocsin notify`: how you are told of what needs you, and a test of it."""

import argparse
import json
from pathlib import Path
from typing import Any

from tocsin.cli import reading
from tocsin.cli.ask_console import ask_console
from tocsin.cli.main import DONE, WANTING, refuse
from tocsin.contract.refusals import Refusal
from tocsin.runtime.instance import state_folder


def arguments(parser: argparse.ArgumentParser) -> None:
    """Whether to look or to test."""
    parser.add_argument("--test", action="store_true", help="tell a notice that tells of nothing, now, to every screen and the webhook")
    parser.add_argument("--json", action="store_true", help="machine-readable output")
    parser.add_argument("--state", type=Path, metavar="DIR", help="the instance's folder (TOCSIN_STATE)")


def run(args: argparse.Namespace) -> int:
    """Look or test. Exit codes: 0; 1 when the webhook failed; 3 refused; 4 when no console answers."""
    state = state_folder(args.state)
    told = ask_console(state, "/api/notify/test", {}) if args.test else ask_console(state, "/api/notify")
    if isinstance(told, Refusal):
        return refuse(told, args.json)
    if args.json:
        print(json.dumps(told))
    else:
        print("\n".join(tested(told) if args.test else lines(told)))
    failed = told["failed"] is not None if args.test else bool(told["webhook"] and told["webhook"]["failed_last"])
    return WANTING if failed else DONE


def tested(told: dict[str, Any]) -> list[str]:
    """What came of a test."""
    said = ["said to every page and pane-host that shows notices"]
    if told["webhook"] is None:
        return [*said, "no webhook: TOCSIN_NOTIFY_URL is not set"]
    return [*said, f"webhook: {told['failed']}" if told["failed"] is not None else f"webhook: {told['webhook']} has taken it"]


def lines(told: dict[str, Any]) -> list[str]:
    """How things stand."""
    webhook = told["webhook"]
    if webhook is None:
        said = ["webhook: none (TOCSIN_NOTIFY_URL)"]
    elif webhook["failed_last"]:
        said = [f"webhook: {webhook['host']}, the last one failed at {reading.time_of(webhook['failed_ms'])}: {webhook['error']}"]
    else:
        last = f"last told at {reading.time_of(webhook['sent_ms'])}" if webhook["sent_ms"] else "nothing told yet"
        said = [f"webhook: {webhook['host']}, {last}"]
    hours = ", ".join(told["quiet_hours"])
    said.append(f"quiet hours: {hours}{', which it is now' if told['is_quiet'] else ''}" if hours else "quiet hours: none")
    if told["waiting"]:
        said.append(f"{told['waiting']} wait to be told")
    return said
