"""Mail: what may be asked of a mailbox, what is recorded of it, and the wakes that it causes."""

from enum import StrEnum

from tocsin.contract.ids import HostId, PaneId
from tocsin.contract.messages import Body, Part
from tocsin.contract.parties import Caller
from tocsin.contract.run import Receipt


class MailType(StrEnum):
    """What a message is. A heartbeat is none: it is state of its Dispatch."""

    REPORT = "report"
    QUESTION = "question"
    ANSWER = "answer"
    ESCALATION = "escalation"
    GATE = "gate"
    GUIDANCE = "guidance"
    STATUS = "status"
    REJECTION = "rejection"
    MISSING = "missing"  # an attempt ended and no report came
    READY = "ready"  # ready work, and nobody awake


ACTIONABLE = frozenset(
    {MailType.REPORT, MailType.QUESTION, MailType.ESCALATION, MailType.GATE, MailType.REJECTION, MailType.MISSING, MailType.READY}
)
"""What a coordinator is woken for."""

DELIVERY_MAX = 50
"""Messages of one Delivery."""


class Message(Part, frozen=True, kw_only=True):
    """One message of a mailbox. `id` is unique in it and made of what caused it, so that a repeat is the same message."""

    id: str
    type: MailType
    sender: str  # an address: run:<id>, dispatch:<id>, person
    subject: str
    body: str
    at_ms: int
    run: str | None = None
    task: str | None = None
    dispatch: str | None = None
    thread: str | None = None  # of a question and its answer: the question's id
    code: str | None = None
    options: tuple[str, ...] = ()


class MailAsk(Part, frozen=True, kw_only=True, tag_field="verb"):
    """What is asked of one mailbox."""


class SendMail(MailAsk, frozen=True, kw_only=True, tag="send"):
    """Put a message into a mailbox. Refused when the address has no durable reader, or is waiting for an answer to a question."""

    message: Message


class CheckMail(MailAsk, frozen=True, kw_only=True, tag="check"):
    """Take the next Delivery, or the same one again until it is acked. `wait_ms` parks; `peek` takes nothing."""

    wait_ms: int = 0
    peek: bool = False
    types: tuple[MailType, ...] = ()  # what ends a wait; never what a Delivery holds
    ack: str | None = None  # a Delivery to ack in the same request


class AckMail(MailAsk, frozen=True, kw_only=True, tag="ack"):
    """The Delivery is dealt with. Twice is a success, marked so."""

    delivery: str


class ReplyMail(MailAsk, frozen=True, kw_only=True, tag="reply"):
    """Answer a question by its id, in the asker's mailbox."""

    question: str
    body: str


class AskQuestion(MailAsk, frozen=True, kw_only=True, tag="ask"):
    """A worker's question to its Run; answers are awaited with CheckMail on its own mailbox."""

    question: str
    options: tuple[str, ...] = ()


class ReadMail(MailAsk, frozen=True, kw_only=True, tag="inbox"):
    """Look without taking: pages that say they are pages."""

    before: int | None = None
    limit: int = 50
    unread: bool = False


MailVerb = SendMail | CheckMail | AckMail | ReplyMail | AskQuestion | ReadMail


class MailCommand(Body, frozen=True, kw_only=True):
    """A request. `mailbox` is an address: `run:<id>` or `dispatch:<id>`; groups (`@all`, `@idle`, `@<agent>`) only for send."""

    mailbox: str
    request: str
    caller: Caller
    ask: MailVerb
    at_ms: int
    generation: int | None = None


class MailEvent(Part, frozen=True, kw_only=True, tag_field="kind"):
    """Something that is true of a mailbox from here on."""


class Opened(MailEvent, frozen=True, kw_only=True, tag="opened"):
    """It has a durable reader from here on: the Run's consumer of `generation`, or the worker of a Dispatch."""

    generation: int
    reader: Caller | None = None


class Fenced(MailEvent, frozen=True, kw_only=True, tag="fenced"):
    """A newer generation reads it; an outstanding Delivery is void and its batch free."""

    generation: int
    reader: Caller | None
    before: Caller | None


class Arrived(MailEvent, frozen=True, kw_only=True, tag="arrived"):
    """A message is in it."""

    message: Message


class Delivered(MailEvent, frozen=True, kw_only=True, tag="delivered"):
    """A fixed batch is handed out until `lease_until_ms`."""

    delivery: str
    messages: tuple[str, ...]
    generation: int
    lease_until_ms: int


class LeaseEnded(MailEvent, frozen=True, kw_only=True, tag="lease_ended"):
    """Nobody acked in time: the batch is free again."""

    delivery: str


class Acked(MailEvent, frozen=True, kw_only=True, tag="acked"):
    """It is dealt with."""

    delivery: str


class Asked(MailEvent, frozen=True, kw_only=True, tag="asked"):
    """A worker waits for the answer to a question."""

    question: str
    dispatch: str


class Answered(MailEvent, frozen=True, kw_only=True, tag="answered"):
    """It has its answer, or needs none any more (`closed`)."""

    question: str
    answer: str
    by: Caller
    closed: bool = False


class WakeState(StrEnum):
    """The life of a wake."""

    DUE = "due"
    HELD = "held"  # the coordinator works, a prompt stands, a draft is there
    OFFERED = "offered"  # a channel has been used; whether it worked is not known yet
    DELIVERED = "delivered"  # a model turn followed it
    WITHDRAWN = "withdrawn"  # the mail was read by another path
    UNDELIVERABLE = "undeliverable"  # no channel can ever reach it: the person is told
    COALESCED = "coalesced"  # beyond the cap of the Run


class Rung(StrEnum):
    """Ways to wake, the first that applies."""

    PARKED = "parked"  # a waiting check was answered: no wake at all
    IDLE_HOOK = "idle_hook"
    NATIVE = "native"
    TYPED = "typed"
    PERSON = "person"


class Woken(MailEvent, frozen=True, kw_only=True, tag="woken"):
    """A step in the life of a wake: the account of it. `content` identifies the unread actionable messages it is for."""

    wake: str
    content: str
    state: WakeState
    cause: MailType | None = None
    messages: tuple[str, ...] = ()
    rung: Rung | None = None
    proof: str = ""
    deadline_ms: int | None = None


MailEvents = Opened | Fenced | Arrived | Delivered | LeaseEnded | Acked | Asked | Answered | Woken


class MailRecorded(Body, frozen=True, kw_only=True):
    """One accepted command of a mailbox: its events, all or nothing, and its receipt."""

    mailbox: str
    request: str
    caller: Caller
    payload_hash: str
    events: tuple[MailEvents, ...]
    receipt: Receipt
    at_ms: int


class WakeDue(Body, frozen=True, kw_only=True):
    """A hint for what waits in or beside a pane (a parked handler, a plugin); the mail itself is the truth."""

    host: HostId
    pane: PaneId
    wake: str
    session: str | None
    pointer: str
    at_ms: int


class IdleQuestion(Body, frozen=True, kw_only=True):
    """hook-ingest asks, inside an idle hook's request: is there anything to say to this session? Answered by IdleAnswer."""

    host: HostId
    pane: PaneId | None
    agent: str
    session: str
    stop_hook_active: bool
    at_ms: int


class IdleAnswer(Body, frozen=True, kw_only=True):
    """The pointer to give, or nothing."""

    pointer: str | None = None
    wake: str | None = None
