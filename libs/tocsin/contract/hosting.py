"""What a host is told to do with its hands, and what it then observed. Idempotent by (dispatch, fence, step)."""

from enum import StrEnum

from tocsin.contract.ids import HostId, PaneId
from tocsin.contract.messages import Body, Part, Process
from tocsin.contract.run import Launch


class HostOrder(Part, frozen=True, kw_only=True, tag_field="order"):
    """One thing to do."""


class StartAgent(HostOrder, frozen=True, kw_only=True, tag="start"):
    """Make or check the worktree, run its setup, make a terminal, start the agent with its brief. Nothing half-made stays behind."""

    run: str
    task: str
    launch: Launch
    brief: str


class StopAgent(HostOrder, frozen=True, kw_only=True, tag="stop"):
    """End exactly the recorded process tree, and prove it."""

    pane: PaneId | None = None
    process: Process | None = None


class InterruptAgent(HostOrder, frozen=True, kw_only=True, tag="interrupt"):
    """The agent's own way to cancel a turn."""

    pane: PaneId


class TypePointer(HostOrder, frozen=True, kw_only=True, tag="type"):
    """Type a line into a pane under the composer guard: text, re-check, one Enter, never a second."""

    pane: PaneId
    process: Process | None
    text: str
    wake: str | None = None
    idle_s_min: float = 5.0


class ReleaseTerminal(HostOrder, frozen=True, kw_only=True, tag="release"):
    """Archive the output, end the tree, close the terminal, confirm."""

    pane: PaneId
    process: Process | None
    keep_terminal: bool = False


class RemoveWorktree(HostOrder, frozen=True, kw_only=True, tag="remove_worktree"):
    """Move a clean, merged, unused worktree that we made to the trash; keep it with the reason otherwise. Unknown counts as dirty."""

    path: str
    branch: str | None = None


class RestoreWorktree(HostOrder, frozen=True, kw_only=True, tag="restore_worktree"):
    """Bring it back from the trash."""

    path: str
    trash: str


HostOrders = StartAgent | StopAgent | InterruptAgent | TypePointer | ReleaseTerminal | RemoveWorktree | RestoreWorktree


class HostCommand(Body, frozen=True, kw_only=True):
    """An order to one host. The same (dispatch, fence, step) is done once; a repeat answers with what was observed then."""

    host: HostId
    dispatch: str
    fence: int
    step: str
    order: HostOrders
    at_ms: int
    expires_ms: int | None = None


class Saw(StrEnum):
    """What the hands observed."""

    WORKTREE_READY = "worktree_ready"  # path, made
    SETUP_RUNNING = "setup_running"
    SETUP_ENDED = "setup_ended"
    TERMINAL_MADE = "terminal_made"  # pane, process of the runner
    AGENT_STARTED = "agent_started"  # process of the agent
    PROMPT_WRITTEN = "prompt_written"  # reused pane: text and its one Enter were written
    PROMPT_LEFT = "prompt_left"  # reused pane: text was written, its Enter was not; detail tells what is in the composer
    REFUSED = "refused"  # code; nothing half-made is left
    EXITED = "exited"  # the agent's process has ended: exit code and output tail in detail
    HUMAN_KEY = "human_key"  # a person's key landed in a pane that we made
    TREE_ENDED = "tree_ended"  # proof: what was ended, how many, all confirmed gone
    ALREADY_ENDED = "already_ended"
    NOT_CONFIRMED = "not_confirmed"
    TERMINAL_CLOSED = "terminal_closed"
    ARCHIVED = "archived"  # detail: file
    TYPED = "typed"  # the pointer and its Enter were written
    INTERRUPTED = "interrupted"  # the agent's own cancel key, or a signal where there is no terminal, was sent once
    TYPE_HELD = "type_held"  # a draft, a dialog, a recent key: code says which
    WORKTREE_TRASHED = "worktree_trashed"  # detail: trash path
    WORKTREE_KEPT = "worktree_kept"  # code and detail: why; next: what resolves it
    WORKTREE_RESTORED = "worktree_restored"
    WORKTREE_PURGED = "worktree_purged"  # its time in the trash is over: it cannot come back
    FOUND = "found"  # after a restart of the host: a terminal that we made lives
    LOST = "lost"  # after a restart: a terminal that we made is proven gone
    EXPIRED = "expired"  # the order was too old when it was read
    UNKNOWN_STEP = "unknown_step"  # killed in the middle: whether the step took effect cannot be told


class HostFact(Body, frozen=True, kw_only=True):
    """What a host observed of one attempt."""

    host: HostId
    dispatch: str
    fence: int
    step: str
    saw: Saw
    at_ms: int
    run: str | None = None
    task: str | None = None
    code: str | None = None
    detail: str = ""
    pane: PaneId | None = None
    process: Process | None = None
    path: str | None = None
    made: bool = False
    branch: str | None = None
    exit_code: int | None = None
    count: int = 0
    wake: str | None = None
    next: tuple[str, ...] = ()
