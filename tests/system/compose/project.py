"""A copy of the checkout with containers of its own.

Needs a Docker engine and its compose plugin, so nothing here is part of `make test`. It has a project name, image names and
ports of its own.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import redis

from tocsin.runtime import instance
from tocsin.store.keys import STATUS_STORE

ROOT = Path(__file__).parents[3]
NAME = "tocsin-story"
SHARING = ("hook-ingest", "dispatcher", "mailbox", "release-accountant", "console")
"""Replicas share the work."""

STANDING_BY = ("status-store", "sorter")
"""One replica is at work, the others stand by."""

SERVICES = {"nats", "valkey", "front", *SHARING, *STANDING_BY}
UP_S_MAX = 600
"""The first build fetches every package."""

OVERLAY = "infra/compose.cluster.yml"


class Project:
    """Brought up by `up`, with as many replicas as `scale` says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "checkout"
        self.home = folder / "home"
        self.home.mkdir()
        self.state = self.folder / ".tocsin"
        self.files: tuple[str, ...] = ()
        self.figures: list[str] = []
        self.folder.mkdir()
        for name in ("docker-compose.yml", ".dockerignore", "pyproject.toml", "constraints.txt", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, self.folder)
        for name in ("libs", "services", "infra"):
            shutil.copytree(ROOT / name, self.folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        with ExitStack() as held:
            free = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(4)]
            self.ports = {name: server.getsockname()[1] for name, server in zip(("INGEST", "CONSOLE", "NATS", "REDIS"), free, strict=True)}
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith("TOCSIN_") and name not in ("NATS_URL", "REDIS_URL")
        }
        chosen = {f"TOCSIN_{name}_PORT": str(port) for name, port in self.ports.items()}
        images = {"TOCSIN_IMAGE": f"{NAME}:local", "TOCSIN_FRONT_IMAGE": f"{NAME}-front:local"}
        self.environment = inherited | chosen | images | {"TOCSIN_HOST": "story"}

    # ------------------------------------------------------------ commands

    def run(self, *words: str | Path, check: bool = True, **more: Any) -> str:
        done = subprocess.run(words, env=self.environment, cwd=self.folder, capture_output=True, text=True, check=False, **more)
        assert done.returncode == 0 or not check, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def compose(self, *words: str, check: bool = True) -> str:
        files = [word for file in self.files for word in ("-f", file)]
        return self.run("docker", "compose", "-p", NAME, *files, *words, check=check, timeout=UP_S_MAX)

    def up(self, *words: str) -> None:
        self.compose("up", "-d", "--wait", *words)

    def join_cluster(self) -> None:
        """From here on the project is the one with three nodes of NATS."""
        self.files = ("docker-compose.yml", OVERLAY)

    def tocsin(self, *words: str, check: bool = True) -> str:
        return self.run(sys.executable, "-P", "-m", "tocsin.cli", *words, check=check, timeout=60)

    # --------------------------------------------------------- what runs

    def containers(self) -> dict[str, dict[str, Any]]:
        """One container of each service."""
        ids = self.compose("ps", "-aq").split()
        found = json.loads(self.run("docker", "inspect", *ids)) if ids else []
        return {one["Config"]["Labels"]["com.docker.compose.service"]: one for one in found}

    def replicas(self, service: str) -> list[str]:
        """The ids of its containers that run."""
        return self.compose("ps", "-q", service).split()

    def events(self, container: str) -> list[str]:
        """The names of what it has logged, oldest first."""
        said = subprocess.run(["docker", "logs", container], env=self.environment, capture_output=True, text=True, check=True)
        return [json.loads(line).get("event", "") for line in (said.stdout + said.stderr).splitlines() if line.startswith("{")]

    def crash(self, container: str) -> None:
        """End everything in it but its init, without notice: the engine starts it again, as after any crash."""
        self.run("docker", "exec", container, "sh", "-c", "kill -9 -1", check=False)

    def store(self) -> redis.Redis:
        """The store, as services reach it."""
        password = instance.credential(self.state, instance.REDIS_CREDENTIAL)
        return redis.Redis(port=self.ports["REDIS"], password=password, socket_timeout=2)

    def active_status_store(self) -> str:
        """The container that holds the lease."""
        with self.store() as store:
            host = (store.hget(STATUS_STORE, "holder") or b"").decode().partition(":")[0]
        return next(one for one in self.replicas("status-store") if one.startswith(host))

    def active_sorter(self) -> str:
        """The container that publishes the list."""
        (active,) = [one for one in self.replicas("sorter") if self.is_active_sorter(one)]
        return active

    def is_active_sorter(self, container: str) -> bool:
        roles = [event for event in self.events(container) if event in ("sorter.active", "sorter.took_over", "sorter.standing_by")]
        return roles[-1:] != ["sorter.standing_by"]

    def listed(self) -> list[dict[str, Any]]:
        return json.loads(self.tocsin("ls", "--json", "--state", str(self.state)))["worktrees"]

    # ------------------------------------------------------------ figures

    def note(self, what: str, since: float) -> None:
        """Keep for the summary how long it took; `since` is on the monotonic clock."""
        self.figures.append(f"{what}: {time.monotonic() - since:.1f} s")
