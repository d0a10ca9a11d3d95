"""All panes that are known, and what each thing heard makes of them. Decides; reads no clock and does no I/O."""

import heapq
from collections.abc import Iterable

from tocsin.agents.registry import AGENTS
from tocsin.agents.titles import unknown_glyph
from tocsin.contract.ids import HostId, PaneId
from tocsin.contract.messages import HookReported, Kind, PaneSeen, PaneTitled
from tocsin.status_store.core import evidence
from tocsin.status_store.core.binding import Binding, Place, adoptable
from tocsin.status_store.core.hooks import hear
from tocsin.status_store.core.pane import Moment, Pane, change

FORGET_MS = 24 * 60 * 60_000
"""A pane of which nothing was heard for so long, and which nobody sees, is dropped."""

GLYPHS_MAX = 64
"""Unknown glyphs that are told of; scripts may put anything into a title."""

ALONE_NOTHING = frozenset({Kind.SESSION_ENDED, Kind.CHILD_ENDED, Kind.NOTED})
"""Events that alone are no reason to keep a pane that nobody knows."""


class Board:
    """The panes of all hosts. `take_changes` tells which have changed since it was last asked."""

    def __init__(self, panes: Iterable[Pane] = ()) -> None:
        self.panes: dict[Place, Pane] = {}
        self.nested = 0
        self.repeated = 0
        """Events that were delivered twice, and counted once."""
        self.late = 0
        """Events that came out of a spool."""
        self.unknown_glyphs: set[str] = set()
        self._binding = Binding()
        self._changed: dict[Place, None] = {}
        self._due: list[tuple[int, Place]] = []
        for pane in panes:
            self._put(pane)
        self._changed.clear()

    # ---------------------------------------------------------- hearing

    def hear(self, event: HookReported, seq: int, moment: Moment) -> Place | None:
        """Apply one hook event; returns the pane it belongs to, or None when it moves none."""
        if event.agent not in AGENTS:
            return None  # said by a newer ingest than this
        bound = self._binding.bind(event, self.panes)
        pane = self.panes.get(bound.place)
        if bound.nested or (pane is None and event.kind in ALONE_NOTHING):
            self.nested += bound.nested
            return None
        if pane is None:
            host, name = bound.place
            pane = Pane(host=host, pane=name)
        heard = hear(evidence.pass_time(pane, moment), bound.event, moment, seq)
        self.repeated += heard.repeated - pane.repeated
        self.late += heard.late - pane.late
        self._put(heard)
        return bound.place

    def titled(self, message: PaneTitled, now: Moment) -> None:
        """Apply the titles of one pane that have not been heard yet."""
        pane = self._pane_of(message.host, message.pane)
        if message.life != pane.life:
            pane = change(pane, life=message.life, title_number=0, mark_number=0)
        for title in message.titles:
            if title.number > pane.title_number:
                self._note_glyph(title.text)
                moment = earlier(now, title.at_ms)
                pane = change(evidence.show(evidence.pass_time(pane, moment), title.text, moment), title_number=title.number)
        self._put(pane)

    def seen(self, message: PaneSeen, now: Moment) -> None:
        """Apply what a host sees of one pane."""
        pane = self._pane_of(message.host, message.pane)
        if not message.live and not pane.hooked and pane.title is None and pane.process is None:
            self.forget((message.host, message.pane))
            return
        moment = earlier(now, message.at_ms)
        self._put(evidence.see(evidence.pass_time(pane, moment), message, moment))
        self._adopt(self.panes[message.host, message.pane])

    def pass_time(self, now: Moment) -> None:
        """Apply all limits that have passed."""
        while self._due and self._due[0][0] <= now.awake_ms:
            _, place = heapq.heappop(self._due)
            pane = self.panes.get(place)
            if pane is not None:
                self._put(evidence.pass_time(pane, now))

    def due_ms(self) -> int | None:
        """The next moment (awake ms) at which time alone may change a pane."""
        return self._due[0][0] if self._due else None

    def restore(self, last_heard_ms: int | None = None) -> None:
        """Say of every open state that it is from before a gap in which events may have been lost.

        `last_heard_ms`: only of panes of which nothing was heard since then (UTC).
        """
        for pane in list(self.panes.values()):
            if last_heard_ms is None or pane.updated_ms < last_heard_ms:
                self._put(evidence.restore(pane))

    # ---------------------------------------------------------- keeping

    def take_changes(self) -> tuple[list[Pane], list[Place]]:
        """The panes that have changed and the places that were dropped since the last call."""
        changed = [self.panes[place] for place in self._changed if place in self.panes]
        dropped = [place for place in self._changed if place not in self.panes]
        self._changed.clear()
        return changed, dropped

    def forgettable(self, now_ms: int) -> list[Place]:
        """Panes that are over or unseen, and silent for longer than FORGET_MS."""
        return [
            place
            for place, pane in self.panes.items()
            if (pane.gone or pane.live is not True) and max(pane.updated_ms, pane.since_ms) < now_ms - FORGET_MS
        ]

    def forget(self, place: Place) -> None:
        """Drop a pane."""
        pane = self.panes.pop(place, None)
        if pane is not None:
            self._binding.forget(pane)
            self._changed[place] = None

    def _note_glyph(self, text: str) -> None:
        """A leading glyph that nobody knows is counted once, for whoever keeps the tables."""
        glyph = unknown_glyph(text)
        if glyph is not None and len(self.unknown_glyphs) < GLYPHS_MAX:
            self.unknown_glyphs.add(glyph)

    def _pane_of(self, host: HostId, name: PaneId) -> Pane:
        return self.panes.get((host, name)) or Pane(host=host, pane=name)

    def _put(self, pane: Pane) -> None:
        place = (pane.host, pane.pane)
        before = self.panes.get(place)
        if pane is before:
            return
        self.panes[place] = pane
        self._changed[place] = None
        self._binding.note(before, pane)
        due = evidence.due_ms(pane)
        if due is not None and (before is None or evidence.due_ms(before) != due):
            heapq.heappush(self._due, (due, place))

    def _adopt(self, pane: Pane) -> None:
        """Move a session that had only a pane of its own into the terminal in which it turns out to live."""
        homeless = adoptable(pane, self.panes)
        if homeless is None:
            return
        self.forget((homeless.host, homeless.pane))
        self._put(
            change(
                homeless,
                pane=pane.pane,
                workspace=pane.workspace,
                live=pane.live,
                process=pane.process,
                locator=pane.locator,
                life=pane.life,
                mark_number=pane.mark_number,
                title_number=pane.title_number,
                title=pane.title,
                key_ms=pane.key_ms,
            )
        )


def earlier(now: Moment, at_ms: int) -> Moment:
    """The moment of something stamped `at_ms`, which is heard now: never in the future, and on both clocks."""
    age_ms = max(0, now.at_ms - at_ms)
    return Moment(at_ms=now.at_ms - age_ms, awake_ms=now.awake_ms - age_ms)
