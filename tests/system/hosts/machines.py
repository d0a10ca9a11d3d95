"""Machines of one instance: each with a home, a tmux server, a state folder and, if a test wants it, a clock and a network of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from support import Deadline
from tocsin.runtime import instance

HERE = Path(__file__).parent
HOOK = HERE.parents[2] / "libs/tocsin/agents/install/files/hook"
START_S_MAX = 60

DATE = """#!/bin/sh
# The clock of hook commands on a machine whose clock is off.
case "$*" in +%s%3N) echo $(( $(/bin/date +%s%3N) + AHEAD_S * 1000 )) ;; *) exec /bin/date "$@" ;; esac
"""


class Machine:
    """One machine. `within`: words before each command, which put it into a network of its own; `ahead_s`: how far its clock is ahead."""

    def __init__(self, folder: Path, name: str, *, within: Sequence[str] = (), ahead_s: int = 0) -> None:
        self.folder = folder / name
        self.name = name
        self.state = self.folder / "state"
        self.within = tuple(within)
        self.has_own_disk = False
        self.process: subprocess.Popen[bytes] | None = None
        self.log = self.folder / "said"
        for made in (self.folder / "home", self.folder / "tmux", self.folder / "bin"):
            made.mkdir(parents=True)
        outside = {"NATS_URL", "REDIS_URL", "TMUX", "TMUX_PANE", "PYTHONPATH"}
        kept = {key: value for key, value in os.environ.items() if key not in outside and not key.startswith("TOCSIN_")}
        self.environment: dict[str, str] = kept | {
            "HOME": str(self.folder / "home"),
            "TMUX_TMPDIR": str(self.folder / "tmux"),
            "TOCSIN_STATE": str(self.state),
            "TOCSIN_HOST": name,
        }
        if ahead_s:
            date = self.folder / "bin" / "date"
            date.write_text(DATE.replace("AHEAD_S", str(ahead_s)))
            date.chmod(0o755)
            self.environment |= {
                "PATH": f"{date.parent}:{os.environ['PATH']}",
                "PYTHONPATH": str(HERE / "clock"),
                "TOCSIN_TEST_CLOCK_AHEAD_S": str(ahead_s),
            }

    def before(self, folder: Path) -> list[str]:
        """What stands before a command in a folder: entering a network or disk may lead out of it."""
        return [*self.within, "env", "-C", str(folder)] if self.within else []

    def tocsin(self, *words: str, given: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        """One command of a person on this machine, to its end."""
        return subprocess.run(
            [*self.before(self.folder), sys.executable, "-P", "-m", "tocsin.cli", *words], env=self.environment | environment, cwd=self.folder,
            input=given, capture_output=True, text=True, timeout=START_S_MAX, check=False,
        )  # fmt: skip

    def start(self, *words: str, given: str = "", **environment: str) -> "Machine":
        """`tocsin up` or `tocsin join`, until it is ready."""
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*self.before(self.folder), sys.executable, "-P", "-m", "tocsin.cli", *words], env=self.environment | environment, cwd=self.folder,
                stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        assert self.process.stdin is not None
        self.process.stdin.write(given.encode())
        self.process.stdin.close()
        for _ in Deadline(START_S_MAX, f"{self.name} is ready"):
            assert self.process.poll() is None, self.log.read_text()
            reached = instance.endpoint(self.seen)
            if reached is not None and reached.ready:
                return self
        raise AssertionError

    @property
    def seen(self) -> Path:
        """The state folder as this test sees it: what runs there may have a disk of its own."""
        return Path(f"/proc/{self.process.pid}/root{self.state}") if self.process is not None and self.has_own_disk else self.state

    def end(self) -> None:
        """Stop what was started, and what it left."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        # A worker's terminal outlives those who made it: here it goes with its machine.
        subprocess.run(["tmux", "-L", "tocsin", "kill-server"], env=self.environment, capture_output=True, check=False)

    def __enter__(self) -> "Machine":
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    # ------------------------------------------------------------- agents

    def folder_of(self, work: str) -> Path:
        """The checkout in which an agent works here."""
        made = self.folder / "work" / work
        made.mkdir(parents=True, exist_ok=True)
        return made.resolve()

    def hook(self, event: str, work: str, **fields: Any) -> None:
        """One hook of Claude Code through the installed hook command, in its folder."""
        place = self.folder_of(work)
        body = {"hook_event_name": event, "session_id": f"{self.name}-{work}", "cwd": str(place), **fields}
        subprocess.run(
            [*self.before(place), "sh", str(HOOK), "claude"], input=json.dumps(body).encode(), env=self.environment, cwd=place, check=True, timeout=30,
            capture_output=True,
        )  # fmt: skip

    def ask(self, work: str) -> None:
        """Its agent asks its person for a permission."""
        call = f"t{time.monotonic_ns()}"
        fields = {"tool_name": "Bash", "tool_input": {"command": "touch x"}, "tool_use_id": call, "prompt_id": "p1"}
        self.hook("PreToolUse", work, **fields)
        self.hook("PermissionRequest", work, **fields)

    def spooled(self) -> int:
        """How many events wait on this machine."""
        return len(list((self.state / "spool").glob("*.hook")))

    def signal(self, service: str, number: int) -> None:
        """Signal one of the services that run here."""
        (child,) = [child for child in instance.children(self.state) if child.name == service]
        assert child.process is not None
        os.kill(child.process.pid, number)

    # --------------------------------------------------------------- looks

    def rows(self) -> list[dict[str, Any]]:
        """The ranked list, first row first, as this machine sees it; empty while there is none."""
        done = self.tocsin("ls", "--json")
        found: list[dict[str, Any]] = json.loads(done.stdout)["worktrees"] if done.returncode == 0 else []
        return found

    def wait_for(self, what: str, holds: Any, seconds: float = 30) -> list[dict[str, Any]]:
        """The list as soon as `holds` is true of its rows by (host, folder name)."""
        rows: list[dict[str, Any]] = []
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            rows = self.rows()
            by_name = {(row["host"], row["name"]): row for row in rows}
            try:
                if holds(by_name):
                    return rows
            except KeyError:
                continue
        raise AssertionError(f"not in time: {what}: {json.dumps(rows, indent=1)}")

    def findings(self, check: str) -> list[Mapping[str, Any]]:
        """What doctor finds wrong here, of one kind."""
        done = self.tocsin("doctor", "--json")
        return [one for one in json.loads(done.stdout)["findings"] if one["check"] == check and one["level"] == "wrong"]
