"""The chain alone (hook-ingest, status-store, sorter) beside its bare hops, and beside one Node process without a bus and a store."""

import asyncio
import contextlib
import itertools
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from bench.place import Place, serving
from builders import NOW_MS
from tocsin.bus.nats_bus import NatsBus
from tocsin.cli.bench.chain import (
    EACH,
    WARM_UP,
    WORKTREES,
    Chain,
    Hops,
    Http,
    Lists,
    Work,
    know_worktrees,
    latencies,
    lists_of,
)
from tocsin.cli.bench.measure import Effort, Series, in_turn
from tocsin.cli.bench.rows import Row, Unit
from tocsin.cli.bench.site import NotMeasured, Site, empty_server, wait_for_file
from tocsin.contract.messages import PaneStatus, WorktreeKnown, WorktreesSorted
from tocsin.contract.subjects import HOOK_REPORTED, PANE_STATUS, WORKTREE_KNOWN
from tocsin.contract.versions import decode
from tocsin.sorter.core.board import Board
from tocsin.sorter.core.ranking import rank

SERVICES = ("tocsin.hook_ingest", "tocsin.status_store", "tocsin.sorter")

LINE_BYTES_MAX = 16 * 1024 * 1024

SETTLE_MS = 100
"""The sorter's window: the second peer keeps it too."""


@contextmanager
def peer(folder: Path, window_ms: int) -> Iterator[int]:
    """The Node process: its port. Raises NotMeasured."""
    node = shutil.which("node")
    if node is None:
        raise NotMeasured("node is missing: install nodejs")
    file = folder / f"peer{window_ms}.port"
    process = subprocess.Popen([node, str(Path(__file__).with_name("peer.mjs")), str(file), str(window_ms)])
    try:
        yield int(wait_for_file(file, "the Node process"))
    finally:
        process.kill()
        process.wait()


def states_in(line: bytes) -> dict[str, set[str]]:
    """Those of a list of the Node process."""
    return {row["path"]: {pane["state"] for pane in row["panes"]} for row in msgspec.json.decode(line)["worktrees"]}


@contextlib.asynccontextmanager
async def peers_lists(port: int) -> Any:
    """Its lists, as they come."""
    lists = Lists(states_in)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=LINE_BYTES_MAX)
    writer.write(b"GET /lists HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")

    async def read() -> None:
        # Each line is one chunk: its size in hex, itself, an empty line.
        while size := int(await reader.readline(), 16):
            lists.hear(await reader.readexactly(size))
            await reader.readexactly(2)

    reading = asyncio.create_task(read())
    try:
        yield lists
    finally:
        reading.cancel()
        writer.close()


class Order:
    """What was said of every pane and worktree: were statuses in their order, and is the list the one that a full sort makes?"""

    def __init__(self) -> None:
        self.said: list[bytes] = []  # read at the end: reading them at once would take its time from what is measured
        self.known: dict[str, WorktreeKnown] = {}

    async def listen(self, bus: NatsBus) -> None:
        """Keep them from here on."""

        async def hear_status(message: Any) -> None:
            self.said.append(message.data)

        async def hear_worktree(message: Any) -> None:
            known = decode(WorktreeKnown, message.data)
            self.known[known.worktree] = known

        await bus.client.subscribe(PANE_STATUS.all, cb=hear_status)
        await bus.client.subscribe(WORKTREE_KNOWN.all, cb=hear_worktree)

    def statuses(self) -> list[list[PaneStatus]]:
        """Those of each pane, in the order in which they were said."""
        found: defaultdict[str, list[PaneStatus]] = defaultdict(list)
        for data in self.said:
            status = decode(PaneStatus, data)
            found[status.pane].append(status)
        return list(found.values())

    def backwards(self) -> int:
        """Statuses that were said behind a newer one of their pane."""
        seqs = [[status.seq for status in some] for some in self.statuses()]
        return sum(later < earlier for some in seqs for earlier, later in itertools.pairwise(some))

    def displaced(self, listed: WorktreesSorted) -> int:
        """Rows of the list that stand elsewhere in a full sort of what was said last."""
        board = Board("default", NOW_MS)
        for known in self.known.values():
            board.hear_worktree(known, listed.at_ms, listed.at_ms)
        for some in self.statuses():
            board.hear_status(some[-1], listed.at_ms, listed.at_ms)
        board.refresh(listed.at_ms, listed.at_ms)
        index = board._index
        worktrees = [index.worktree(one) for one in sorted(index.order())]
        panes = {worktree.id: tuple(index.panes(worktree.id)) for worktree in worktrees}
        order = [worktree.id for worktree, _ in rank(worktrees, panes, listed.at_ms, lambda worktree: worktree.id)]
        return sum(row.id != one for row, one in zip(listed.worktrees, order, strict=True))


