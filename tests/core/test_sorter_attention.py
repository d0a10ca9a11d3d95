"""What one pane and one worktree ask for, beyond the given cases (test_sorter_cases.py)."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.contract.messages import Reading, State
from tocsin.sorter.core.attention import IDLE, Hook, Pane, attend, attention, prior_attention
from tocsin.sorter.core.title import Title

NOW = 1_000


def a_pane(state=State.BLOCKED, since_ms=100.0, *, pane="p1", fresh_until=NOW, title=None, **fields):
    return Pane(pane, Hook(state, since_ms, fresh_until, **fields), title)


def asked(pane, activity_ms=0):
    found = attend(pane, activity_ms, NOW)
    return found.attention_class, found.at_ms


@pytest.mark.parametrize("state", [State.BLOCKED, State.WAITING])
def test_a_standing_prompt_needs_a_person_since_the_state_began(state):
    assert asked(a_pane(state, 7)) == (1, 7)


@pytest.mark.parametrize("state", [State.IDLE, State.GONE])
def test_an_agent_at_rest_or_gone_asks_for_nothing(state):
    assert asked(a_pane(state)) == (4, 0)


def test_a_fresh_hook_that_says_less_than_the_title_still_stands():
    assert asked(a_pane(State.IDLE, title=Title(Reading.PERMISSION, 5))) == (4, 0)


def test_a_fresh_hook_with_a_broken_start_contributes_nothing_and_hides_the_title():
    assert asked(a_pane(since_ms=math.nan, title=Title(Reading.PERMISSION, 5))) == (4, 0)


def test_a_stale_hook_lets_the_title_speak():
    assert asked(a_pane(State.DONE, fresh_until=NOW - 1, title=Title(Reading.PERMISSION, 5))) == (1, 5)


def test_a_title_prompt_counts_from_when_it_was_first_seen_and_a_busy_title_from_the_last_activity():
    assert asked(Pane("p1", None, Title(Reading.PERMISSION, 5)), activity_ms=9) == (1, 5)
    assert asked(Pane("p1", None, Title(Reading.WORKING, 5)), activity_ms=9) == (3, 9)


def test_of_two_equal_panes_the_same_one_decides_whatever_their_order():
    panes = [a_pane(pane="b"), a_pane(pane="a")]
    assert attention(panes, 0, NOW).pane == attention(panes[::-1], 0, NOW).pane == "a"


def test_history_without_any_wish_for_attention_gives_none():
    rows = [(State.WORKING, 5, False), (State.DONE, 6, True), (State.BLOCKED, math.inf, False), (State.DONE, 0, False)]
    assert prior_attention(rows) is None


times = st.integers(0, 100) | st.sampled_from([math.nan, math.inf, -math.inf])
panes = st.builds(
    Pane,
    st.text("abc", min_size=1, max_size=2),
    st.none()
    | st.builds(
        Hook, st.sampled_from(State), times, st.sampled_from([NOW - 1, NOW, math.nan]), st.booleans(), st.none() | st.integers(1, 100)
    ),
    st.none() | st.builds(Title, st.sampled_from(Reading), st.integers(0, 100)),
)


@given(st.lists(panes, unique_by=lambda pane: pane.id), st.randoms())
def test_a_worktree_asks_for_the_most_that_one_of_its_panes_asks_for(some, random):
    whole = attention(some, 50, NOW)
    each = [attend(pane, 50, NOW) for pane in some]
    assert whole.attention_class == min((one.attention_class for one in each), default=4)
    in_class = [one.at_ms for one in each if one.attention_class == whole.attention_class]
    assert whole.at_ms == max(in_class, default=0)
    assert math.isfinite(whole.at_ms)
    shuffled = list(some)
    random.shuffle(shuffled)
    assert attention(shuffled, 50, NOW) == whole
    assert whole.pane is not None or whole == IDLE
