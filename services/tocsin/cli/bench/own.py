"""An instance for the measuring alone: in a folder, a home and a tmux of its own, ended with it. Nothing of the user's is seen or touched."""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import psutil

from tocsin.agents.install.machine import HookCommand
from tocsin.bus.nats_bus import connect
from tocsin.cli.bench.site import NotMeasured, Site, empty_server
from tocsin.cli.serve import SERVICES
from tocsin.runtime import instance

UP_S_MAX, DOWN_S_MAX = 60.0, 30.0
LOOK_S = 0.005

CHAIN = ("hook-ingest", "status-store", "sorter")
"""Services that an event passes on its way to the list."""

CLI = (sys.executable, "-P", "-m", "tocsin.cli")


class Own:
    """A folder in which `tocsin up` runs, and stops again, as often as asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.home = folder / "home"
        self.home.mkdir()
        outside = {"NATS_URL", "REDIS_URL", "TMUX", "TMUX_PANE"}
        kept = {name: value for name, value in os.environ.items() if name not in outside and not name.startswith("TOCSIN_")}
        self.environment = kept | {"HOME": str(self.home), "TMUX_TMPDIR": str(folder), "TOCSIN_STATE": str(self.state)}

    @property
    def endpoint(self) -> instance.Endpoint:
        """Where what runs is reached. Raises NotMeasured."""
        reached = instance.endpoint(self.state)
        if reached is None:
            raise NotMeasured(f"nothing runs on {self.state}")
        return reached

    @contextmanager
    def up(self, *words: str) -> Iterator[float]:
        """`tocsin up`, until the block ends: seconds from its start to its first list. Raises NotMeasured."""
        log = self.folder / "up.log"
        began = time.monotonic()
        with log.open("wb") as said:
            process = subprocess.Popen(
                [*CLI, "up", *words], env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                start_new_session=True,
            )  # fmt: skip
        try:
            while b"The list is live" not in log.read_bytes():
                if process.poll() is not None or time.monotonic() > began + UP_S_MAX:
                    raise NotMeasured(f"tocsin up has no list: {log.read_text(errors='replace').strip()}")
                time.sleep(LOOK_S)
            took_s = time.monotonic() - began
            while not ((reached := instance.endpoint(self.state)) and reached.ready):
                time.sleep(LOOK_S)
            yield took_s
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(DOWN_S_MAX)
            if process.poll() is None:
                process.kill()
                process.wait()

    def pids(self, *names: str) -> tuple[int, ...]:
        """The processes of these services, each once: in one process they have one."""
        found = {child.name: child.process.pid for child in instance.children(self.state) if child.process is not None}
        if missing := set(names) - set(found):
            raise NotMeasured(f"not running: {', '.join(sorted(missing))}")
        return tuple(dict.fromkeys(found[name] for name in names))

    def all_pids(self) -> tuple[int, ...]:
        """Every Python process: the services, the one that they are born of, and their supervisor."""
        supervisor, services = self.endpoint.supervisor, self.pids(*SERVICES)
        parents = {psutil.Process(pid).ppid() for pid in services} - {os.getpid()}
        return tuple(dict.fromkeys((*services, *parents, *((supervisor.pid,) if supervisor else ()))))

    def hook_command(self) -> tuple[str, ...]:
        """The installed hook command, for Claude Code. Raises OSError."""
        command = HookCommand(self.home)
        command.write()
        return str(command.path), "claude"

    @asynccontextmanager
    async def site(self) -> AsyncIterator[Site]:
        """The chain of what is up."""
        reached = self.endpoint
        with empty_server(self.folder) as (pid, port):
            async with connect(reached.nats_url, name="bench", state=self.state, makes_streams=False) as bus:
                ingest = int(reached.ingest_url.rpartition(":")[2])
                yield Site(self.state, bus, reached.redis_url, ingest, port, pid, self.pids(*CHAIN))


@contextmanager
def own_instance() -> Iterator[Own]:
    """A folder for one, removed at the end."""
    # Unix socket paths must stay under 100 bytes.
    with tempfile.TemporaryDirectory(prefix="tb", ignore_cleanup_errors=True) as folder:
        yield Own(Path(folder))
