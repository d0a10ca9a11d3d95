"""Follows the transcripts that hooks name: reads what is appended, whole lines only, keeps no text."""

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tocsin.contract.ids import PaneId
from tocsin.pane_host.core.follow import Wanted
from tocsin.pane_host.core.marks import Found, read_line

LOOK_BACK_BYTES_MAX = 1024 * 1024
"""Read at the first sight of a file, for a mark of the turn that had already begun."""

LINE_BYTES_MAX = 256 * 1024
"""A longer line is an attachment or an output, never a mark: it is skipped."""

READ_BYTES_MAX = 4 * 1024 * 1024
"""Read of one file at one look; the rest comes at the next, so that one busy file holds up no other."""


@dataclass
class Cursor:
    """How far one file has been read. `at` is the start of a line, or inside a long one while `skipping`."""

    device: int
    inode: int
    at: int
    since_ms: int | None  # lines before it say nothing; None once the end was reached
    skipping: bool = False
    read_to: int = -1  # size of the file as far as it was read, half a line at its end included


@dataclass(frozen=True, slots=True)
class Marked:
    """A mark, and the pane that it is about."""

    pane: PaneId
    session: str
    found: Found


class Transcripts:
    """The files that are followed now. A file that is no longer wanted keeps its place while its pane is `kept`."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._cursors: dict[tuple[PaneId, str], Cursor] = {}

    @property
    def followed(self) -> int:
        """How many files have been read so far and are still named by a status."""
        return len(self._cursors)

    def look(self, wanted: Iterable[Wanted]) -> list[Marked]:
        """The marks that were appended since the last look."""
        marks: list[Marked] = []
        for one in wanted:
            try:
                marks += [Marked(one.pane, one.session, found) for found in self._read(one)]
            except OSError:
                continue  # not written yet, or taken away: no evidence
        return marks

    def keep(self, named: Iterable[tuple[PaneId, str]]) -> None:
        """Forget the files that no status names any more."""
        stay = set(named)
        for key in self._cursors.keys() - stay:
            del self._cursors[key]

    def _read(self, one: Wanted) -> list[Found]:
        file = Path(one.path).stat()
        cursor = self._cursors.get((one.pane, one.path))
        if cursor is not None and (cursor.device, cursor.inode, cursor.read_to) == (file.st_dev, file.st_ino, file.st_size):
            return []
        if not stat.S_ISREG(file.st_mode) or not self._may_read(one):
            return []
        with Path(one.path).open("rb") as opened:
            file = os.fstat(opened.fileno())
            look_back_at = max(0, file.st_size - LOOK_BACK_BYTES_MAX)
            if cursor is None or (cursor.device, cursor.inode) != (file.st_dev, file.st_ino) or file.st_size < cursor.at:
                cursor = Cursor(file.st_dev, file.st_ino, look_back_at, one.since_ms, skipping=look_back_at > 0)
                self._cursors[one.pane, one.path] = cursor
            elif cursor.since_ms is None and cursor.at < look_back_at:
                # It was not followed for a while: what is far back belongs to other turns.
                cursor.at, cursor.since_ms, cursor.skipping = look_back_at, one.since_ms, True
            opened.seek(cursor.at)
            data = opened.read(READ_BYTES_MAX)
        since_ms = cursor.since_ms
        cursor.read_to = cursor.at + len(data)
        if cursor.read_to >= file.st_size:
            cursor.since_ms = None
        found = self._lines(one.agent, data, cursor)
        return [mark for mark in found if since_ms is None or mark.said_ms is None or mark.said_ms >= since_ms]

    def _may_read(self, one: Wanted) -> bool:
        """Only below the agent's own folder, wherever links lead."""
        root = os.path.realpath(self._home / one.root)
        return os.path.realpath(one.path).startswith(root + os.sep)

    @staticmethod
    def _lines(agent: str, data: bytes, cursor: Cursor) -> list[Found]:
        """The marks in the whole lines of `data`; moves the cursor behind the last of them."""
        found: list[Found] = []
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            if not cursor.skipping and end - start <= LINE_BYTES_MAX and (mark := read_line(agent, data[start:end])):
                found.append(mark)
            cursor.skipping = False
            start = end + 1
        if cursor.skipping or len(data) - start > LINE_BYTES_MAX:
            cursor.skipping = True
            start = len(data)
        cursor.at += start
        return found
