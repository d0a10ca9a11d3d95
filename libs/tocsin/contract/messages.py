"""Every message body. Frozen; they grow by adding fields, and readers ignore fields that they do not know.

Times end in `_ms`: UTC milliseconds, stamped by the service that says the message unless a field says otherwise.
"""

from enum import StrEnum
from typing import ClassVar

import msgspec

from tocsin.contract.ids import DEFAULT_WORKSPACE, HostId, PaneId, SourceId, WorkspaceId, WorktreeId


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """What a message carries. `v` is the version of its schema; a reader gives up on one it does not know."""

    VERSION: ClassVar[int] = 1
    v: int = 1


class Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A piece of a body."""


# ---------------------------------------------------------------- hooks


class Kind(StrEnum):
    """What an agent's event means, whatever that agent calls it. `agents/` translates; nobody else reads native names."""

    SESSION_STARTED = "session_started"
    SESSION_ENDED = "session_ended"
    PROMPTED = "prompted"  # a turn starts, or a prompt is queued into a running one
    BUSY = "busy"  # the agent says that its turn runs (opencode's session.status busy)
    TOOL_STARTED = "tool_started"
    TOOL_ENDED = "tool_ended"
    TOOL_FAILED = "tool_failed"
    ASKED = "asked"  # a permission, question, plan or form stands; `ask` says which
    ANSWERED = "answered"  # the agent itself reports the answer
    DENIED = "denied"  # the agent's own classifier refused a call; nobody was asked
    ASK_NOTICED = "ask_noticed"  # a late notice that something stands; opens a prompt only if none does
    TURN_ENDED = "turn_ended"
    TURN_FAILED = "turn_failed"
    TURN_INTERRUPTED = "turn_interrupted"
    IDLE_NOTICED = "idle_noticed"  # "waiting for your input"; on some agents the only sign of a cancel
    CHILD_STARTED = "child_started"
    CHILD_ENDED = "child_ended"
    COMPACTED = "compacted"
    NOTED = "noted"  # a sign of life that changes nothing


class Ask(StrEnum):
    """What a standing prompt wants of the person."""

    PERMISSION = "permission"
    QUESTION = "question"
    PLAN = "plan"
    FORM = "form"


class Origin(StrEnum):
    """Who wrote a prompt."""

    PERSON = "person"
    AGENT = "agent"  # injected: a finished background task, a wake, a continuation
    COMPACTION = "compaction"  # the summary that a compaction leaves behind


class Task(Part, frozen=True, kw_only=True):
    """One piece of background work that an agent lists or launches. `kind`: agent, shell, monitor, timer, or the agent's raw word."""

    id: str
    kind: str
    running: bool = True


class HookReported(Body, frozen=True, kw_only=True):
    """One event of one agent, reduced to what the mapping needs. No free text: prompts and inputs are keyed hashes."""

    id: str  # hash of body and sent time: stops transport retries
    host: HostId
    source: SourceId  # the pane that a trusted environment names, else session_source()
    agent: str
    event: str  # the agent's own name for it, for people and logs
    kind: Kind
    session: str
    at_ms: int  # on our clock: receipt, or for a spooled event receipt minus its age by the sender's clock
    sent_ms: int | None = None  # by the sender's clock; orders the events of one session. None: arrival decides
    spooled: bool = False
    pane: PaneId | None = None  # named by an environment that is to be trusted
    cwd: str | None = None  # real path
    turn: str | None = None
    child: str | None = None  # set: the event is a child's, whatever else it says
    parent: str | None = None  # the session that owns this one (opencode's child sessions)
    call: str | None = None
    tool: str | None = None
    target: str | None = None  # the program of a command or the name of a file
    input_hash: str | None = None
    prompt_hash: str | None = None
    origin: Origin | None = None
    ask: Ask | None = None
    detail: str | None = None  # source, reason, trigger or error kind, as the agent says it
    reviewed: bool = False  # a permission that an automatic reviewer answers
    interrupted: bool = False
    tasks: tuple[Task, ...] | None = None  # background work at a turn's end; None: not said, which is not "none"
    timers: bool = False  # the session will wake itself
    launched: Task | None = None
    stopped: str | None = None  # id of background work that was ended
    attended: bool | None = None  # False: headless, nobody can answer
    pid: int | None = None
    transcript: str | None = None
    excerpt: str | None = None  # only with SHOW_TEXT=prompts


# ---------------------------------------------------------------- what pane-host sees


class Titled(Part, frozen=True, kw_only=True):
    """A title that a pane showed. Numbers grow by one per pane and pane-host life, so a reader knows what it has had."""

    number: int
    text: str
    at_ms: int


