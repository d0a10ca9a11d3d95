"""What a person is told of worktrees that need somebody, and the marks that a person gives to worktrees."""

from tocsin.contract.ids import WorkspaceId, WorktreeId
from tocsin.contract.messages import Body, Part


class Snooze(Part, frozen=True, kw_only=True):
    """Not now. It ends at `until_ms` (UTC); None: when the worktree needs somebody anew, by a prompt later than `prompt_ms`."""

    until_ms: int | None = None
    prompt_ms: int = 0  # the latest prompt that stood there when it was snoozed; 0: none


class Mark(Part, frozen=True, kw_only=True):
    """What the person of this instance holds of one worktree. It moves nothing in the list that everybody sees."""

    worktree: WorktreeId
    at_ms: int  # when it was given
    urgent: bool = False
    snooze: Snooze | None = None


class WorktreesMarked(Body, frozen=True, kw_only=True):
    """All marks of one workspace."""

    workspace: WorkspaceId
    at_ms: int
    marks: tuple[Mark, ...] = ()


class NoticeDue(Body, frozen=True, kw_only=True):
    """Something to tell the person now, on a screen. Said once or, after a crash, twice under the same id."""

    workspace: WorkspaceId
    id: str
    at_ms: int
    title: str
    text: str
    urgent: bool = False
    worktrees: tuple[WorktreeId, ...] = ()  # none: a test
    click: str = ""  # the address of the page
