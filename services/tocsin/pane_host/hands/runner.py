"""The parent of one agent: starts it, outlives it, and tells how it ended. One process per terminal.

    python -m tocsin.pane_host.hands.runner FOLDER

FOLDER holds `spec.json`; the runner adds `runner.json` (who it is), `agent.json` (who the agent is, before the agent
runs its first instruction) and `exit.json`. Each is renamed into place. Exactly one runner ever takes a folder, so
whoever asks twice for a terminal gets one agent.

On Linux it is the subreaper: whatever the agent leaves behind becomes its child and can be found and counted. It holds
no connection and decides nothing, so pane-host may be killed and come back without the agent noticing.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from tocsin.contract.ids import tmux_pane
from tocsin.runtime.instance import FILE_MODE, Identity, identify, write_private

SPEC, CLAIM, RUNNER, GO, AGENT, EXIT, OUTPUT = "spec.json", "claim", "runner.json", "go", "agent.json", "exit.json", "output"

PR_SET_CHILD_SUBREAPER = 36
WAIT_S = 0.02
"""Between two looks for the word to go, and for the end of what the agent left behind."""

TAIL_LINES, TAIL_BYTES = 60, 8 * 1024
"""How much of its last output an exit tells."""

NOT_FOUND, NOT_RUNNABLE, TAKEN = 127, 126, 3
"""Exit codes: the program is not there, or cannot be run (as shells say it); another runner has the folder."""

HANDED_ON = (signal.SIGHUP, signal.SIGTERM)


class Spec(msgspec.Struct, frozen=True, kw_only=True):
    """What to run. `terminal`: in one of tmux's; else with its output in a file and no input."""

    argv: tuple[str, ...]
    cwd: str
    environment: dict[str, str]
    unset: tuple[str, ...]
    terminal: bool
    waits: bool = True  # for the word to go
    pane: str | None = None  # None: the one that tmux names


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How the agent ended. `code`: its exit code, or minus the signal that ended it."""

    code: int
    at_ms: int
    tail: str = ""


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _put(file: Path, value: object) -> None:
    write_private(file, msgspec.json.encode(value))


def claim(folder: Path) -> bool:
    """Take the folder; False when it is taken. Never given back: a folder is good for one agent."""
    try:
        os.close(os.open(folder / CLAIM, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE))
    except FileExistsError:
        return False
    return True


def adopt_descendants() -> None:
    """Be the parent of whatever a descendant leaves behind. Linux only: elsewhere the environment's mark finds it."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class Runner:
    """One agent's life."""

    def __init__(self, folder: Path, spec: Spec) -> None:
        self.folder = folder
        self.spec = spec
        self.agent = 0
        self.asked_to_end = False

    # ------------------------------------------------------------ signals

    def listen(self) -> None:
        """A closed terminal and a request to end are handed on to the agent; keys of the terminal reach the agent alone."""

        def handle(number: int, _frame: FrameType | None) -> None:
            self.asked_to_end = True
            if self.agent:
                self._signal_agent(number)

        for number in HANDED_ON:
            signal.signal(number, handle)
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTOU, signal.SIGTTIN):
            signal.signal(number, signal.SIG_IGN)

    def _signal_agent(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.agent, number)

    # -------------------------------------------------------------- start

    def wait_for_word(self) -> bool:
        """Until somebody says go; False when the end was asked for first."""
        while self.spec.waits and not (self.folder / GO).exists():
            if self.asked_to_end:
                return False
            time.sleep(WAIT_S)
        return not self.asked_to_end

    def start(self) -> None:
        """Start the agent in a process group of its own, in front of its terminal. It waits until its identity is written."""
        gate_out, gate_in = os.pipe()
        self.agent = os.fork()
        if self.agent == 0:
            os.close(gate_in)
            self._become(lambda: os.read(gate_out, 1))
        os.close(gate_out)
        with contextlib.suppress(OSError):  # it has done so itself
            os.setpgid(self.agent, self.agent)
        _put(self.folder / AGENT, identify(self.agent) or Identity(self.agent, ""))
        os.write(gate_in, b".")
        os.close(gate_in)

    def _become(self, wait: Callable[[], object]) -> None:
        """In the child: never returns."""
        code = NOT_RUNNABLE
        try:
            os.setpgid(0, 0)
            if self.spec.terminal and os.isatty(0):
                os.tcsetpgrp(0, os.getpid())
            for number in range(1, signal.NSIG):
                if number not in (signal.SIGKILL, signal.SIGSTOP):
                    try:
                        signal.signal(number, signal.SIG_DFL)
                    except (OSError, ValueError):
                        continue  # a number that means nothing here
            wait()
            os.chdir(self.spec.cwd)
            os.execvpe(self.spec.argv[0], self.spec.argv, self.environment())  # noqa: S606  (starting it is what this is for)
        except OSError as error:
            os.write(2, f"{self.spec.argv[0]}: {error.strerror}\n".encode(errors="replace"))
            code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_RUNNABLE
        finally:
            os._exit(code)

    def environment(self) -> dict[str, str]:
        """What the agent has: the terminal's own, and what the spec says. Only here is it known which pane this is."""
        pane = self.spec.pane
        if pane is None and "TMUX" in os.environ:
            pane = tmux_pane(os.environ["TMUX"].rpartition(",")[0], os.environ.get("TMUX_PANE", ""))
        kept = {name: value for name, value in os.environ.items() if name not in self.spec.unset}
        return kept | ({"TOCSIN_PANE": pane} if pane else {}) | self.spec.environment

    # --------------------------------------------------------------- life

    def wait(self) -> int:
        """Until the agent has ended, collecting all that ends meanwhile; its exit code, or minus the signal that ended it."""
        while True:
            pid, status = os.waitpid(-1, os.WUNTRACED)
            if pid != self.agent:
                continue
            if os.WIFSTOPPED(status):
                # There is no shell here that could bring it back.
                self._signal_agent(signal.SIGCONT)
                continue
            return os.waitstatus_to_exitcode(status)

    def tail(self) -> str:
        """The last lines that it has shown."""
        if self.spec.terminal:
            server, pane = os.environ.get("TMUX", ""), os.environ.get("TMUX_PANE", "")
            words = ["tmux", "-u", "-S", server.partition(",")[0], "capture-pane", "-p", "-J", "-S", f"-{TAIL_LINES}", "-t", pane]
            try:
                shown = subprocess.run(words, capture_output=True, timeout=5, check=False, stdin=subprocess.DEVNULL).stdout
            except (OSError, subprocess.TimeoutExpired):
                return ""
        else:
            shown = last_bytes(self.folder / OUTPUT, TAIL_BYTES)
        lines = shown.decode(errors="replace").rstrip().splitlines()[-TAIL_LINES:]
        return "\n".join(line.rstrip() for line in lines)[-TAIL_BYTES:]

    def outlive(self) -> None:
        """Stay as long as the terminal is to stay, and as long as anything lives that the agent left behind."""
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                if self.asked_to_end or not self.spec.terminal:
                    return
                pid = 0
            if pid == 0:
                time.sleep(WAIT_S * 5)

    def run(self) -> int:
        """From the claim to the end; the exit code."""
        self.listen()
        adopt_descendants()
        _put(self.folder / RUNNER, identify(os.getpid()))
        if not self.wait_for_word():
            return 0
        self.start()
        code = self.wait()
        if self.spec.terminal and os.isatty(0):
            os.tcsetpgrp(0, os.getpgrp())
        _put(self.folder / EXIT, Ended(code=code, at_ms=_now_ms(), tail=self.tail()))
        if self.spec.terminal and not self.asked_to_end:
            how = f"code {code}" if code >= 0 else f"signal {-code}"
            os.write(1, f"\r\n[the agent has ended: {how}]\r\n".encode())
        self.outlive()
        return 0


def last_bytes(file: Path, count: int) -> bytes:
    """The end of a file; nothing when it is not there."""
    try:
        with file.open("rb") as opened:
            opened.seek(0, os.SEEK_END)
            opened.seek(max(0, opened.tell() - count))
            return opened.read()
    except OSError:
        return b""


def main(arguments: list[str]) -> int:
    """The exit code."""
    folder = Path(arguments[0])
    spec = msgspec.json.decode((folder / SPEC).read_bytes(), type=Spec)
    if not claim(folder):
        return TAKEN
    return Runner(folder, spec).run()


def read(folder: Path, name: str, kind: Any) -> Any:
    """What a runner has written under `name`, as `kind`; None when it has not, or it is damaged."""
    try:
        return msgspec.json.decode((folder / name).read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError):
        return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
