"""Class and moment of one pane and of one worktree: does somebody need a person, and since when?

A fresh hook is authoritative for its pane, also when it says less than the pane's title. A stale hook counts as absent.
Source: README, decisions 3 and 5; the seed's "per-worktree resolution".
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from tocsin.contract.messages import AttentionClass, State
from tocsin.sorter.core.title import Title, read_attention

STALE_AFTER_MS = 30 * 60_000
"""A pane whose agent has been silent for longer counts as absent; exactly this old still counts (the seed)."""

NEEDS_YOU = frozenset({State.BLOCKED, State.WAITING})
"""States in which a standing prompt waits for a person."""


class Hook(msgspec.Struct, frozen=True):
    """What a pane's agent last said by its hooks, reduced to what the order needs. Times may be any number, also none at all."""

    state: State
    since_ms: float  # UTC: when the state began
    fresh_until: float  # on the clock of limits: the last moment at which this counts
    interrupted: bool = False
    prior_ms: float | None = None  # UTC: its latest earlier moment of attention, see prior_attention()


class Pane(msgspec.Struct, frozen=True):
    """One pane as the order sees it. `id` is unique over all hosts."""

    id: str
    hook: Hook | None = None
    title: Title | None = None
    activity_ms: float = 0  # UTC: when its agent last did anything


class Attention(NamedTuple):
    """What a worktree asks for: a class, the moment that orders within it (UTC ms, 0 in class 4), and the pane that decided."""

    attention_class: int
    at_ms: float
    pane: str | None = None


IDLE = Attention(AttentionClass.IDLE, 0)


def is_fresh(hook: Hook | None, now: float) -> bool:
    """True while a hook speaks for its pane. `now` is on the clock of limits. A time that is no number is never fresh."""
    return hook is not None and now <= hook.fresh_until


def prior_attention(history: Iterable[tuple[State, float, bool]]) -> float | None:
    """The latest moment at which an agent last wanted attention, of (state, since, interrupted) rows in any order.

    An interrupted end was no wish for attention. Rows without a positive, finite time are passed over.
    """
    latest = 0.0
    for state, since_ms, interrupted in history:
        wanted = state in NEEDS_YOU or (state is State.DONE and not interrupted)
        if wanted and math.isfinite(since_ms) and since_ms > latest:
            latest = since_ms
    return latest if latest > 0 else None


def attend(pane: Pane, activity_ms: float, now: float) -> Attention:
    """What one pane asks for. `activity_ms` is its worktree's last activity (UTC), `now` the clock of limits."""
    hook = pane.hook
    if hook is not None and is_fresh(hook, now):
        if not math.isfinite(hook.since_ms):
            return IDLE
        if hook.state in NEEDS_YOU:
            return Attention(AttentionClass.NEEDS_YOU, hook.since_ms, pane.id)
        if hook.state is State.DONE and not hook.interrupted:
            return Attention(AttentionClass.DONE, hook.since_ms, pane.id)
        if hook.state is State.WORKING:
            # Who was wanted by a person a minute ago stands above who has worked alone for an hour.
            return Attention(AttentionClass.WORKING, hook.since_ms if hook.prior_ms is None else hook.prior_ms, pane.id)
        return IDLE
    claimed = read_attention(pane.title, activity_ms) if pane.title is not None else None
    return IDLE if claimed is None else Attention(*claimed, pane.id)


def strongest(found: Iterable[Attention]) -> Attention:
    """What the panes of a worktree together ask for: the smallest class and the latest moment within it, whatever their order."""
    best, (best_class, best_at_ms, best_pane) = IDLE, IDLE
    for one in found:
        its_class, at_ms, pane = one
        if pane is None or its_class > best_class:
            continue
        if its_class < best_class or at_ms > best_at_ms or (at_ms == best_at_ms and (best_pane is None or pane < best_pane)):
            best, best_class, best_at_ms, best_pane = one, its_class, at_ms, pane
    return best


def attention(panes: Iterable[Pane], activity_ms: float, now: float) -> Attention:
    """What a worktree asks for."""
    return strongest([attend(pane, activity_ms, now) for pane in panes])
