"""What a mailbox holds, and what each thing that was recorded of it changes.

Messages are numbered as they arrive. Those that are unread are one unbroken row of numbers, because a Delivery is always
the oldest of them: so every step here costs the same however many were read before.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from tocsin.contract.ids import HostId, PaneId
from tocsin.contract.mail import (
    ACTIONABLE,
    RUN_MARK,
    TO_WORKER,
    Acked,
    Answered,
    Arrived,
    Asked,
    Delivered,
    Fenced,
    Joined,
    LeaseEnded,
    Left,
    Looked,
    MailEvent,
    MailRecorded,
    MailType,
    Message,
    Opened,
    Outdated,
    Parked,
    Placed,
    Purged,
    Shut,
    Spread,
    WaitEnded,
    WakeState,
    Woken,
)
from tocsin.contract.messages import Process
from tocsin.contract.parties import Caller
from tocsin.contract.run import Restored
from tocsin.contract.table import Table

READ_KEPT_MAX = 200
"""Read messages that can still be looked at. Unread ones are never dropped."""

ACKED_KEPT_MAX = 64
"""Deliveries whose repeated ack is known as one."""

WAKES_KEPT_MAX = 100
"""Wakes in the account that the mailbox itself keeps; its ledger has them all."""

WAKES_PER_HOUR_MAX = 30
"""The wake budget of one mailbox; beyond it they coalesce, and the person is told."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A message in its place."""

    number: int
    message: Message


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """A fixed batch that was handed out: the messages from number `first` to number `last`."""

    id: str
    first: int
    last: int
    generation: int
    lease_until_ms: int


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """A parked check."""

    id: str
    until_ms: int
    by: str
    types: tuple[MailType, ...] = ()


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question of the worker whose mailbox this is. `answer`: None while it is open."""

    id: str
    text: str
    options: tuple[str, ...]
    at_ms: int
    answer: str | None = None
    closed: bool = False


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A live Dispatch of this Run."""

    dispatch: str
    agent: str


class Mailbox(msgspec.Struct, frozen=True, kw_only=True):
    """One mailbox."""

    address: str
    run: str | None = None
    task: str | None = None

    # who reads it
    generation: int = 0  # 0: nobody ever has
    reader: Caller | None = None
    agent: str | None = None
    host: HostId | None = None
    pane: PaneId | None = None
    process: Process | None = None
    shut: str | None = None
    purged: bool = False
    read_ms: int = 0  # when its reader last took or looked

    # what is in it
    first: int = 1  # number of the oldest unread message
    end: int = 1  # number of the next one to arrive
    unread: Table[str, Entry] = msgspec.field(default_factory=Table)
    read: Table[str, Entry] = msgspec.field(default_factory=Table)
    known: Table[str, int] = msgspec.field(default_factory=Table)  # ids of both -> numbers
    last_actionable: int = 0
    last_ready: int = 0  # what tells of ready work, and still holds

    # Deliveries
    delivery: Delivery | None = None
    lapsed: Delivery | None = None  # its lease has ended; its ack still counts until the batch is handed out again
    deliveries: int = 0
    acked: tuple[str, ...] = ()
    wait: Wait | None = None

    # questions and groups
    questions: Table[str, Question] = msgspec.field(default_factory=Table)
    members: Table[str, Member] = msgspec.field(default_factory=Table)

    # wakes
    seen: int = 0  # its reader has had all up to here
    announced: int = 0  # a wake has told its reader of all up to here
    wake: Woken | None = None  # the last one
    wakes: Table[str, Woken] = msgspec.field(default_factory=Table)
    wake_count: int = 0
    wake_times_ms: tuple[int, ...] = ()

    @property
    def is_run(self) -> bool:
        """Whether it is a coordinator's."""
        return self.address.startswith(RUN_MARK)

    @property
    def is_open(self) -> bool:
        """Whether somebody durable reads it."""
        return self.generation > 0 and self.shut is None

    @property
    def unread_count(self) -> int:
        """How many messages are not acked."""
        return self.end - self.first

    @property
    def newest(self) -> int:
        """Number of the newest message for which its reader is woken, 0 when its reader has had it."""
        newest = max(self.last_actionable, self.last_ready)
        return newest if newest > max(self.seen, self.first - 1) else 0

    @property
    def due(self) -> int:
        """The same, 0 also when a wake has told of it."""
        return self.newest if self.newest > self.announced else 0

    def at(self, number: int) -> Message:
        """The unread message of that number."""
        return self.unread[str(number)].message

    def numbered(self, first: int, last: int) -> list[Message]:
        """The unread messages of these numbers, oldest first."""
        return [self.at(number) for number in range(max(first, self.first), min(last + 1, self.end))]

    def open_questions(self) -> list[Question]:
        """What its worker waits for, oldest first."""
        return sorted((some for some in self.questions.values() if some.answer is None and not some.closed), key=lambda some: some.at_ms)

    def is_actionable(self, type_: MailType) -> bool:
        """Whether its reader is woken for a message of that type."""
        return type_ in (ACTIONABLE if self.is_run else TO_WORKER)

    def waiting(self, count_max: int, behind: int = 0) -> list[Message]:
        """What its reader has not had and is woken for, oldest first, at most `count_max`, from behind number `behind` on."""
        found: list[Message] = []
        for number in range(max(self.seen, self.first - 1, behind) + 1, self.newest + 1):
            message = self.at(number)
            if self.is_actionable(message.type) and (message.type is not MailType.READY or number == self.last_ready):
                found.append(message)
                if len(found) == count_max:
                    break
        return found


