"""The process table of this machine, and process identities that no other process can take over."""

import os
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil

from tocsin.agents.registry import agent_of_program
from tocsin.contract.messages import Process
from tocsin.pane_host.core.agent_process import Row, below, choose
from tocsin.pane_host.core.facts import Resident

ENDED = frozenset("ZX")
"""States of a process that has ended and was not yet collected."""

PS_S_MAX = 5.0


class Table(Protocol):
    """Where processes are looked up."""

    def rows(self) -> dict[int, Row]:
        """Every process, by pid. One look: its rows are of one moment, nearly."""
        ...

    def started_ms(self, pid: int) -> int | None:
        """When the process of that number began, UTC ms, the same value at every look of one boot; None when there is none."""
        ...


class ProcTable:
    """Linux: /proc, which is ten times cheaper than a program and has ticks instead of a clock that may step."""

    def __init__(self, boot_began_ms: int) -> None:
        self._boot_began_ms = boot_began_ms
        self._ticks = os.sysconf("SC_CLK_TCK")

    @staticmethod
    def _fields(pid: int | str) -> list[str] | None:
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123  (a Path costs more than the read)
                # The second field is the program's name in brackets and may hold anything: fields are counted behind it.
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            return None
        return None if not fields or fields[0] in ENDED else fields

    def rows(self) -> dict[int, Row]:
        """See Table.rows."""
        found = {}
        for name in os.listdir("/proc"):  # noqa: PTH208
            if name.isdigit() and (fields := self._fields(name)):
                pid = int(name)
                found[pid] = Row(pid, int(fields[1]), int(fields[2]), int(fields[5]), fields[4] != "0")
        return found

    def started_ms(self, pid: int) -> int | None:
        """See Table.started_ms."""
        fields = self._fields(pid)
        return None if fields is None else self._boot_began_ms + int(fields[19]) * 1000 // self._ticks


class PortableTable:
    """macOS and others: `ps` for the rows, psutil for start times (the kernel keeps them as they were, whatever the clock does)."""

    def rows(self) -> dict[int, Row]:
        """See Table.rows."""
        columns = [word for column in ("pid", "ppid", "pgid", "tpgid", "stat", "tty") for word in ("-o", f"{column}=")]
        done = subprocess.run(["ps", "-ax", *columns], capture_output=True, text=True, timeout=PS_S_MAX, check=True)
        found = {}
        for line in done.stdout.splitlines():
            pid, parent, group, foreground, state, terminal = line.split(None, 5)
            if state[0] not in ENDED:
                found[int(pid)] = Row(int(pid), int(parent), int(group), int(foreground), not terminal.startswith(("?", "-")))
        return found

    def started_ms(self, pid: int) -> int | None:
        """See Table.started_ms."""
        try:
            process = psutil.Process(pid)
            return None if process.status() == psutil.STATUS_ZOMBIE else round(process.create_time() * 1000)
        except psutil.Error:
            return None


def boot_id() -> str:
    """What this boot of this machine is called; another one after a restart."""
    if sys.platform == "linux":
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    done = subprocess.run(["sysctl", "-n", "kern.bootsessionuuid"], capture_output=True, text=True, timeout=PS_S_MAX, check=False)
    return done.stdout.strip() or str(int(psutil.boot_time()))


def boot_began_ms() -> int:
    """When this boot began, UTC ms by the clock of now: measured twice it differs by what the clock was set meanwhile."""
    since = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000 if sys.platform == "linux" else int(psutil.boot_time())
    return time.time_ns() // 1_000_000 - since if sys.platform == "linux" else since * 1000


def table_of_this_machine(began_ms: int) -> Table:
    """The cheapest table that works here."""
    return ProcTable(began_ms) if sys.platform == "linux" else PortableTable()


def words_of(pid: int) -> tuple[str, ...]:
    """A process's command line, empty when it is gone or not ours to read."""
    try:
        return tuple(psutil.Process(pid).cmdline())
    except (psutil.Error, OSError):
        return ()


def folder_of(pid: int) -> str | None:
    """A process's working folder, real path; None when it is gone or not ours to read."""
    try:
        return os.path.realpath(str(psutil.Process(pid).cwd()))
    except (psutil.Error, OSError):
        return None


def agent_named(program: str) -> str | None:
    """The name of the agent whose program this is."""
    agent = agent_of_program(program)
    return agent.name if agent else None


@dataclass(frozen=True, slots=True)
class Residents:
    """Which agent lives in which terminal."""

    table: Table
    boot: str

    def alive(self, process: Process) -> bool:
        """True while exactly this process runs, on this boot."""
        return process.boot == self.boot and self.table.started_ms(process.pid) == process.started_ms

    def find(self, terminals: Iterable[int]) -> dict[int, Resident | None]:
        """By the pid that a terminal was opened with: the agent below it, or None for "no agent is there".

        A terminal whose own process cannot be seen (it just ended, or is of another pid namespace) is left out: that proves nothing.
        """
        found: dict[int, Resident | None] = {}
        try:
            rows = self.table.rows()
        except (OSError, ValueError, subprocess.SubprocessError):
            return found
        for pid in terminals:
            tree = below(rows, pid)
            chosen = choose(tree, {row.pid: words_of(row.pid) for row in tree if row.has_terminal}, agent_named)
            if tree and chosen is None:
                found[pid] = None
            elif chosen is not None and (started_ms := self.table.started_ms(chosen.pid)) is not None:
                process = Process(pid=chosen.pid, started_ms=started_ms, boot=self.boot)
                found[pid] = Resident(chosen.agent, process, folder_of(chosen.pid))
        return found
