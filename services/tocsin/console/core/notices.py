"""Whom to tell of what needs them, and when: once for each request, not while it is snoozed, not in quiet hours, not when it is over.

A request is a prompt for which the sorter has rung; the list names it. It is claimed once over all replicas, then waits here as a
notice until it is told or over. What rang while nobody could be told comes as one summary.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec

from tocsin.contract.ids import HostId, PaneId, WorktreeId
from tocsin.contract.messages import AttentionClass, Row
from tocsin.contract.notices import Mark
from tocsin.listing.marks import is_snoozed

BURST_MAX = 3
"""More requests than this at one moment are told as one: after a start, or when a network is back."""

NAMED_MAX = 8
"""Requests that a summary names; the rest it counts."""

AGE_MS_MAX = 24 * 3_600_000
"""A notice that could not be told for so long is given up."""

PAUSES_MS = (2_000, 8_000, 30_000, 120_000)
"""How long after each failed attempt the next one comes; after the last there is none."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One prompt that stands and has rung. `prompt_ms`: when it began (UTC), which tells it from all others of its pane."""

    worktree: WorktreeId
    host: HostId
    pane: PaneId
    prompt_ms: int
    name: str
    reason: str

    @property
    def place(self) -> tuple[HostId, PaneId]:
        """Where it stands."""
        return self.host, self.pane


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """What one notification tells, until it is told."""

    id: str
    parts: tuple[Request, ...]
    at_ms: int  # when the first of its requests was claimed
    held: bool = False  # quiet hours or a snooze held it back
    shown: bool = False  # screens have been told; only the webhook is still to be
    attempts: int = 0  # of the webhook
    not_before_ms: int = 0  # the next of them


class Why(StrEnum):
    """Why a notice is not told, now or ever."""

    QUIET = "quiet"
    SNOOZED = "snoozed"
    OVER = "over"  # nothing of it stands any more
    OLD = "old"
    FAILED = "failed"  # every attempt has failed


class Plan(NamedTuple):
    """What is to be done with the notices that wait. Those in none of the three stay as they are."""

    send: tuple[Notice, ...]
    hold: tuple[tuple[Notice, Why], ...]  # for the first time
    drop: tuple[tuple[Notice, Why], ...]
    joined: tuple[str, ...]  # ids of notices of which one in `send` has become the summary


def requests(rows: Iterable[Row]) -> Iterator[Request]:
    """Everything that stands and has rung, in the order of the list, which has those that need somebody first."""
    for row in rows:
        if row.attention_class != AttentionClass.NEEDS_YOU:
            return
        for pane in row.panes:
            if pane.prompt_ms:
                yield Request(
                    worktree=row.id, host=row.host, pane=pane.id, prompt_ms=pane.prompt_ms, name=row.name, reason=pane.reason
                )  # fmt: skip


class Ear:
    """Which requests of a list are news to this console; it asks the others about those alone."""

    def __init__(self) -> None:
        self._known: dict[tuple[HostId, PaneId], int] = {}

    def news(self, standing: Sequence[Request]) -> list[Request]:
        """Those that were not settled yet. A pane of which nothing stands is forgotten: its next prompt is a later one."""
        return [one for one in standing if one.prompt_ms > self._known.get(one.place, 0)]

    def settle(self, request: Request) -> None:
        """It was claimed, by whomever."""
        self._known[request.place] = max(request.prompt_ms, self._known.get(request.place, 0))

    def forget_all_but(self, places: Iterable[tuple[HostId, PaneId]]) -> None:
        """Only these panes are still listed."""
        kept = frozenset(places)
        self._known = {place: prompt_ms for place, prompt_ms in self._known.items() if place in kept}


def notice_of(request: Request, now_ms: int) -> Notice:
    """The notice of a request that was claimed now."""
    return Notice(id=f"{request.host}/{request.pane}/{request.prompt_ms}", parts=(request,), at_ms=now_ms)


def standing_parts(notice: Notice, standing: Mapping[tuple[HostId, PaneId], int]) -> tuple[Request, ...]:
    """What of a notice still stands. `standing`: the latest prompt of each pane; a later one than the notice's has a notice of its own."""
    return tuple(part for part in notice.parts if 0 < standing.get(part.place, 0) <= part.prompt_ms)


