"""The verbs that read the list, as a person and a script meet them: `ls`, `why`, `jump`, `watch`."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

import msgspec
import pytest

from builders import NOW_MS
from support import Deadline
from tmux_server import TmuxServer
from tocsin.bus.nats_bus import connect
from tocsin.cli.watch import Settled
from tocsin.contract.messages import Evidence, PaneRow, Row, State, WorktreesSorted
from tocsin.contract.refusals import Refusal
from tocsin.contract.subjects import WORKTREE_SORTED
from tocsin.listing.age import age
from tocsin.listing.find import choose, grade, resolve
from tocsin.runtime.selecting import selection


def a_pane(**fields) -> PaneRow:
    defaults = {"id": "p1", "agent": "claude", "state": State.DONE, "since_ms": NOW_MS, "reason": "finished its turn"}
    return PaneRow(evidence=Evidence.OBSERVED, **(defaults | fields))


def a_row(name="api", rank=1, attention_class=4, **fields) -> Row:
    defaults = {
        "id": f"{name}-1",
        "path": f"/w/{name}",
        "host": "h",
        "attention_at": 0,
        "reason": "no agent",
        "evidence": Evidence.NO_SIGNAL,
    }
    return Row(name=name, rank=rank, attention_class=attention_class, **(defaults | fields))


def a_list(*rows: Row, version=1, **fields) -> WorktreesSorted:
    placed = tuple(msgspec.structs.replace(row, rank=rank) for rank, row in enumerate(rows, 1))
    return WorktreesSorted(**({"workspace": "default", "birth": "b", "version": version, "at_ms": NOW_MS, "worktrees": placed} | fields))


BLOCKED = a_row("api", attention_class=1, attention_at=NOW_MS, reason="asks to run npm", evidence=Evidence.OBSERVED, panes=(a_pane(),))
IDLE = a_row("web", branch="main", dirty=True)


class Command:
    """`tocsin` as a process, on the test's bus."""

    def __init__(self, url: str, state, **environment: str) -> None:
        self.environment = {**os.environ, "NATS_URL": url, "TOCSIN_STATE": str(state), "TOCSIN_HOST": "h", **environment}
        self.environment.pop("TMUX", None)
        self.environment |= environment

    def run(self, *words: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, "-m", "tocsin.cli", *words], env=self.environment, capture_output=True, text=True, timeout=30
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, done.stdout, done.stderr

    def start(self, *words: str, **files) -> "subprocess.Popen[str]":
        return subprocess.Popen([sys.executable, "-m", "tocsin.cli", *words], env=self.environment, text=True, **files)


@pytest.fixture
def tocsin(nats_server, tmp_path) -> Command:
    return Command(nats_server.url, tmp_path)


# ---------------------------------------------------------------- ls


async def test_ls_json_is_the_list_in_order_and_every_row_has_its_panes(bus, tocsin):
    await bus.say(WORKTREE_SORTED, a_list(BLOCKED, IDLE, version=7))
    code, out, _ = tocsin.run("ls", "--json")
    said = json.loads(out)
    assert code == 0
    assert (said["version"], said["birth"], said["at"], said["restored"]) == (7, "b", NOW_MS, False)
    assert [row["name"] for row in said["worktrees"]] == ["api", "web"]
    first = said["worktrees"][0]
    assert list(first)[:10] == ["rank", "id", "name", "path", "host", "class", "attention_at", "evidence", "reason", "panes"]
    assert (first["rank"], first["class"], first["attention_at"], first["evidence"]) == (1, 1, NOW_MS, "observed")
    assert first["panes"][0]["id"] == "p1"
    assert said["worktrees"][1]["panes"] == []


async def test_ls_for_a_person_has_class_name_branch_reason_and_agents(bus, tocsin):
    await bus.say(WORKTREE_SORTED, a_list(BLOCKED, IDLE))
    code, out, _ = tocsin.run("ls")
    assert code == 0
    heading, first, second = out.splitlines()
    assert heading.split() == ["#", "class", "worktree", "branch", "age", "why", "agents"]
    assert first.split()[:4] == ["1", "needs", "you", "api"]
    assert "asks to run npm" in first
    assert first.split()[-1] == "claude"
    assert second.split()[:4] == ["2", "idle", "web", "main*"]


async def test_ls_marks_what_nobody_observed_and_names_hosts_when_there_are_two(bus, tocsin):
    inferred = a_row("gem", attention_class=3, attention_at=1, reason="its title says that it works", evidence=Evidence.INFERRED, host="g")
    await bus.say(WORKTREE_SORTED, a_list(inferred, IDLE))
    _, out, _ = tocsin.run("ls")
    assert "~inferred" in out
    assert "gem (g)" in out
    assert "web (h)" in out


