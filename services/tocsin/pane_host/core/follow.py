"""Which transcripts are worth following: those of turns that run or stand, of agents whose format is known."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tocsin.contract.ids import PaneId
from tocsin.contract.messages import PaneStatus, State
from tocsin.pane_host.core.marks import FORMATS

FOLLOWED = frozenset({State.WORKING, State.BLOCKED, State.WAITING})
"""States that a mark can end or explain."""

FILES_MAX = 256
"""Files followed at once; beyond it the panes that spoke last come first."""

EARLY_MS = 2_000
"""A line may be older than the turn as we know it by so much: the agent writes before its hook arrives here."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One transcript to follow. `root` is the folder below the home in which it must lie; older lines than `since_ms` say nothing."""

    pane: PaneId
    agent: str
    session: str
    path: str
    root: str
    since_ms: int


def wanted(statuses: Iterable[PaneStatus], roots: Mapping[str, str]) -> list[Wanted]:
    """The transcripts of `statuses` to follow now; `roots` gives each agent's folder below the home."""
    found: list[Wanted] = []
    for status in sorted(statuses, key=lambda status: status.updated_ms, reverse=True):
        if status.state not in FOLLOWED or status.live is False or status.agent is None or status.agent not in FORMATS:
            continue
        root = roots.get(status.agent)
        if root and status.session and status.transcript:
            found.append(Wanted(status.pane, status.agent, status.session, status.transcript, root, _began_ms(status) - EARLY_MS))
    return found[:FILES_MAX]


def _began_ms(status: PaneStatus) -> int:
    return status.turns[-1].started_ms if status.turns else status.since_ms
