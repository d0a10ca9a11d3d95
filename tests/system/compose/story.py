"""docker-compose.yml as a person uses it: from nothing to a hook in the list, and back to nothing. `make test-compose`.

Needs a Docker engine and its compose plugin, so it is no part of `make test`. It works on a copy of the checkout, under a
project name, an image name and ports of its own.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import Deadline
from tocsin.runtime import instance

ROOT = Path(__file__).parents[3]
NAME = "tocsin-story"
SERVICES = {"nats", "valkey", "hook-ingest", "status-store", "sorter", "dispatcher", "mailbox", "release-accountant"}
UP_S_MAX = 600
"""The first build fetches every package."""

AS_A_STRANGER = """
import asyncio, nats, redis, socket

async def publish():
    async def quiet(error): pass
    try:
        client = await nats.connect("nats://nats:4222", allow_reconnect=False, error_cb=quiet)
    except nats.errors.Error as error:
        return "refused"
    await client.publish("hook.reported.h.p", b"forged")
    return "published"

def write():
    try:
        redis.Redis(host="valkey", protocol=2).set("key", "value")
    except redis.RedisError as error:
        return "refused" if "Authentication required" in str(error) else str(error)
    return "written"

def monitor():
    try:
        socket.create_connection(("nats", 8222), timeout=5).close()
    except OSError:
        return "closed"
    return "open"

print(asyncio.run(publish()), write(), monitor())
"""


class Project:
    """A copy of the checkout with containers of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "checkout"
        self.home = folder / "home"
        self.home.mkdir()
        self.state = self.folder / ".tocsin"
        self.folder.mkdir()
        for name in ("docker-compose.yml", ".dockerignore", "pyproject.toml", "constraints.txt", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, self.folder)
        for name in ("libs", "services", "infra"):
            shutil.copytree(ROOT / name, self.folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        with (
            socket.create_server(("127.0.0.1", 0)) as a,
            socket.create_server(("127.0.0.1", 0)) as b,
            socket.create_server(("127.0.0.1", 0)) as c,
        ):
            self.ports = {name: server.getsockname()[1] for name, server in (("INGEST", a), ("NATS", b), ("REDIS", c))}
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith("TOCSIN_") and name not in ("NATS_URL", "REDIS_URL")
        }
        chosen = {f"TOCSIN_{name}_PORT": str(port) for name, port in self.ports.items()}
        self.environment = inherited | chosen | {"TOCSIN_IMAGE": f"{NAME}:local", "TOCSIN_HOST": "story"}

    def run(self, *words: str | Path, check: bool = True, **more: Any) -> str:
        done = subprocess.run(words, env=self.environment, cwd=self.folder, capture_output=True, text=True, check=False, **more)
        assert done.returncode == 0 or not check, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def compose(self, *words: str, check: bool = True) -> str:
        return self.run("docker", "compose", "-p", NAME, *words, check=check, timeout=UP_S_MAX)

    def tocsin(self, *words: str, check: bool = True) -> str:
        return self.run(sys.executable, "-P", "-m", "tocsin.cli", *words, check=check, timeout=60)

    def containers(self) -> dict[str, dict[str, Any]]:
        ids = self.compose("ps", "-aq").split()
        found = json.loads(self.run("docker", "inspect", *ids)) if ids else []
        return {one["Config"]["Labels"]["com.docker.compose.service"]: one for one in found}

    def listed(self) -> list[dict[str, Any]]:
        return json.loads(self.tocsin("ls", "--json", "--state", str(self.state)))["worktrees"]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    one = Project(tmp_path_factory.mktemp("story"))
    try:
        one.compose("up", "-d", "--build", "--wait")
        yield one
    finally:
        one.compose("down", "-v", check=False)
        one.run("docker", "image", "rm", f"{NAME}:local", check=False)


def test_everything_is_healthy_from_nothing(project: Project):
    states = {name: one["State"] for name, one in project.containers().items()}
    assert {name for name, state in states.items() if state.get("Health", {}).get("Status") == "healthy"} == SERVICES
    assert (states["credentials"]["Status"], states["credentials"]["ExitCode"]) == ("exited", 0)


def test_the_hosts_folder_belongs_to_whoever_owns_the_checkout_and_to_nobody_else(project: Project):
    owner = project.folder.stat()
    for path in (project.state, *project.state.iterdir()):
        found = path.stat()
        assert (found.st_uid, found.st_gid, found.st_mode & 0o077) == (owner.st_uid, owner.st_gid, 0), path


