"""What a journal tells after a kill at any line: what is done stays done, what may have taken effect is not done again."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW_MS, a_host_command
from tocsin.contract.hosting import HostFact, Saw
from tocsin.pane_host.core.steps import AFTER, BrokenOff, Entry, Standing, Step, expired, fact_id, read_account, standing


def a_fact(saw=Saw.TYPED):
    return HostFact(host="h", dispatch="d1", fence=1, step="stop", saw=saw, at_ms=NOW_MS)


def lines(*entries):
    return [msgspec.json.encode(entry) for entry in (Entry(order=a_host_command()), *entries)]


def test_every_step_says_what_may_follow_when_it_is_broken_off():
    assert set(AFTER) == set(Step)


@pytest.mark.parametrize("step", Step)
def test_a_step_is_new_then_broken_off_or_unknown_then_done(step):
    assert standing(read_account(lines()), step) is Standing.NEW
    broken = standing(read_account(lines(Entry(began=step))), step)
    assert broken is (Standing.UNKNOWN if AFTER[step] is BrokenOff.UNKNOWN else Standing.BROKEN_OFF)
    assert standing(read_account(lines(Entry(began=step), Entry(did=step))), step) is Standing.DONE


def test_keys_that_may_have_been_pressed_are_never_pressed_again():
    assert {step for step, after in AFTER.items() if after is BrokenOff.UNKNOWN} == {Step.ENTER, Step.INTERRUPT}


def test_what_a_step_came_to_is_remembered_with_it():
    account = read_account(lines(Entry(began=Step.PASTE, data={"text": "a"}), Entry(did=Step.PASTE, data={"n": 1})))
    assert (account.began[Step.PASTE], account.did[Step.PASTE]) == ({"text": "a"}, {"n": 1})


def test_facts_that_the_bus_may_not_have_are_known():
    account = read_account(lines(Entry(fact=a_fact()), Entry(fact=a_fact(Saw.TYPE_HELD)), Entry(said=0), Entry(over=True)))
    assert account.unsaid == [1]
    assert account.over


def test_steps_of_a_later_version_are_ignored():
    assert read_account(lines(Entry(began="polish"), Entry(did="polish"))).began == {}


def test_a_journal_without_its_order_is_no_journal():
    assert read_account([b"", b'{"ord', msgspec.json.encode(Entry(began=Step.GO))]) is None


ENTRIES = st.lists(
    st.one_of(
        st.sampled_from([Entry(began=step) for step in Step]),
        st.sampled_from([Entry(did=step) for step in Step]),
        st.just(Entry(fact=a_fact())),
        st.integers(0, 3).map(lambda number: Entry(said=number)),
    ),
    max_size=12,
)


@given(ENTRIES, st.integers(0, 400))
def test_a_line_that_was_cut_off_loses_itself_and_nothing_before_it(entries, cut):
    whole = lines(*entries)
    text = b"\n".join(whole)[: len(whole[0]) + 1 + cut]
    kept = read_account(text.split(b"\n"))
    count = next((n for n in range(len(whole), 0, -1) if text.startswith(b"\n".join(whole[:n]))), 1)
    assert kept == read_account(whole[:count])


def test_an_order_expires_at_its_time_and_never_without_one():
    assert expired(a_host_command(expires_ms=NOW_MS), NOW_MS)
    assert not expired(a_host_command(expires_ms=NOW_MS + 1), NOW_MS)
    assert not expired(a_host_command(), NOW_MS * 2)


def test_facts_of_one_order_are_told_apart_and_a_repeat_is_the_same():
    assert fact_id(a_fact(), 0) != fact_id(a_fact(), 1)
    assert fact_id(a_fact(), 0) == fact_id(a_fact(), 0)