class PaneTitled(Body, frozen=True, kw_only=True):
    """The last few titles of a pane, oldest first; the last one stands."""

    host: HostId
    pane: PaneId
    life: str  # of the pane-host that numbers
    titles: tuple[Titled, ...]


class Process(Part, frozen=True, kw_only=True):
    """A process that no other can be mistaken for: pid and start time, on one boot of one host."""

    pid: int
    started_ms: int
    boot: str


class MarkKind(StrEnum):
    """What a line of an agent's transcript says where its hooks are silent."""

    INTERRUPTED = "interrupted"
    AUTO_REVIEWED = "auto_reviewed"  # the turn's permissions are answered by an automatic reviewer


class Mark(Part, frozen=True, kw_only=True):
    """A line found in a transcript; no text is kept."""

    number: int
    kind: MarkKind
    session: str
    at_ms: int
    turn: str | None = None


class PaneSeen(Body, frozen=True, kw_only=True):
    """What the host sees of a pane. Absence of a message proves nothing; `live: false` and `process: null` are proofs."""

    host: HostId
    pane: PaneId
    life: str
    at_ms: int
    workspace: WorkspaceId = DEFAULT_WORKSPACE
    live: bool = True  # False: a complete listing of the same tmux server life lacks the pane
    agent: str | None = None  # which agent runs in it; None: none that is known
    process: Process | None = None
    session: str | None = None  # when the launcher or the process says it
    cwd: str | None = None  # real path of the agent, else of the terminal
    last_key_ms: int | None = None  # a person's last key there, in steps of 1 s; None: cannot be known
    cancel_key: bool | None = None  # it was Esc or Ctrl+C; None: cannot be known
    marks: tuple[Mark, ...] = ()
    locator: str | None = None  # how a terminal is selected: "socket-path %7"


class WorktreeKnown(Body, frozen=True, kw_only=True):
    """A checkout or plain folder on a host, or its removal."""

    host: HostId
    worktree: WorktreeId
    path: str  # real path
    name: str
    at_ms: int
    workspace: WorkspaceId = DEFAULT_WORKSPACE
    branch: str | None = None
    repository: str | None = None  # real path of the main checkout
    active_ms: int = 0  # agent activity and real use, never a look
    created_ms: int | None = None
    dirty: bool | None = None  # None: not a git checkout, or git did not answer
    removed: bool = False


class HostKnown(Body, frozen=True, kw_only=True):
    """A machine that takes part, said again while it does. Its subject is the lease of its name: each is said with the last one's sequence.

    Times of a host are said in the bus' time: `clock_ahead_ms` was taken off them.
    """

    host: HostId
    at_ms: int
    machine: str  # identifies machine and state folder, also over restarts
    boot: str
    label: str  # what the machine calls itself and where its folder is, for people
    version: str
    workspace: WorkspaceId = DEFAULT_WORKSPACE
    clock_ahead_ms: int = 0  # how far its clock is ahead of the bus'; negative: behind
    left: bool = False  # it has stopped in order: the name is free


# ---------------------------------------------------------------- status


class State(StrEnum):
    """What a pane's agent does. A done turn that was interrupted carries `interrupted` beside it."""

    IDLE = "idle"  # present, no turn to speak of
    WORKING = "working"
    BLOCKED = "blocked"  # a permission dialog stands
    WAITING = "waiting"  # a question, plan or form stands
    DONE = "done"
    GONE = "gone"  # the agent or its terminal has ended


class Evidence(StrEnum):
    """How it is known."""

    OBSERVED = "observed"  # a hook said so
    INFERRED = "inferred"  # a title, key, process or transcript said so
    RESTORED = "restored"  # from before a gap, nothing heard since
    STALE = "stale"  # heard too long ago to count
    UNVERIFIABLE = "unverifiable"  # its host is out of contact: what is shown is the last that was heard
    NO_SIGNAL = "no signal"  # this pane never said anything


class Reading(StrEnum):
    """What a terminal title says. Values are those of facts/titles: only permission and working influence the order."""

    PERMISSION = "permission"
    WORKING = "working"
    IDLE = "idle"
    NONE = "none"


class Past(Part, frozen=True, kw_only=True):
    """A state that a pane has left."""

    state: State
    since_ms: int
    interrupted: bool = False


class TurnSeen(Part, frozen=True, kw_only=True):
    """One turn of a pane. `prompt` is a keyed hash of what was prompted, None when nothing was seen."""

    number: int
    started_ms: int
    ended_ms: int | None = None
    prompt: str | None = None
    interrupted: bool = False


class PromptSeen(Part, frozen=True, kw_only=True):
    """A prompt that stands. Numbers grow by one per pane."""

    number: int
    ask: Ask
    since_ms: int
    tool: str | None = None
    target: str | None = None
    child: str | None = None
    excerpt: str | None = None


