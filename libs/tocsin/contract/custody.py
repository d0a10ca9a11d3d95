"""Custody: who owns each terminal and worktree that we made, and what became of it."""

from enum import StrEnum

from tocsin.contract.ids import HostId, PaneId
from tocsin.contract.messages import Body, Part, Process
from tocsin.contract.parties import Caller
from tocsin.contract.run import OnSettle, Receipt, Restored

ALL = "all"
"""The `custody` of a command that asks about many."""

LIST_MAX = 200
"""Rows of one page of a list."""

TRASH_KEPT_MS = 7 * 24 * 3_600_000
"""How long a removed worktree can be brought back."""


class CustodyState(StrEnum):
    """What is held true of one terminal."""

    EXPECTED = "expected"  # its Dispatch was requested; whether anything was made for it is not known yet
    OWNED = "owned"  # made by us for its Dispatch
    TAKEN_OVER = "taken_over"  # a human key landed in it: nothing closes it any more without that person
    REUSED = "reused"  # a later Dispatch has it
    RETAINED = "retained"
    RELEASING = "releasing"
    RELEASE_PENDING = "release_pending"  # its host is away: retried by itself
    RELEASE_UNKNOWN = "release_unknown"  # it was closed, and its end could not be confirmed
    RELEASED = "released"  # with proof
    EXTERNAL = "external"  # not made by us


class WorktreeState(StrEnum):
    """What became of a worktree that was made for a Dispatch."""

    STANDING = "standing"
    LEAVING = "leaving"  # its host is told to examine it, and to move it to the trash if the rules allow that
    KEPT = "kept"  # for a reason, with the command that resolves it
    TRASHED = "trashed"  # can be brought back until a time
    RETURNING = "returning"
    RESTORED = "restored"
    PURGED = "purged"


# -------------------------------------------------------------- commands


class CustodyAsk(Part, frozen=True, kw_only=True, tag_field="verb"):
    """What is asked of one custody."""


class Retain(CustodyAsk, frozen=True, kw_only=True, tag="retain"):
    """Keep it: why, for whom, until when.

    `gate`: a review Task or gate of the Run, with whose verdict it lets go by itself. `until_ms`: from then on the
    Task's own policy decides again. Result: `custody`, `state`.
    """

    reason: str
    until_ms: int | None = None
    gate: str | None = None


class Release(CustodyAsk, frozen=True, kw_only=True, tag="release"):
    """End its processes with proof, archive its output, and clean up its worktree where the rules allow that.

    Result: `custody`, `state`, `already` (nothing was left to do), `joined` (a release was under way), `next`.
    The end itself is told by `show`. After `release_unknown` a new request tries again.
    """

    reason: str = ""
    worktree: bool = True
    person: bool = False  # the person who has taken it over says so
    again: bool = False  # also when it is released already: something of it was found alive


class UndoRemoval(CustodyAsk, frozen=True, kw_only=True, tag="undo"):
    """Bring a removed worktree back from the trash. Result: `custody`, `worktree`, `path`."""


class ShowCustody(CustodyAsk, frozen=True, kw_only=True, tag="show"):
    """Look at one. Result: `row` (a CustodyRow) and `history` (rows of a Past). Changes nothing and keeps no receipt."""


class ListCustodies(CustodyAsk, frozen=True, kw_only=True, tag="list"):
    """Look at many, those that need a decision first. Put to the custody ALL.

    Result: `rows` (CustodyRows), `total` (how many fit), `obligations` (how many of all that fit are one), `next` (for
    `after`; None: this was the last page). Changes nothing and keeps no receipt.
    """

    run: str | None = None
    host: HostId | None = None
    open_only: bool = False  # without those that are over: released, reused, external
    obligations_only: bool = False
    after: str | None = None
    limit: int = 50


CustodyVerb = Retain | Release | UndoRemoval | ShowCustody | ListCustodies


class CustodyCommand(Body, frozen=True, kw_only=True):
    """A request. `custody` is the id of a Dispatch: there is one custody for each terminal that was made for one."""

    custody: str
    request: str
    caller: Caller
    ask: CustodyVerb
    at_ms: int


