"""Taking part in another machine's instance: a login, perhaps a leaf of its bus, an intake for the hooks, eyes and hands."""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from socket import gethostname

import msgspec

from tocsin.agents.install.endpoint import write_endpoint
from tocsin.bus.bus import Bus, Unavailable
from tocsin.bus.nats_bus import connect
from tocsin.cli import embedded, invitation
from tocsin.cli.ailments import bus_ailment
from tocsin.cli.bring_up import AWAY, NotStarted, agents_report, missing, on_a_free_port, own_name, tell
from tocsin.cli.invitation import Invitation
from tocsin.cli.supervisor import Job, Supervisor
from tocsin.contract.ids import HostId, WorkspaceId
from tocsin.contract.messages import HostKnown
from tocsin.contract.subjects import HOST_KNOWN
from tocsin.pane_host.core.presence import holds, refusal
from tocsin.pane_host.presence import of_this_machine
from tocsin.runtime import instance
from tocsin.runtime.instance import Endpoint

HERE = ("hook-ingest", "pane-host")
"""What runs on a machine that has joined. All that decides runs with the instance."""

BUS_S_MAX = 20.0
"""Longest wait for the bus; a leaf has to find its hub first."""

PART_S_MAX = 30.0
"""Longest wait until this machine is heard; beyond it one line says so, and everything goes on."""

POLL_S = 0.1

AUTHORITY = "leaf-authority.pem"


def kept(state: Path, given: bytes | None, *, bus: str | None, host: str | None) -> Invitation:
    """The invitation `given`, else the one kept in `state`, with what is asked for; kept there from now on.

    Raises BadInvitation, NotStarted for a folder that is an instance of its own, Unusable, OSError.
    """
    if (state / "nats" / "store").exists():
        raise NotStarted(f"{state} is an instance of its own: join with another folder, --state DIR or TOCSIN_STATE")
    file = state / invitation.FILE
    found = invitation.read(file.read_bytes() if given is None else given)
    name = host or os.environ.get("TOCSIN_HOST") or found.host or gethostname()
    found = msgspec.structs.replace(found, bus=bus or found.bus, leaf=None if bus else found.leaf, host=name)
    instance.create(state)
    instance.write_private(file, msgspec.json.encode(found) + b"\n")
    return found


