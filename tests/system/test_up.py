"""`tocsin up` and `tocsin down`, as a person meets them: real processes, real servers, real kills."""

import argparse
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import psutil
import pytest

from support import Deadline
from tocsin.cli import down
from tocsin.runtime import instance
from tocsin.runtime.instance import Identity

SERVERS = {"nats", "valkey"}
SERVICES = {"status-store", "sorter", "hook-ingest", "dispatcher", "mailbox", "release-accountant", "pane-host", "console"}
START_S_MAX, STOP_S_MAX = 60, 30


class Up:
    """One `tocsin up` on a state folder, in a home and with a tmux folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.process: subprocess.Popen[str] | None = None
        self.readers: list[subprocess.Popen[str]] = []
        (folder / "home").mkdir()
        outside = {"NATS_URL", "REDIS_URL", "TMUX"}
        kept = {name: value for name, value in os.environ.items() if name not in outside and not name.startswith("TOCSIN_")}
        self.environment = kept | {"HOME": str(folder / "home"), "TMUX_TMPDIR": str(folder)}

    def tocsin(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.command(*words, "--state", str(self.state))

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-P", "-m", "tocsin.cli", *words],
            env=self.environment, cwd=self.folder, capture_output=True, text=True, timeout=START_S_MAX, check=False,
        )  # fmt: skip

    def reader(self, *words: str) -> "subprocess.Popen[str]":
        """A verb that goes on beside the test; it ends with it at the latest."""
        command = [sys.executable, "-P", "-m", "tocsin.cli", *words, "--json", "--state", self.state]
        reader = subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.readers.append(reader)
        return reader

    def start(self, *words: str) -> str:
        """Start it; returns what it said until it was ready."""
        log = self.folder / f"said-{time.monotonic_ns()}"
        with log.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tocsin.cli", "up", *words, "--state", self.state],
                env=self.environment, cwd=self.folder, stdout=output, stderr=output, text=True, start_new_session=True,
            )  # fmt: skip
        self.said = log
        for _ in Deadline(START_S_MAX, "up is ready"):
            assert self.process.poll() is None, log.read_text()
            reached = instance.endpoint(self.state)
            if reached is not None and reached.ready and reached.supervisor.pid == self.process.pid:
                return log.read_text()
        raise AssertionError

    def children(self) -> dict[str, Identity]:
        return {child.name: child.process for child in instance.children(self.state) if child.process is not None}

    def report(self, event: str, **fields: Any) -> int:
        """One hook of Claude Code, as its hook command sends it; returns the HTTP status."""
        reached = instance.endpoint(self.state)
        body = {"hook_event_name": event, "session_id": "s1", "cwd": str(self.folder), **fields}
        headers = {
            "Authorization": f"Bearer {instance.credential(self.state, instance.HOOK_CREDENTIAL)}",
            "X-Tocsin-Cwd": str(self.folder),
        }
        return httpx.post(f"{reached.ingest_url}/hook/claude", json=body, headers=headers, trust_env=False).status_code

    def listed(self) -> list[dict[str, Any]]:
        done = self.tocsin("ls", "--json")
        return json.loads(done.stdout)["worktrees"] if done.returncode == 0 else []

    def end(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(STOP_S_MAX)

    def close(self) -> None:
        """End it, and whoever reads."""
        for reader in self.readers:
            reader.kill()
            reader.wait()
        self.end()


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    one = Up(tmp_path)
    yield one
    one.close()
    left = [process for process in one.children().values() if instance.alive(process)]
    for process in left:
        os.kill(process.pid, signal.SIGKILL)
    assert left == [], one.said.read_text()


def free(url: str) -> bool:
    """Whether nobody listens at the address any more."""
    host, _, port = url.rpartition("/")[2].partition(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
        return False
    return True


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file that only `up` itself writes, with its inode: a rewrite with the same text shows too."""
    own = {instance.ID, instance.LOCK, instance.ENDPOINT, instance.PORTS, *instance.BEARERS, *instance.NATS_USERS}
    return {path.name: (path.stat().st_ino, path.read_bytes()) for path in folder.iterdir() if path.name in own}


