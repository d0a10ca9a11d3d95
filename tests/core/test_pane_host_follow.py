"""Which transcripts are followed, how often terminals are looked at."""

import pytest

from builders import NOW_MS, a_status
from tocsin.contract.messages import State, TurnSeen
from tocsin.pane_host.core.follow import EARLY_MS, FILES_MAX, wanted
from tocsin.pane_host.core.pace import BUSY_MS, QUIET_MS, wait_ms

ROOTS = {"claude": ".claude/projects", "codex": ".codex/sessions", "gemini": ".gemini"}
FILE = "/home/u/.claude/projects/x/s1.jsonl"


@pytest.mark.parametrize("state", [State.WORKING, State.BLOCKED, State.WAITING])
def test_a_turn_that_runs_or_stands_is_followed(state):
    (one,) = wanted([a_status(state=state, transcript=FILE)], ROOTS)
    assert (one.path, one.root, one.session, one.agent) == (FILE, ".claude/projects", "s1", "claude")


@pytest.mark.parametrize(
    "fields",
    [
        {"state": State.DONE},
        {"state": State.IDLE},
        {"transcript": None},
        {"session": None},
        {"live": False},
        {"agent": "gemini"},
        {"agent": "qwen"},
        {"agent": None},
    ],
)
def test_nothing_else_is(fields):
    assert wanted([a_status(**({"transcript": FILE} | fields))], ROOTS) == []


def test_lines_from_before_the_turn_say_nothing_about_it():
    turns = (TurnSeen(number=3, started_ms=NOW_MS - 60_000),)
    (one,) = wanted([a_status(transcript=FILE, turns=turns)], ROOTS)
    assert one.since_ms == NOW_MS - 60_000 - EARLY_MS


def test_of_too_many_those_that_spoke_last_are_followed():
    statuses = [a_status(pane=f"p{n}", updated_ms=NOW_MS + n, transcript=FILE) for n in range(FILES_MAX + 5)]
    panes = [one.pane for one in wanted(statuses, ROOTS)]
    assert len(panes) == FILES_MAX
    assert panes[0] == f"p{FILES_MAX + 4}"


def test_the_quieter_it_is_the_rarer_the_looks():
    waits = [wait_ms(since_ms) for since_ms in (0, 3_000, 10_000, 60_000, 3_600_000)]
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (BUSY_MS, QUIET_MS)
