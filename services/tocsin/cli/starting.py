"""Starting a worker: where it works is said each time, and what is told of its start is what was seen of it."""

import argparse
import asyncio
import json
import os
import time
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tocsin.cli import shown, speak, typed
from tocsin.cli.main import DONE, WANTING
from tocsin.cli.speak import Speaker
from tocsin.cli.task import task_id
from tocsin.contract.ids import HostId, PaneId, digest
from tocsin.contract.refusals import ADVICE, Code
from tocsin.contract.run import (
    SETTLED,
    DispatchState,
    Launch,
    Placement,
    Receipt,
    Refused,
    ShowTask,
    ShowWorker,
    StartWorker,
    Where,
    run_of_dispatch,
)

READY_S = 120.0
"""How long a start is waited for by default. One that takes longer goes on: its setup may run for minutes."""

LOOK_PAUSE_S, LOOK_PAUSE_S_MAX = 0.1, 1.0

AT_WORK = frozenset({DispatchState.RUNNING, DispatchState.REPORTED, DispatchState.SUCCEEDED})
"""States to which a start has come when its turn was seen, or when its report makes that question idle."""

STARTING = frozenset({DispatchState.REQUESTED, DispatchState.STARTING})
STARTED = frozenset(DispatchState) - STARTING


def arguments(parser: argparse.ArgumentParser) -> None:
    """Who works where."""
    parser.add_argument("task", metavar="TASK", type=task_id)
    parser.add_argument(
        "--where", choices=list(Where), help="the place to work, said each time: this worktree, one that is there, or a new one"
    )
    parser.add_argument("--path", metavar="DIR", help="existing: the worktree or folder; new-*: the repository (default: where you are)")
    parser.add_argument("--branch", type=typed.text, metavar="NAME", help="new-*: its branch (default: one of its own)")
    parser.add_argument("--base", type=typed.text, metavar="REVISION", help="new-*: what it branches off (default: HEAD)")
    parser.add_argument("--setup", type=typed.text, metavar="COMMAND", help="new-*: prepares the new worktree")
    parser.add_argument("--wait", action=argparse.BooleanOptionalAction, default=True, help="the agent starts when the setup has ended")
    parser.add_argument("--agent", type=typed.name, metavar="AGENT", help="claude, codex, ... (default: what the Task says)")
    parser.add_argument("--model", type=typed.text, metavar="MODEL", help="which of its models")
    parser.add_argument("--host", type=typed.name, metavar="HOST", help="another machine than this one")
    parser.add_argument("--terminal", choices=("tmux", "process"), default="tmux", help="a pane, or a process without one (default tmux)")
    parser.add_argument("--pane", type=typed.name, metavar="PANE", help="reuse this live pane, if its composer is empty")
    parser.add_argument("--retry-of", type=typed.name, metavar="DISPATCH", help="it replaces this attempt, which failed or was stopped")
    parser.add_argument(
        "--command",
        nargs=argparse.REMAINDER,
        action=typed.CommandLine,
        default=(),
        metavar="WORD",
        help="agent `generic`: the program; stands last",
    )
    parser.add_argument("--detach", action="store_true", help="do not wait until it is at work")
    speak.arguments(parser, limit_s=READY_S)


class Start(NamedTuple):
    """What is asked of a start. `supersede`: why an unsettled attempt does not count any more."""

    task: str
    where: Where | None = None
    path: str | None = None
    branch: str | None = None
    base: str | None = None
    setup: str | None = None
    wait: bool = True
    agent: str | None = None
    model: str | None = None
    host: str | None = None
    terminal: Literal["tmux", "process"] = "tmux"
    pane: str | None = None
    retry_of: str | None = None
    command: tuple[str, ...] = ()
    supersede: str | None = None


def launch_of(wanted: Start, agent: str, host: str, request: str) -> Launch | Refused:
    """How it is to be started by `request`; `host` is this machine. Refuses: placement_required, bad_place."""
    if wanted.where is None and wanted.pane is None:
        return speak.refusal(Code.PLACEMENT_REQUIRED, "where is it to work? That is said each time, also for a retry")
    where = Where(wanted.where or Where.EXISTING)
    path = wanted.path
    if path is None and where is Where.EXISTING and wanted.pane is None:
        return speak.refusal(Code.PLACEMENT_REQUIRED, "which worktree?", "--where existing --path PATH")
    if wanted.host in (None, host) and (path is not None or wanted.pane is None):
        # On another machine a path is what it says; here it is what it leads to.
        path = str(Path(path or os.curdir).resolve())
        if not Path(path).is_dir():
            return speak.refusal(Code.BAD_PLACE, f"{path} is no folder")
    branch = wanted.branch
    if branch is None and where in (Where.NEW_CHILD, Where.NEW_TOP_LEVEL):
        # Another one for each attempt, and the same one when this request is repeated.
        branch = f"{wanted.task}-{digest(request)[:6]}"
    placement = Placement(where=where, path=path, branch=branch, base=wanted.base, setup=wanted.setup, wait_for_setup=wanted.wait)
    return Launch(
        agent=agent, host=HostId(wanted.host or host), placement=placement, model=wanted.model,
        pane=PaneId(wanted.pane) if wanted.pane else None, terminal=wanted.terminal, command=wanted.command,
    )  # fmt: skip


