"""Which hosts are in contact, and whose a host name is."""

import pytest

from builders import NOW_MS
from tocsin.contract.messages import AttentionClass, Evidence, HostKnown, PaneStatus, State
from tocsin.pane_host.core.presence import GIVEN_UP_MS, SILENT_MS, holds, refusal
from tocsin.sorter.core.board import Board
from tocsin.sorter.core.contact import CONTACT_MS, Contact

SECOND_MS = 1_000


def a_host(host: str = "far", at_ms: int = NOW_MS, **fields) -> HostKnown:
    return HostKnown(**({"host": host, "at_ms": at_ms, "machine": "m1", "boot": "b1", "label": "box (/s)", "version": "1"} | fields))


def test_a_host_is_out_of_contact_when_three_words_are_missing_and_back_with_the_next():
    contact = Contact()
    assert contact.hear(a_host(), NOW_MS, 0) is False
    assert contact.due() == CONTACT_MS
    assert contact.expire(CONTACT_MS - 1) == set()
    assert contact.expire(CONTACT_MS) == {"far"}
    assert contact.expire(CONTACT_MS) == set()
    assert contact.is_lost("far")
    assert contact.due() is None
    assert contact.hear(a_host(at_ms=NOW_MS + CONTACT_MS), NOW_MS + CONTACT_MS, CONTACT_MS) is True
    assert not contact.is_lost("far")


def test_a_host_that_never_spoke_is_not_lost():
    assert not Contact().is_lost("known by hooks alone")


def test_a_kept_word_is_as_old_as_it_says_and_none_is_of_the_future():
    contact = Contact()
    contact.hear(a_host(at_ms=NOW_MS - CONTACT_MS), NOW_MS, 0)
    assert contact.expire(0) == {"far"}
    contact.hear(a_host(at_ms=NOW_MS + 600 * SECOND_MS), NOW_MS, 0)
    assert contact.due() == CONTACT_MS


def a_status(host: str, state: State) -> PaneStatus:
    return PaneStatus(
        host=host, pane=f"p-{host}", workspace="default", seq=1, state=state, since_ms=NOW_MS, updated_ms=NOW_MS, evidence=Evidence.OBSERVED,
        cause="asks to run make", hooked=True, agent="claude", cwd=f"/{host}",
    )  # fmt: skip


def test_rows_of_a_lost_host_keep_class_moment_and_place_and_say_that_they_are_the_last_that_was_heard():
    board = Board("default", 0)
    for host, state in (("far", State.BLOCKED), ("near", State.DONE)):
        board.hear_status(a_status(host, state), NOW_MS, 0)
        board.hear_host(a_host(host), NOW_MS, 0)
    board.refresh(NOW_MS, 0)
    order, before = board.order(), dict(board.rows)

    board.hear_host(a_host("near", NOW_MS + CONTACT_MS), NOW_MS + CONTACT_MS, CONTACT_MS)
    assert board.due() == CONTACT_MS
    board.expire(CONTACT_MS)
    changed, moved = board.refresh(NOW_MS + CONTACT_MS, CONTACT_MS)
    assert (len(changed), moved) == (1, False)
    assert board.order() == order
    far, near = (board.rows[one] for one in order)
    assert near == before[order[1]]
    assert (far.attention_class, far.attention_at) == (AttentionClass.NEEDS_YOU, before[order[0]].attention_at)
    assert (far.evidence, far.reason) == (Evidence.UNVERIFIABLE, "asks to run make; no contact with far")
    assert [(pane.state, pane.evidence) for pane in far.panes] == [(State.BLOCKED, Evidence.UNVERIFIABLE)]

    board.hear_host(a_host("far", NOW_MS + CONTACT_MS), NOW_MS + CONTACT_MS, CONTACT_MS)
    board.refresh(NOW_MS + CONTACT_MS, CONTACT_MS)
    assert board.rows == before


MINE = a_host(at_ms=NOW_MS)

NAMES = [
    # the last that was said under the name, whether it keeps the name from this machine, why
    (None, False, "nobody ever had it"),
    (a_host(at_ms=NOW_MS), False, "this machine, whose lock sees that one alone speaks"),
    (a_host(at_ms=NOW_MS, left=True, machine="m2"), False, "given back in order"),
    (a_host(at_ms=NOW_MS - SECOND_MS, machine="m2"), True, "another machine speaks"),
    (a_host(at_ms=NOW_MS - GIVEN_UP_MS + 1, machine="m2"), True, "another machine is silent: it may be cut off"),
    (a_host(at_ms=NOW_MS - GIVEN_UP_MS, machine="m2"), False, "another machine has been silent for an hour"),
    (a_host(at_ms=NOW_MS - SECOND_MS, boot="b0"), True, "a twin of this machine (a copied image) speaks"),
    (a_host(at_ms=NOW_MS - SILENT_MS, boot="b0"), False, "this machine was started anew"),
    (a_host(at_ms=NOW_MS + 600 * SECOND_MS, machine="m2"), True, "a word from the future is a fresh one"),
]


@pytest.mark.parametrize(("other", "kept"), [case[:2] for case in NAMES], ids=[case[2] for case in NAMES])
def test_a_host_name_belongs_to_who_speaks_under_it(other: HostKnown | None, kept: bool):
    assert holds(other, MINE) is kept


def test_the_refusal_names_both_and_the_remedy():
    said = refusal(a_host(at_ms=NOW_MS - 4 * SECOND_MS, machine="m2", label="build (/x)"), MINE)
    assert "far is another machine's: build (/x), heard 4 s ago; this one is box (/s)" in said
    assert "TOCSIN_HOST=NAME" in said
