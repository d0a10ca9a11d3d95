"""Asks a program one question, with a time limit. Never through a shell, never with an input."""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Answer:
    """What a program said, and its exit code."""

    code: int
    output: bytes
    errors: bytes


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End what we started and what that has started: each runs in a session of its own."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


async def ask(words: Sequence[str], environment: Mapping[str, str], seconds_max: float) -> Answer | None:
    """The program's answer; None when it cannot be started or takes longer than `seconds_max`.

    In a thread: the event loop's own way to start a program copies the page tables of this process each time, which
    costs five times the program.
    """
    started: list[subprocess.Popen[bytes]] = []

    def run() -> Answer | None:
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                start_new_session=True,
            )
        except OSError:
            return None
        started.append(process)
        with process:
            try:
                output, errors = process.communicate(timeout=seconds_max)
            except subprocess.TimeoutExpired:
                # Its output is not waited for: tmux hands its pipes to the server, which may be the one that hangs.
                _end(process)
                return None
        return Answer(process.returncode, output, errors)

    try:
        return await asyncio.to_thread(run)
    except asyncio.CancelledError:
        for process in started:
            _end(process)
        raise
