"""The ledger's side of an audit, machine by machine."""

from typing import Any

from builders import NOW_MS
from tocsin.console.core.ground import by_host
from tocsin.contract.custody import CustodyRow, CustodyState, WorktreeState


def a_custody(host: str | None = "h", **fields: Any) -> CustodyRow:
    defaults: dict[str, Any] = {"custody": "r1.t.1", "run": "r1", "task": "t", "state": CustodyState.OWNED, "since_ms": NOW_MS, "why": ""}
    return CustodyRow(host=host, **(defaults | fields))


def test_each_machine_is_summed_up_and_the_one_that_owes_most_stands_first():
    found = by_host(
        [
            a_custody("calm", pane="p1", worktree=WorktreeState.STANDING),
            a_custody("owes", obligation="no disposition yet", state=CustodyState.RELEASE_UNKNOWN, worktree=WorktreeState.TRASHED),
            a_custody("owes", state=CustodyState.TAKEN_OVER, pane="p2", worktree=WorktreeState.KEPT),
            a_custody(None, state=CustodyState.EXPECTED),
        ]
    )
    assert [tuple(ground.values()) for ground in found] == [
        # host, custodies, terminals, worktrees, unconfirmed, taken over, obligations
        ("owes", 2, 1, 1, 1, 1, 1),
        (None, 1, 0, 0, 0, 0, 0),
        ("calm", 1, 1, 1, 0, 0, 0),
    ]


def test_without_custodies_there_is_nothing_to_sum_up():
    assert by_host([]) == []
