"""Mail: what may be asked of a mailbox, what is recorded of it, and the wakes that it causes."""

from enum import StrEnum

from tocsin.contract.ids import HostId, PaneId
from tocsin.contract.messages import Body, Part, Process
from tocsin.contract.parties import Caller
from tocsin.contract.run import Receipt, Restored


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

TO_WORKER = frozenset({MailType.ANSWER, MailType.GUIDANCE, MailType.ESCALATION, MailType.REJECTION})
"""What a worker is woken for."""

SENDABLE = frozenset({MailType.GUIDANCE, MailType.STATUS, MailType.ESCALATION})
"""What may be sent as it is. The other types are made by what they tell of: a report, a question, a gate."""

RUN_MARK = "run:"
"""Begins the address of a coordinator's mailbox; its Run's id follows."""

DISPATCH_MARK = "dispatch:"
"""Begins the address of a worker's mailbox; its Dispatch's id follows."""

GROUP_MARK = "@"
"""Begins an address of a group: `@all`, `@idle`, `@<agent>`: live Dispatches of the sender's own Run."""


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
    """Put a message into a mailbox, or to a group. Refused when the address has no durable reader, or waits for an answer to a question.

    `id`, `sender`, `run` and `at_ms` of the message are filled in by the service (`run` stays what it is for a group: the Run that is
    meant). Result: {message} or, for a group, {group, to: [dispatch], skipped: {dispatch: code}}.
    """

    message: Message


class CheckMail(MailAsk, frozen=True, kw_only=True, tag="check"):
    """Take the next Delivery, or the same one again until it is acked. `wait_ms` parks (55 s at most); `peek` takes nothing.

    Result: {delivery: id or null, repeat: bool, lease_until_ms, messages: [Message], generation, waited_ms,
    beyond: {count, actionable: [{id, type, sender, subject}]}}: what waits behind the Delivery (for `peek`: all that is unread).
    `acked`: the Delivery of a repeated request is acked by now; its messages are not shown again.
    """

    wait_ms: int = 0
    peek: bool = False
    types: tuple[MailType, ...] = ()  # what ends a wait; never what a Delivery holds
    ack: str | None = None  # a Delivery to ack in the same request


class AckMail(MailAsk, frozen=True, kw_only=True, tag="ack"):
    """The Delivery is dealt with. Twice is a success, and the receipt says `duplicate`. Result: {acked, late}."""

    delivery: str


class ReplyMail(MailAsk, frozen=True, kw_only=True, tag="reply"):
    """Answer a question by its id. `mailbox`: the asker's, or the Run's, where the question was read. Result: {question, message}."""

    question: str
    body: str


class AskQuestion(MailAsk, frozen=True, kw_only=True, tag="ask"):
    """A worker's question to its Run; the answer is awaited with CheckMail on its own mailbox. Result: {question}."""

    question: str
    options: tuple[str, ...] = ()


class ReadMail(MailAsk, frozen=True, kw_only=True, tag="inbox"):
    """Look without taking: pages that say they are pages, newest first. `before`: the number that the page before gave as `next`.

    Result: {rows: [{number, read: bool, message: Message}], unread, total: unread and kept read ones, next: number or null,
    questions: [{id, text, options, at_ms, dispatch}] (open ones of this worker; of a Run: of all its workers),
    delivery: {id, messages: [id], lease_until_ms} or null (handed out and not acked), waits_until_ms: of the parked check, or null,
    reader: name of who reads it or null, shut: why nobody does any more, or null}.
    """

    before: int | None = None
    limit: int = 50
    unread: bool = False


class EndWait(MailAsk, frozen=True, kw_only=True, tag="end_wait"):
    """The caller of a parked check has hung up. `wait` is the request of that check. Result: {}."""

    wait: str


class ReadWakes(MailAsk, frozen=True, kw_only=True, tag="wakes"):
    """The account of the wakes of a mailbox, newest first. Result: {rows: [Woken], hour: wakes in the last hour, hour_max, unread}."""

    limit: int = 50


