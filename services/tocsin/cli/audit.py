"""`tocsin audit`: git, disk, processes, tmux and the ledger of custody side by side. Looks only; changes nothing."""

import argparse
import asyncio
import json
import os
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from tocsin.cli import shown, speak
from tocsin.cli.main import DONE, WANTING
from tocsin.cli.speak import Speaker
from tocsin.contract.custody import ALL, LIST_MAX, CustodyRow, ListCustodies, WorktreeState
from tocsin.contract.ids import HostId, tmux_pane
from tocsin.contract.messages import Process
from tocsin.contract.run import Refused
from tocsin.pane_host.core.checkouts import Listed
from tocsin.pane_host.core.listing import Pane
from tocsin.pane_host.processes import Table
from tocsin.release_accountant.core.audit import Checkout, Ground, Marked, Mismatch, Shell, audit, same

DISPATCH, STATE = "TOCSIN_DISPATCH", "TOCSIN_STATE"
"""What every process that was started for an attempt carries: which attempt, and of which instance."""

NEEDS_A_LOOK = frozenset({WorktreeState.STANDING, WorktreeState.KEPT, WorktreeState.RESTORED, WorktreeState.TRASHED, WorktreeState.PURGED})


def arguments(parser: argparse.ArgumentParser) -> None:
    """Where to ask, and how it is printed."""
    speak.arguments(parser, changes=False, limit_s=speak.LOOK_S)


def run(args: argparse.Namespace) -> int:
    """Print every mismatch. Exit codes: 0 none, 1 some, 3 refused, 4 nobody there."""

    async def work(speaker: Speaker) -> int:
        rows = await _custodies(speaker, args.run)
        if isinstance(rows, Refused):
            return speak.refused(rows, args.json)
        host = HostId(speaker.caller.host or platform.node())
        sights = await look(rows, host, args.state)
        found = audit(rows, sights.ground, speak.now_ms())
        elsewhere = sorted({row.host for row in rows if row.host is not None and row.host != host})
        if args.json:
            print(
                json.dumps({"host": host, "mismatches": [one._asdict() for one in found], "unseen": sights.unseen, "elsewhere": elsewhere})
            )
        else:
            _print(found, sights.unseen, elsewhere, len(rows))
        return WANTING if found else DONE

    return speak.through(args, work)


def _print(found: Sequence[Mismatch], unseen: Sequence[str], elsewhere: Sequence[str], count: int) -> None:
    for one in found:
        print(shown.one_line(f"{one.kind.value}: {one.what}: {one.why}"))
        for step in one.next:
            print(f"  next: {shown.one_line(step)}")
    for why in unseen:
        print(f"not looked into: {shown.one_line(why)}")
    if elsewhere:
        print(f"by their ledger alone (run it there, too): {shown.one_line(', '.join(elsewhere))}")
    print(f"{len(found)} mismatch{'' if len(found) == 1 else 'es'} in {count} custodies." if found else f"{count} custodies, no mismatch.")


async def _custodies(speaker: Speaker, run: str | None) -> list[CustodyRow] | Refused:
    """All of them, page by page."""
    rows: list[CustodyRow] = []
    after: str | None = None
    while True:
        receipt = await speaker.look_at_custody(ListCustodies(run=run, after=after, limit=LIST_MAX), ALL)
        if isinstance(receipt, Refused):
            return receipt
        rows += [msgspec.convert(row, CustodyRow) for row in receipt.result["rows"]]
        after = receipt.result["next"]
        if after is None:
            return rows


# ---------------------------------------------------------------- looking


class Sights(NamedTuple):
    """What this machine shows, and what could not be looked into."""

    ground: Ground
    unseen: list[str]


async def look(rows: Sequence[CustodyRow], host: HostId, state: Path | None) -> Sights:
    """Look at tmux, processes, git and disk, as far as custodies on this machine lead there."""
    from tocsin.pane_host import processes
    from tocsin.runtime import instance

    unseen: list[str] = []
    here = [row for row in rows if row.host == host]
    boot = processes.boot_id()
    table = processes.table_of_this_machine(processes.boot_began_ms())
    own = str(instance.state_folder(state))
    marked = await asyncio.to_thread(_marked, table, boot, own)
    recorded = [row.process for row in here if row.process is not None and row.process.boot == boot]
    running = [found for one in recorded if (found := _now(table, boot, one.pid)) is not None and same(found, one)]
    shells = await _shells(table, boot, marked, unseen)
    checkouts = await _checkouts(here, unseen)
    paths = {path for row in here if row.worktree in NEEDS_A_LOOK for path in (row.path, row.trash) if path}
    folders = await asyncio.to_thread(lambda: {path for path in paths if os.path.lexists(path)})
    return Sights(Ground(host, boot, shells, marked, running, checkouts, folders), unseen)


