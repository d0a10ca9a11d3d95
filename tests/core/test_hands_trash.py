"""When a worktree may go (case H01): only ours, clean, nothing unpushed or unmerged, nobody in it; unknown counts as dirty."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.pane_host.core.trash import Examined, Keep, reason_to_keep

CLEAN = Examined(path="/w", ours=True, branch="b", made_branch="b", files=(), commits=(), users=())


def found(**fields):
    return dataclasses.replace(CLEAN, **fields)


def test_a_clean_merged_unused_worktree_of_ours_may_go():
    assert reason_to_keep(CLEAN) is None


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"there": False}, Keep.NOT_THERE),
        ({"ours": False}, Keep.NOT_OURS),
        ({"branch": "other"}, Keep.OTHER_BRANCH),
        ({"branch": None}, Keep.OTHER_BRANCH),
        ({"locked": ""}, Keep.LOCKED),
        ({"users": ("pane p2",)}, Keep.IN_USE),
        ({"users": None}, Keep.UNKNOWN),
        ({"under_way": "rebase"}, Keep.DIRTY),
        ({"files": ("a.py",)}, Keep.DIRTY),
        ({"files": None}, Keep.UNKNOWN),
        ({"commits": ("abc",)}, Keep.UNMERGED),
        ({"commits": None}, Keep.UNKNOWN),
        ({"commits": ("abc",), "merged": None}, Keep.UNMERGED),
        ({"files": ("a.py",), "commits": ("abc",)}, Keep.DIRTY),
    ],
)
def test_anything_else_keeps_it(fields, code):
    kept = reason_to_keep(found(**fields))
    assert kept.code is code
    assert kept.why


def test_commits_whose_content_was_merged_do_not_keep_it():
    assert reason_to_keep(found(commits=("abc", "def"), merged=True)) is None


def test_h01_the_reason_counts_all_files_and_commits_and_says_what_resolves_it():
    kept = reason_to_keep(found(files=tuple(f"f{n}" for n in range(17)), commits=("a1", "b2", "c3")))
    assert "17 files" in kept.why
    assert "3 commits that exist nowhere else" in kept.why
    assert any("push" in command for command in kept.next)


KNOWN = st.sampled_from([(), ("x",), None])


@given(
    st.builds(
        Examined,
        path=st.just("/w"),
        there=st.booleans(),
        ours=st.booleans(),
        branch=st.sampled_from(["b", "c", None]),
        made_branch=st.just("b"),
        locked=st.sampled_from([None, "why"]),
        under_way=st.sampled_from([None, "merge"]),
        files=KNOWN,
        commits=KNOWN,
        merged=st.sampled_from([True, False, None]),
        users=KNOWN,
    )
)
def test_nothing_goes_of_which_anything_is_unknown_unclean_or_used(some):
    if reason_to_keep(some) is None:
        assert some.there
        assert some.ours
        assert some.branch == some.made_branch
        assert some.files == ()
        assert some.users == ()
        assert some.commits == () or some.merged is True
