"""The terminals that this host has made: what must be known to find each again, to prove that it is the same one, and to end it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from tocsin.contract.ids import PaneId
from tocsin.contract.messages import Process
from tocsin.pane_host.hands import runner
from tocsin.pane_host.hands.journal import plain_name
from tocsin.runtime.instance import FOLDER_MODE, Identity, write_private
from tocsin.runtime.logs import log

RECORD = "made.json"
PANE_FOLDER = "pane"
BRIEF = "brief.md"
SETUP = "setup"


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """One terminal. `dispatch`, `fence` and `step` are those of the order that made it; `holder` is whose it is now."""

    dispatch: str
    fence: int
    step: str
    run: str
    task: str
    agent: str
    terminal: str  # tmux, process
    mark: str
    path: str  # where its agent works
    made_ms: int
    worktree_made: bool = False
    branch: str | None = None
    pane: PaneId | None = None
    session: str | None = None
    socket: str | None = None
    server: Process | None = None
    number: str | None = None  # tmux's own, %7
    runner: Process | None = None
    process: Process | None = None  # the agent's
    holder: "Holder | None" = None
    exited: bool = False  # its end was said
    lost: bool = False
    released: bool = False  # its processes are proven gone
    key_said_ms: int = 0
    setup_said: bool = True  # the end of its setup was said, or there is none


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """The Dispatch that a terminal works for since it was reused."""

    dispatch: str
    fence: int
    step: str
    run: str
    task: str


class Cabinet:
    """All of them, each in a folder of its own. What the runner writes there is read here, never kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)
        self._made: dict[tuple[str, int], Made] = {}
        for file in sorted(folder.glob(f"*/{RECORD}")):
            try:
                made = msgspec.json.decode(file.read_bytes(), type=Made)
            except (OSError, msgspec.MsgspecError) as error:
                log("terminal.record_unreadable", "error", folder=file.parent.name, error=type(error).__name__)
                continue
            self._made[made.dispatch, made.fence] = made

    def __iter__(self) -> Iterator[Made]:
        return iter(list(self._made.values()))

    def folder(self, dispatch: str, fence: int) -> Path:
        """Where everything about the terminal of that attempt lies. It need not be there."""
        return self._folder / plain_name(dispatch, str(fence))

    def folder_of(self, made: Made) -> Path:
        """Where everything about it lies."""
        return self.folder(made.dispatch, made.fence)

    def put(self, made: Made) -> Made:
        """Write it down, on disk when this returns."""
        write_private(self.folder_of(made) / RECORD, msgspec.json.encode(made))
        self._made[made.dispatch, made.fence] = made
        return made

    def change(self, made: Made, **fields: Any) -> Made:
        """Note something about a terminal; what others have noted meanwhile stays."""
        now = self._made.get((made.dispatch, made.fence))
        return self.put(msgspec.structs.replace(now if now is not None and now.mark == made.mark else made, **fields))

    def drop(self, made: Made) -> None:
        """Forget it; its folder is the caller's to remove."""
        self._made.pop((made.dispatch, made.fence), None)

    def get(self, dispatch: str, fence: int | None = None) -> Made | None:
        """The terminal that a Dispatch has: the one that was made for it, or the one that it reuses."""
        own = [made for made in self if made.dispatch == dispatch and fence in (None, made.fence)]
        reused = [made for made in self if made.holder is not None and made.holder.dispatch == dispatch]
        found = reused or own
        return max(found, key=lambda made: made.made_ms) if found else None

    def of_pane(self, pane: PaneId) -> Made | None:
        """The terminal behind a pane."""
        return next((made for made in self if made.pane == pane and not made.released), None)

    # ------------------------------------------------ what its runner wrote

    def runner_of(self, made: Made) -> Identity | None:
        """The runner's identity, as it wrote it itself."""
        found: Identity | None = runner.read(self.folder_of(made), runner.RUNNER, Identity)
        return found

    def agent_of(self, made: Made) -> Identity | None:
        """The agent's identity, written before its first instruction."""
        found: Identity | None = runner.read(self.folder_of(made), runner.AGENT, Identity)
        return found

    def end_of(self, made: Made) -> runner.Ended | None:
        """How the agent ended; None while it runs, or when nobody could write it down."""
        found: runner.Ended | None = runner.read(self.folder_of(made), runner.EXIT, runner.Ended)
        return found

    def setup_of(self, made: Made) -> Path:
        """The folder of the runner of its setup command."""
        return self.folder_of(made) / SETUP