@pytest.mark.parametrize("mode", [(), ("--one-process",)], ids=["processes", "one-process"])
def test_up_says_where_the_list_is_and_the_next_step_and_a_hook_reaches_the_list(up: Up, mode: tuple[str, ...]):
    said = up.start(*mode)
    assert "The list is live" in said
    assert "Next: " in said
    assert "hooks install" in said
    assert set(up.children()) == SERVERS | SERVICES
    assert len({process.pid for process in up.children().values()}) == (len(SERVERS) + 1 if mode else len(SERVERS | SERVICES))

    assert up.report("UserPromptSubmit", prompt="go", prompt_id="p1") == 204
    for _ in Deadline(20, "the list shows it"):
        working = [row for row in up.listed() if row["path"] == str(up.folder.resolve())]
        if working:
            break
    assert working[0]["class"] == 3

    children = up.children()
    up.process.send_signal(signal.SIGTERM)
    assert up.process.wait(STOP_S_MAX) == 0
    assert [name for name, process in children.items() if instance.alive(process)] == []
    assert "Traceback" not in up.said.read_text()


def test_k06_one_signal_ends_it_with_readers_and_a_hook_in_flight_and_those_who_read_go_on_with_the_next_life(up: Up):
    up.start()
    reached = instance.endpoint(up.state)
    children = up.children()
    watch = up.reader("watch")
    assert watch.stdout.readline()
    host, _, port = reached.ingest_url.rpartition("/")[2].partition(":")
    hook = socket.create_connection((host, int(port)))
    head = (
        f"POST /hook/claude HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\nContent-Length: 50\r\n"
        f"Authorization: Bearer {instance.credential(up.state, instance.HOOK_CREDENTIAL)}\r\n\r\n{{"
    )
    hook.sendall(head.encode())

    # As Ctrl+C in a terminal does it: the whole foreground group gets it.
    os.killpg(up.process.pid, signal.SIGINT)
    assert up.process.wait(STOP_S_MAX) == 0
    assert hook.recv(100).startswith(b"HTTP/1.1 ")
    assert [name for name, process in children.items() if instance.alive(process)] == []
    assert free(reached.ingest_url)
    assert free(reached.nats_url)
    assert not instance.held(up.state)
    assert [log.name for log in (up.state / "logs").glob("*.log") if "Traceback" in log.read_text()] == []
    hook.close()

    # And starts again at once, on the same addresses.
    up.start()
    again = instance.endpoint(up.state)
    assert (again.ingest_url, again.nats_url) == (reached.ingest_url, reached.nats_url)
    for _ in Deadline(30, "a hook is taken and listed"):
        with contextlib.suppress(httpx.HTTPError):
            if up.report("UserPromptSubmit", prompt="go", prompt_id="p1") == 204 and up.listed():
                break
    assert any(json.loads(line)["worktrees"] for line in watch.stdout), "who watches is shown it without being started again"

    # Whoever waits for mail is told to ask again.
    run = json.loads(up.tocsin("run", "create", "a run", "--json").stdout)["run"]
    wait = up.reader("mail", "check", "--run", run, "--wait", "10m")
    for _ in Deadline(20, "it has reached the bus"):
        if psutil.Process(wait.pid).net_connections():
            break
    up.end()
    _, said = wait.communicate(timeout=60)
    assert (wait.returncode, json.loads(said.splitlines()[-1])["retry"]) == (4, "same_request")


def test_a_service_or_server_that_is_killed_runs_again_and_one_sees_it(up: Up):
    up.start()
    before = up.children()
    for name in ("sorter", "nats"):
        os.kill(before[name].pid, signal.SIGKILL)
    for _ in Deadline(30, "both run again"):
        now = up.children()
        if all(now.get(name) not in (None, before[name]) for name in ("sorter", "nats")):
            break
    for name in ("sorter", "nats"):
        assert f"{name} ended (SIGKILL): it starts again" in up.said.read_text()
    for _ in Deadline(30, "a hook is taken and listed"):
        with contextlib.suppress(httpx.HTTPError):
            if up.report("UserPromptSubmit", prompt="go", prompt_id="p1") == 204 and up.listed():
                break


def test_a_second_up_names_pid_and_port_and_writes_nothing(up: Up):
    up.start()
    before = contents(up.state)
    port = instance.endpoint(up.state).ingest_url.rpartition(":")[2]
    for words in (("up",), ("up", "--detach")):
        second = up.tocsin(*words)
        assert second.returncode == 3
        assert len(second.stderr.splitlines()) == 1
        assert f"pid {up.process.pid}" in second.stderr
        assert port in second.stderr
    assert contents(up.state) == before


