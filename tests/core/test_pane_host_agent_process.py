"""Which agent runs in a terminal, from the processes below it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.agents.registry import agent_of_program
from tocsin.pane_host.core.agent_process import Row, below, choose


def agent_named(program: str) -> str | None:
    agent = agent_of_program(program)
    return agent.name if agent else None


def found(table: dict[int, tuple[Row, str]], root: int = 1):
    rows = {pid: row for pid, (row, _) in table.items()}
    chosen = choose(below(rows, root), {pid: words.split() for pid, (_, words) in table.items()}, agent_named)
    return (chosen.pid, chosen.agent) if chosen else None


def row(pid: int, parent: int, *, front: bool = True, terminal: bool = True) -> Row:
    return Row(pid, parent, group=pid, foreground=pid if front else 999, has_terminal=terminal)


SHELL = (row(1, 0, front=False), "-zsh")


@pytest.mark.parametrize(
    ("words", "agent"),
    [
        ("claude --continue", "claude"),
        ("/home/u/.local/bin/claude", "claude"),
        ("node /usr/local/bin/gemini", "gemini"),
        ("node --max-old-space-size=4096 /opt/node_modules/@google/gemini-cli/dist/index.js", "gemini"),
        ("/usr/bin/python3.12 /home/u/.local/bin/aider --model x", "aider"),
        ("/opt/node_modules/@openai/codex-linux-x64/codex", "codex"),
        ("vim claude", None),
        ("git clone claude", None),
        ("node build.js claude", None),
        ("bash /repo/claude/run.sh", None),
        ("python -c print('codex')", None),
    ],
)
def test_an_agent_is_known_by_its_program_or_the_script_of_its_interpreter(words, agent):
    assert found({1: SHELL, 2: (row(2, 1), words)}) == ((2, agent) if agent else None)


def test_the_launcher_stands_for_the_program_that_it_starts():
    assert found({1: SHELL, 2: (row(2, 1), "node /usr/bin/codex"), 3: (row(3, 2), "/opt/codex")}) == (2, "codex")


def test_an_agent_that_an_agent_has_started_is_its_tool():
    assert found({1: SHELL, 2: (row(2, 1), "claude"), 3: (row(3, 2, front=False), "codex exec x")}) == (2, "claude")


def test_the_one_in_the_foreground_is_preferred_to_one_that_was_stopped():
    assert found({1: SHELL, 2: (row(2, 1, front=False), "claude"), 3: (row(3, 1), "codex")}) == (3, "codex")


def test_one_that_was_stopped_still_lives_there():
    assert found({1: SHELL, 2: (row(2, 1, front=False), "claude"), 3: (row(3, 1), "vim")}) == (2, "claude")


def test_a_daemon_without_a_terminal_is_not_what_a_person_looks_at():
    assert found({1: SHELL, 2: (row(2, 1, terminal=False), "codex app-server")}) is None


def test_another_terminals_agent_is_not_this_ones():
    assert found({1: SHELL, 2: (row(2, 50), "claude"), 50: (row(50, 0), "zsh")}) is None


def test_a_terminal_opened_with_the_agent_itself_holds_it():
    assert found({1: (row(1, 0), "claude")}) == (1, "claude")


tables = st.dictionaries(st.integers(1, 12), st.integers(0, 12), max_size=12)


@given(tables, st.integers(1, 12))
def test_what_is_below_a_process_is_found_once_each_even_in_a_table_that_changed_while_it_was_read(parents, root):
    rows = {pid: row(pid, parent) for pid, parent in parents.items()}
    pids = [one.pid for one in below(rows, root)]
    assert len(pids) == len(set(pids))
    assert (root in pids) == (root in rows)
    assert all(pid == root or rows[pid].parent in pids for pid in pids)
