"""Whose is a host name? Two machines under one name would write into each other's panes, so the second is refused."""

from tocsin.contract.messages import HostKnown

SAY_AGAIN_MS = 10_000
"""How often a host says that it is there."""

SILENT_MS = 35_000
"""Three such words missed, and a little: the machine itself, started anew, waits no longer for its former life."""

GIVEN_UP_MS = 60 * 60_000
"""A name is another machine's after so long a silence. Less would give away the name of one that is only cut off."""


def is_same_life(other: HostKnown, mine: HostKnown) -> bool:
    """True when both are said on this machine since it was last started; its lock sees that one alone does."""
    return (other.machine, other.boot) == (mine.machine, mine.boot)


def holds(other: HostKnown | None, mine: HostKnown) -> bool:
    """True while `other`, the last that was said under the name, keeps it from `mine`."""
    if other is None or other.left or is_same_life(other, mine):
        return False
    silent_ms = mine.at_ms - other.at_ms
    # The same machine has been started anew, or is its twin: a twin goes on speaking.
    return silent_ms < (SILENT_MS if other.machine == mine.machine else GIVEN_UP_MS)


def refusal(other: HostKnown, mine: HostKnown) -> str:
    """One line for the person whose machine is refused, with the remedy."""
    silent_s = max(0, mine.at_ms - other.at_ms) // 1000
    return (
        f"the host name {mine.host} is another machine's: {other.label}, heard {silent_s} s ago; this one is {mine.label}. "
        "Give this one a name of its own: TOCSIN_HOST=NAME, or --host NAME"
    )
