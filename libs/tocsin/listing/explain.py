"""Why does one worktree stand above another? Read from published rows, by the same keys, in the same order, that ranked them."""

from collections.abc import Callable
from enum import StrEnum

from tocsin.contract.messages import AttentionClass, Row
from tocsin.listing.names import name_key

CLASS_WORDS = {
    AttentionClass.NEEDS_YOU: "needs you",
    AttentionClass.DONE: "done",
    AttentionClass.WORKING: "working",
    AttentionClass.IDLE: "idle",
}


class Decider(StrEnum):
    """The key that told two worktrees apart."""

    CLASS = "class"
    MOMENT = "attention time"
    ACTIVITY = "activity"
    CREATION = "creation"
    NAME = "name"
    ID = "id"


def decider(above: Row, below: Row) -> Decider:
    """The first key in which they differ. `above` has the smaller rank."""
    if above.attention_class != below.attention_class:
        return Decider.CLASS
    if above.attention_at != below.attention_at:
        return Decider.MOMENT
    if above.active_at > below.active_at:
        return Decider.ACTIVITY
    # A new worktree counts as active to the end of its grace, and only that can put it above one that was active since.
    by_name = name_key(above.name), name_key(below.name)
    if above.active_at < below.active_at or by_name[0] > by_name[1]:
        return Decider.CREATION
    return Decider.NAME if by_name[0] != by_name[1] else Decider.ID


def why_above(above: Row, below: Row, time_of: Callable[[int], str]) -> str:
    """One line: why `above` stands above `below`. `time_of` writes a moment (UTC ms) as its reader likes it."""
    both = CLASS_WORDS[above.attention_class]
    match decider(above, below):
        case Decider.CLASS:
            because = f"{both} ({above.reason}) comes before {CLASS_WORDS[below.attention_class]} ({below.reason})"
        case Decider.MOMENT:
            because = f"both {both}, and its moment {time_of(above.attention_at)} is later than {time_of(below.attention_at)}"
        case Decider.ACTIVITY:
            because = f"both {both} with the same moment, and its last activity {time_of(above.active_at)} is later"
        case Decider.CREATION:
            because = f"both {both} with the same moment, and it is new: for 5 min that counts as activity"
        case Decider.NAME:
            because = f"both {both} with the same moment and activity, and its name comes first"
        case Decider.ID:
            because = f"both {both} with the same moment, activity and name, and its id comes first"
    return f"{above.name} stands above {below.name}: {because}"


def why_here(row: Row, of: int, time_of: Callable[[int], str]) -> str:
    """One line: why `row` stands at its rank among `of`."""
    since = f" since {time_of(row.attention_at)}" if row.attention_at else ""
    active = f", last active {time_of(row.active_at)}" if row.attention_class == AttentionClass.IDLE and row.active_at else ""
    return f"{row.name} is {row.rank} of {of}: {CLASS_WORDS[row.attention_class]}{since}, {row.reason} [{row.evidence.value}]{active}"
