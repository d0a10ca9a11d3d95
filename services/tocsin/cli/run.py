"""`tocsin run`: a coordinator's Runs. Making or using one binds this pane or shell to it, so that no other verb has to name it."""

import argparse
import json
from typing import Any

from tocsin.cli import shown, speak, typed
from tocsin.cli.main import DONE
from tocsin.cli.speak import Speaker
from tocsin.contract.run import (
    ANY_RUN,
    CloseRun,
    CreateRun,
    ListRuns,
    PauseRun,
    PurgeRun,
    Receipt,
    Refused,
    ResumeRun,
    ShowRun,
    UseRun,
    new_run_id,
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """What to do with which Run."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    create = actions.add_parser("create", help="make a Run and own it")
    create.add_argument(
        "objective", nargs="+", action=typed.Words, metavar="OBJECTIVE", help="what is to be reached; - reads standard input"
    )
    create.add_argument("--workers", type=typed.count, metavar="N", default=8, help="how many may work at once (default 8)")
    create.add_argument("--depth", type=typed.count, metavar="N", default=1, help="how deep workers may have workers (default 1)")
    use = actions.add_parser("use", help="own a Run that is there; who had it is told and fenced")
    use.add_argument("named", type=typed.name, metavar="RUN")
    for action in (create, use):
        speak.arguments(action, run=False)
    listed = actions.add_parser("list", help="the open Runs, the latest change first")
    listed.add_argument("--closed", action="store_true", help="closed ones too")
    listed.add_argument("--after", metavar="CURSOR", help="go on where the page before ended")
    listed.add_argument("--limit", type=typed.count, metavar="N", default=50, help="rows of a page (default 50)")
    speak.arguments(listed, changes=False, run=False, limit_s=speak.LOOK_S)
    for verb, about in (("show", "one Run"), ("pause", "start nothing new"), ("resume", "go on, and close the circuit again")):
        action = actions.add_parser(verb, help=about)
        action.add_argument("named", nargs="?", type=typed.name, metavar="RUN", help="default: the one you are bound to")
        if verb == "pause":
            action.add_argument("--reason", type=typed.text, metavar="WHY", help="why")
        speak.arguments(action, changes=verb != "show", limit_s=speak.LOOK_S if verb == "show" else speak.LIMIT_S)
    close = actions.add_parser("close", help="end it; refused while something is unsettled or has no owner")
    close.add_argument("named", nargs="?", type=typed.name, metavar="RUN", help="default: the one you are bound to")
    close.add_argument("--force", type=typed.text, metavar="WHY", help="all the same, for this reason")
    purge = actions.add_parser("purge", help="forget a closed Run for good")
    purge.add_argument("named", type=typed.name, metavar="RUN")
    for action in (close, purge):
        speak.arguments(action)


def run(args: argparse.Namespace) -> int:
    """Do it. Exit codes: 0, 3 refused, 4 nobody there."""
    return speak.through(args, lambda speaker: ACTIONS[args.action](args, speaker))


async def _create(args: argparse.Namespace, speaker: Speaker) -> int:
    return _bound(args, speaker, await create(speaker, args.objective, args.workers, args.depth))


async def create(speaker: Speaker, objective: str, workers_max: int, depth_max: int) -> Receipt | Refused:
    """Make a Run. Its id follows from who asks under which request, so that a repeat means the same one."""
    request = speaker.options.request or speak.new_request()
    ask = CreateRun(objective=objective, workers_max=workers_max, depth_max=depth_max)
    return await speaker.to_run(ask, new_run_id(speaker.caller, request), request=request)


async def _use(args: argparse.Namespace, speaker: Speaker) -> int:
    return _bound(args, speaker, await speaker.to_run(UseRun(), args.named))


def _bound(args: argparse.Namespace, speaker: Speaker, receipt: Receipt | Refused) -> int:
    if isinstance(receipt, Refused):
        return speak.refused(receipt, args.json)
    named, generation = receipt.result["run"], receipt.result["generation"]
    left = speaker.bind(named, generation)
    if left is not None:
        speak.note(left)
    before = receipt.result.get("before")
    return speak.done(receipt, args.json, f"Run {named}, generation {generation}" + (f", taken over from {before}" if before else ""))


async def _list(args: argparse.Namespace, speaker: Speaker) -> int:
    receipt = await speaker.look_at_run(ListRuns(closed=args.closed, after=args.after, limit=args.limit), ANY_RUN)
    if isinstance(receipt, Refused):
        return speak.refused(receipt, args.json)
    if args.json:
        print(json.dumps(receipt.result))
        return DONE
    rows = receipt.result["rows"]
    if rows:
        headings = ("run", "state", "tasks", "unsettled", "gates", "coordinator", "age", "objective")
        print(shown.columns(headings, [_cells(row, receipt.at_ms) for row in rows]))
    else:
        print("No open Run. Make one: tocsin run create OBJECTIVE" if not args.closed else "No Run.")
    left = shown.page(receipt.result, ["tocsin", "run", "list", *(["--closed"] if args.closed else [])])
    if left:
        print(left)
    return DONE


def _cells(row: dict[str, Any], at_ms: int) -> tuple[str, ...]:
    owner = row["coordinator"] or {}
    return (
        row["run"], row["state"], str(sum(row["tasks"].values())), str(row["unsettled"]), str(row["open_gates"]),
        owner.get("name", "-"), shown.age(at_ms - row["updated_ms"]), shown.one_line(row["objective"], 80),
    )  # fmt: skip


async def _show(args: argparse.Namespace, speaker: Speaker) -> int:
    named = args.named or await speaker.which_run()
    receipt = await speaker.look_at_run(ShowRun(), named) if isinstance(named, str) else named
    if isinstance(receipt, Refused):
        return speak.refused(receipt, args.json)
    row = receipt.result["run"]
    if args.json:
        print(json.dumps(row))
        return DONE
    tasks = ", ".join(f"{number} {state}" for state, number in row["tasks"].items()) or "no Task yet"
    print(shown.plain(f"{row['run']}  {row['state']}{': ' + row['why'] if row['why'] else ''}\n{row['objective']}"))
    print(f"Tasks: {tasks}. Unsettled attempts: {row['unsettled']} (at most {row['workers_max']}). Open gates: {row['open_gates']}.")
    owner = row["coordinator"]
    if owner:
        place = f" in pane {owner['pane']}" if owner.get("pane") else ""
        print(shown.plain(f"Coordinator: {owner['name']}{place}, generation {row['generation']}."))
    print(shown.plain(row["summary"]))
    if row["restored"]:
        print("Its log was lost once and refilled from the view.")
    return DONE


async def _pause(args: argparse.Namespace, speaker: Speaker) -> int:
    return await _changed(args, speaker, PauseRun(reason=args.reason or ""), "paused: nothing new starts")


async def _resume(args: argparse.Namespace, speaker: Speaker) -> int:
    return await _changed(args, speaker, ResumeRun(), "goes on")


async def _close(args: argparse.Namespace, speaker: Speaker) -> int:
    return await _changed(args, speaker, CloseRun(force=args.force), "closed")


async def _purge(args: argparse.Namespace, speaker: Speaker) -> int:
    return await _changed(args, speaker, PurgeRun(), "forgotten")


async def _changed(args: argparse.Namespace, speaker: Speaker, ask: PauseRun | ResumeRun | CloseRun | PurgeRun, word: str) -> int:
    named = args.named or await speaker.which_run()
    receipt = await speaker.to_run(ask, named) if isinstance(named, str) else named
    if isinstance(receipt, Refused):
        return speak.refused(receipt, args.json)
    if isinstance(ask, PurgeRun):
        speaker.forget(str(named))
    left = [f"left unsettled: {', '.join(receipt.result['unsettled'])}"] if receipt.result.get("unsettled") else []
    left += [f"left without an owner: {', '.join(receipt.result['obligations'])}"] if receipt.result.get("obligations") else []
    return speak.done(receipt, args.json, f"Run {named}: {word}", *left)


ACTIONS = {
    "create": _create,
    "use": _use,
    "list": _list,
    "show": _show,
    "pause": _pause,
    "resume": _resume,
    "close": _close,
    "purge": _purge,
}
