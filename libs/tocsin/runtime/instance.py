"""An instance is its state folder: id, lock, endpoint file and credentials.

Everything in it is readable by its owner alone. Credentials are made once, of system randomness, and never have a
default. Nothing here starts or ends a process; light enough for every verb of the command (no settings library).
"""

import errno
import fcntl
import json
import os
import secrets
import sys
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from tocsin.contract.refusals import Code, Refusal
from tocsin.runtime.folder import state_folder as state_folder  # whoever knows instances finds the folder here

ID = "id"
LOCK = "lock"
ENDPOINT = "endpoint.json"
PROCESSES = "processes.json"
PORTS = "ports.json"
METRICS = "metrics.json"
"""Where its processes show their metrics, in the form of Prometheus' file_sd."""

HOOK_CREDENTIAL = "hook.credential"
COMMAND_CREDENTIAL = "command.credential"
READER_CREDENTIAL = "reader.credential"
HASH_KEY = "hash.key"
NATS_CREDENTIAL = "nats.credential"
NATS_READER_CREDENTIAL = "nats-reader.credential"
NATS_CONSOLE_CREDENTIAL = "nats-console.credential"
NATS_MONITOR_CREDENTIAL = "nats-monitor.credential"
NATS_HOST_CREDENTIAL = "nats-host.credential"
NATS_ROUTE_CREDENTIAL = "nats-route.credential"
"""What the nodes of a cluster show each other; nobody else holds it."""

REDIS_CREDENTIAL = "redis.credential"

BEARERS = (HOOK_CREDENTIAL, COMMAND_CREDENTIAL, READER_CREDENTIAL)
"""Shown over HTTP as `<instance id>.<secret>`, so that another instance's credential is told from a wrong one."""

NATS_USERS: Mapping[str, str] = {
    NATS_CREDENTIAL: "service",
    NATS_CONSOLE_CREDENTIAL: "console",
    NATS_READER_CREDENTIAL: "reader",
    NATS_MONITOR_CREDENTIAL: "monitor",
    NATS_HOST_CREDENTIAL: "host",
}
"""Files that hold `user:password` of the bus, and their users."""

SECRET_BYTES = 32
FOLDER_MODE = 0o700
FILE_MODE = 0o600


class Unusable(Exception):
    """The state folder cannot be used. The message is one line for a person, with the remedy."""


class Identity(msgspec.Struct, frozen=True):
    """A process that no other can be mistaken for: numbers are used again, number and start time together are not."""

    pid: int
    started: str  # on Linux boot and clock ticks since it; elsewhere the start time as the system gives it


class Keeper(StrEnum):
    """Who keeps the services of an instance running."""

    UP = "up"
    COMPOSE = "compose"
    JOIN = "join"  # another machine's instance, of which this folder holds the hands and eyes


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where a running instance is reached. Addresses are loopback ones unless the user gave others."""

    version: str  # of the code that runs
    instance: str
    keeper: Keeper
    nats_url: str
    redis_url: str  # empty on a machine that has joined: only services need it
    ingest_url: str
    host: str
    workspace: str
    console_url: str | None = None  # None: no console runs
    supervisor: Identity | None = None  # None: containers, which no process here stands for
    since_ms: int = 0
    ready: bool = False  # the first list was published

    @property
    def runs(self) -> bool:
        """False when its supervisor is gone. Containers count as running: only asking them can tell."""
        return self.supervisor is None or alive(self.supervisor)


class Child(msgspec.Struct, frozen=True, kw_only=True):
    """One process that a supervisor has started, and what became of those before it."""

    name: str
    process: Identity | None  # None: between two starts
    restarts: int = 0
    last_exit: str | None = None
    last_exit_ms: int | None = None


# ---------------------------------------------------------------- processes


def _linux_start(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
    except OSError:
        return None
    # The second field is the program's name in brackets and may hold anything: fields are counted behind it.
    fields = stat.rpartition(")")[2].split()
    ended = fields[0] in "ZX"
    return None if ended else f"{boot[:8]}:{fields[19]}"


def _other_start(pid: int) -> str | None:
    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else f"{process.create_time():.3f}"
    except psutil.Error:
        return None


def identify(pid: int) -> Identity | None:
    """The running process of that number; None when there is none, or only its zombie."""
    started = _linux_start(pid) if sys.platform == "linux" else _other_start(pid)
    return None if started is None else Identity(pid, started)


def alive(process: Identity) -> bool:
    """True while exactly this process runs."""
    return identify(process.pid) == process


# ---------------------------------------------------------------- files


def why(error: OSError, path: Path) -> Unusable:
    """What the system's error means for somebody who wants to use `path`."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Unusable(f"the disk is full: free some space, then again ({path})")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return Unusable(f"{path} cannot be written: give it to this user, or name another folder with --state DIR")
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return Unusable(f"{path} is in the way, or below something that is no folder: name another with --state DIR")
    return Unusable(f"{path}: {error.strerror or error}; name another folder with --state DIR")


