"""Requests to Runs: does a large one cost more, and what does a mutation cost beside the one write that it needs?"""

import contextlib
import itertools

from bench.place import serving
from dispatcher_builders import COORDINATOR, a_spec
from support import Deadline
from tocsin.bus.nats_bus import NatsBus
from tocsin.cli.bench.measure import Effort, Take, in_turn, timed
from tocsin.cli.bench.rows import Row
from tocsin.contract.faults import Unavailable
from tocsin.contract.run import (
    AddTasks,
    CreateRun,
    ListGates,
    ListTasks,
    ListWorkers,
    Receipt,
    RunCommand,
    RunVerb,
    ShowTask,
    UpdateTask,
    new_run_id,
)
from tocsin.contract.subjects import RUN_CMD, RUN_EVENT
from tocsin.runtime.clock import SystemClock

SMALL, LARGE = 10, 10_000
CHAIN = 10
"""Tasks of a chain, each of which waits for the one before: a tenth of a Run is ready."""

EACH, WARM_UP = 60, 30


class Commands:
    """A coordinator with one Run."""

    def __init__(self, bus: NatsBus, name: str) -> None:
        self.bus = bus
        self.run = new_run_id(COORDINATOR, name)
        self.numbers = itertools.count()

    async def say(self, ask: RunVerb) -> None:
        """Ask once; anything but a receipt ends the bench."""
        command = RunCommand(run=self.run, request=f"q{next(self.numbers)}", caller=COORDINATOR, ask=ask, at_ms=SystemClock().now_ms())
        answer = await self.bus.ask(RUN_CMD, command, timeout_s=20)
        assert isinstance(answer, Receipt), answer

    async def create(self, name: str, tasks: int) -> None:
        """Make the Run, as soon as somebody serves."""
        command = RunCommand(run=self.run, request=name, caller=COORDINATOR, ask=CreateRun(objective="measure"), at_ms=0)
        async for _ in Deadline(20, "a dispatcher answers"):
            with contextlib.suppress(Unavailable):
                if isinstance(await self.bus.ask(RUN_CMD, command, timeout_s=5), Receipt):
                    break
        await self.say(AddTasks(tasks=tuple(a_spec(f"t{n}", *([f"t{n - 1}"] if n % CHAIN else [])) for n in range(tasks))))

    def change(self) -> Take:
        """The title of one Task."""
        return lambda: timed(self.say(UpdateTask(task="t5", title=f"title {next(self.numbers)}")))

    def show(self) -> Take:
        """One Task is read."""
        return lambda: timed(self.say(ShowTask(task="t5")))

    def page(self) -> Take:
        """The first ten Tasks are read."""
        return lambda: timed(self.say(ListTasks(limit=10)))

    def fleet(self) -> Take:
        """Who is at work is read."""
        return lambda: timed(self.say(ListWorkers(limit=10)))

    def gates(self) -> Take:
        """All gates are read."""
        return lambda: timed(self.say(ListGates(all=True)))


async def synced_ack(bus: NatsBus, bytes_of_record: int) -> Take:
    """One write of as many bytes to a stream on disk, until its ack."""
    jetstream = bus.client.jetstream()
    await jetstream.add_stream(name="BENCH", subjects=["bench.ack"])
    payload = b"x" * bytes_of_record
    return lambda: timed(bus.client.request("bench.ack", payload, timeout=10))


async def bytes_of_last(bus: NatsBus, run: str) -> int:
    """Size of the last record of a Run."""
    message = await bus.client.jetstream().get_last_msg(RUN_EVENT.stream, RUN_EVENT.at(run))
    return len(message.data or b"")


async def measure(effort: Effort) -> list[Row]:
    """The rows on commands."""
    async with serving("tocsin.dispatcher") as place:
        bus = place.bus
        small, large = Commands(bus, "small"), Commands(bus, "large")
        await small.create("small", SMALL)
        await large.create("large", effort.of(LARGE))
        await small.change()()
        found = await in_turn(
            {
                "change.small": small.change(), "change.large": large.change(), "show.small": small.show(), "show.large": large.show(),
                "page.small": small.page(), "page.large": large.page(), "fleet.small": small.fleet(), "fleet.large": large.fleet(),
                "gates.small": small.gates(), "gates.large": large.gates(), "ack": await synced_ack(bus, await bytes_of_last(bus, small.run)),
            },
            effort.of(EACH), effort.of(WARM_UP), effort.rounds,
        )  # fmt: skip
    verbs = {"change": "task update", "show": "task show", "page": "task list, 10 rows", "fleet": "worker list", "gates": "gate list"}
    return [
        *(
            Row(
                f"{told.replace(' ', '-').partition(',')[0]}-large",
                f"{told}, Run of {effort.of(LARGE):,} Tasks",
                found[f"{verb}.large"],
                f"Run of {SMALL}",
                found[f"{verb}.small"],
                2,
                1.2,
            )
            for verb, told in verbs.items()
        ),
        Row(
            "mutation",
            "a mutation of a Run (task update), accepted and on disk",
            found["change.small"],
            "one synced JetStream ack",
            found["ack"],
            3,
            2,
        ),
    ]
