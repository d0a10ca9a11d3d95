"""`tocsin gate`: a question on a Task, put to its coordinator or to a person, and its answer. It touches no running worker."""

import argparse
import json
from collections.abc import Mapping
from typing import Any

from tocsin.cli import shown, speak, typed
from tocsin.cli.main import DONE
from tocsin.cli.speak import Speaker
from tocsin.cli.task import task_id
from tocsin.contract.run import ListGates, OpenGate, Refused, ResolveGate, Verdict, run_of_dispatch


def arguments(parser: argparse.ArgumentParser) -> None:
    """What to do with which gate."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    create = actions.add_parser("create", help="put a question on a Task")
    create.add_argument("task", metavar="TASK", type=task_id)
    create.add_argument("question", nargs="+", action=typed.Words, metavar="QUESTION", help="- reads standard input")
    create.add_argument(
        "--option", action="append", type=typed.text, metavar="TEXT", default=[], help="an answer to choose; may be repeated"
    )
    create.add_argument("--to", choices=("coordinator", "person"), default="coordinator", help="who decides (default coordinator)")
    resolve = actions.add_parser("resolve", help="answer it, once per round")
    resolve.add_argument("gate", metavar="GATE", type=typed.name)
    resolve.add_argument("verdict", choices=list(Verdict), metavar="VERDICT", help="accept, rework or reject")
    resolve.add_argument("answer", nargs="*", action=typed.Words, metavar="ANSWER", help="- reads standard input")
    for action in (create, resolve):
        speak.arguments(action)
    listed = actions.add_parser("list", help="the open gates of a Run, oldest first")
    listed.add_argument("--all", action="store_true", help="answered ones too")
    speak.arguments(listed, changes=False, limit_s=speak.LOOK_S)


def run(args: argparse.Namespace) -> int:
    """Do it. Exit codes: 0, 3 refused, 4 nobody there."""
    return speak.through(args, lambda speaker: ACTIONS[args.action](args, speaker))


async def _create(args: argparse.Namespace, speaker: Speaker) -> int:
    ask = OpenGate(task=args.task, question=args.question, options=tuple(args.option), to=args.to)
    named = await speaker.which_run()
    receipt = await speaker.to_run(ask, named) if isinstance(named, str) else named
    if isinstance(receipt, Refused):
        return speak.refused(receipt, args.json)
    return speak.done(receipt, args.json, f"gate {receipt.result['gate']} is open on {receipt.result['task']}")


async def _resolve(args: argparse.Namespace, speaker: Speaker) -> int:
    ask = ResolveGate(gate=args.gate, verdict=Verdict(args.verdict), answer=args.answer or "")
    receipt = await speaker.to_run(ask, run_of_dispatch(args.gate))
    if isinstance(receipt, Refused):
        return speak.refused(receipt, args.json)
    result = receipt.result
    return speak.done(receipt, args.json, f"gate {result['gate']}: {result['verdict']}; {result['task']} is {result['task_state']}")


async def _list(args: argparse.Namespace, speaker: Speaker) -> int:
    named = await speaker.which_run()
    receipt = await speaker.look_at_run(ListGates(all=args.all), named) if isinstance(named, str) else named
    if isinstance(receipt, Refused):
        return speak.refused(receipt, args.json)
    rows = receipt.result["rows"]
    if args.json:
        print(json.dumps(receipt.result))
    elif rows:
        print(shown.columns(("gate", "task", "to", "age", "verdict", "question"), [_cells(row) for row in rows]))
    else:
        print(f"No gate in {named}." if args.all else f"No open gate in {named}.")
    return DONE


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    options = f" [{' | '.join(row['options'])}]" if row["options"] else ""
    answer = f": {row['answer']}" if row["answer"] else ""
    return (
        row["gate"], row["task"], row["to"], shown.age(speak.now_ms() - row["opened_ms"]),
        "open" if row["open"] else shown.one_line(f"{row['verdict']}{answer}", 60), shown.one_line(row["question"] + options, 120),
    )  # fmt: skip


ACTIONS = {"create": _create, "resolve": _resolve, "list": _list}
