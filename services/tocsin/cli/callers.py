"""Who asks from here, and which Run this pane or shell is bound to."""

import getpass
import os
import time
from pathlib import Path

import msgspec

from tocsin.cli.lines import write_whole
from tocsin.contract.ids import HostId, PaneId, digest, tmux_pane, token
from tocsin.contract.parties import Caller, Role

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


def caller_here(host: str, person: bool) -> Caller:
    """Who asks from here, outside panes that we started. A coordinator, unless a person says that they decide this themselves."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    role = Role.PERSON if person else Role.COORDINATOR
    return Caller(role=role, name=f"{user}@{host}", host=HostId(host), pane=this_pane())


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
    """This pane, or this shell's session: its leader's process, which no other can be mistaken for."""
    from tocsin.runtime import instance

    pane = this_pane()
    if pane is not None:
        return f"pane-{token(pane)}"
    leader = instance.identify(os.getsid(0))
    return f"shell-{digest(str(os.getsid(0)), leader.started if leader else '')}"
