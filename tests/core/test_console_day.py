"""The picture of the day: counts at the end of each slot, and how long worktrees needed somebody."""

from builders import NOW_MS
from console_builders import a_list, a_row
from tocsin.console.core.day import SLOT_MS, SLOTS_MAX, WAITS_MAX, Sample, Tally, merged, within_a_day


def tally_of(*heard):
    """Lists, each with the second at which it was heard."""
    tally = Tally()
    for seconds, rows in heard:
        tally.hear(a_list(*rows), NOW_MS + seconds * 1000)
    return tally


def test_a_sample_counts_the_classes_of_the_last_list():
    tally = tally_of((0, [a_row("a", 1)]), (5, [a_row("a", 3), a_row("b", 4)]))
    assert tally.take(7).counts == (0, 0, 1, 1)


def test_a_wait_lasts_from_the_moment_of_attention_until_nobody_is_needed():
    tally = tally_of((10, [a_row("a", 1, attention_at=NOW_MS)]), (30, [a_row("a", 1, attention_at=NOW_MS)]), (42, [a_row("a", 3)]))
    assert tally.take(7).waits_s == (42,)


def test_a_wait_is_told_once():
    tally = tally_of((0, [a_row("a", 1)]), (5, [a_row("a", 3)]))
    assert tally.take(7).waits_s == (5,)
    assert tally.take(8).waits_s == ()


def test_a_worktree_that_is_gone_was_not_answered():
    assert tally_of((0, [a_row("a", 1)]), (5, [])).take(7).waits_s == ()


def test_a_list_that_is_only_remembered_counts_for_nothing():
    tally = Tally()
    tally.hear(a_list(a_row("a", 1), restored=True), NOW_MS)
    assert tally.take(7) is None


def test_while_the_bus_is_away_there_is_a_gap_and_no_wait_ends():
    tally = tally_of((0, [a_row("a", 1)]))
    tally.silence()
    assert tally.take(7) is None
    tally.hear(a_list(a_row("a", 3)), NOW_MS + 90_000)
    assert tally.take(8) == Sample(slot=8, counts=(0, 0, 1, 0))


def test_a_clock_that_was_set_back_makes_no_negative_wait():
    assert tally_of((0, [a_row("a", 1, attention_at=NOW_MS + 60_000)]), (5, [a_row("a", 3)])).take(7).waits_s == (0,)


def test_no_slot_keeps_more_waits_than_its_limit():
    many = [a_row(f"w{number}", 1) for number in range(WAITS_MAX + 5)]
    tally = tally_of((0, many), (1, [a_row(row.name, 3) for row in many]))
    assert len(tally.take(7).waits_s) == WAITS_MAX


def test_of_two_consoles_the_one_that_has_seen_more_waits_is_kept():
    less, more = Sample(slot=7, counts=(0, 0, 0, 1), waits_s=(3,)), Sample(slot=7, counts=(1, 0, 0, 0), waits_s=(3, 9))
    assert merged(None, less) == less
    assert merged(less, more) == more
    assert merged(more, less) == Sample(slot=7, counts=less.counts, waits_s=(3, 9))


def test_a_day_has_so_many_slots_each_once_and_the_oldest_first():
    now = NOW_MS // SLOT_MS
    samples = [Sample(slot=slot, counts=(0, 0, 0, 0)) for slot in (now, now - SLOTS_MAX, now - 1, now - SLOTS_MAX + 1, now)]
    assert [one.slot for one in within_a_day(samples, NOW_MS)] == [now - SLOTS_MAX + 1, now - 1, now]