MailVerb = SendMail | CheckMail | AckMail | ReplyMail | AskQuestion | ReadMail | EndWait | ReadWakes


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
    run: str | None = None
    task: str | None = None
    agent: str | None = None
    host: HostId | None = None
    pane: PaneId | None = None


class Placed(MailEvent, frozen=True, kw_only=True, tag="placed"):
    """Where its reader lives, which is where wakes go."""

    host: HostId | None
    pane: PaneId | None
    process: Process | None = None


class Shut(MailEvent, frozen=True, kw_only=True, tag="shut"):
    """Nobody reads it any more: nothing can be sent to it. What is in it stays."""

    why: str


class Purged(MailEvent, frozen=True, kw_only=True, tag="purged"):
    """Its Run is purged: nothing of it is kept."""


class Joined(MailEvent, frozen=True, kw_only=True, tag="joined"):
    """A Dispatch of this Run can be reached by its groups."""

    dispatch: str
    agent: str


class Left(MailEvent, frozen=True, kw_only=True, tag="left"):
    """It cannot any more."""

    dispatch: str


class Spread(MailEvent, frozen=True, kw_only=True, tag="spread"):
    """A message went to a group: to exactly these, so that a repeat reaches the same ones."""

    group: str
    to: tuple[str, ...]


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
    wait: str | None = None  # the parked check that it answered


class LeaseEnded(MailEvent, frozen=True, kw_only=True, tag="lease_ended"):
    """Nobody acked in time: the batch is free again."""

    delivery: str


class Acked(MailEvent, frozen=True, kw_only=True, tag="acked"):
    """It is dealt with. `late`: after its lease, and before its batch was handed out again."""

    delivery: str
    late: bool = False


class Looked(MailEvent, frozen=True, kw_only=True, tag="looked"):
    """Its reader has seen all of it without taking any: nobody need be woken for that."""


class Parked(MailEvent, frozen=True, kw_only=True, tag="parked"):
    """A check of its reader waits for mail, of `types` if it names any, until `until_ms`."""

    wait: str
    until_ms: int
    by: str  # the caller's fingerprint
    types: tuple[MailType, ...] = ()


class WaitEnded(MailEvent, frozen=True, kw_only=True, tag="wait_ended"):
    """It waits no more: its time was up, its caller hung up, or a newer wait of the same caller took its place."""

    wait: str


class Outdated(MailEvent, frozen=True, kw_only=True, tag="outdated"):
    """What was told as ready has been started, or told anew: those messages stay and wake nobody."""


class Asked(MailEvent, frozen=True, kw_only=True, tag="asked"):
    """A worker waits for the answer to a question."""

    question: str
    dispatch: str
    text: str = ""
    options: tuple[str, ...] = ()


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
    proof: str = ""  # why it stands so: what holds it, what shows that it arrived, why nothing can reach
    deadline_ms: int | None = None
    behind: int = 0  # number of the last message that an earlier wake has told of
    through: int = 0  # number of the last message that it speaks for
    turn: int = 0  # the pane's turn when it was offered: a later one is its proof
    since_ms: int = 0  # what must be newer to be its proof
    tries: int = 0  # orders to type given so far: each is a step of its own
    in_a_row: int = 0  # answers of idle hooks without a prompt between them
    claimed: bool = False  # a parked handler has taken it
    tried: tuple[Rung, ...] = ()
    at_ms: int = 0


MailEvents = (
    Opened | Placed | Shut | Purged | Joined | Left | Spread | Fenced | Arrived | Delivered | LeaseEnded | Acked | Looked | Parked
    | WaitEnded | Outdated | Asked | Answered | Woken | Restored
)  # fmt: skip


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
    """hook-ingest asks, inside an idle hook's request: is there anything to say to this session? Answered by IdleAnswer.

    `parked`: not the hook itself asks, but a handler that waits in the background of an idle session.
    """

    host: HostId
    pane: PaneId | None
    agent: str
    session: str
    stop_hook_active: bool
    at_ms: int
    parked: bool = False


class IdleAnswer(Body, frozen=True, kw_only=True):
    """The pointer to give, or nothing."""

    pointer: str | None = None
    wake: str | None = None
