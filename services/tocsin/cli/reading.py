"""The one place where verbs read the list: where the bus is, the last list, and what to say when there is none."""

import argparse
import asyncio
import contextlib
import os
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tocsin.cli.main import refuse
from tocsin.contract.messages import WorktreesSorted
from tocsin.contract.refusals import Code, Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tocsin.bus.bus import Bus
    from tocsin.contract.ids import WorktreeId
    from tocsin.contract.notices import Mark

    Marks = Mapping[WorktreeId, Mark]

CONNECT_S_MAX = 2.0
"""A bus on this machine answers in milliseconds, one on another in less than a second."""


class Place(NamedTuple):
    """Where the list is read, and which."""

    url: str
    state: Path
    host: str
    workspace: str


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of every verb that reads the list."""
    parser.add_argument("--json", action="store_true", help="machine-readable output")
    parser.add_argument("--workspace", metavar="NAME", help="another list than the one of this machine's panes")
    parser.add_argument("--state", type=Path, metavar="DIR", help="the instance's folder (TOCSIN_STATE)")


def find(args: argparse.Namespace) -> Place | Refusal:
    """Where to read: NATS_URL, else what the instance's endpoint file says. Refuses: unavailable."""
    from tocsin.runtime import instance

    state = instance.state_folder(args.state)
    if url := os.environ.get("NATS_URL"):
        host, workspace = os.environ.get("TOCSIN_HOST") or socket.gethostname(), os.environ.get("TOCSIN_WORKSPACE") or "default"
        return Place(url, state, host, args.workspace or workspace)
    reached = instance.reach(state, version("tocsin"))
    if isinstance(reached, Refusal):
        return reached
    return Place(reached.nats_url, state, reached.host, args.workspace or reached.workspace)


@asynccontextmanager
async def connect(place: Place) -> AsyncIterator["Bus"]:
    """The bus. Raises Unavailable when it does not answer in time."""
    from tocsin.bus.bus import Unavailable
    from tocsin.bus.nats_bus import connect as open_bus

    connection = open_bus(place.url, name="tocsin", state=place.state, makes_streams=False)
    try:
        async with asyncio.timeout(CONNECT_S_MAX):
            bus = await connection.__aenter__()
    except TimeoutError as error:
        raise Unavailable(f"the bus at {place.url} does not answer") from error
    try:
        yield bus
    finally:
        await connection.__aexit__(None, None, None)


class Listed(NamedTuple):
    """A list, and what time it is for it: by the bus' clock, where this machine's is off."""

    body: WorktreesSorted
    now_ms: int
    marks: "Marks"  # what its person has marked in it


async def last_list(place: Place) -> WorktreesSorted | Refusal:
    """The list as it stands. Refuses as `last_listed`."""
    found = await last_listed(place)
    return found if isinstance(found, Refusal) else found.body


async def last_listed(place: Place) -> Listed | Refusal:
    """The list as it stands, and now. Refuses: unavailable, also when nobody publishes one; that is never an empty list."""
    from tocsin.bus.bus import Unavailable
    from tocsin.contract.subjects import WORKTREE_SORTED
    from tocsin.runtime.skew import Skew

    try:
        async with connect(place) as bus:
            last = await bus.last(WORKTREE_SORTED, place.workspace)
            skew = Skew()
            with contextlib.suppress(Unavailable):  # a bus that cannot tell its time has a list all the same
                skew.take(await bus.clock_ahead_ms())
            marks = await marks_of(bus, place.workspace)
    except Unavailable as error:
        return Refusal(Code.UNAVAILABLE, str(error))
    if last is None:
        return Refusal(Code.NO_LIST, nobody_publishes(place.workspace))
    if last.body is None:
        return Refusal(Code.UNAVAILABLE, "the list is of another version of Tocsin than this command")
    return Listed(last.body, skew.in_bus_time(time.time_ns() // 1_000_000), marks)


async def marks_of(bus: "Bus", workspace: str) -> "Marks":
    """What the person has marked; nothing while nobody can tell."""
    from tocsin.bus.bus import Unavailable
    from tocsin.contract.subjects import WORKTREE_MARKED
    from tocsin.listing.marks import by_worktree

    try:
        last = await bus.last(WORKTREE_MARKED, workspace)
    except Unavailable:  # services of another version have not made its stream
        return {}
    return by_worktree(last.body.marks) if last is not None and last.body is not None else {}


def nobody_publishes(workspace: str) -> str:
    """What to say when the bus is there and no list is."""
    return f"nobody publishes the list of workspace {workspace} yet: is the sorter running?"


def with_place(args: argparse.Namespace, work: Callable[[Place], Awaitable[int]]) -> int:
    """Do `work` at the place where the list is read; returns its exit code, 4 when there is no such place."""
    place = find(args)
    if isinstance(place, Refusal):
        return refuse(place, args.json)
    return asyncio.run(_awaited(work(place)))


async def _awaited(work: Awaitable[int]) -> int:
    return await work


def time_of(moment_ms: int) -> str:
    """A moment as this machine's clock shows it; with its date when it is not today's."""
    local = time.localtime(moment_ms / 1000)
    today = time.localtime()[:3] == local[:3]
    return time.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M:%S", local)
