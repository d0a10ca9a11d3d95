"""Who asks: vouched for by the machine that saw it, never by what a prompt says."""

from enum import StrEnum

import msgspec

from tocsin.contract.ids import HostId, PaneId, digest
from tocsin.contract.messages import Part, Process


class Role(StrEnum):
    """In which capacity somebody asks."""

    PERSON = "person"  # at a shell or the page, with the command credential
    COORDINATOR = "coordinator"  # an agent or script that owns a Run
    WORKER = "worker"  # the agent that carries a Dispatch
    SERVICE = "service"  # one of ours, on an observed fact


class Caller(Part, frozen=True, kw_only=True):
    """Who asks. Inside a pane that we started, pane-host fills in pane, process and dispatch, and vouches for them.

    `name` distinguishes callers outside panes (user@host), so that a request id is theirs alone.
    """

    role: Role
    name: str
    host: HostId | None = None
    pane: PaneId | None = None
    process: Process | None = None
    session: str | None = None
    dispatch: str | None = None
    child: bool = False  # the call was made by a child agent, not in the lead's own turn
    vouched: bool = False  # by pane-host; else only by the credential

    @property
    def fingerprint(self) -> str:
        """What a request id is unique within."""
        return f"{self.role}|{self.host or ''}|{self.pane or ''}|{self.dispatch or ''}|{self.name}"


def payload_hash(ask: object) -> str:
    """Identifies what a request asks, so that the same id with other content is told apart."""
    return digest(msgspec.json.encode(ask, order="sorted").decode())
