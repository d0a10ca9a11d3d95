"""Every subject: its body, who says it, who hears it, and how long it is kept. No other file spells one."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Generic, TypeVar

from tocsin.contract.ids import token
from tocsin.contract.messages import (
    AttentionRaised,
    Body,
    Dead,
    HookReported,
    PaneSeen,
    PaneStatus,
    PaneTitled,
    WorktreeKnown,
    WorktreesMoved,
    WorktreesSorted,
)

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
    CONSOLE = "console"
    ANY_SERVICE = "any service"
    ANYONE = "anyone"


class Kept(StrEnum):
    """How a message outlives its saying."""

    NOT = "not kept"
    LATEST = "the last one per subject, in memory"
    LOG = "every one, on disk, up to an age and a size"


@dataclass(frozen=True)
class Subject(Generic[B]):
    """A family of subjects: `name` and one token for each of `keys`, which are fields of the body."""

    name: str
    body: type[B]
    keys: tuple[str, ...]
    said_by: tuple[Party, ...]
    heard_by: tuple[Party, ...]
    kept: Kept
    about: str
    age_s_max: int = 0
    bytes_max: int = -1

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
    said_by=(Party.PANE_HOST,), heard_by=(Party.STATUS_STORE,), kept=Kept.LATEST,
    about="Liveness, process, keys and transcript marks of a terminal.",
)  # fmt: skip
PANE_STATUS = Subject(
    "pane.status", PaneStatus, ("host", "pane"),
    said_by=(Party.STATUS_STORE,), heard_by=(Party.SORTER, Party.PANE_HOST, Party.ANYONE), kept=Kept.LATEST,
    about="What is held true of a pane.",
)  # fmt: skip
WORKTREE_KNOWN = Subject(
    "worktree.known", WorktreeKnown, ("host", "worktree"),
    said_by=(Party.PANE_HOST,), heard_by=(Party.SORTER,), kept=Kept.LATEST,
    about="A checkout or folder on a host, or its removal.",
)  # fmt: skip
WORKTREE_SORTED = Subject(
    "worktree.sorted", WorktreesSorted, ("workspace",),
    said_by=(Party.SORTER,), heard_by=(Party.CONSOLE, Party.ANYONE), kept=Kept.LATEST,
    about="The ranked list: which worktree needs a person, and why.",
)  # fmt: skip
WORKTREE_MOVED = Subject(
    "worktree.moved", WorktreesMoved, ("workspace",),
    said_by=(Party.SORTER,), heard_by=(Party.ANYONE,), kept=Kept.NOT,
    about="What differs between two consecutive lists.",
)  # fmt: skip
ATTENTION_RAISED = Subject(
    "attention.raised", AttentionRaised, ("workspace",),
    said_by=(Party.SORTER,), heard_by=(Party.CONSOLE, Party.ANYONE), kept=Kept.NOT,
    about="A worktree has begun to need a person; once per prompt.",
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
            WORKTREE_SORTED,
            WORKTREE_MOVED,
            ATTENTION_RAISED,
            DEAD,
        )
    }
)