async def test_ls_says_that_a_restored_list_is_old(bus, tocsin):
    await bus.say(WORKTREE_SORTED, a_list(IDLE, restored=True))
    assert "do not know yet what has changed" in tocsin.run("ls")[1]


async def test_ls_says_what_to_do_when_there_is_nothing_to_rank(bus, tocsin):
    await bus.say(WORKTREE_SORTED, a_list())
    code, out, _ = tocsin.run("ls")
    assert code == 0
    assert "tocsin doctor" in out


async def test_a_name_cannot_write_to_the_terminal(bus, tocsin):
    await bus.say(WORKTREE_SORTED, a_list(a_row("evil\x1b[2J\n")))
    assert "\x1b" not in tocsin.run("ls")[1]
    assert "\x1b" not in tocsin.run("why", "evil")[1]


async def test_a_bus_without_a_list_is_never_an_empty_list(bus, tocsin):
    code, out, err = tocsin.run("ls", "--json")
    assert (code, out) == (4, "")
    refused = json.loads(err)
    assert refused["code"] == "no_list"
    assert "nobody publishes" in refused["message"]


@pytest.mark.parametrize("words", [["ls"], ["why", "api"], ["jump", "api"], ["watch"]], ids=lambda words: words[0])
def test_a_bus_that_is_away_is_unavailable_and_says_the_next_step(words, tmp_path):
    code, out, err = Command("nats://127.0.0.1:1", tmp_path).run(*words)
    assert (code, out) == (4, "")
    assert "does not answer" in err
    assert "next: tocsin doctor" in err


def test_without_an_instance_it_says_how_to_start_one(tmp_path):
    command = Command("", tmp_path)
    del command.environment["NATS_URL"]
    code, _, err = command.run("ls")
    assert code == 4
    assert "tocsin up" in err


# ---------------------------------------------------------------- why


async def test_why_answers_in_one_line_for_one_and_for_two(bus, tocsin):
    await bus.say(WORKTREE_SORTED, a_list(BLOCKED, IDLE))
    _, one, _ = tocsin.run("why", "web")
    assert one.splitlines() == ["web is 2 of 2: idle, no agent [no signal]"]
    _, two, _ = tocsin.run("why", "web", "api")
    assert two.splitlines() == ["api stands above web: needs you (asks to run npm) comes before idle (no agent)"]
    said = json.loads(tocsin.run("why", "api", "web", "--json")[1])
    assert said["decided_by"] == "class"
    assert [row["id"] for row in said["worktrees"]] == ["api-1", "web-1"]


async def test_why_refuses_a_name_that_is_nobodys_or_several(bus, tocsin):
    await bus.say(WORKTREE_SORTED, a_list(a_row("api"), a_row("apple")))
    assert tocsin.run("why", "zebra")[0] == 3
    code, _, err = tocsin.run("why", "ap")
    assert code == 3
    assert "api-1, apple-1" in err


def test_a_worktree_is_named_by_id_name_or_the_beginning_of_either_if_only_one_fits():
    rows = [a_row("api"), a_row("api-two"), a_row("web")]
    assert resolve(rows, "api") is rows[0]
    assert resolve(rows, "api-two-1") is rows[1]
    assert resolve(rows, "w") is rows[2]
    assert isinstance(resolve(rows, "ap"), Refusal)


# ---------------------------------------------------------------- jump


@pytest.mark.parametrize(
    ("text", "query", "best"),
    [("api", "API", 0), ("api-two", "api", 1), ("my-api", "api", 2), ("a-long-pile-in", "api", 3), ("web", "api", 4), ("é", "É", 0)],
)
def test_a_query_fits_exactly_then_as_a_beginning_then_inside_then_by_its_letters(text, query, best):
    assert grade(text, query) == best


def test_a_better_fit_comes_first_and_among_equal_fits_the_one_that_needs_a_person_most():
    rows = list(a_list(a_row("web-api"), a_row("api-two"), a_row("api-one"), a_row("docs", branch="api")).worktrees)
    assert choose(rows, "api").name == "docs"
    assert choose(rows[:3], "api").name == "api-two"
    assert choose(rows, "zz") is None


