"""The fallback for a pane without fresh hooks: what its terminal's title claims about its agent.

Source: README, decision 5; the seed's edge case 9.
"""

from dataclasses import dataclass

from tocsin.contract.messages import AttentionClass, Reading


@dataclass(frozen=True, slots=True)
class Title:
    """What the title of a *living* terminal says, and since when it has said that (UTC ms). A dead terminal's title is no Title."""

    reading: Reading
    seen_ms: float


def read_attention(title: Title, activity_ms: float) -> tuple[int, float] | None:
    """Class and moment that a title speaks for; None when it claims nothing.

    A title does not tell since when its agent works, so the worktree's last activity (`activity_ms`) stands in.
    """
    if title.reading is Reading.PERMISSION:
        return AttentionClass.NEEDS_YOU, title.seen_ms
    if title.reading is Reading.WORKING:
        return AttentionClass.WORKING, activity_ms
    return None