def plan(
    waiting: Sequence[Notice],
    standing: Mapping[tuple[HostId, PaneId], int] | None,
    marks: Mapping[WorktreeId, Mark],
    now_ms: int,
    *,
    is_quiet: bool,
) -> Plan:
    """What to do now. `standing` None: nobody knows what stands, so nothing is told and nothing is dropped.

    A snooze outweighs everything; urgency outweighs quiet hours. A request that stands no more is told to nobody.
    """
    send: list[Notice] = []
    hold: list[tuple[Notice, Why]] = []
    drop: list[tuple[Notice, Why]] = []
    for notice in sorted(waiting, key=lambda one: (one.at_ms, one.id)):
        if now_ms - notice.at_ms > AGE_MS_MAX:
            drop.append((notice, Why.OLD))
            continue
        if standing is None:
            continue
        parts = standing_parts(notice, standing)
        if not parts:
            drop.append((notice, Why.OVER))
            continue
        awake = tuple(part for part in parts if not is_snoozed(marks.get(part.worktree), part.prompt_ms, now_ms))
        if not awake:
            # A snooze without an end is over with the next request, which has a notice of its own.
            endless = all((snooze := marks[part.worktree].snooze) is not None and snooze.until_ms is None for part in parts)
            if endless:
                drop.append((notice, Why.SNOOZED))
            elif not notice.held:
                hold.append((msgspec.structs.replace(notice, held=True), Why.SNOOZED))
            continue
        if is_quiet and not is_urgent(awake, marks):
            if not notice.held:
                hold.append((msgspec.structs.replace(notice, held=True), Why.QUIET))
            continue
        if now_ms >= notice.not_before_ms:
            send.append(msgspec.structs.replace(notice, parts=awake))
    return _joined(send, hold, drop)


def _joined(send: list[Notice], hold: list[tuple[Notice, Why]], drop: list[tuple[Notice, Why]]) -> Plan:
    """The plan with what was held, or is too much at once, as one summary."""
    fresh = [one for one in send if not one.shown and not one.attempts]
    held = [one for one in fresh if one.held]
    together = fresh if len(fresh) > BURST_MAX else held
    if len(together) < 2:
        return Plan(tuple(send), tuple(hold), tuple(drop), ())
    ids = tuple(one.id for one in together)
    parts = {(part.place, part.prompt_ms): part for one in together for part in one.parts}
    summary = Notice(
        id=f"{ids[0]}+{len(ids) - 1}", parts=tuple(parts.values()), at_ms=together[0].at_ms, held=any(one.held for one in together)
    )
    return Plan((summary, *(one for one in send if one.id not in ids)), tuple(hold), tuple(drop), ids)


def after_failure(notice: Notice, now_ms: int) -> Notice | None:
    """A notice whose webhook has failed once more; None: that was the last attempt."""
    if notice.attempts >= len(PAUSES_MS):
        return None
    pause_ms = PAUSES_MS[notice.attempts]
    return msgspec.structs.replace(notice, attempts=notice.attempts + 1, not_before_ms=now_ms + pause_ms)


def due_ms(waiting: Iterable[Notice], now_ms: int) -> int | None:
    """When the next attempt comes (UTC ms); None: nothing waits for its time."""
    return min((one.not_before_ms for one in waiting if one.not_before_ms > now_ms), default=None)


def is_urgent(parts: Iterable[Request], marks: Mapping[WorktreeId, Mark]) -> bool:
    """Whether the person has marked any of these as urgent."""
    return any((mark := marks.get(part.worktree)) is not None and mark.urgent for part in parts)


def over(marks: Iterable[Mark], latest: Mapping[WorktreeId, int], now_ms: int) -> list[Mark]:
    """Marks whose snooze has ended. `latest`: the latest prompt of each listed worktree."""
    return [mark for mark in marks if mark.snooze is not None and not is_snoozed(mark, latest.get(mark.worktree, 0), now_ms)]


class Words(NamedTuple):
    """A notice as a person reads it."""

    title: str
    text: str


def words(parts: Sequence[Request], several_hosts: bool) -> Words:
    """What is told: who needs somebody, and what each asks."""

    def named(part: Request) -> str:
        return f"{part.name} ({part.host})" if several_hosts else part.name

    if len(parts) == 1:
        return Words(f"{named(parts[0])} needs you", parts[0].reason)
    worktrees = len({part.worktree for part in parts})
    title = f"{worktrees} worktrees need you" if worktrees > 1 else f"{named(parts[0])} needs you"
    lines = [f"{named(part)}: {part.reason}" for part in parts[:NAMED_MAX]]
    if len(parts) > NAMED_MAX:
        lines.append(f"and {len(parts) - NAMED_MAX} more")
    return Words(title, "\n".join(lines))
