"""Table: a map that never changes, of which changed copies cost nothing to speak of."""

from hypothesis import given
from hypothesis import strategies as st

from tocsin.contract.table import Table

KEYS = st.integers(0, 6)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), KEYS, st.integers()),
        st.tuples(st.just("delete"), KEYS),
        st.tuples(st.just("set_all"), st.dictionaries(KEYS, st.integers(), max_size=4)),
    ),
    max_size=40,
)


def applied(table: Table, step: tuple) -> Table:
    match step:
        case ("set", key, value):
            return table.set(key, value)
        case ("delete", key):
            return table.delete(key)
        case (_, items):
            return table.set_all(items)


def as_dict(before: dict, step: tuple) -> dict:
    match step:
        case ("set", key, value):
            return before | {key: value}
        case ("delete", key):
            return {k: v for k, v in before.items() if k != key}
        case (_, items):
            return before | items


def test_a_changed_table_is_another_one_and_the_old_one_says_what_it_said():
    old = Table({"a": 1})
    new = old.set("a", 2).set("b", 3).delete("a")
    assert dict(new) == {"b": 3}
    assert dict(old) == {"a": 1}
    assert dict(new) == {"b": 3}


@given(st.data(), STEPS)
def test_every_version_keeps_its_content_whichever_is_asked_and_changed_next(data, steps):
    versions = [(Table({0: 0}), {0: 0})]
    for step in steps:
        table, content = versions[data.draw(st.integers(0, len(versions) - 1))]
        versions.append((applied(table, step), as_dict(content, step)))
    for table, content in versions:
        assert dict(table) == content
        assert len(table) == len(content)
        assert set(table) == set(content)


@given(STEPS, st.integers(0, 40))
def test_what_changed_since_an_older_version_covers_every_difference(steps, back):
    versions = [Table({0: 0, 1: 1})]
    for step in steps:
        versions.append(applied(versions[-1], step))
    older, newest = versions[max(0, len(versions) - 1 - back)], versions[-1]
    differing = {key for key in {*older, *newest} if older.get(key) != newest.get(key)}
    assert differing <= set(newest.changed_since(older))


def test_what_changed_is_known_without_a_look_at_the_rest():
    old = Table({number: number for number in range(1000)})
    assert set(old.set(7, 0).set(8, 0).changed_since(old)) == {7, 8}


def test_of_strangers_everything_may_differ():
    assert set(Table({"a": 1}).changed_since(Table({"b": 1}))) == {"a", "b"}
    assert set(Table({"a": 1}).changed_since(None)) == {"a"}


def test_a_step_back_after_an_overtaken_write_costs_what_the_step_changed():
    base = Table({number: number for number in range(1000)})
    lost = base.set(1, 0)
    won = base.set(2, 0)
    assert (won[1], won[2], lost[1], lost[2]) == (1, 0, 0, 2)
    assert set(won.changed_since(base)) >= {2}


def test_many_tables_may_begin_with_the_same_empty_one():
    empty: Table = Table()
    first, second = empty.set("a", 1), empty.set("b", 2)
    assert (dict(empty), dict(first), dict(second)) == ({}, {"a": 1}, {"b": 2})


def test_it_can_be_iterated_while_other_versions_are_made_and_asked():
    table = Table({"a": 1, "b": 2})
    seen = []
    for key in table:
        assert table.set(key, 0)[key] == 0
        seen.append((key, table[key]))
    assert sorted(seen) == [("a", 1), ("b", 2)]
