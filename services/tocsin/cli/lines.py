"""How one request travels and its answer comes back: by the bus, or as files in the pane's own folder.

The folder is the way out of an agent's sandbox, and a durable outbox at the same time.
"""

import asyncio
import contextlib
import os
import secrets
import time
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from tocsin.contract.faults import Unavailable
from tocsin.contract.messages import Body
from tocsin.contract.run import Receipt, Refused
from tocsin.contract.subjects import CUSTODY_CMD, MAIL_CMD, RUN_CMD, Subject

if TYPE_CHECKING:
    from tocsin.bus.bus import Bus

KEPT = "kept"
"""Result field of a receipt that the outbox wrote itself: the request lies on this machine's disk and will be delivered."""

OWN = ""
"""The Run or mailbox of a request from inside a pane: that for which the pane works."""

POLL_S, POLL_S_MAX = 0.02, 0.1
"""Between two looks for an answer: the first ones close together, since pane-host answers in milliseconds."""


class Post(StrEnum):
    """Where a request goes: the word that request files use."""

    RUN = "run"
    MAIL = "mail"
    CUSTODY = "custody"


SUBJECTS: Mapping[Post, Subject[Any]] = {Post.RUN: RUN_CMD, Post.MAIL: MAIL_CMD, Post.CUSTODY: CUSTODY_CMD}


class Line(Protocol):
    """How one request travels and its answer comes back."""

    async def put(self, post: Post, command: Body, request: str, timeout_s: float, keep: bool) -> Receipt | Refused:
        """Ask once. `keep`: the request outlives this command where the line can do that. Raises Unavailable."""
        ...


class BusLine:
    """By the bus, for callers outside panes that we started."""

    def __init__(self, bus: "Bus") -> None:
        self.bus = bus

    async def put(self, post: Post, command: Body, request: str, timeout_s: float, keep: bool) -> Receipt | Refused:
        """See Line.put; a bus keeps no request."""
        answer = await self.bus.ask(SUBJECTS[post], command, timeout_s=timeout_s)
        assert isinstance(answer, Receipt | Refused)
        return answer


class _Answer(msgspec.Struct, frozen=True):
    """The answer file. `body` is a receipt or a refusal."""

    refused: bool
    body: msgspec.Raw


class FolderLine:
    """By request and answer files in the pane's own folder, which pane-host serves. An agent's sandbox lets it reach nothing else.

    A request is `requests/<name>.json`, on disk in full before it has that name; its answer is `answers/<name>.json`.
    A caller that hangs up takes its request back unless it is to be kept; pane-host may also see that `pid` is gone.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def put(self, post: Post, command: Body, request: str, timeout_s: float, keep: bool) -> Receipt | Refused:
        """See Line.put. Who asks is left out, and so is OWN: pane-host knows both, also when the pane was given other work since."""
        sent_ms = time.time_ns() // 1_000_000
        name = f"{sent_ms:013d}-{secrets.token_hex(4)}"
        body = {field: value for field, value in msgspec.to_builtins(command).items() if field != "caller" and value != OWN}
        content = {"v": 1, "id": name, "subject": post, "body": body, "cwd": str(Path.cwd()), "pid": os.getpid(), "sent_ms": sent_ms}
        asked, answered = self.folder / "requests" / f"{name}.json", self.folder / "answers" / f"{name}.json"
        try:
            write_whole(asked, msgspec.json.encode(content))
        except OSError as error:
            raise Unavailable(f"{asked.parent} cannot be written: {error.strerror or error}") from error
        answer = None
        try:
            answer = await self._answer(answered, timeout_s)
        finally:
            if answer is None and not keep:
                asked.unlink(missing_ok=True)
        if answer is not None:
            return answer
        if keep:
            return Receipt(request=request, result={KEPT: True}, at_ms=sent_ms)
        raise Unavailable("nobody serves the requests of this pane now")

    async def _answer(self, file: Path, timeout_s: float) -> Receipt | Refused | None:
        end, pause = time.monotonic() + timeout_s, POLL_S
        while True:
            data = taken(file)
            if data is not None:
                return read_answer(data)
            if time.monotonic() >= end:
                return None
            await asyncio.sleep(pause)
            pause = min(pause * 1.2, POLL_S_MAX)


def taken(file: Path) -> bytes | None:
    """The content of an answer file, which is gone then; None while there is none."""
    with contextlib.suppress(FileNotFoundError):
        data = file.read_bytes()
        file.unlink(missing_ok=True)
        return data
    return None


def read_answer(data: bytes) -> Receipt | Refused:
    """An answer file's content. Raises Unavailable when it is of a form that this command does not know."""
    try:
        answer = msgspec.json.decode(data, type=_Answer)
        if answer.refused:
            return msgspec.json.decode(answer.body, type=Refused)
        return msgspec.json.decode(answer.body, type=Receipt)
    except msgspec.MsgspecError as error:
        raise Unavailable(f"the answer cannot be read: {error}") from error


def write_whole(file: Path, data: bytes) -> None:
    """Put a private file in place: readers find all of it or none, also after a power cut. Raises OSError."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as opened:
            opened.write(data)
            opened.flush()
            os.fsync(opened.fileno())
        beside.replace(file)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
