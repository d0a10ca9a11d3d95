"""`tocsin line`: the list in one line, for a status line that is drawn every few seconds.

Reads the glance that pane-host keeps, so it opens no connection; and it imports little, so it is there in a blink.
"""

import argparse
import json
import time
from pathlib import Path

from tocsin.cli.main import AWAY, DONE
from tocsin.listing.age import age
from tocsin.runtime import glance
from tocsin.runtime.folder import state_folder

SIGNS = ("✋", "✓", "●", "○")
"""Needs you, done, working, idle."""

WORDS = ("needs you", "done", "working", "idle")

CONTROLS = dict.fromkeys((*range(32), *range(127, 160)), "�")


def arguments(parser: argparse.ArgumentParser) -> None:
    """How much of it."""
    parser.add_argument("--names", type=int, default=1, metavar="N", help="how many of those that need you are named (default 1)")
    parser.add_argument("--width", type=int, default=80, metavar="COLUMNS", help="cut after so many characters (default 80)")
    parser.add_argument("--words", action="store_true", help="words in place of signs")
    parser.add_argument("--tmux", action="store_true", help="what needs you in tmux's colours, and # as tmux wants it")
    parser.add_argument("--json", action="store_true", help="machine-readable output")
    parser.add_argument("--state", type=Path, metavar="DIR", help="the instance's folder (TOCSIN_STATE)")


def run(args: argparse.Namespace) -> int:
    """Print one line. Exit codes: 0; 4 when it is unknown how things stand, which the line says as well."""
    seen, now_ms = glance.read(state_folder(args.state)), time.time_ns() // 1_000_000
    unknown = why_unknown(seen, now_ms)
    if args.json:
        print(json.dumps({"unknown": unknown} | (glance.plain(seen) if seen else {})))
    elif seen is None or unknown:
        print(f"tocsin: {unknown}"[: args.width])
    else:
        line = cut(text(seen, now_ms, args.names, words=args.words), args.width)
        print(in_tmux(line, urgent=seen.classes[0] > 0) if args.tmux else line)
    return AWAY if unknown else DONE


def why_unknown(seen: glance.Glance | None, now_ms: int) -> str | None:
    """Why nothing can be said of now; None when the glance is fresh."""
    if seen is None:
        return "not running"
    if now_ms - seen.at_ms > glance.TRUSTED_MS_MAX:
        return f"no word for {age(seen.at_ms, now_ms)}"
    return seen.why


def text(seen: glance.Glance, now_ms: int, names: int, *, words: bool = False) -> str:
    """The counts of the classes that are not empty, then the first `names` that need somebody, with reason and age."""
    labels = [f"{count} {word}" for count, word in zip(seen.classes, WORDS, strict=True) if count] if words else [
        f"{sign}{count}" for count, sign in zip(seen.classes, SIGNS, strict=True) if count
    ]  # fmt: skip
    parts = [(", " if words else " ").join(labels) or "no agents"]
    parts += [f"{need.name}: {need.reason} ({age(need.since_ms, now_ms)})" for need in seen.needs[: max(names, 0)]]
    return " · ".join(parts).translate(CONTROLS)


def cut(line: str, width: int) -> str:
    """At most `width` characters; what is cut ends in an ellipsis."""
    return line if len(line) <= max(width, 1) else line[: max(width, 1) - 1] + "…"


def in_tmux(line: str, *, urgent: bool) -> str:
    """The line as tmux draws it: names cannot bring in formats of their own."""
    plain = line.replace("#", "##")
    return f"#[fg=red,bold]{plain}#[default]" if urgent else plain
