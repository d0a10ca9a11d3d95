"""A person is told of each request once: not while it is snoozed, not in quiet hours, not when it is over."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW_MS
from console_builders import a_row
from tocsin.console.core import notices
from tocsin.console.core.notices import BURST_MAX, PAUSES_MS, Ear, Request, Why
from tocsin.console.core.quiet import BadHours, hours, is_quiet
from tocsin.console.ways import minute_in
from tocsin.contract.notices import Mark, Snooze
from tocsin.listing.marks import by_worktree, is_snoozed, mine, signs

MINUTE_MS = 60_000


def a_request(name="web", prompt_ms=NOW_MS, **fields):
    defaults = {"worktree": f"{name}-id", "host": "h", "pane": f"p-{name}", "name": name, "reason": f"{name} asks"}
    return Request(prompt_ms=prompt_ms, **(defaults | fields))


def a_notice(name="web", prompt_ms=NOW_MS, **fields):
    return msgspec.structs.replace(notices.notice_of(a_request(name, prompt_ms), NOW_MS), **fields)


def a_mark(name="web", urgent=False, snooze=None):
    return Mark(worktree=f"{name}-id", at_ms=NOW_MS, urgent=urgent, snooze=snooze)


def planned(*waiting, standing=None, marks=(), now_ms=NOW_MS, is_quiet=False):
    """What is planned; all that waits still stands, unless the test says what does."""
    if standing is None:
        standing = {part.place: part.prompt_ms for one in waiting for part in one.parts}
    return notices.plan(waiting, standing, by_worktree(marks), now_ms, is_quiet=is_quiet)


def a_blocked_row(name="web", prompt_ms=NOW_MS, **fields):
    row = a_row(name, 1, **fields)
    return msgspec.structs.replace(row, panes=(msgspec.structs.replace(row.panes[0], prompt_ms=prompt_ms),))


# ---------------------------------------------------------------- what is a request


def test_a_request_is_a_prompt_that_has_rung_and_another_of_the_same_pane_is_another():
    ear = Ear()
    in_its_dwell, rung = a_blocked_row("api", prompt_ms=0), a_blocked_row("web")
    (heard,) = ear.news(list(notices.requests([in_its_dwell, rung, a_row("done", 2)])))
    assert (heard.name, heard.prompt_ms, heard.reason) == ("web", NOW_MS, "web says so")
    ear.settle(heard)
    assert ear.news(list(notices.requests([rung]))) == []
    assert [one.prompt_ms for one in ear.news(list(notices.requests([a_blocked_row("web", NOW_MS + 1)])))] == [NOW_MS + 1]


# ---------------------------------------------------------------- when it is told


def test_what_stands_is_told_at_once():
    plan = planned(a_notice())
    assert [one.id for one in plan.send] == [a_notice().id]
    assert (plan.hold, plan.drop) == ((), ())


@pytest.mark.parametrize(
    "standing", [{}, {("h", "p-web"): 0}, {("h", "p-web"): NOW_MS + 1}], ids=["gone", "answered", "another one stands"]
)
def test_what_is_over_is_told_to_nobody(standing):
    plan = planned(a_notice(), standing=standing)
    assert [why for _, why in plan.drop] == [Why.OVER]
    assert plan.send == ()


def test_while_nobody_knows_what_stands_nothing_is_told_and_nothing_dropped():
    assert notices.plan([a_notice()], None, {}, NOW_MS, is_quiet=False) == ((), (), (), ())


def test_a_notice_that_could_not_be_told_for_a_day_is_given_up():
    assert [why for _, why in planned(a_notice(at_ms=NOW_MS - notices.AGE_MS_MAX - 1)).drop] == [Why.OLD]


def test_a_webhook_that_fails_is_tried_again_ever_later_and_in_the_end_no_more():
    notice, pauses = a_notice(shown=True), []
    while (after := notices.after_failure(notice, NOW_MS)) is not None:
        pauses.append(after.not_before_ms - NOW_MS)
        assert planned(after, now_ms=after.not_before_ms - 1).send == ()
        assert planned(after, now_ms=after.not_before_ms).send == (after,)
        notice = after
    assert tuple(pauses) == PAUSES_MS


# ---------------------------------------------------------------- quiet hours


def test_in_quiet_hours_it_is_held_and_told_as_one_summary_at_their_end_of_what_still_stands():
    waiting = [a_notice(name) for name in ("api", "docs", "web")]
    night = planned(*waiting, is_quiet=True)
    assert (night.send, [why for _, why in night.hold]) == ((), [Why.QUIET] * 3)
    held = [notice for notice, _ in night.hold]
    assert planned(*held, is_quiet=True) == ((), (), (), ()), "and held once"
    morning = planned(*held, standing={("h", "p-api"): NOW_MS, ("h", "p-web"): NOW_MS})
    (summary,) = morning.send
    assert notices.words(summary.parts, False) == ("2 worktrees need you", "api: api asks\nweb: web asks")
    assert {one.id for one, _ in morning.drop} == {a_notice("docs").id}
    assert set(morning.joined) == {a_notice("api").id, a_notice("web").id}


def test_what_is_urgent_rings_in_quiet_hours():
    assert len(planned(a_notice(), marks=[a_mark(urgent=True)], is_quiet=True).send) == 1


def test_more_than_a_person_can_read_at_once_is_one_summary():
    few = [a_notice(f"w{number}") for number in range(BURST_MAX)]
    assert len(planned(*few).send) == BURST_MAX
    (summary,) = planned(*few, a_notice("one-more")).send
    assert len(summary.parts) == BURST_MAX + 1


def test_a_summary_names_so_many_and_counts_the_rest():
    parts = [a_request(f"w{number}") for number in range(notices.NAMED_MAX + 3)]
    title, text = notices.words(parts, True)
    assert title == "11 worktrees need you"
    assert text.splitlines()[0] == "w0 (h): w0 asks"
    assert text.splitlines()[-1] == "and 3 more"


HOURS = [
    # written, minute of the day, quiet
    ("22:00-07:00", "21:59", False),
    ("22:00-07:00", "22:00", True),
    ("22:00-07:00", "00:00", True),
    ("22:00-07:00", "06:59", True),
    ("22:00-07:00", "07:00", False),
    ("9:30-10:15", "09:29", False),
    ("9:30-10:15", "10:14", True),
    ("12:00-12:00", "03:00", True),
]


@pytest.mark.parametrize(("written", "at", "quiet"), HOURS)
def test_hours_run_from_their_first_minute_until_before_their_last_also_over_midnight(written, at, quiet):
    hour, minute = map(int, at.split(":"))
    assert is_quiet(hours([written]), 60 * hour + minute) is quiet


@pytest.mark.parametrize("written", ["22-07", "24:00-07:00", "22:60-07:00", "22:00", "", "22:00-07:00-08:00"])
def test_what_is_no_span_of_hours_is_refused_by_name(written):
    with pytest.raises(BadHours, match="22:00-07:00"):
        hours([written])


DST = [
    # Berlin's clock in UTC: in the spring of 2027 it goes from 02:00 to 03:00 at 01:00Z, in autumn from 03:00 back to 02:00 at 01:00Z.
    ("22:00-07:00", "2027-03-28T04:59", True),  # 06:59 in summer time
    ("22:00-07:00", "2027-03-28T05:00", False),
    ("22:00-07:00", "2027-10-31T05:59", True),  # 06:59 in winter time
    ("22:00-07:00", "2027-10-31T06:00", False),
    ("02:00-03:00", "2027-03-28T00:59", False),  # an hour that no clock shows is not quiet
    ("02:00-03:00", "2027-03-28T01:00", False),
    ("02:00-03:00", "2027-10-31T00:30", True),  # and one that comes twice is quiet twice
    ("02:00-03:00", "2027-10-31T01:30", True),
]


@pytest.mark.parametrize(("written", "utc", "quiet"), DST)
def test_hours_are_those_that_the_persons_clock_shows_on_days_that_change_it_too(written, utc, quiet):
    moment_ms = int(datetime.fromisoformat(utc).replace(tzinfo=UTC).timestamp() * 1000)
    assert is_quiet(hours([written]), minute_in(ZoneInfo("Europe/Berlin"))(moment_ms)) is quiet


# ---------------------------------------------------------------- marks


def test_a_snooze_for_a_time_holds_what_rings_in_it_and_tells_of_it_afterwards_if_it_still_stands():
    mark = a_mark(snooze=Snooze(until_ms=NOW_MS + 30 * MINUTE_MS))
    ((held, why),) = planned(a_notice(), marks=[mark]).hold
    assert why is Why.SNOOZED
    assert planned(held, marks=[mark], now_ms=NOW_MS + 30 * MINUTE_MS - 1) == ((), (), (), ())
    assert planned(held, marks=[mark], now_ms=NOW_MS + 30 * MINUTE_MS).send == (held,)


def test_a_snooze_until_it_needs_you_anew_drops_what_stood_and_ends_with_the_next_request():
    mark = a_mark(snooze=Snooze(prompt_ms=NOW_MS))
    assert [why for _, why in planned(a_notice(), marks=[mark]).drop] == [Why.SNOOZED]
    assert len(planned(a_notice(prompt_ms=NOW_MS + 1), marks=[mark]).send) == 1
    assert notices.over([mark], {"web-id": NOW_MS}, NOW_MS) == []
    assert notices.over([mark], {}, NOW_MS) == [], "answered is not anew"
    assert notices.over([mark], {"web-id": NOW_MS + 1}, NOW_MS) == [mark]


def test_a_snooze_outweighs_urgency():
    assert planned(a_notice(), marks=[a_mark(urgent=True, snooze=Snooze(until_ms=NOW_MS + 1))]).send == ()


def test_the_order_of_the_person_has_urgent_first_and_snoozed_last_and_else_the_order_of_the_list():
    rows = [a_blocked_row("api"), a_row("done", 2), a_row("later", 2), a_row("web", 3), a_row("idle")]
    marks = by_worktree([a_mark("api", snooze=Snooze(prompt_ms=NOW_MS)), a_mark("web", urgent=True)])
    assert [row.name for row in mine(rows, marks, NOW_MS)] == ["web", "done", "later", "idle", "api"]
    assert [signs(row, marks, NOW_MS) for row in rows] == ["☾", "", "", "⚑", ""]


# ---------------------------------------------------------------- whatever happens


class Person:
    """A model of one store, two consoles that die at any step, and a person who counts what is told."""

    def __init__(self) -> None:
        self.now_ms = NOW_MS
        self.standing: dict[str, int] = {}
        self.told: dict[tuple[str, str], int] = {}
        self.waiting: dict[str, notices.Notice] = {}
        self.marks: dict[str, Mark] = {}
        self.quiet = False
        self.heard: list[tuple[str, int]] = []
        self.asked: set[tuple[str, int]] = set()

    def ask(self, name):
        self.now_ms += 1
        self.standing[name] = self.now_ms
        self.asked.add((name, self.now_ms))

    def answer(self, name):
        self.standing.pop(name, None)

    def snooze(self, name, minutes):
        until = Snooze(until_ms=self.now_ms + minutes * MINUTE_MS) if minutes else Snooze(prompt_ms=self.standing.get(name, 0))
        self.marks[f"{name}-id"] = a_mark(name, snooze=until)

    def pass_time(self, minutes):
        self.now_ms += minutes * MINUTE_MS

    def look(self):
        """What a console does: claim, plan, tell. A claim is atomic with the notice that waits, as in the store."""
        for name, prompt_ms in self.standing.items():
            request = a_request(name, prompt_ms)
            if prompt_ms > self.told.get(request.place, 0):
                self.told[request.place] = prompt_ms
                notice = notices.notice_of(request, self.now_ms)
                self.waiting[notice.id] = notice
        for mark in notices.over(self.marks.values(), {f"{name}-id": at for name, at in self.standing.items()}, self.now_ms):
            del self.marks[mark.worktree]
        standing = {a_request(name).place: prompt_ms for name, prompt_ms in self.standing.items()}
        plan = notices.plan(list(self.waiting.values()), standing, self.marks, self.now_ms, is_quiet=self.quiet)
        for notice, _ in plan.drop:
            del self.waiting[notice.id]
        for notice, _ in plan.hold:
            self.waiting[notice.id] = notice
        for one in plan.joined:
            del self.waiting[one]
        for notice in plan.send:
            for part in notice.parts:
                assert not is_snoozed(self.marks.get(part.worktree), part.prompt_ms, self.now_ms)
                assert not self.quiet
                assert self.standing.get(part.name) == part.prompt_ms
                self.heard.append((part.name, part.prompt_ms))
            self.waiting.pop(notice.id, None)


NAMES = st.sampled_from(["api", "docs", "web", "zeta", "alpha"])
EVENTS = st.one_of(
    st.tuples(st.just("ask"), NAMES),
    st.tuples(st.just("answer"), NAMES),
    st.tuples(st.just("snooze"), NAMES, st.sampled_from([0, 5, 30])),
    st.tuples(st.just("pass_time"), st.sampled_from([1, 10, 60])),
    st.tuples(st.just("quiet")),
    st.tuples(st.just("look")),
)


@given(st.lists(EVENTS, max_size=40))
def test_no_request_is_told_twice_none_while_snoozed_or_quiet_and_none_that_stands_is_forgotten(events):
    person = Person()
    for name, *arguments in events:
        if name == "quiet":
            person.quiet = not person.quiet
        else:
            getattr(person, name)(*arguments)
    assert len(person.heard) == len(set(person.heard))
    assert set(person.heard) <= person.asked
    # In the end nothing holds anything back.
    person.quiet = False
    dropped = {
        name for name, mark in ((one, person.marks.get(f"{one}-id")) for one in person.standing) if mark and mark.snooze.until_ms is None
    }
    person.look()
    person.pass_time(60)
    person.look()
    assert len(person.heard) == len(set(person.heard))
    snoozed_once = {name for name, *arguments in events if name == "snooze" for name in arguments[:1]}
    for name, prompt_ms in person.standing.items():
        assert (name, prompt_ms) in person.heard or name in dropped or name in snoozed_once, name
