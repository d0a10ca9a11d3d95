"""docker-compose.yml as a person uses it: from nothing to a hook in the list. `make test-compose`."""

import json
import shutil
import socket
import subprocess
import sys

import pytest

from support import Deadline
from system.compose.project import NAME, SERVICES, SHARING, STANDING_BY, Project
from tocsin.runtime import instance

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
    assert bound == ["127.0.0.1"] * len(project.ports)
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


def test_each_service_shows_its_metrics_in_the_network_and_nowhere_else(project: Project):
    services = sorted({*SHARING, *STANDING_BY})
    ask = f"from urllib.request import urlopen; print([urlopen(f'http://{{one}}:9464/metrics').status for one in {services}])"
    network = ("--network", f"{NAME}_default")
    said = project.run("docker", "run", "--rm", *network, "--entrypoint", "python", f"{NAME}:local", "-c", ask)
    assert json.loads(said) == [200] * len(services)
    assert not [one for one in project.containers().values() if (one["NetworkSettings"]["Ports"] or {}).get("9464/tcp")]


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
