"""`tocsin bench`: what Tocsin costs on this machine, measured on an instance of its own. Ratios count, not times."""

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tocsin.cli.bench import asked


def arguments(parser: argparse.ArgumentParser) -> None:
    """What is measured, and which figures must be kept."""
    from tocsin.cli.bench import asked

    asked.options(parser, _questions())


def run(args: argparse.Namespace) -> int:
    """Measure. Exit codes: 0, 1 a given gate is missed, 2 bad usage, 4 it cannot be measured."""
    from tocsin.cli.bench import asked

    return asked.ask(args, _questions())


def _questions() -> "dict[str, asked.Question]":
    from tocsin.cli.bench import asked

    return {"hooks": asked.hooks, "calls": asked.calls, "idle": asked.rest}
