"""What a worker's terminal shows, or what is kept of it: only on the machine that it runs on, and only looked at."""

from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from tocsin.cli import speak
from tocsin.cli.speak import Speaker
from tocsin.contract.custody import ShowCustody
from tocsin.contract.refusals import Code
from tocsin.contract.run import Refused, ShowWorker, run_of_dispatch
from tocsin.pane_host.hands import runner
from tocsin.pane_host.hands.made import Cabinet, Made
from tocsin.pane_host.hands.screens import Screens
from tocsin.runtime import instance

BYTES_MAX = 4 * 1024 * 1024
"""Most of a file that is read: its end."""


class Source(StrEnum):
    """Where the lines come from."""

    AUTO = "auto"
    TERMINAL = "terminal"
    FILE = "file"  # the output of a worker without a terminal
    ARCHIVE = "archive"  # kept when its terminal was closed
    EXIT = "exit"  # the last lines, as its runner kept them


class Found(NamedTuple):
    """The last lines. `cut`: there were more."""

    dispatch: str
    source: Source
    text: str
    cut: bool


async def read(speaker: Speaker, dispatch: str, source: Source, lines: int) -> Found | Refused:
    """The last `lines` of what there is. Refuses: not_found, and what the Run refuses."""
    shown = await speaker.look_at_run(ShowWorker(dispatch=dispatch), run_of_dispatch(dispatch))
    if isinstance(shown, Refused):
        return shown
    host = shown.result["worker"]["host"]
    if host != speaker.host:
        return speak.refusal(
            Code.NOT_FOUND, f"{dispatch} is on {host}, this is {speaker.host}", f"on {host}: tocsin worker read {dispatch}"
        )
    folder = instance.state_folder(speaker.options.state) / "hands" / "terminals"
    cabinet = Cabinet(folder) if folder.is_dir() else None
    made = cabinet.get(dispatch) if cabinet is not None else None
    text = None
    if cabinet is not None and made is not None:
        if source in (Source.AUTO, Source.TERMINAL):
            text = await _terminal(made)
            found = Source.TERMINAL
        if text is None and source in (Source.AUTO, Source.FILE) and made.terminal == "process":
            text = _end_of(cabinet.folder_of(made) / runner.OUTPUT)
            found = Source.FILE
    if text is None and source in (Source.AUTO, Source.ARCHIVE):
        text = await _archive(speaker, dispatch)
        found = Source.ARCHIVE
    if text is None and cabinet is not None and made is not None and source in (Source.AUTO, Source.EXIT):
        ended = cabinet.end_of(made)
        text = ended.tail if ended is not None else None
        found = Source.EXIT
    if text is None:
        return speak.refusal(Code.NOT_FOUND, f"nothing is kept of what {dispatch} showed", f"tocsin worker show {dispatch}")
    rows = text.rstrip().split("\n")
    return Found(dispatch, found, "\n".join(rows[-lines:]), len(rows) > lines)


async def _terminal(made: Made) -> str | None:
    """What its pane still knows; None unless exactly that pane of that server life is there."""
    if made.socket is None or made.number is None or made.server is None:
        return None
    screens = Screens(Path(made.socket).name)
    if await screens.server_of(made.socket, made.number) != made.server.pid:
        return None
    history = await screens.history(made.socket, made.number)
    return history.decode(errors="replace") if history is not None else None


async def _archive(speaker: Speaker, dispatch: str) -> str | None:
    """What was kept when its terminal was closed."""
    shown = await speaker.look_at_custody(ShowCustody(), dispatch)
    if isinstance(shown, Refused):
        return None
    file = shown.result["row"].get("archive")
    return _end_of(Path(file)) if file else None


def _end_of(file: Path) -> str | None:
    try:
        with file.open("rb") as opened:
            opened.seek(max(0, file.stat().st_size - BYTES_MAX))
            return opened.read().decode(errors="replace")
    except OSError:
        return None