async def reported(bus: NatsBus) -> int:
    """Events on record."""
    return int((await bus.client.jetstream().stream_info(HOOK_REPORTED.stream)).state.messages)


def site_of(place: Place, empty: tuple[int, int]) -> Site:
    """The same for what the installed command measures too."""
    pids = tuple(pid for module, pid in place.pids.items() if module in SERVICES)
    return Site(place.state, place.bus, place.redis_url, place.port("ingest"), empty[1], empty[0], pids)


async def measure(effort: Effort) -> list[Row]:
    """The rows on hooks, and on one Node process."""
    async with serving(*SERVICES) as place:
        with ExitStack() as ending:
            site = site_of(place, ending.enter_context(empty_server(place.state)))
            return await _measure(place, site, effort, *(ending.enter_context(peer(place.state, one)) for one in (0, SETTLE_MS)))


async def _measure(place: Place, site: Site, effort: Effort, each_port: int, window_port: int) -> list[Row]:
    worktrees, each, warm_up = effort.of(WORKTREES), effort.of(EACH), effort.of(WARM_UP)
    asynchronous = {"TOCSIN_ACK": "async", "TOCSIN_INGEST_PORT_FILE": str(place.port_file("async"))}
    place.start("tocsin.hook_ingest", **asynchronous)
    order, lists = Order(), await lists_of(place.bus)
    await order.listen(place.bus)
    await know_worktrees(place.bus, worktrees)
    async with peers_lists(each_port) as each_lists, peers_lists(window_port) as window_lists:
        ports = (site.ingest_port, place.port("async"), site.empty_port, each_port, window_port)
        connections = [Http(port, site.credential) for port in ports]
        ingest, quick, empty, one, two = connections
        chain, node, window = Chain(ingest, lists, worktrees), Chain(one, each_lists, worktrees), Chain(two, window_lists, worktrees)
        hops, answering = await Hops(empty, site).open(), Chain(quick, lists, worktrees)
        for some in (chain, node, window):
            await some.fill()
        for connection in connections:
            await connection.open()
        answering.next = iter(reversed(chain.agents))  # agents of its own: both have many more than samples
        found = await in_turn(
            {"chain": chain.prompt, "async": answering.prompt, "hops": hops.all, "node": node.prompt}, each, warm_up, effort.rounds
        )
        begun = await reported(place.bus)
        work = Work(chain, site)
        rates = {node: Series(), window: Series()}
        for _ in range(effort.rounds):
            await work.round()
            for some, series in rates.items():
                series.rounds.append([await some.flip()])
        last = decode(WorktreesSorted, lists.last)
        lost = effort.rounds * worktrees - (await reported(place.bus) - begun)
        for connection in (*connections, hops):
            connection.close()
    answers, posts, quick_answers = (some[warm_up:] for some in (chain.answers, hops.posts, answering.answers))
    node_name = "one Node process, a sort per event"
    return [
        *latencies(found, answers, posts, effort.rounds, worktrees),
        Row("hook-to-list-node", "hook POST to worktree.sorted delivered", found["chain"], node_name, found["node"], 2, 1.3),
        Row("events-node", "events a second, whole chain", work.rates, node_name, rates[node], 1.5, 3, unit=Unit.RATE, more=True),
        Row(
            "events-node-window", "events a second, whole chain", work.rates, f"one Node process, a sort per {SETTLE_MS} ms", rates[window],
            unit=Unit.RATE, more=True,
        ),
        Row(
            "hook-answer-async", "hook POST with ACK=async", Series.of(quick_answers, effort.rounds),
            "POST to an empty ASGI route", Series.of(posts, effort.rounds), 2.5, 1.6,
        ),
        work.row(),
        *(
            Row(name, what, Series([[count]]), "", None, 0, 0, unit=Unit.COUNT)
            for name, what, count in (
                ("lost", f"events lost, of {effort.rounds * worktrees:,}", lost),
                ("out-of-order", "statuses said behind a newer one of their pane", order.backwards()),
                ("order", f"rows that stand elsewhere than in the full sort, of {worktrees:,}", order.displaced(last)),
            )
        ),
    ]  # fmt: skip
