"""Every subject: its body, who says it, who hears it, and how long it is kept. No other file spells one."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Generic, TypeVar

from tocsin.contract.custody import CustodyCommand, CustodyRecorded
from tocsin.contract.hosting import HostCommand, HostFact
from tocsin.contract.ids import token
from tocsin.contract.mail import IdleAnswer, IdleQuestion, MailCommand, MailRecorded, WakeDue
from tocsin.contract.messages import (
    AttentionRaised,
    Body,
    Dead,
    HookReported,
    HostKnown,
    PaneSeen,
    PaneStatus,
    PaneTitled,
    WorktreeKnown,
    WorktreesMoved,
    WorktreesSorted,
)
from tocsin.contract.notices import NoticeDue, WorktreesMarked
from tocsin.contract.run import Receipt, RunCommand, RunRecorded
from tocsin.contract.telemetry import TelemetryCounted

B = TypeVar("B", bound=Body)

MINUTE_S = 60
HOUR_S = 60 * MINUTE_S
DAY_S = 24 * HOUR_S
MIB = 1024 * 1024


class Party(StrEnum):
    """Who speaks and who listens. `ANYONE`: any tool with the reader's credential."""

    HOOK_INGEST = "hook-ingest"
    STATUS_STORE = "status-store"
    SORTER = "sorter"
    PANE_HOST = "pane-host"
    DISPATCHER = "dispatcher"
    MAILBOX = "mailbox"
    ACCOUNTANT = "release-accountant"
    CONSOLE = "console"
    COMMAND = "the command tocsin"
    ANY_SERVICE = "any service"
    ANYONE = "anyone"


class Kept(StrEnum):
    """How a message outlives its saying."""

    NOT = "not kept"
    LATEST = "the last one per subject, in memory"
    LOG = "every one, on disk, up to an age and a size"
    LEDGER = "every one, on disk, until purged by id; when full, new ones are refused"
    QUEUE = "on disk until it is done, up to an age"


@dataclass(frozen=True)
class Subject(Generic[B]):
    """A family of subjects: `name` and one token for each of `keys`, which are fields of the body.

    `answer`: what is answered to it, for requests. A refused request is answered with `Refused` in its place.
    """

    name: str
    body: type[B]
    keys: tuple[str, ...]
    said_by: tuple[Party, ...]
    heard_by: tuple[Party, ...]
    kept: Kept
    about: str
    age_s_max: int = 0
    bytes_max: int = -1
    answer: type[Body] | None = None

    def of(self, body: B) -> str:
        """The subject that `body` belongs on. Raises BadName when a key cannot become a token."""
        return ".".join([self.name, *(token(getattr(body, key)) for key in self.keys)])

    def at(self, *values: str) -> str:
        """The subject at the first keys' `values`; all below them when some keys are left open."""
        tail = [">"] if len(values) < len(self.keys) else []
        return ".".join([self.name, *map(token, values), *tail])

    @property
    def all(self) -> str:
        """The pattern that matches every subject of the family."""
        return f"{self.name}.>"

    @property
    def stream(self) -> str:
        """The stream that keeps it."""
        return self.name.upper().replace(".", "_")


