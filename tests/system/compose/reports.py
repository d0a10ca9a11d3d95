"""A stream of hooks with a record of what was acknowledged, and somebody who sees when each of them is in the list."""

import http.client
import itertools
import json
import socket
import threading
import time
from contextlib import suppress

from support import Deadline
from system.compose.project import Project
from tocsin.contract.subjects import WORKTREE_SORTED
from tocsin.runtime import instance

HOOK_S_MAX = 1.0
"""The hook command gives up after so long."""

LOOK_EVERY_S = 0.1
NEEDS_YOU = 1


class Viewer:
    """Reads the list with the reader's credential, several times a second, and notes when a worktree was first seen to need somebody.

    It speaks to the bus by itself, with a connection for each look: one that was cut off by a fault must not blind it.
    """

    def __init__(self, project: Project) -> None:
        self._project = project
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.needs: frozenset[str] = frozenset()
        self.first_seen: dict[str, float] = {}

    def __enter__(self) -> "Viewer":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(LOOK_EVERY_S):
            with suppress(OSError):
                found = self._last_list()
                if found:
                    self.needs = frozenset(row["path"] for row in json.loads(found)["worktrees"] if row["class"] == NEEDS_YOU)
                    for path in self.needs:
                        self.first_seen.setdefault(path, time.monotonic())

    def _last_list(self) -> bytes:
        user, _, password = (instance.credential(self._project.state, instance.NATS_READER_CREDENTIAL) or "").partition(":")
        login = json.dumps({"verbose": False, "user": user, "pass": password, "headers": True, "no_responders": True})
        ask = f"$JS.API.DIRECT.GET.{WORKTREE_SORTED.stream}.{WORKTREE_SORTED.at('default')}"
        with socket.create_connection(("127.0.0.1", self._project.ports["NATS"]), timeout=HOOK_S_MAX) as bus, bus.makefile("rb") as said:
            bus.sendall(f"CONNECT {login}\r\nSUB _INBOX.look 1\r\nPUB {ask} _INBOX.look 0\r\n\r\n".encode())
            for line in said:
                match line.split():
                    case [b"HMSG", _, _, head, both]:
                        return said.read(int(both))[int(head) :]
                    case [b"-ERR", *_]:
                        break
        return b""


class Reports:
    """Asks again until it is acknowledged, as the hook command's spool does, then goes on with the next."""

    numbers = itertools.count()
    pause_s = 0.25

    def __init__(self, project: Project, viewer: Viewer) -> None:
        self._project = project
        self._viewer = viewer
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._report)
        self.acknowledged: dict[str, float] = {}
        self.refused = 0

    def __enter__(self) -> "Reports":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.end()
        for path in self.acknowledged:
            self.post({"event": "left", "session": path.rpartition("/")[2], "cwd": path})

    def end(self) -> None:
        """Report no more."""
        self._ended.set()
        self._thread.join()

    def _report(self) -> None:
        for number in self.numbers:
            session = f"w{number}"
            path = f"/story/{session}"
            while not self.post({"event": "asked", "session": session, "cwd": path}):
                self.refused += 1
                if self._ended.wait(0.1):
                    return
            self.acknowledged[path] = time.monotonic()
            if self._ended.wait(self.pause_s):
                return

    def post(self, body: dict[str, str]) -> bool:
        """Whether it was acknowledged."""
        port = self._project.ports["INGEST"]
        headers = {
            "Authorization": f"Bearer {instance.credential(self._project.state, instance.HOOK_CREDENTIAL)}",
            "Content-Type": "application/json",
        }
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=HOOK_S_MAX)
        try:
            connection.request("POST", "/hook/generic", json.dumps(body), headers)
            answer = connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException):
            return False
        else:
            return answer.status == 204
        finally:
            connection.close()

    def wait_for_news(self, since: float, seconds: float, what: str) -> None:
        """Return when something is in the list that was acknowledged after `since`."""
        for _ in Deadline(seconds, what):
            if any(at > since and path in self._viewer.first_seen for path, at in list(self.acknowledged.items())):
                return

    def unseen(self, since: float) -> bool:
        """Whether something was acknowledged after `since`, and nothing of it is in the list."""
        after = [path for path, at in list(self.acknowledged.items()) if at > since]
        return bool(after) and not any(path in self._viewer.first_seen for path in after)

    def all_listed(self, seconds: float) -> None:
        """Report no more, and see that the list has everything that was acknowledged."""
        self.end()
        assert self.acknowledged
        for _ in Deadline(seconds, "all that was acknowledged is in the list"):
            if self.acknowledged.keys() <= self._viewer.needs:
                return
