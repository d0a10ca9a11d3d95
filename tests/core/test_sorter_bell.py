"""The bell rings once for each prompt that has stood, and for nothing else."""

from hypothesis import given
from hypothesis import strategies as st

from tocsin.sorter.core.bell import Bell

NOW = 1_000_000
AWAKE = 500


def a_bell(*prompts, now_ms=NOW, awake_ms=AWAKE):
    bell = Bell(dwell_ms=1_000)
    bell.stand("p", prompts, now_ms, awake_ms)
    return bell


def test_it_waits_until_a_prompt_has_stood_for_the_dwell():
    bell = a_bell(NOW)
    assert bell.due() == AWAKE + 1_000
    assert bell.ready(AWAKE + 999) == []
    assert bell.ready(AWAKE + 1_000) == ["p"]


def test_a_prompt_that_was_heard_late_has_stood_already():
    assert a_bell(NOW - 400).due() == AWAKE + 600
    assert a_bell(NOW - 60_000).due() == AWAKE


def test_a_prompt_from_the_future_has_stood_for_nothing_yet():
    assert a_bell(NOW + 60_000).due() == AWAKE + 1_000


def test_a_prompt_that_goes_within_the_dwell_rings_nobody():
    bell = a_bell(NOW)
    bell.stand("p", (), NOW + 300, AWAKE + 300)
    assert bell.due() is None
    assert bell.ready(AWAKE + 5_000) == []


def test_it_rings_once_for_a_prompt_however_often_it_is_heard():
    bell = a_bell(NOW)
    bell.ring("p")
    assert bell.has_rung("p")
    bell.stand("p", (NOW,), NOW + 9_000, AWAKE + 9_000)
    assert bell.ready(AWAKE + 99_000) == []
    assert bell.has_rung("p")


def test_hearing_the_same_prompt_again_does_not_put_the_ring_off():
    bell = a_bell(NOW)
    bell.stand("p", (NOW,), NOW + 900, AWAKE + 700)
    assert bell.due() == AWAKE + 1_000


def test_prompts_that_keep_coming_do_not_put_the_ring_off_and_ring_together():
    bell = a_bell(NOW)
    bell.stand("p", (NOW, NOW + 900), NOW + 900, AWAKE + 900)
    assert bell.ready(AWAKE + 1_000) == ["p"]
    bell.ring("p")
    assert bell.due() is None


def test_a_further_prompt_in_a_pane_that_has_rung_rings_again():
    bell = a_bell(NOW)
    bell.ring("p")
    bell.stand("p", (NOW, NOW + 5_000), NOW + 5_000, AWAKE + 5_000)
    assert not bell.has_rung("p")
    assert bell.due() == AWAKE + 6_000


def test_what_another_life_has_rung_for_is_remembered_and_what_came_later_rings():
    bell = Bell(dwell_ms=1_000)
    bell.remember("p", NOW, NOW, AWAKE)
    bell.stand("p", (NOW - 5_000,), NOW, AWAKE)
    assert bell.has_rung("p")
    bell.stand("p", (NOW + 1,), NOW + 1, AWAKE + 1)
    assert bell.due() == AWAKE + 1_001


def test_a_ring_that_was_not_said_is_still_due():
    bell = a_bell(NOW)
    before = bell.ring("p")
    bell.take_back("p", before, NOW + 1_000, AWAKE + 1_000)
    assert bell.ready(AWAKE + 1_000) == ["p"]


def test_a_pane_that_is_gone_rings_no_more():
    bell = a_bell(NOW)
    bell.leave("p")
    assert bell.due() is None


@given(st.lists(st.tuples(st.integers(0, 3_000), st.sets(st.integers(0, 5)), st.booleans()), max_size=30))
def test_no_prompt_is_rung_for_twice_and_none_before_it_has_stood(steps):
    bell = Bell(dwell_ms=1_000)
    began = {number: number * 1_000 for number in range(6)}
    passed, rung = 0, []
    for step, standing, look in steps:
        passed += step
        bell.stand("p", tuple(sorted(began[one] for one in standing if began[one] <= passed)), passed, passed)
        if look and bell.ready(passed):
            assert any(at + 1_000 <= passed for at in bell._standing["p"])
            rung.append(max(bell._standing["p"]))
            bell.ring("p")
    assert rung == sorted(set(rung))
