"""Wiring: builds pane-host from its settings and runs it."""

import asyncio
import fcntl
import os
from pathlib import Path

from tocsin.bus.bus import Bus
from tocsin.bus.nats_bus import connect
from tocsin.contract.ids import HostId, WorkspaceId
from tocsin.contract.subjects import PANE_SEEN, PANE_TITLED, WORKTREE_KNOWN
from tocsin.pane_host.boot_clock import BootClock
from tocsin.pane_host.core.facts import Speaker
from tocsin.pane_host.git import Git
from tocsin.pane_host.glances import Glances
from tocsin.pane_host.hands.wiring import hands_of
from tocsin.pane_host.last_values import LastValues
from tocsin.pane_host.memory import new_life, of_this_boot, recall
from tocsin.pane_host.notices import Notices
from tocsin.pane_host.presence import NameTaken, Presence, of_this_machine
from tocsin.pane_host.processes import Residents, boot_began_ms, boot_id, table_of_this_machine
from tocsin.pane_host.service import PaneHost
from tocsin.pane_host.settings import PaneHostSettings
from tocsin.pane_host.spool import Spool
from tocsin.pane_host.terminals import Terminals
from tocsin.pane_host.tmux import Tmux
from tocsin.pane_host.transcripts import Transcripts
from tocsin.pane_host.worktrees import Worktrees
from tocsin.runtime.clock import SystemClock
from tocsin.runtime.instance import FILE_MODE, FOLDER_MODE, state_folder
from tocsin.runtime.logs import log
from tocsin.runtime.metrics import Meter, metered
from tocsin.runtime.run import run
from tocsin.runtime.skew import Skew

LOCK = "pane-host.lock"
STAND_BY_S = 1.0


async def alone(state: Path) -> int:
    """The descriptor that makes this the one pane-host of its instance; waits while another one is."""
    handle = os.open(state / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    told = False
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
        except BlockingIOError:
            if not told:
                told = True
                log("pane_host.standing_by", why="another pane-host of this instance is at work")
        await asyncio.sleep(STAND_BY_S)


def build(bus: Bus, settings: PaneHostSettings, state: Path, home: Path, skew: Skew | None = None) -> PaneHost:
    """The service with everything that it looks through; `home` is where agents keep their transcripts.

    `skew`: how far this machine's clock is off, kept by somebody else; None: it is not.
    """
    clock, skew = SystemClock(), skew or Skew()
    speaker = Speaker(HostId(settings.host), WorkspaceId(settings.workspace), new_life())
    boot = boot_id()
    memory = of_this_boot(recall(state), boot, boot_began_ms())
    table = table_of_this_machine(memory.began_ms)
    tmux = Tmux(settings.listed(settings.tmux_sockets), table.started_ms)
    git = Git()
    values = LastValues(bus, clock, skew)
    seen, titled, known_worktrees = values.family(PANE_SEEN), values.family(PANE_TITLED), values.family(WORKTREE_KNOWN)
    residents = Residents(table, boot)
    host = PaneHost(
        bus=bus,
        clock=clock,
        speaker=speaker,
        values=values,
        tmux=tmux,
        terminals=Terminals(tmux, residents, seen=seen, titled=titled, speaker=speaker, clock=clock, state=state, memory=memory),
        transcripts=Transcripts(home),
        git=git,
        worktrees=Worktrees(git, clock, speaker.host, speaker.workspace, home),
        known_worktrees=known_worktrees,
        spool=Spool(state, clock),
        boot_clock=BootClock(state, clock),
        glances=Glances(bus, clock, speaker.workspace, state),
        notices=Notices(bus, speaker.workspace, desktop=settings.notify_desktop, command=settings.notify_command),
        configured=settings.listed(settings.repositories),
    )
    host.hands = hands_of(bus, host, residents, seen, settings, state, skew)
    return host


async def work(bus: Bus, settings: PaneHostSettings, state: Path, home: Path, meter: Meter) -> None:
    """Look and act under this host's name until cancelled. Raises NameTaken."""
    skew = Skew()
    about = of_this_machine(HostId(settings.host), WorkspaceId(settings.workspace), state)
    presence = Presence(bus, SystemClock(), skew, about)
    await presence.claim()
    host = build(bus, settings, state, home, skew)
    meter.add(host.samples)
    try:
        async with asyncio.TaskGroup() as both:
            both.create_task(presence.run())
            both.create_task(host.run())
    except* NameTaken as taken:
        raise taken.exceptions[0] from None
    finally:
        await presence.leave()


async def main() -> None:
    """Run until cancelled."""
    settings = PaneHostSettings()
    state = state_folder(settings.state)
    state.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)
    lock = await alone(state)
    try:
        async with (
            metered("pane-host", settings) as meter,
            connect(
                settings.nats_url, name="pane-host", state=state, makes_streams=settings.makes_streams, replicas=settings.nats_replicas
            ) as bus,
        ):
            meter.add(bus.samples)
            await work(bus, settings, state, Path.home(), meter)
    finally:
        os.close(lock)


if __name__ == "__main__":
    run("pane-host", main)
