"""Starts runners, in a pane of our own tmux server or without a terminal, and knows them again."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from tocsin.pane_host.hands import runner
from tocsin.pane_host.hands.screens import bare_environment
from tocsin.runtime.instance import FILE_MODE, FOLDER_MODE, Identity, alive, write_private

BEGIN_S_MAX = 15.0
"""A runner tells who it is within a tenth of a second; on a machine that swaps it may take longer."""

LOOK_S = 0.02


def pane_path() -> str:
    """PATH as agents get it: ours, with the command `tocsin` of this installation in front."""
    beside = Path(sys.executable).parent
    own = str(beside) if (beside / "tocsin").exists() else None
    path = os.environ.get("PATH", os.defpath)
    return path if own is None or own in path.split(os.pathsep) else f"{own}{os.pathsep}{path}"


def is_there(program: str, path: str) -> bool:
    """True for a program that can be started. One that is named relative to the folder it will run in can only be tried."""
    if "/" in program and not program.startswith("/"):
        return True
    return shutil.which(program, path=path) is not None


def words_for(folder: Path) -> list[str]:
    """The command line of the runner of a folder. Isolated: nothing in the folder that it starts in is imported."""
    return [sys.executable, "-P", "-m", runner.__name__, str(folder)]


def prepare(folder: Path, spec: runner.Spec, files: Mapping[Path, str]) -> None:
    """Write what the runner and its agent need. Does nothing twice: each file is put in place of the one before."""
    folder.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)
    for file, text in files.items():
        file.parent.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)
        write_private(file, text.encode(errors="replace"))
    write_private(folder / runner.SPEC, msgspec.json.encode(spec))


class Launcher:
    """Runners without a terminal are our children until one of us ends; they outlive us."""

    def __init__(self) -> None:
        self._children: list[subprocess.Popen[bytes]] = []

    def start(self, folder: Path, cwd: str) -> None:
        """Start the runner of a folder in a session of its own, its output in a file."""
        self._children = [child for child in self._children if child.poll() is None]
        handle = os.open(folder / runner.OUTPUT, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        try:
            self._children.append(
                subprocess.Popen(
                    words_for(folder),
                    cwd=cwd,
                    stdin=subprocess.DEVNULL,
                    stdout=handle,
                    stderr=handle,
                    env=bare_environment(),
                    start_new_session=True,
                )
            )
        finally:
            os.close(handle)

    def collect(self) -> None:
        """Let go of those that have ended."""
        self._children = [child for child in self._children if child.poll() is None]


def taken(folder: Path) -> bool:
    """True when some runner has ever taken the folder."""
    return (folder / runner.CLAIM).exists()


async def identity_of(folder: Path, name: str, seconds_max: float = BEGIN_S_MAX, alive_in: Path | None = None) -> Identity | None:
    """What a runner writes under `name`, once it is there; None when it does not come in time.

    `alive_in`: the folder of a runner that told who it is; when that one is gone nothing is waited for.
    """
    try:
        async with asyncio.timeout(seconds_max):
            while True:
                writer: Identity | None = runner.read(alive_in, runner.RUNNER, Identity) if alive_in else None
                is_gone = writer is not None and not alive(writer)
                found: Identity | None = runner.read(folder, name, Identity)
                if found is not None or is_gone:
                    return found
                await asyncio.sleep(LOOK_S)
    except TimeoutError:
        return None


async def end_of(folder: Path, seconds_max: float) -> runner.Ended | None:
    """How what a runner started has ended, once it has; None when it takes too long, or its runner ended without a word."""
    try:
        async with asyncio.timeout(seconds_max):
            while True:
                found: Identity | None = runner.read(folder, runner.RUNNER, Identity)
                gone = found is not None and not alive(found)
                # In this order: a runner that has just gone may have written it before.
                ended: runner.Ended | None = runner.read(folder, runner.EXIT, runner.Ended)
                if ended is not None or gone:
                    return ended
                await asyncio.sleep(LOOK_S)
    except TimeoutError:
        return None
