"""Tocsin is stopped and started again, as an upgrade does it, while all that is used of it is in use."""

import contextlib
import json
import signal
import socket
import subprocess
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import httpx
import psutil

from support import Deadline
from system.loop.installation import STOP_S_MAX, Installation
from system.loop.party import Coordinator, Run
from tocsin.contract.messages import State
from tocsin.contract.subjects import HOOK_REPORTED, PANE_STATUS
from tocsin.runtime import instance

BURST = 20


class Dashboard:
    """A page with its stream of events, that asks again when the line is cut, as a browser does."""

    def __init__(self, here: Installation) -> None:
        self.rows: dict[str, dict[str, Any]] = {}
        self.cuts = 0
        self._state = here.state
        self._last = ""
        self._over = Event()
        self._thread = Thread(target=self._look)
        self._thread.start()

    def paths(self) -> set[str]:
        return {row["path"] for row in self.rows.values()}

    def close(self) -> None:
        self._over.set()
        self._thread.join(30)

    def _look(self) -> None:
        url = ""
        while not self._over.is_set():
            reached = instance.endpoint(self._state)
            url = reached.console_url if reached is not None and reached.console_url else url
            bearer = {"Authorization": f"Bearer {instance.credential(self._state, instance.READER_CREDENTIAL)}"}
            asked = bearer | ({"Last-Event-ID": self._last} if self._last else {})
            with contextlib.suppress(httpx.HTTPError), httpx.stream("GET", f"{url}/api/stream", headers=asked, trust_env=False) as told:
                self._hear(told.iter_lines())
            self.cuts += 1
            self._over.wait(0.05)

    def _hear(self, lines: Iterator[str]) -> None:
        event: dict[str, str] = {}
        for line in lines:
            if self._over.is_set():
                return
            if line:
                name, _, value = line.partition(": ")
                event[name] = value
                continue
            told = json.loads(event.get("data", "null"))
            self._last = event.get("id", self._last)
            if event.get("event") == "list":
                self.rows = {row["id"]: row for row in told["worktrees"]}
            elif event.get("event") == "change":
                self.rows.update({row["id"]: row for row in told["changed"]})
                for gone in told["removed"]:
                    self.rows.pop(gone, None)
            event = {}


@contextmanager
def dashboards(here: Installation) -> Iterator[tuple[Dashboard, Dashboard]]:
    """Two of them, that show something."""
    both = Dashboard(here), Dashboard(here)
    try:
        here.until("both show the list", lambda: all(one.rows for one in both))
        yield both
    finally:
        for one in both:
            one.close()


