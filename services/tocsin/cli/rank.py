"""`tocsin rank FILE`: rank worktrees given in a file, with no server and at the file's own time.

The file holds one case or a list of them. Numbers may also be the words NaN, Infinity and -Infinity, which JSON cannot write.
"""

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from tocsin.agents.titles import read_title
from tocsin.cli.main import DONE, USAGE
from tocsin.contract.messages import State
from tocsin.listing.names import name_key
from tocsin.sorter.core.attention import STALE_AFTER_MS, Hook, Pane, is_fresh, prior_attention
from tocsin.sorter.core.ranking import CREATE_GRACE_MS, Worktree, rank
from tocsin.sorter.core.title import Title

Number = int | float | Literal["NaN", "Infinity", "-Infinity"]


class Given(msgspec.Struct, frozen=True, rename="camel"):
    """A part of the file; fields that are not known are ignored."""


class GivenPast(Given, frozen=True):
    """A state that the pane has left."""

    state: Literal["working", "blocked", "waiting", "done"]
    started_at: Number
    interrupted: bool = False


class GivenHook(Given, frozen=True):
    """What the pane's agent last said."""

    state: Literal["working", "blocked", "waiting", "done"]
    state_started_at: Number
    updated_at: Number
    interrupted: bool = False
    state_history: tuple[GivenPast, ...] = ()


class GivenPane(Given, frozen=True):
    """A pane; its id may repeat in other tabs."""

    id: str
    title: str | None = None
    hook: GivenHook | None = None


class GivenTab(Given, frozen=True):
    """A tab. Its own title speaks only while none of its panes has said anything."""

    id: str
    pty_live: bool = False
    title: str | None = None
    panes: tuple[GivenPane, ...] = ()


class GivenWorktree(Given, frozen=True):
    """A worktree."""

    id: str
    display_name: str
    last_activity_at: Number = 0
    created_at: Number | None = None
    sort_order: Number = 0
    tabs: tuple[GivenTab, ...] = ()


class Case(Given, frozen=True):
    """Worktrees at one moment, in UTC milliseconds."""

    id: str
    now: Number
    worktrees: tuple[GivenWorktree, ...]


class BadFile(ValueError):
    """The file is not what it should be; the text names the place."""


def number(given: Number) -> float:
    """The number that was meant; what is too large for one is infinite."""
    try:
        return float(given)
    except OverflowError:
        return math.inf


def read(data: bytes) -> list[Case]:
    """The cases of a file. Raises BadFile, with the line or the field."""
    try:
        raw = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadFile(_where(data, error)) from error
    try:
        cases = msgspec.convert(raw, list[Case]) if isinstance(raw, list) else [msgspec.convert(raw, Case)]
    except msgspec.ValidationError as error:
        raise BadFile(str(error)) from error
    for at, case in enumerate(cases):
        ids: set[str] = set()
        for place, worktree in enumerate(case.worktrees):
            if worktree.id in ids:
                raise BadFile(f"two worktrees of case {case.id!r} have the id {worktree.id!r} - at `$[{at}].worktrees[{place}].id`")
            ids.add(worktree.id)
        if not math.isfinite(number(case.now)):
            raise BadFile(f"the time of case {case.id!r} is no number - at `$[{at}].now`")
    return cases


def _where(data: bytes, error: Exception) -> str:
    """The parser's complaint, with the line in place of its count of bytes."""
    try:
        json.loads(data)
    except json.JSONDecodeError as plain:
        return f"{plain.msg} - line {plain.lineno}, column {plain.colno}"
    except (UnicodeDecodeError, RecursionError, ValueError) as plain:
        return f"not JSON: {type(plain).__name__}"
    return str(error)


def panes_of(worktree: GivenWorktree, now: float) -> list[Pane]:
    """What the panes of a worktree say."""
    found: list[Pane] = []
    for tab in worktree.tabs:
        inside = [_pane(tab, pane, now) for pane in tab.panes]
        speaks = any(pane.title is not None for pane in tab.panes) or any(is_fresh(pane.hook, now) for pane in inside)
        if tab.title is not None and tab.pty_live and not speaks:
            inside.append(Pane(f"{tab.id}\x1f", title=Title(read_title(tab.title), now)))
        found += inside
    return found


def _pane(tab: GivenTab, pane: GivenPane, now: float) -> Pane:
    hook = None
    if pane.hook is not None:
        updated = number(pane.hook.updated_at)
        hook = Hook(
            state=State(pane.hook.state),
            since_ms=number(pane.hook.state_started_at),
            fresh_until=updated + STALE_AFTER_MS if math.isfinite(updated) else -math.inf,
            interrupted=pane.hook.interrupted,
            prior_ms=prior_attention((State(past.state), number(past.started_at), past.interrupted) for past in pane.hook.state_history),
        )
    # A title does not tell since when: whoever looks has just noticed.
    title = Title(read_title(pane.title), now) if pane.title is not None and tab.pty_live else None
    return Pane(f"{tab.id}\x1f{pane.id}", hook, title)


def decide(case: Case) -> dict[str, object]:
    """The order of one case, and the class of each worktree."""
    now = number(case.now)
    worktrees: list[Worktree] = []
    panes: dict[str, list[Pane]] = {}
    for given in case.worktrees:
        created = None if given.created_at is None else number(given.created_at)
        worktrees.append(
            Worktree(
                id=given.id,
                name=given.display_name,
                activity_ms=number(given.last_activity_at),
                created_ms=created,
                grace_until=-math.inf if created is None else created + CREATE_GRACE_MS,
            )
        )
        panes[given.id] = panes_of(given, now)
    place = {worktree.id: at for at, worktree in enumerate(worktrees)}
    ranked = rank(worktrees, panes, now, lambda worktree: place[worktree.id])
    order = [worktree.id for worktree, _ in ranked]
    if not any(tab.pty_live for given in case.worktrees for tab in given.tabs):
        order = cold(case.worktrees)
    classes = {worktree.id: asked.attention_class for worktree, asked in ranked}
    return {"id": case.id, "order": order, "classes": {one: classes[one] for one in place}}


def cold(worktrees: Sequence[GivenWorktree]) -> list[str]:
    """Before any terminal lives: the saved order, the largest first, then names. What is no number comes last."""

    def saved(worktree: GivenWorktree) -> float:
        order = number(worktree.sort_order)
        return -math.inf if math.isnan(order) else order

    return [worktree.id for worktree in sorted(worktrees, key=lambda one: (-saved(one), name_key(one.display_name)))]


def arguments(parser: argparse.ArgumentParser) -> None:
    """The file."""
    parser.add_argument("file", metavar="FILE", help="one case or a list of them; - reads standard input")
    parser.add_argument("--json", action="store_true", help="accepted for the sake of scripts: the output is JSON anyway")


def run(args: argparse.Namespace) -> int:
    """Print `[{id, order, classes}]`. Exit codes: 0, or 2 when the file cannot be read or understood."""
    try:
        data = sys.stdin.buffer.read() if args.file == "-" else Path(args.file).read_bytes()
    except OSError as error:
        print(f"tocsin: {args.file}: {error.strerror}", file=sys.stderr)
        return USAGE
    try:
        cases = read(data)
    except BadFile as error:
        print(f"tocsin: {args.file}: {error}", file=sys.stderr)
        return USAGE
    print(json.dumps([decide(case) for case in cases], ensure_ascii=False))
    return DONE
