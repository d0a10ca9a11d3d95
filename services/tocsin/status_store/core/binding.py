"""Which pane does an event belong to?

A session that is bound stays where it is until it ends or its pane is gone. Else the environment names the pane,
for agents whose environment is to be trusted. Else it is the one unclaimed pane of that agent with that folder;
two candidates are unclear, and an unclear session gets a pane of its own, named by session: never somebody else's.
Source: README, decision 7.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from tocsin.agents.registry import AGENTS
from tocsin.contract.ids import HostId, PaneId, session_source
from tocsin.contract.messages import HookReported, Kind
from tocsin.status_store.core.pane import Lead, Pane

Place = tuple[HostId, PaneId]

STARTS = frozenset({Kind.SESSION_STARTED, Kind.PROMPTED})
"""Events by which a new session takes over a pane that another session of the same agent has left idle."""


@dataclass(frozen=True)
class Bound:
    """Where an event belongs. `nested`: a session inside another's turn in the same pane, which must move nothing."""

    place: Place
    event: HookReported
    nested: bool = False


@dataclass
class Binding:
    """The sessions that are bound, kept beside the panes; made again from them after a restart."""

    sessions: dict[tuple[HostId, str, str], Place] = field(default_factory=dict)
    children: dict[tuple[HostId, str, str], Place] = field(default_factory=dict)

    def note(self, before: Pane | None, after: Pane) -> None:
        """Keep up with a pane that has changed."""
        place = (after.host, after.pane)
        if after.agent is None:
            return
        if before is not None and before.session is not None and before.session != after.session and before.agent is not None:
            self._drop((before.host, before.agent, before.session), place)
        if after.session is not None:
            self.sessions[after.host, after.agent, after.session] = place
        for child in after.child_sessions:
            self.children[after.host, after.agent, child] = place

    def forget(self, pane: Pane) -> None:
        """Nothing is bound to the pane any more."""
        place = (pane.host, pane.pane)
        if pane.agent is not None and pane.session is not None:
            self._drop((pane.host, pane.agent, pane.session), place)
        for child in pane.child_sessions:
            self.children.pop((pane.host, pane.agent or "", child), None)

    def _drop(self, key: tuple[HostId, str, str], place: Place) -> None:
        if self.sessions.get(key) == place:
            del self.sessions[key]

    def bind(self, event: HookReported, panes: Mapping[Place, Pane]) -> Bound:
        """Where `event` belongs, given all panes that are known."""
        key = (event.host, event.agent, event.session)
        if event.kind is Kind.CHILD_STARTED and event.parent is not None:
            parent = self.sessions.get((event.host, event.agent, event.parent))
            if parent is not None:
                return Bound(parent, event)
        if (of_child := self.children.get(key)) is not None:
            return Bound(of_child, as_child(event))
        claimed = (event.host, event.pane) if event.pane is not None and AGENTS[event.agent].trusts_environment else None
        bound = self.sessions.get(key)
        if claimed is None:
            return Bound(bound or self._by_folder(event, panes), event)
        if bound is not None and (bound == claimed or event.kind is not Kind.SESSION_STARTED):
            return Bound(bound, event)
        return Bound(claimed, event, nested=_is_nested(event, panes.get(claimed)))

    def _by_folder(self, event: HookReported, panes: Mapping[Place, Pane]) -> Place:
        candidates = [
            pane
            for pane in panes.values()
            if pane.host == event.host
            and pane.agent == event.agent
            and pane.process is not None
            and pane.live is not False
            and event.cwd is not None
            and pane.cwd == event.cwd
        ]
        unclaimed = [pane for pane in candidates if pane.session is None or pane.gone]
        if len(unclaimed) == 1 and (len(candidates) == 1 or event.kind in STARTS):
            return unclaimed[0].host, unclaimed[0].pane
        if not unclaimed and len(candidates) == 1 and event.kind in STARTS and candidates[0].lead is not Lead.WORKING:
            return candidates[0].host, candidates[0].pane
        return event.host, PaneId(session_source(event.agent, event.session))


def _is_nested(event: HookReported, pane: Pane | None) -> bool:
    """True for a session that runs inside another one's turn: `claude -p` in a tool inherits the pane's environment."""
    if pane is None or pane.session is None or pane.session == event.session or pane.gone:
        return False
    if pane.lead is not Lead.WORKING and not pane.pending:
        # The one before it is at rest. A headless run does not take its place; whoever sits there does.
        return event.attended is False and pane.process is not None
    return event.attended is False or event.agent != pane.agent or event.kind is not Kind.SESSION_STARTED


def as_child(event: HookReported) -> HookReported:
    """An event of a child's own session (opencode) as its parent's pane must take it."""
    ends = event.kind in (Kind.TURN_ENDED, Kind.TURN_FAILED, Kind.TURN_INTERRUPTED, Kind.SESSION_ENDED)
    kind = Kind.CHILD_ENDED if ends else event.kind
    if kind in (Kind.BUSY, Kind.PROMPTED, Kind.SESSION_STARTED):
        kind = Kind.NOTED
    return msgspec.structs.replace(event, kind=kind, child=event.child or event.session)


def adoptable(pane: Pane, panes: Mapping[Place, Pane]) -> Pane | None:
    """The session's own pane that turns out to live in `pane`, which its host has just shown; None when that is unclear."""
    if pane.process is None or pane.session is not None or pane.cwd is None:
        return None
    same = [
        other
        for other in panes.values()
        if other.host == pane.host and other.agent == pane.agent and other.cwd == pane.cwd and not other.gone
    ]
    homeless = [other for other in same if other.process is None and other.session is not None and other.pane.startswith("s-")]
    rivals = [other for other in same if other.process is not None and other.session is None]
    return homeless[0] if len(homeless) == 1 and rivals == [pane] else None
