"""Every bench measures: a look at each of them, whose figures say nothing and are held to nothing."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support import DATA
from tocsin.cli.bench import rows

ROOT = Path(__file__).parents[2]
LOOK_S_MAX = 120


def measure(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TOCSIN_")} | {
        "PYTHONPATH": str(ROOT / "tests")
    }
    return subprocess.run(
        [sys.executable, *words, "--smoke", "--json"],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LOOK_S_MAX,
        check=False,
    )


def names(done: subprocess.CompletedProcess[str]) -> set[str]:
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(one["value"] >= 0 and one["n"] >= 1 and one["spread"][0] <= one["ratio"] <= one["spread"][1] for one in told)
    return {one["name"] for one in told}


BENCH = {
    "hooks": {
        "hook-to-list", "hook-answer", "hook-to-list-node", "events-node", "events-node-window", "hook-answer-async", "cpu-per-event", "lost",
        "out-of-order", "order",
    },
    "ranking": {"place", "place-and-row", "growth"},
    "commands": {"task-update-large", "task-show-large", "task-list-large", "worker-list-large", "gate-list-large", "mutation"},
    "mail": {"mail-check"},
    "wakes": {"wake", "wake-from-sending"},
}  # fmt: skip
INSTALLED = {
    "hooks": {"hook-to-list", "hook-answer", "events", "cpu-per-event"},
    "calls": {"hook-command", "hook-command-end", "ls", "up"},
    "idle": {"idle-memory", "idle-memory-one-process", "idle-cpu", "idle-cpu-one-process"},
}


@pytest.mark.parametrize("question", BENCH)
def test_the_bench_of_the_clone_measures(question: str):
    assert names(measure("-m", "bench", question)) == BENCH[question]


@pytest.mark.parametrize("question", INSTALLED)
def test_the_installed_command_measures_on_an_instance_of_its_own(question: str):
    assert names(measure("-P", "-m", "tocsin.cli", "bench", question)) == INSTALLED[question]


def test_nothing_is_lost_nor_out_of_order_also_in_a_look():
    done = measure("-m", "bench", "hooks", "--gate", "lost", "--gate", "out-of-order", "--gate", "order")
    assert done.returncode == 0, done.stderr


def test_a_missed_gate_fails_the_bench_and_a_gate_for_nothing_is_bad_usage():
    missed = measure("-m", "bench", "ranking", "--gate", "growth=0")
    assert missed.returncode == 1
    assert "missed growth" in missed.stderr
    assert measure("-m", "bench", "ranking", "--gate", "growht=8").returncode == 2


def test_the_page_of_figures_has_every_row_that_the_bench_measures():
    page = (ROOT / "docs" / "figures.md").read_text()
    measured = set().union(*BENCH.values(), INSTALLED["calls"], INSTALLED["idle"])
    assert set(re.findall(r"^\| `([a-z-]+)` ", page, re.MULTILINE)) == measured
    assert all(heading in page for heading in rows.HEAD)


# ------------------------------------------------------------------- the Node process


def hooks_alone(case: dict) -> bool:
    """No title in it says anything: the peer is told of none."""
    tabs = [tab for worktree in case["worktrees"] for tab in worktree["tabs"]]
    titles = [pane.get("title") for tab in tabs for pane in tab["panes"]] + [tab.get("title") for tab in tabs]
    return any(tab["ptyLive"] for tab in tabs) and not set(titles) - {None, "bash", "zsh"}


CASES = [case for case in json.loads((DATA / "sort-cases.json").read_text()) if hooks_alone(case)]

RANK_ALL = """
import { readFileSync } from 'node:fs';
import { rank } from './tests/bench/seed_sort.mjs';
const numbers = { NaN: NaN, Infinity: Infinity, '-Infinity': -Infinity };
const cases = JSON.parse(readFileSync(0), (key, value) => (typeof value === 'string' && value in numbers ? numbers[value] : value));
console.log(JSON.stringify(cases.map(({ now, worktrees }) => {
  const tabsOf = new Map(worktrees.map(({ id, tabs }) => [id, tabs.map((tab) => ({ id: tab.id }))]));
  const panes = worktrees.flatMap(({ tabs }) => tabs.flatMap((tab) => tab.panes.map((pane) => [`${tab.id}:${pane.id}`, pane.hook])));
  return rank(worktrees, tabsOf, new Map(panes.filter(([, hook]) => hook)), now).map(({ worktree }) => worktree.id);
})));
"""


def test_the_node_process_sorts_as_the_given_cases_have_it():
    node = shutil.which("node")
    assert node is not None, "node is missing: install nodejs"
    done = subprocess.run(
        [node, "--input-type=module", "-e", RANK_ALL], input=json.dumps(CASES), cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert len(CASES) > 80
    assert dict(zip((case["id"] for case in CASES), json.loads(done.stdout), strict=True)) == {
        case["id"]: case["expected"] for case in CASES
    }
