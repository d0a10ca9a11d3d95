"""`make bench`: what figures.md asks of commands, mail, wakes, hooks and the list, measured on this machine beside their bases.

Ratios count, not times: base and case are taken in turn in one run. Nothing fails here but the bench itself.
"""

import argparse
import asyncio
import json
import os
import platform
import signal
import sys
import time
from collections.abc import Awaitable, Callable

import uvloop

from bench import commands, hooks, mail, ranking
from bench.measure import ROUNDS, Row, table

QUESTIONS: dict[str, Callable[[], Awaitable[list[Row]]]] = {
    "commands": commands.measure,
    "mail": mail.measure_mail,
    "wakes": mail.measure_wakes,
    "hooks": hooks.measure,
    "ranking": ranking.measure,
}


def _load() -> str:
    return " ".join(f"{one:.2f}" for one in os.getloadavg())


async def _rows(names: list[str]) -> list[Row]:
    # A bench that is ended ends what it has started.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asyncio.current_task().cancel)
    rows = []
    for name in names:
        print(f"measuring {name}", file=sys.stderr, flush=True)
        rows += await QUESTIONS[name]()
    return rows


def main() -> None:
    """Measure what is named, or everything."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="question", help=f"of {', '.join(QUESTIONS)}; default: all")
    parser.add_argument("--json", action="store_true", help="one JSON object a row")
    given = parser.parse_args()
    if unknown := set(given.names) - set(QUESTIONS):
        parser.error(f"no question {', '.join(sorted(unknown))}")
    before, began_s = _load(), time.monotonic()
    try:
        rows = uvloop.run(_rows(given.names or list(QUESTIONS)))
    except asyncio.CancelledError:
        sys.exit(128 + signal.SIGTERM)
    about = {"python": platform.python_version(), "machine": f"{platform.system()} {platform.machine()}", "cpus": os.cpu_count()}
    about |= {"load_average_before": before, "load_average_after": _load(), "seconds": round(time.monotonic() - began_s)}
    if given.json:
        print("\n".join(json.dumps({**about, **row.fields()}) for row in rows))
        return
    print(", ".join(f"{name.replace('_', ' ')} {value}" for name, value in about.items()))
    print(f"ratio: median over {ROUNDS} rounds of p50 / p50 of the base; a p99 of fewer than 1,000 samples is a hint\n")
    print(table(rows))


if __name__ == "__main__":
    main()
