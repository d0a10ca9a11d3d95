"""All that the sorter knows: statuses and worktrees as they were heard, in their order, as the rows of a list.

The loop hands in both times of every message: `now_ms` (UTC) and `awake_ms`, on which limits count, so that sleep is not
silence and a step of the wall clock moves nothing.
"""

import math
from operator import attrgetter
from typing import NamedTuple, cast

import msgspec

from tocsin.contract.ids import HostId, PaneId, WorkspaceId, WorktreeId, worktree_id
from tocsin.contract.messages import (
    AttentionCause,
    AttentionClass,
    AttentionRaised,
    Evidence,
    HostKnown,
    PaneRow,
    PaneStatus,
    Reading,
    Row,
    State,
    WorktreeKnown,
    WorktreesSorted,
)
from tocsin.sorter.core.attention import STALE_AFTER_MS, Attention, Hook, Pane, prior_attention
from tocsin.sorter.core.bell import DWELL_MS, Bell
from tocsin.sorter.core.contact import Contact
from tocsin.sorter.core.places import Places
from tocsin.sorter.core.ranking import CREATE_GRACE_MS, Index, Worktree
from tocsin.sorter.core.reasons import cut_off, explain, topic
from tocsin.sorter.core.title import Title

NO_FOLDER = "unknown folder"
"""Name of the row that holds the panes of a host of which no folder is known."""


def pane_key(host: HostId, pane: PaneId) -> str:
    """One name for a pane among those of all hosts."""
    return f"{host}\x1f{pane}"


def until(limit_ms: int, began_ms: int, now_ms: int, awake_ms: int) -> int:
    """When a limit that began at `began_ms` (UTC) ends, on the awake clock. Nothing is of a negative age."""
    return awake_ms + limit_ms - max(0, now_ms - began_ms)


class _Shown(NamedTuple):
    """A pane's part of its row, and what it was made from: as long as that is the same, so is the part."""

    status: PaneStatus
    is_fresh: bool
    asked: Attention
    place: tuple[int, float, int, str]  # among the panes of its worktree; the last is `key`
    key: str  # the pane's
    row: PaneRow


_place_of = attrgetter("place")


