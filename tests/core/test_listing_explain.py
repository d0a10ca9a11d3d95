"""`why` names the first key in which two rows differ."""

import pytest

from tocsin.contract.messages import Evidence, Row
from tocsin.listing.explain import Decider, decider, why_above, why_here

NOW = 1_800_000_000_000


def a_row(name="api", **fields):
    defaults = {"rank": 1, "id": name, "path": "/x", "host": "h", "attention_class": 4, "attention_at": 0, "reason": "no agent"}
    return Row(name=name, evidence=Evidence.OBSERVED, **(defaults | fields))


CASES = [
    (a_row("a", attention_class=1, attention_at=1, reason="asks to run npm"),
     a_row("b", attention_class=2, attention_at=9, reason="finished its turn"),
     Decider.CLASS, "a stands above b: needs you (asks to run npm) comes before done (finished its turn)"),
    (a_row("a", attention_class=2, attention_at=9), a_row("b", attention_class=2, attention_at=1),
     Decider.MOMENT, "a stands above b: both done, and its moment 9 is later than 1"),
    (a_row("a", active_at=9), a_row("b", active_at=1),
     Decider.ACTIVITY, "a stands above b: both idle with the same moment, and its last activity 9 is later"),
    (a_row("a", active_at=1), a_row("b", active_at=9),
     Decider.CREATION, "a stands above b: both idle with the same moment, and it is new: for 5 min that counts as activity"),
    (a_row("alpha"), a_row("Beta"),
     Decider.NAME, "alpha stands above Beta: both idle with the same moment and activity, and its name comes first"),
    (a_row("same", id="1"), a_row("same", id="2"),
     Decider.ID, "same stands above same: both idle with the same moment, activity and name, and its id comes first"),
]  # fmt: skip


@pytest.mark.parametrize(("above", "below", "key", "line"), CASES, ids=[case[2].name for case in CASES])
def test_the_first_key_that_differs_explains(above, below, key, line):
    assert decider(above, below) is key
    assert why_above(above, below, str) == line


def test_one_worktree_says_its_rank_class_moment_reason_and_evidence():
    row = a_row(rank=2, attention_class=1, attention_at=NOW, reason="asks a question")
    assert why_here(row, 5, lambda moment: "12:00:00") == "api is 2 of 5: needs you since 12:00:00, asks a question [observed]"
