"""`tocsin custody`: who owns each terminal and worktree that we made, and what is to become of them."""

import argparse
import asyncio
import json
import time
from collections.abc import Callable, Sequence

import msgspec

from tocsin.cli import reading, shown, speak, typed
from tocsin.cli.main import DONE, WANTING
from tocsin.cli.speak import Speaker
from tocsin.contract.custody import (
    ALL,
    LIST_MAX,
    CustodyRow,
    CustodyState,
    ListCustodies,
    Past,
    Release,
    Retain,
    ShowCustody,
    UndoRemoval,
    WorktreeState,
)
from tocsin.contract.run import Receipt, Refused

HEADINGS = ("custody", "state", "age", "outcome", "worktree", "why", "next")

WAIT_S = 20.0
"""How long `release` and `undo` look on: a host that is there has ended everything by then."""

LOOK_EVERY_S = 0.1

UNDER_WAY = frozenset({CustodyState.RELEASING, CustodyState.RELEASE_PENDING})
MOVING = frozenset({WorktreeState.LEAVING, WorktreeState.RETURNING})


def arguments(parser: argparse.ArgumentParser) -> None:
    """What to do with which custody."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listed = actions.add_parser("list", help="those that are not over, who needs a decision first")
    listed.add_argument("--all", action="store_true", help="also those that are over: released, reused, not ours")
    listed.add_argument("--owed", action="store_true", help="only settled workers without a disposition")
    listed.add_argument("--host", metavar="HOST", help="only those on this machine")
    listed.add_argument("--after", metavar="CUSTODY", help="go on behind this one")
    listed.add_argument("--limit", type=typed.count, metavar="N", default=50, help=f"rows of a page (default 50, at most {LIST_MAX})")
    speak.arguments(listed, changes=False, limit_s=speak.LOOK_S)
    show = actions.add_parser("show", help="one of them, with every decision about it")
    show.add_argument("custody", metavar="DISPATCH", type=typed.name)
    speak.arguments(show, changes=False, run=False, limit_s=speak.LOOK_S)
    retain = actions.add_parser("retain", help="keep a worker: why, until when or for which review")
    retain.add_argument("custody", metavar="DISPATCH", type=typed.name)
    retain.add_argument("--reason", type=typed.text, metavar="WHY", required=True)
    retain.add_argument("--for", dest="for_s", type=typed.seconds, metavar="TIME", help="only so long: 30m, 2h; then its policy decides")
    retain.add_argument("--gate", type=typed.name, metavar="GATE", help="until this review Task or gate has its verdict")
    release = actions.add_parser("release", help="end its processes with proof, and clean up its worktree where that loses nothing")
    release.add_argument("custody", metavar="DISPATCH", type=typed.name)
    release.add_argument("--reason", type=typed.text, metavar="WHY")
    release.add_argument("--keep-worktree", action="store_true", help="leave its worktree as it is")
    release.add_argument("--again", action="store_true", help="although it is released: something of it lives")
    undo = actions.add_parser("undo", help="bring a removed worktree back, for seven days")
    undo.add_argument("custody", metavar="DISPATCH", type=typed.name)
    for action in (retain, release, undo):
        speak.arguments(action, run=False)
    for action in (release, undo):
        action.add_argument(
            "--wait", type=typed.seconds, metavar="TIME", default=WAIT_S, help=f"how long to look on (default {WAIT_S:g} s)"
        )


def run(args: argparse.Namespace) -> int:
    """Do it. Exit codes: 0, 1 when a release or return has not come to its end, 3 refused, 4 nobody there."""
    return speak.through(args, lambda speaker: ACTIONS[args.action](args, speaker))


async def _list(args: argparse.Namespace, speaker: Speaker) -> int:
    ask = ListCustodies(
        run=args.run, host=args.host, open_only=not args.all and not args.owed, obligations_only=args.owed, after=args.after,
        limit=min(args.limit, LIST_MAX),
    )  # fmt: skip
    receipt = await speaker.look_at_custody(ask, ALL)
    if isinstance(receipt, Refused):
        return speak.refused(receipt, args.json)
    result = receipt.result
    if args.json:
        print(json.dumps(result))
        return DONE
    rows = [msgspec.convert(row, CustodyRow) for row in result["rows"]]
    now_ms = speak.now_ms()
    if rows:
        print(shown.columns(HEADINGS, [_cells(row, now_ms) for row in rows]))
    else:
        print("Nothing is owed." if args.owed else "No terminal or worktree is in anybody's custody.")
    if more := shown.page(result, ("tocsin", "custody", "list", *(["--run", args.run] if args.run else []))):
        print(more)
    if result["obligations"] and not args.owed:
        print(f"{result['obligations']} of {result['total']} still need a disposition: tocsin custody list --owed")
    return DONE


def _cells(row: CustodyRow, now_ms: int) -> tuple[str, ...]:
    return (
        row.custody, row.state.value, shown.age(now_ms - row.since_ms), row.outcome or "-", row.worktree.value if row.worktree else "-",
        shown.one_line(row.obligation or row.why or row.worktree_why, 80), row.next[0] if row.next else "-",
    )  # fmt: skip


async def _row(speaker: Speaker, custody: str) -> tuple[CustodyRow, list[Past]] | Refused:
    receipt = await speaker.look_at_custody(ShowCustody(), custody)
    if isinstance(receipt, Refused):
        return receipt
    return msgspec.convert(receipt.result["row"], CustodyRow), msgspec.convert(receipt.result["history"], list[Past])


async def _show(args: argparse.Namespace, speaker: Speaker) -> int:
    found = await _row(speaker, args.custody)
    if isinstance(found, Refused):
        return speak.refused(found, args.json)
    row, history = found
    if args.json:
        print(json.dumps({"row": msgspec.to_builtins(row), "history": msgspec.to_builtins(history)}))
        return DONE
    say(described(row))
    say([f"  {reading.time_of(past.at_ms)}  {past.what}: {past.why} ({past.by})" for past in history])
    return DONE


def described(row: CustodyRow) -> list[str]:
    """One custody in lines for a person."""
    gate = f", until {row.gate} has its verdict" if row.gate else ""
    until = f", until {reading.time_of(row.until_ms)}" if row.until_ms else ""
    lines = [f"{row.custody} is {row.state.value.replace('_', ' ')}: {row.why}{gate}{until} ({row.by})"]
    if row.handed_to:
        lines.append(f"  its terminal went to {row.handed_to}")
    if row.pane:
        process = f", pid {row.process.pid}" if row.process else ""
        lines.append(f"  terminal: {row.pane} on {row.host}{process}")
    if row.path:
        worktree = f", {row.worktree.value}: {row.worktree_why}" if row.worktree and row.worktree_why else ""
        lines.append(f"  works in: {row.path}{worktree}")
    if row.trash and row.worktree is WorktreeState.TRASHED and row.worktree_until_ms:
        lines.append(f"  in the trash until {reading.time_of(row.worktree_until_ms)}: {row.trash}")
    lines += [f"  {what}: {text}" for what, text in (("proof", row.proof), ("output", row.archive), ("owed", row.obligation)) if text]
    return lines + [f"  next: {step}" for step in row.next]


def say(lines: Sequence[str]) -> None:
    """Print lines that a terminal only shows."""
    for line in lines:
        print(shown.one_line(line) if not line.startswith("  ") else f"  {shown.one_line(line)}")


async def _retain(args: argparse.Namespace, speaker: Speaker) -> int:
    until_ms = speak.now_ms() + round(args.for_s * 1000) if args.for_s is not None else None
    receipt = await speaker.to_custody(Retain(reason=args.reason, until_ms=until_ms, gate=args.gate), args.custody)
    if isinstance(receipt, Refused):
        return speak.refused(receipt, args.json)
    return speak.done(receipt, args.json, f"{args.custody} is {receipt.result['state']}: {args.reason}")


async def _release(args: argparse.Namespace, speaker: Speaker) -> int:
    ask = Release(reason=args.reason or "", worktree=not args.keep_worktree, person=args.person, again=args.again)
    receipt = await speaker.to_custody(ask, args.custody)
    if isinstance(receipt, Refused):
        return speak.refused(receipt, args.json)

    def is_over(row: CustodyRow) -> bool:
        return row.state not in UNDER_WAY and row.worktree not in MOVING

    return await _look_on(args, speaker, receipt, is_over, lambda row: row.state is CustodyState.RELEASED)


async def _undo(args: argparse.Namespace, speaker: Speaker) -> int:
    receipt = await speaker.to_custody(UndoRemoval(), args.custody)
    if isinstance(receipt, Refused):
        return speak.refused(receipt, args.json)

    def is_over(row: CustodyRow) -> bool:
        return row.worktree not in MOVING

    return await _look_on(args, speaker, receipt, is_over, lambda row: row.worktree is WorktreeState.RESTORED)


async def _look_on(
    args: argparse.Namespace,
    speaker: Speaker,
    receipt: Receipt,
    is_over: Callable[[CustodyRow], bool],
    is_good: Callable[[CustodyRow], bool],
) -> int:
    """Wait until it has come to its end, and tell that. Exit codes: 0 as wished, 1 otherwise, or not yet."""
    end = time.monotonic() + args.wait
    while True:
        found = await _row(speaker, args.custody)
        if isinstance(found, Refused):
            return speak.refused(found, args.json)
        row, _ = found
        if is_over(row) or time.monotonic() >= end:
            break
        await asyncio.sleep(LOOK_EVERY_S)
    if args.json:
        print(json.dumps({**speak.told(receipt), "row": msgspec.to_builtins(row)}))
    else:
        say(described(row))
        if receipt.result.get("already"):
            print("it was so already: nothing was done")
        if not is_over(row):
            print(f"not over yet: tocsin custody show {args.custody}")
        print(f"request {receipt.request}")
    return DONE if is_over(row) and is_good(row) else WANTING


ACTIONS = {"list": _list, "show": _show, "retain": _retain, "release": _release, "undo": _undo}
