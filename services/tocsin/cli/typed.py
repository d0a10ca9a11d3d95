"""What people and agents type: texts made valid, names, times and numbers."""

import argparse
import shlex
import sys
from typing import Any

from tocsin.cli.main import USAGE
from tocsin.cli.shown import plain
from tocsin.contract.ids import token

TEXT_BYTES_MAX = 1024 * 1024
"""Largest text of one request."""


def text(given: str) -> str:
    """A text argument, made valid; `-` reads standard input. Raises ArgumentTypeError."""
    if given == "-":
        given = sys.stdin.buffer.read(TEXT_BYTES_MAX + 1).decode(errors="replace")
    given = plain(given)
    if len(given.encode()) > TEXT_BYTES_MAX:
        raise argparse.ArgumentTypeError(f"the text is over {TEXT_BYTES_MAX} bytes")
    if not given.strip():
        raise argparse.ArgumentTypeError("the text is empty")
    return given


def name(given: str) -> str:
    """An id argument: what can be part of a subject. Raises ArgumentTypeError."""
    try:
        token(given)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return given


def seconds(given: str) -> float:
    """A time: seconds, or with a unit (30s, 10m, 1h). Raises ArgumentTypeError."""
    size = {"s": 1, "m": 60, "h": 3600}.get(given[-1:], 0)
    try:
        value = float(given[:-1] if size else given) * (size or 1)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 86_400:
        raise argparse.ArgumentTypeError("write a time such as 30, 30s, 10m or 1h, at most a day")
    return value


def count(given: str) -> int:
    """A number of things, 1 or more. Raises ArgumentTypeError."""
    if not given.isdecimal() or not 1 <= int(given) <= 1_000_000:
        raise argparse.ArgumentTypeError("write a whole number, 1 or more")
    return int(given)


class Words(argparse.Action):
    """Several arguments as one text, as typed without quotes; None when there is none. `-` alone reads standard input."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option_string: str | None = None
    ) -> None:
        """See argparse.Action."""
        try:
            setattr(namespace, self.dest, text(" ".join(values)) if values else None)
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentError(self, str(error)) from error


class CommandLine(argparse.Action):
    """A program and its arguments: as they stand, or in one piece as a shell takes it."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option_string: str | None = None
    ) -> None:
        """See argparse.Action."""
        try:
            setattr(namespace, self.dest, tuple(shlex.split(values[0]) if len(values) == 1 else values))
        except ValueError as error:
            raise argparse.ArgumentError(self, f"no command line: {error}") from error


def usage(problem: str) -> int:
    """Say on stderr how the command is meant; returns the exit code."""
    print(f"tocsin: {problem}", file=sys.stderr)
    return USAGE
