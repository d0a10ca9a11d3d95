"""The life of a custody: every legal step, in one table. What is not written here is refused, or means nothing."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from tocsin.contract.custody import CustodyState as S


class Step(StrEnum):
    """What happens to a custody."""

    MADE = "made"  # a terminal or worktree of it exists
    FOREIGN = "foreign"  # its terminal was made by somebody else
    KEY = "key"  # a person's key landed in it
    KEEP = "keep"  # a policy, a gate or somebody keeps it
    LET_GO = "let_go"  # what kept it has ended, and nobody has decided yet
    CLOSE = "close"  # a policy or somebody other than its person releases it
    PERSON_CLOSES = "person_closes"  # the person who has taken it over releases it
    HAND_ON = "hand_on"  # a later Dispatch gets it
    SILENT = "silent"  # its host does not answer
    NOT_CONFIRMED = "not_confirmed"  # its host did what it could and cannot show that it has ended
    GONE = "gone"  # its host has found nothing of it: that is tidied up and proven, which closes nothing
    ENDED = "ended"  # its host has proven its end
    ALIVE = "alive"  # it was found alive, though its end was proven before


LIFE: Mapping[tuple[S, Step], S] = MappingProxyType(
    {
        (S.EXPECTED, Step.MADE): S.OWNED,
        (S.EXPECTED, Step.FOREIGN): S.EXTERNAL,
        (S.EXPECTED, Step.KEY): S.TAKEN_OVER,  # a key before the row of its terminal: remembered
        (S.EXPECTED, Step.CLOSE): S.RELEASING,  # its host is asked to end whatever it has made of it
        (S.EXPECTED, Step.PERSON_CLOSES): S.RELEASING,
        (S.EXPECTED, Step.GONE): S.RELEASING,
        (S.EXPECTED, Step.ENDED): S.RELEASED,  # its start was refused, and nothing was left behind
        (S.OWNED, Step.KEY): S.TAKEN_OVER,
        (S.OWNED, Step.KEEP): S.RETAINED,
        (S.OWNED, Step.CLOSE): S.RELEASING,
        (S.OWNED, Step.PERSON_CLOSES): S.RELEASING,
        (S.OWNED, Step.HAND_ON): S.REUSED,
        (S.OWNED, Step.GONE): S.RELEASING,
        (S.OWNED, Step.ENDED): S.RELEASED,
        # Nobody but its person closes it, and nobody keeps it in that person's place: a retained one can be released.
        (S.TAKEN_OVER, Step.PERSON_CLOSES): S.RELEASING,
        (S.TAKEN_OVER, Step.HAND_ON): S.REUSED,  # who gets it gets it as the person's
        (S.TAKEN_OVER, Step.MADE): S.TAKEN_OVER,
        (S.TAKEN_OVER, Step.GONE): S.RELEASING,  # the person has closed it
        (S.TAKEN_OVER, Step.ENDED): S.RELEASED,
        (S.RETAINED, Step.KEY): S.TAKEN_OVER,
        (S.RETAINED, Step.KEEP): S.RETAINED,
        (S.RETAINED, Step.LET_GO): S.OWNED,
        (S.RETAINED, Step.CLOSE): S.RELEASING,
        (S.RETAINED, Step.PERSON_CLOSES): S.RELEASING,
        (S.RETAINED, Step.HAND_ON): S.REUSED,
        (S.RETAINED, Step.GONE): S.RELEASING,
        (S.RETAINED, Step.ENDED): S.RELEASED,
        (S.RELEASING, Step.KEY): S.TAKEN_OVER,  # its end is not proven yet: a person is in it now
        (S.RELEASING, Step.MADE): S.RELEASING,  # its terminal was not known: now that is closed too, as a new attempt
        (S.RELEASING, Step.SILENT): S.RELEASE_PENDING,
        (S.RELEASING, Step.NOT_CONFIRMED): S.RELEASE_UNKNOWN,
        (S.RELEASING, Step.ENDED): S.RELEASED,
        (S.RELEASE_PENDING, Step.KEY): S.TAKEN_OVER,
        (S.RELEASE_PENDING, Step.MADE): S.RELEASING,
        (S.RELEASE_PENDING, Step.SILENT): S.RELEASE_PENDING,
        (S.RELEASE_PENDING, Step.NOT_CONFIRMED): S.RELEASE_UNKNOWN,
        (S.RELEASE_PENDING, Step.ENDED): S.RELEASED,
        (S.RELEASE_UNKNOWN, Step.KEY): S.TAKEN_OVER,
        (S.RELEASE_UNKNOWN, Step.KEEP): S.RETAINED,
        (S.RELEASE_UNKNOWN, Step.CLOSE): S.RELEASING,  # tried again, as a new attempt
        (S.RELEASE_UNKNOWN, Step.PERSON_CLOSES): S.RELEASING,
        (S.RELEASE_UNKNOWN, Step.GONE): S.RELEASING,
        (S.RELEASE_UNKNOWN, Step.ENDED): S.RELEASED,
        (S.RELEASED, Step.ALIVE): S.RELEASE_UNKNOWN,  # what is seen disagrees with its proof: that is not hidden
    }
)

CLOSING = frozenset({S.RELEASING, S.RELEASE_PENDING})
"""A release is under way: another request joins it."""

OVER = frozenset({S.RELEASED, S.REUSED, S.EXTERNAL})
"""Nothing of it is ours to close any more."""

UNDECIDED = frozenset({S.EXPECTED, S.OWNED})
"""A settled worker in such a state still needs its disposition."""
