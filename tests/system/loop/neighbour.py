"""A second machine on the same bus: a home, a tmux server and a state folder of its own, with its own intake and its own hands."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

from support import Deadline
from system.loop.installation import Installation
from tocsin.agents.install.endpoint import write_endpoint
from tocsin.runtime import instance

SERVICES = ("hook_ingest", "pane_host")


class Neighbour:
    """A machine of another name. It has the bus's credential and nothing else of the first one."""

    def __init__(self, here: Installation, name: str) -> None:
        self.here = here
        self.name = name
        self.folder = here.folder / name
        self.state, self.home = self.folder / "state", self.folder / "home"
        self.processes: list[subprocess.Popen[bytes]] = []
        for made in (self.home, self.folder / "tmux"):
            made.mkdir(parents=True)
        instance.create(self.state)
        shutil.copy(here.state / instance.NATS_CREDENTIAL, self.state)
        shutil.copy(here.home / ".gitconfig", self.home)
        reached = instance.endpoint(here.state)
        assert reached is not None
        self.environment = here.environment | {
            "HOME": str(self.home),
            "TMUX_TMPDIR": str(self.folder / "tmux"),
            "TOCSIN_STATE": str(self.state),
            "TOCSIN_HOST": name,
            "NATS_URL": reached.nats_url,
            "TOCSIN_INGEST_PORT": "0",
            "TOCSIN_INGEST_PORT_FILE": str(self.state / "port"),
        }

    def __enter__(self) -> "Neighbour":
        subprocess.run([self.here.bin / "tocsin", "hooks", "install", "claude"], env=self.environment, check=True, capture_output=True)
        for service in SERVICES:
            with (self.folder / f"{service}.log").open("wb") as log:
                command = [self.here.bin / "python", "-P", "-m", f"tocsin.{service}"]
                self.processes.append(subprocess.Popen(command, env=self.environment, stdout=log, stderr=log))
        port = self.state / "port"
        for _ in Deadline(30, "the second machine takes hooks"):
            if port.exists() and port.read_text().strip():
                break
        place = f"127.0.0.1:{port.read_text().strip()}"
        write_endpoint(self.state, f"http://{place}", instance.credential(self.state, instance.HOOK_CREDENTIAL) or "", place)
        return self

    def __exit__(self, *error: object) -> None:
        for process in self.processes:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()
        for socket in Path(self.folder / "tmux").rglob("*"):
            if socket.is_socket():
                subprocess.run(["tmux", "-S", socket, "kill-server"], env=self.environment, capture_output=True, check=False)

    def cut_off(self) -> None:
        """Nothing of it reaches the bus any more; its agents go on."""
        for process in self.processes:
            os.kill(process.pid, signal.SIGSTOP)

    def reconnect(self) -> None:
        """It is back."""
        for process in self.processes:
            os.kill(process.pid, signal.SIGCONT)
