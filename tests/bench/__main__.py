"""`make bench`: every question of docs/figures.md, measured on this machine beside its base. Ratios count, not times.

What `tocsin bench` measures, and what needs this clone: servers and services alone, the cores, the Node process.
"""

import argparse
import sys
from pathlib import Path

from bench import commands, hooks, mail, page, ranking
from tocsin.cli.bench.asked import Question, ask, calls, options, rest
from tocsin.cli.bench.rows import Row

QUESTIONS: dict[str, Question] = {
    "hooks": hooks.measure,
    "ranking": ranking.measure,
    "calls": calls,
    "idle": rest,
    "commands": commands.measure,
    "mail": mail.measure_mail,
    "wakes": mail.measure_wakes,
}

PAGE = Path(__file__).parents[2] / "docs" / "figures.md"


def main() -> int:
    """Measure what is named, or everything."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    options(parser, QUESTIONS)
    parser.add_argument("--write", action="store_true", help="make docs/figures.md anew of it; only with every question")
    args = parser.parse_args()
    if args.write and (args.questions or args.smoke):
        parser.error("--write wants every question, measured in full")

    def write(rows: list[Row], about: dict[str, object]) -> None:
        PAGE.write_text(page.page(rows, about))

    return ask(args, QUESTIONS, write if args.write else None)


if __name__ == "__main__":
    sys.exit(main())
