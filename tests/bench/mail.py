"""Mail and wakes: does read mail weigh, and how long after mail is accepted does a wake channel fire?"""

import asyncio
import contextlib
import itertools
import time
from collections.abc import Awaitable, Callable
from typing import Any

from bench.place import serving
from mailbox_builders import at_rest
from support import Deadline, settled
from tocsin.bus.nats_bus import NatsBus, connect
from tocsin.cli.bench.measure import Effort, Series, Take, in_turn, timed
from tocsin.cli.bench.rows import Row
from tocsin.contract.faults import Unavailable
from tocsin.contract.mail import AckMail, CheckMail, MailCommand, MailType, MailVerb, Message, ReadMail, SendMail, WakeDue
from tocsin.contract.parties import Caller, Role
from tocsin.contract.run import (
    CoordinatorBound,
    DispatchMoved,
    DispatchRequested,
    DispatchState,
    Launch,
    Outcome,
    Placement,
    Receipt,
    Report,
    RunEvent,
    RunRecorded,
    Where,
    WorkReported,
)
from tocsin.contract.subjects import MAIL_CMD, PANE_STATUS, RUN_EVENT, WAKE_DUE
from tocsin.contract.versions import decode
from tocsin.runtime.clock import SystemClock

SMALL, LARGE = 10, 10_000
REPORTS_OF_RECORD = 1_000
EACH, WARM_UP = 60, 20

WAKES_EACH, WAKES_WARM_UP = 30, 10
"""Each wake has a Run of its own: wakes of one Run are put together, and there is a cap on them."""

ROUND_TRIPS = 3

CLOCK = SystemClock()


class Post:
    """The mail of one Run, with a coordinator and a worker, each in a pane of its own."""

    def __init__(self, bus: NatsBus, run: str) -> None:
        self.bus = bus
        self.run = run
        self.pane = f"p-{run}"
        self.coordinator = Caller(role=Role.COORDINATOR, name="claude", host="h", pane=self.pane)
        self.dispatch = f"{run}.t1.1"
        self.worker = Caller(role=Role.WORKER, name="worker", host="h", pane=f"w-{run}", dispatch=self.dispatch, vouched=True)
        self.numbers = itertools.count()

    async def ask(self, verb: MailVerb, caller: Caller | None = None) -> Any:
        """The result of a request to the Run's mailbox; anything but a receipt ends the bench."""
        command = MailCommand(
            mailbox=f"run:{self.run}", request=f"q{next(self.numbers)}", caller=caller or self.coordinator, ask=verb, at_ms=CLOCK.now_ms()
        )
        answer = await self.bus.ask(MAIL_CMD, command, timeout_s=20)
        assert isinstance(answer, Receipt), answer
        return answer.result

    async def record(self, *events: RunEvent) -> None:
        """Something is recorded of the Run."""
        receipt = Receipt(request="")
        recorded = RunRecorded(
            run=self.run, request="", caller=self.coordinator, payload_hash="", events=events, receipt=receipt, at_ms=CLOCK.now_ms()
        )
        await self.bus.say(RUN_EVENT, recorded)

    async def create(self) -> None:
        """The Run has its coordinator, and its worker is at work."""
        launch = Launch(agent="codex", host="h", placement=Placement(where=Where.CURRENT))
        requested = DispatchRequested(dispatch=self.dispatch, task="t1", fence=1, launch=launch, by=self.coordinator, brief="")
        pane = self.worker.pane
        started = DispatchMoved(dispatch=self.dispatch, task="t1", fence=1, to=DispatchState.RUNNING, saw="turn_seen", pane=pane)
        await self.record(CoordinatorBound(generation=1, caller=self.coordinator), requested, started)

    async def until_unread(self, count: int) -> None:
        """Wait for what was recorded."""
        async for _ in Deadline(30, f"{count} unread messages of {self.run}"):
            with contextlib.suppress(Unavailable, AssertionError):
                if (await self.ask(ReadMail(limit=1)))["unread"] == count:
                    return

    async def read_all(self) -> None:
        """Take and ack what is there."""
        delivery = None
        while True:
            delivery = (await self.ask(CheckMail(ack=delivery)))["delivery"]
            if delivery is None:
                return

    async def have_read(self, count: int) -> None:
        """As many reports have come and were read."""
        for first in range(0, count, REPORTS_OF_RECORD):
            size = min(REPORTS_OF_RECORD, count - first)
            report = Report(outcome=Outcome.SUCCEEDED, body="done")
            await self.record(*(WorkReported(dispatch=self.dispatch, task="t1", report=report, by=self.worker) for _ in range(size)))
            await self.until_unread(size)
            await self.read_all()

    async def send(self, type_: MailType) -> None:
        """The worker writes to its coordinator."""
        message = Message(id="", type=type_, sender="", subject="news", body="half way", at_ms=0)
        await self.ask(SendMail(message=message), self.worker)

    async def check(self) -> int:
        """Nanoseconds of one check that finds one message; sending and acking are not in them."""
        await self.send(MailType.STATUS)
        began_ns = time.perf_counter_ns()
        found = await self.ask(CheckMail())
        taken_ns = time.perf_counter_ns() - began_ns
        assert len(found["messages"]) == 1
        await self.ask(AckMail(delivery=found["delivery"]))
        return taken_ns


