"""Which processes belong to an agent (case H06): its descendants and whatever carries its mark, never a namesake."""

from hypothesis import given
from hypothesis import strategies as st

from tocsin.pane_host.core.agent_process import Row
from tocsin.pane_host.core.tree import family, has


def table(**parents):
    return {int(pid[1:]): Row(int(pid[1:]), parent, 0, 0, has_terminal=True) for pid, parent in parents.items()}


def test_descendants_and_marked_processes_with_theirs_are_the_family():
    rows = table(p1=0, p10=1, p11=10, p12=11, p20=1, p21=20, p30=1)
    assert family(rows, [10], {20}, ()) == {10, 11, 12, 20, 21}


def test_who_asks_and_what_it_runs_under_is_spared():
    rows = table(p1=0, p10=1, p11=10, p12=11, p13=11)
    assert family(rows, [10], (), {12}) == {13}


def test_what_is_not_there_has_no_family():
    assert family(table(p1=0), [99], {98}, ()) == set()


@given(st.dictionaries(st.integers(1, 30), st.integers(0, 30), max_size=30), st.integers(1, 30), st.integers(1, 30))
def test_a_table_of_any_shape_gives_an_answer_without_those_who_ask(parents, root, spared):
    rows = {pid: Row(pid, parent, 0, 0, has_terminal=False) for pid, parent in parents.items()}
    found = family(rows, [root], (), {spared})
    assert spared not in found
    assert found <= set(rows)


def test_a_mark_is_a_whole_variable():
    environment = b"A=1\0TOCSIN_MARK=abc\0B=TOCSIN_MARK=abcd\0"
    assert has(environment, "TOCSIN_MARK", "abc")
    assert not has(environment, "TOCSIN_MARK", "abcd")
    assert not has(environment, "TOCSIN_MARK", "ab")
