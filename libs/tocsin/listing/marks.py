"""How a person's marks are read beside a list: which stand, how they are shown, and the order in which they count. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from tocsin.contract.ids import WorktreeId
from tocsin.contract.messages import Row
from tocsin.contract.notices import Mark

MINE = "mine"
"""The order by these marks: urgent first, snoozed last, and else as the list has it. Nobody has it who has not chosen it."""

URGENT_SIGN, SNOOZED_SIGN = "⚑", "☾"


def latest_prompt_ms(row: Row) -> int:
    """When the latest prompt of a worktree began for which the bell has rung (UTC ms); 0: none stands."""
    return max((pane.prompt_ms for pane in row.panes), default=0)


def is_snoozed(mark: Mark | None, prompt_ms: int, now_ms: int) -> bool:
    """Whether a mark still says "not now" while `prompt_ms` is the latest prompt of its worktree (0: none)."""
    if mark is None or mark.snooze is None:
        return False
    until_ms = mark.snooze.until_ms
    return prompt_ms <= mark.snooze.prompt_ms if until_ms is None else now_ms < until_ms


def by_worktree(marks: Iterable[Mark]) -> dict[WorktreeId, Mark]:
    """Marks by what they mark."""
    return {mark.worktree: mark for mark in marks}


def signs(row: Row, marks: Mapping[WorktreeId, Mark], now_ms: int) -> str:
    """What is shown beside the name of a row; empty for most."""
    mark = marks.get(row.id)
    if mark is None:
        return ""
    return URGENT_SIGN * mark.urgent + SNOOZED_SIGN * is_snoozed(mark, latest_prompt_ms(row), now_ms)


def mine(rows: Sequence[Row], marks: Mapping[WorktreeId, Mark], now_ms: int) -> list[Row]:
    """`rows`, which stand in the smart order, with the urgent ones first and the snoozed ones last. A snooze outweighs urgency."""

    def place(row: Row) -> int:
        mark = marks.get(row.id)
        if mark is None:
            return 1
        return 2 if is_snoozed(mark, latest_prompt_ms(row), now_ms) else 1 - mark.urgent

    return sorted(rows, key=place)
