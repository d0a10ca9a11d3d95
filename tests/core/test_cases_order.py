"""Given cases C01 and C02, as far as they speak of the order; the loop's part stands in tests/services/test_sorter.py."""

import random

from builders import NOW_MS, a_status
from tocsin.contract.messages import PaneStatus, State, WorktreeKnown
from tocsin.sorter.core.board import Board
from tocsin.sorter.edition import differs


def a_worktree(number, **fields):
    defaults = {"host": "h", "worktree": f"w{number:02}", "name": f"W{number}", "path": f"/w{number}", "at_ms": NOW_MS}
    return WorktreeKnown(**(defaults | fields))


def told(board, *messages, at_ms=0):
    for message in messages:
        hear = board.hear_status if isinstance(message, PaneStatus) else board.hear_worktree
        hear(message, NOW_MS + at_ms, at_ms)
    board.refresh(NOW_MS + at_ms, at_ms)
    return board


def test_c01_a_worktree_that_is_looked_at_stays_where_it_is():
    done = [
        a_status(
            pane=f"P{number}", cwd=f"/w{number}", state=State.DONE, since_ms=NOW_MS + number * 1_000, updated_ms=NOW_MS + number * 1_000
        )
        for number in (1, 2)
    ]
    working = a_status(pane="P3", cwd="/w3", since_ms=NOW_MS + 2_500, updated_ms=NOW_MS + 2_500)
    board = told(Board("default", 0), *map(a_worktree, (1, 2, 3)), *done, working, at_ms=3_000)
    assert board.order() == ["w02", "w01", "w03"]
    before = dict(board.rows)

    # Opening W1 and marking it read is no message at all: only panes and worktrees are heard. W3 goes on.
    board.hear_status(a_status(pane="P3", cwd="/w3", since_ms=NOW_MS + 2_500, updated_ms=NOW_MS + 6_000, seq=2), NOW_MS + 6_000, 6_000)
    _, moved = board.refresh(NOW_MS + 6_000, 6_000)
    assert board.order() == ["w02", "w01", "w03"]
    assert not moved
    assert not any(differs(before[one], row) for one, row in board.rows.items())


def test_c02_equal_worktrees_never_swap_whatever_the_order_in_which_they_are_heard():
    ids = [f"w{number:02}" for number in range(1, 11)]
    ten = [a_worktree(number, name="api", active_ms=NOW_MS) for number in range(1, 11)]
    board = told(Board("default", 0), *ten)
    assert board.order() == ids
    chance = random.Random(2)
    for feed in (ten[::-1], chance.sample(ten, 10), chance.sample(ten, 10)):
        for worktree in feed:
            board.hear_worktree(worktree, NOW_MS, 0)
        changed, moved = board.refresh(NOW_MS, 0)
        assert board.order() == ids
        assert not moved
        assert changed <= set(ids)
    # The same after a restart: another life that hears them in another order.
    assert told(Board("default", 0), *chance.sample(ten, 10)).order() == ids