def _now(table: Table, boot: str, pid: int) -> Process | None:
    started_ms = table.started_ms(pid)
    return None if started_ms is None else Process(pid=pid, started_ms=started_ms, boot=boot)


def _marked(table: Table, boot: str, own: str) -> list[Marked]:
    """Processes that carry a mark of this instance. Other users' processes cannot be asked, and are none of ours."""
    import psutil

    found = []
    for process in psutil.process_iter():
        try:
            environment = process.environ()
            dispatch = environment.get(DISPATCH)
            identity = _now(table, boot, process.pid) if dispatch and _same_folder(environment.get(STATE), own) else None
            if dispatch and identity is not None:
                found.append(Marked(identity, process.name(), dispatch))
        except (psutil.Error, OSError):
            continue
    return found


def _same_folder(named: str | None, own: str) -> bool:
    return named is not None and os.path.realpath(named) == os.path.realpath(own)


async def _shells(table: Table, boot: str, marked: Sequence[Marked], unseen: list[str]) -> list[Shell] | None:
    """The panes of every tmux server of this user; None when one of them did not tell all."""
    from tocsin.pane_host.settings import PaneHostSettings
    from tocsin.pane_host.tmux import Tmux

    settings = PaneHostSettings()
    tmux = Tmux(settings.listed(settings.tmux_sockets), table.started_ms)
    looks = await tmux.look()
    dispatches = {one.process.pid: one.dispatch for one in marked}
    shells, complete = [], True
    for look in looks:
        if look.listing is None or look.why is not None:
            unseen.append(f"tmux at {look.socket}: {look.why}")
            complete = False
        if look.listing is not None:
            server = f"{look.socket},{look.listing.pid}"
            shells += [_shell(table, boot, server, look.socket, pane, dispatches) for pane in look.listing.panes if not pane.dead]
    return shells if complete else None


def _shell(table: Table, boot: str, server: str, socket: str, pane: Pane, dispatches: dict[int, str]) -> Shell:
    return Shell(tmux_pane(server, pane.number), f"{socket} {pane.number}", _now(table, boot, pane.pid), dispatches.get(pane.pid))


async def _checkouts(rows: Iterable[CustodyRow], unseen: list[str]) -> dict[str, Checkout] | None:
    """The worktrees of every repository that a custody leads to; None when one of them did not tell."""
    from tocsin.pane_host.git import Git

    git, found, complete = Git(), dict[str, Checkout](), True
    for common_dir in await asyncio.to_thread(_repositories, rows):
        listed = await git.worktrees(common_dir)
        if not listed:
            unseen.append(f"git at {common_dir}: no answer")
            complete = False
            continue
        repository = listed[0].path
        found |= await asyncio.to_thread(_found, listed, repository)
    return found if complete else None


def _repositories(rows: Iterable[CustodyRow]) -> list[str]:
    """The git folders that all checkouts of a repository share, of every repository that a custody leads to."""
    from tocsin.pane_host.git import top_of

    tops = [top_of(os.path.realpath(path)) for row in rows for path in (row.path, row.trash) if path]
    return sorted({top.common_dir for top in tops if top is not None})


def _found(listed: Iterable[Listed], repository: str) -> dict[str, Checkout]:
    return {os.path.realpath(one.path): Checkout(one.path, repository, one.prunable, _made_for(one.path)) for one in listed}


def _made_for(path: str) -> str | None:
    """The Dispatch for which we made a worktree, as its own mark says."""
    from tocsin.pane_host.git import top_at
    from tocsin.pane_host.hands.checkouts import MARK, Mark

    top = top_at(path)
    if top is None:
        return None
    try:
        return msgspec.json.decode(Path(top.git_dir, MARK).read_bytes(), type=Mark).dispatch
    except (OSError, msgspec.MsgspecError):
        return None
