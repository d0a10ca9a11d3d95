"""Which questions there are, and asking them: the same for `tocsin bench` and for the bench of a clone, which has more of them."""

import argparse
import asyncio
import json
import os
import platform
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.metadata import version

import uvloop

from tocsin.cli.bench import chain, idle, starts
from tocsin.cli.bench.measure import Effort
from tocsin.cli.bench.own import own_instance
from tocsin.cli.bench.rows import Row, UnknownGate, failed, gate, table
from tocsin.cli.bench.site import NotMeasured
from tocsin.cli.main import AWAY, DONE, USAGE, WANTING

Question = Callable[[Effort], Awaitable[list[Row]]]
"""Measures, and answers by rows."""

LOOK = Effort(rounds=2, few=True)
LIBRARIES = ("tocsin", "nats-py", "redis", "uvicorn", "uvloop", "msgspec")


async def hooks(effort: Effort) -> list[Row]:
    """Hooks to a whole instance."""
    with own_instance() as own, own.up():
        async with own.site() as site:
            return await chain.measure(site, effort)


async def calls(effort: Effort) -> list[Row]:
    """What is called from outside: the hook command, `ls`, `up`."""
    with own_instance() as own:
        first = await starts.measure_up(own, effort)
        with own.up():
            return [*await starts.measure_commands(own, effort), *first]


async def rest(effort: Effort) -> list[Row]:
    """An instance at rest."""
    with own_instance() as own:
        return await idle.measure(own, effort)


def options(parser: argparse.ArgumentParser, questions: Mapping[str, Question]) -> None:
    """What every bench can be told."""
    parser.add_argument("questions", nargs="*", metavar="QUESTION", help=f"of {', '.join(questions)}; all, when none is named")
    parser.add_argument("--json", action="store_true", help="one JSON object a row")
    parser.add_argument(
        "--gate",
        action="append",
        default=[],
        metavar="NAME[=RATIO]",
        help="fail (exit code 1) when this row does not keep this figure, or its own",
    )
    parser.add_argument("--smoke", action="store_true", help="a look whether it measures at all: few samples, whose figures say nothing")


def about() -> dict[str, object]:
    """The machine and the versions."""
    return {
        "python": platform.python_version(), "machine": f"{platform.system()} {platform.machine()}", "cpus": os.cpu_count(),
        "versions": {name: version(name) for name in LIBRARIES},
    }  # fmt: skip


def load() -> list[float]:
    """The machine's load average."""
    return [round(one, 2) for one in os.getloadavg()]


async def _rows(questions: Mapping[str, Question], names: Sequence[str], effort: Effort) -> list[Row]:
    # A bench that is ended ends what it has started.
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    rows: list[Row] = []
    for name in names:
        print(f"measuring {name}", file=sys.stderr, flush=True)
        rows += await questions[name](effort)
    return rows


def ask(
    args: argparse.Namespace, questions: Mapping[str, Question], tell: Callable[[list[Row], dict[str, object]], None] | None = None
) -> int:
    """Measure what is named, print it, and hand it to `tell`; returns the exit code: 1 when a given gate is missed, 4 when it cannot be measured."""
    names = args.questions or list(questions)
    if unknown := set(names) - set(questions):
        print(f"no question {', '.join(sorted(unknown))}; there are: {', '.join(questions)}", file=sys.stderr)
        return USAGE
    try:
        gates = dict(gate(text) for text in args.gate)
    except ValueError:
        print("--gate wants NAME or NAME=RATIO", file=sys.stderr)
        return USAGE
    before, began = load(), time.monotonic()
    try:
        rows = uvloop.run(_rows(questions, names, LOOK if args.smoke else Effort()))
    except asyncio.CancelledError:
        return 128 + signal.SIGTERM
    except NotMeasured as error:
        print(f"not measured: {error}", file=sys.stderr)
        return AWAY
    facts = {**about(), "load_before": before, "load_after": load(), "seconds": round(time.monotonic() - began)}
    if args.json:
        print("\n".join(json.dumps({**row.fields(), "about": facts}) for row in rows))
    else:
        print(f"{facts['machine']}, {facts['cpus']} CPUs, Python {facts['python']}, load {before} before and {facts['load_after']} after")
        print("ratio: median over the rounds of p50 / p50 of the base, with the least and the greatest; a p99 of few samples is a hint\n")
        print(table(rows))
    if tell is not None:
        tell(rows, facts)
    try:
        missed = failed(rows, gates)
    except UnknownGate as error:
        print(error, file=sys.stderr)
        return USAGE
    for line in missed:
        print(f"missed {line}", file=sys.stderr)
    return WANTING if missed else DONE
