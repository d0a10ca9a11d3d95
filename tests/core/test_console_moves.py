"""Who is told that something of the loop has moved."""

import pytest

from tocsin.console.core.moves import Kind, Watch, Watches, is_topic, run_of_mailbox


def pages(*shown: str) -> tuple[Watches, list[Watch]]:
    """Pages, each by the topics that it shows, with commas between."""
    watches = Watches()
    found = [Watch(topics.split(",")) for topics in shown]
    for watch in found:
        watches.add(watch)
    return watches, found


def test_a_page_hears_of_what_it_shows_and_of_nothing_else():
    watches, (run, other, all_runs, mail) = pages("run:r1", "run:r2", "run", "mail:r1")
    assert watches.hear(Kind.RUN, "r1")
    assert watches.tell() == {run, all_runs}
    assert [watch.take() for watch in (run, other, all_runs, mail)] == [["run:r1"], [], ["run"], []]


def test_what_moves_many_times_before_it_is_told_is_told_once():
    watches, (page,) = pages("run:r1,mail:r1")
    for _ in range(50):
        watches.hear(Kind.RUN, "r1")
    watches.hear(Kind.MAIL, "r1")
    assert watches.tell() == {page}
    assert page.take() == ["mail:r1", "run:r1"]
    assert page.take() == []
    assert watches.tell() == set()


def test_what_nobody_shows_is_not_gathered():
    watches, (page,) = pages("run:r1")
    assert not watches.hear(Kind.CUSTODY, "r1")
    watches.remove(page)
    assert not watches.hear(Kind.RUN, "r1")
    assert not watches.hear_anything()
    assert watches.tell() == set()


def test_after_lost_hints_every_page_hears_of_all_that_it_shows():
    watches, (one, two) = pages("run:r1,custody", "mail")
    assert watches.hear_anything()
    assert watches.tell() == {one, two}
    assert (one.take(), two.take()) == (["custody", "run:r1"], ["mail"])


@pytest.mark.parametrize(
    ("given", "is_one"),
    [
        ("run", True),
        ("run:r1", True),
        ("mail:r1", True),
        ("custody", True),
        ("run:", False),
        ("", False),
        (":r1", False),
        ("pane:p1", False),
    ],
)
def test_a_topic_is_a_kind_with_or_without_a_run(given, is_one):
    assert is_topic(given) is is_one


@pytest.mark.parametrize("address", ["run:r1", "dispatch:r1.build.2"])
def test_a_mailbox_belongs_to_a_run(address):
    assert run_of_mailbox(address) == "r1"
