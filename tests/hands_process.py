"""A host with hands as a process of its own, that ends by its own kill -9 at a named moment of a step.

    hands_process.py STATE NATS_URL [noted|done STEP]

`noted`: the step is on disk as begun, and nothing of it was done. `done`: all of it was done, and that is not on disk.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from tocsin.bus.nats_bus import connect
from tocsin.pane_host.__main__ import build
from tocsin.pane_host.core.steps import Entry
from tocsin.pane_host.hands import journal
from tocsin.pane_host.settings import PaneHostSettings


def die_at(moment: str, step: str) -> None:
    append = journal.append

    def write(file: Path, entry: Entry) -> None:
        if moment == "done" and entry.did == step:
            os.kill(os.getpid(), signal.SIGKILL)
        append(file, entry)
        if moment == "noted" and entry.began == step:
            os.kill(os.getpid(), signal.SIGKILL)

    journal.append = write


async def main(state: str, nats_url: str, *moment: str) -> None:
    if moment:
        die_at(*moment)
    async with connect(nats_url, name="pane-host") as bus:
        await build(bus, PaneHostSettings(host="h", tmux_server="hands"), Path(state), Path(state).parent).run()


asyncio.run(main(*sys.argv[1:]))
