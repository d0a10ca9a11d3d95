"""`tocsin worker`: starts workers, shows the fleet with who needs somebody first, and ends what has to end."""

import argparse
import json
import shlex
from collections.abc import Mapping
from typing import Any

from tocsin.cli import output, shown, speak, starting, typed
from tocsin.cli.main import DONE, WANTING
from tocsin.cli.speak import Speaker
from tocsin.contract.refusals import Code
from tocsin.contract.run import (
    ANY_RUN,
    SETTLED,
    AbandonWorker,
    ListWorkers,
    Refused,
    ShowWorker,
    StopWorker,
    run_of_dispatch,
)

STOP_S = 60.0
"""How long an end is waited for: an agent is asked first, and its tree is given time."""

WAITING = ("start", "supersede", "stop")
"""Actions whose `--timeout` is for what they wait for."""

HUMAN_WAIT = {"none": "nobody", "unknown": "?"}
"""How a person is shown that nobody is awaited, and that nobody could look."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What to do with which worker."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    starting.arguments(actions.add_parser("start", help="start an attempt at a Task"))
    supersede = actions.add_parser("supersede", help="start another attempt over one that is unsettled, which is fenced from then on")
    supersede.add_argument("--reason", type=typed.text, metavar="WHY", required=True, help="why the old one does not count any more")
    starting.arguments(supersede)
    listed = actions.add_parser("list", help="the fleet, who needs somebody first")
    listed.add_argument("--all", action="store_true", help="settled ones too")
    listed.add_argument("--failed", action="store_true", help="only those that failed")
    listed.add_argument("--every-run", action="store_true", help="of all open Runs")
    listed.add_argument("--after", metavar="CURSOR", help="go on where the page before ended")
    listed.add_argument("--limit", type=typed.count, metavar="N", default=50, help="rows of a page (default 50)")
    show = actions.add_parser("show", help="one worker: its row, its brief, its reports")
    read = actions.add_parser("read", help="what its terminal shows, or what is kept of it")
    stop = actions.add_parser("stop", help="end its agent; a success also when it has ended already")
    abandon = actions.add_parser("abandon", help="give the attempt up as it is; its agent can be closed afterwards")
    for action in (show, read, stop, abandon):
        action.add_argument("dispatch", metavar="DISPATCH", type=dispatch_id)
    read.add_argument("--lines", type=typed.count, metavar="N", default=200, help="the last N lines (default 200)")
    read.add_argument("--source", choices=list(output.Source), default=output.Source.AUTO, help="default: the first that is there")
    stop.add_argument("--reason", type=typed.text, metavar="WHY", help="why")
    stop.add_argument("--detach", action="store_true", help="do not wait for its end")
    abandon.add_argument("--reason", type=typed.text, metavar="WHY", required=True, help="why")
    for action in (listed, show, read):
        speak.arguments(action, changes=False, run=action is listed, limit_s=speak.LOOK_S)
    speak.arguments(stop, run=False, limit_s=STOP_S)
    speak.arguments(abandon, run=False)


def dispatch_id(given: str) -> str:
    """The id of a Dispatch. Raises ArgumentTypeError."""
    run, _, rest = typed.name(given).partition(".")
    if not run or not rest:
        raise argparse.ArgumentTypeError("the id of a Dispatch is RUN.TASK.N; tocsin worker list shows them")
    return given


def run(args: argparse.Namespace) -> int:
    """Do it. Exit codes: 0, 1 not at work or not ended yet, 3 refused, 4 nobody there."""
    limit_s = min(args.timeout, speak.LIMIT_S) if args.action in WAITING else None
    return speak.through(args, lambda speaker: ACTIONS[args.action](args, speaker), limit_s)


async def _start(args: argparse.Namespace, speaker: Speaker) -> int:
    return await starting.start(args, speaker)


async def _supersede(args: argparse.Namespace, speaker: Speaker) -> int:
    return await starting.start(args, speaker, args.reason)


# ---------------------------------------------------------------- looks


async def _list(args: argparse.Namespace, speaker: Speaker) -> int:
    named: str | Refused = ANY_RUN if args.every_run else await speaker.which_run()
    if isinstance(named, Refused) and named.code == Code.RUN_REQUIRED:
        named = ANY_RUN
    ask = ListWorkers(settled=args.all, failed=args.failed, after=args.after, limit=args.limit)
    receipt = await speaker.look_at_run(ask, named) if isinstance(named, str) else named
    if isinstance(receipt, Refused):
        return speak.refused(receipt, args.json)
    if args.json:
        print(json.dumps(receipt.result))
        return DONE
    rows, scope = receipt.result["rows"], receipt.result["scope"]
    where = "all open Runs" if scope == "all" else f"Run {scope}"
    if rows:
        print(shown.columns(HEADINGS, [cells(row) for row in rows]))
    else:
        print(f"No {'failed ' if args.failed else ''}attempt {'' if args.all or args.failed else 'under way '}in {where}.")
    again = ["tocsin", "worker", "list", *(["--every-run"] if scope == "all" else ["--run", scope])]
    again += [flag for flag, given in (("--all", args.all), ("--failed", args.failed)) if given]
    left = shown.page(receipt.result, again)
    if left:
        print(f"{where}: {left}")
    return DONE


HEADINGS = ("dispatch", "agent", "state", "liveness", "outcome", "activity", "attention", "human", "beat", "custody", "next")


def cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """One worker as people read it; see HEADINGS."""
    reason = f" ({row['liveness_reason']})" if row["liveness_reason"] else ""
    beat = "-" if row["heartbeat"] == "none" else shown.age(row["heartbeat_ms"]) + (" stale" if row["heartbeat"] == "stale" else "")
    need = "!" if row["requires_action"] else ""
    return (
        row["dispatch"], row["agent"], f"{row['state']} {shown.age(speak.now_ms() - row['since_ms'])}", f"{row['liveness']}{reason}",
        row["outcome"], row["activity"], need + (", ".join(row["attention"]) or "-"),
        HUMAN_WAIT.get(row["human_wait"], row["human_wait"]), beat, row["custody"] or "-", shlex.join(row["next"]["command"]) or "-",
    )  # fmt: skip


async def _show(args: argparse.Namespace, speaker: Speaker) -> int:
    receipt = await speaker.look_at_run(ShowWorker(dispatch=args.dispatch), run_of_dispatch(args.dispatch))
    if isinstance(receipt, Refused):
        return speak.refused(receipt, args.json)
    print(json.dumps(receipt.result) if args.json else shown.plain("\n".join(described(receipt.result))))
    return DONE


def described(result: Mapping[str, Any]) -> list[str]:
    """One worker for a person."""
    row, launch = result["worker"], result["launch"]
    place = launch["placement"]
    lines = [
        f"{row['dispatch']}  {row['state']}" + (f": {row['why']}" if row["why"] else "") + ("" if row["current"] else "  (not the current one)"),
        f"{row['title']}",
        f"{row['agent']} on {row['host']}" + (f", pane {row['pane']}" if row["pane"] else "") + (f", at {row['path']}" if row["path"] else ""),
        f"Placement {place['where']}" + "".join(f", {field} {place[field]}" for field in ("branch", "base", "setup") if place.get(field)),
        f"Liveness: {row['liveness']}" + (f" ({row['liveness_reason']})" if row["liveness_reason"] else "")
        + f". Turn start: {row['turn_start']}. Activity: {row['activity']}"
        + (f" ({row['activity_reason']})" if row["activity_reason"] else "") + ".",
        f"Outcome: {row['outcome']}. A person is awaited: {HUMAN_WAIT.get(row['human_wait'], row['human_wait'])}. "
        f"Attention: {', '.join(row['attention']) or 'none'}.",
        f"Heartbeat: {row['heartbeat']}" + (f", {shown.age(row['heartbeat_ms'])} ago" if row["heartbeat_ms"] is not None else "")
        + (f", {row['phase']}" if row["phase"] else "") + f". Custody: {row['custody'] or 'not known'}.",
    ]  # fmt: skip
    if row["report"]:
        lines += [f"Reported {row['report']['outcome']}:", row["report"]["body"].rstrip()]
    lines += [f"Late report, kept and without effect: {late['outcome']}: {late['body']}" for late in result["late_reports"]]
    lines += [f"Refused {one['what']}: {one['why']} [{one['code']}]" for one in result["refused"]]
    if row["next"]["command"]:
        lines.append(f"  next: {shlex.join(row['next']['command'])}")
    return lines


async def _read(args: argparse.Namespace, speaker: Speaker) -> int:
    found = await output.read(speaker, args.dispatch, output.Source(args.source), args.lines)
    if isinstance(found, Refused):
        return speak.refused(found, args.json)
    if args.json:
        print(json.dumps(found._asdict()))
    else:
        print(shown.plain(found.text))
        if found.cut:
            speak.note(f"these are the last {args.lines} lines of its {found.source}; --lines N shows more")
    return DONE


# ---------------------------------------------------------------- ends


async def _stop(args: argparse.Namespace, speaker: Speaker) -> int:
    receipt = await speaker.to_run(StopWorker(dispatch=args.dispatch, reason=args.reason or ""), run_of_dispatch(args.dispatch))
    if isinstance(receipt, Refused):
        return speak.refused(receipt, args.json)
    state = str(receipt.result["state"])
    if not args.detach and state not in SETTLED:
        row = await starting.wait(speaker, args.dispatch, SETTLED, args.timeout)
        if isinstance(row, Refused):
            return speak.refused(row, args.json)
        state = receipt.result["state"] = str(row["state"])
    before = " (it had ended already)" if receipt.result["already_ended"] else ""
    speak.done(receipt, args.json, f"{args.dispatch}: {state}{before}")
    return DONE if args.detach or state in SETTLED else WANTING


async def _abandon(args: argparse.Namespace, speaker: Speaker) -> int:
    receipt = await speaker.to_run(AbandonWorker(dispatch=args.dispatch, reason=args.reason), run_of_dispatch(args.dispatch))
    if isinstance(receipt, Refused):
        return speak.refused(receipt, args.json)
    closes = f"its agent may still run; to close it: tocsin custody release {args.dispatch}"
    return speak.done(receipt, args.json, f"{args.dispatch}: {receipt.result['state']}", closes)


ACTIONS = {
    "start": _start,
    "supersede": _supersede,
    "list": _list,
    "show": _show,
    "read": _read,
    "stop": _stop,
    "abandon": _abandon,
}