def _beside(path: Path, data: bytes) -> Path:
    """A new private file next to `path`, on disk in full."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    return beside


def write_private(path: Path, data: bytes) -> None:
    """Replace `path` by a file of its owner alone; readers see the old one or the new one, never a half. Raises Unusable."""
    try:
        _beside(path, data).replace(path)
    except OSError as error:
        raise why(error, path) from error


def create_private(path: Path, data: bytes) -> bytes:
    """What `path` holds; `data` when nobody had written it. Of two who create it at once one wins, and both get its content."""
    try:
        if not path.exists():
            beside = _beside(path, data)
            try:
                os.link(beside, path)
            except FileExistsError:
                pass  # the other one won
            finally:
                beside.unlink()
        return path.read_bytes()
    except OSError as error:
        raise why(error, path) from error


def make_folder(state: Path) -> None:
    """The state folder itself; one that is there stays as it is. Raises Unusable."""
    try:
        state.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)
    except OSError as error:
        raise why(error, state) from error


def create(state: Path, made_before: Path | None = None) -> str:
    """Make what is missing of an instance's own secrets; returns its id. Raises Unusable.

    `made_before` is a folder with the same files, used where the instance's own are missing.
    """
    make_folder(state)
    try:
        if state.stat().st_mode & 0o077:
            state.chmod(FOLDER_MODE)
    except OSError as error:
        raise why(error, state) from error
    instance = _once(state, ID, secrets.token_hex(6), made_before)
    for name in BEARERS:
        _once(state, name, f"{instance}.{_secret()}", made_before)
    _once(state, HASH_KEY, _secret(), made_before)
    return instance


def create_server_credentials(state: Path, names: Iterable[str], made_before: Path | None = None) -> None:
    """Make the missing ones of the credentials of servers that we configure. Raises Unusable."""
    for name in names:
        user = "route" if name == NATS_ROUTE_CREDENTIAL else NATS_USERS.get(name)
        _once(state, name, f"{user}:{_secret()}" if user else _secret(), made_before)


def drop_server_credentials(state: Path, names: Iterable[str]) -> None:
    """Forget credentials of servers that are somebody else's now: clients would show them there. Raises Unusable."""
    for name in names:
        try:
            (state / name).unlink(missing_ok=True)
        except OSError as error:
            raise why(error, state / name) from error


def _secret() -> str:
    return secrets.token_urlsafe(SECRET_BYTES)


def _once(state: Path, name: str, fresh: str, made_before: Path | None) -> str:
    earlier = credential(made_before, name) if made_before else None
    return create_private(state / name, f"{earlier or fresh}\n".encode()).decode().strip()


def credential(state: Path, name: str) -> str | None:
    """The content of a credential file; None when the instance has none or this user may not read it."""
    try:
        return (state / name).read_text().strip() or None
    except OSError:
        return None


def _decoded(path: Path, kind: Any) -> Any:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError):
        return None


def endpoint(state: Path) -> Endpoint | None:
    """What the endpoint file says, whether or not it still runs; None when it is missing or damaged."""
    found: Endpoint | None = _decoded(state / ENDPOINT, Endpoint)
    return found


def write_endpoint(state: Path, reached: Endpoint) -> None:
    """Say where the instance is reached."""
    write_private(state / ENDPOINT, msgspec.json.format(msgspec.json.encode(reached)) + b"\n")


def children(state: Path) -> list[Child]:
    """The processes that the last supervisor of this folder started, and their restarts."""
    found: list[Child] | None = _decoded(state / PROCESSES, list[Child])
    return found or []


def write_children(state: Path, started: Iterable[Child]) -> None:
    """Record what was started, for doctor and for whoever comes after a crash."""
    write_private(state / PROCESSES, msgspec.json.format(msgspec.json.encode(list(started))) + b"\n")


def ports(state: Path) -> dict[str, int]:
    """The ports that were free the last time, by server."""
    found: dict[str, int] | None = _decoded(state / PORTS, dict[str, int])
    return found or {}


def write_ports(state: Path, chosen: dict[str, int]) -> None:
    """Remember the ports, so that addresses stay the same from one start to the next."""
    write_private(state / PORTS, json.dumps(chosen, indent=2).encode() + b"\n")


# ---------------------------------------------------------------- lock


def take_lock(state: Path) -> int | None:
    """The descriptor that holds the folder, or None when somebody has it. Raises Unusable.

    The lock belongs to the open file: children that inherit the descriptor keep it, also after the one who took it is
    dead. The file names who took it.
    """
    try:
        handle = os.open(state / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    except OSError as error:
        raise why(error, state / LOCK) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    except OSError as error:
        os.close(handle)
        raise Unusable(f"{state} is on a file system without locks: name another folder with --state DIR") from error
    try:
        mine = msgspec.json.encode(identify(os.getpid()))
        os.ftruncate(handle, 0)
        os.pwrite(handle, mine, 0)
    except OSError as error:
        os.close(handle)
        raise why(error, state / LOCK) from error
    return handle


def holder(state: Path) -> Identity | None:
    """The supervisor that took the lock, if it still runs. The lock may be held without it: by its servers."""
    took: Identity | None = _decoded(state / LOCK, Identity)
    return took if took is not None and alive(took) else None


def held(state: Path) -> bool:
    """True when a supervisor or one of its servers has the folder."""
    try:
        handle = os.open(state / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


# ---------------------------------------------------------------- for the verbs


def restart_with(reached: Endpoint) -> str:
    """The command that puts the installed version in place of the running one."""
    if reached.keeper == Keeper.COMPOSE:
        return "docker compose up -d --build"
    return f"tocsin down && tocsin {reached.keeper}"


def other_version(reached: Endpoint, version: str) -> str | None:
    """One line when the running instance is of another version than `version`, else None."""
    if reached.version == version:
        return None
    return f"the instance runs {reached.version}, this command is {version}: {restart_with(reached)}"


def reach(state: Path, version: str) -> Endpoint | Refusal:
    """The running instance, for a verb of `version`.

    Refuses: not_running, other_version (whose answers could be misread).
    """
    reached = endpoint(state)
    if reached is None or not reached.runs:
        return Refusal(Code.NOT_RUNNING, f"no Tocsin runs on {state}")
    wrong = other_version(reached, version)
    return Refusal(Code.OTHER_VERSION, wrong) if wrong else reached
