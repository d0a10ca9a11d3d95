"""Gathers what `tocsin doctor` judges. It only looks: no stream, key or file is made, and every question has a time limit."""

import asyncio
import contextlib
import json
import os
import shutil
import time
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import nats
import redis.asyncio as redis
from nats.aio.client import Client
from nats.errors import Error as NatsError

from tocsin.agents.install import INSTALLERS, double_registrations
from tocsin.agents.install.endpoint import read_endpoint
from tocsin.agents.install.machine import HookCommand, Machine
from tocsin.agents.spool import FOLDER, LOST, PATTERN
from tocsin.bus.bus import Unavailable
from tocsin.bus.nats_bus import connect
from tocsin.cli import embedded
from tocsin.cli.ailments import bus_ailment, docker_ailment, store_ailment
from tocsin.cli.ask_console import ask_at
from tocsin.cli.doctor import Agent, Facts, Host, Server
from tocsin.contract.ids import HostId, WorkspaceId
from tocsin.contract.messages import HostKnown
from tocsin.contract.refusals import Refusal
from tocsin.contract.subjects import DEAD, HOST_KNOWN
from tocsin.pane_host.presence import of_this_machine
from tocsin.pane_host.sight import sight
from tocsin.runtime import instance
from tocsin.runtime.instance import Endpoint, Keeper

ANSWER_S_MAX = 2.0

COMPOSE_FOLDER = ".tocsin"
"""Where docker-compose.yml has the credentials put, beside itself."""

AWAY = (OSError, TimeoutError, NatsError, redis.RedisError, ValueError, KeyError)
"""What a server that is away, refuses us or says something else raises."""


async def gather(state: Path, version: str) -> Facts:
    """All facts of the instance in `state`, for a command of `version`."""
    reached = instance.endpoint(state)
    bus, clients, poison, jetstream, store, health, hosts = Server(), None, None, None, Server(), None, None
    if reached is not None:
        (bus, clients, poison, jetstream), store, health, hosts = await asyncio.gather(
            look_at_bus(reached.nats_url, state),
            look_at_store(reached.redis_url, state),
            ask_health(reached.ingest_url),
            look_at_hosts(reached, state),
        )
    machine = Machine(Path.home(), os.environ)
    hook = HookCommand(machine.home)
    hooks = read_endpoint(state)
    spool = state / FOLDER
    seen = await sight(state)
    current = False
    with contextlib.suppress(OSError):
        current = hook.is_current()
    return Facts(
        state=str(state),
        version=version,
        endpoint=reached,
        runs=reached is not None and reached.runs,
        held=instance.held(state),
        children=tuple(instance.children(state)),
        lost=embedded.volatile(str(state), embedded.read_mounts()) if reached and reached.keeper is Keeper.UP else None,
        free_bytes=free_bytes(state),
        bus=bus,
        clients=clients,
        poison=poison,
        store=store,
        health=health,
        hooks_reach=hooks.url if hooks else None,
        hook_command=current,
        agents=tuple(look_at_agents(machine, hook)),
        doubles=tuple(str(double) for double in double_registrations(machine.home, environ=machine.environ)),
        spool_waiting=len(list(spool.glob(PATTERN))),
        spool_lost=(spool / LOST).stat().st_size if (spool / LOST).exists() else 0,
        blind=tuple(seen.get("blind", ())),
        notify=await asyncio.to_thread(ask_how_told, reached, state),
        notices=seen.get("notices"),
        notices_failed=seen.get("notices_failed"),
        hosts=hosts,
        jetstream=jetstream,
        port_taken=reached is not None and await is_taken(reached, health, state),
        docker=await asyncio.to_thread(docker_ailment) if in_containers(reached, state) else None,
    )


def in_containers(reached: Endpoint | None, state: Path) -> bool:
    """Whether containers keep this instance, or are to: the folder lies where docker-compose.yml puts it."""
    if reached is not None:
        return reached.keeper is Keeper.COMPOSE
    return state.name == COMPOSE_FOLDER and (state.parent / "docker-compose.yml").exists()


