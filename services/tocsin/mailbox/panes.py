"""What status-store says of panes, and which mailboxes are read in each."""

import asyncio
from collections import defaultdict

from tocsin.agents.registry import AGENTS
from tocsin.bus.bus import Reading
from tocsin.contract.ids import HostId, PaneId
from tocsin.contract.messages import PaneStatus, State
from tocsin.mailbox.core.ladder import Reader
from tocsin.mailbox.core.mailbox import Mailbox

Place = tuple[HostId, PaneId]


class Panes:
    """The last status of each pane, and the readers in it."""

    def __init__(self) -> None:
        self._statuses: dict[Place, PaneStatus] = {}
        self._sessions: dict[tuple[HostId, str | None, str], Place] = {}
        self._read_in: defaultdict[Place, set[str]] = defaultdict(set)
        self._places: dict[str, Place] = {}
        self._known = asyncio.Event()

    async def follow(self, reading: Reading[PaneStatus], changed: "asyncio.Queue[str]") -> None:
        """Take every status; puts the mailboxes that are read in its pane into `changed`."""
        async for batch in reading:
            for heard in batch:
                for address in self.take(heard.body):
                    changed.put_nowait(address)
            if not batch:
                self._known.set()

    async def known(self) -> None:
        """Return once all last statuses have been heard: before, a pane that is not known proves nothing."""
        await self._known.wait()

    def take(self, status: PaneStatus) -> frozenset[str]:
        """Note a status; returns the addresses that are read in its pane."""
        place = status.host, status.pane
        self._statuses[place] = status
        if status.session is not None and status.state is not State.GONE:
            self._sessions[status.host, status.agent, status.session] = place
        return self.addresses(place)

    def settle(self, box: Mailbox) -> None:
        """Note where a mailbox is read."""
        place = (box.host, box.pane) if box.host is not None and box.pane is not None and box.shut is None else None
        before = self._places.get(box.address)
        if place == before:
            return
        if before is not None:
            self._read_in[before].discard(box.address)
            del self._places[box.address]
        if place is not None:
            self._read_in[place].add(box.address)
            self._places[box.address] = place

    def addresses(self, place: Place) -> frozenset[str]:
        """The mailboxes that are read in a pane."""
        return frozenset(self._read_in[place]) if place in self._read_in else frozenset()

    def reader(self, box: Mailbox) -> Reader:
        """Who reads a mailbox, as far as its pane is known."""
        place = self._places.get(box.address)
        status = self._statuses.get(place) if place is not None else None
        agent = status.agent if status is not None and status.agent is not None else box.agent
        return Reader(status, AGENTS.get(agent) if agent is not None else None)

    def of_session(self, host: HostId, pane: PaneId | None, agent: str, session: str) -> Place | None:
        """The pane of a session, if that session is what the pane runs now: another that was started in it reads nothing there."""
        place = (host, pane) if pane is not None else self._sessions.get((host, agent, session))
        status = self._statuses.get(place) if place is not None else None
        return place if status is not None and status.session == session else None
