"""The order kept up to date one change at a time is the order of the full sort."""

import math

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tocsin.contract.messages import Reading, State
from tocsin.sorter.core.attention import STALE_AFTER_MS, Hook, Pane
from tocsin.sorter.core.ranking import CREATE_GRACE_MS, Index, Worktree, rank
from tocsin.sorter.core.title import Title

HOUR_MS = 3_600_000
WORKTREES = ("w1", "w2", "w3", "w4", "w5")
PANES = ("p1", "p2", "p3", "p4")

times = st.sampled_from([0, 1, 5, STALE_AFTER_MS, HOUR_MS]) | st.integers(0, 2 * HOUR_MS)
broken = times | st.sampled_from([math.nan, math.inf, -math.inf])
hooks = st.builds(
    Hook, st.sampled_from(State), broken, broken, st.booleans(), st.none() | times,
)  # fmt: skip
titles = st.builds(Title, st.sampled_from(Reading), times)
panes = st.builds(Pane, st.sampled_from(PANES), st.none() | hooks, st.none() | titles, times)
worktrees = st.builds(
    Worktree, st.sampled_from(WORKTREES), st.sampled_from(["a", "A", "á", "b", ""]), broken, st.none() | broken, broken,
)  # fmt: skip


def a_hook(state=State.BLOCKED, since_ms=100.0, fresh_until=1_000.0, **fields):
    return Hook(state, since_ms, fresh_until, **fields)


def test_a_pane_leaves_the_class_of_its_hook_one_millisecond_after_the_limit():
    index = Index(now=0)
    index.put_worktree(Worktree("w1", "one"))
    index.put_pane("w1", Pane("p1", a_hook(fresh_until=1_000)))
    assert index.due() == 1_001
    index.expire(1_000)
    assert index.placed("w1").attention.attention_class == 1
    index.expire(1_001)
    assert index.placed("w1").attention.attention_class == 4
    assert index.due() is None


def test_a_new_worktree_loses_its_place_exactly_at_the_end_of_its_grace():
    index = Index(now=0)
    index.put_worktree(Worktree("new", "new", created_ms=10, grace_until=10 + CREATE_GRACE_MS))
    index.put_worktree(Worktree("used", "used", activity_ms=20))
    assert index.order() == ["new", "used"]
    assert index.due() == 10 + CREATE_GRACE_MS
    index.expire(10 + CREATE_GRACE_MS)
    assert index.order() == ["used", "new"]


def test_time_never_goes_back():
    index = Index(now=0)
    index.put_worktree(Worktree("w1", "one"))
    index.expire(1_001)
    index.expire(500)
    index.put_pane("w1", Pane("p1", a_hook(fresh_until=1_000)))
    assert index.placed("w1").attention.attention_class == 4


def test_a_busy_pane_does_not_fill_the_heap():
    index = Index(now=0)
    index.put_worktree(Worktree("w1", "one"))
    for number in range(10_000):
        index.put_pane("w1", Pane("p1", a_hook(State.WORKING, fresh_until=number)))
    assert len(index._alarms) <= 200
    assert index.due() == 10_000


def test_a_row_that_changes_without_passing_another_is_not_said_to_have_moved():
    index = Index(now=0)
    for name in WORKTREES:
        index.put_worktree(Worktree(name, name, activity_ms=100))
    index.changed.clear()
    index.moved.clear()
    index.put_worktree(Worktree("w1", "w1", activity_ms=200))
    assert index.changed == {"w1"}
    assert index.moved == set()
    index.put_worktree(Worktree("w5", "w5", activity_ms=300))
    assert index.moved == {"w5"}


class IndexEqualsFullSort(RuleBasedStateMachine):
    """Any sequence of puts, removals and clock moves: order, classes and moments are those of the full sort."""

    def __init__(self):
        super().__init__()
        self.now = 0
        self.index = Index(now=0)
        self.worktrees = {}
        self.panes = {}

    @rule(worktree=worktrees)
    def put_worktree(self, worktree):
        self.index.put_worktree(worktree)
        self.worktrees[worktree.id] = worktree

    @rule(at=st.sampled_from(WORKTREES), pane=panes)
    def put_pane(self, at, pane):
        if at in self.worktrees:
            self.index.put_pane(at, pane)
            self.panes[pane.id] = (at, pane)

    @rule(pane=st.sampled_from(PANES))
    def drop_pane(self, pane):
        self.index.drop_pane(pane)
        self.panes.pop(pane, None)

    @rule(worktree=st.sampled_from(WORKTREES))
    def remove(self, worktree):
        self.index.remove(worktree)
        self.worktrees.pop(worktree, None)
        self.panes = {name: one for name, one in self.panes.items() if one[0] != worktree}

    @rule(step=st.integers(0, 3) | st.integers(0, HOUR_MS))
    def pass_time(self, step):
        self.now += step
        self.index.expire(self.now)

    @rule()
    def sleep_until_due(self):
        due = self.index.due()
        before = self.full_sort(self.now)
        if due is None:
            assert self.full_sort(1e300) == before
            return
        assert due > self.now
        # Nothing changes before: there is no moment to poll for.
        assert self.full_sort(due - 1) == before
        self.now = due
        self.index.expire(due)

    def full_sort(self, now):
        inside = {}
        for at, pane in self.panes.values():
            inside.setdefault(at, []).append(pane)
        ranked = rank(sorted(self.worktrees.values(), key=lambda one: one.id), inside, now, lambda one: one.id)
        return [(worktree.id, asked) for worktree, asked in ranked]

    @invariant()
    def equal(self):
        assert [(name, self.index.placed(name).attention) for name in self.index.order()] == self.full_sort(self.now)


IndexEqualsFullSort.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestIndexEqualsFullSort = IndexEqualsFullSort.TestCase
