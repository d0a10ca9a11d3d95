"""Puts the hands together, beside the eyes."""

import asyncio
from pathlib import Path

from tocsin.bus.bus import Bus
from tocsin.contract.messages import PaneSeen
from tocsin.contract.subjects import MIB
from tocsin.pane_host.hands.checkouts import Checkouts
from tocsin.pane_host.hands.folders import PaneFolders
from tocsin.pane_host.hands.journal import Journal
from tocsin.pane_host.hands.made import Cabinet
from tocsin.pane_host.hands.screens import Screens
from tocsin.pane_host.hands.service import Hands
from tocsin.pane_host.hands.telling import Telling
from tocsin.pane_host.hands.tools import Eyes, Tools
from tocsin.pane_host.hands.tree import Trees
from tocsin.pane_host.hands.watching import Watcher
from tocsin.pane_host.last_values import Family
from tocsin.pane_host.processes import Residents
from tocsin.pane_host.service import PaneHost
from tocsin.pane_host.settings import PaneHostSettings
from tocsin.runtime.instance import FOLDER_MODE
from tocsin.runtime.skew import Skew

FOLDER = "hands"


def hands_of(
    bus: Bus, eyes: PaneHost, residents: Residents, seen: Family[PaneSeen], settings: PaneHostSettings, state: Path, skew: Skew
) -> Hands:
    """The hands of the host that `eyes` watches. They keep what they must know in `<state>/hands`."""
    folder = state / FOLDER
    folder.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)
    terminals = eyes.terminals
    tools = Tools(
        host=eyes.speaker.host,
        clock=eyes.clock,
        skew=skew,
        state=state,
        folder=folder,
        journal=Journal(folder / "journal"),
        cabinet=Cabinet(folder / "terminals"),
        telling=Telling(bus),
        trees=Trees(residents.table, residents.boot),
        screens=Screens(settings.tmux_server),
        checkouts=Checkouts(
            configured="".join(settings.listed(settings.worktrees)[:1]), state=state, space_bytes_min=settings.space_mib_min * MIB
        ),
        eyes=Eyes(
            statuses=lambda: eyes.statuses,
            terminals=lambda: terminals.known,
            blind=lambda: any(look.why for look in terminals.looks),
            open=lambda: asyncio.gather(eyes.looked.wait(), eyes.heard.wait()),
        ),
        setup_s_max=settings.setup_s_max,
    )
    return Hands(bus, tools, Watcher(tools, eyes.speaker, seen), PaneFolders(bus, tools))
