"""The hands' tools against the real things: runners and processes, git and its merges, tmux and its panes, the journal on disk."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from builders import NOW_MS, a_host_command
from hands_builders import SERVER, a_repository, a_script, git
from support import Deadline
from tmux_server import TmuxServer
from tocsin.contract.hosting import HostFact, Saw
from tocsin.contract.refusals import Code, Refusal
from tocsin.pane_host.core.steps import Step
from tocsin.pane_host.core.trash import Keep, reason_to_keep
from tocsin.pane_host.core.tree import MARK
from tocsin.pane_host.hands import runner
from tocsin.pane_host.hands.checkouts import Checkouts, Mark
from tocsin.pane_host.hands.journal import Journal, plain_name
from tocsin.pane_host.hands.launcher import prepare, words_for
from tocsin.pane_host.hands.made import Cabinet, Made
from tocsin.pane_host.hands.screens import Failed, Screens
from tocsin.pane_host.hands.tree import Trees
from tocsin.pane_host.processes import boot_began_ms, boot_id, table_of_this_machine
from tocsin.runtime.instance import Identity, identify

# ------------------------------------------------------------------- runner


class Run:
    """A runner on a folder of its own, with or without a terminal."""

    def __init__(
        self, folder: Path, *lines: str, argv: tuple[str, ...] = (), terminal: bool = False, waits: bool = False, **environment: str
    ):
        self.folder = folder
        self.master = -1
        spec = runner.Spec(
            argv=argv or a_script(*lines),
            cwd=str(folder.parent),
            environment=environment,
            unset=("SECRET_OF_OURS",),
            terminal=terminal,
            waits=waits,
        )
        prepare(folder, spec, {})
        self.processes: list[subprocess.Popen[bytes]] = []
        self.start(terminal)

    def start(self, terminal: bool = False) -> "subprocess.Popen[bytes]":
        if terminal:
            self.master, slave = pty.openpty()
            process = subprocess.Popen(
                words_for(self.folder),
                stdin=slave,
                stdout=slave,
                stderr=slave,
                start_new_session=True,
                preexec_fn=_take_terminal,
                env=_environment(),
            )
            os.close(slave)
        else:
            with (self.folder / runner.OUTPUT).open("ab") as output:
                process = subprocess.Popen(
                    words_for(self.folder),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                    env=_environment(),
                )
        self.processes.append(process)
        return process

    def read(self, name, kind):
        for _ in Deadline(10, f"{name} is written"):
            found = runner.read(self.folder, name, kind)
            if found is not None:
                return found
        raise AssertionError

    @property
    def agent(self) -> int:
        return self.read(runner.AGENT, Identity).pid

    @property
    def ended(self) -> runner.Ended:
        return self.read(runner.EXIT, runner.Ended)

    def end(self) -> None:
        agent = runner.read(self.folder, runner.AGENT, Identity)
        if agent is not None and identify(agent.pid) == agent:
            os.killpg(agent.pid, signal.SIGKILL)
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        if self.master >= 0:
            os.close(self.master)


def _take_terminal():
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _environment():
    return os.environ | {"SECRET_OF_OURS": "x"}


@pytest.fixture
def run(tmp_path):
    made = []

    def start(*lines, **options):
        made.append(Run(tmp_path / f"run{len(made)}", *lines, **options))
        return made[-1]

    yield start
    for one in made:
        one.end()


def test_a_runner_tells_who_it_and_its_agent_are_and_how_it_ended(run):
    one = run("echo the last line", "exit 3")
    assert one.read(runner.RUNNER, Identity).pid == one.processes[0].pid
    assert one.ended.code == 3
    assert one.ended.tail == "the last line"
    assert one.processes[0].wait(10) == 0


def test_exactly_one_runner_ever_takes_a_folder(run):
    one = run("echo x >> starts", "sleep 300")
    agent = one.agent
    assert one.start().wait(10) == runner.TAKEN
    assert one.agent == agent
    for _ in Deadline(5, "it has started"):
        if (one.folder.parent / "starts").exists():
            break
    assert (one.folder.parent / "starts").read_text() == "x\n"


def test_nothing_starts_before_the_word(run):
    one = run("exit 0", waits=True)
    one.read(runner.RUNNER, Identity)
    assert not (one.folder / runner.AGENT).exists()
    (one.folder / runner.GO).touch()
    assert one.ended.code == 0


def test_a_runner_that_is_asked_to_end_before_the_word_starts_nothing(run):
    one = run("exit 0", waits=True)
    one.read(runner.RUNNER, Identity)
    one.processes[0].terminate()
    assert one.processes[0].wait(10) == 0
    assert not (one.folder / runner.AGENT).exists()


@pytest.mark.parametrize(("argv", "code"), [(("no-such-program",), runner.NOT_FOUND), (("/etc/passwd",), runner.NOT_RUNNABLE)])
def test_a_program_that_cannot_be_run_is_an_exit_as_shells_tell_it(run, argv, code):
    one = run(argv=argv)
    assert one.ended.code == code
    assert argv[0] in one.ended.tail


def test_an_agent_has_what_it_is_given_and_not_what_it_must_not_have(run):
    one = run('echo "$GIVEN $SECRET_OF_OURS."', GIVEN="this")
    assert one.ended.tail == "this ."


def test_what_an_agent_leaves_behind_becomes_its_runners_and_is_outlived(run):
    one = run("setsid sleep 300 &", "echo $! > left", "exit 0")
    assert one.ended.code == 0
    left = int((one.folder.parent / "left").read_text())
    for _ in Deadline(5, "it is adopted"):
        if int(Path(f"/proc/{left}/stat").read_text().rpartition(")")[2].split()[1]) == one.processes[0].pid:
            break
    assert one.processes[0].poll() is None
    os.kill(left, signal.SIGKILL)
    assert one.processes[0].wait(10) == 0


def test_keys_of_the_terminal_reach_the_agent_alone(run):
    one = run("trap 'echo heard > heard; exit 4' INT", "echo ready > ready", "while :; do sleep 0.05; done", terminal=True)
    for _ in Deadline(10, "it is ready"):
        if (one.folder.parent / "ready").exists():
            break
    os.write(one.master, b"\x03")
    assert one.ended.code == 4
    assert one.processes[0].poll() is None  # its terminal stays to be looked at


def test_an_agent_that_is_suspended_goes_on_for_there_is_no_shell_to_bring_it_back(run):
    one = run("echo ready > ready", "read line", 'echo "$line" > read', terminal=True)
    for _ in Deadline(10, "it is ready"):
        if (one.folder.parent / "ready").exists():
            break
    os.write(one.master, b"\x1a")
    os.write(one.master, b"still here\n")
    assert one.ended.code == 0
    assert (one.folder.parent / "read").read_text() == "still here\n"


def test_a_closed_terminal_ends_the_agent_and_that_is_told(run):
    one = run("echo ready > ready", "exec sleep 300", terminal=True)
    for _ in Deadline(10, "it is ready"):
        if (one.folder.parent / "ready").exists():
            break
    os.close(one.master)
    one.master = -1
    assert one.ended.code == -signal.SIGHUP
    assert one.processes[0].wait(10) == 0


def test_a_request_to_end_is_handed_on(run):
    one = run("trap 'exit 9' TERM", "echo ready > ready", "while :; do sleep 0.05; done")
    for _ in Deadline(10, "it is ready"):
        if (one.folder.parent / "ready").exists():
            break
    one.processes[0].terminate()
    assert one.ended.code == 9


# --------------------------------------------------------------------- trees


@pytest.fixture
def trees():
    return Trees(table_of_this_machine(boot_began_ms()), boot_id())


def test_a_runners_word_and_the_process_table_name_the_same_process(trees):
    child = subprocess.Popen(["sleep", "300"])
    try:
        process = trees.process_of(identify(child.pid))
        assert process.started_ms == trees.table.started_ms(child.pid)
        assert trees.runs(process)
    finally:
        identity = identify(child.pid)
        child.kill()
        child.wait()
    assert trees.process_of(identity) == process  # it is known by the same name when it has ended
    assert not trees.runs(process)
    assert trees.process_of(Identity(1, "other-boot:5")) is None


def spawned(words, mark, cwd=None):
    """A process that carries a mark."""
    return subprocess.Popen(words, env=os.environ | {MARK: mark}, cwd=cwd)


async def test_a_tree_is_ended_with_what_has_left_it_and_nothing_else(trees, tmp_path):
    mark = "a-mark-of-this-test"
    words = ["bash", "-c", f"setsid sleep 300 & echo $! > {tmp_path}/left; exec sleep 300"]
    root = spawned(words, mark=mark)
    other = spawned(["sleep", "300"], mark=f"{mark}-2")
    try:
        identity = identify(root.pid)
        async for _ in Deadline(5, "its helper runs"):
            found = trees.look([identity], mark)
            if len(found) == 2:
                break
        ending = await trees.end(lambda: [identity], mark)
        assert ending.confirmed
        assert set(ending.ended) == set(found)
        assert other.poll() is None
        assert trees.look([identity], mark) == {}
    finally:
        for one in (root, other):
            one.kill()
            one.wait()


async def test_what_is_asked_to_end_may_take_its_time_and_what_is_spared_stays(trees, tmp_path):
    mark = "another-mark-of-this-test"
    slow = spawned(["bash", "-c", "trap 'exit 0' TERM; touch ready; while :; do sleep 0.05; done"], mark=mark, cwd=tmp_path)
    spared = spawned(["sleep", "300"], mark=mark)
    try:
        async for _ in Deadline(5, "it is ready"):
            if (tmp_path / "ready").exists():
                break
        ending = await trees.end(lambda: (), mark, spare=identify(spared.pid))
        assert ending.confirmed
        assert slow.wait(5) == 0
        assert spared.poll() is None
    finally:
        for one in (slow, spared):
            one.kill()
            one.wait()


# ----------------------------------------------------------------- checkouts


@pytest.fixture
def repository(tmp_path):
    return a_repository(tmp_path / "app")


@pytest.fixture
def checkouts(tmp_path):
    return Checkouts(configured="", state=tmp_path / "state", space_bytes_min=0)


def made(checkouts, repository, branch="feat/x", **options):
    plan = checkouts.plan(str(repository), branch, options.pop("base", None), child=True)
    assert not isinstance(plan, Refusal), plan
    mark = Mark(dispatch="d1", fence=1, branch=plan.branch, base=plan.base, base_branch=plan.base_branch, path=plan.path, made_ms=NOW_MS)
    assert checkouts.make(plan, mark) is None
    return plan, Path(plan.path)


def commit(path, name, text="x\n"):
    (path / name).write_text(text)
    git(path, "add", "-A")
    git(path, "commit", "-qm", f"change {name}")


def verdict(checkouts, path, users=()):
    kept = reason_to_keep(checkouts.examine(str(path), users))
    return kept.code if kept else None


def nothing(repository, path):
    pass


def committed(repository, path):
    commit(path, "new.py")


def merged(repository, path):
    commit(path, "new.py")
    git(repository, "merge", "-q", "--no-ff", "-m", "merge", "feat/x")


def squashed(repository, path):
    commit(path, "new.py", "1\n")
    commit(path, "new.py", "1\n2\n")
    git(repository, "merge", "-q", "--squash", "feat/x")
    git(repository, "commit", "-qm", "squashed")


def squashed_and_the_base_went_on_over_it(repository, path):
    squashed(repository, path)
    commit(repository, "new.py", "something else altogether\n")


def squashed_in_part(repository, path):
    squashed(repository, path)
    commit(path, "more.py")


def rebased(repository, path):
    commit(path, "new.py")
    commit(path, "more.py")
    commit(repository, "other.py")
    git(repository, "cherry-pick", "feat/x~1", "feat/x")


def pushed(repository, path):
    origin = repository.parent / "origin.git"
    git(repository.parent, "init", "-q", "--bare", str(origin))
    git(repository, "remote", "add", "origin", str(origin))
    commit(path, "new.py")
    git(path, "push", "-q", "origin", "feat/x")


def pushed_in_part(repository, path):
    pushed(repository, path)
    commit(path, "more.py")


def elsewhere(repository, path):
    commit(path, "new.py")
    git(repository, "branch", "keep", "feat/x")


def tagged(repository, path):
    commit(path, "new.py")
    git(repository, "tag", "v1", "feat/x")


def modified(repository, path):
    (path / "app.py").write_text("changed\n")


def staged(repository, path):
    (path / "app.py").write_text("changed\n")
    git(path, "add", "-A")


def untracked(repository, path):
    (path / "sub").mkdir()
    (path / "sub" / "a\nb").write_text("")


def ignored(repository, path):
    (repository / ".git" / "info" / "exclude").write_text("*.log\n")
    (path / "build.log").write_text("")


def deleted(repository, path):
    (path / "app.py").unlink()


def detached(repository, path):
    git(path, "checkout", "-q", "--detach")


def on_another_branch(repository, path):
    git(path, "checkout", "-q", "-b", "other")


def locked(repository, path):
    git(repository, "worktree", "lock", "--reason", "on a stick", str(path))


def conflicted(repository, path):
    commit(repository, "app.py", "theirs\n")
    commit(path, "app.py", "ours\n")
    with pytest.raises(subprocess.CalledProcessError):
        git(path, "merge", "main")


VERDICTS = [
    (nothing, None), (merged, None), (squashed, None), (squashed_and_the_base_went_on_over_it, None), (rebased, None), (pushed, None),
    (elsewhere, None), (tagged, None), (ignored, None),
    (committed, Keep.UNMERGED), (squashed_in_part, Keep.UNMERGED), (pushed_in_part, Keep.UNMERGED),
    (modified, Keep.DIRTY), (staged, Keep.DIRTY), (untracked, Keep.DIRTY), (deleted, Keep.DIRTY), (conflicted, Keep.DIRTY),
    (detached, Keep.OTHER_BRANCH), (on_another_branch, Keep.OTHER_BRANCH), (locked, Keep.LOCKED),
]  # fmt: skip


@pytest.mark.parametrize(("change", "code"), VERDICTS, ids=lambda value: getattr(value, "__name__", ""))
def test_what_git_knows_decides_whether_a_worktree_may_go(checkouts, repository, change, code):
    _, path = made(checkouts, repository)
    change(repository, path)
    assert verdict(checkouts, path) is code


def test_a_look_changes_nothing_in_the_repository(checkouts, repository):
    _, path = made(checkouts, repository)
    squashed(repository, path)
    (path / "app.py").touch()

    def files():
        inside = (one for one in (repository / ".git").rglob("*") if one.is_file() and "objects" not in one.parts)
        return {one: (one.stat().st_mtime_ns, one.read_bytes()) for one in inside}

    before = files()
    verdict(checkouts, path)
    assert files() == before


def test_a_git_that_does_not_answer_leaves_it_unknown(checkouts, repository, monkeypatch):
    _, path = made(checkouts, repository)
    monkeypatch.setattr(Checkouts, "_git", lambda *_, **__: None)
    assert verdict(checkouts, path) in (Keep.UNKNOWN, Keep.OTHER_BRANCH)


def test_what_was_begun_is_taken_back_without_a_trace(checkouts, repository):
    plan, path = made(checkouts, repository)
    (path / "half").write_text("made by a setup")
    checkouts.unmake(plan)
    assert not path.exists()
    assert not path.parent.exists()
    assert git(repository, "branch", "--list", "feat/x") == ""
    assert checkouts.plan(str(repository), "feat/x", None, child=True) == plan


def test_a_branch_that_has_moved_is_never_taken_back(checkouts, repository):
    plan, path = made(checkouts, repository)
    commit(path, "work.py")
    checkouts.unmake(plan)
    assert git(repository, "log", "--format=%s", "-1", "feat/x") == "change work.py"


def test_a_base_may_be_a_branch_a_tag_or_a_commit(checkouts, repository):
    first = git(repository, "rev-parse", "HEAD")
    commit(repository, "later.py")
    git(repository, "tag", "v1")
    for name, base, expected in (("a", "main", "main"), ("b", "v1", "v1"), ("c", first, first)):
        _, path = made(checkouts, repository, name, base=base)
        assert git(path, "rev-parse", "HEAD") == git(repository, "rev-parse", f"{expected}^{{commit}}")


def test_a_worktree_of_a_worktree_goes_beside_the_main_checkout(checkouts, repository):
    _, first = made(checkouts, repository, "one")
    plan, second = made(checkouts, first, "two")
    assert second.parent == first.parent
    assert plan.repository == str(repository)


def test_hooks_of_the_repository_run_for_a_new_checkout_and_their_failure_is_told(checkouts, repository):
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.write_text("#!/bin/sh\necho 'fatal: no network' >&2\nexit 1\n")
    hook.chmod(0o755)
    plan = checkouts.plan(str(repository), "feat/x", None, child=True)
    refusal = checkouts.make(
        plan, Mark(dispatch="d", fence=1, branch="feat/x", base=plan.base, base_branch=None, path=plan.path, made_ms=0)
    )
    assert refusal.code is Code.REPOSITORY_UNUSABLE
    assert "no network" in refusal.message
    assert not Path(plan.path).exists()
    assert git(repository, "branch", "--list", "feat/x") == ""


def test_only_what_lies_in_a_trash_is_ever_purged(checkouts, repository):
    _, path = made(checkouts, repository)
    assert not checkouts.purge(str(path), "feat/x", None)
    assert not checkouts.purge(str(repository), "main", None)
    assert path.exists()


# --------------------------------------------------------------------- tmux


@pytest.fixture
def server(monkeypatch):
    made_here = TmuxServer(SERVER)
    monkeypatch.setenv("TMUX_TMPDIR", str(made_here.folder))
    monkeypatch.delenv("TMUX", raising=False)
    yield made_here
    made_here.close()


async def test_a_pane_is_made_once_under_its_name_and_found_by_its_mark(server):
    screens = Screens(SERVER)
    assert await screens.find("m1") is None
    opened = await screens.open("one", "m1", "/", ("sleep", "300"))
    assert opened == await screens.find("m1")
    assert (opened.server_pid, opened.pid) == (server.pid, server.pane_pid(opened.number))
    assert await screens.find("m") is None
    with pytest.raises(Failed, match="duplicate"):
        await screens.open("one", "m2", "/", ("sleep", "300"))
    assert len(server.tmux("list-panes", "-a").splitlines()) == 1


async def test_a_terminal_inherits_neither_our_addresses_nor_our_names(server, monkeypatch, tmp_path):
    for name in ("NATS_URL", "REDIS_URL", "TOCSIN_DISPATCH", "TOCSIN_MARK"):
        monkeypatch.setenv(name, "ours")
    await Screens(SERVER).open("one", "m1", str(tmp_path), ("sh", "-c", "env > env; sleep 300"))
    async for _ in Deadline(5, "it has told"):
        if (tmp_path / "env").exists() and (tmp_path / "env").read_text():
            break
    assert "ours" not in (tmp_path / "env").read_text()


TEXTS = ("plain", "quotes ' \" ` $HOME \\ ; #{pane_id} %1 ~", "two\nlines", "Grüße 漢字 🙂", "-t", "x" * 5_000)


@pytest.mark.parametrize("text", TEXTS)
async def test_a_text_arrives_as_it_is(server, tmp_path, text):
    screens, read = Screens(SERVER), tmp_path / "read"
    script = (
        f"import sys, tty, os; tty.setraw(0); print('ready', flush=True)\nwhile True: open({str(read)!r}, 'ab').write(os.read(0, 65536))"
    )
    opened = await screens.open("one", "m1", "/", (sys.executable, "-u", "-c", script))
    async for _ in Deadline(10, "it is ready"):
        if "ready" in server.tmux("capture-pane", "-p", "-t", opened.number):
            break
    await screens.paste(screens.socket, opened.number, text, tmp_path)
    async for _ in Deadline(10, "all of it has arrived"):
        if read.exists() and len(read.read_bytes()) >= len(text.encode()):
            break
    assert read.read_bytes().replace(b"\r", b"\n").decode() == text
    assert server.tmux("list-buffers") == ""
    assert [one.name for one in tmp_path.iterdir()] == ["read"]


async def test_a_screen_is_read_with_its_cursor_and_whether_a_person_scrolls_in_it(server):
    screens = Screens(SERVER)
    opened = await screens.open("one", "m1", "/", ("sh", "-c", "printf 'a\\nbc'; sleep 300"))
    async for _ in Deadline(5, "it is drawn"):
        screen = await screens.screen(screens.socket, opened.number)
        if screen is not None and screen.rows[1] == "bc":
            break
    assert (screen.cursor_x, screen.cursor_y, screen.scrolled) == (2, 1, False)
    server.tmux("copy-mode", "-t", opened.number)
    assert (await screens.screen(screens.socket, opened.number)).scrolled
    assert await screens.screen(screens.socket, "%99") is None


async def test_a_pane_that_is_not_there_has_no_server_and_no_history(server):
    screens = Screens(SERVER)
    await screens.open("one", "m1", "/", ("sleep", "300"))
    assert await screens.server_of(screens.socket, "%0") == server.pid
    assert await screens.server_of(screens.socket, "%1") is None
    assert await screens.history(screens.socket, "%1") is None
    assert await screens.server_of(f"{screens.socket}-none", "%0") is None


# -------------------------------------------------------------- what is kept


def test_an_order_is_read_again_with_its_steps_and_facts(tmp_path):
    command = a_host_command(dispatch="r1.T/1*.1", step="a b")
    page = Journal(tmp_path).open(command)
    page.began(Step.PASTE, text="x")
    page.did(Step.PASTE)
    number = page.fact(HostFact(host="h", dispatch="d1", fence=1, step="s", saw=Saw.TYPED, at_ms=NOW_MS))
    page.said(number)
    again = Journal(tmp_path).page(command)
    assert again.account == page.account
    assert again.account.unsaid == []


def test_a_line_that_a_crash_has_cut_off_costs_only_itself(tmp_path):
    command = a_host_command()
    journal = Journal(tmp_path)
    journal.open(command).began(Step.PASTE)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-5])
    page = Journal(tmp_path).page(command)
    assert page.account.began == {}
    page.began(Step.ENTER)
    assert set(Journal(tmp_path).page(command).account.began) == {Step.ENTER}


def test_orders_that_are_over_are_forgotten_after_their_time_and_others_never(tmp_path):
    journal = Journal(tmp_path)
    for dispatch in ("over", "open", "kept", "young"):
        page = journal.open(a_host_command(dispatch=dispatch, at_ms=NOW_MS if dispatch == "young" else 0))
        if dispatch != "open":
            page.over()
    assert journal.forget_before(NOW_MS, {"kept"}) == 1
    assert {dispatch for dispatch, _, _ in Journal(tmp_path).pages} == {"open", "kept", "young"}


def test_names_of_any_kind_make_different_files():
    names = [plain_name(*parts) for parts in (("a.b",), ("a-b",), ("a", "b"), ("../x",), ("x" * 300,), ("ü",), ("",))]
    assert len(set(names)) == len(names)
    assert not any("/" in name or "." in name or len(name) > 100 for name in names)


def test_a_terminal_is_found_by_the_dispatch_that_made_it_or_has_it_now(tmp_path):
    cabinet = Cabinet(tmp_path)
    one = Made(
        dispatch="d1", fence=1, step="start", run="r", task="t", agent="generic", terminal="tmux", mark="m", path="/", made_ms=1, pane="p1"
    )
    cabinet.folder_of(one).mkdir()
    cabinet.put(one)
    assert Cabinet(tmp_path).get("d1") == one
    assert Cabinet(tmp_path).of_pane("p1") == one
    changed = cabinet.change(one, released=True)
    assert cabinet.of_pane("p1") is None
    assert Cabinet(tmp_path).get("d1") == changed
    assert cabinet.get("d2") is None


def test_a_record_that_cannot_be_read_hides_no_other(tmp_path):
    cabinet = Cabinet(tmp_path)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "made.json").write_text("{")
    assert list(Cabinet(tmp_path)) == list(cabinet) == []


def test_a_runner_starts_fast_and_needs_no_service():
    command = [sys.executable, "-X", "importtime", "-c", f"import {runner.__name__}"]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    for heavy in ("asyncio", "nats", "pydantic", "redis"):
        assert f" {heavy}\n" not in loaded