def blank(address: str) -> Mailbox:
    """A mailbox of which nothing has been recorded."""
    return Mailbox(address=address)


def evolve(box: Mailbox, recorded: MailRecorded) -> Mailbox:
    """The mailbox after one record."""
    return fold(box, recorded.events, recorded.at_ms)


def fold(box: Mailbox, events: Iterable[MailEvent | Restored], at_ms: int) -> Mailbox:
    """The mailbox after `events`, which were recorded at `at_ms`."""
    for event in events:
        box = _after(box, event, at_ms)
    return box


def change(box: Mailbox, **fields: Any) -> Mailbox:
    """The mailbox with other values."""
    return msgspec.structs.replace(box, **fields)


def _after(box: Mailbox, event: MailEvent | Restored, at_ms: int) -> Mailbox:
    match event:
        case Arrived():
            return _arrived(box, event.message)
        case Delivered():
            return _delivered(box, event, at_ms)
        case Acked():
            return _acked(box, event.delivery, at_ms)
        case LeaseEnded():
            # What no wake has told of may not have reached anybody: it is news again.
            first = box.delivery.first if box.delivery else box.first
            return change(box, delivery=None, lapsed=box.delivery, seen=min(box.seen, first - 1))
        case Looked():
            return change(box, seen=max(box.seen, box.end - 1), read_ms=at_ms)
        case Woken():
            return _woken(box, event)
        case Parked():
            return change(box, wait=Wait(id=event.wait, until_ms=event.until_ms, by=event.by, types=event.types))
        case WaitEnded():
            return change(box, wait=None) if box.wait is not None and box.wait.id == event.wait else box
        case Opened():
            return change(
                box, generation=event.generation, reader=event.reader, run=event.run, task=event.task, agent=event.agent,
                host=event.host, pane=event.pane,
            )  # fmt: skip
        case Fenced():
            # A new reader has been told of nothing, and may be called as often as any.
            return change(
                box, generation=event.generation, reader=event.reader, host=event.reader.host if event.reader else None,
                pane=event.reader.pane if event.reader else None, process=None, agent=None, delivery=None, lapsed=None, wait=None,
                seen=0, announced=0,
            )  # fmt: skip
        case Placed():
            return change(box, host=event.host, pane=event.pane, process=event.process)
        case Shut():
            return change(box, shut=event.why, wait=None)
        case Joined():
            return change(box, members=box.members.set(event.dispatch, Member(dispatch=event.dispatch, agent=event.agent)))
        case Left():
            return change(box, members=box.members.delete(event.dispatch))
        case Outdated():
            return change(box, last_ready=0)
        case Asked():
            asked = Question(id=event.question, text=event.text, options=event.options, at_ms=at_ms)
            return change(box, questions=box.questions.set(asked.id, asked))
        case Answered():
            question = box.questions[event.question]
            settled = msgspec.structs.replace(question, answer=None if event.closed else event.answer, closed=event.closed)
            return change(box, questions=box.questions.set(question.id, settled))
        case Purged():
            return change(box, shut="its Run is purged", purged=True, wait=None)
        case Spread():
            return box  # only its receipt matters
    raise AssertionError(f"no such event of a mailbox: {event}")


