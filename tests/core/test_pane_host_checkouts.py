"""What git lists, and which worktrees are no more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.contract.messages import WorktreeKnown
from tocsin.pane_host.core.checkouts import Listed, branch_of, name_of, read_list, removed, sayable


def test_a_list_is_read_with_its_branches_and_what_is_no_checkout_is_marked():
    output = (
        "worktree /r/main\0HEAD 1\0branch refs/heads/feat/a\0\0"
        "worktree /r/new\nline\0HEAD 2\0detached\0\0"
        "worktree /r/gone\0HEAD 3\0branch refs/heads/x\0locked why\0prunable gitdir file points to non-existent location\0\0"
        "worktree /r/bare.git\0bare\0\0"
    )
    assert read_list(output) == [
        Listed("/r/main", "feat/a"),
        Listed("/r/new\nline", None),
        Listed("/r/gone", "x", prunable=True),
        Listed("/r/bare.git", None, bare=True),
    ]


def test_an_older_git_ends_lines_as_everybody_does():
    assert read_list("worktree /r\nHEAD 1\nbranch refs/heads/m\n\nworktree /w\nHEAD 1\ndetached\n\n", "\n") == [
        Listed("/r", "m"),
        Listed("/w", None),
    ]


@pytest.mark.parametrize(
    ("head", "branch"),
    [
        ("ref: refs/heads/main\n", "main"),
        ("ref: refs/heads/feat/a b", "feat/a b"),
        ("0123456789abcdef0123456789abcdef01234567", None),
        ("ref: refs/heads/.invalid", None),  # what a repository of the newer ref storage leaves there
        ("ref: refs/tags/v1", None),
        ("", None),
    ],
)
def test_a_head_file_names_a_branch_or_none(head, branch):
    assert branch_of(head) == branch


def test_people_see_the_folders_name():
    assert [name_of(path) for path in ("/r/app", "/r/app/", "/")] == ["app", "app", "/"]


def test_a_path_that_is_no_text_cannot_be_said():
    assert sayable("/r/é\nx")
    assert not sayable("/r/\udcff")


def known(name: str, repository: str | None = "/r", gone: bool = False) -> WorktreeKnown:
    return WorktreeKnown(host="h", worktree=name, path=f"/{name}", name=name, at_ms=1, repository=repository, removed=gone)


def test_what_was_said_and_is_not_found_was_removed():
    assert removed({"a": known("a"), "b": known("b")}, {"b"}, set()) == ["a"]


def test_where_nobody_could_look_nothing_was_removed():
    assert removed({"a": known("a"), "p": known("p", None)}, set(), {"/r", "/p"}) == []


def test_a_removal_is_said_once():
    assert removed({"a": known("a", gone=True)}, set(), set()) == []


names = st.sampled_from("abcdef")


@given(st.dictionaries(names, st.sampled_from(["/r", "/s"])), st.frozensets(names), st.frozensets(st.sampled_from(["/r", "/s"])))
def test_a_worktree_is_removed_exactly_when_its_repository_was_seen_without_it(said, found, silent):
    values = {name: known(name, repository) for name, repository in said.items()}
    assert set(removed(values, found, silent)) == {name for name in said if name not in found and said[name] not in silent}
