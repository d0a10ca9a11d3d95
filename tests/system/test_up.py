"""`tocsin up` and `tocsin down`, as a person meets them: real processes, real servers, real kills."""

import argparse
import contextlib
import json
import os
import platform
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx
import msgspec
import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from support import Deadline
from tocsin.agents.registry import AGENTS
from tocsin.cli import down
from tocsin.contract.metrics import METRICS
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
    _, said = wait.communicate(timeout=40)
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


def test_when_the_process_that_services_are_born_of_is_killed_all_of_them_run_again_and_none_twice(up: Up):
    up.start()
    before = up.children()
    nursery = psutil.Process(before["sorter"].pid).ppid()
    assert nursery not in (before["sorter"].pid, up.process.pid)
    os.kill(nursery, signal.SIGKILL)
    for _ in Deadline(30, "all run again"):
        now = up.children()
        if all(now.get(name) not in (None, before[name]) for name in SERVICES):
            break
    assert not [name for name in SERVICES if instance.alive(before[name])]
    assert {psutil.Process(now[name].pid).ppid() for name in SERVICES} != {nursery}
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


# ---------------------------------------------------------------- metrics


def shown(up: Up) -> str:
    """All pages that metrics.json names, one after another."""
    targets = json.loads((up.state / instance.METRICS).read_text())
    return "".join(httpx.get(f"http://{one['targets'][0]}/metrics", trust_env=False, timeout=20).raise_for_status().text for one in targets)


def values(text: str) -> dict[tuple[str, ...], float]:
    """By name and the values of the labels, in the order of their names."""
    return {
        (sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


WORKS = "tocsin heartbeat surveying && tocsin report succeeded 'the zebra is measured'"


@pytest.mark.parametrize("mode", [(), ("--one-process",)], ids=["processes", "one-process"])
def test_the_metrics_of_a_run_tell_how_much_happened_and_nothing_of_what(up: Up, mode: tuple[str, ...]):
    up.start(*mode)
    targets = json.loads((up.state / instance.METRICS).read_text())
    assert {one["labels"]["process"] for one in targets} == ({"tocsin"} if mode else SERVICES)
    field = up.folder / "okapi-field"
    field.mkdir()

    def ok(*words: str) -> dict[str, Any]:
        done = up.command(*words, "--state", str(up.state), "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    run = ok("run", "create", "measure the zebra")["run"]
    ok("task", "add", "quagga", "measure a zebra", "--on-settle", "release")
    begin = ["worker", "start", "quagga", "--where", "existing", "--path", str(field)]
    alone = ["--terminal", "process", "--agent", "generic", "--detach"]
    started = up.command(*begin, *alone, "--state", str(up.state), "--command", "sh", "-c", WORKS)
    assert started.returncode == 0, started.stderr
    for _ in Deadline(60, "the report is in the mail"):
        delivery = ok("mail", "check", "--wait", "30s")
        if "report" in [message["type"] for message in delivery["messages"]]:
            break
        ok("mail", "ack", delivery["delivery"])  # on a slow machine the work lay ready before it was started
    assert up.tocsin(*begin).returncode == 3, "it has a worker"
    hook = {"session_id": "s-gazelle", "prompt_id": "p-eland", "tool_name": "Bash", "tool_input": {"command": "gnu"}}
    for event in ("PreToolUse", "PreToolUse", "PermissionRequest"):  # a hook that is registered twice
        assert up.report(event, **hook, **({"tool_use_id": "t-oryx"} if event == "PreToolUse" else {})) == 204

    for _ in Deadline(30, "all of it is counted"):
        text = shown(up)
        found = values(text)
        if (
            found.get(("tocsin_attention_raised_total", "blocked", "sorter")) == 1
            and found.get(("tocsin_host_facts_total", "start", "agent_started", "pane-host")) == 1
            and found.get(("tocsin_mail_unread", "mailbox")) == len(delivery["messages"])
        ):
            break
    expected = {
        ("tocsin_commands_total", "done", "dispatcher", "create"): 1,
        ("tocsin_commands_total", "done", "dispatcher", "report"): 1,
        ("tocsin_commands_total", "done", "dispatcher", "beat"): 1,
        ("tocsin_runs", "dispatcher", "open"): 1,
        ("tocsin_tasks", "dispatcher", "reported"): 1,
        ("tocsin_host_orders_taken_total", "start", "pane-host"): 1,
        ("tocsin_host_orders_said_total", "start", "dispatcher"): 1,
        ("tocsin_hooks_published_total", "claude", "hook-ingest"): 3,
        ("tocsin_hooks_deduplicated_total", "status-store"): 1,
        ("tocsin_rows", "1", "sorter"): 1,
        ("tocsin_lease_held", "sorter"): 1,
        ("tocsin_lease_held", "status-store"): 1,
        ("tocsin_spool_waiting", "pane-host"): 0,
        ("tocsin_bus_dead_letters_total", "sorter"): 0,
    }
    assert {key: found.get(key) for key in expected} == expected
    assert found["tocsin_commands_total", "done", "mailbox", "check"] >= 1
    assert found["tocsin_chain_seconds_count", "sorter"] >= 1
    assert found["tocsin_bus_publish_seconds_count", "hook-ingest"] == 3

    secrets = [run, "quagga", "zebra", "okapi", "surveying", "gazelle", "eland", "oryx", "gnu", str(up.folder), str(up.state), socket.gethostname(),
               delivery["delivery"], instance.credential(up.state, instance.ID)]  # fmt: skip
    assert [secret for secret in secrets if secret in text] == []
    told = {(sample.name, name, value) for family in text_string_to_metric_families(text) for sample in family.samples
            for name, value in sample.labels.items()}  # fmt: skip
    may = {label.name: {value for metric in METRICS.values() for one in metric.labels if one.name == label.name for value in one.values}
           for metric in METRICS.values() for label in metric.labels}  # fmt: skip
    may |= {"service": SERVICES, "agent": set(AGENTS), "version": {version("tocsin")}, "python": {platform.python_version()}}
    assert {(name, value) for _, name, value in told if name != "le" and value not in may.get(name, ()) and name != "reason"} == set()
    assert {value for _, name, value in told if name == "reason"} <= {"the_agent_works", "a_prompt_stands", "a_person_is_typing"}

    up.end()
    assert not (up.state / instance.METRICS).exists()
