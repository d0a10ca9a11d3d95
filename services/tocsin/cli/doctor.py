"""`tocsin doctor`: what is wrong here, and the remedy. Facts are gathered first; each check is a small pure function over them."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tocsin.cli.embedded import FREE_BYTES_MIN, without_login

if TYPE_CHECKING:
    from tocsin.runtime.instance import Child, Endpoint

SERVICES = ("status-store", "sorter", "hook-ingest", "dispatcher", "mailbox", "release-accountant", "pane-host", "console")

RESTARTS_MAX = 3
"""More restarts than a machine that went to sleep or a store that was restarted would explain."""

UNSET_STORE = "/tmp/nats/"  # noqa: S108
"""Where nats-server stores when nobody tells it where."""

HOST_SILENT_S = 35
"""A host says every 10 s that it is there; three such words missed, and a little for the way."""

AHEAD_S_MAX = 5.0
"""A clock that is kept by the network is never so far off; ours may be measured over a slow link."""

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost", ""})


class Level(StrEnum):
    """How a finding counts. Only `wrong` makes the exit code 1."""

    OK = "ok"
    NOTE = "note"
    WRONG = "wrong"


@dataclass(frozen=True)
class Finding:
    """One line for a person, and what to do."""

    check: str
    level: Level
    says: str
    remedy: str | None = None


@dataclass(frozen=True)
class Server:
    """The bus or the store. None: it was not possible to learn that."""

    answers: bool = False
    open_to_all: bool | None = None  # it serves who shows no credential
    version: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    ailment: str | None = None  # why it cannot be used, with the remedy


@dataclass(frozen=True)
class Agent:
    """One coding agent on this machine."""

    label: str
    found: bool
    installed: bool
    trusted: bool | None = None  # None: this agent asks for no trust


@dataclass(frozen=True)
class Host:
    """A machine that has said that it takes part."""

    name: str
    label: str  # what it calls itself, and where its folder is
    silent_s: int
    ahead_s: float = 0.0  # how far its clock is ahead of the bus'
    is_this: bool = False
    left: bool = False


@dataclass(frozen=True)
class Facts:
    """What was looked at. Nothing in it is a judgement."""

    state: str
    version: str
    endpoint: "Endpoint | None" = None
    runs: bool = False  # its supervisor is alive, or containers keep it
    held: bool = False
    children: "tuple[Child, ...]" = ()
    lost: str | None = None  # why the state folder would not last
    free_bytes: int | None = None  # where the state folder lies
    bus: Server = Server()
    clients: tuple[str, ...] | None = None  # names of who is connected to the bus; None: it does not tell
    poison: int | None = None
    store: Server = Server()
    health: int | None = None  # HTTP status of hook-ingest; None: no answer
    hooks_reach: str | None = None  # the address that hook commands report to
    hook_command: bool = False  # installed in this version
    agents: tuple[Agent, ...] = ()
    doubles: tuple[str, ...] = ()
    spool_waiting: int = 0
    spool_lost: int = 0
    blind: tuple[str, ...] = ()  # what pane-host cannot see
    notify: Mapping[str, Any] | None = None  # what the console says of how the person is told; None: it does not answer
    notices: str | None = None  # how the pane-host of this machine shows notices; None: it does not
    notices_failed: str | None = None  # why it did not show the last one
    hosts: tuple[Host, ...] | None = None  # None: the bus does not tell
    jetstream: str | None = None  # what the bus says of a store that it has given up
    port_taken: bool = False  # another program listens where hooks should be taken
    docker: str | None = None  # why containers cannot be kept; asked where they are to be


# -------------------------------------------------------------- checks


def docker_check(facts: Facts) -> Iterator[Finding]:
    """Can containers be kept, where they are to be?"""
    if facts.docker is not None:
        yield Finding("docker", Level.WRONG, facts.docker, "then: docker compose up -d --build --wait")


def instance_check(facts: Facts) -> Iterator[Finding]:
    """Does one run here, and of which version?"""
    if facts.endpoint is None or not facts.runs:
        held = "an earlier run's servers still hold it" if facts.held else "nothing runs on it"
        yield Finding("instance", Level.WRONG, f"{facts.state}: {held}", "tocsin down && tocsin up" if facts.held else "tocsin up")
        return
    from tocsin.runtime import instance

    other = instance.other_version(facts.endpoint, facts.version)
    if other:
        yield Finding("instance", Level.WRONG, f"{facts.state}: {other}", instance.restart_with(facts.endpoint))
    else:
        yield Finding("instance", Level.OK, f"{facts.state}: {facts.endpoint.version}, kept by {facts.endpoint.keeper}")


def bus_check(facts: Facts) -> Iterator[Finding]:
    """Does the bus answer, and does it keep what it has acknowledged?"""
    if facts.endpoint is None:
        return
    if not facts.bus.answers:
        says = facts.bus.ailment or f"{without_login(facts.endpoint.nats_url)} does not answer, or not to our credential"
        yield Finding("bus", Level.WRONG, says, _start(facts))
        return
    if facts.jetstream is not None:
        says = f"it takes and keeps nothing: {facts.jetstream}"
        yield Finding("bus", Level.WRONG, says, "make room on the disk of its store, then start it again")
    known = facts.bus.settings
    if not known and facts.endpoint.keeper == "join":
        yield Finding("bus", Level.OK, f"{without_login(facts.endpoint.nats_url)} answers; how it stores, its own machine's doctor tells")
        return
    if not known:
        says = f"{without_login(facts.endpoint.nats_url)} answers; it does not tell how it stores"
        yield Finding("bus", Level.NOTE, says, "see that its store_dir is on a lasting disk, with sync_interval: always")
        return
    store = known.get("store_dir")
    if store is None:
        yield Finding("bus", Level.WRONG, "JetStream is off: nothing is kept", "start nats-server with JetStream")
    elif store.startswith(UNSET_STORE):
        yield Finding("bus", Level.WRONG, f"its store {store} is a temporary folder: a new container or start loses it", "give it a volume")
    if not known.get("sync_always"):
        says = "an acknowledged message may be lost with the power for two minutes"
        yield Finding("bus", Level.WRONG, says, "set sync_interval: always in its jetstream block")
    if store is not None and known.get("sync_always"):
        yield Finding("bus", Level.OK, f"nats-server {facts.bus.version}, every acknowledged message is on disk")


def lasting_check(facts: Facts) -> Iterator[Finding]:
    """Is what the embedded servers write on a disk that outlasts a restart, and is there room on it?"""
    if facts.lost is not None:
        yield Finding("storage", Level.WRONG, facts.lost, "put the state folder on a disk: --state DIR or TOCSIN_STATE")
    if facts.free_bytes is not None and facts.free_bytes < FREE_BYTES_MIN:
        says = f"{facts.free_bytes // 2**20} MiB are free at {facts.state}: when it is full, hooks spool and the bus takes nothing"
        yield Finding("storage", Level.WRONG, says, "make room there")


def store_check(facts: Facts) -> Iterator[Finding]:
    """Does the store answer, and does it keep what it was given?"""
    if facts.endpoint is None or not facts.endpoint.redis_url:
        return
    if not facts.store.answers or facts.store.ailment is not None:
        says = facts.store.ailment or f"{without_login(facts.endpoint.redis_url)} does not answer, or not to our credential"
        yield Finding("store", Level.WRONG, says, "it then goes on by itself" if facts.store.answers else _start(facts))
        return
    known = facts.store.settings
    if not known:
        says = f"{without_login(facts.endpoint.redis_url)} answers; it does not tell its settings"
        yield Finding("store", Level.NOTE, says, "see that it evicts nothing and appends to a file")
        return
    wrong: list[tuple[str, str]] = []
    if known.get("maxmemory-policy") != "noeviction":
        wrong.append(("it drops keys when memory is short", "set maxmemory-policy noeviction"))
    if known.get("appendonly") != "yes":
        wrong.append(("a restart empties it, and the list begins from what the bus still has", "set appendonly yes"))
    for says, remedy in wrong:
        yield Finding("store", Level.WRONG, says, remedy)
    if not wrong:
        yield Finding("store", Level.OK, f"version {facts.store.version}, evicts nothing, appends to a file")


def links_check(facts: Facts) -> Iterator[Finding]:
    """Who could listen in or speak?"""
    if facts.endpoint is None:
        return
    for name, url, server in (("bus", facts.endpoint.nats_url, facts.bus), ("store", facts.endpoint.redis_url, facts.store)):
        if not server.answers:
            continue
        parts = urlsplit(url)
        near = parts.scheme == "unix" or (parts.hostname or "") in LOOPBACK
        secret = parts.scheme in ("tls", "rediss", "unix")
        where = "on this machine alone" if near else "encrypted" if secret else "over the network, not encrypted"
        if server.open_to_all:
            yield Finding(
                "links", Level.WRONG, f"{name}: anybody who reaches it may read and write, {where}", "give it users and passwords"
            )
        elif not near and not secret:
            yield Finding(
                "links", Level.WRONG, f"{name}: needs a credential, but {where}", f"use {'tls' if name == 'bus' else 'rediss'}://"
            )
        else:
            yield Finding("links", Level.OK, f"{name}: needs a credential, {where}")
    if facts.health is not None:
        yield Finding("links", Level.OK, "hook-ingest: needs a credential, checks Host and Origin, on this machine alone")


def services_check(facts: Facts) -> Iterator[Finding]:
    """Is every service at work, and does it stay so?"""
    if facts.endpoint is None or not facts.runs:
        return
    for child in facts.children:
        if child.process is None:
            yield Finding("services", Level.WRONG, f"{child.name} is down: {child.last_exit}", _log(facts, child.name))
        elif child.restarts > RESTARTS_MAX:
            says = f"{child.name} was restarted {child.restarts} times, last after {child.last_exit}"
            yield Finding("services", Level.WRONG, says, _log(facts, child.name))
    if facts.clients is None:
        if facts.bus.answers and facts.endpoint.keeper != "join":
            yield Finding("services", Level.NOTE, "the bus does not tell who is connected to it")
        return
    away = [name for name in SERVICES if name not in facts.clients]
    for name in away:
        remedy = _log(facts, name) if facts.endpoint.keeper == "up" or name != "pane-host" else f"tocsin pane-host --state {facts.state}"
        yield Finding("services", Level.WRONG, f"{name} is not connected to the bus", remedy)
    if not away:
        yield Finding("services", Level.OK, ", ".join(SERVICES))


def hooks_check(facts: Facts) -> Iterator[Finding]:
    """Do the agents report, once each, and to this instance?"""
    here = [agent for agent in facts.agents if agent.found]
    installed = [agent for agent in here if agent.installed]
    for agent in here:
        if not agent.installed:
            yield Finding("hooks", Level.WRONG, f"{agent.label} does not report here", "tocsin hooks install")
        elif agent.trusted is False:
            yield Finding("hooks", Level.WRONG, f"{agent.label} has not been told to trust its hooks", "start it once and trust them")
    if installed and not facts.hook_command:
        yield Finding("hooks", Level.WRONG, "the hook command is missing or of another version", "tocsin hooks install")
    for double in facts.doubles:
        yield Finding("hooks", Level.WRONG, double, "take one of the two out")
    if facts.endpoint is not None and facts.hooks_reach != facts.endpoint.ingest_url:
        says = f"hooks report to {facts.hooks_reach or 'nowhere'}, the instance listens on {facts.endpoint.ingest_url}"
        yield Finding("hooks", Level.WRONG, says, "tocsin down && tocsin up")
    if facts.endpoint is not None and facts.runs and (facts.health != 200 or facts.port_taken):
        if facts.port_taken:
            says = f"another program listens at {facts.endpoint.ingest_url}, where hooks should be taken"
            yield Finding("hooks", Level.WRONG, says, f"end it, or choose another port (TOCSIN_INGEST_PORT); then: {_start(facts)}")
        else:
            how = "does not answer" if facts.health is None else f"answers {facts.health}"
            yield Finding("hooks", Level.WRONG, f"hook-ingest at {facts.endpoint.ingest_url} {how}", _log(facts, "hook-ingest"))
    if installed and facts.hook_command and not facts.doubles and all(agent.installed and agent.trusted is not False for agent in here):
        yield Finding("hooks", Level.OK, ", ".join(agent.label for agent in installed))
    if not here:
        yield Finding("hooks", Level.NOTE, "no coding agent was found on this machine")


def hosts_check(facts: Facts) -> Iterator[Finding]:
    """Which machines take part, is each heard, alone under its name, and on time?"""
    well: list[str] = []
    for host in facts.hosts or ():
        if host.left:
            continue
        found = list(_host_check(facts, host))
        yield from found
        if not found:
            well.append(host.name)
    if well:
        yield Finding("hosts", Level.OK, ", ".join(well))


def _host_check(facts: Facts, host: Host) -> Iterator[Finding]:
    if facts.endpoint is not None and host.name == facts.endpoint.host and not host.is_this:
        says = f"the host name {host.name} is another machine's too: {host.label}, heard {host.silent_s} s ago"
        yield Finding("hosts", Level.WRONG, says, "give this machine a name of its own: TOCSIN_HOST=NAME, and start it again")
    elif host.silent_s >= HOST_SILENT_S:
        says = f"no contact with {host.name} ({host.label}) for {host.silent_s} s: what is shown of it is the last that was heard"
        yield Finding("hosts", Level.WRONG, says, f"see its network, and run tocsin doctor on {host.name}")
    if abs(host.ahead_s) >= AHEAD_S_MAX:
        how = "ahead of" if host.ahead_s > 0 else "behind"
        says = f"the clock of {host.name} is {abs(host.ahead_s):.0f} s {how} the bus'; what it says is corrected by that"
        yield Finding("hosts", Level.WRONG, says, f"set it by the network on {host.name} (Linux: timedatectl set-ntp true)")


def spool_check(facts: Facts) -> Iterator[Finding]:
    """Does anything wait to be delivered, or was anything dropped?"""
    if facts.spool_waiting:
        says = f"{facts.spool_waiting} events wait for pane-host to deliver them"
        yield Finding("spool", Level.NOTE, says, None if facts.runs else _start(facts))
    if facts.spool_lost:
        yield Finding("spool", Level.WRONG, f"{facts.spool_lost} events were dropped while nobody took them", "keep tocsin up running")


def poison_check(facts: Facts) -> Iterator[Finding]:
    """Is there anything that no service could handle?"""
    if facts.poison:
        says = f"{facts.poison} messages could not be handled and were put aside"
        yield Finding("poison", Level.WRONG, says, "look at the subject dead.> on the bus; they go after 7 days")


def sight_check(facts: Facts) -> Iterator[Finding]:
    """What can pane-host not see?"""
    for line in facts.blind:
        yield Finding("sight", Level.NOTE, line)


def notify_check(facts: Facts) -> Iterator[Finding]:
    """Is the person told of what needs them, and did the last notice arrive?"""
    if facts.endpoint is None or not facts.runs:
        return
    if facts.notices_failed is not None:
        says = f"the last notice was not shown on this machine: {facts.notices_failed}"
        yield Finding("notify", Level.WRONG, says, "tocsin notify --test")
    webhook = facts.notify and facts.notify["webhook"]
    if webhook and webhook["failed_last"]:
        yield Finding("notify", Level.WRONG, f"the last notice to the webhook failed: {webhook['error']}", "tocsin notify --test")
    if webhook and webhook["is_open"]:
        yield Finding("notify", Level.NOTE, f"what is sent to {webhook['host']} can be read on its way", "an address with https://")
    ways = [*(["webhook"] if webhook else []), *([f"{facts.notices} of this machine"] if facts.notices else [])]
    if not ways and facts.notify is None and facts.endpoint.console_url is None:
        yield Finding(
            "notify", Level.NOTE, "this machine shows no notices; what tells you elsewhere is not known here", "TOCSIN_NOTIFY_DESKTOP=1"
        )
    elif not ways and facts.notify is None:
        yield Finding("notify", Level.NOTE, "how you are told is not known: the console does not answer", "tocsin notify")
    elif not ways:
        says = "nobody is told of what needs them but by a page that is open"
        yield Finding("notify", Level.NOTE, says, "TOCSIN_NOTIFY_DESKTOP=1 or TOCSIN_NOTIFY_URL, before tocsin up")
    elif not facts.notices_failed and not (webhook and webhook["failed_last"]):
        yield Finding("notify", Level.OK, ", ".join(ways))


CHECKS: tuple[Callable[[Facts], Iterator[Finding]], ...] = (
    docker_check,
    instance_check,
    bus_check,
    store_check,
    lasting_check,
    links_check,
    services_check,
    hosts_check,
    hooks_check,
    spool_check,
    poison_check,
    sight_check,
    notify_check,
)


def examine(facts: Facts) -> list[Finding]:
    """Every finding, in the order in which one would look."""
    return [finding for check in CHECKS for finding in check(facts)]


def _start(facts: Facts) -> str:
    if facts.endpoint is None or facts.endpoint.keeper == "up":
        return "tocsin up"
    return "docker compose up -d" if facts.endpoint.keeper == "compose" else "tocsin join"


def _log(facts: Facts, service: str) -> str:
    in_containers = facts.endpoint is not None and facts.endpoint.keeper == "compose"
    return f"docker compose logs {service}" if in_containers else f"see {facts.state}/logs/{service}.log"


# ---------------------------------------------------------------- verb


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which instance, and how it is printed."""
    parser.add_argument("--state", type=Path, metavar="DIR", help="the instance's folder (TOCSIN_STATE)")
    parser.add_argument("--json", action="store_true", help="machine-readable output")


def run(args: argparse.Namespace) -> int:
    """Look and say. Exit codes: 0 nothing is wrong, 1 something is."""
    if sys.platform == "win32":
        print("tocsin: it runs on Linux, on macOS and in WSL2, not on Windows itself", file=sys.stderr)
        return 3
    import asyncio

    from tocsin.cli.look_around import gather
    from tocsin.runtime.instance import state_folder

    facts = asyncio.run(gather(state_folder(args.state), version("tocsin")))
    findings = examine(facts)
    if args.json:
        print(json.dumps({"version": facts.version, "state": facts.state, "findings": [asdict(finding) for finding in findings]}))
    else:
        for finding in findings:
            print(f"{finding.level:5} {finding.check}: {finding.says}")
            if finding.remedy:
                print(f"      remedy: {finding.remedy}")
    return 1 if any(finding.level is Level.WRONG for finding in findings) else 0
