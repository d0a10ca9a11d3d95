"""The order of all worktrees, whole or kept up to date one change at a time, and the next moment at which it changes by itself.

Class first, then the latest moment, then recent activity, then the name, then what the caller gives as the last key.
Two clocks meet here: moments are UTC and only compared with one another; limits (`*_until`, `now`) are read on a clock that
only grows. Where there is one clock, it serves for both.
Source: README, decision 3; the seed's comparator.
"""

import heapq
import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from tocsin.listing.names import NameKey, name_key
from tocsin.sorter.core.attention import Attention, Pane, attend, attention, strongest

CREATE_GRACE_MS = 5 * 60_000
"""How long a new worktree stands above idle ones that were used since (the seed's CREATE_GRACE_MS)."""

STALE_ALARMS_MAX = 64
"""Alarms that were put off and may lie in the heap beyond two per worktree, before it is made anew."""

Key = tuple[int, float, float, NameKey, Any]
"""Compared, never summed: no freshness lifts a finished worktree over a blocked one. The last part makes it total."""


@dataclass(frozen=True, slots=True)
class Worktree:
    """One checkout or folder, without its panes. Times may be any number, also none at all."""

    id: str
    name: str
    activity_ms: float = 0  # UTC: agent activity and real use, never a look
    created_ms: float | None = None  # UTC
    grace_until: float = -math.inf  # on the clock of limits: before it, its creation counts as activity to come


def last_activity_ms(worktree: Worktree, panes: Iterable[Pane]) -> float:
    """When the worktree or an agent in it last did anything; 0 for a time that is no number."""
    latest = worktree.activity_ms if math.isfinite(worktree.activity_ms) else -math.inf
    for pane in panes:
        # False for a time that is no number.
        if latest < pane.activity_ms < math.inf:
            latest = pane.activity_ms
    return latest if latest > -math.inf else 0


def recent_activity_ms(worktree: Worktree, activity_ms: float, now: float) -> float:
    """The last activity, or for a new worktree the end of its grace when that is later: so it leads the idle ones, newest first."""
    if worktree.created_ms is not None and now < worktree.grace_until and math.isfinite(worktree.created_ms):
        return max(activity_ms, worktree.created_ms + CREATE_GRACE_MS)
    return activity_ms


def key_of(worktree: Worktree, asked: Attention, activity_ms: float, now: float, tie: Any) -> Key:
    """Where a worktree belongs that asks for `asked`. `activity_ms`: its last activity; `now` is on the clock of limits."""
    recent_ms = recent_activity_ms(worktree, activity_ms, now)
    return asked.attention_class, -asked.at_ms, -recent_ms, name_key(worktree.name), tie


def decide(worktree: Worktree, panes: Iterable[Pane], now: float, tie: Any) -> tuple[Key, Attention]:
    """Where a worktree belongs, and the attention that put it there. `now` is on the clock of limits."""
    panes = tuple(panes)
    activity_ms = last_activity_ms(worktree, panes)
    asked = attention(panes, activity_ms, now)
    return key_of(worktree, asked, activity_ms, now, tie), asked


class Placed(NamedTuple):
    """Where a held worktree stands, and why: all that `decide` found, and the last activity."""

    key: Key
    attention: Attention
    activity_ms: float


def rank(
    worktrees: Iterable[Worktree], panes: Mapping[str, Iterable[Pane]], now: float, tie: Callable[[Worktree], Any]
) -> list[tuple[Worktree, Attention]]:
    """All worktrees, the one that most needs a person first, each with its attention. `panes` are given by worktree id.

    `tie` gives the last key; where it ties as well, the order of `worktrees` stays. Refuses nothing.
    """
    decided = [(worktree, *decide(worktree, panes.get(worktree.id, ()), now, tie(worktree))) for worktree in worktrees]
    decided.sort(key=lambda one: one[1])
    return [(worktree, asked) for worktree, _, asked in decided]


