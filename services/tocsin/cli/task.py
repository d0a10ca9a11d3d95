"""`tocsin task`: what is to be done, in which order, and what became of it."""

import argparse
import json
import shlex
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from tocsin.cli import graph, shown, speak, typed
from tocsin.cli.main import DONE, USAGE
from tocsin.cli.speak import Speaker
from tocsin.contract.run import (
    Accept,
    AcceptTask,
    AddTasks,
    CancelTask,
    ListTasks,
    OnSettle,
    Receipt,
    Refused,
    ReopenTask,
    RunVerb,
    ShowTask,
    TaskKind,
    TaskSpec,
    TaskState,
    UpdateTask,
    Verdict,
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """What to do with which Task."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add = actions.add_parser("add", help="add one Task, or a whole graph from a file, all or nothing")
    add.add_argument("task", nargs="?", metavar="TASK", type=task_id, help="its id: letters, digits, - and _")
    add.add_argument("title", nargs="*", metavar="TITLE", help="what it is, in one line")
    add.add_argument("--file", metavar="FILE", help="a YAML or JSON list of Tasks; - reads standard input")
    add.add_argument("--review", metavar="TASK", type=task_id, help="it judges this Task")
    add.add_argument("--agent", type=typed.name, metavar="AGENT", help="who does it, unless its start says otherwise")
    add.add_argument("--parent", metavar="TASK", type=task_id, help="it is a part of this Task")
    update = actions.add_parser("update", help="change what may still change")
    update.add_argument("task", metavar="TASK", type=task_id)
    update.add_argument("--title", type=typed.text, metavar="TEXT")
    for action in (add, update):
        action.add_argument("--spec", type=typed.text, metavar="TEXT", help="what is to be done; - reads standard input")
        action.add_argument("--deps", type=task_ids, metavar="TASK,...", help="what must be accepted before; '' for nothing")
        action.add_argument("--accept", choices=list(Accept), help="what accepts its report (default coordinator)")
        action.add_argument("--max-rounds", type=int, metavar="N", help="fix rounds before it is blocked (default 3)")
        action.add_argument("--on-settle", choices=list(OnSettle), help="what becomes of its worker then")
    listed = actions.add_parser("list", help="the Tasks of a Run, in the order in which they were added")
    listed.add_argument("--ready", action="store_true", help="only those that can be started")
    listed.add_argument("--status", action="append", choices=list(TaskState), default=[], help="only those; may be repeated")
    listed.add_argument("--after", metavar="CURSOR", help="go on where the page before ended")
    listed.add_argument("--limit", type=typed.count, metavar="N", default=50, help="rows of a page (default 50)")
    show = actions.add_parser("show", help="one Task with all its attempts")
    show.add_argument("task", metavar="TASK", type=task_id)
    accept = actions.add_parser("accept", help="your verdict on a reported Task")
    accept.add_argument("task", metavar="TASK", type=task_id)
    accept.add_argument("verdict", nargs="?", choices=list(Verdict), default=Verdict.ACCEPT, help="default accept; rework needs a reason")
    accept.add_argument("--commit", type=typed.text, metavar="SHA", help="what was judged")
    reopen = actions.add_parser("reopen", help="bring an ended or blocked Task back")
    cancel = actions.add_parser("cancel", help="end a Task without a result")
    for action in (reopen, cancel):
        action.add_argument("task", metavar="TASK", type=task_id)
    cancel.add_argument("--unverifiable", action="store_true", help="it ends as that: nobody can know its outcome")
    for action in (accept, reopen, cancel):
        action.add_argument("--reason", type=typed.text, metavar="WHY", required=action is not accept)
    for action in (add, update, accept, reopen, cancel):
        speak.arguments(action)
    for action in (listed, show):
        speak.arguments(action, changes=False, limit_s=speak.LOOK_S)


def task_id(given: str) -> str:
    """A Task's id. Raises ArgumentTypeError."""
    if not graph.TASK_ID.fullmatch(given):
        raise argparse.ArgumentTypeError("the id of a Task is 1 to 64 letters, digits, - and _")
    return given


def task_ids(given: str) -> tuple[str, ...]:
    """Ids with commas between them. Raises ArgumentTypeError."""
    return tuple(task_id(one.strip()) for one in given.split(",")) if given.strip() else ()


def run(args: argparse.Namespace) -> int:
    """Do it. Exit codes: 0, 2 when a file is no graph of Tasks, 3 refused, 4 nobody there."""
    if args.action != "add":
        return speak.through(args, lambda speaker: ACTIONS[args.action](args, speaker))
    tasks = given_tasks(args)
    return tasks if isinstance(tasks, int) else speak.through(args, lambda speaker: _add(args, speaker, tasks))


def given_tasks(args: argparse.Namespace) -> tuple[TaskSpec, ...] | int:
    """The Tasks that are to be added, or an exit code when what was given is no such thing."""
    if args.file is not None:
        if args.task is not None:
            return typed.usage("either one Task, or --file")
        return from_file(args.file, args.json)
    if args.task is None:
        return typed.usage("name the Task: tocsin task add TASK TITLE, or a whole graph: tocsin task add --file FILE")
    title = shown.one_line(" ".join(args.title)) or shown.one_line(args.spec or "", 80)
    if not title:
        return typed.usage("say what it is: tocsin task add TASK TITLE [--spec TEXT]")
    return (
        TaskSpec(
            id=args.task, title=title, spec=args.spec or title, deps=args.deps or (),
            kind=TaskKind.REVIEW if args.review else TaskKind.WORK, reviews=args.review,
            accept=Accept(args.accept or Accept.COORDINATOR), max_rounds=3 if args.max_rounds is None else args.max_rounds,
            on_settle=args.on_settle and OnSettle(args.on_settle), agent=args.agent, parent=args.parent,
        ),
    )  # fmt: skip


def from_file(named: str, as_json: bool) -> tuple[TaskSpec, ...] | int:
    """The Tasks of a file; every mistake of it on stderr, one a line, and the exit code 2."""
    shown_name = "standard input" if named == "-" else shown.one_line(named)
    try:
        data = sys.stdin.buffer.read(graph.BYTES_MAX + 1) if named == "-" else _read(Path(named))
        return graph.read(data, graph.looks_like_json(named, data))
    except OSError as error:
        return typed.usage(f"{shown_name}: {error.strerror or error}")
    except graph.BadGraph as error:
        if as_json:
            faults = [fault._asdict() | {"file": shown_name} for fault in error.faults]
            print(json.dumps({"code": "bad_field", "message": f"{shown_name}: {error}", "faults": faults}), file=sys.stderr)
        else:
            for fault in error.faults[: graph.FAULTS_SHOWN_MAX]:
                print(shown.plain(fault.told(shown_name)), file=sys.stderr)
            if len(error.faults) > graph.FAULTS_SHOWN_MAX:
                print(f"and {len(error.faults) - graph.FAULTS_SHOWN_MAX} more", file=sys.stderr)
        return USAGE


def _read(path: Path) -> bytes:
    with path.open("rb") as opened:
        return opened.read(graph.BYTES_MAX + 1)


# ---------------------------------------------------------------- changes


async def _add(args: argparse.Namespace, speaker: Speaker, tasks: tuple[TaskSpec, ...]) -> int:
    receipt = await _to_run(speaker, AddTasks(tasks=tasks))
    if isinstance(receipt, Refused):
        return speak.refused(receipt, args.json)
    rows = receipt.result["tasks"]
    lines = [f"{row['task']}: {row['state']}" + _waits(row) for row in rows[: graph.FAULTS_SHOWN_MAX]]
    if len(rows) > len(lines):
        lines.append(f"and {len(rows) - len(lines)} more")
    return speak.done(receipt, args.json, *lines)


def _waits(row: Mapping[str, Any]) -> str:
    return f" (waits for {', '.join(row['blocked_by'])})" if row.get("blocked_by") else ""


async def _to_run(speaker: Speaker, ask: RunVerb) -> Receipt | Refused:
    named = await speaker.which_run()
    return await speaker.to_run(ask, named) if isinstance(named, str) else named


async def _changed(args: argparse.Namespace, speaker: Speaker, ask: RunVerb) -> int:
    receipt = await _to_run(speaker, ask)
    if isinstance(receipt, Refused):
        return speak.refused(receipt, args.json)
    row = receipt.result["task"]
    why = f": {shown.one_line(row['why'], 120)}" if row["why"] else ""
    return speak.done(receipt, args.json, f"{row['task']}: {row['state']}{_waits(row)}{why}")


async def _update(args: argparse.Namespace, speaker: Speaker) -> int:
    ask = UpdateTask(
        task=args.task, title=args.title, spec=args.spec, deps=args.deps, accept=args.accept and Accept(args.accept),
        max_rounds=args.max_rounds, on_settle=args.on_settle and OnSettle(args.on_settle),
    )  # fmt: skip
    return await _changed(args, speaker, ask)


async def _accept(args: argparse.Namespace, speaker: Speaker) -> int:
    ask = AcceptTask(task=args.task, verdict=Verdict(args.verdict), reason=args.reason or "", commit=args.commit)
    return await _changed(args, speaker, ask)


async def _reopen(args: argparse.Namespace, speaker: Speaker) -> int:
    return await _changed(args, speaker, ReopenTask(task=args.task, reason=args.reason))


async def _cancel(args: argparse.Namespace, speaker: Speaker) -> int:
    return await _changed(args, speaker, CancelTask(task=args.task, reason=args.reason, unverifiable=args.unverifiable))


# ---------------------------------------------------------------- looks


async def _list(args: argparse.Namespace, speaker: Speaker) -> int:
    states = tuple(TaskState(word) for word in args.status) + ((TaskState.READY,) if args.ready else ())
    named = await speaker.which_run()
    ask = ListTasks(states=states, after=args.after, limit=args.limit)
    receipt = await speaker.look_at_run(ask, named) if isinstance(named, str) else named
    if isinstance(receipt, Refused):
        return speak.refused(receipt, args.json)
    if args.json:
        print(json.dumps(receipt.result))
        return DONE
    rows = receipt.result["rows"]
    if rows:
        headings = ("task", "state", "round", "tries", "current", "waits for", "title")
        print(shown.columns(headings, [_cells(row) for row in rows]))
    else:
        print(f"No such Task in {named}." if states else f"No Task in {named} yet. Add one: tocsin task add TASK TITLE")
    again = ["tocsin", "task", "list", "--run", str(named), *(word for state in states for word in ("--status", state))]
    left = shown.page(receipt.result, again)
    if left:
        print(left)
    return DONE


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        row["task"], row["state"], str(row["round"]), str(row["attempts"]), row["current"] or "-",
        ", ".join(row["blocked_by"]) or "-", shown.one_line(row["title"], 80),
    )  # fmt: skip


