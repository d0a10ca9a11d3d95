"""A published list: joined bytes equal to plain encoding, and deltas that lead from each list to the next."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tocsin.contract.messages import Evidence, PaneRow, Row, State, WorktreesMoved, WorktreesSorted
from tocsin.sorter.edition import Edition, apply, differs

IDS = ("a", "b", "c", "d", "e", "f")


def a_row(one="a", **fields):
    defaults = {"rank": 0, "name": one, "path": f"/{one}", "host": "h", "attention_class": 4, "attention_at": 0, "reason": "no agent"}
    return Row(id=one, evidence=Evidence.NO_SIGNAL, **(defaults | fields))


def decoded(edition):
    return msgspec.json.decode(edition.encoded, type=WorktreesSorted)


def test_the_joined_list_is_what_plain_encoding_gives():
    pane = PaneRow(id="p", agent="claude", state=State.DONE, evidence=Evidence.OBSERVED, since_ms=5, reason="finished", title="é")
    rows = [a_row("a", panes=(pane,), branch="main", dirty=True), a_row("b", active_at=7, rang=True)]
    edition = Edition.first("default", "birth").next(9, ["b", "a"], {row.id: row for row in rows})
    plain = WorktreesSorted(
        workspace="default", birth="birth", version=1, at_ms=9,
        worktrees=tuple(msgspec.structs.replace(row, rank=rank) for rank, row in enumerate(reversed(rows), 1)),
    )  # fmt: skip
    assert edition.encoded == msgspec.json.encode(plain)
    assert Edition.of(plain) == edition


def test_the_time_of_the_last_activity_alone_is_nothing_to_see():
    assert not differs(a_row(active_at=1), a_row(active_at=2))
    assert differs(a_row(), a_row(reason="working"))
    assert differs(None, a_row())
    assert differs(a_row(), None)
    assert differs(a_row(), a_row(rang=True))
    assert not differs(a_row(), a_row(rang=True), but=("rang",))


lists = st.lists(st.sampled_from(IDS), unique=True).flatmap(
    lambda order: st.tuples(st.just(order), st.fixed_dictionaries({one: st.integers(0, 2) for one in order}))
)


@given(st.lists(lists, min_size=1, max_size=6))
def test_a_reader_that_applies_each_delta_has_each_list(series):
    edition = Edition.first("default", "birth")
    for order, activity in series:
        rows = {one: a_row(one, active_at=at) for one, at in activity.items()}
        changed = {one: rows.get(one) for one in {*rows, *edition.rows} if rows.get(one) != edition.rows.get(one)}
        after = edition.next(1, order, changed)
        moved = msgspec.json.decode(msgspec.json.encode(after.moved(edition, changed)), type=WorktreesMoved)
        assert (moved.birth, moved.version) == (after.birth, edition.version + 1)
        assert apply(decoded(edition).worktrees, moved) == list(decoded(after).worktrees)
        edition = after


def test_one_row_that_passes_many_is_a_delta_of_one_row():
    rows = {one: a_row(one) for one in IDS}
    before = Edition.first("default", "birth").next(1, list(IDS), rows)
    risen = a_row("f", attention_class=1, attention_at=5)
    after = before.next(2, ["f", *IDS[:-1]], {"f": risen})
    moved = after.moved(before, {"f"})
    assert [(row.id, row.rank) for row in moved.changed] == [("f", 1)]
    assert moved.removed == ()