HOOK_REPORTED = Subject(
    "hook.reported", HookReported, ("host", "source"),
    said_by=(Party.HOOK_INGEST,), heard_by=(Party.STATUS_STORE,),
    kept=Kept.LOG, age_s_max=DAY_S, bytes_max=512 * MIB,
    about="One event of one agent, as its hook reported it.",
)  # fmt: skip
PANE_TITLED = Subject(
    "pane.titled", PaneTitled, ("host", "pane"),
    said_by=(Party.PANE_HOST,), heard_by=(Party.STATUS_STORE,), kept=Kept.LATEST,
    about="The last few titles of a terminal.",
)  # fmt: skip
PANE_SEEN = Subject(
    "pane.seen", PaneSeen, ("host", "pane"),
    said_by=(Party.PANE_HOST,), heard_by=(Party.STATUS_STORE, Party.DISPATCHER), kept=Kept.LATEST,
    about="Liveness, process, keys and transcript marks of a terminal.",
)  # fmt: skip
PANE_STATUS = Subject(
    "pane.status", PaneStatus, ("host", "pane"),
    said_by=(Party.STATUS_STORE,), heard_by=(Party.SORTER, Party.PANE_HOST, Party.DISPATCHER, Party.MAILBOX, Party.ANYONE), kept=Kept.LATEST,
    about="What is held true of a pane.",
)  # fmt: skip
WORKTREE_KNOWN = Subject(
    "worktree.known", WorktreeKnown, ("host", "worktree"),
    said_by=(Party.PANE_HOST,), heard_by=(Party.SORTER,), kept=Kept.LATEST,
    about="A checkout or folder on a host, or its removal.",
)  # fmt: skip
HOST_KNOWN = Subject(
    "host.known", HostKnown, ("host",),
    said_by=(Party.PANE_HOST,), heard_by=(Party.PANE_HOST, Party.SORTER, Party.DISPATCHER, Party.COMMAND), kept=Kept.LATEST,
    about="A machine that takes part: said every 10 s, and the lease of its name.",
)  # fmt: skip
WORKTREE_SORTED = Subject(
    "worktree.sorted", WorktreesSorted, ("workspace",),
    said_by=(Party.SORTER,), heard_by=(Party.CONSOLE, Party.PANE_HOST, Party.ANYONE), kept=Kept.LATEST,
    about="The ranked list: which worktree needs a person, and why.",
)  # fmt: skip
WORKTREE_MOVED = Subject(
    "worktree.moved", WorktreesMoved, ("workspace",),
    said_by=(Party.SORTER,), heard_by=(Party.PANE_HOST, Party.ANYONE), kept=Kept.NOT,
    about="What differs between two consecutive lists.",
)  # fmt: skip
ATTENTION_RAISED = Subject(
    "attention.raised", AttentionRaised, ("workspace",),
    said_by=(Party.SORTER,), heard_by=(Party.CONSOLE, Party.ANYONE), kept=Kept.NOT,
    about="A worktree has begun to need a person; once per prompt.",
)  # fmt: skip
TELEMETRY_COUNTED = Subject(
    "telemetry.counted", TelemetryCounted, ("workspace",),
    said_by=(Party.CONSOLE,), heard_by=(Party.ANYONE,), kept=Kept.NOT,
    about="How full the classes of the list are, what moves into the first, and who leaves its order. No ids or paths.",
)  # fmt: skip
WORKTREE_MARKED = Subject(
    "worktree.marked", WorktreesMarked, ("workspace",),
    said_by=(Party.CONSOLE,), heard_by=(Party.CONSOLE, Party.ANYONE), kept=Kept.LATEST,
    about="What the person marked as urgent or snoozed; it moves nothing in the list.",
)  # fmt: skip
NOTICE_DUE = Subject(
    "notice.due", NoticeDue, ("workspace",),
    said_by=(Party.CONSOLE,), heard_by=(Party.CONSOLE, Party.PANE_HOST, Party.ANYONE), kept=Kept.NOT,
    about="Something to show to the person now; once for each prompt.",
)  # fmt: skip
RUN_CMD = Subject(
    "run.cmd", RunCommand, ("run",),
    said_by=(Party.COMMAND, Party.PANE_HOST, Party.CONSOLE), heard_by=(Party.DISPATCHER,), kept=Kept.NOT, answer=Receipt,
    about="A request to a Run: answered with a receipt, or refused.",
)  # fmt: skip
RUN_EVENT = Subject(
    "run.event", RunRecorded, ("run",),
    said_by=(Party.DISPATCHER,), heard_by=(Party.DISPATCHER, Party.MAILBOX, Party.ACCOUNTANT, Party.CONSOLE, Party.COMMAND),
    kept=Kept.LEDGER, bytes_max=2048 * MIB,
    about="One accepted command of a Run and what it made true: the truth about Runs.",
)  # fmt: skip
MAIL_CMD = Subject(
    "mail.cmd", MailCommand, ("mailbox",),
    said_by=(Party.COMMAND, Party.PANE_HOST, Party.CONSOLE), heard_by=(Party.MAILBOX,), kept=Kept.NOT, answer=Receipt,
    about="A request to a mailbox: answered with a receipt, or refused.",
)  # fmt: skip
MAIL_EVENT = Subject(
    "mail.event", MailRecorded, ("mailbox",),
    said_by=(Party.MAILBOX,), heard_by=(Party.MAILBOX, Party.CONSOLE, Party.COMMAND), kept=Kept.LEDGER, bytes_max=2048 * MIB,
    about="One accepted command of a mailbox and what it made true.",
)  # fmt: skip
MAIL_IDLE = Subject(
    "mail.idle", IdleQuestion, ("host",),
    said_by=(Party.HOOK_INGEST,), heard_by=(Party.MAILBOX,), kept=Kept.NOT, answer=IdleAnswer,
    about="An agent's turn is ending: is there anything to say to it? Answered at once or not at all.",
)  # fmt: skip
WAKE_DUE = Subject(
    "wake.due", WakeDue, ("host", "pane"),
    said_by=(Party.MAILBOX,), heard_by=(Party.HOOK_INGEST, Party.PANE_HOST), kept=Kept.NOT,
    about="A hint that a parked wait should look at its mail.",
)  # fmt: skip
CUSTODY_CMD = Subject(
    "custody.cmd", CustodyCommand, ("custody",),
    said_by=(Party.COMMAND, Party.CONSOLE), heard_by=(Party.ACCOUNTANT,), kept=Kept.NOT, answer=Receipt,
    about="A request to a custody: answered with a receipt, or refused.",
)  # fmt: skip
CUSTODY_EVENT = Subject(
    "custody.event", CustodyRecorded, ("custody",),
    said_by=(Party.ACCOUNTANT,), heard_by=(Party.ACCOUNTANT, Party.DISPATCHER, Party.CONSOLE, Party.COMMAND), kept=Kept.LEDGER, bytes_max=2048 * MIB,
    about="One accepted command of a custody and what it made true.",
)  # fmt: skip
HOST_CMD = Subject(
    "host.cmd", HostCommand, ("host",),
    said_by=(Party.DISPATCHER, Party.MAILBOX, Party.ACCOUNTANT), heard_by=(Party.PANE_HOST,), kept=Kept.QUEUE, age_s_max=7 * DAY_S, bytes_max=256 * MIB,
    about="An order to the hands of one machine, done once per (dispatch, fence, step).",
)  # fmt: skip
HOST_FACT = Subject(
    "host.fact", HostFact, ("host",),
    said_by=(Party.PANE_HOST,), heard_by=(Party.DISPATCHER, Party.MAILBOX, Party.ACCOUNTANT), kept=Kept.LOG, age_s_max=7 * DAY_S, bytes_max=512 * MIB,
    about="What the hands of one machine observed of an attempt.",
)  # fmt: skip
DEAD = Subject(
    "dead", Dead, ("service",),
    said_by=(Party.ANY_SERVICE,), heard_by=(Party.ANYONE,),
    kept=Kept.LOG, age_s_max=7 * DAY_S, bytes_max=64 * MIB,
    about="Poison: a message that cannot be handled, with the reason.",
)  # fmt: skip

SUBJECTS: Mapping[str, Subject[Body]] = MappingProxyType(
    {
        subject.name: subject  # type: ignore[misc]
        for subject in (
            HOOK_REPORTED,
            PANE_TITLED,
            PANE_SEEN,
            PANE_STATUS,
            WORKTREE_KNOWN,
            HOST_KNOWN,
            WORKTREE_SORTED,
            WORKTREE_MOVED,
            ATTENTION_RAISED,
            TELEMETRY_COUNTED,
            WORKTREE_MARKED,
            NOTICE_DUE,
            RUN_CMD,
            RUN_EVENT,
            MAIL_CMD,
            MAIL_EVENT,
            MAIL_IDLE,
            WAKE_DUE,
            CUSTODY_CMD,
            CUSTODY_EVENT,
            HOST_CMD,
            HOST_FACT,
            DEAD,
        )
    }
)