def _arrived(box: Mailbox, message: Message) -> Mailbox:
    number = box.end
    box = change(
        box,
        end=number + 1,
        unread=box.unread.set(str(number), Entry(number=number, message=message)),
        known=box.known.set(message.id, number),
    )
    if message.type is MailType.READY and box.is_run:
        return change(box, last_ready=number)
    return change(box, last_actionable=number) if box.is_actionable(message.type) else box


def _delivered(box: Mailbox, event: Delivered, at_ms: int) -> Mailbox:
    first, last = box.first, box.first + len(event.messages) - 1
    handed = Delivery(id=event.delivery, first=first, last=last, generation=event.generation, lease_until_ms=event.lease_until_ms)
    is_waited_for = box.wait is not None and box.wait.id == event.wait
    return change(
        box, delivery=handed, lapsed=None, deliveries=box.deliveries + 1, seen=max(box.seen, last), read_ms=at_ms,
        wait=None if is_waited_for else box.wait,
    )  # fmt: skip


def _acked(box: Mailbox, delivery_id: str, at_ms: int) -> Mailbox:
    delivery = next(some for some in (box.delivery, box.lapsed) if some is not None and some.id == delivery_id)
    numbers = [str(number) for number in range(delivery.first, delivery.last + 1)]
    read = box.read.set_all({number: box.unread[number] for number in numbers})
    gone = [str(number) for number in range(delivery.first - READ_KEPT_MAX, delivery.last + 1 - READ_KEPT_MAX) if str(number) in read]
    known = box.known.delete(*(read[number].message.id for number in gone))
    return change(
        box, first=delivery.last + 1, unread=box.unread.delete(*numbers), read=read.delete(*gone), known=known,
        delivery=None, lapsed=None, acked=(*box.acked, delivery.id)[-ACKED_KEPT_MAX:], seen=max(box.seen, delivery.last),
        read_ms=at_ms,
    )  # fmt: skip


def _woken(box: Mailbox, event: Woken) -> Mailbox:
    before = box.wake if box.wake is not None and box.wake.wake == event.wake else None
    is_new = before is None
    times = box.wake_times_ms
    if event.state is WakeState.OFFERED and (before is None or not before.since_ms):
        times = (*times, event.at_ms)[-WAKES_PER_HOUR_MAX:]
    tells = event.state in (WakeState.OFFERED, WakeState.DELIVERED)
    count = box.wake_count + is_new
    wakes = box.wakes.set(event.wake, event)
    if is_new:
        wakes = wakes.delete(wake_id(box, count - WAKES_KEPT_MAX))
    return change(
        box, wake=event, wakes=wakes, wake_count=count, wake_times_ms=times,
        announced=max(box.announced, event.through) if tells else box.announced,
    )  # fmt: skip


def wake_id(box: Mailbox, number: int) -> str:
    """The name of the wake of that number: unique over all mailboxes."""
    return f"{box.address}.w{number}"
