"""Serves the panes' own folders: requests in, answers out. What lies there is the outbox: it waits until its service answers.

The folder is the agent's to write to, so nothing in it is trusted: no link is followed, nothing but a plain file is read.
"""

import asyncio
import contextlib
import functools
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tocsin.bus.bus import Bus, Unavailable
from tocsin.contract.ids import PaneId
from tocsin.contract.mail import MailCommand
from tocsin.contract.messages import Body
from tocsin.contract.parties import Caller, Role
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.run import Refused, RunCommand
from tocsin.contract.subjects import MAIL_CMD, RUN_CMD
from tocsin.pane_host.core import requests
from tocsin.pane_host.core.vouch import is_childs
from tocsin.pane_host.hands.made import PANE_FOLDER, Made
from tocsin.pane_host.hands.starting import ANSWERS, REQUESTS
from tocsin.pane_host.hands.tools import Tools
from tocsin.runtime.instance import FILE_MODE
from tocsin.runtime.logs import log

LOOK_S = 0.05
FRESH_NS = 1_000_000_000
"""A folder that changed so lately may change again within the same tick of its clock: it is read once more."""

RETRY_S, RETRY_S_MAX = 0.25, 5.0

IN_FLIGHT_MAX = 32
"""Requests of one pane at a time; further ones wait in the folder."""

UNREAD_S_MAX = 3600
"""An answer that nobody has fetched for so long is removed."""


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """A folder's descriptor; raises OSError when it is a link, or no folder."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield handle
    finally:
        os.close(handle)


def _names(folder: Path) -> list[str]:
    """Requests in it, in the order in which they were put there."""
    with _opened(folder) as handle:
        found = []
        with os.scandir(handle) as entries:
            for entry in entries:
                if requests.id_of(entry.name) is not None:
                    with contextlib.suppress(OSError):
                        found.append((entry.stat(follow_symlinks=False).st_mtime_ns, entry.name))
    return [name for _, name in sorted(found)]


def _read(folder: Path, name: str) -> bytes | Refusal | None:
    """What a request's file holds, one byte more than is allowed at most; None when it is not there any more."""
    with _opened(folder) as at:
        try:
            handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at)
        except FileNotFoundError:
            return None
        except OSError as error:
            return Refusal(Code.BAD_REQUEST, f"the request cannot be read: {error.strerror}")
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            return Refusal(Code.BAD_REQUEST, "a request must be a plain file")
        with os.fdopen(handle, "rb") as file:
            return file.read(requests.BYTES_MAX + 1)


def _put(folder: Path, name: str, data: bytes) -> None:
    """Put an answer in place, whole and on disk."""
    with _opened(folder) as at:
        beside = f".{name}.{os.urandom(4).hex()}"
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE, dir_fd=at)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(handle)
            os.rename(beside, name, src_dir_fd=at, dst_dir_fd=at)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(beside, dir_fd=at)
            raise


def _has(folder: Path, name: str) -> bool:
    with _opened(folder) as at:
        try:
            os.stat(name, dir_fd=at, follow_symlinks=False)
        except FileNotFoundError:
            return False
    return True


def _remove(folder: Path, name: str) -> bool:
    """Take a request that was answered away; False when it cannot be (a folder, which no command of ours has put there)."""
    with _opened(folder) as at:
        try:
            os.unlink(name, dir_fd=at)
        except FileNotFoundError:
            return True
        except OSError:
            return False
    return True


def _drop_unread(folder: Path, before_s: float) -> None:
    with _opened(folder) as at, os.scandir(at) as entries:
        for entry in list(entries):
            with contextlib.suppress(OSError):
                if entry.stat(follow_symlinks=False).st_mtime < before_s:
                    os.unlink(entry.name, dir_fd=at)


@dataclass
class Served:
    """One pane's folder, and what is on its way."""

    folder: Path
    changed_ns: int = -1
    in_flight: dict[str, "asyncio.Task[None]"] = field(default_factory=dict)
    looking: set[str] = field(default_factory=set)
    """Those in flight that end with their caller."""
    stuck: set[str] = field(default_factory=set)
    """Answered ones that cannot be taken away."""
    line: asyncio.Lock = field(default_factory=asyncio.Lock)
    """What must arrive in order stands in it."""
    troubled: bool = False


