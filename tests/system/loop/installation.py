"""Tocsin as its users have it: the wheel in an environment of its own, a home, a tmux server, and `tocsin up` on a state folder."""

import asyncio
import atexit
import contextlib
import fcntl
import functools
import json
import os
import pty
import shutil
import signal
import struct
import subprocess
import sys
import sysconfig
import tempfile
import termios
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

from support import Deadline
from tocsin.bus.nats_bus import NatsBus, connect
from tocsin.contract.messages import Body
from tocsin.contract.subjects import Subject
from tocsin.runtime import instance
from tocsin.runtime.instance import Identity

ROOT = Path(__file__).parents[3]
AGENT = Path(__file__).parent / "scripted_agent.py"

START_S_MAX, STOP_S_MAX, VERB_S_MAX = 60, 30, 60
SCREEN = (40, 240)
"""Rows and columns of a terminal: wide enough for a pointer on one row."""

AWAY = 4
"""The exit code of a verb that reached nobody: the same request again."""


@functools.cache
def programs() -> Path:
    """The wheel of this checkout, built once and installed into an environment of its own; returns that environment's bin folder.

    What the wheel depends on is seen through to the environment that runs the tests, so nothing is fetched.
    """
    folder = Path(tempfile.mkdtemp(prefix="wheel"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=ROOT, check=True, capture_output=True)
    wheel = next(folder.glob("*.whl"))
    place = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    packages = next((place / "lib").glob("python*/site-packages"))
    # A plain line adds that folder to the path and reads none of its .pth files, so the checkout itself stays out of sight.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    installer = [sys.executable, "-m", "pip", "--python", place / "bin" / "python", "install", "--quiet", "--no-deps", "--no-index", wheel]
    subprocess.run(installer, check=True, env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"})
    # Beside its Python, where the extra `embedded` would have put it.
    (place / "bin" / "nats-server").symlink_to(Path(sysconfig.get_path("scripts")) / "nats-server")
    return place / "bin"


class Refused(Exception):
    """A verb changed nothing; `code` is the refusal's."""

    def __init__(self, words: Sequence[str], done: "subprocess.CompletedProcess[str]") -> None:
        super().__init__(f"tocsin {' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        self.exit_code = done.returncode
        try:
            self.code = json.loads(done.stderr.strip().splitlines()[-1])["code"]
        except (ValueError, KeyError, IndexError, TypeError):
            self.code = None


class Installation:
    """One user with one machine: home, checkouts, tmux server, state folder."""

    def __init__(self, **environment: str) -> None:
        self.bin = programs()
        # A short path: sockets of tmux and Valkey lie below it.
        self.folder = folder = Path(tempfile.mkdtemp(prefix="loop", dir="/tmp")).resolve()
        self.state = folder / "state"
        self.home = folder / "home"
        self.control = folder / "control"
        self.up: subprocess.Popen[bytes] | None = None
        self.said = folder / "up.log"
        for made in (self.home, self.control, folder / "tmux"):
            made.mkdir(parents=True)
        outside = {"NATS_URL", "REDIS_URL", "TMUX", "TMUX_PANE", "XDG_CONFIG_HOME", "XDG_STATE_HOME"}
        kept = {name: value for name, value in os.environ.items() if name not in outside and not name.startswith(("TOCSIN", "GIT_"))}
        self.environment = kept | {
            "HOME": str(self.home),
            "TMUX_TMPDIR": str(folder / "tmux"),
            "TOCSIN_STATE": str(self.state),
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "LC_ALL": "C.UTF-8",
            "TERM": "xterm-256color",
            **environment,
        }
        (self.home / ".gitconfig").write_text("[user]\n\tname = A Person\n\temail = person@localhost\n[init]\n\tdefaultBranch = main\n")

    # ------------------------------------------------------------ life

    def start(self, *words: str) -> None:
        """`tocsin up`, until it is ready."""
        with self.said.open("ab") as output:
            self.up = subprocess.Popen(
                [self.bin / "tocsin", "up", *words],
                env=self.environment,
                cwd=self.home,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        for _ in Deadline(START_S_MAX, "up is ready"):
            assert self.up.poll() is None, self.said.read_text()
            reached = instance.endpoint(self.state)
            if reached is not None and reached.ready and reached.supervisor is not None and reached.supervisor.pid == self.up.pid:
                break
        if not (self.home / ".local" / "share" / "tocsin" / "hook").exists():
            self.run("hooks", "install", "claude")

    def end(self) -> None:
        """Ask it to stop, and end the tmux server of this user, and nothing else."""
        subprocess.run(["tmux", "kill-server"], env=self.environment, capture_output=True, check=False)
        for socket in (self.folder / "tmux").rglob("*"):
            if socket.is_socket():
                subprocess.run(["tmux", "-S", socket, "kill-server"], env=self.environment, capture_output=True, check=False)
        children = self.children()
        if self.up is not None and self.up.poll() is None:
            self.up.send_signal(signal.SIGTERM)
            self.up.wait(STOP_S_MAX)
        left = {name: process for name, process in children.items() if instance.alive(process)}
        for process in left.values():
            os.kill(process.pid, signal.SIGKILL)
        assert left == {}, self.said.read_text()
        shutil.rmtree(self.folder)

    def __enter__(self) -> "Installation":
        try:
            self.start()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    def children(self) -> dict[str, Identity]:
        """What `up` has running, by name."""
        return {child.name: child.process for child in instance.children(self.state) if child.process is not None}

    def kill(self, name: str) -> Identity:
        """End a service or server as a crash would; `up` starts it again. Returns what it was."""
        process = self.children()[name]
        os.kill(process.pid, signal.SIGKILL)
        return process

    def lose(self, server: str, *services: str) -> None:
        """Kill a server and take its disk away, before it starts again; `services` die with it."""
        disk = {"nats": self.state / "nats" / "store", "valkey": self.state / "valkey" / "appendonlydir"}[server]
        assert self.up is not None
        before = self.children()
        os.kill(self.up.pid, signal.SIGSTOP)
        for name in (server, *services):
            os.kill(before[name].pid, signal.SIGKILL)
        shutil.rmtree(disk)
        os.kill(self.up.pid, signal.SIGCONT)
        for name in (server, *services):
            self.wait_for_another(name, before[name])

    def wait_for_another(self, name: str, before: Identity) -> None:
        """Until `up` has started it again."""
        for _ in Deadline(30, f"{name} runs again"):
            if self.children().get(name) not in (None, before):
                return

    @contextmanager
    def another(self, service: str) -> Iterator[None]:
        """A second replica of a service, beside the one that `up` keeps."""
        reached = instance.endpoint(self.state)
        assert reached is not None
        places = {"NATS_URL": reached.nats_url, "REDIS_URL": reached.redis_url, "TOCSIN_BEAT_FILE": str(self.folder / "beat")}
        command = [self.bin / "python", "-m", f"tocsin.{service.replace('-', '_')}"]
        with (self.state / "logs" / f"{service}-2.log").open("wb") as said:
            process = subprocess.Popen(command, env=self.environment | places, stdout=said, stderr=said)
        try:
            yield
            assert process.poll() is None
        finally:
            process.kill()
            process.wait()

    def logs(self) -> str:
        """The last lines of all logs, for a failure's text."""
        logs = [path for path in sorted((self.state / "logs").glob("*.log")) if path.stem not in ("nats", "valkey")]
        parts = [f"--- {path.name}\n" + "\n".join(path.read_text().splitlines()[-30:]) for path in logs]
        return "\n".join(parts)

    def until(self, what: str, holds: Callable[[], Any], seconds: float = 60) -> Any:
        """Wait for a condition; returns what it came to. When it does not come, the logs say what did."""
        try:
            for _ in Deadline(seconds, what):
                found = holds()
                if found:
                    return found
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.logs()}") from error
        raise AssertionError

    # ----------------------------------------------------------- verbs

    def run(self, *words: str, cwd: Path | None = None, **environment: str) -> "subprocess.CompletedProcess[str]":
        """One verb, as typed."""
        return subprocess.run(
            [self.bin / "tocsin", *words], env=self.environment | environment, cwd=cwd or self.home, capture_output=True, text=True,
            timeout=VERB_S_MAX, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def ask(self, *words: str, cwd: Path | None = None, codes: tuple[int, ...] = (0,)) -> Any:
        """One verb with `--json`: what it said. Raises Refused when it ends with another exit code than `codes`."""
        # What stands behind --command is the worker's.
        end = words.index("--command") if "--command" in words else len(words)
        done = self.run(*words[:end], "--json", *words[end:], cwd=cwd)
        if done.returncode not in codes or not done.stdout:
            raise Refused(words, done)
        return json.loads(done.stdout)

    def insist(self, *words: str, codes: tuple[int, ...] = (0,)) -> Any:
        """The same request until somebody answers it, as a caller does whose service is away. Raises Refused."""
        for _ in Deadline(90, f"an answer to tocsin {' '.join(words)}"):
            try:
                return self.ask(*words, codes=codes)
            except Refused as refused:
                if refused.exit_code != AWAY:
                    raise
        raise AssertionError

    # --------------------------------------------------------- machine

    def repository(self, name: str = "project") -> Path:
        """A repository with one commit."""
        place = self.folder / name
        place.mkdir()
        (place / "README").write_text("as it was\n")
        for words in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "--message", "as it was")):
            self.git(place, *words)
        return place

    def git(self, place: Path, *words: str) -> str:
        """One git command there; returns what it said."""
        return subprocess.run(
            ["git", "-C", place, *words], env=self.environment, capture_output=True, text=True, check=True
        ).stdout.strip()  # fmt: skip

    def tmux(self, *words: str) -> str:
        """One command to this user's tmux; returns what it said."""
        return subprocess.run(["tmux", *words], env=self.environment, capture_output=True, text=True, check=True).stdout.strip()

    def sit_down(self, session: str) -> "Person":
        """A person at a terminal of their own that shows a tmux session."""
        return Person(self.environment, session)

    def mark(self, name: str) -> None:
        """Let the workers go on that wait for `name`."""
        (self.control / name).touch()

    def wait_for_mark(self, name: str) -> None:
        """Until a worker has got there."""
        self.until(f"a worker marks {name}", (self.control / name).exists)

    def did(self, dispatch: str) -> list[dict[str, Any]]:
        """What the scripted agent of a Dispatch wrote down, oldest first."""
        log = self.control / f"{dispatch}.jsonl"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def lives(self, dispatch: str) -> int:
        """How many processes were ever started as the worker of a Dispatch."""
        return len([step for step in self.did(dispatch) if step["step"] == "booting"])

    # ------------------------------------------------------------- bus

    def connected(self) -> Any:
        """A connection as the services have it."""
        reached = instance.endpoint(self.state)
        assert reached is not None
        return connect(reached.nats_url, name="story", state=self.state)

    def record(self, subject: Subject[Any], *keys: str) -> list[Any]:
        """All messages of a kept subject, oldest first."""

        async def read() -> list[Any]:
            found: list[Any] = []
            async with asyncio.timeout(30), self.connected() as bus:
                last = await bus.end(subject)
                if not last or (keys and not await bus.end_of(subject, *keys)):
                    return []
                until = await bus.end_of(subject, *keys) if keys else last
                async with bus.read(subject, *keys, after=0) as reading:
                    async for batch in reading:
                        found += [heard.body for heard in batch]
                        if batch and batch[-1].seq >= until:
                            return found
            return found

        return asyncio.run(read())

    def last_values(self, subject: Subject[Any], *keys: str) -> list[Any]:
        """The last value of each subject below `keys`."""

        async def read() -> list[Any]:
            found: list[Any] = []
            async with asyncio.timeout(30), self.connected() as bus, bus.follow(subject, *keys) as following:
                async for batch in following:
                    if not batch:
                        break
                    found += [heard.body for heard in batch]
            return found

        return asyncio.run(read())

    @contextmanager
    def when(self, subject: Subject[Any], holds: Callable[[Any], bool], act: Callable[[], None]) -> Iterator[Event]:
        """Do `act` at the first message from now on for which `holds`; the event that is yielded says that it was done."""
        listening, done, over = Event(), Event(), Event()
        problems: list[BaseException] = []

        async def listen() -> None:
            async with self.connected() as bus:
                await _until(bus, subject, holds, listening, over)
            if not over.is_set():
                act()
                done.set()

        def run() -> None:
            try:
                asyncio.run(listen())
            except BaseException as problem:  # noqa: BLE001 - it is raised in the test's own thread
                problems.append(problem)
                listening.set()

        thread = Thread(target=run)
        thread.start()
        assert listening.wait(10)
        try:
            yield done
        finally:
            over.set()
            thread.join(30)
        if problems:
            raise problems[0]


class Person:
    """Somebody at a terminal: what they type are keys, which tmux tells from what programs send."""

    def __init__(self, environment: dict[str, str], session: str) -> None:
        self.terminal, screen = pty.openpty()
        fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", *SCREEN, 0, 0))
        command = ["tmux", "-u", "attach-session", "-t", session]
        self.client = subprocess.Popen(command, env=environment, stdin=screen, stdout=screen, stderr=screen, start_new_session=True)
        os.close(screen)
        self.reader = Thread(target=self._watch, daemon=True)
        self.reader.start()
        for _ in Deadline(10, "the terminal shows the session"):
            asked = ["tmux", "list-clients", "-t", session, "-F", "#{client_pid}"]
            clients = subprocess.run(asked, env=environment, capture_output=True, text=True, check=False).stdout.split()
            if str(self.client.pid) in clients:
                break

    def _watch(self) -> None:
        """Take what the terminal shows, so that its program never waits for us."""
        with contextlib.suppress(OSError):
            while os.read(self.terminal, 65536):
                pass

    def types(self, keys: str) -> None:
        """Press these keys."""
        os.write(self.terminal, keys.encode())

    def leave(self) -> None:
        """Close the terminal."""
        self.client.terminate()
        self.client.wait(10)
        os.close(self.terminal)


async def _until(bus: NatsBus, subject: Subject[Any], holds: Callable[[Any], bool], listening: Event, over: Event) -> None:
    """Read from now on until a message holds, or it is over."""
    async with bus.read(subject, after=await bus.end(subject)) as reading:
        listening.set()
        waiting = asyncio.ensure_future(_first(reading, holds))
        while not waiting.done() and not over.is_set():
            await asyncio.wait({waiting}, timeout=0.05)
        waiting.cancel()


async def _first(reading: Any, holds: Callable[[Body], bool]) -> None:
    async for batch in reading:
        if any(holds(heard.body) for heard in batch):
            return