def test_outside_its_server_the_attach_command_is_left_to_the_user():
    commands, left = selection("/tmp/with space/s %7", None)
    assert [command[3] for command in commands] == ["select-window", "select-pane"]
    assert left == "tmux -S '/tmp/with space/s' attach-session -t %7"
    assert selection("/tmp/s %7", "/tmp/other,1,0")[1] == "env -u TMUX tmux -S /tmp/s attach-session -t %7"


def test_inside_its_server_the_client_is_switched():
    commands, left = selection("/tmp/s %7", "/tmp/s,123,0")
    assert commands[-1] == ["tmux", "-S", "/tmp/s", "switch-client", "-t", "%7"]
    assert left is None


@pytest.fixture
def tmux():
    server = TmuxServer("jump")
    yield server
    server.close()


def active_pane(tmux: TmuxServer, session: str) -> str:
    return tmux.tmux("display-message", "-p", "-t", f"{session}:", "#{pane_id}")


async def test_jump_selects_the_pane_that_decided(bus, tocsin, tmux):
    target = tmux.open("sleep 300", session="one")
    tmux.open("sleep 300")
    tmux.tmux("select-window", "-t", "one:1")
    assert active_pane(tmux, "one") != target
    row = msgspec.structs.replace(BLOCKED, panes=(a_pane(locator=f"{tmux.socket} {target}"), a_pane(id="p2", locator=f"{tmux.socket} %99")))
    await bus.say(WORKTREE_SORTED, a_list(row, IDLE))

    printed = tocsin.run("jump", "ap", "--print")
    assert printed[:2] == (0, f"tmux -S {tmux.socket} attach-session -t {target}\n")
    assert active_pane(tmux, "one") != target

    code, out, _ = tocsin.run("jump", "ap")
    assert (code, out) == (0, f"tmux -S {tmux.socket} attach-session -t {target}\n")
    assert active_pane(tmux, "one") == target


async def test_jump_inside_tmux_switches_the_client_to_another_session(bus, tocsin, tmux):
    tmux.open("sleep 300", session="one")
    target = tmux.open("sleep 300", session="two")
    tmux.attach()
    tmux.tmux("switch-client", "-t", "one:")
    row = msgspec.structs.replace(BLOCKED, panes=(a_pane(locator=f"{tmux.socket} {target}"),))
    await bus.say(WORKTREE_SORTED, a_list(row))
    inside = Command(tocsin.environment["NATS_URL"], tocsin.environment["TOCSIN_STATE"], TMUX=f"{tmux.socket},{tmux.pid},0")
    assert inside.run("jump", "api") == (0, "", "")
    assert tmux.tmux("list-clients", "-F", "#{client_session}") == "two"


async def test_jump_says_when_the_pane_is_gone_when_there_is_none_and_when_it_is_on_another_host(bus, tocsin, tmux):
    tmux.open("sleep 300", session="one")
    gone = msgspec.structs.replace(BLOCKED, panes=(a_pane(locator=f"{tmux.socket} %99"),))
    far = a_row("far", host="g", panes=(a_pane(locator="/tmp/s %1"),))
    await bus.say(WORKTREE_SORTED, a_list(gone, IDLE, far))
    code, out, _ = tocsin.run("jump", "api")
    assert code == 1
    assert "can't find" in out
    assert tocsin.run("jump", "web")[:2] == (1, "no terminal of web is known; its folder:\ncd /w/web\n")
    assert tocsin.run("jump", "far")[:2] == (1, "far is on g; there:\ntmux -S /tmp/s attach-session -t %1\n")
    assert json.loads(tocsin.run("jump", "far", "--json")[1])["selected"] is False
    assert tocsin.run("jump", "zzz")[0] == 3


# ---------------------------------------------------------------- watch


def shown(settled: Settled, at_ms: int) -> list[str]:
    return [row.name for row in settled.rows(at_ms)]


def in_class(name: str, attention_class: int, **fields) -> Row:
    return a_row(name, attention_class=attention_class, **fields)


def test_rows_keep_their_places_for_three_seconds_but_say_what_is_true():
    settled = Settled()
    settled.hear(a_list(in_class("a", 2), in_class("b", 3), in_class("c", 3)), 0)
    settled.hear(a_list(in_class("b", 2), in_class("a", 3), in_class("c", 3)), 1_000)
    assert settled.due() == 4_000
    assert shown(settled, 3_999) == ["a", "b", "c"]
    assert settled.rows(3_999)[0].attention_class == 3
    assert shown(settled, 4_000) == ["b", "a", "c"]
    assert settled.due() is None


