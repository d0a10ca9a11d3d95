"""Custody: who owns each terminal and worktree that we made, and what became of it."""

from enum import StrEnum

from tocsin.contract.ids import HostId, PaneId
from tocsin.contract.messages import Body, Part, Process
from tocsin.contract.parties import Caller
from tocsin.contract.run import OnSettle, Receipt


class CustodyState(StrEnum):
    """What is held true of one terminal."""

    OWNED = "owned"  # made by us for its Dispatch
    TAKEN_OVER = "taken_over"  # a human key landed in it: nothing closes it any more without that person
    REUSED = "reused"  # a later Dispatch has it
    RETAINED = "retained"
    RELEASING = "releasing"
    RELEASE_PENDING = "release_pending"  # its host is away: retried by itself
    RELEASE_UNKNOWN = "release_unknown"  # it was closed, and its end could not be confirmed
    RELEASED = "released"  # with proof
    EXTERNAL = "external"  # not made by us


class CustodyAsk(Part, frozen=True, kw_only=True, tag_field="verb"):
    """What is asked of one custody."""


class Retain(CustodyAsk, frozen=True, kw_only=True, tag="retain"):
    """Keep it: why, for whom, until when."""

    reason: str
    until_ms: int | None = None
    gate: str | None = None


class Release(CustodyAsk, frozen=True, kw_only=True, tag="release"):
    """End its processes with proof, archive its output, and clean up its worktree where the rules allow that."""

    reason: str = ""
    worktree: bool = True
    person: bool = False  # the person who has taken it over says so


class UndoRemoval(CustodyAsk, frozen=True, kw_only=True, tag="undo"):
    """Bring a removed worktree back from the trash."""


CustodyVerb = Retain | Release | UndoRemoval


class CustodyCommand(Body, frozen=True, kw_only=True):
    """A request. `custody` is the id of a Dispatch: there is one custody for each terminal that was made for one."""

    custody: str
    request: str
    caller: Caller
    ask: CustodyVerb
    at_ms: int


class CustodyEvent(Part, frozen=True, kw_only=True, tag_field="kind"):
    """Something that is true of a custody from here on."""


class TerminalMade(CustodyEvent, frozen=True, kw_only=True, tag="terminal_made"):
    """A terminal exists, before any agent boots in it."""

    dispatch: str
    run: str
    task: str
    host: HostId
    pane: PaneId
    process: Process | None
    path: str
    worktree_made: bool
    branch: str | None = None
    on_settle: OnSettle | None = None


class Settled(CustodyEvent, frozen=True, kw_only=True, tag="settled"):
    """Its Dispatch has its outcome: from here on it needs a disposition."""

    outcome: str
    review_open: bool = False


class MovedTo(CustodyEvent, frozen=True, kw_only=True, tag="moved"):
    """Its state. `proof` tells what shows it; `next` is the command that resolves what is open."""

    to: CustodyState
    why: str
    by: Caller | None = None
    until_ms: int | None = None
    gate: str | None = None
    dispatch: str | None = None
    proof: str = ""
    next: tuple[str, ...] = ()


class WorktreeDecided(CustodyEvent, frozen=True, kw_only=True, tag="worktree"):
    """Its worktree was kept (with the reason and the command that would resolve it), trashed, purged or restored."""

    what: str  # kept, trashed, purged, restored
    why: str
    trash: str | None = None
    until_ms: int | None = None
    next: tuple[str, ...] = ()


class Archived(CustodyEvent, frozen=True, kw_only=True, tag="archived"):
    """The tail of its output is kept."""

    file: str
    bytes: int


CustodyEvents = TerminalMade | Settled | MovedTo | WorktreeDecided | Archived


class CustodyRecorded(Body, frozen=True, kw_only=True):
    """One accepted command of a custody: its events, all or nothing, and its receipt."""

    custody: str
    request: str
    caller: Caller
    payload_hash: str
    events: tuple[CustodyEvents, ...]
    receipt: Receipt
    at_ms: int
