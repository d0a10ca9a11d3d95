"""Where new worktrees go, and what their folders are called."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.contract.refusals import Code, Refusal
from tocsin.pane_host.core.placement import branch_of_folder, checked_path, folder_of_branch, may_hold, root_for, taken, within

BRANCH = st.text(min_size=1, max_size=40).filter(lambda text: not text.startswith((".", "-")))


@given(BRANCH)
def test_a_branch_can_be_read_from_the_name_of_its_folder(branch):
    try:
        branch.encode()
    except UnicodeEncodeError:
        return
    name = folder_of_branch(branch)
    if isinstance(name, str):
        assert branch_of_folder(name) == branch
        assert "/" not in name
        assert name not in (".", "..")


@pytest.mark.parametrize(
    ("branch", "folder"),
    [("feat/login", "feat~login"), ("a b", "a%20b"), ("ü", "%C3%BC"), ("v1.2", "v1.2"), ("a~b", "a%7Eb"), ("a/../b", "a~..~b")],
)
def test_folder_names_stay_readable_and_are_one_part_of_a_path(branch, folder):
    assert folder_of_branch(branch) == folder


@pytest.mark.parametrize("branch", ["", ".", "..", "../x", ".git", "-x", "x" * 300, "ü" * 100, "\ud800"])
def test_a_branch_that_cannot_be_a_folder_is_refused(branch):
    refusal = folder_of_branch(branch)
    assert isinstance(refusal, Refusal)
    assert refusal.code is Code.BAD_PLACE


def test_names_that_differ_in_case_alone_collide():
    assert taken("Feat~Login", ["main", "feat~login"]) == "feat~login"
    assert taken("feat~logout", ["main", "feat~login"]) is None


def test_new_worktrees_go_beside_their_repository_or_below_the_configured_folder():
    assert root_for("/src/app", "") == "/src/app-worktrees"
    one, other = root_for("/src/app", "/trees"), root_for("/other/app", "/trees")
    assert one.startswith("/trees/app-")
    assert one != other


def test_new_worktrees_never_go_into_the_repository_or_the_state_folder():
    assert may_hold("/src/app-worktrees", "/src/app", "/state") is None
    for root in ("/src/app", "/src/app/worktrees", "/state/worktrees"):
        assert may_hold(root, "/src/app", "/state").code is Code.BAD_PLACE


@pytest.mark.parametrize("path", [None, "", "src/app", "/src/../etc", "/src/..", "/src/a\0b", "/" + "x" * 2000, "/\ud800"])
def test_a_path_that_is_relative_climbs_or_is_no_text_is_refused(path):
    assert checked_path(path).code is Code.BAD_PLACE


def test_a_path_as_people_write_it_is_taken():
    for path in ("/src/app", "/src/..app", "/src/my app/"):
        assert checked_path(path) == path


def test_a_folder_holds_itself_and_what_lies_in_it_but_no_namesake():
    assert within("/src/app", "/src/app")
    assert within("/src/app/lib", "/src/app")
    assert not within("/src/app2", "/src/app")