async def _show(args: argparse.Namespace, speaker: Speaker) -> int:
    named = await speaker.which_run()
    receipt = await speaker.look_at_run(ShowTask(task=args.task), named) if isinstance(named, str) else named
    if isinstance(receipt, Refused):
        return speak.refused(receipt, args.json)
    if args.json:
        print(json.dumps(receipt.result))
    else:
        print(shown.plain("\n".join(described(receipt.result))))
    return DONE


def described(result: Mapping[str, Any]) -> list[str]:
    """One Task for a person."""
    row = result["task"]
    what = f"{row['kind']} of {row['reviews']}" if row["reviews"] else row["kind"]
    lines = [
        f"{row['task']}  {row['state']}{_waits(row)}" + (f": {row['why']}" if row["why"] else ""),
        row["title"],
        f"{what}, accepted by {row['accept']}, round {row['round']} of at most {row['max_rounds']}"
        + (f", needs {', '.join(row['deps'])}" if row["deps"] else "")
        + (f", needed by {', '.join(row['dependents'])}" if row.get("dependents") else ""),
    ]
    if row["spec"] != row["title"]:
        lines += ["", row["spec"].rstrip(), ""]
    if row["findings"]:
        lines.append(f"Findings: {row['findings']}")
    if row["gate"]:
        lines.append(f"A gate is open: {row['gate']}")
    lines += [f"Verdict of {one['by']}: {one['verdict']} {one['findings'] or ''}".rstrip() for one in result["verdicts"]]
    for worker in result["workers"]:
        lines.append(f"{worker['dispatch']}  {worker['agent']}  {worker['state']}" + (f": {worker['why']}" if worker["why"] else ""))
        if worker["report"]:
            lines.append(f"  reported {worker['report']['outcome']}: {shown.one_line(worker['report']['body'], 200)}")
        if worker["next"]["command"]:
            lines.append(f"  next: {shlex.join(worker['next']['command'])}")
    return lines


ACTIONS: Mapping[str, Callable[[argparse.Namespace, Speaker], Awaitable[int]]] = {
    "list": _list,
    "show": _show,
    "update": _update,
    "accept": _accept,
    "reopen": _reopen,
    "cancel": _cancel,
}