class Index:
    """The order, kept up to date: equal at all times to `rank` of what it holds, with the id as the last key.

    A change of one pane costs that pane's decision and two searches: what the others ask for is kept until a limit passes. `changed` collects the worktrees of which anything has changed,
    `moved` those that passed another one, appeared or left; `take_changes` empties both.
    """

    def __init__(self, now: float = 0) -> None:
        self.changed: set[str] = set()
        self.moved: set[str] = set()
        self._now = now
        self._worktrees: dict[str, Worktree] = {}
        self._panes: dict[str, dict[str, Pane]] = {}
        self._home: dict[str, str] = {}
        self._keys: list[Key] = []
        self._ids: list[str] = []  # the last part of each key
        self._placed: dict[str, Placed] = {}
        self._asks: dict[str, dict[str, Attention]] = {}  # by worktree and pane: what the pane asks for, as long as that is sure
        self._alarms: list[tuple[float, str]] = []
        self._alarm_of: dict[str, float] = {}

    @property
    def now(self) -> float:
        """The latest moment it was told, on the clock of limits."""
        return self._now

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, worktree: str) -> bool:
        return worktree in self._worktrees

    def order(self) -> list[str]:
        """Ids, the worktree that most needs a person first."""
        return self._ids.copy()

    def worktree(self, worktree: str) -> Worktree:
        """A held worktree as it was last put."""
        return self._worktrees[worktree]

    def placed(self, worktree: str) -> Placed:
        """Where a held worktree stands, and why."""
        return self._placed[worktree]

    def take_changes(self) -> tuple[set[str], bool]:
        """The worktrees of which anything has changed since this was last asked, and whether any passed another, appeared or left."""
        changed, moved = self.changed, bool(self.moved)
        self.changed = set()
        self.moved.clear()
        return changed, moved

    def panes(self, worktree: str) -> Iterator[Pane]:
        """The panes of a held worktree."""
        return iter(self._panes[worktree].values())

    def asks(self, worktree: str) -> Mapping[str, Attention]:
        """What each pane of a held worktree asks for; the same object as before when it surely asks for the same."""
        return self._asks[worktree]

    def put_worktree(self, worktree: Worktree) -> None:
        """Hold a worktree, or what is new of it."""
        if self._worktrees.get(worktree.id) == worktree:
            return
        self._worktrees[worktree.id] = worktree
        self._panes.setdefault(worktree.id, {})
        self._asks.setdefault(worktree.id, {})
        self._place(worktree.id)

    def put_pane(self, worktree: str, pane: Pane) -> None:
        """Hold a pane, or what is new of it, in a worktree that is held. It leaves the one it was in."""
        home = self._home.get(pane.id)
        if home is not None and home != worktree:
            self.drop_pane(pane.id)
        if self._panes[worktree].get(pane.id) == pane:
            return
        self._home[pane.id] = worktree
        self._panes[worktree][pane.id] = pane
        self._asks[worktree].pop(pane.id, None)
        self._place(worktree)

    def drop_pane(self, pane: str) -> None:
        """Hold a pane no longer; nothing happens when it is not held."""
        home = self._home.pop(pane, None)
        if home is not None:
            del self._panes[home][pane]
            self._asks[home].pop(pane, None)
            self._place(home)

    def remove(self, worktree: str) -> None:
        """Hold a worktree and its panes no longer; nothing happens when it is not held."""
        if self._worktrees.pop(worktree, None) is None:
            return
        for pane in self._panes.pop(worktree):
            del self._home[pane]
        del self._asks[worktree]
        left = bisect_left(self._keys, self._placed.pop(worktree).key)
        del self._keys[left], self._ids[left]
        self._alarm_of.pop(worktree, None)
        self.changed.add(worktree)
        self.moved.add(worktree)

    def expire(self, now: float) -> None:
        """It is `now`: what has become too old to count counts no longer. Time never goes back."""
        self._now = max(self._now, now)
        while self._alarms and self._alarms[0][0] <= self._now:
            at, worktree = heapq.heappop(self._alarms)
            if self._alarm_of.get(worktree) == at:
                del self._alarm_of[worktree]
                self._asks[worktree].clear()
                self._place(worktree)

    def due(self) -> float | None:
        """The next moment at which something changes by itself, on the clock of limits; None: never."""
        while self._alarms and self._alarm_of.get(self._alarms[0][1]) != self._alarms[0][0]:
            heapq.heappop(self._alarms)
        return self._alarms[0][0] if self._alarms else None

    def _place(self, worktree: str) -> None:
        self.changed.add(worktree)
        held, panes, asks, now = self._worktrees[worktree], self._panes[worktree], self._asks[worktree], self._now
        before = self._placed.get(worktree)
        activity_ms = last_activity_ms(held, panes.values())
        for name, pane in panes.items():
            # What a title claims is dated by the last activity in its worktree.
            if name not in asks or (pane.title is not None and (before is None or activity_ms != before.activity_ms)):
                asks[name] = attend(pane, activity_ms, now)
        asked = strongest(asks.values())
        key = key_of(held, asked, activity_ms, now, worktree)
        self._placed[worktree] = Placed(key, asked, activity_ms)
        if before is None or before.key != key:
            left = None
            if before is not None:
                left = bisect_left(self._keys, before.key)
                del self._keys[left], self._ids[left]
            entered = bisect_left(self._keys, key)
            self._keys.insert(entered, key)
            self._ids.insert(entered, worktree)
            if left != entered:
                self.moved.add(worktree)
        self._set_alarm(worktree, self._next_limit(worktree))

    def _next_limit(self, worktree: str) -> float:
        """The first whole millisecond at which a limit of this worktree will have passed."""
        now, fresh_until = self._now, math.inf
        for pane in self._panes[worktree].values():
            hook = pane.hook
            # One that is not fresh, or for ever, has no limit to come.
            if hook is not None and now <= hook.fresh_until < fresh_until:
                fresh_until = hook.fresh_until
        first = fresh_until if fresh_until == math.inf else math.floor(fresh_until) + 1
        grace_until = self._worktrees[worktree].grace_until
        return grace_until if now < grace_until < first else first

    def _set_alarm(self, worktree: str, at: float) -> None:
        if at == self._alarm_of.get(worktree, math.inf):
            return
        if math.isinf(at):
            del self._alarm_of[worktree]
            return
        self._alarm_of[worktree] = at
        heapq.heappush(self._alarms, (at, worktree))
        # Alarms that were put off stay behind: a busy pane would fill the heap.
        if len(self._alarms) > 2 * len(self._alarm_of) + STALE_ALARMS_MAX:
            self._alarms = [(moment, one) for one, moment in self._alarm_of.items()]
            heapq.heapify(self._alarms)
