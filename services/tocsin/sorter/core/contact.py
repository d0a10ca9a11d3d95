"""Which hosts are in contact? What is known of the panes of one that is not is the last that was heard, and is marked so."""

from tocsin.contract.ids import HostId
from tocsin.contract.messages import HostKnown

CONTACT_MS = 35_000
"""A host says every 10 s that it is there; three such words missed, and a little for the way."""


class Contact:
    """Hosts that have ever said that they are there. One that never did may be seen by hooks alone: nothing is claimed of it."""

    def __init__(self) -> None:
        self._until: dict[HostId, int] = {}
        self._lost: set[HostId] = set()

    def hear(self, known: HostKnown, now_ms: int, awake_ms: int) -> bool:
        """A host's word, new or kept; returns whether that changes what is shown of it."""
        # A kept word is as old as it says; no word is of the future.
        self._until[known.host] = awake_ms + CONTACT_MS - max(0, now_ms - known.at_ms)
        was_lost = known.host in self._lost
        self._lost.discard(known.host)
        return was_lost and self._until[known.host] > awake_ms

    def expire(self, awake_ms: int) -> set[HostId]:
        """It is `awake_ms`; returns the hosts of which contact has been lost since this was last asked."""
        gone = {host for host, until in self._until.items() if until <= awake_ms} - self._lost
        self._lost |= gone
        return gone

    def is_lost(self, host: HostId) -> bool:
        """True while nothing is heard of it."""
        return host in self._lost

    def due(self) -> int | None:
        """The next moment (awake ms) at which contact with a host is lost."""
        return min((until for host, until in self._until.items() if host not in self._lost), default=None)