def test_a_hook_on_the_host_reaches_the_list_and_pane_host_joins_from_there(project: Project):
    repository = project.home / "work"
    project.run("git", "init", "-q", "-b", "story-branch", repository)
    project.run("git", "-C", repository, "-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "--allow-empty", "-m", "first")
    host = subprocess.Popen(
        [sys.executable, "-P", "-m", "tocsin.cli", "pane-host", "--state", project.state],
        env=project.environment | {"HOME": str(project.home), "TMUX_TMPDIR": str(project.home)}, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        project.tocsin("hooks", "install", "claude", "--home", str(project.home))
        settings = json.loads((project.home / ".claude" / "settings.json").read_text())
        command = settings["hooks"]["UserPromptSubmit"][0]["hooks"][0]["command"]
        body = {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "prompt_id": "p1", "prompt": "go", "cwd": str(repository)}
        subprocess.run(
            ["sh", "-c", command], input=json.dumps(body), text=True, cwd=repository, check=True,
            env=project.environment | {"HOME": str(project.home), "TOCSIN_STATE": str(project.state)},
        )  # fmt: skip
        assert not list((project.state / "spool").glob("*.hook"))
        for _ in Deadline(30, "the list shows the turn, and pane-host the branch"):
            rows = [row for row in project.listed() if row["path"] == str(repository.resolve())]
            if rows and rows[0]["class"] == 3 and rows[0].get("branch") == "story-branch":
                break
        assert rows[0]["host"] == "story"
    finally:
        host.terminate()
        assert host.wait(20) == 0


def test_j09_no_container_that_stays_runs_as_root_or_may_become_it(project: Project):
    for name, one in project.containers().items():
        if name in SERVICES:
            assert project.compose("exec", "-T", name, "id", "-u").strip() == "10001", name
            assert one["HostConfig"]["CapDrop"] == ["ALL"]
            assert "no-new-privileges:true" in one["HostConfig"]["SecurityOpt"]


def test_j09_everything_is_published_on_loopback_only(project: Project):
    bound = [
        binding["HostIp"]
        for one in project.containers().values()
        for bindings in (one["NetworkSettings"]["Ports"] or {}).values()
        for binding in bindings or ()
    ]
    assert bound == ["127.0.0.1"] * 3
    gateway = json.loads(project.run("docker", "network", "inspect", f"{NAME}_default"))[0]["IPAM"]["Config"][0]["Gateway"]
    for port in project.ports.values():
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            pass
        with pytest.raises(OSError):  # noqa: PT011 - refused or without an answer: both are closed
            socket.create_connection((gateway, port), timeout=5)


def test_j09_a_container_without_credentials_is_refused_by_bus_store_and_monitor(project: Project):
    said = project.run(
        "docker", "run", "--rm", "--network", f"{NAME}_default", "--entrypoint", "python", f"{NAME}:local", "-c", AS_A_STRANGER
    )  # fmt: skip
    assert said.split() == ["refused", "refused", "closed"]


def test_j09_doctor_says_which_links_are_protected(project: Project):
    findings = json.loads(project.tocsin("doctor", "--json", "--state", str(project.state), check=False))["findings"]
    links = {finding["says"].partition(":")[0]: finding["level"] for finding in findings if finding["check"] == "links"}
    assert links == {"bus": "ok", "store": "ok", "hook-ingest": "ok"}
    assert {finding["level"] for finding in findings if finding["check"] in ("instance", "bus", "store")} == {"ok"}


def test_j09_no_secret_is_in_a_log(project: Project):
    logs = project.compose("logs", "--no-color")
    assert "ingest.listening" in logs
    files = (*instance.BEARERS, instance.HASH_KEY, *instance.NATS_USERS, instance.REDIS_CREDENTIAL)
    secrets = [(instance.credential(project.state, name) or "").replace(":", ".").rpartition(".")[2] for name in files]
    assert all(secrets)
    assert [secret for secret in secrets if secret in logs] == []


def test_k05_containers_that_are_made_anew_keep_list_and_credentials(project: Project):
    before = {
        name: instance.credential(project.state, name) for name in (*instance.BEARERS, *instance.NATS_USERS, instance.REDIS_CREDENTIAL)
    }
    rows = {row["id"] for row in project.listed()}
    assert rows
    project.compose("up", "-d", "--force-recreate", "--wait")
    assert {name: instance.credential(project.state, name) for name in before} == before
    for _ in Deadline(30, "the list is as before"):
        if rows <= {row["id"] for row in project.listed()}:
            break


def test_credentials_come_back_from_the_containers_when_the_hosts_folder_was_removed(project: Project):
    before = {path.name: path.read_text() for path in project.state.glob("*.credential")}
    shutil.rmtree(project.state)
    project.compose("up", "-d", "--wait")
    assert {path.name: path.read_text() for path in project.state.glob("*.credential")} == before


def test_down_leaves_nothing(project: Project):
    project.compose("down", "-v")
    for what in ("container", "volume", "network"):
        everything = ["-a"] if what == "container" else []
        assert project.run("docker", what, "ls", "-q", *everything, "--filter", f"label=com.docker.compose.project={NAME}") == ""
    for port in project.ports.values():
        with pytest.raises(OSError):  # noqa: PT011 - nobody listens any more
            socket.create_connection(("127.0.0.1", port), timeout=5)
