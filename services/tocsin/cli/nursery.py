"""The process that services are born of: it has imported them all once, so that each starts in milliseconds and they share that memory.

Run as a module it is that process (`run`); `Nursery` is how the supervisor asks it. They speak by lines of JSON over a
pair of sockets that nobody else can reach: an Order, then a Word when the child is there and one when it has ended. A child
has a session, a log and an environment of its own and gets SIGTERM when the nursery dies, as the nursery does when the supervisor dies.
"""

import asyncio
import contextlib
import ctypes
import gc
import importlib
import os
import select
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from tocsin.cli.serve import SERVICES, main_of
from tocsin.runtime import instance
from tocsin.runtime.instance import Identity

_SET_PARENT_DEATH_SIGNAL, _SET_NAME = 1, 15
NAME_BYTES_MAX = 15
"""Linux keeps no more of a process' short name."""

LINE_BYTES_MAX = 1024 * 1024


class Order(msgspec.Struct, frozen=True):
    """A service is to be born. `number` tells it from others."""

    number: int
    service: str
    log: str
    folder: str
    environment: dict[str, str]


class Word(msgspec.Struct, frozen=True):
    """What became of an order: its process runs, or has ended with this exit code (negative: by a signal)."""

    number: int
    pid: int
    code: int | None = None


def die_with_parent(parent: int) -> None:
    """Get SIGTERM when the parent, which was `parent`, dies; where the system knows no such thing, nothing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
        if os.getppid() != parent:  # it died before the request was made
            os._exit(1)


# ------------------------------------------------------- in the process


def run(descriptor: int) -> None:
    """Take orders from the socket until its other end is gone."""
    for service in SERVICES.values():
        importlib.import_module(service)
    gc.collect()
    gc.freeze()  # what is there now is never looked at again, and so never copied into a child
    orders = socket.socket(fileno=descriptor)
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    numbers: dict[int, int] = {}
    rest = b""
    while True:
        ready, _, _ = select.select([orders.fileno(), wake_read], [], [])
        if wake_read in ready:
            os.read(wake_read, 4096)
            for word in _ended(numbers):
                orders.sendall(msgspec.json.encode(word) + b"\n")
        if orders.fileno() in ready:
            data = orders.recv(65536)
            if not data:
                return
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                order = msgspec.json.decode(line, type=Order)
                pid = os.fork()
                if pid == 0:
                    for inherited in (wake_read, wake_write):
                        os.close(inherited)
                    orders.close()
                    _be(order)
                numbers[pid] = order.number
                orders.sendall(msgspec.json.encode(Word(order.number, pid)) + b"\n")


def _ended(numbers: dict[int, int]) -> list[Word]:
    """The children that have ended since."""
    found = []
    while numbers:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            break
        found.append(Word(numbers.pop(pid), pid, os.waitstatus_to_exitcode(status)))
    return found


def _be(order: Order) -> None:
    """Be the service, in this process; never returns."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        die_with_parent(os.getppid())
        if sys.platform == "linux":  # what `ps` and `top` show
            ctypes.CDLL(None).prctl(_SET_NAME, f"t-{order.service}".encode()[:NAME_BYTES_MAX])
        log = os.open(order.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, instance.FILE_MODE)
        for stream in (1, 2):
            os.dup2(log, stream)
        os.close(log)
        os.chdir(order.folder)
        os.environ.clear()
        os.environ.update(order.environment)
        from tocsin.runtime.run import run as live

        live(order.service, main_of(order.service))
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:  # noqa: BLE001 - it ends here in any case, and says why
        sys.excepthook(*sys.exc_info())
    finally:
        for output in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                output.flush()
        os._exit(code)


# ---------------------------------------------------- in the supervisor


class Born:
    """A process of the nursery, as the supervisor keeps it: like one that it has started itself."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.identity: Identity | None = instance.identify(pid)
        self._ended = asyncio.Event()

    def end(self, code: int) -> None:
        """It has ended so."""
        self.returncode = code
        self._ended.set()

    async def wait(self) -> int:
        """Until it has ended; returns how."""
        await self._ended.wait()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Raises ProcessLookupError when it has ended."""
        if self.returncode is not None or self.identity is None or not instance.alive(self.identity):
            raise ProcessLookupError(self.pid)
        os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end. Raises ProcessLookupError."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it. Raises ProcessLookupError."""
        self.send_signal(signal.SIGKILL)


class Nursery:
    """Asks for services. When the process dies, its children end with it, and the next order starts another one."""

    def __init__(self, log: Callable[[], int]) -> None:
        self._log = log  # opens the log of the process itself
        self._numbers = 0
        self._waiting: dict[int, asyncio.Future[Born]] = {}
        self._born: dict[int, Born] = {}
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()

    async def open(self) -> None:
        """Start the process, unless it runs: it imports while others start. Raises OSError, Unusable."""
        async with self._lock:
            if self._reading is not None and not self._reading.done():
                return
            ours, theirs = socket.socketpair()
            log, parent = self._log(), os.getpid()
            try:
                self._process = await asyncio.create_subprocess_exec(
                    sys.executable, "-P", "-m", "tocsin.cli.nursery", str(theirs.fileno()),
                    stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, pass_fds=(theirs.fileno(),),
                    preexec_fn=lambda: die_with_parent(parent),
                )  # fmt: skip
            finally:
                os.close(log)
                theirs.close()
            reader, self._writer = await asyncio.open_connection(sock=ours, limit=LINE_BYTES_MAX)
            self._reading = asyncio.create_task(self._read(reader))

    async def bear(self, service: str, log: Path, folder: Path, environment: Mapping[str, str]) -> Born:
        """A service of its own process. Raises OSError when the nursery does not live that long, Unusable."""
        await self.open()
        self._numbers += 1
        waiting: asyncio.Future[Born] = asyncio.get_running_loop().create_future()
        self._waiting[self._numbers] = waiting
        order = Order(self._numbers, service, str(log), str(folder), dict(environment))
        self._writer.write(msgspec.json.encode(order) + b"\n")
        return await waiting

    async def close(self) -> None:
        """End the process, when its children have ended."""
        if self._reading is not None and self._process is not None:
            self._writer.close()
            await self._process.wait()
            await self._reading

    async def _read(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(ConnectionError):
            while line := await reader.readline():
                word = msgspec.json.decode(line, type=Word)
                if word.code is None:
                    self._born[word.number] = born = Born(word.pid)
                    waiting = self._waiting.pop(word.number)
                    if not waiting.done():
                        waiting.set_result(born)
                elif (ended := self._born.pop(word.number, None)) is not None:
                    ended.end(word.code)
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(OSError("the process that services are born of has ended"))
        for born in self._born.values():
            with contextlib.suppress(ProcessLookupError):
                born.kill()  # nobody could tell any more how it ends
            born.end(-signal.SIGKILL)
        self._waiting.clear()
        self._born.clear()


if __name__ == "__main__":
    run(int(sys.argv[1]))
