"""What an instance costs while nothing happens: memory as the machine pays for it, and CPU time."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from tocsin.cli.bench.measure import Effort, Series
from tocsin.cli.bench.own import Own
from tocsin.cli.bench.rows import Row, Unit
from tocsin.cli.bench.site import NotMeasured, cpu_ns

SERVICES_WORTH = 8
IDLE_S, ROUNDS = 10.0, 3

CALM_S = 5.0
"""After the first list: what is done once has been done."""

BARE = "import nats, redis.asyncio, pydantic_settings; print('ready', flush=True); import sys; sys.stdin.read()"


@contextmanager
def bare_process() -> Iterator[int]:
    """A Python process that has imported what every service needs, and waits: its pid. Raises NotMeasured."""
    process = subprocess.Popen([sys.executable, "-P", "-c", BARE], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        if process.stdout.readline() != b"ready\n":
            raise NotMeasured("nats, redis and pydantic-settings cannot be imported")
        yield process.pid
    finally:
        process.kill()
        process.communicate()


def pss(pids: tuple[int, ...]) -> int:
    """Bytes of memory of these processes; what several share counts once. Where the system does not tell (macOS): what they have to themselves."""
    told = [psutil.Process(pid).memory_full_info() for pid in pids]
    return sum(getattr(one, "pss", one.uss) for one in told)


async def at_rest(own: Own, effort: Effort, rounds: int) -> tuple[Series, Series, Series]:
    """Memory of all Python processes of what is up, of a bare one, and their CPU time in IDLE_S, by round."""
    memory, bare, cpu = Series(), Series(), Series()
    pids, seconds = own.all_pids(), effort.of(100) * IDLE_S / 100
    await asyncio.sleep(effort.of(100) * CALM_S / 100)
    with bare_process() as other:
        for _ in range(min(rounds, effort.rounds)):
            before_ns = cpu_ns(pids)
            await asyncio.sleep(seconds)
            cpu.rounds.append([cpu_ns(pids) - before_ns])
            memory.rounds.append([pss(pids)])
            bare.rounds.append([pss((other,))])
    return memory, bare, cpu


async def measure(own: Own, effort: Effort) -> list[Row]:
    """The rows on an instance at rest."""
    with own.up():
        memory, bare, cpu = await at_rest(own, effort, ROUNDS)
    with own.up("--one-process"):
        one_memory, one_bare, one_cpu = await at_rest(own, effort, ROUNDS)
    base = "Python with nats, redis, settings"
    return [
        Row("idle-memory", "idle services and supervisor, PSS", memory, base, bare, SERVICES_WORTH, unit=Unit.MB),
        Row("idle-memory-one-process", "idle services in one process, PSS", one_memory, base, one_bare, SERVICES_WORTH, 2, unit=Unit.MB),
        Row("idle-cpu", f"idle CPU of all of them in {IDLE_S:.0f} s", cpu, "", None, 0.2, 0.05, unit=Unit.S),
        Row("idle-cpu-one-process", f"idle CPU in one process in {IDLE_S:.0f} s", one_cpu, "", None, 0.2, 0.05, unit=Unit.S),
    ]