class CallNow(Part, frozen=True, kw_only=True):
    """A tool call that has started and not ended. `child`: whose it is, None for the lead's."""

    tool: str | None = None
    target: str | None = None
    child: str | None = None


class TitleNow(Part, frozen=True, kw_only=True):
    """The title that stands, what it says, and when it first said that."""

    text: str
    reading: Reading
    since_ms: int


HISTORY_MAX = 20
"""Past states kept per pane (the seed's AGENT_STATE_HISTORY_MAX)."""

TURNS_MAX = 8
"""Turns kept in a status: enough for a reader that missed a few, small enough to send each time."""


class PaneStatus(Body, frozen=True, kw_only=True):
    """What is held true of a pane. A reader never needs one that it has missed."""

    host: HostId
    pane: PaneId
    workspace: WorkspaceId
    seq: int  # sequence of the last hook event in it
    state: State
    since_ms: int  # when the combined state began (the seed's stateStartedAt)
    updated_ms: int  # when the agent last spoke (the seed's updatedAt)
    evidence: Evidence
    cause: str  # one line: why this state
    interrupted: bool = False
    hooked: bool = False  # its agent has reported by hooks
    live: bool | None = None  # the terminal lives; None: nobody can see it
    agent: str | None = None
    session: str | None = None
    transcript: str | None = None
    cwd: str | None = None
    process: Process | None = None
    title: TitleNow | None = None
    background: tuple[Task, ...] = ()
    prompts: tuple[PromptSeen, ...] = ()
    prompts_opened: int = 0
    prompts_closed: int = 0
    calls: tuple[CallNow, ...] = ()  # in flight, oldest first
    turn: int = 0
    turns: tuple[TurnSeen, ...] = ()
    history: tuple[Past, ...] = ()
    last_key_ms: int | None = None
    last_events: tuple[str, ...] = ()  # native names of the last few events, newest last
    locator: str | None = None
    late: int = 0  # spooled events so far


# ---------------------------------------------------------------- the list


class AttentionClass(msgspec.Struct, frozen=True):
    """Names of the four classes of the order."""

    NEEDS_YOU: ClassVar[int] = 1
    DONE: ClassVar[int] = 2
    WORKING: ClassVar[int] = 3
    IDLE: ClassVar[int] = 4


class PaneRow(Part, frozen=True, kw_only=True):
    """A pane as its worktree's row shows it."""

    id: PaneId
    agent: str | None
    state: State
    evidence: Evidence
    since_ms: int
    reason: str
    interrupted: bool = False
    session: str | None = None
    title: str | None = None
    background: int = 0
    locator: str | None = None
    prompt_ms: int = 0  # when the latest prompt began that stands there, once the bell has rung for it; 0: there is none


class Row(Part, frozen=True, kw_only=True):
    """One worktree of the list."""

    rank: int
    id: WorktreeId
    name: str
    path: str
    host: HostId
    attention_class: int = msgspec.field(name="class")
    attention_at: int  # UTC ms; 0 in class 4
    evidence: Evidence
    reason: str
    panes: tuple[PaneRow, ...] = msgspec.field(default=())
    branch: str | None = None
    dirty: bool | None = None
    active_at: int = 0
    rang: bool = False  # attention was raised for what stands now


class WorktreesSorted(Body, frozen=True, kw_only=True):
    """The ranked list of one workspace. `version` grows with each list of one `birth`."""

    workspace: WorkspaceId
    birth: str
    version: int
    at_ms: int
    worktrees: tuple[Row, ...]
    restored: bool = False  # an old list served unchanged until all last values are read


class WorktreesMoved(Body, frozen=True, kw_only=True):
    """What differs between two consecutive lists: apply to version - 1. Rows carry their new rank."""

    workspace: WorkspaceId
    birth: str
    version: int
    at_ms: int
    changed: tuple[Row, ...] = ()
    removed: tuple[WorktreeId, ...] = ()


class AttentionCause(StrEnum):
    """What lifted a worktree into class 1."""

    BLOCKED = "blocked"
    WAITING = "waiting"
    TITLE = "title"


class AttentionRaised(Body, frozen=True, kw_only=True):
    """A worktree has needed a person for longer than the dwell. Said once per prompt."""

    workspace: WorkspaceId
    worktree: WorktreeId
    name: str
    host: HostId
    pane: PaneId
    cause: AttentionCause
    since_ms: int
    reason: str


# ---------------------------------------------------------------- poison


class Dead(Body, frozen=True, kw_only=True):
    """A message that no retry can help, with the reason; kept for a person to look at."""

    service: str
    subject: str
    reason: str
    at_ms: int
    body: bytes = b""
