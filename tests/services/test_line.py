"""`tocsin line`: the list in one line, from the glance that pane-host keeps."""

import json
import os
import subprocess
import sys

import pytest

from builders import NOW_MS
from console_builders import a_list, a_row
from support import Deadline, running
from tocsin.cli import line
from tocsin.contract.ids import WorkspaceId
from tocsin.contract.messages import WorktreesMoved
from tocsin.contract.subjects import WORKTREE_MOVED, WORKTREE_SORTED
from tocsin.pane_host.glances import Glances
from tocsin.runtime import glance
from tocsin.runtime.clock import SystemClock

BLOCKED, IDLE = a_row("api", 1, reason="asks to run npm"), a_row("web")
API = glance.Need("api", "h", "asks to run npm", NOW_MS - 180_000)


def a_glance(at_ms=NOW_MS, classes=(1, 2, 4, 0), needs=(API,), **fields) -> glance.Glance:
    return glance.Glance(at_ms, classes, needs, **fields)


def leave(state, seen: glance.Glance) -> None:
    (state / glance.FILE).write_text(json.dumps(glance.plain(seen)))


def now(state, *words: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "tocsin.cli", "line", *words], env={**os.environ, "TOCSIN_STATE": str(state)}, capture_output=True, text=True
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


# ---------------------------------------------------------------- the glance


async def test_the_glance_follows_the_list(bus, tmp_path):
    await bus.say(WORKTREE_SORTED, a_list(BLOCKED, IDLE))
    async with running(Glances(bus, SystemClock(), WorkspaceId("default"), tmp_path).run()):
        async for _ in Deadline(10, "the list as it stands"):
            if (seen := glance.read(tmp_path)) and seen.classes == (1, 0, 0, 1):
                break
        assert [need.name for need in seen.needs] == ["api"]
        await bus.say(WORKTREE_SORTED, a_list(a_row("api"), IDLE, version=2))
        await bus.say(WORKTREE_MOVED, WorktreesMoved(workspace="default", birth="b", version=2, at_ms=NOW_MS))
        async for _ in Deadline(10, "the change"):
            if (seen := glance.read(tmp_path)) and seen.classes == (0, 0, 0, 2):
                break
        assert seen.needs == ()


async def test_the_move_of_another_workspace_is_not_its_own(bus, tmp_path):
    glances = Glances(bus, SystemClock(), WorkspaceId("default"), tmp_path)
    glances._hear(WorktreesMoved(workspace="other", birth="b", version=2, at_ms=NOW_MS))
    assert not glances._moved.is_set()


async def test_before_there_is_a_list_the_glance_says_so(bus, tmp_path):
    async with running(Glances(bus, SystemClock(), WorkspaceId("default"), tmp_path).run()):
        async for _ in Deadline(10, "a glance"):
            if seen := glance.read(tmp_path):
                break
    assert (seen.why, seen.classes) == ("no list yet", (0, 0, 0, 0))


# ---------------------------------------------------------------- the line


def test_it_counts_the_classes_and_names_the_first_that_needs_somebody():
    assert line.text(a_glance(), NOW_MS, 1) == "✋1 ✓2 ●4 · api: asks to run npm (3m)"


def test_it_may_speak_in_words_and_name_nobody():
    assert line.text(a_glance(), NOW_MS, 0, words=True) == "1 needs you, 2 done, 4 working"


def test_without_any_worktree_it_says_so():
    assert line.text(a_glance(classes=(0, 0, 0, 0), needs=()), NOW_MS, 1) == "no agents"


@pytest.mark.parametrize(("width", "shown"), [(80, "abcdef"), (6, "abcdef"), (4, "abc…"), (0, "…")])
def test_it_is_cut_to_its_width(width, shown):
    assert line.cut("abcdef", width) == shown


def test_a_name_brings_neither_controls_nor_tmux_formats_into_the_line():
    hostile = a_glance(needs=(API._replace(name="#(reboot)\x1b[2J\n"),))
    shown = line.text(hostile, NOW_MS, 1)
    assert not any(ord(character) < 0x20 for character in shown)
    assert "##(reboot)" in line.in_tmux(shown, urgent=True)


def test_a_fresh_glance_is_shown_and_exits_with_0(tmp_path):
    leave(tmp_path, a_glance(at_ms=SystemClock().now_ms()))
    code, shown = now(tmp_path, "--names", "0")
    assert (code, shown) == (0, "✋1 ✓2 ●4\n")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "tocsin: not running\n"),
        ("{", "tocsin: not running\n"),
        ('{"at_ms": 1, "classes": [1, 2]}', "tocsin: not running\n"),
        (json.dumps(glance.plain(a_glance(at_ms=1))), "tocsin: no word for "),
    ],
    ids=["none", "torn", "another shape", "old"],
)
def test_what_is_not_known_is_said_and_exits_with_4(tmp_path, content, said):
    if content is not None:
        (tmp_path / glance.FILE).write_text(content)
    code, shown = now(tmp_path)
    assert code == 4
    assert shown.startswith(said)


def test_json_has_the_glance_and_why_it_cannot_be_trusted(tmp_path):
    leave(tmp_path, a_glance(at_ms=SystemClock().now_ms(), why="no list yet", classes=(0, 0, 0, 0), needs=()))
    code, shown = now(tmp_path, "--json")
    assert code == 4
    assert json.loads(shown)["unknown"] == "no list yet"


def test_it_imports_nothing_that_a_status_line_would_wait_for(tmp_path):
    """A line is drawn every few seconds in each terminal."""
    look = "import sys; from tocsin.cli.main import main; main(['line']); print(sorted({'msgspec', 'asyncio', 'nats', 'pydantic'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", look], env={**os.environ, "TOCSIN_STATE": str(tmp_path)}, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"
