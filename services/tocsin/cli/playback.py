"""A recording played through the services' own cores, in virtual time, with no server."""

from collections.abc import Iterator
from dataclasses import dataclass

from tocsin.contract.ids import DEFAULT_WORKSPACE, HostId, PaneId, WorktreeId
from tocsin.contract.messages import (
    AttentionClass,
    AttentionRaised,
    Body,
    Evidence,
    HookReported,
    PaneRow,
    PaneSeen,
    PaneStatus,
    PaneTitled,
    Row,
    State,
    WorktreeKnown,
)
from tocsin.sorter.core.board import Board as ListBoard
from tocsin.status_store.core.board import Board as PaneBoard
from tocsin.status_store.core.pane import Moment, status

CLASS_OF = {
    State.BLOCKED: AttentionClass.NEEDS_YOU,
    State.WAITING: AttentionClass.NEEDS_YOU,
    State.DONE: AttentionClass.DONE,
    State.WORKING: AttentionClass.WORKING,
}


@dataclass(frozen=True)
class Shown:
    """What a person is shown of one pane."""

    pane: PaneId
    state: State
    attention_class: int
    interrupted: bool
    evidence: Evidence
    cause: str


@dataclass(frozen=True)
class Change:
    """A pane is shown otherwise since `at_ms`."""

    at_ms: int
    shown: Shown


def shown_of(row: PaneRow) -> Shown:
    """A pane of a list as a line of a replay."""
    counts = row.evidence is not Evidence.STALE and not row.interrupted
    attention_class = CLASS_OF.get(row.state, AttentionClass.IDLE) if counts else AttentionClass.IDLE
    return Shown(row.id, row.state, attention_class, row.interrupted, row.evidence, row.reason)


class Playback:
    """Both boards under one virtual clock, on which no machine sleeps. Hand in what was recorded, oldest first."""

    def __init__(self, start_ms: int) -> None:
        self.now_ms = start_ms
        self.changes: list[Change] = []
        self.raised: list[AttentionRaised] = []
        self.seq = 0
        self._start()

    def _start(self) -> None:
        self.panes = PaneBoard()
        self.list = ListBoard(DEFAULT_WORKSPACE, self.now_ms)
        self._shown: dict[tuple[HostId, PaneId], Shown] = {}

    def restart(self, gap: bool) -> None:
        """Start all services again. `gap`: for so long that events may have been lost, so what was open is a memory."""
        self.panes = PaneBoard(list(self.panes.panes.values()))
        if gap:
            self.panes.restore()
        self.list = ListBoard(DEFAULT_WORKSPACE, self.now_ms)
        for pane in self.panes.panes.values():
            self.list.hear_status(status(pane), self.now_ms, self.now_ms)
        self.panes.take_changes()
        self._show()

    def until(self, at_ms: int) -> None:
        """Let time pass: each limit acts at its own moment."""
        while (due_ms := self._due_ms()) is not None and due_ms <= at_ms:
            self.now_ms = max(self.now_ms, due_ms)
            self.panes.pass_time(self._moment())
            self.list.expire(self.now_ms)
            self._show()
            for pane in self.list.bell.ready(self.now_ms):
                self.raised.append(self.list.ring(pane)[0])
        self.now_ms = max(self.now_ms, at_ms)

    def play(self, body: Body) -> None:
        """Apply one recorded message now."""
        match body:
            case HookReported():
                self.seq += 1
                self.panes.hear(body, self.seq, Moment(at_ms=min(body.at_ms, self.now_ms), awake_ms=min(body.at_ms, self.now_ms)))
            case PaneTitled():
                self.panes.titled(body, self._moment())
            case PaneSeen():
                self.panes.seen(body, self._moment())
            case WorktreeKnown():
                self.list.hear_worktree(body, self.now_ms, self.now_ms)
            case PaneStatus():
                self.list.hear_status(body, self.now_ms, self.now_ms)
        self._show()

    def order(self) -> list[WorktreeId]:
        """Worktrees, the one that most needs a person first."""
        self._show()
        return self.list.order()

    def rows(self) -> list[Row]:
        """The list as it would be published, without ranks."""
        return [self.list.rows[worktree] for worktree in self.order()]

    def shown(self) -> Iterator[Shown]:
        """What is shown of each pane now."""
        yield from self._shown.values()

    def _moment(self) -> Moment:
        return Moment(at_ms=self.now_ms, awake_ms=self.now_ms)

    def _due_ms(self) -> int | None:
        limits = (self.panes.due_ms(), self.list.due(), self.list.bell.due())
        return min((limit for limit in limits if limit is not None), default=None)

    def _show(self) -> None:
        changed, _ = self.panes.take_changes()
        for pane in changed:
            self.list.hear_status(status(pane), self.now_ms, self.now_ms)
        touched, _ = self.list.refresh(self.now_ms, self.now_ms)
        for worktree in touched:
            row = self.list.rows.get(worktree)
            for one in row.panes if row is not None else ():
                self._note(row.host, shown_of(one))  # type: ignore[union-attr]
        for pane in changed:
            if pane.state is State.GONE:
                self._note(pane.host, Shown(pane.pane, State.GONE, AttentionClass.IDLE, False, pane.evidence, pane.cause))

    def _note(self, host: HostId, shown: Shown) -> None:
        if self._shown.get((host, shown.pane)) != shown:
            self._shown[host, shown.pane] = shown
            self.changes.append(Change(self.now_ms, shown))