def test_ports_that_others_have_by_now_are_chosen_around_and_named(up: Up):
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        taken = {"nats": one.getsockname()[1], "ingest": other.getsockname()[1]}
        up.state.mkdir()
        instance.write_ports(up.state, taken)
        said = up.start()
    for name, port in taken.items():
        assert f"port {port} is taken: {name} listens on {instance.ports(up.state)[name]} from now on" in said
    assert up.report("UserPromptSubmit", prompt="go", prompt_id="p1") == 204


def test_after_a_kill_of_the_supervisor_the_next_up_takes_over_and_nothing_is_left_of_the_first(up: Up):
    up.start()
    first = up.children()
    assert up.report("UserPromptSubmit", prompt="go", prompt_id="p1") == 204
    for _ in Deadline(20, "the list shows it"):
        if up.listed():
            break
    up.process.kill()
    up.process.wait()
    up.start()
    assert [name for name, process in first.items() if instance.alive(process)] == []
    assert set(up.children()) == SERVERS | SERVICES
    for _ in Deadline(20, "the list still shows it"):
        if [row for row in up.listed() if row["path"] == str(up.folder.resolve())]:
            break


def test_detached_it_goes_on_in_the_background_until_down(up: Up):
    done = up.tocsin("up", "--detach")
    assert done.returncode == 0, done.stderr
    assert "The list is live" in done.stdout
    reached, children = instance.endpoint(up.state), up.children()
    assert reached.runs

    stopped = up.tocsin("down")
    assert stopped.returncode == 0
    assert f"pid {reached.supervisor.pid}" in stopped.stdout
    assert [name for name, process in children.items() if instance.alive(process)] == []
    assert up.tocsin("ls").returncode == 4
    assert up.tocsin("down").returncode == 0


def test_k02_a_hung_supervisor_gets_no_second_one_beside_it_and_down_ends_it(up: Up, monkeypatch: pytest.MonkeyPatch):
    up.start()
    children = up.children()
    up.process.send_signal(signal.SIGSTOP)
    second = up.tocsin("up")
    assert second.returncode == 3
    assert f"pid {up.process.pid}" in second.stderr

    monkeypatch.setattr(down, "STOP_S_MAX", 0.5)
    assert down.run(argparse.Namespace(state=up.state)) == 0
    assert up.process.wait(STOP_S_MAX) == -signal.SIGKILL
    assert [name for name, process in children.items() if instance.alive(process)] == []


def test_k02_down_does_not_signal_a_program_that_has_the_recorded_number_by_now(up: Up):
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
    instance.create(up.state)
    (up.state / instance.LOCK).write_text(json.dumps({"pid": other.pid, "started": "another start"}))
    instance.write_children(up.state, [instance.Child(name="nats", process=Identity(other.pid, "another start"))])
    done = up.tocsin("down")
    assert done.returncode == 0
    assert "nothing runs" in done.stdout
    assert other.poll() is None
    other.kill()
    other.wait()


def test_k02_a_command_of_another_version_says_so_instead_of_reading(up: Up):
    up.start()
    reached = instance.endpoint(up.state)
    older = msgspec.structs.replace(reached, version="0.0.9")
    instance.write_endpoint(up.state, older)
    refused = up.tocsin("ls", "--json")
    assert refused.returncode == 4
    assert refused.stdout == ""
    assert "runs 0.0.9" in refused.stderr
    second = up.tocsin("up")
    assert second.returncode == 3
    assert "runs 0.0.9" in second.stderr


def test_a_state_folder_that_cannot_be_is_refused_on_one_line(up: Up):
    (up.folder / "file").write_text("")
    up.state = up.folder / "file" / "state"
    refused = up.tocsin("up")
    assert refused.returncode == 3
    assert len(refused.stderr.splitlines()) == 1
    assert "--state DIR" in refused.stderr
    up.state = up.folder / "state"


def test_compose_keeps_its_folder_to_itself(up: Up):
    made = up.command("credentials", str(up.state), "--containers", str(up.folder / "containers"))
    assert made.returncode == 0, made.stderr
    for verb in ("up", "down"):
        refused = up.tocsin(verb)
        assert refused.returncode == 3
        assert "docker compose" in refused.stderr
