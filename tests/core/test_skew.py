"""A machine whose clock is off speaks in the bus' time."""

from builders import NOW_MS
from tocsin.contract.messages import Mark, MarkKind, PaneSeen, PaneTitled, Process, Titled, WorktreeKnown
from tocsin.pane_host.last_values import in_bus_time
from tocsin.runtime.clock import SystemClock
from tocsin.runtime.skew import HARMLESS_MS, STEADY_MS, BusTime, Skew

AHEAD_MS = 600_000


def measured(*measurements: int) -> int:
    skew = Skew()
    for measurement in measurements:
        skew.take(measurement)
    return skew.ahead_ms


def test_clocks_that_are_close_count_as_one():
    assert measured(HARMLESS_MS) == measured(-HARMLESS_MS) == measured(AHEAD_MS, HARMLESS_MS) == 0


def test_a_measurement_that_hardly_differs_changes_nothing_so_that_what_is_said_again_is_the_same():
    assert measured(AHEAD_MS, AHEAD_MS + STEADY_MS) == AHEAD_MS
    assert measured(AHEAD_MS, AHEAD_MS + STEADY_MS + 1) == AHEAD_MS + STEADY_MS + 1
    assert measured(-AHEAD_MS) == -AHEAD_MS


def test_the_bus_time_of_a_fast_clock_is_the_real_one():
    clock, skew = SystemClock(), Skew(AHEAD_MS)
    assert abs(BusTime(clock, skew).now_ms() + AHEAD_MS - clock.now_ms()) < 1_000
    assert skew.in_own_time(skew.in_bus_time(NOW_MS)) == NOW_MS


def test_every_moment_of_what_a_host_sees_is_said_in_bus_time_and_no_identity_is():
    own, said = NOW_MS + AHEAD_MS, NOW_MS
    process = Process(pid=7, started_ms=own, boot="b")

    def seen(at_ms: int) -> PaneSeen:
        mark = Mark(number=1, kind=MarkKind.INTERRUPTED, session="s", at_ms=at_ms)
        return PaneSeen(host="h", pane="p", life="l", at_ms=at_ms, process=process, last_key_ms=at_ms, marks=(mark,))

    def titled(at_ms: int) -> PaneTitled:
        return PaneTitled(host="h", pane="p", life="l", titles=(Titled(number=1, text="t", at_ms=at_ms),))

    def known(at_ms: int, active_ms: int) -> WorktreeKnown:
        return WorktreeKnown(host="h", worktree="w", path="/w", name="w", at_ms=at_ms, active_ms=active_ms, created_ms=at_ms)

    skew = Skew(AHEAD_MS)
    assert in_bus_time(seen(own), skew) == seen(said)
    assert in_bus_time(titled(own), skew) == titled(said)
    assert in_bus_time(known(own, own), skew) == known(said, said)
    assert in_bus_time(known(own, 0), skew).active_ms == 0
    assert in_bus_time(PaneSeen(host="h", pane="p", life="l", at_ms=own), skew).last_key_ms is None
    assert in_bus_time(seen(own), Skew()) == seen(own)
