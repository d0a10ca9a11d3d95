"""Counting: what a label may hold, and what a histogram says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.contract.metrics import METRICS, PANES, count_answer
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.run import Beat, PauseRun, Receipt
from tocsin.contract.tally import OTHER, Label, Metric, Sample, Sort, Spread, Tally, by_word

STATES = Metric("tocsin_things_total", Sort.COUNTER, "Things.", (), (Label("state", ("open", "closed")),))
WORDS = Metric("tocsin_words_total", Sort.COUNTER, "Words.", (), (Label("reason"),))
WAYS = Metric("tocsin_way_seconds", Sort.HISTOGRAM, "Ways.", (), buckets=(0.01, 0.1))


def test_what_was_counted_is_told_by_label_value():
    tally = Tally()
    tally.add(STATES, "open")
    tally.add(STATES, "open")
    tally.add(STATES, "closed", by=3)
    assert set(tally.samples()) == {Sample(STATES, ("open",), 2), Sample(STATES, ("closed",), 3)}


def test_a_value_that_is_none_of_those_declared_counts_as_other():
    tally = Tally()
    for value in ("/home/dev/app", "r1.api.1", "open"):
        tally.add(STATES, value)
    assert set(tally.samples()) == {Sample(STATES, (OTHER,), 2), Sample(STATES, ("open",), 1)}


@pytest.mark.parametrize("text", ["/home/dev/app", "a b", "C:\\app", "r1.api.1", "", "dev@here", "x" * 41, "7f3a", "Möwe"])
def test_where_the_sayer_has_its_own_words_only_a_word_is_one(text):
    assert WORDS.labels[0].bounded(text) == OTHER
    assert WORDS.labels[0].bounded("recent_key") == "recent_key"


@given(st.lists(st.text()))
def test_no_value_of_any_length_or_number_widens_what_a_listed_label_shows(values):
    tally = Tally()
    for value in values:
        tally.add(STATES, value)
    assert {sample.labels[0] for sample in tally.samples()} <= {"open", "closed", OTHER}


def test_a_label_too_many_or_too_few_is_a_bug():
    with pytest.raises(ValueError, match="argument"):
        Tally().add(STATES)
    with pytest.raises(ValueError, match="argument"):
        Tally().add(STATES, "open", "wide")


def test_counters_named_at_the_beginning_are_0_before_they_count():
    tally = Tally(STATES)
    tally.add(STATES, "open")
    assert {sample.labels[0]: sample.value for sample in tally.samples()} == {"open": 1, "closed": 0}


def test_a_histogram_tells_how_many_came_up_to_each_bound():
    tally = Tally()
    for seconds in (0.01, 0.05, 0.5):
        tally.time(WAYS, seconds)
    (sample,) = tally.samples()
    assert sample.value == Spread((1, 2), 3, pytest.approx(0.56))


def test_a_gauge_by_word_says_0_for_what_there_is_none_of():
    found = {sample.labels[0]: sample.value for sample in by_word(PANES, ["done", "done", "blocked"])}
    assert found == {"idle": 0, "working": 0, "blocked": 1, "waiting": 0, "done": 2, "gone": 0}


def test_an_answer_counts_under_its_verb_and_a_refusal_under_its_code_too():
    tally = Tally()
    count_answer(tally, PauseRun(reason="lunch"), Receipt(request="q", at_ms=0))
    count_answer(tally, PauseRun(reason="lunch"), Receipt(request="q", at_ms=0, duplicate=True))
    count_answer(tally, Beat(phase="reading"), Refusal(Code.NOT_FOUND, "there is no Run secret"))
    found = {(sample.metric.name, *sample.labels): sample.value for sample in tally.samples()}
    assert found == {
        ("tocsin_commands_total", "pause", "done"): 1,
        ("tocsin_commands_total", "pause", "duplicate"): 1,
        ("tocsin_commands_total", "beat", "refused"): 1,
        ("tocsin_requests_refused_total", "not_found"): 1,
    }


def test_no_label_is_named_for_what_has_no_end():
    names = {label.name for metric in METRICS.values() for label in metric.labels}
    assert names.isdisjoint(
        {"id", "pane", "path", "worktree", "host", "session", "run", "task", "dispatch", "mailbox", "name", "user", "workspace"}
    )