def a_hook(here: Installation, session: str) -> str:
    """A session of a program begins a turn in a folder of its own, and its hook command tells so; returns the folder."""
    folder = here.folder / "sessions" / session
    folder.mkdir(parents=True)
    command = [here.home / ".local" / "share" / "tocsin" / "hook", "generic"]
    body = json.dumps({"event": "prompted", "session": session})
    done = subprocess.run(command, input=body, text=True, cwd=folder, env=here.environment, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return str(folder)


@contextmanager
def a_hook_in_flight(here: Installation) -> Iterator[socket.socket]:
    """A hook of which a part has been sent."""
    host, _, port = instance.endpoint(here.state).ingest_url.rpartition("/")[2].partition(":")
    head = (
        f"POST /hook/claude HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\nContent-Length: 50\r\n"
        f"Authorization: Bearer {instance.credential(here.state, instance.HOOK_CREDENTIAL)}\r\n\r\n{{"
    )
    with socket.create_connection((host, int(port)), timeout=STOP_S_MAX) as hook:
        hook.sendall(head.encode())
        yield hook


def stop(here: Installation) -> None:
    """One signal, until it is over: nothing of it is left, and nobody complains."""
    children = here.children()
    here.up.send_signal(signal.SIGTERM)
    assert here.up.wait(STOP_S_MAX) == 0
    assert [name for name, process in children.items() if instance.alive(process)] == []
    assert "Traceback" not in here.said.read_text() + here.logs()


def test_k06_one_signal_ends_it_under_pages_a_parked_wait_and_a_hook_and_the_next_life_misses_nothing():
    with Installation() as here:
        boss = Coordinator(here)
        run = boss.create()
        run.add({"id": "A1", "spec": "do: await go\ndo: report succeeded Done."})
        run.start("A1")
        of_shell = Run.create(here, "of a shell")
        of_shell.add({"id": "B1", "spec": "do: await go on\ndo: report succeeded Done."})
        of_shell.start("B1")
        wait = [here.bin / "tocsin", "mail", "check", "--run", of_shell.id, "--wait", "10m", "--json"]
        with (
            dashboards(here) as pages, a_hook_in_flight(here) as hook,
            subprocess.Popen(wait, env=here.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as parked,
        ):  # fmt: skip
            for _ in Deadline(20, "the wait has reached the bus"):
                if psutil.Process(parked.pid).net_connections():
                    break
            stop(here)
            assert hook.recv(100).startswith(b"HTTP/1.1 ")
            for _ in Deadline(10, "both pages were cut"):
                if all(page.cuts for page in pages):
                    break
            meanwhile = a_hook(here, "meanwhile")
            here.start()
            here.until("both pages show all there is, with what came in between", lambda: all(
                {meanwhile} < page.paths() == {row["path"] for row in here.ask("ls")["worktrees"]} for page in pages
            ))  # fmt: skip
            assert parked.poll() is None, "nothing has come, so it waits on"
            assert (run.mail_of("report"), of_shell.mail_of("report")) == ([], [])
            here.mark("go")
            here.mark("go on")
            said, problem = parked.communicate(timeout=60)
            assert parked.returncode == 0, problem
            assert [message["type"] for message in json.loads(said)["messages"]] == ["report"]
        boss.until("the report has woken it", lambda: [message for message in boss.read() if message["type"] == "report"])
        boss.until("its turn has ended", boss.is_at_rest)
        assert [len(one.mail_of("report")) for one in (run, of_shell)] == [1, 1]
        assert len(boss.woken()) == 1
        assert [row["state"] for row in run.wakes() if row["cause"] == "report"] == ["delivered"]


def test_k02_a_burst_of_hooks_at_a_change_over_is_applied_once_each_and_no_worker_begins_anew():
    with Installation() as here:
        run = Run.create(here)
        tasks = ("A1", "A2", "A3")
        run.add(
            *({"id": task, "spec": "do: await go\ndo: report succeeded Done."} for task in tasks),
            {"id": "early", "spec": "do: report succeeded Done."},
        )
        dispatches = [run.start(task)["dispatch"] for task in (*tasks, "early")]
        run.until("the early report is mail", lambda: run.mail_of("report"))
        before, mail, hub = run.states(), run.mail_of("report"), here.children()

        with ThreadPoolExecutor(1) as beside:
            folders = [beside.submit(a_hook, here, f"burst{number}") for number in range(BURST // 2)]
            folders[0].result()
            stop(here)
            folders.append(beside.submit(a_hook, here, "burst-between"))
            folders[-1].result()
            assert list((here.state / "spool").glob("*.hook")), "what nobody takes waits on the machine"
            folders += [beside.submit(a_hook, here, f"burst{number}") for number in range(BURST // 2, BURST - 1)]
            here.start()
        paths = {folder.result() for folder in folders}
        assert len(paths) == BURST

        def sessions() -> Counter[str]:
            return Counter(one.session for one in here.record(HOOK_REPORTED) if one.session.startswith("burst"))

        here.until("all have arrived, and none waits on the machine", lambda: (
            len(sessions()) == BURST and not list((here.state / "spool").glob("*.hook"))
        ))  # fmt: skip
        here.until("all are shown at work", lambda: paths <= {
            row["path"] for row in here.ask("ls")["worktrees"] if row["class"] == 3
        })  # fmt: skip
        assert set(sessions().values()) == {1}
        panes = [status for status in here.last_values(PANE_STATUS) if status.session in sessions()]
        assert Counter((status.state, status.turn) for status in panes) == {(State.WORKING, 1): BURST}

        assert set(here.children()) == set(hub)
        assert [name for name, process in hub.items() if instance.alive(process)] == []
        assert (run.states(), run.mail_of("report")) == (before, mail)
        assert [here.lives(dispatch) for dispatch in dispatches] == [1] * 4
        here.mark("go")
        run.until("all have reported", lambda: set(run.states().values()) == {"reported"})
        assert len(run.mail_of("report")) == 4
        assert [here.lives(dispatch) for dispatch in dispatches] == [1] * 4
