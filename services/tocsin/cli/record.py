"""`tocsin record`: the last hours of events as a file that `tocsin replay` plays."""

import argparse
import asyncio
import contextlib
import json
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tocsin.cli import reading
from tocsin.cli.main import DONE, USAGE, refuse
from tocsin.contract.faults import Unavailable
from tocsin.contract.messages import Body, PaneSeen, PaneTitled
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.subjects import HOOK_REPORTED, PANE_SEEN, PANE_TITLED, WORKTREE_KNOWN, Subject

if TYPE_CHECKING:
    from tocsin.bus.bus import Bus

SILENCE_S_MAX = 3.0
"""A log that says nothing for so long has been read to its end."""

HOURS_MAX = HOOK_REPORTED.age_s_max / 3600


def arguments(parser: argparse.ArgumentParser) -> None:
    """How far back, and where to."""
    reading.arguments(parser)
    parser.add_argument("--hours", type=float, default=HOURS_MAX, help=f"how far back; at most {HOURS_MAX:.0f}, which is also the default")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write there instead of to standard output")


def run(args: argparse.Namespace) -> int:
    """Write the recording. It holds no prompt, no command and no output: hashes, names of tools, files and folders."""

    async def work(place: reading.Place) -> int:
        try:
            async with reading.connect(place) as bus:
                lines = [line async for line in recorded(bus, int((time.time() - args.hours * 3600) * 1000))]
        except Unavailable as error:
            return refuse(Refusal(Code.UNAVAILABLE, str(error)), args.json)
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        try:
            if args.output is None:
                sys.stdout.write(text)
            else:
                args.output.write_text(text)
        except OSError as error:
            print(f"tocsin: {error}", file=sys.stderr)
            return USAGE
        print(f"{len(lines)} messages", file=sys.stderr)
        return DONE

    return reading.with_place(args, work)


async def recorded(bus: "Bus", since_ms: int) -> AsyncIterator[dict[str, Any]]:
    """The messages as lines, oldest first. Raises Unavailable.

    Of terminals and worktrees only the last values are kept anywhere. They stand at the beginning, because an event
    cannot be told apart without them; what they say of earlier moments (titles, keys, transcript marks) stands there.
    """
    lines = [event async for event in logged(bus, since_ms)]
    begin_ms = min([line["at_ms"] for line in lines], default=since_ms)
    lines += [_line(WORKTREE_KNOWN, body, begin_ms) async for body in standing(bus, WORKTREE_KNOWN)]
    lines += [_line(PANE_SEEN, body, at_ms) async for seen in standing(bus, PANE_SEEN) for at_ms, body in sights(seen, begin_ms)]
    lines += [_line(PANE_TITLED, body, at_ms) async for titled in standing(bus, PANE_TITLED) for at_ms, body in titles(titled)]
    for line in sorted((line for line in lines if line["at_ms"] >= begin_ms), key=lambda line: line["at_ms"]):
        yield line


def sights(seen: PaneSeen, begin_ms: int) -> Iterator[tuple[int, PaneSeen]]:
    """What a host has seen of a pane, told apart by when: the terminal from the beginning, then each mark and the last key."""
    bare = msgspec.structs.replace(seen, marks=(), last_key_ms=None, cancel_key=None, at_ms=begin_ms)
    yield begin_ms, bare
    for count, mark in enumerate(seen.marks, 1):
        yield mark.at_ms, msgspec.structs.replace(bare, marks=seen.marks[:count], at_ms=mark.at_ms)
    if seen.last_key_ms is not None:
        key_ms = seen.last_key_ms
        yield (
            key_ms,
            msgspec.structs.replace(
                bare, marks=tuple(mark for mark in seen.marks if mark.at_ms <= key_ms), last_key_ms=key_ms, at_ms=key_ms
            ),
        )


def titles(titled: PaneTitled) -> Iterator[tuple[int, PaneTitled]]:
    """The last titles of a pane, each at its own time."""
    for count, title in enumerate(titled.titles, 1):
        yield title.at_ms, msgspec.structs.replace(titled, titles=titled.titles[:count])


async def logged(bus: "Bus", since_ms: int) -> AsyncIterator[dict[str, Any]]:
    """What the log of hook events holds from `since_ms` on."""
    end = await bus.end(HOOK_REPORTED)
    if end == 0:
        return
    async with bus.read(HOOK_REPORTED, after=0) as log:
        # Where the log ends in poison its last message never comes.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SILENCE_S_MAX) as silence:
                async for batch in log:
                    silence.reschedule(asyncio.get_running_loop().time() + SILENCE_S_MAX)
                    for heard in batch:
                        if heard.body.at_ms >= since_ms:
                            yield _line(HOOK_REPORTED, heard.body, heard.body.at_ms)
                    if batch and batch[-1].seq >= end:
                        return


async def standing(bus: "Bus", subject: Subject[Any]) -> AsyncIterator[Any]:
    """The last values of a subject."""
    async with bus.follow(subject) as values:
        async for batch in values:
            if not batch:
                return
            for heard in batch:
                yield heard.body


def _line(subject: Subject[Any], body: Body, at_ms: int) -> dict[str, Any]:
    return {"at_ms": at_ms, "subject": subject.name, "body": msgspec.to_builtins(body)}