class Board:
    """What is known of one workspace. `rows` are kept by id and without their rank; `refresh` says which of them differ."""

    def __init__(self, workspace: WorkspaceId, awake_ms: int, dwell_ms: int = DWELL_MS) -> None:
        self.bell = Bell(dwell_ms)
        self.rows: dict[WorktreeId, Row] = {}
        self._workspace = workspace
        self._index = Index(awake_ms)
        self._places = Places()
        self._contact = Contact()
        self._known: dict[WorktreeId, WorktreeKnown] = {}
        self._made: dict[WorktreeId, tuple[HostId, str]] = {}  # worktrees that nobody named, until somebody does
        self._statuses: dict[str, PaneStatus] = {}
        self._fresh_until: dict[str, int] = {}
        self._homes: dict[str, WorktreeId] = {}
        self._shown: dict[str, _Shown] = {}

    # ------------------------------------------------------------ hearing

    def hear_status(self, status: PaneStatus, now_ms: int, awake_ms: int) -> int | None:
        """A pane's status, new or again. Returns when the hook came that is new in it (UTC ms); None when none is, or it was spooled."""
        key = pane_key(status.host, status.pane)
        before = self._statuses.get(key)
        if status.workspace != self._workspace:
            if before is not None:
                self._drop(key)
            return None
        is_news = before is None or before.updated_ms != status.updated_ms
        if is_news:
            self._fresh_until[key] = until(STALE_AFTER_MS, status.updated_ms, now_ms, awake_ms)
        self._statuses[key] = status
        if before is None or before.cwd != status.cwd:
            if before is not None:
                self._places.leave(key, before.host, before.cwd or "")
            self._places.stay(key, status.host, status.cwd or "")
            self._place(key)
        elif (home := self._homes.get(key)) in self._known:
            # It is where it was: when worktrees come and go, the panes below them are placed anew then.
            self._move(key, home, self._pane(key, status))
        else:
            self._place(key)
        is_spooled = status.late != (before.late if before is not None else 0)
        return status.updated_ms if is_news and status.hooked and not is_spooled else None

    def hear_worktree(self, known: WorktreeKnown, now_ms: int, awake_ms: int) -> None:
        """A worktree, new or again, or its removal."""
        before = self._known.get(known.worktree)
        gone = known.removed or known.workspace != self._workspace
        if before is None and gone:
            return
        if before is not None and (gone or before.path != known.path or before.host != known.host):
            self._places.forget(before.host, before.path, known.worktree)
            self._unknow(before)
            if gone:
                return
            before = None
        self._known[known.worktree] = known
        self._made.pop(known.worktree, None)
        self._index.put_worktree(
            Worktree(
                id=known.worktree,
                name=known.name,
                activity_ms=known.active_ms,
                created_ms=known.created_ms,
                grace_until=self._grace_until(known, before, now_ms, awake_ms),
            )
        )
        self._index.changed.add(known.worktree)
        if before is None:
            self._places.know(known.host, known.path, known.worktree)
            for key in self._places.below(known.host, known.path):
                self._place(key)

    def hear_host(self, known: HostKnown, now_ms: int, awake_ms: int) -> None:
        """A host's word that it is there."""
        if self._contact.hear(known, now_ms, awake_ms):
            self._show_again(known.host)

    def expire(self, awake_ms: int) -> None:
        """It is `awake_ms`: what has become too old to count counts no longer."""
        self._index.expire(awake_ms)
        for host in self._contact.expire(awake_ms):
            self._show_again(host)

    # ------------------------------------------------------------- asking

    def due(self) -> int | None:
        """The next moment (awake ms) at which something changes by itself, the bell apart."""
        at = min((at for at in (self._index.due(), self._contact.due()) if at is not None), default=None)
        return None if at is None else int(at)

    def order(self) -> list[WorktreeId]:
        """Ids, the worktree that most needs a person first."""
        return cast("list[WorktreeId]", self._index.order())

    def refresh(self, now_ms: int, awake_ms: int) -> tuple[set[WorktreeId], bool]:
        """Bring `rows` and the bell up to date; returns the ids of rows that changed, and whether any passed another."""
        found, moved = self._index.take_changes()
        changed = cast("set[WorktreeId]", found)
        index, statuses, kept_parts, limits_ms = self._index, self._statuses, self._shown, self._index.now
        for worktree in changed:
            if worktree not in index:
                self.rows.pop(worktree, None)
                continue
            asks = index.asks(worktree)
            shown = []
            for pane in index.panes(worktree):
                key, hook = pane.id, pane.hook
                status, asked, kept = statuses[key], asks[key], kept_parts.get(key)
                fresh = hook is not None and limits_ms <= hook.fresh_until
                if kept is None or kept.status is not status or kept.asked is not asked or kept.is_fresh is not fresh:
                    kept = kept_parts[key] = self._show(pane, asked, fresh, now_ms, awake_ms)
                shown.append(kept)
            self.rows[worktree] = self._row(worktree, shown)
        return changed, moved

    def touch(self, pane: str) -> None:
        """The bell has rung for this pane, or has not after all: its row says so."""
        if pane in self._homes:
            self._index.changed.add(self._homes[pane])

    def ring(self, pane: str) -> tuple[AttentionRaised, int]:
        """The bell rings for a pane that was ready: what it says, and what `Bell.take_back` needs."""
        status, home = self._statuses[pane], self._homes[pane]
        fresh = status.hooked and self._index.now <= self._fresh_until[pane]
        _, _, reason, since_ms = explain(status, fresh, True)
        said = AttentionRaised(
            workspace=self._workspace,
            worktree=home,
            name=self._index.worktree(home).name,
            host=status.host,
            pane=status.pane,
            cause=AttentionCause(status.state.value) if fresh else AttentionCause.TITLE,
            since_ms=since_ms,
            reason=reason,
        )
        before = self.bell.ring(pane)
        self.touch(pane)
        return said, before

    def remember_rings(self, published: WorktreesSorted, now_ms: int, awake_ms: int) -> None:
        """Whoever published this list has rung for the prompts that it names."""
        for row in published.worktrees:
            for pane in row.panes:
                if pane.prompt_ms:
                    key = pane_key(row.host, pane.id)
                    self.bell.remember(key, pane.prompt_ms, now_ms, awake_ms)
                    self.touch(key)

    # ------------------------------------------------------------ placing

    def _grace_until(self, known: WorktreeKnown, before: WorktreeKnown | None, now_ms: int, awake_ms: int) -> float:
        if known.created_ms is None:
            return -math.inf
        if before is not None and before.created_ms == known.created_ms:
            return self._index.worktree(known.worktree).grace_until
        return until(CREATE_GRACE_MS, known.created_ms, now_ms, awake_ms)

    def _place(self, key: str) -> None:
        """Put a pane where it belongs now."""
        status = self._statuses[key]
        home = self._places.worktree_of(status.host, status.cwd or "")
        pane = self._pane(key, status)
        if home is None:
            if not (_speaks(status) and status.state is not State.GONE):
                # A plain shell somewhere, or an agent that has left: no worktree is made for it.
                self._move(key, None, pane)
                return
            path = status.cwd or ""
            home = worktree_id(status.host, path)
            if home not in self._made:
                self._made[home] = (status.host, path)
                self._index.put_worktree(Worktree(id=home, name=path.rstrip("/").rpartition("/")[2] or path or NO_FOLDER))
        self._move(key, home, pane)

    def _move(self, key: str, home: WorktreeId | None, pane: Pane) -> None:
        before = self._homes.get(key)
        if home is None:
            self._homes.pop(key, None)
            self._index.drop_pane(key)
            self._shown.pop(key, None)
            self.bell.leave(key)
        else:
            self._homes[key] = home
            self._index.put_pane(home, pane)
            # Also what the order does not read is shown in the row.
            self._index.changed.add(home)
        if before is not None and before != home and before in self._made and next(self._index.panes(before), None) is None:
            del self._made[before]
            self._index.remove(before)

    def _show_again(self, host: HostId) -> None:
        """Whether a host is in contact shows in all its rows, and moves none."""
        self._index.changed.update(known.worktree for known in self._known.values() if known.host == host)
        self._index.changed.update(worktree for worktree, (its_host, _) in self._made.items() if its_host == host)

    def _drop(self, key: str) -> None:
        status = self._statuses.pop(key)
        del self._fresh_until[key]
        self._places.leave(key, status.host, status.cwd or "")
        self._move(key, None, Pane(key))

    def _unknow(self, known: WorktreeKnown) -> None:
        del self._known[known.worktree]
        panes = [pane.id for pane in self._index.panes(known.worktree)]
        for key in panes:
            del self._homes[key]
        self._index.remove(known.worktree)
        for key in panes:
            self._place(key)

    def _pane(self, key: str, status: PaneStatus) -> Pane:
        if status.state is State.GONE:
            return Pane(key, activity_ms=status.updated_ms)
        hook = None
        if status.hooked:
            prior = prior_attention((past.state, past.since_ms, past.interrupted) for past in status.history)
            hook = Hook(status.state, status.since_ms, self._fresh_until[key], status.interrupted, prior)
        title = None
        # Nobody there to see the terminal is no proof that it is dead.
        if status.title is not None and status.live is not False:
            title = Title(status.title.reading, status.title.since_ms)
        # What a terminal shows all the time is no activity: only a hook, or a title that says something else.
        activity_ms = max(status.updated_ms if status.hooked else 0, title.seen_ms if title is not None else 0)
        return Pane(key, hook, title, activity_ms)

    # -------------------------------------------------------------- rows

    def _show(self, pane: Pane, asked: Attention, fresh: bool, now_ms: int, awake_ms: int) -> _Shown:
        """A pane's part of its row; its prompts are put before the bell. `fresh`: its hook counts."""
        status = self._statuses[pane.id]
        self.bell.stand(pane.id, self._prompts(status, asked, fresh), now_ms, awake_ms)
        state, evidence, reason, since_ms = explain(status, fresh, pane.title is not None)
        row = PaneRow(
            id=status.pane, agent=status.agent, state=state, evidence=evidence, since_ms=since_ms, reason=reason,
            interrupted=status.interrupted and state is State.DONE, session=status.session,
            title=(topic(status.title.text) or None) if status.title is not None else None,
            background=sum([task.running for task in status.background]), locator=status.locator,
        )  # fmt: skip
        return _Shown(status, fresh, asked, (asked.attention_class, -asked.at_ms, -since_ms, pane.id), pane.id, row)

    def _prompts(self, status: PaneStatus, asked: Attention, fresh: bool) -> tuple[int, ...]:
        """When each prompt began that stands in a pane and was seen, not remembered."""
        if asked.attention_class != AttentionClass.NEEDS_YOU:
            return ()
        if not fresh:
            return (status.title.since_ms,) if status.title is not None else ()
        if status.evidence is Evidence.RESTORED:
            return ()
        return tuple(sorted([prompt.since_ms for prompt in status.prompts])) or (status.since_ms,)

    def _row(self, worktree: WorktreeId, parts: list[_Shown]) -> Row:
        placed, named = self._index.placed(worktree), self._index.worktree(worktree)
        asked = placed.attention
        parts.sort(key=_place_of)
        if asked.pane is not None and parts[0].key != asked.pane:
            # Of several that ask the same since the same moment one has decided.
            parts.sort(key=lambda shown: shown.key != asked.pane)
        # The pane that decided stands first; among idle ones the latest, if one of them says anything.
        there = [shown for shown in parts if shown.status.state is not State.GONE]
        panes = tuple([shown.row for shown in there])
        if asked.attention_class == AttentionClass.NEEDS_YOU:
            # Kept apart from what is shown of a pane: the bell rings later than that changes.
            rung = [self.bell.rung_for(shown.key) for shown in there]
            if any(rung):
                panes = tuple([msgspec.structs.replace(one, prompt_ms=at) if at else one for one, at in zip(panes, rung, strict=True)])
        first = panes[0] if panes else None
        if first is not None and first.evidence is Evidence.NO_SIGNAL:
            first = next((one for one in panes if one.evidence is not Evidence.NO_SIGNAL), first)
        known = self._known.get(worktree)
        host, path = (known.host, known.path) if known is not None else self._made[worktree]
        evidence = first.evidence if first is not None else Evidence.NO_SIGNAL
        reason = first.reason if first is not None else "no agent"
        if self._contact.is_lost(host):
            evidence, reason = Evidence.UNVERIFIABLE, cut_off(reason, host)
            panes = tuple(msgspec.structs.replace(one, evidence=Evidence.UNVERIFIABLE, reason=cut_off(one.reason, host)) for one in panes)
        return Row(
            rank=0, id=worktree, name=named.name, path=path, host=host,
            attention_class=asked.attention_class, attention_at=int(asked.at_ms),
            evidence=evidence,
            reason=reason,
            panes=panes,
            branch=known.branch if known is not None else None,
            dirty=known.dirty if known is not None else None,
            active_at=int(placed.activity_ms),
            rang=asked.attention_class == AttentionClass.NEEDS_YOU and asked.pane is not None and self.bell.has_rung(asked.pane),
        )  # fmt: skip


def _speaks(status: PaneStatus) -> bool:
    """True when an agent is known to be in the pane, by whatever means."""
    says = status.title is not None and status.live is not False and status.title.reading in {Reading.PERMISSION, Reading.WORKING}
    return status.hooked or status.agent is not None or says