async def begin(speaker: Speaker, wanted: Start) -> Receipt | Refused:
    """Ask for the start. Refuses what the Run refuses, and what cannot be meant."""
    named = await speaker.which_run()
    if isinstance(named, Refused):
        return named
    request = speaker.options.request or speak.new_request()
    agent = wanted.agent or await _agent_of(speaker, wanted.task, named)
    launch = agent if isinstance(agent, Refused) else launch_of(wanted, agent, speaker.host, request)
    if isinstance(launch, Refused):
        return launch
    ask = StartWorker(task=wanted.task, launch=launch, retry_of=wanted.retry_of, supersede=wanted.supersede)
    return await speaker.to_run(ask, named, request=request)


async def start(args: argparse.Namespace, speaker: Speaker, supersede: str | None = None) -> int:
    """Start it and tell what was seen. Exit codes: 0 at work, 1 not seen at work yet, 3 refused, 4 nobody there."""
    wanted = Start(
        task=args.task, where=args.where and Where(args.where), path=args.path, branch=args.branch, base=args.base, setup=args.setup,
        wait=args.wait, agent=args.agent, model=args.model, host=args.host, terminal=args.terminal, pane=args.pane,
        retry_of=args.retry_of, command=args.command, supersede=supersede,
    )  # fmt: skip
    receipt = await begin(speaker, wanted)
    if isinstance(receipt, Refused):
        return speak.refused(receipt, args.json)
    if args.detach:
        return speak.done(receipt, args.json, f"{receipt.result['dispatch']}: {receipt.result['state']}")
    dispatch = receipt.result["dispatch"]
    try:
        seen = await wait(speaker, dispatch, STARTED, args.timeout)
    except asyncio.CancelledError:
        speak.note(f"{dispatch} is under way and goes on: tocsin worker show {dispatch}")
        raise
    return speak.refused(seen, args.json) if isinstance(seen, Refused) else tell(receipt, seen, args.json)


async def _agent_of(speaker: Speaker, task: str, named: str) -> str | Refused:
    """The agent that the Task's author gave."""
    found = await speaker.look_at_run(ShowTask(task=task), named)
    if isinstance(found, Refused):
        return found
    agent = found.result["task"]["agent"]
    return str(agent) if agent else speak.refusal(Code.BAD_REQUEST, f"Task {task} names no agent", "--agent AGENT")


async def wait(speaker: Speaker, dispatch: str, over: Container[str], limit_s: float) -> Mapping[str, Any] | Refused:
    """The worker's row as soon as its state is one of `over`, at the latest after `limit_s`."""
    end, pause = time.monotonic() + limit_s, LOOK_PAUSE_S
    while True:
        looked = await speaker.look_at_run(ShowWorker(dispatch=dispatch), run_of_dispatch(dispatch))
        if isinstance(looked, Refused):
            return looked
        row: Mapping[str, Any] = looked.result["worker"]
        if row["state"] in over or time.monotonic() + pause >= end:
            return row
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, LOOK_PAUSE_S_MAX)


def tell(receipt: Receipt, row: Mapping[str, Any], as_json: bool) -> int:
    """Print what is known of the start, no more than that; returns the exit code."""
    state = DispatchState(row["state"])
    if state in SETTLED and state not in AT_WORK:
        return speak.refused(failed(receipt.request, row), as_json)
    code = DONE if state in AT_WORK else WANTING
    if as_json:
        print(json.dumps({**speak.told(receipt), "state": state, "turn_start": row["turn_start"], "worker": dict(row)}))
        return code
    place = " ".join(filter(None, (f"in pane {row['pane']}" if row["pane"] else "", f"at {row['path']}" if row["path"] else "")))
    print(shown.plain(f"{row['dispatch']}: {row['agent']} on {row['host']} {place}".rstrip()))
    for line in said(state, row):
        print(shown.plain(line))
    print(f"request {receipt.request}")
    return code


def failed(request: str, row: Mapping[str, Any]) -> Refused:
    """A start that came to nothing, as the refusal that its host gave."""
    code = Code(row["code"]) if row["code"] in list(Code) else Code.LIFECYCLE_CONFLICT
    steps = ADVICE[code].next if row["code"] else (f"tocsin worker show {row['dispatch']}",)
    why = f"{row['dispatch']} has {row['state']}" if row["state"] == DispatchState.FAILED else f"{row['dispatch']} is {row['state']}"
    return Refused(request=request, code=code, message=f"{why}: {row['why']}".rstrip(": "), retry=ADVICE[code].retry, next=steps)


def said(state: DispatchState, row: Mapping[str, Any]) -> list[str]:
    """What was seen of a start, in words that claim no more."""
    why = f": {row['why']}" if row["why"] else ""
    if state in AT_WORK:
        return [f"{state}: turn start {'seen' if row['turn_start'] == 'seen' else 'not seen, and it has reported'}"]
    if state is DispatchState.START_UNKNOWN:
        return [
            f"start_unknown{why}: the prompt was written, its turn start was not seen. It keeps its rights; a report settles it.",
            *_next(row),
        ]
    # Stopping, out of contact, or over without a report: no start that was seen, and no failure either.
    return [f"{state}{why}" + (": not ready in this time, and it goes on" if state in STARTING else ""), *_next(row)]


def _next(row: Mapping[str, Any]) -> list[str]:
    return [f"  next: tocsin worker show {row['dispatch']}"]
