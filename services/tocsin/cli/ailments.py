"""What is wrong with a server at an address, in one line with the remedy: asked of NATS and Valkey before anything relies on them."""

import asyncio
import contextlib
import json
import subprocess
from urllib.parse import urlsplit

import nats
import redis.asyncio as redis
from nats.errors import Error as NatsError

from tocsin.cli.embedded import NATS_VERSION_MIN, VALKEY_VERSION_MIN, version_in, without_login

ANSWER_S_MAX = 3.0

DOCKER_VERSION_MIN = (25,)
"""The first engine that starts health checks quickly (`start_interval`)."""

COMPOSE_VERSION_MIN = (2, 20, 2)
"""The first compose that knows of that."""

DOCKER_S_MAX = 10.0


def _words(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


# ---------------------------------------------------------------- bus


async def bus_ailment(url: str, login: str | None) -> str | None:
    """Why the bus at `url` cannot be used with `login` (`user:password`; None: what the address holds); None when it can."""
    place, parts = without_login(url), urlsplit(url)
    encrypted = parts.scheme in ("tls", "wss")
    if not encrypted:
        hello = await _hello(parts.hostname or "localhost", parts.port or 4222)
        if isinstance(hello, str):
            return f"{place} {hello}"
        version = version_in(f"v{hello.get('version')}")
        if version is not None and version < NATS_VERSION_MIN:
            return f"{place} is nats-server {_words(version)}: {_words(NATS_VERSION_MIN)} or newer is needed"
        if not hello.get("jetstream"):
            return f"{place} is a nats-server without JetStream, which keeps nothing: start it with -js and a store_dir"
    return await _login_ailment(url, place, login)


async def _hello(host: str, port: int) -> dict[str, object] | str:
    """What a NATS says of itself before anybody logs in, or what is there instead."""
    try:
        async with asyncio.timeout(ANSWER_S_MAX):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                said = await reader.readline()
            finally:
                writer.close()
    except TimeoutError:
        return "takes a connection and says nothing: another program has the port, or the network drops what is sent"
    except OSError as error:
        return f"cannot be reached ({(error.strerror or str(error)).lower()}): nothing listens there"
    if not said.startswith(b"INFO "):
        return "is no nats-server: another program has the port"
    try:
        told: dict[str, object] = json.loads(said[5:])
    except ValueError:
        return "is no nats-server: another program has the port"
    return told


async def _login_ailment(url: str, place: str, login: str | None) -> str | None:
    reproaches: list[str] = []

    async def reproach(error: Exception) -> None:
        reproaches.append(str(error) or type(error).__name__)

    user, _, password = (login or "").partition(":")
    shown = {"user": user, "password": password} if login and urlsplit(url).username is None else {}
    try:
        async with asyncio.timeout(ANSWER_S_MAX):
            client = await nats.connect(url, allow_reconnect=False, error_cb=reproach, connect_timeout=int(ANSWER_S_MAX), **shown)
    except (OSError, TimeoutError, NatsError, ValueError) as error:
        reproaches.append(str(error))
    else:
        with contextlib.suppress(NatsError):
            await client.close()
        return None
    said = "; ".join(dict.fromkeys(filter(None, reproaches))) or "no answer"
    if "authorization" in said.lower():
        shows = "no credential" if not login and urlsplit(url).username is None else "our credential"
        return f"{place} refuses {shows}: give user and password in the address (nats://USER:PASSWORD@...)"
    return f"{place} cannot be used: {said}"


# -------------------------------------------------------------- store


async def store_ailment(url: str, password: str | None) -> str | None:
    """Why the store at `url` cannot be used with `password` (None: what the address holds); None when it can."""
    place = without_login(url)
    shown = password if urlsplit(url).password is None else None
    # The older protocol: a store that is too old does not know the newer one, and is to tell its version.
    client = redis.Redis.from_url(url, password=shown, protocol=2, socket_timeout=ANSWER_S_MAX, socket_connect_timeout=ANSWER_S_MAX)
    try:
        told = await client.info()
        version = version_in(f"v{told.get('valkey_version') or told.get('redis_version')}")
        if version is not None and version < VALKEY_VERSION_MIN:
            return f"{place} is of version {_words(version)}: {_words(VALKEY_VERSION_MIN)} or newer is needed"
        if told.get("aof_last_write_status", "ok") != "ok":
            return f"{place} cannot write to its disk: make room where it stores, or give it a folder that it may write"
    except redis.BusyLoadingError:
        return None
    except redis.InvalidResponse:
        return f"{place} is no Valkey or Redis: another program has the port"
    except (redis.TimeoutError, TimeoutError):
        return f"{place} takes a connection and says nothing: another program has the port, or the network drops what is sent"
    except (redis.RedisError, OSError, ValueError) as error:
        if any(sign in str(error).lower() for sign in ("auth", "password")):
            return f"{place} refuses our password: give it in the address (redis://:PASSWORD@...)"
        if isinstance(error, redis.ResponseError):
            return f"{place} answers: {error}"
        return f"{place} cannot be reached ({str(error).rstrip('.')}): nothing usable listens there"
    finally:
        await client.aclose()
    return None


# ------------------------------------------------------------- docker


def docker_ailment() -> str | None:
    """Why containers cannot be kept on this machine; None when they can. Asks the docker command, which may take seconds."""
    engine = _asked("docker", "version", "--format", "{{.Server.Version}}")
    if engine is None:
        return "no docker command is on PATH: install Docker Engine with its compose plugin, or run without containers: tocsin up"
    code, said = engine
    if code != 0:
        return f"docker does not answer ({said}): start its daemon, or let this user ask it"
    version = version_in(f"v{said}")
    if version is not None and version < DOCKER_VERSION_MIN:
        return f"Docker Engine {_words(version)} is too old: {_words(DOCKER_VERSION_MIN)} or newer is needed"
    compose = _asked("docker", "compose", "version", "--short")
    if compose is None or compose[0] != 0:
        return "docker has no compose plugin (the old docker-compose cannot read our file): install docker-compose-plugin"
    version = version_in(f"v{compose[1].lstrip('v')}")
    if version is not None and version < COMPOSE_VERSION_MIN:
        return f"docker compose {_words(version)} is too old: {_words(COMPOSE_VERSION_MIN)} or newer is needed"
    return None


def _asked(*words: str) -> tuple[int, str] | None:
    """Exit code and last line of a command; None when there is no such command."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=DOCKER_S_MAX, check=False)
    except FileNotFoundError:
        return None
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, type(error).__name__
    lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
    return done.returncode, lines[-1] if lines else "it says nothing"
