"""Git, as a hand: makes worktrees, finds out whether one may go, moves it to the trash and back.

Everything here waits for git: callers run it in a thread.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tocsin.contract.refusals import Code, Refusal
from tocsin.pane_host.core.checkouts import Listed, read_list
from tocsin.pane_host.core.placement import TRASH, folder_of_branch, may_hold, root_for, taken, within
from tocsin.pane_host.core.trash import Examined
from tocsin.pane_host.git import ENVIRONMENT, Top, bare_at, top_at, top_of
from tocsin.pane_host.programs import Answer
from tocsin.runtime.instance import FOLDER_MODE, write_private

ASK_S_MAX = 20.0
ADD_S_MAX = 600.0
"""A checkout of a large repository, with the hooks that its owner has set for that."""

COMMITS_MAX = 1000
"""Commits of the base that are compared with a squashed branch."""

PATCH_BYTES_MAX = 64 * 1024 * 1024

MARK = "tocsin.json"
"""In the git folder of a worktree that we made: what it was made for. It moves with the worktree."""

UNDER_WAY = {
    "MERGE_HEAD": "merge",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
}

_LOCK = re.compile(r"'([^']*\.lock)'")


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """What a worktree was made for, and from what."""

    dispatch: str
    fence: int
    branch: str
    base: str  # the commit that it began at
    base_branch: str | None  # whose content it will be merged into, as far as that is known
    path: str
    made_ms: int


@dataclass(frozen=True, slots=True)
class Plan:
    """A new worktree, decided in full before anything is made."""

    repository: str  # real path of the main checkout
    root: str
    path: str
    branch: str
    base: str  # a commit
    base_branch: str | None
    dirty: bool  # what it branches off has changes that will not be in it


class Failed(Exception):
    """Git did not do it; the message is for a person."""


def free_bytes(path: str) -> int | None:
    """Free space where `path` is or will be; None when it cannot be told."""
    for folder in (Path(path), *Path(path).parents):
        try:
            return shutil.disk_usage(folder).free
        except OSError:
            continue
    return None


def _line(answer: Answer | None) -> str:
    """What git says for itself."""
    if answer is None:
        return "git did not answer in time"
    lines = [line for line in answer.errors.decode(errors="replace").splitlines() if line.startswith(("fatal:", "error:"))]
    return lines[-1].partition(": ")[2] if lines else f"git ended with {answer.code}"


def refusal_of(text: str) -> Refusal:
    """What git's refusal to make a worktree means for the caller."""
    lock = _LOCK.search(text)
    if "No space left" in text or "Disk quota" in text:
        return Refusal(Code.NO_SPACE, "the disk became full while the worktree was made")
    if lock:
        return Refusal(Code.REPOSITORY_UNUSABLE, f"the repository is locked by {lock[1]}: remove that file if no git runs")
    if "already exists" in text or "already checked out" in text or "already used" in text or "cannot lock ref" in text:
        return Refusal(Code.WORKTREE_TAKEN, text)
    if "not a valid branch name" in text:
        return Refusal(Code.BAD_PLACE, text)
    return Refusal(Code.REPOSITORY_UNUSABLE, text)


def run(words: Sequence[str], environment: Mapping[str, str], seconds_max: float, given: bytes | None = None) -> Answer | None:
    """What a program says to `given`; None when it cannot be started or takes too long: then it is ended, with what it started."""
    try:
        with subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        ) as process:
            try:
                output, errors = process.communicate(given, timeout=seconds_max)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                return None
    except OSError:
        return None
    return Answer(process.returncode, output, errors)