@dataclass(frozen=True)
class Joining:
    """One machine that takes part."""

    state: Path
    invitation: Invitation

    async def start(self, supervisor: Supervisor, call: Callable[[str], str]) -> None:
        """Bring up what runs here and say so. Raises NotStarted, StartFailed, Unusable."""
        began = time.monotonic()
        state, invited = self.state, self.invitation
        instance.write_private(state / instance.HASH_KEY, f"{invited.hash_key}\n".encode())
        if invited.login:
            instance.write_private(state / instance.NATS_CREDENTIAL, f"{invited.login}\n".encode())
        if invited.version != version("tocsin"):
            tell(f"warning: the instance was {invited.version} when it invited, this is {version('tocsin')}: keep both the same")
        ports = instance.ports(state)
        url = await self._leaf(supervisor, ports) if invited.leaf else invited.bus
        ailment = await bus_ailment(url, invited.login) if not invited.leaf else None
        if ailment:
            raise NotStarted(f"{ailment}. Is the instance up, and the way to it open?", AWAY)
        await self._see_name(url)
        ports["ingest"] = embedded.free_port(ports.get("ingest"), embedded.FIRST_PORTS["ingest"])
        reached = self._announce(url, ports)
        self._keep(supervisor, reached, ports)
        tell(f"Tocsin {reached.version} on {state} takes part as {reached.host}")
        tell(f"  bus    {embedded.without_login(invited.leaf or url)}")
        tell(f"  hooks  {reached.ingest_url}")
        if await self._is_heard(reached, ports):
            tell(f"This machine is in the list after {time.monotonic() - began:.1f} s: {call('ls')}")
        else:
            tell(f"it is not heard after {PART_S_MAX:.0f} s; what is wrong: {call('doctor')}")
        if state != instance.state_folder():
            tell(f"Agents report here when they are started with TOCSIN_STATE={state}")
        if not agents_report():
            tell(f"Next: {own_name()} hooks install")
        instance.write_endpoint(state, msgspec.structs.replace(reached, ready=True))

    async def _leaf(self, supervisor: Supervisor, ports: dict[str, int]) -> str:
        """A bus of this machine's own that hands on to the hub: its address. Raises NotStarted, StartFailed, Unusable."""
        program = embedded.nats_program()
        if program is None:
            raise NotStarted(missing("nats-server", embedded.NATS_VERSION_MIN, "--bus"))
        state, invited = self.state, self.invitation
        login = invited.login
        if login is None:
            raise NotStarted("the invitation holds no login for a leaf: invite from an instance that runs its own NATS")
        folder = state / "leaf"
        instance.make_folder(folder)
        if invited.authority:
            instance.write_private(folder / AUTHORITY, invited.authority.encode())

        def job(port: int) -> Job:
            text = embedded.leaf_config(
                name=f"tocsin-leaf-{instance.credential(state, instance.ID)}",
                listen=f"{embedded.LOOPBACK}:{port}",
                hub=invited.leaf or "",
                login=login,
                authority=str(folder / AUTHORITY) if invited.authority else None,
            )
            instance.write_private(folder / "nats.conf", text.encode())
            return Job("leaf", (str(program.path), "-c", str(folder / "nats.conf")), supervisor.log_of("leaf"), keeps_lock=True)

        async def ready(port: int) -> bool:
            # It keeps nothing itself, so it never has JetStream.
            return await embedded.ask_nats(port, login) is not embedded.Answer.NOTHING

        port = await on_a_free_port("nats", ports, supervisor, job, ready)
        return f"nats://{embedded.LOOPBACK}:{port}"

    async def _see_name(self, url: str) -> None:
        """Return when nobody else has this machine's name. Raises NotStarted."""
        about = self._about()
        try:
            async with asyncio.timeout(BUS_S_MAX), connect(url, name="join", state=self.state, makes_streams=False) as bus:
                other = await _until_answered(bus, about)
                mine = msgspec.structs.replace(about, at_ms=time.time_ns() // 1_000_000 - await bus.clock_ahead_ms())
        except (TimeoutError, Unavailable) as error:
            where = embedded.without_login(self.invitation.leaf or url)
            raise NotStarted(
                f"no instance of Tocsin answers by {where} within {BUS_S_MAX:.0f} s: is it up, and the way to it open?", AWAY
            ) from error
        if other is not None and holds(other, mine):
            raise NotStarted(refusal(other, mine))

    def _about(self) -> HostKnown:
        host = HostId(self.invitation.host or gethostname())
        return of_this_machine(host, WorkspaceId(self.invitation.workspace), self.state)

    def _announce(self, url: str, ports: dict[str, int]) -> Endpoint:
        """Say where this machine's hooks go and where its bus is. Raises Unusable."""
        place = f"{embedded.LOOPBACK}:{ports['ingest']}"
        instance.write_ports(self.state, ports)
        try:
            write_endpoint(self.state, f"http://{place}", instance.credential(self.state, instance.HOOK_CREDENTIAL) or "", place)
        except OSError as error:
            raise instance.why(error, self.state) from error
        reached = Endpoint(
            version=version("tocsin"), instance=instance.credential(self.state, instance.ID) or "", keeper=instance.Keeper.JOIN,
            nats_url=url, redis_url="", ingest_url=f"http://{place}", host=self._about().host, workspace=self.invitation.workspace,
            supervisor=instance.identify(os.getpid()), since_ms=time.time_ns() // 1_000_000,
        )  # fmt: skip
        instance.write_endpoint(self.state, reached)
        return reached

    def _keep(self, supervisor: Supervisor, reached: Endpoint, ports: dict[str, int]) -> None:
        common = {
            "NATS_URL": reached.nats_url, "TOCSIN_STATE": str(self.state), "TOCSIN_HOST": reached.host,
            "TOCSIN_WORKSPACE": reached.workspace, "TOCSIN_MAKES_STREAMS": "false", "TOCSIN_INGEST_PORT": str(ports["ingest"]),
        }  # fmt: skip
        for service in HERE:
            environment = common | {"TOCSIN_BEAT_FILE": str(self.state / "logs" / f"{service}.beat")}
            supervisor.keep(Job(service, (), supervisor.log_of(service), partial(dict, environment)))

    async def _is_heard(self, reached: Endpoint, ports: dict[str, int]) -> bool:
        """True as soon as the bus has this machine's word and hooks are taken; False when that takes too long."""
        credential = instance.credential(self.state, instance.COMMAND_CREDENTIAL) or ""
        machine = self._about().machine
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PART_S_MAX), connect(reached.nats_url, name="join", state=self.state, makes_streams=False) as bus:
                while True:
                    with contextlib.suppress(Unavailable):
                        last = await bus.last(HOST_KNOWN, reached.host)
                        is_ours = last is not None and last.body is not None and last.body.machine == machine and not last.body.left
                        if is_ours and await embedded.ask_ingest(ports["ingest"], credential) is embedded.Answer.READY:
                            return True
                    await asyncio.sleep(POLL_S)
        return False


async def _until_answered(bus: Bus, about: HostKnown) -> HostKnown | None:
    """The last word under this machine's name, as soon as the bus can tell."""
    while True:
        with contextlib.suppress(Unavailable):
            last = await bus.last(HOST_KNOWN, about.host)
            return last.body if last is not None else None
        await asyncio.sleep(POLL_S)
