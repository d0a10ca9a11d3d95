"""Worktrees of real repositories: found, named, refreshed, removed; and a look writes nothing and runs nothing of theirs."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tocsin.contract.ids import worktree_id
from tocsin.pane_host import worktrees as module
from tocsin.pane_host.core.placement import TRASH
from tocsin.pane_host.git import Git, top_of
from tocsin.pane_host.worktrees import EXAMINE_EVERY_MS, LIST_EVERY_MS, PLAIN_KEPT_MS, Sought, Worktrees

YEAR_MS = 365 * 86_400_000


class SetClock:
    """UTC stands at a moment far ahead of every file; awake time is what the test sets."""

    def __init__(self) -> None:
        self.utc_ms = 4_000_000_000_000
        self.awake = 0

    def now_ms(self) -> int:
        return self.utc_ms

    def awake_ms(self) -> int:
        return self.awake


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return subprocess.run(["git", *identity, *words], cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def clock():
    return SetClock()


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path.resolve() / "app"
    folder.mkdir()
    git(folder, "init")
    (folder / "file").write_text("1")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "one")
    return folder


@pytest.fixture
def eyes(clock, tmp_path):
    return Worktrees(Git(), clock, "h", "default", tmp_path / "home")


async def names(eyes, *configured, agents=(), others=()) -> dict[str, str | None]:
    """Path to branch of all that is found."""
    sought = Sought(tuple(map(str, configured)), frozenset(map(str, agents)), frozenset(map(str, others)))
    found = await eyes.round(sought)
    return {known.path: known.branch for known in found.found.values()}


async def the(eyes, folder):
    """What is known of one worktree."""
    return (await eyes.round(Sought((str(folder),)))).found[worktree_id("h", str(folder))]


async def test_a_repository_shows_all_its_worktrees_with_the_folders_name_and_the_branch_beside_it(eyes, repository):
    git(repository, "worktree", "add", "-b", "feat/login", "../app-login")
    git(repository, "worktree", "add", "--detach", "../app-look")
    found = (await eyes.round(Sought((str(repository),)))).found
    rows = {(known.name, known.branch, known.repository) for known in found.values()}
    main = str(repository)
    assert rows == {("app", "main", main), ("app-login", "feat/login", main), ("app-look", None, main)}
    assert {known.worktree for known in found.values()} == set(found)


async def test_a_worktree_that_waits_in_the_trash_is_not_shown(eyes, repository):
    git(repository, "worktree", "add", "-b", "b", f"../{TRASH}/linked")
    assert await names(eyes, repository) == {str(repository): "main"}


async def test_a_repository_is_found_from_any_folder_inside_any_of_its_worktrees(eyes, repository):
    git(repository, "worktree", "add", "-b", "b", "../linked")
    inside = repository.parent / "linked" / "deep" / "er"
    inside.mkdir(parents=True)
    assert set(await names(eyes, agents=[inside])) == {str(repository), str(repository.parent / "linked")}
    assert set(await names(Worktrees(Git(), SetClock(), "h", "default", repository), others=[inside])) == {
        str(repository),
        str(repository.parent / "linked"),
    }


async def test_a_folder_behind_a_link_is_the_folder_itself(eyes, repository):
    link = repository.parent / "link"
    link.symlink_to(repository)
    assert set(await names(eyes, agents=[link])) == {str(repository)}


async def test_worktrees_of_a_bare_repository_are_shown_and_the_repository_itself_is_not(eyes, repository):
    bare = repository.parent / "app.git"
    git(repository, "clone", "--bare", ".", str(bare))
    git(bare, "worktree", "add", "../one", "main")
    assert await names(eyes, bare) == {str(repository.parent / "one"): "main"}


async def test_a_submodule_is_a_checkout_of_its_own(eyes, repository):
    git(repository, "-c", "protocol.file.allow=always", "submodule", "add", str(repository), "sub")
    assert await names(eyes, agents=[repository / "sub"]) == {str(repository / "sub"): "main"}


async def test_a_worktree_that_comes_goes_or_changes_its_branch_is_noticed_without_waiting(eyes, repository):
    await names(eyes, repository)
    git(repository, "worktree", "add", "-b", "one", "../w")
    assert (await names(eyes, repository))[str(repository.parent / "w")] == "one"
    git(repository.parent / "w", "switch", "-c", "two")
    assert (await names(eyes, repository))[str(repository.parent / "w")] == "two"
    git(repository, "worktree", "remove", "../w")
    assert str(repository.parent / "w") not in await names(eyes, repository)


async def test_a_worktree_whose_folder_was_deleted_is_no_more_also_before_git_prunes_it(eyes, repository):
    git(repository, "worktree", "add", "-b", "b", "../w")
    await names(eyes, repository)
    shutil.rmtree(repository.parent / "w")
    assert set(await names(eyes, repository)) == {str(repository)}


async def test_a_repository_that_was_deleted_is_no_more(eyes, repository):
    await names(eyes, repository)
    shutil.rmtree(repository)
    found = await eyes.round(Sought((str(repository),)))
    assert (found.found, found.silent) == ({}, frozenset())


async def test_a_repository_is_remembered_when_nobody_is_there_any_more(eyes, repository):
    await names(eyes, agents=[repository])
    assert set(await names(eyes)) == {str(repository)}


async def test_where_git_does_not_answer_what_was_known_stays_and_is_called_silent(eyes, repository, clock, monkeypatch):
    git(repository, "worktree", "add", "-b", "b", "../w")
    before = await names(eyes, repository)
    monkeypatch.setattr(eyes._git, "program", "/bin/false")
    clock.awake += LIST_EVERY_MS
    found = await eyes.round(Sought((str(repository),)))
    assert {known.path: known.branch for known in found.found.values()} == before
    assert found.silent == {str(repository)}


async def test_without_git_a_checkout_is_known_as_far_as_its_files_tell(clock, repository, monkeypatch, tmp_path):
    blind = Worktrees(Git(), clock, "h", "default", tmp_path)
    monkeypatch.setattr(blind._git, "program", "/bin/false")
    found = await blind.round(Sought((), frozenset({str(repository)})))
    (known,) = found.found.values()
    assert (known.path, known.branch, known.dirty) == (str(repository), "main", None)


async def test_a_plain_folder_counts_while_an_agent_works_there_and_an_hour_longer(eyes, tmp_path, clock):
    folder = tmp_path.resolve() / "notes"
    folder.mkdir()
    (known,) = (await eyes.round(Sought(agents=frozenset({str(folder)})))).found.values()
    assert (known.name, known.branch, known.repository, known.dirty) == ("notes", None, None, None)
    clock.awake += PLAIN_KEPT_MS
    assert set(await names(eyes)) == {str(folder)}
    clock.awake += 1
    assert await names(eyes) == {}


async def test_a_plain_folder_with_only_a_shell_in_it_is_no_worktree(eyes, tmp_path):
    assert await names(eyes, others=[tmp_path]) == {}


async def test_a_folder_inside_a_plain_folder_belongs_to_it_but_the_home_folder_swallows_nothing(eyes, tmp_path):
    home = (tmp_path / "home").resolve()
    inner = home / "notes" / "inner"
    inner.mkdir(parents=True)
    assert set(await names(eyes, agents=[home])) == {str(home)}
    assert set(await names(eyes, agents=[home, home / "notes"])) == {str(home), str(home / "notes")}
    assert set(await names(eyes, agents=[home, home / "notes", inner])) == {str(home), str(home / "notes")}


async def test_a_plain_folder_that_becomes_a_repository_is_one(eyes, tmp_path):
    folder = tmp_path.resolve() / "new"
    folder.mkdir()
    await names(eyes, agents=[folder])
    git(folder, "init")
    found = (await eyes.round(Sought(agents=frozenset({str(folder)})))).found
    assert [(known.path, known.branch, known.repository) for known in found.values()] == [(str(folder), "main", str(folder))]


async def test_a_folder_that_is_not_there_is_nothing(eyes, tmp_path):
    assert await names(eyes, tmp_path / "none", agents=[tmp_path / "gone"]) == {}


async def examine_all(eyes):
    while (checkout := eyes.due()) is not None:
        await eyes.examine(checkout)
        eyes._rest_until_ms = 0


async def test_a_change_or_a_new_file_makes_a_worktree_dirty_and_a_commit_makes_it_clean(eyes, repository, clock):
    assert (await the(eyes, repository)).dirty is None
    await examine_all(eyes)
    assert (await the(eyes, repository)).dirty is False
    (repository / "new").write_text("x")
    clock.awake += EXAMINE_EVERY_MS
    await examine_all(eyes)
    assert (await the(eyes, repository)).dirty is True
    git(repository, "add", ".")
    git(repository, "commit", "-m", "two")
    await the(eyes, repository)
    clock.awake += module.TOUCHED_EVERY_MS
    await examine_all(eyes)
    assert (await the(eyes, repository)).dirty is False


async def test_a_worktree_in_which_an_agent_has_worked_is_compared_sooner(eyes, repository, clock):
    await the(eyes, repository)
    await examine_all(eyes)
    clock.awake += module.TOUCHED_EVERY_MS
    assert eyes.due() is None
    eyes.touch([str(repository / "sub" / "folder")])
    assert eyes.due() is not None


async def test_comparing_rests_so_that_many_worktrees_cost_little(eyes, repository, clock):
    git(repository, "worktree", "add", "-b", "b", "../w")
    await the(eyes, repository)
    await examine_all(eyes)
    clock.awake += EXAMINE_EVERY_MS
    checkout = eyes.due()
    await eyes.examine(checkout)
    eyes._rest_until_ms = clock.awake + 1
    assert eyes.due() is None


async def test_a_comparison_that_takes_too_long_is_unknown(eyes, repository, monkeypatch):
    await the(eyes, repository)
    await examine_all(eyes)
    slow = repository.parent / "git"
    slow.write_text("#!/bin/sh\nexec sleep 300\n")
    slow.chmod(0o755)
    monkeypatch.setattr("tocsin.pane_host.git.EXAMINE_S_MAX", 0.05)
    with monkeypatch.context() as patched:
        patched.setattr(eyes._git, "program", str(slow))
        await eyes.examine(eyes._checkouts()[0])
    assert (await the(eyes, repository)).dirty is None


async def test_activity_is_a_commit_a_checkout_or_a_staged_file_and_never_a_look(eyes, repository, clock):
    for file in (".git/HEAD", ".git/index", ".git/logs/HEAD"):
        os.utime(repository / file, (1_000_000_000, 1_000_000_000))
    assert (await the(eyes, repository)).active_ms == 1_000_000_000_000
    committed_ms = int(git(repository, "log", "-1", "--format=%ct")) * 1000
    await examine_all(eyes)
    assert (await the(eyes, repository)).active_ms == committed_ms
    clock.awake += EXAMINE_EVERY_MS
    await examine_all(eyes)
    assert (await the(eyes, repository)).active_ms == committed_ms
    os.utime(repository / ".git/index", (3_000_000_000, 3_000_000_000))
    assert (await the(eyes, repository)).active_ms == 3_000_000_000_000


async def test_nothing_was_used_in_the_future(eyes, repository, clock):
    os.utime(repository / ".git/index", (9_000_000_000, 9_000_000_000))
    assert (await the(eyes, repository)).active_ms == clock.utc_ms


async def test_a_worktree_was_created_when_it_was_added_whatever_happened_in_it_since(eyes, repository):
    git(repository, "worktree", "add", "-b", "b", "../w")
    linked = repository.parent / "w"
    once = Path(top_of(str(linked)).git_dir) / "commondir"
    made_ms = once.stat().st_mtime_ns // 1_000_000
    (linked / "x").write_text("x")
    git(linked, "add", ".")
    git(linked, "commit", "-m", "x")
    assert (await the(eyes, linked)).created_ms == made_ms


async def test_a_look_writes_nothing_and_runs_no_program_that_a_repository_names(eyes, repository, tmp_path, clock):
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    evil.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(evil))
    hooks = repository / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for hook in ("post-index-change", "post-checkout", "reference-transaction"):
        shutil.copy(evil, hooks / hook)
    (repository / "file").write_text("2")
    (tmp_path / "ran").unlink(missing_ok=True)

    def state() -> dict[str, int]:
        return {str(file): file.stat().st_mtime_ns for file in repository.rglob("*")}

    before = state()
    await the(eyes, repository)
    await examine_all(eyes)
    assert state() == before
    assert not (tmp_path / "ran").exists()
    assert (await the(eyes, repository)).dirty is True


async def test_a_variable_of_somebody_elses_git_changes_nothing(repository, clock, monkeypatch, tmp_path):
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path))
    eyes = Worktrees(Git(), clock, "h", "default", tmp_path)
    assert await names(eyes, repository) == {str(repository): "main"}


async def test_of_too_many_repositories_those_where_nobody_was_longest_are_let_go(eyes, tmp_path, clock, monkeypatch):
    monkeypatch.setattr(module, "REPOSITORIES_MAX", 2)
    folders = [tmp_path.resolve() / name for name in "abc"]
    for folder in folders:
        folder.mkdir()
        git(folder, "init")
        clock.awake += 1
        await names(eyes, agents=[folder])
    assert set(await names(eyes)) == {str(folders[1]), str(folders[2])}