class PaneFolders:
    """All folders of this host."""

    def __init__(self, bus: Bus, tools: Tools) -> None:
        self._bus = bus
        self._tools = tools
        self._served: dict[Path, Served] = {}

    async def run(self) -> None:
        """Serve until cancelled."""
        try:
            while True:
                for made in self._tools.cabinet:
                    await self._look(made)
                await asyncio.sleep(LOOK_S)
        finally:
            for served in self._served.values():
                for task in served.in_flight.values():
                    task.cancel()

    def idle(self, made: Made) -> bool:
        """True when nothing of that pane waits for an answer."""
        served = self._served.get(self._tools.cabinet.folder_of(made))
        try:
            return (served is None or not served.in_flight) and not _names(self._folder(made) / REQUESTS)
        except OSError:
            return True

    def forget(self, made: Made) -> None:
        """Serve that folder no more."""
        self._served.pop(self._tools.cabinet.folder_of(made), None)

    def _folder(self, made: Made) -> Path:
        return self._tools.cabinet.folder_of(made) / PANE_FOLDER

    async def _look(self, made: Made) -> None:
        key = self._tools.cabinet.folder_of(made)
        served = self._served.get(key)
        if served is None:
            served = self._served[key] = Served(self._folder(made))
        try:
            names = self._changed(served)
        except OSError as error:
            if not served.troubled:
                served.troubled = True
                log("pane_folder.unusable", "warning", dispatch=made.dispatch, why=error.strerror)
            return
        served.troubled = False
        if names is None:
            return
        for name in served.looking - set(names):
            # Its caller has taken the request back: nobody waits for the answer.
            if name in served.in_flight:
                served.in_flight[name].cancel()
        served.stuck &= set(names)
        for name in names:
            if name not in served.in_flight and name not in served.stuck and len(served.in_flight) < IN_FLIGHT_MAX:
                task = asyncio.create_task(self._serve(made, served, name))
                served.in_flight[name] = task
                task.add_done_callback(functools.partial(_finished, served, name))

    def _changed(self, served: Served) -> list[str] | None:
        """The requests that lie there; None when nothing has changed and nothing waits."""
        folder = served.folder / REQUESTS
        changed_ns = folder.stat(follow_symlinks=False).st_mtime_ns
        now_ns = self._tools.clock.now_ms() * 1_000_000
        if changed_ns == served.changed_ns and not served.in_flight and abs(now_ns - changed_ns) > FRESH_NS:
            return None
        served.changed_ns = changed_ns
        return _names(folder)

    # ---------------------------------------------------------- one request

    async def _serve(self, made: Made, served: Served, name: str) -> None:
        """Answer one request. It stays in its folder until its answer is on disk: that is what survives all of us."""
        asked, answered = served.folder / REQUESTS, served.folder / ANSWERS
        file_id = requests.id_of(name) or ""
        try:
            if await asyncio.to_thread(_has, answered, name):
                await self._done(served, name)
                return
            raw = await asyncio.to_thread(_read, asked, name)
            if raw is None:
                return
            command = self._command(made, file_id, raw)
            if isinstance(command, Refusal):
                log("request.refused", "warning", dispatch=made.dispatch, code=command.code)
                result: Body | None = Refused.of(file_id, command)
            else:
                result = await self._ask(made, served, name, command)
            if result is not None:
                await asyncio.to_thread(_put, answered, name, requests.answer_of(result))
            await self._done(served, name)
        except OSError as error:
            log("request.unanswered", "warning", dispatch=made.dispatch, why=error.strerror)
            await asyncio.sleep(RETRY_S_MAX)

    async def _done(self, served: Served, name: str) -> None:
        if not await asyncio.to_thread(_remove, served.folder / REQUESTS, name):
            served.stuck.add(name)

    def _command(self, made: Made, file_id: str, raw: bytes | Refusal) -> RunCommand | MailCommand | Refusal:
        """What a request's file asks for."""
        request = raw if isinstance(raw, Refusal) else requests.read_request(file_id, raw)
        if isinstance(request, Refusal):
            return request
        return requests.command_of(request, self.caller(made), (made.holder or made).run, self._tools.clock.now_ms())

    def caller(self, made: Made) -> Caller:
        """Who speaks from that pane: what we know of it, not what it says."""
        holder = made.holder or made
        pane = made.pane or PaneId("")
        status = self._tools.eyes.statuses().get(pane)
        return Caller(
            role=Role.WORKER,
            name=holder.dispatch,
            host=self._tools.host,
            pane=pane,
            process=made.process,
            session=status.session if status else None,
            dispatch=holder.dispatch,
            child=is_childs(status),
            vouched=True,
        )

    async def _ask(self, made: Made, served: Served, name: str, command: RunCommand | MailCommand) -> Body | None:
        """What its service answers, however long that takes; None when the caller has gone meanwhile and needs none."""
        looks = requests.only_looks(command)
        if looks:
            served.looking.add(name)
        async with served.line if requests.is_serial(command) else contextlib.nullcontext():
            wait_s, told = RETRY_S, False
            asked_ms = self._tools.clock.awake_ms()
            while True:
                try:
                    return await self._put_to_service(command)
                except Unavailable as error:
                    if not told:
                        told = True
                        log("request.waits", "warning", dispatch=made.dispatch, why=str(error))
                    if looks and self._tools.clock.awake_ms() - asked_ms > requests.waits_s(command) * 1000:
                        return Refused.of(command.request, Refusal(Code.UNAVAILABLE, str(error)))
                await asyncio.sleep(wait_s)
                wait_s = min(wait_s * 2, RETRY_S_MAX)

    async def _put_to_service(self, command: RunCommand | MailCommand) -> Body:
        timeout_s = requests.waits_s(command)
        if isinstance(command, RunCommand):
            answer = await self._bus.ask(RUN_CMD, command, timeout_s=timeout_s)
        else:
            answer = await self._bus.ask(MAIL_CMD, command, timeout_s=timeout_s)
        if isinstance(answer, Refused) and answer.code == Code.UNAVAILABLE:
            # Its service lives, and what it needs does not: the same request may be put again.
            raise Unavailable(answer.message)
        return answer

    async def drop_unread(self, now_ms: int) -> None:
        """Remove answers that nobody has fetched."""
        for made in self._tools.cabinet:
            with contextlib.suppress(OSError):
                await asyncio.to_thread(_drop_unread, self._folder(made) / ANSWERS, now_ms / 1000 - UNREAD_S_MAX)


def _finished(served: Served, name: str, task: "asyncio.Task[None]") -> None:
    served.in_flight.pop(name, None)
    served.looking.discard(name)
    served.changed_ns = -1
    if not task.cancelled() and task.exception() is not None:
        log("request.failed", "error", error=f"{type(task.exception()).__name__}")
