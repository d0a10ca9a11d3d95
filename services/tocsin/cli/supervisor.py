"""Starting, watching and ending the processes of an instance.

Children lead sessions of their own, so a Ctrl+C in the terminal reaches the supervisor alone, which ends them in order:
services first, then the servers that they need. On Linux they get SIGTERM when the supervisor dies, whatever killed it;
elsewhere whoever starts next finds them by number and start time and ends them.
"""

import asyncio
import contextlib
import os
import signal
import time
from asyncio.subprocess import DEVNULL, STDOUT, Process
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tocsin.cli.nursery import Born, Nursery, die_with_parent
from tocsin.runtime import instance
from tocsin.runtime.instance import Child, Identity

FIRST_PAUSE_S = 0.2
PAUSE_S_MAX = 10.0
STEADY_S = 30.0
"""A life of that length clears the count of failures: what fails once a day is started again at once."""

SERVICE_STOP_S_MAX = 4.5
"""A little longer than services take to drain; what is not gone then is killed."""

SERVER_STOP_S_MAX = 10.0
"""A store that is killed while it writes starts again by itself, but slower."""

LOG_BYTES_MAX = 4 * 1024 * 1024
"""Per log file; one older part of the same size is kept."""

LOG_LOOK_S = 30.0
POLL_S = 0.02
TAIL_BYTES = 2000


@dataclass(frozen=True)
class Job:
    """A process to be kept running: a program, or without `argv` the service of that name, born of the nursery."""

    name: str
    argv: tuple[str, ...]
    log: Path
    environment: Callable[[], Mapping[str, str]] = dict  # beside our own; asked before each start
    keeps_lock: bool = False  # the folder stays held as long as it lives


class StartFailed(Exception):
    """A server ended, or was not ready in time. The message is one line with its last words."""


# ---------------------------------------------------------- decisions


def pause_s(failures: int) -> float:
    """Seconds to wait before the next start after that many short lives in a row."""
    return min(FIRST_PAUSE_S * 2.0 ** min(failures - 1, 10), PAUSE_S_MAX)


def failures_after(failures: int, lived_s: float) -> int:
    """The count of short lives in a row, one life later."""
    return 1 if lived_s >= STEADY_S else failures + 1


def in_words(code: int) -> str:
    """How a process ended: its exit code, or the signal that ended it."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


# --------------------------------------------------------------- files


def open_log(path: Path) -> int:
    """A descriptor that appends to a private file. Raises Unusable."""
    try:
        path.parent.mkdir(mode=instance.FOLDER_MODE, parents=True, exist_ok=True)
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, instance.FILE_MODE)
    except OSError as error:
        raise instance.why(error, path) from error


def last_words(path: Path) -> str:
    """The last line of a log that says something; empty when there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL_BYTES))
            lines = [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    except OSError:
        return ""
    return lines[-1] if lines else ""


def trim(path: Path) -> None:
    """Keep a log bounded. Its writers append, so they go on at the new end; a line written meanwhile may be lost."""
    with contextlib.suppress(OSError):
        if path.stat().st_size > LOG_BYTES_MAX:
            older = path.with_suffix(".log.1")
            older.write_bytes(path.read_bytes()[-LOG_BYTES_MAX:])
            older.chmod(instance.FILE_MODE)
            os.truncate(path, 0)


# ----------------------------------------------------------- processes


def end_others(processes: list[Identity], limit_s: float) -> list[Identity]:
    """End exactly these processes, politely first; returns those that had to be killed. Waits until they are gone."""
    killed: list[Identity] = []
    for number, seconds in ((signal.SIGTERM, limit_s), (signal.SIGKILL, limit_s)):
        left = [process for process in processes if instance.alive(process)]
        if number is signal.SIGKILL:
            killed = left
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, number)
        until = time.monotonic() + seconds
        while time.monotonic() < until and any(instance.alive(process) for process in left):
            time.sleep(POLL_S)
    return killed