class Hints:
    """When the hint for each pane was heard."""

    def __init__(self, bus: NatsBus) -> None:
        self.bus = bus
        self.heard: dict[str, asyncio.Future[int]] = {}

    async def listen(self) -> None:
        """Hear them from here on."""

        async def hear(message: Any) -> None:
            at_ns = time.perf_counter_ns()
            waiting = self.heard.get(decode(WakeDue, message.data).pane)
            if waiting is not None and not waiting.done():
                waiting.set_result(at_ns)

        await self.bus.client.subscribe(WAKE_DUE.all, cb=hear)

    def expect(self, pane: str) -> "asyncio.Future[int]":
        """When the next one for this pane is heard."""
        self.heard[pane] = asyncio.get_running_loop().create_future()
        return self.heard[pane]


async def woken(post: Post, hints: Hints, from_sending: list[int]) -> int:
    """Nanoseconds from the receipt of actionable mail to the hint at an idle coordinator; both cross the bus once."""
    hint = hints.expect(post.pane)
    sent_ns = time.perf_counter_ns()
    await post.send(MailType.ESCALATION)
    accepted_ns = time.perf_counter_ns()
    heard_ns = await asyncio.wait_for(hint, 10)
    from_sending.append(heard_ns - sent_ns)
    return heard_ns - accepted_ns


async def at_rest_runs(bus: NatsBus, count: int) -> list[Post]:
    """Runs whose coordinators are Claude Codes at rest."""
    posts = [Post(bus, f"w{number}") for number in range(count)]
    for post in posts:
        ended_ms = CLOCK.now_ms() - 60_000
        await bus.say(PANE_STATUS, at_rest(ended_ms=ended_ms, agent="claude", pane=post.pane, session=f"s-{post.run}"))
        await post.create()
    for post in posts:
        await post.until_unread(0)
    return posts


async def round_trip(bus: NatsBus, client: Any) -> Callable[[], Awaitable[int]]:
    """One NATS request, answered at once on another connection of this process."""

    async def answer(message: Any) -> None:
        await client.publish(message.reply, b"")

    await client.subscribe("bench.echo", cb=answer)
    await settled(client)
    return lambda: timed(bus.client.request("bench.echo", b"", timeout=10))


async def measure_mail(effort: Effort) -> list[Row]:
    """The row on checks."""
    async with serving("tocsin.mailbox") as place:
        bus = place.bus
        small, large = Post(bus, "small"), Post(bus, "large")
        for post, count in ((small, SMALL), (large, effort.of(LARGE))):
            await post.create()
            await post.until_unread(0)
            await post.have_read(count)
        found = await in_turn({"small": small.check, "large": large.check}, effort.of(EACH), effort.of(WARM_UP), effort.rounds)
    return [
        Row(
            "mail-check",
            f"mail check, {effort.of(LARGE):,} read messages behind it",
            found["large"],
            f"{SMALL} behind it",
            found["small"],
            1.5,
            1.1,
        )
    ]


async def measure_wakes(effort: Effort) -> list[Row]:
    """The rows on wakes."""
    each, warm_up = effort.of(WAKES_EACH), effort.of(WAKES_WARM_UP)
    async with serving("tocsin.mailbox") as place, connect(place.nats_url, name="echo", makes_streams=False) as echo:
        bus = place.bus
        hints = Hints(bus)
        await hints.listen()
        posts = iter(await at_rest_runs(bus, warm_up + effort.rounds * each))
        from_sending: list[int] = []
        cases: dict[str, Take] = {"wake": lambda: woken(next(posts), hints, from_sending), "trip": await round_trip(bus, echo.client)}
        found = await in_turn(cases, each, warm_up, effort.rounds)
    sent = Series.of(from_sending[warm_up:], effort.rounds)
    base = "NATS request round trip"
    return [
        Row("wake", "actionable mail: receipt heard to wake heard", found["wake"], base, found["trip"], 8, 4, ROUND_TRIPS),
        Row("wake-from-sending", "actionable mail: its sending to wake heard", sent, base, found["trip"], 8, 4, ROUND_TRIPS),
    ]
