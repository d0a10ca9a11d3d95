"""What keeps an instance from starting, or makes it fail: the start and doctor name the cause and the remedy. Each fault is real."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conftest import ValkeyServer, program
from support import Deadline
from system.hosts.machines import Machine
from tocsin.runtime import instance

PASSWORD = "of-another-kind"


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with Machine(tmp_path, "here") as one:
        yield one


def says(machine: Machine, *words: str, code: int, **environment: str) -> str:
    """What `tocsin up` says that does not start."""
    done = machine.tocsin("up", *words, **environment)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert not any(child.process and instance.alive(child.process) for child in instance.children(machine.state))
    return done.stderr


class Talker:
    """Another program on a port: it greets, or says nothing; `answer` makes something of what it hears."""

    def __init__(self, greeting: bytes = b"", answer: Callable[[bytes], bytes] = lambda heard: b"") -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._greeting, self._reply = greeting, answer
        threading.Thread(target=self._talk, daemon=True).start()

    def _talk(self) -> None:
        while True:
            try:
                other, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(other,), daemon=True).start()

    def _answer(self, other: socket.socket) -> None:
        with other:
            other.sendall(self._greeting)
            while heard := other.recv(65536):
                other.sendall(self._reply(heard))

    def __enter__(self) -> "Talker":
        return self

    def __exit__(self, *error: object) -> None:
        self._listener.close()


OLD_NATS = b'INFO {"server_id":"x","version":"2.9.25","jetstream":true,"max_payload":1048576,"headers":true}\r\n'


# ---------------------------------------------------------------- bus


def test_a_bus_that_is_not_there_is_named(machine: Machine):
    said = says(machine, code=4, NATS_URL="nats://127.0.0.1:9")
    assert "NATS_URL: nats://127.0.0.1:9 cannot be reached (connection refused): nothing listens there" in said


def test_another_program_on_the_port_of_the_bus_is_named(machine: Machine):
    with Talker(b"220 mail.example ESMTP\r\n") as mail:
        assert "is no nats-server: another program has the port" in says(machine, code=4, NATS_URL=f"nats://127.0.0.1:{mail.port}")
    with Talker() as silent:
        assert "takes a connection and says nothing" in says(machine, code=4, NATS_URL=f"nats://127.0.0.1:{silent.port}")


def test_a_bus_that_is_too_old_is_named(machine: Machine):
    with Talker(OLD_NATS) as old:
        assert "is nats-server 2.9.25: 2.11 or newer is needed" in says(machine, code=4, NATS_URL=f"nats://127.0.0.1:{old.port}")


def test_a_bus_that_keeps_nothing_is_named(machine: Machine, tmp_path: Path):
    with OtherNats(tmp_path, "") as port:
        assert "without JetStream" in says(machine, code=4, NATS_URL=f"nats://127.0.0.1:{port}")


def test_a_bus_with_another_password_is_named_and_the_password_is_not(machine: Machine, tmp_path: Path):
    rules = f'jetstream {{ store_dir: "{tmp_path}/store" }}\nauthorization {{ user: me, password: "{PASSWORD}" }}\n'
    with OtherNats(tmp_path, rules) as port:
        wrong = says(machine, code=4, NATS_URL=f"nats://me:guess@127.0.0.1:{port}")
        assert f"nats://127.0.0.1:{port} refuses our credential" in wrong
        assert "guess" not in wrong
        none = says(machine, code=4, NATS_URL=f"nats://127.0.0.1:{port}")
        assert "refuses no credential: give user and password in the address" in none


class OtherNats:
    """A real nats-server with some rules, on a free port."""

    def __init__(self, folder: Path, rules: str) -> None:
        self.folder, self.rules = folder, rules

    def __enter__(self) -> int:
        config = self.folder / "other.conf"
        config.write_text(f'listen: "127.0.0.1:-1"\nports_file_dir: "{self.folder}"\n{self.rules}')
        self.process = subprocess.Popen([program("nats-server"), "-c", str(config), "-l", str(self.folder / "other.log")])
        ports = self.folder / f"nats-server_{self.process.pid}.ports"
        for _ in Deadline(10, "the other bus is ready"):
            if ports.exists() and ports.read_text().strip():
                break
        return int(json.loads(ports.read_text())["nats"][0].rpartition(":")[2])

    def __exit__(self, *error: object) -> None:
        self.process.terminate()
        self.process.wait()


# -------------------------------------------------------------- store


def test_a_store_that_is_not_there_is_named(machine: Machine):
    assert "REDIS_URL: redis://127.0.0.1:9/0 cannot be reached" in says(machine, code=4, REDIS_URL="redis://127.0.0.1:9/0")


def test_a_store_with_another_password_is_named_and_the_password_is_not(machine: Machine, valkey_server: ValkeyServer):
    import redis

    client = redis.Redis(unix_socket_path=str(valkey_server.socket))
    client.config_set("requirepass", PASSWORD)
    client.close()
    none = says(machine, code=4, REDIS_URL=valkey_server.url)
    assert "refuses our password: give it in the address" in none
    wrong = says(machine, code=4, REDIS_URL=f"unix://:guess@{valkey_server.socket}")
    assert "refuses our password" in wrong
    assert "guess" not in wrong


def test_another_program_on_the_port_of_the_store_is_named(machine: Machine):
    with Talker(b"220 mail.example ESMTP\r\n") as mail:
        assert "another program has the port" in says(machine, code=4, REDIS_URL=f"redis://127.0.0.1:{mail.port}")


def test_a_store_that_is_too_old_is_named(machine: Machine):
    info = b"# Server\r\nredis_version:5.0.14\r\n"
    told = b"$%d\r\n%s\r\n" % (len(info), info)

    def an_old_store(heard: bytes) -> bytes:
        """It knows INFO, and none of the commands by which newer clients introduce themselves."""
        return b"".join(
            told if b"INFO\r\n" in one and b"SETINFO" not in one else b"-ERR unknown command\r\n" for one in heard.split(b"*")[1:]
        )

    with Talker(answer=an_old_store) as old:
        said = says(machine, code=4, REDIS_URL=f"redis://127.0.0.1:{old.port}")
    assert "is of version 5.0.14: 7 or newer is needed" in said


# --------------------------------------------------------------- ports


def test_a_port_that_another_program_has_is_chosen_around_and_said_and_hooks_go_to_the_new_one(machine: Machine):
    machine.start("up")
    ports = instance.ports(machine.state)
    machine.end()
    with socket.create_server(("127.0.0.1", ports["ingest"])):
        machine.start("up")
        assert f"port {ports['ingest']} is taken: ingest listens on" in machine.log.read_text()
        machine.ask("w")
        machine.wait_for("its hook arrives all the same", lambda rows: rows["here", "w"]["class"] == 1)
        assert machine.findings("hooks") == []


def test_another_program_where_hooks_should_be_taken_is_named_by_doctor(machine: Machine):
    # As with containers, whose port is fixed.
    with Talker(answer=lambda heard: b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") as other:
        a_folder_of_containers(machine, ingest=other.port)
        (finding,) = [one for one in machine.findings("hooks") if "another program listens" in one["says"]]
    assert "TOCSIN_INGEST_PORT" in finding["remedy"]


def a_folder_of_containers(machine: Machine, ingest: int = 9) -> None:
    """The folder as the first container leaves it."""
    instance.create(machine.state)
    instance.write_endpoint(
        machine.state,
        instance.Endpoint(
            version=instance_version(), instance="i", keeper=instance.Keeper.COMPOSE, nats_url="nats://127.0.0.1:9",
            redis_url="redis://127.0.0.1:9/0", ingest_url=f"http://127.0.0.1:{ingest}", host="here", workspace="default", ready=True,
        ),
    )  # fmt: skip


def instance_version() -> str:
    from importlib.metadata import version

    return version("tocsin")


# -------------------------------------------------------------- docker


DOCKERS = [
    ("none", None, "no docker command is on PATH"),
    ("its daemon is away", 'echo "Cannot connect to the Docker daemon" >&2; exit 1', "docker does not answer (Cannot connect to the Docker daemon)"),
    ("an old engine", 'case "$1" in version) echo 20.10.24 ;; esac', "Docker Engine 20.10.24 is too old: 25 or newer"),
    ("no compose", 'case "$1" in version) echo 28.1.0 ;; *) echo "docker: compose is not a docker command" >&2; exit 1 ;; esac', "no compose plugin"),
    ("an old compose", 'case "$1" in version) echo 28.1.0 ;; *) echo v2.12.2 ;; esac', "docker compose 2.12.2 is too old: 2.20.2 or newer"),
]  # fmt: skip


@pytest.mark.parametrize(("script", "said"), [one[1:] for one in DOCKERS], ids=[one[0] for one in DOCKERS])
def test_a_docker_that_cannot_keep_the_containers_is_named(machine: Machine, script: str | None, said: str):
    a_folder_of_containers(machine)
    folder = machine.folder / "bin"
    if script is not None:
        (folder / "docker").write_text(f"#!/bin/sh\n{script}\n")
        (folder / "docker").chmod(0o755)
    machine.environment["PATH"] = f"{folder}:{folder_without_docker(machine)}"
    (finding,) = machine.findings("docker")
    assert said in finding["says"]
    assert "docker compose up" in finding["remedy"]


def folder_without_docker(machine: Machine) -> Path:
    """Everything on PATH but docker, which this machine may have."""
    made = machine.folder / "path"
    made.mkdir()
    for folder in reversed(os.environ["PATH"].split(os.pathsep)):
        for found in Path(folder).iterdir() if Path(folder).is_dir() else ():
            if not found.name.startswith("docker"):
                (made / found.name).unlink(missing_ok=True)
                (made / found.name).symlink_to(found)
    return made


# ---------------------------------------------------------------- disk

if sys.platform == "linux":  # a disk that can be filled is a mount of one's own, which no other system gives
    OWN = () if os.geteuid() == 0 else ("--user", "--map-root-user")

    def on_a_small_disk(machine: Machine, mib: int) -> None:
        """From now on what runs on this machine finds such a disk at its state folder, in a mount namespace of its own."""
        machine.state.mkdir()
        machine.has_own_disk = True
        machine.within = ("unshare", *OWN, "--mount", "sh", "-c", f'mount -t tmpfs -o size={mib}m tmpfs {machine.state} && exec "$@"', "sh")

    def beside(machine: Machine) -> None:
        """From now on what runs on this machine is beside what it has started."""
        own = ("--user", "--preserve-credentials") if OWN else ()
        machine.within = ("nsenter", "--target", str(machine.process.pid), *own, "--mount")

    def test_a_full_disk_is_refused_at_the_start_with_what_is_free_and_what_is_needed(machine: Machine):
        on_a_small_disk(machine, 8)
        said = says(machine, code=3)
        assert "the disk is full: " in said
        assert "32 are needed to start" in said

    def test_a_disk_that_fills_up_is_named_and_work_goes_on_when_there_is_room_again(machine: Machine):
        on_a_small_disk(machine, 96)
        machine.start("up")
        assert "MiB are free" in machine.log.read_text()
        beside(machine)
        machine.ask("w")
        machine.wait_for("a hook arrives", lambda rows: rows["here", "w"]["class"] == 1)

        full = machine.seen / "full"
        with full.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(64 * 1024))
        for _ in Deadline(60, "doctor names the store that cannot write"):
            machine.hook("Stop", "w")
            machine.ask("w")
            if any("cannot write to its disk: make room" in one["says"] for one in machine.findings("store")):
                break
        assert any("0 MiB are free" in one["says"] and "make room" in one["remedy"] for one in machine.findings("storage"))
        assert [row["name"] for row in machine.rows()] == ["w"]

        full.unlink()
        machine.ask("later")
        machine.wait_for("hooks arrive again", lambda rows: rows["here", "later"]["class"] == 1)
