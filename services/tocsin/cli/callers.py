"""Who asks from here, and which Run this pane or shell is bound to."""

import getpass
import os
import time
from pathlib import Path

import msgspec

from tocsin.bus.bus import Bus
from tocsin.cli.lines import write_whole
from tocsin.contract.ids import HostId, PaneId, digest, tmux_pane, token
from tocsin.contract.messages import State
from tocsin.contract.parties import Caller, Role
from tocsin.contract.subjects import PANE_STATUS

BOUND_S_MAX = 30 * 86_400
"""A remembered Run is forgotten when nothing was bound there for so long."""


def own_folder() -> Path | None:
    """The folder of the pane that we started and are in; None outside such panes."""
    named = os.environ.get("TOCSIN_FOLDER")
    return Path(named) if named else None


def this_pane() -> PaneId | None:
    """The pane in which this command runs, if any."""
    if named := os.environ.get("TOCSIN_PANE"):
        return PaneId(named)
    server, _, _session = os.environ.get("TMUX", "").rpartition(",")
    pane = os.environ.get("TMUX_PANE")
    return tmux_pane(server, pane) if server and pane else None


def this_session() -> str | None:
    """The agent's session in which this command runs, where its shell names that and has the terminal of another: Codex runs
    all its shells in one daemon, with the environment of whichever pane started that."""
    return os.environ.get("CODEX_SESSION_ID")


async def pane_here(bus: Bus, host: HostId) -> PaneId | None:
    """The pane to which this command belongs; None when there is none, or nobody knows it. Raises Unavailable."""
    session = this_session()
    if session is None or os.environ.get("TOCSIN_PANE"):
        return this_pane()
    async with bus.follow(PANE_STATUS, host) as statuses:
        async for batch in statuses:
            for heard in batch:
                if heard.body.session == session and heard.body.state is not State.GONE:
                    return heard.body.pane
            if not batch:
                break
    return None


def caller_here(host: HostId, pane: PaneId | None, person: bool) -> Caller:
    """Who asks from here, outside panes that we started. A coordinator, unless a person says that they decide this themselves."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    role = Role.PERSON if person else Role.COORDINATOR
    return Caller(role=role, name=f"{user}@{host}", host=host, pane=pane, session=this_session())


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """The Run that a pane or shell is bound to, as its last `run create` or `run use` left it."""

    run: str
    generation: int | None = None


class Memory:
    """Remembers what this pane, or else this shell, is bound to: a file, beside what it belongs to."""

    def __init__(self, state: Path) -> None:
        folder = own_folder()
        self.file = folder / "bound.json" if folder else state / "callers" / f"{_place()}.json"

    def read(self) -> Bound | None:
        """What was bound; None when nothing was, or the file is damaged."""
        try:
            return msgspec.json.decode(self.file.read_bytes(), type=Bound)
        except (OSError, msgspec.MsgspecError):
            return None

    def write(self, bound: Bound | None) -> bool:
        """Bind, or forget; False when it cannot be remembered here."""
        try:
            if bound is None:
                self.file.unlink(missing_ok=True)
            else:
                write_whole(self.file, msgspec.json.encode(bound))
                self._drop_old()
        except OSError:
            return False
        return True

    def _drop_old(self) -> None:
        if own_folder() is None:
            for other in self.file.parent.glob("*.json"):
                if time.time() - other.stat().st_mtime > BOUND_S_MAX:
                    other.unlink(missing_ok=True)


def _place() -> str:
    """This agent's session, this pane, or this shell's session: its leader's process, which no other can be mistaken for."""
    from tocsin.runtime import instance

    session = this_session()
    if session is not None:
        return f"session-{digest(session)}"
    pane = this_pane()
    if pane is not None:
        return f"pane-{token(pane)}"
    leader = instance.identify(os.getsid(0))
    return f"shell-{digest(str(os.getsid(0)), leader.started if leader else '')}"
