"""Delivers the events that hook commands kept when nobody answered: in order, each once, torn ones set aside.

A file is deleted only after its event was taken or refused. A crash between the two sends it again; its message id
is the same then, and counts once.
"""

import contextlib
import http.client
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from tocsin.agents.install.endpoint import Endpoint, read_endpoint
from tocsin.agents.spool import FOLDER, LOST, PATTERN, Spooled, parse_spooled
from tocsin.runtime.clock import Clock

TORN = "torn"
"""Folder of what could not be read, inside the spool; only the last few are kept, for a person to look at."""

TORN_KEPT = 100
PART_S_MAX = 60.0
"""A file that is being written for longer belongs to a hook command that was killed."""

ANSWER_S_MAX = 5.0
DELIVER_S_MAX = 2.0
"""One delivery ends after so long, and the next goes on, so that a stop never waits for a long queue."""

FILE_BYTES_MAX = 32 * 1024 * 1024

NOT_ITS_FAULT = frozenset({401, 403, 408, 421, 425, 429})
"""Refusals of the sender or the moment, not of the event: it waits until the credential is right again."""

_AGENT = re.compile(r"[a-z0-9-]+")


class Away(Exception):
    """Ingest does not take events now. The message says why, in one line."""


@dataclass
class Counts:
    """What became of spooled events in this life."""

    delivered: int = 0
    refused: int = 0
    torn: int = 0
    waiting: int = 0
    """How many waited when last looked, but for those delivered since."""
    oldest_ms: int = 0
    """When the oldest of them was written (UTC ms)."""


@dataclass
class Spool:
    """The spool folder of an instance."""

    state: Path
    clock: Clock
    counts: Counts = field(default_factory=Counts)

    @property
    def folder(self) -> Path:
        """Where hook commands put events."""
        return self.state / FOLDER

    def waiting(self) -> list[Path]:
        """The events that wait, oldest first."""
        return sorted(self.folder.glob(PATTERN))

    def lost(self) -> int:
        """How many events hook commands dropped because the spool was full."""
        try:
            return (self.folder / LOST).stat().st_size
        except OSError:
            return 0

    def deliver(self) -> int:
        """Deliver what waits, for DELIVER_S_MAX at most; returns how many events still wait. Raises Away. Blocks."""
        try:
            self._set_aside_parts()
        except OSError as error:
            raise Away(f"the spool cannot be written: {type(error).__name__}") from error
        waiting = self.waiting()
        self._note(waiting)
        if not waiting:
            return 0
        endpoint = read_endpoint(self.state)
        if endpoint is None:
            raise Away("there is no endpoint file")
        address = urlsplit(endpoint.url)
        kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
        connection = kind(address.hostname or "", address.port, timeout=ANSWER_S_MAX)
        end_s = time.monotonic() + DELIVER_S_MAX
        try:
            for number, file in enumerate(waiting):
                if time.monotonic() > end_s:
                    return len(waiting) - number
                self._deliver_file(connection, endpoint, file)
                self._note(waiting[number + 1 :])
        except (OSError, http.client.HTTPException) as error:
            raise Away(f"no answer: {type(error).__name__}") from error
        finally:
            connection.close()
        return 0

    def _note(self, left: Sequence[Path]) -> None:
        self.counts.waiting = len(left)
        if left:
            with contextlib.suppress(FileNotFoundError):
                self.counts.oldest_ms = left[0].stat().st_mtime_ns // 1_000_000

    def _deliver_file(self, connection: http.client.HTTPConnection, endpoint: Endpoint, file: Path) -> None:
        try:
            stat = file.stat()
            spooled = parse_spooled(file.read_bytes()) if stat.st_size <= FILE_BYTES_MAX else None
        except FileNotFoundError:
            return  # dropped by a hook command that needed the room
        if spooled is None or not _AGENT.fullmatch(spooled.agent):
            self._set_aside(file)
            return
        status = self._post(connection, endpoint, spooled, stat.st_mtime_ns // 1_000_000)
        if 200 <= status < 300:
            self.counts.delivered += 1
        elif 400 <= status < 500 and status not in NOT_ITS_FAULT:
            self.counts.refused += 1
        else:
            raise Away(f"answer {status}")
        file.unlink(missing_ok=True)

    def _post(self, connection: http.client.HTTPConnection, endpoint: Endpoint, spooled: Spooled, written_ms: int) -> int:
        headers = spooled.headers() | {
            "Host": endpoint.host,
            "Authorization": f"Bearer {endpoint.credential}",
            "Content-Type": "application/json",
            "X-Tocsin-Spooled": "1",
            # A sender without a clock of its own: the file's time, which is the same at every attempt.
            "X-Tocsin-Sent": str(written_ms if spooled.sent_ms is None else spooled.sent_ms),
            "X-Tocsin-Sent-Now": str(self.clock.now_ms()),
        }
        encoded = {name: value.encode("utf-8", "replace") for name, value in headers.items()}
        connection.request("POST", f"/hook/{spooled.agent}", spooled.body, encoded)
        response = connection.getresponse()
        response.read()
        return response.status

    def _set_aside_parts(self) -> None:
        for part in self.folder.glob(".*.part"):
            try:
                if time.time() - part.stat().st_mtime > PART_S_MAX:
                    self._set_aside(part)
            except FileNotFoundError:
                continue

    def _set_aside(self, file: Path) -> None:
        torn = self.folder / TORN
        torn.mkdir(mode=0o700, exist_ok=True)
        file.replace(torn / file.name.lstrip("."))
        self.counts.torn += 1
        for old in sorted(torn.iterdir())[:-TORN_KEPT]:
            old.unlink(missing_ok=True)