class Supervisor:
    """Keeps the processes of one instance running until `stop`. Take the folder's lock first."""

    def __init__(self, state: Path, lock: int, tell: Callable[[str], None]) -> None:
        self.state = state
        self._lock = lock
        self._tell = tell
        self._children: dict[str, Child] = {}
        self._servers: list[asyncio.Task[None]] = []
        self._services: list[asyncio.Task[None]] = []
        self._running: dict[str, Process | Born] = {}
        self._nursery = Nursery(partial(self._open_log, "services"))
        self._logs = asyncio.create_task(self._keep_logs_bounded())

    def log_of(self, name: str) -> Path:
        """Where the output of a child goes."""
        return self.state / "logs" / f"{name}.log"

    async def serve(self, job: Job, ready: Callable[[], Awaitable[bool]], limit_s: float) -> None:
        """Start a server, wait until it is ready, and keep it running from then on. Raises StartFailed, Unusable."""
        process = await self._launch(job)
        until = time.monotonic() + limit_s
        try:
            while not await ready():
                if process.returncode is not None or time.monotonic() > until:
                    how = "is not ready" if process.returncode is None else f"ended ({in_words(process.returncode)})"
                    raise StartFailed(f"{job.name} {how}: {last_words(job.log) or 'it said nothing'} (see {job.log})")
                await asyncio.sleep(POLL_S)
        except BaseException:
            await self._end(process, SERVER_STOP_S_MAX)
            raise
        self._servers.append(asyncio.create_task(self._keep(job.name, partial(self._life, job, SERVER_STOP_S_MAX), process)))
        await asyncio.sleep(0)  # from here on the task, which has begun, ends the process

    def keep(self, job: Job) -> None:
        """Start a service and keep it running."""
        self._services.append(asyncio.create_task(self._keep(job.name, partial(self._life, job, SERVICE_STOP_S_MAX))))

    def keep_here(self, name: str, main: Callable[[], Awaitable[None]]) -> None:
        """Run a service inside this process and start it again when it fails."""

        async def life(_process: Process | Born | None) -> str:
            self._record(name, instance.identify(os.getpid()))
            try:
                await main()
            except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever ends one service must not end the others
                return f"{type(error).__name__}: {error}"
            return "it returned"

        self._services.append(asyncio.create_task(self._keep(name, life)))

    async def stop(self) -> None:
        """End everything that was started: services, when they have drained the servers."""
        self._logs.cancel()
        for group, limit_s in ((self._services, SERVICE_STOP_S_MAX), (self._servers, SERVER_STOP_S_MAX)):
            for task in group:
                task.cancel()
            if group:
                # A little more than the limit: each task kills its process when the limit is over.
                await asyncio.wait(group, timeout=limit_s + 1)
        await self._nursery.close()
        # What stands there now would be read as running; a full disk must not keep anybody from stopping.
        with contextlib.suppress(instance.Unusable):
            instance.write_children(self.state, ())

    def kill(self) -> None:
        """End at once what still runs: somebody is in a hurry."""
        for process in self._running.values():
            with contextlib.suppress(ProcessLookupError):
                process.kill()

    # --------------------------------------------------------- one child

    def _open_log(self, name: str) -> int:
        return open_log(self.log_of(name))

    async def prepare(self) -> None:
        """Services will be started: what they have in common is made ready while other things start. Raises OSError, Unusable."""
        await self._nursery.open()

    async def _launch(self, job: Job) -> Process | Born:
        process = await (self._start(job) if job.argv else self._bear(job))
        self._running[job.name] = process
        self._record(job.name, instance.identify(process.pid))
        return process

    async def _bear(self, job: Job) -> Born:
        os.close(open_log(job.log))
        return await self._nursery.bear(job.name, job.log, self.state, {**os.environ, **job.environment()})

    async def _start(self, job: Job) -> Process:
        log, parent = open_log(job.log), os.getpid()
        try:
            return await asyncio.create_subprocess_exec(
                *job.argv,
                stdin=DEVNULL,
                stdout=log,
                stderr=STDOUT,
                cwd=self.state,
                env={**os.environ, **job.environment()},
                start_new_session=True,
                pass_fds=(self._lock,) if job.keeps_lock else (),
                preexec_fn=lambda: die_with_parent(parent),
            )
        finally:
            os.close(log)

    async def _life(self, job: Job, limit_s: float, process: Process | Born | None) -> str:
        try:
            process = process or await self._launch(job)
        except (OSError, instance.Unusable) as error:
            return str(error)
        try:
            return in_words(await process.wait())
        finally:
            await self._end(process, limit_s)

    async def _end(self, process: Process | Born, limit_s: float) -> None:
        if process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), limit_s)
        except TimeoutError:
            process.kill()
            await process.wait()

    async def _keep(
        self, name: str, live: Callable[[Process | Born | None], Awaitable[str]], process: Process | Born | None = None
    ) -> None:
        failures = 0
        while True:
            began = time.monotonic()
            how = await live(process)
            process = None
            failures = failures_after(failures, time.monotonic() - began)
            pause = pause_s(failures)
            self._record(name, None, how)
            self._tell(f"{name} ended ({how}): it starts again in {pause:.1f} s; see {self.log_of(name)}")
            await asyncio.sleep(pause)

    def _record(self, name: str, process: Identity | None, how: str | None = None) -> None:
        before = self._children.get(name) or Child(name=name, process=None)
        ended_ms = before.last_exit_ms if how is None else time.time_ns() // 1_000_000
        self._children[name] = Child(
            name=name,
            process=process,
            restarts=before.restarts + (how is not None),
            last_exit=how or before.last_exit,
            last_exit_ms=ended_ms,
        )
        # The record is for people and for the next start; without room for it the work goes on.
        with contextlib.suppress(instance.Unusable):
            instance.write_children(self.state, self._children.values())

    async def _keep_logs_bounded(self) -> None:
        while True:
            for log in (self.state / "logs").glob("*.log"):
                trim(log)
            await asyncio.sleep(LOG_LOOK_S)