def test_further_changes_do_not_put_the_move_off():
    settled = Settled()
    settled.hear(a_list(in_class("a", 2), in_class("b", 3)), 0)
    for at_ms in (1_000, 2_000, 3_000):
        settled.hear(a_list(in_class("b", 2, reason=str(at_ms)), in_class("a", 3)), at_ms)
    assert settled.due() == 4_000


def test_a_move_that_is_taken_back_is_never_seen():
    settled = Settled()
    settled.hear(a_list(in_class("a", 2), in_class("b", 3)), 0)
    settled.hear(a_list(in_class("b", 2), in_class("a", 3)), 1_000)
    settled.hear(a_list(in_class("a", 2), in_class("b", 3)), 2_000)
    assert settled.due() is None
    assert shown(settled, 9_000) == ["a", "b"]


def test_a_row_that_begins_to_need_a_person_moves_at_once_and_only_it():
    settled = Settled()
    settled.hear(a_list(in_class("a", 2), in_class("b", 3), in_class("c", 3)), 0)
    settled.hear(a_list(in_class("c", 1), in_class("b", 2), in_class("a", 3)), 1_000)
    assert shown(settled, 1_000) == ["c", "a", "b"]
    assert shown(settled, 4_000) == ["c", "b", "a"]


def test_a_worktree_that_appears_or_leaves_moves_all_at_once():
    settled = Settled()
    settled.hear(a_list(in_class("a", 2), in_class("b", 3)), 0)
    settled.hear(a_list(in_class("b", 2), in_class("a", 3), in_class("c", 4)), 1_000)
    assert shown(settled, 1_000) == ["b", "a", "c"]
    settled.hear(a_list(in_class("c", 2), in_class("b", 3)), 1_100)
    assert shown(settled, 1_100) == ["c", "b"]


def lines_of(path) -> Sequence[str]:
    return path.read_text().splitlines()


async def test_watch_prints_every_list_goes_on_over_a_restart_of_the_bus_and_says_when_it_is_cut_off(nats_server, tocsin, tmp_path):
    out, err = tmp_path / "out", tmp_path / "err"
    with out.open("w") as to, err.open("w") as errors:
        watch = tocsin.start("watch", "--json", stdout=to, stderr=errors)
    try:
        async with connect(nats_server.url, name="test") as bus:
            async for _ in Deadline(15, "it says that there is no list"):
                if "nobody publishes" in err.read_text():
                    break
            for version in (1, 2):
                await bus.say(WORKTREE_SORTED, a_list(BLOCKED, version=version))
                async for _ in Deadline(15, f"list {version}"):
                    if len(lines_of(out)) == version:
                        break
        nats_server.end(signal.SIGKILL)
        async for _ in Deadline(20, "it says that it is cut off"):
            if "Cut off" in err.read_text():
                break
        nats_server.start()
        async with connect(nats_server.url, name="again") as bus:
            await bus.say(WORKTREE_SORTED, a_list(IDLE, version=3))
            async for _ in Deadline(20, "the list after the restart"):
                if len(lines_of(out)) == 3:
                    break
        assert [json.loads(line)["version"] for line in lines_of(out)] == [1, 2, 3]
        watch.send_signal(signal.SIGINT)
        assert watch.wait(10) == 130
    finally:
        if watch.poll() is None:
            watch.kill()
            watch.wait()
    assert "Traceback" not in err.read_text()


async def test_watch_draws_in_a_terminal(bus, tocsin, tmux, tmp_path):
    await bus.say(WORKTREE_SORTED, a_list(BLOCKED, IDLE))
    variables = " ".join(f"{name}={tocsin.environment[name]}" for name in ("NATS_URL", "TOCSIN_STATE"))
    pane = tmux.open(f"env {variables} {sys.executable} -m tocsin.cli watch", session="watch")
    async for _ in Deadline(15, "the list is drawn"):
        drawn = tmux.tmux("capture-pane", "-p", "-t", pane)
        if "needs you" in drawn and "web" in drawn:
            break
    await bus.say(
        WORKTREE_SORTED,
        a_list(msgspec.structs.replace(IDLE, attention_class=1, attention_at=time.time_ns() // 1_000_000), BLOCKED, version=2),
    )
    async for _ in Deadline(15, "the promoted row is on top"):
        drawn = tmux.tmux("capture-pane", "-p", "-t", pane)
        if "web" in drawn and drawn.index("web") < drawn.index("api"):
            break


def test_an_age_is_told_in_one_unit():
    assert [age(NOW_MS - ms, NOW_MS) for ms in (-5, 8_000, 61_000, 3_600_000, 90_000_000)] == ["0s", "8s", "1m", "1h", "1d"]