class CustodyRow(Part, frozen=True, kw_only=True):
    """A custody as `show` and `list` answer it."""

    custody: str
    run: str
    task: str
    state: CustodyState
    since_ms: int
    why: str
    host: HostId | None = None
    pane: PaneId | None = None
    process: Process | None = None
    path: str | None = None
    branch: str | None = None
    outcome: str | None = None  # None: its Dispatch is not settled
    by: str | None = None  # who decided
    gate: str | None = None
    until_ms: int | None = None
    handed_to: str | None = None
    proof: str = ""
    archive: str | None = None
    worktree: WorktreeState | None = None  # None: none was made for it
    worktree_why: str = ""
    worktree_until_ms: int | None = None
    trash: str | None = None
    obligation: str | None = None  # why it still needs a disposition; None: it has one, or needs none yet
    next: tuple[str, ...] = ()


class Past(Part, frozen=True, kw_only=True):
    """One decision about a custody, with its reason."""

    at_ms: int
    what: str
    why: str
    by: str


# ---------------------------------------------------------------- events


class CustodyEvent(Part, frozen=True, kw_only=True, tag_field="kind"):
    """Something that is true of a custody from here on."""


class Expected(CustodyEvent, frozen=True, kw_only=True, tag="expected"):
    """A Dispatch was requested: a terminal may be made for it. `path`: where it is to work, as far as that was said."""

    run: str
    task: str
    fence: int
    host: HostId
    path: str | None = None


class WorktreeReady(CustodyEvent, frozen=True, kw_only=True, tag="worktree_ready"):
    """Its place to work is there. `made`: by us, for it."""

    host: HostId
    path: str
    made: bool
    branch: str | None = None


class TerminalMade(CustodyEvent, frozen=True, kw_only=True, tag="terminal_made"):
    """A terminal exists, before any agent boots in it. `reused_from`: made for that earlier Dispatch, and handed on."""

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
    fence: int = 0
    at_ms: int = 0  # on the clock of its host
    reused_from: str | None = None


class Settled(CustodyEvent, frozen=True, kw_only=True, tag="settled"):
    """Its Dispatch has its outcome: from here on it needs a disposition."""

    outcome: str
    review_open: bool = False
    gate: str | None = None  # what holds it while that is open: a review Task, a gate, the acceptance, or the fix round that is due
    on_settle: OnSettle | None = None


class MovedTo(CustodyEvent, frozen=True, kw_only=True, tag="moved"):
    """Its state. `proof` tells what shows it; `next` is the command that resolves what is open.

    `attempt` grows with each release that is tried. `person`: the person to whom it belongs has asked for it.
    """

    to: CustodyState
    why: str
    by: Caller | None = None
    until_ms: int | None = None
    gate: str | None = None
    dispatch: str | None = None
    proof: str = ""
    next: tuple[str, ...] = ()
    attempt: int | None = None
    person: bool = False
    worktree: bool = False  # remove it too, once the release is confirmed
    proof_ms: int | None = None  # when the proof was seen, on the clock of its host


class WorktreeDecided(CustodyEvent, frozen=True, kw_only=True, tag="worktree"):
    """What becomes of its worktree, and why; `next` is the command that resolves what is open."""

    what: WorktreeState
    why: str
    by: Caller | None = None
    trash: str | None = None
    until_ms: int | None = None
    next: tuple[str, ...] = ()
    attempt: int | None = None
    code: str | None = None  # why it was kept, as its host or we call it


class Archived(CustodyEvent, frozen=True, kw_only=True, tag="archived"):
    """The tail of its output is kept."""

    file: str
    bytes: int


class Forgotten(CustodyEvent, frozen=True, kw_only=True, tag="forgotten"):
    """Its Run was purged, and nothing of it is ours any more."""


CustodyEvents = Expected | WorktreeReady | TerminalMade | Settled | MovedTo | WorktreeDecided | Archived | Forgotten | Restored


class CustodyRecorded(Body, frozen=True, kw_only=True):
    """One accepted command of a custody: its events, all or nothing, and its receipt."""

    custody: str
    request: str
    caller: Caller
    payload_hash: str
    events: tuple[CustodyEvents, ...]
    receipt: Receipt
    at_ms: int