def ask_how_told(reached: Endpoint | None, state: Path) -> dict[str, Any] | None:
    """What the console says of how the person is told; None without an answer."""
    if reached is None or reached.console_url is None:
        return None
    # The reader's credential reads the list alone.
    credential = instance.credential(state, instance.COMMAND_CREDENTIAL) or ""
    said = ask_at(reached.console_url, credential, "/api/notify", seconds_max=ANSWER_S_MAX)
    return None if isinstance(said, Refusal) else said


def free_bytes(state: Path) -> int | None:
    """How much room is left where the state folder lies; None when it is not there."""
    return shutil.disk_usage(state).free if state.exists() else None


def look_at_agents(machine: Machine, hook: HookCommand) -> list[Agent]:
    """Every coding agent that can be told to report."""
    return [
        Agent(
            installer.label,
            installer.is_here(machine),
            installed := installer.is_installed(machine, hook),
            codex_trusts(machine) if installed and installer.agent == "codex" else None,
        )
        for installer in INSTALLERS.values()
    ]


def codex_trusts(machine: Machine) -> bool:
    """Whether the user has reviewed hooks in Codex, which keeps a hash of what was trusted in its config.toml."""
    try:
        config = tomllib.loads((machine.folder("CODEX_HOME", ".codex") / "config.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    hooks = config.get("hooks")
    return isinstance(hooks, dict) and bool(hooks.get("state"))


# ----------------------------------------------------------------- bus


async def _connected(url: str, login: str | None) -> Client:
    async def quiet(_error: Exception) -> None:
        """A refusal is an answer here."""

    user, _, password = (login or "").partition(":")
    shown = {"user": user, "password": password} if login else {}
    return await nats.connect(url, allow_reconnect=False, error_cb=quiet, connect_timeout=ANSWER_S_MAX, **shown)


async def _asked(url: str, login: str | None, *subjects: str) -> list[Any] | None:
    """The answers to requests with one login; None when it may not ask, or nobody answers."""
    try:
        async with asyncio.timeout(2 * ANSWER_S_MAX):
            client = await _connected(url, login)
            try:
                return [json.loads((await client.request(subject, b"", timeout=ANSWER_S_MAX)).data) for subject in subjects]
            finally:
                await client.close()
    except AWAY:
        return None


async def _heard_of_all(url: str, login: str, subject: str, servers: int) -> list[Any]:
    """What each server of a cluster answers to one request; what does not come in time is missing."""
    heard: list[Any] = []
    with contextlib.suppress(*AWAY):
        async with asyncio.timeout(2 * ANSWER_S_MAX):
            client = await _connected(url, login)
            try:
                answers = await client.subscribe(inbox := client.new_inbox())
                await client.publish(subject, b"", reply=inbox)
                while len(heard) < servers:
                    heard.append(json.loads((await answers.next_msg(timeout=ANSWER_S_MAX)).data))
            finally:
                await client.close()
    return heard


async def look_at_bus(url: str, state: Path) -> tuple[Server, tuple[str, ...] | None, int | None, str | None]:
    """The bus, who is connected to it, how many messages were put aside, and why it keeps nothing, if it says so."""
    login = instance.credential(state, instance.NATS_CREDENTIAL)
    monitor = instance.credential(state, instance.NATS_MONITOR_CREDENTIAL)
    plain = embedded.without_login(url)
    ours, stranger, said, streams = await asyncio.gather(
        _asked(url, login),
        _asked(plain, None),
        _asked(plain, monitor, embedded.ASK_SETTINGS, embedded.ASK_CLIENTS) if monitor else _nothing(),
        _asked(url, login, f"$JS.API.STREAM.INFO.{DEAD.stream}"),
    )
    poison = streams[0].get("state", {}).get("messages") if streams else None
    given_up = streams[0].get("error", {}).get("description") if streams else None
    ailment = await bus_ailment(url, login) if ours is None else None
    if not said:
        return Server(answers=ours is not None, open_to_all=stranger is not None, ailment=ailment), None, poison, given_up
    settings, clients = said[0]["data"], said[1]["data"]["connections"]
    config = (settings.get("jetstream") or {}).get("config") or {}
    servers = len((settings.get("cluster") or {}).get("urls") or ())
    if servers > 1:  # each knows its own clients
        answers = await _heard_of_all(plain, monitor or "", embedded.ASK_CLIENTS, servers)
        clients = [client for one in answers for client in one["data"]["connections"]]
    told = {"store_dir": config.get("store_dir"), "sync_always": bool(config.get("sync_always"))}
    server = Server(ours is not None, stranger is not None, settings.get("version"), told, ailment)
    return server, tuple(client.get("name", "") for client in clients), poison, given_up


async def look_at_hosts(reached: Endpoint, state: Path) -> tuple[Host, ...] | None:
    """Every machine that has ever said that it takes part; None when the bus does not tell."""
    try:
        async with asyncio.timeout(3 * ANSWER_S_MAX), connect(reached.nats_url, name="doctor", state=state, makes_streams=False) as bus:
            now_ms = time.time_ns() // 1_000_000 - await bus.clock_ahead_ms()
            known: dict[str, HostKnown] = {}
            async with bus.follow(HOST_KNOWN) as reading:
                async for batch in reading:
                    known |= {heard.body.host: heard.body for heard in batch}
                    if not batch:
                        break
    except (*AWAY, Unavailable):
        return None
    machine = of_this_machine(HostId(reached.host), WorkspaceId(reached.workspace), state).machine
    return tuple(
        Host(
            name=one.host,
            label=one.label,
            silent_s=max(0, now_ms - one.at_ms) // 1000,
            ahead_s=one.clock_ahead_ms / 1000,
            is_this=one.machine == machine,
            left=one.left,
        )
        for one in known.values()
    )


async def _nothing() -> None:
    return None


# --------------------------------------------------------------- store


async def look_at_store(url: str, state: Path) -> Server:
    """The store and the settings that decide what it keeps. No address: this machine needs none."""
    if not url:
        return Server()
    password = instance.credential(state, instance.REDIS_CREDENTIAL)
    stranger = await _store_said(embedded.without_login(url), None)
    ours = await _store_said(url, password)
    ailment = await store_ailment(url, password)
    if ours is None:
        return Server(ailment=ailment)
    return Server(True, stranger is not None, ours[0], ours[1], ailment)


async def _store_said(url: str, password: str | None) -> tuple[str | None, dict[Any, Any]] | None:
    """Version and settings, as far as they are told; None when it does not answer to this password."""
    client = redis.Redis.from_url(url, password=password, socket_timeout=ANSWER_S_MAX, socket_connect_timeout=ANSWER_S_MAX)
    try:
        told = await client.info("server")
        version = told.get("valkey_version") or told.get("redis_version")
        try:
            return version, await client.config_get("maxmemory-policy", "appendonly")
        except redis.ResponseError:  # a rented store hides its settings
            return version, {}
    except AWAY:
        return None
    finally:
        await client.aclose()


# -------------------------------------------------------------- ingest


async def is_taken(reached: Endpoint, health: int | None, state: Path) -> bool:
    """True when something listens where hooks should be taken, and it is not our hook-ingest."""
    port = urlsplit(reached.ingest_url).port
    if health is None or port is None:
        return False
    said = await embedded.ask_ingest(port, instance.credential(state, instance.COMMAND_CREDENTIAL) or "")
    return said is embedded.Answer.FOREIGN


async def ask_health(url: str) -> int | None:
    """The HTTP status of hook-ingest's health; None without an answer."""
    parts = urlsplit(url)
    try:
        async with asyncio.timeout(ANSWER_S_MAX):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
            try:
                writer.write(f"GET /health HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n".encode())
                return int((await reader.readline()).split()[1])
            finally:
                writer.close()
    except (*AWAY, IndexError):
        return None