class Checkouts:
    """Worktrees as they are made, examined, moved and removed."""

    def __init__(self, *, configured: str, state: Path, space_bytes_min: int) -> None:
        self._configured = configured
        self._state = str(state)
        self._space_bytes_min = space_bytes_min

    # ----------------------------------------------------------------- ask

    @property
    def program(self) -> str | None:
        """git, if it is installed."""
        return shutil.which("git")

    def _git(self, *words: str, seconds_max: float = ASK_S_MAX, writes: bool = False) -> Answer | None:
        """What git says; None when it does not answer in time. `writes`: with the locks that a change needs, and its owner's hooks."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "TOCSIN_"))} | ENVIRONMENT
        looks: tuple[str, ...] = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
        if writes:
            del environment["GIT_OPTIONAL_LOCKS"]
            looks = ()
        return run([self.program or "git", "-c", "gc.auto=0", *looks, *words], environment, seconds_max)

    def _text(self, *words: str) -> str | None:
        """What git prints, None when it refuses or does not answer."""
        answer = self._git(*words)
        return os.fsdecode(answer.output).strip("\n") if answer is not None and answer.code == 0 else None

    def _listed(self, repository: str) -> list[Listed] | None:
        text = self._text("-C", repository, "worktree", "list", "--porcelain")
        return None if text is None else read_list(text + "\n\n", "\n")

    def _main_of(self, folder: str) -> str | Refusal:
        """The main checkout of the repository that holds `folder`."""
        if bare_at(folder):
            return Refusal(Code.REPOSITORY_UNUSABLE, f"{folder} is a bare repository: name a checkout of it")
        top = top_of(folder)
        if top is None:
            return Refusal(Code.REPOSITORY_UNUSABLE, f"{folder} is in no git repository: `git init` it, or work in the folder itself")
        listed = self._listed(top.path)
        if not listed:
            return Refusal(Code.REPOSITORY_UNUSABLE, f"git cannot read the repository of {folder}")
        return os.path.realpath(listed[0].path)

    # ---------------------------------------------------------------- plan

    def plan(self, folder: str, branch: str | None, base: str | None, *, child: bool) -> Plan | Refusal:
        """What a new worktree would be. Nothing is made. `child`: it branches off `folder`'s own HEAD, else off the main checkout's.

        Refuses: bad_place, repository_unusable, base_unknown, worktree_taken, no_space.
        """
        if self.program is None:
            return Refusal(Code.REPOSITORY_UNUSABLE, "git is not installed there")
        if not branch:
            return Refusal(Code.BAD_PLACE, "a new worktree needs a branch: --branch NAME")
        name = folder_of_branch(branch)
        if isinstance(name, Refusal):
            return name
        main = self._main_of(folder)
        if isinstance(main, Refusal):
            return main
        if self._text("check-ref-format", "--branch", branch) != branch:
            return Refusal(Code.BAD_PLACE, "git takes no branch of that name")
        start = folder if child else main
        if self._text("-C", start, "rev-parse", "--verify", "--quiet", "HEAD^{commit}") is None:
            return Refusal(Code.REPOSITORY_UNUSABLE, f"{start} has no commit yet: make one first")
        commit = self._text("-C", start, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{base or 'HEAD'}^{{commit}}")
        if commit is None:
            return Refusal(Code.BASE_UNKNOWN, f"there is no commit {base!r} in {main}")
        base_branch = self._text("-C", start, "rev-parse", "--symbolic-full-name", "--end-of-options", base or "HEAD")
        if base is None:
            base_branch = self._text("-C", start, "symbolic-ref", "--quiet", "HEAD")
        root = os.path.realpath(root_for(main, self._configured))
        forbidden = may_hold(root, main, self._state)
        if forbidden is not None:
            return forbidden
        path = f"{root}/{name}"
        collision = self._collision(main, root, name, branch, path)
        if collision is not None:
            return collision
        free = free_bytes(root)
        if free is not None and free < self._space_bytes_min:
            mib = 1024 * 1024
            return Refusal(Code.NO_SPACE, f"{free // mib} MiB are free at {root}, at least {self._space_bytes_min // mib} are wanted")
        status = self._text("-C", start, "status", "--porcelain", "--untracked-files=normal")
        return Plan(main, root, path, branch, commit, base_branch or None, dirty=bool(status))

    def _collision(self, main: str, root: str, name: str, branch: str, path: str) -> Refusal | None:
        branches = (self._text("-C", main, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads/") or "").splitlines()
        other = taken(branch, branches)
        if other is not None:
            return Refusal(Code.WORKTREE_TAKEN, f"there is a branch {other} already")
        try:
            other = taken(name, [entry.name for entry in Path(root).iterdir()])
        except OSError:
            other = None  # no such folder yet
        if other is not None:
            return Refusal(Code.WORKTREE_TAKEN, f"there is a folder {root}/{other} already")
        listed = self._listed(main) or []
        if any(os.path.realpath(one.path) == path for one in listed):
            return Refusal(Code.WORKTREE_TAKEN, f"git still knows a worktree at {path}: `git worktree prune` forgets it")
        return None

    # ---------------------------------------------------------------- make

    def make(self, plan: Plan, mark: Mark) -> Refusal | None:
        """Make branch and worktree as planned, marked as ours. When it fails, what it had made is gone again."""
        try:
            Path(plan.root).mkdir(parents=True, exist_ok=True, mode=0o755)
        except OSError as error:
            return Refusal(Code.BAD_PLACE, f"{plan.root}: {error.strerror}")
        words = ("-C", plan.repository, "worktree", "add", "--quiet", "--no-track", "-b", plan.branch, plan.path, plan.base)
        answer = self._git(*words, seconds_max=ADD_S_MAX, writes=True)
        if answer is None or answer.code != 0:
            refusal = refusal_of(_line(answer))
            if refusal.code is not Code.WORKTREE_TAKEN:
                self.unmake(plan)
            return refusal
        top = top_at(plan.path)
        if top is None:
            self.unmake(plan)
            return Refusal(Code.REPOSITORY_UNUSABLE, "git made no worktree there")
        write_private(Path(top.git_dir, MARK), msgspec.json.encode(mark))
        return None

    def unmake(self, plan: Plan) -> None:
        """Take back what was begun for a worktree in which no agent has been: the checkout, its branch, an empty root."""
        self._git("-C", plan.repository, "worktree", "remove", "--force", "--force", plan.path, writes=True)
        shutil.rmtree(plan.path, True)
        self._git("-C", plan.repository, "worktree", "prune", writes=True)
        if self._text("-C", plan.repository, "rev-parse", "--verify", "--quiet", f"refs/heads/{plan.branch}") == plan.base:
            self._git("-C", plan.repository, "update-ref", "-d", f"refs/heads/{plan.branch}", plan.base, writes=True)
        with contextlib.suppress(OSError):  # others are in it
            Path(plan.root).rmdir()

    def mark_of(self, path: str) -> tuple[Top, Mark] | None:
        """Where the worktree at `path` lies and what it was made for; None unless we made it."""
        top = top_at(path)
        if top is None:
            return None
        try:
            return top, msgspec.json.decode(Path(top.git_dir, MARK).read_bytes(), type=Mark)
        except (OSError, msgspec.MsgspecError):
            return None

    # ------------------------------------------------------------- examine

    def examine(self, path: str, users: Sequence[str] | None) -> Examined:
        """All that speaks for or against removing the worktree at `path`. Changes nothing."""
        if not os.path.isdir(path):  # noqa: PTH112  (Path.is_dir raises where a folder above may not be entered)
            return Examined(path=path, there=False)
        marked = self.mark_of(path)
        if marked is None:
            return Examined(path=path)
        top, mark = marked
        branch = self._text("-C", path, "symbolic-ref", "--quiet", "--short", "HEAD")
        locked = Path(top.git_dir, "locked")
        under_way = next((word for name, word in UNDER_WAY.items() if Path(top.git_dir, name).exists()), None)
        commits = self._only_here(path, branch)
        return Examined(
            path=path,
            ours=True,
            branch=branch,
            made_branch=mark.branch,
            locked=locked.read_text(errors="replace").strip() if locked.exists() else None,
            under_way=under_way,
            files=self._changed(path),
            commits=commits,
            merged=self._merged(path, mark) if commits else False,
            users=users,
        )

    def _changed(self, path: str) -> list[str] | None:
        answer = self._git("-C", path, "status", "--porcelain", "-z", "--untracked-files=all", "--ignore-submodules=none")
        if answer is None or answer.code != 0:
            return None
        fields = os.fsdecode(answer.output).split("\0")
        files, skip = [], False
        for field in fields:
            if skip or not field:
                skip = False  # behind a renamed file stands its old name
                continue
            files.append(field[3:].encode(errors="replace").decode())
            skip = field[0] in "RC"
        return files

    def _only_here(self, path: str, branch: str | None) -> list[str] | None:
        """Commits of the worktree that no other branch, tag or remote has."""
        apart = (f"--exclude={branch}",) if branch else ()
        words = ("-C", path, "rev-list", "--abbrev-commit", "HEAD", "--not", *apart, "--branches", "--remotes", "--tags")
        text = self._text(*words)
        return None if text is None else text.splitlines()

    def _merged(self, path: str, mark: Mark) -> bool | None:
        """Whether the content of the worktree's commits is in a base all the same: rebased, squashed, or otherwise the same.

        None: git did not tell.
        """
        doubt = False
        for base in self._bases(path, mark):
            answer = self._in_base(path, base)
            if answer:
                return True
            doubt |= answer is None
        return None if doubt else False

    def _bases(self, path: str, mark: Mark) -> list[str]:
        """Where it may have been merged: the branch that it began from, what that follows, and the remote's main branch."""
        found = []
        if mark.base_branch:
            upstream = self._text("-C", path, "rev-parse", "--symbolic-full-name", f"{mark.base_branch}@{{upstream}}")
            found = [mark.base_branch, upstream or ""]
        found.append(self._text("-C", path, "symbolic-ref", "--quiet", "refs/remotes/origin/HEAD") or "")
        own = f"refs/heads/{mark.branch}"
        return [base for base in dict.fromkeys(found) if base and base != own]

    def _in_base(self, path: str, base: str) -> bool | None:
        fork = self._text("-C", path, "merge-base", base, "HEAD")
        tree = self._text("-C", path, "rev-parse", f"{base}^{{tree}}")
        if fork is None or tree is None:
            return None
        # Merging it would change nothing: all of it is there.
        merged = self._git("-C", path, "merge-tree", "--write-tree", base, "HEAD")
        if merged is not None and merged.code == 0 and merged.output.decode().strip() == tree:
            return True
        cherry = self._text("-C", path, "cherry", base, "HEAD")
        if cherry is None:
            return None
        if cherry and all(line.startswith("-") for line in cherry.splitlines()):
            return True
        # Squashed into one commit, and the base went on from there: the whole as one patch is known by its id.
        whole = self._patch_ids(path, "diff", fork, "HEAD")
        theirs = self._patch_ids(path, "log", "-p", "--no-merges", f"--max-count={COMMITS_MAX}", f"{fork}..{base}")
        if whole is None or theirs is None:
            return None
        return bool(whole) and whole <= theirs

    def _patch_ids(self, path: str, *words: str) -> set[str] | None:
        answer = self._git("-C", path, *words[:1], "--no-ext-diff", "--no-textconv", "--no-color", *words[1:])
        if answer is None or answer.code != 0 or len(answer.output) > PATCH_BYTES_MAX:
            return None

        named = run([self.program or "git", "patch-id", "--stable"], os.environ, ASK_S_MAX, answer.output)
        return None if named is None or named.code != 0 else {line.split()[0] for line in named.output.decode().splitlines() if line}

    def tip(self, path: str) -> str | None:
        """The commit that a checkout is on."""
        return self._text("-C", path, "rev-parse", "--verify", "--quiet", "HEAD")

    # ---------------------------------------------------------------- move

    def trash_for(self, path: str, name: str) -> str:
        """Where a removed worktree waits: beside it, so that it stays on its file system."""
        return f"{Path(path).parent}/{TRASH}/{name}"

    def move(self, path: str, to: str) -> None:
        """Move a worktree. Raises Failed."""
        parent = Path(to).parent
        try:
            parent.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE if parent.name == TRASH else 0o755)
        except OSError as error:
            raise Failed(f"{parent}: {error.strerror}") from error
        answer = self._git("-C", path, "worktree", "move", path, to, seconds_max=ADD_S_MAX, writes=True)
        if answer is None or answer.code != 0:
            raise Failed(_line(answer))

    def purge(self, trash: str, branch: str | None, tip: str | None) -> bool:
        """Remove a worktree in the trash for good, and its branch if that is where it was; True when it is gone."""
        if not within(trash, str(Path(trash).parent)) or Path(trash).parent.name != TRASH:
            return False
        main = self._main_of(trash) if Path(trash).exists() else None
        if isinstance(main, str):
            self._git("-C", main, "worktree", "remove", "--force", trash, seconds_max=ADD_S_MAX, writes=True)
            if branch and tip and not Path(trash).exists():
                self._git("-C", main, "update-ref", "-d", f"refs/heads/{branch}", tip, writes=True)
        if Path(trash).exists():
            return False
        with contextlib.suppress(OSError):  # others wait in it
            Path(trash).parent.rmdir()
        return True
