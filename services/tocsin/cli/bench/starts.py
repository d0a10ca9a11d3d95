"""What a person or an agent waits for: the hook command, `tocsin ls`, `tocsin up` until its first list."""

import json
import os
import sys
import time
from pathlib import Path

from tocsin.cli.bench.measure import Effort, Series, Take, in_turn
from tocsin.cli.bench.own import CLI, Own
from tocsin.cli.bench.rows import Row, Unit
from tocsin.cli.bench.site import NotMeasured

EACH, WARM_UP = 10, 4
AGENTS = 20
"""Agents in the list that `ls` shows."""

TOOL_ENDED = {
    "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_use_id": "t1", "tool_input": {"command": "ls"},
    "tool_response": {"stdout": "README.md", "stderr": "", "interrupted": False},
}  # fmt: skip
"""What an agent tells most often."""

TURN_ENDED = {"hook_event_name": "Stop", "background_tasks": []}

FOUND_BESIDE = Path(sys.executable).with_name("tocsin")


def spawned(words: tuple[str, ...], environment: dict[str, str], given: bytes) -> tuple[int, int]:
    """Nanoseconds from the start of a program to its end, and its exit code. `given`: its whole input, less than 64 KiB."""
    read, write = os.pipe()
    os.write(write, given)
    os.close(write)
    silent = os.open(os.devnull, os.O_WRONLY)
    actions = [(os.POSIX_SPAWN_DUP2, read, 0), (os.POSIX_SPAWN_DUP2, silent, 1)]
    began_ns = time.perf_counter_ns()
    pid = os.posix_spawnp(words[0], words, environment, file_actions=actions)
    _, status = os.waitpid(pid, 0)
    taken_ns = time.perf_counter_ns() - began_ns
    os.close(read)
    os.close(silent)
    return taken_ns, os.waitstatus_to_exitcode(status)


def command(words: tuple[str, ...], environment: dict[str, str], given: bytes = b"") -> Take:
    """Run a program to its end: nanoseconds on the wall. What it says is thrown away. Raises NotMeasured when it fails."""

    async def take() -> int:
        taken_ns, code = spawned(words, environment, given)
        if code != 0:
            raise NotMeasured(f"{' '.join(words)} ended with {code}")
        return taken_ns

    return take


def tocsin(*words: str) -> tuple[str, ...]:
    """The installed command where there is one."""
    return (str(FOUND_BESIDE), *words) if FOUND_BESIDE.exists() else (*CLI, *words)


async def measure_up(own: Own, effort: Effort) -> list[Row]:
    """How long an instance that was up before takes to its first list."""
    with own.up():
        pass  # it makes its folder, and the programs are in the machine's memory from here on
    found = Series()
    for _ in range(effort.rounds):
        with own.up() as took_s:
            found.rounds.append([took_s * 1e9])
    return [Row("up", "tocsin up to first list, warm", found, "", None, 3, 1.5, unit=Unit.S)]


async def measure_commands(own: Own, effort: Effort) -> list[Row]:
    """Commands against an instance that is up."""
    hook = own.hook_command()

    def told(agent: int, **event: object) -> Take:
        payload = {"session_id": f"s{agent}", "cwd": str(own.folder), **event}
        return command(hook, own.environment | {"TOCSIN_PANE": f"p{agent}"}, json.dumps(payload).encode())

    for agent in range(effort.of(AGENTS)):
        await told(agent, **TURN_ENDED)()
    cases = {
        "hook": told(1, **TOOL_ENDED),
        "end": told(1, **TURN_ENDED),
        "sh": command(("sh", "-c", ":"), own.environment),
        "ls": command(tocsin("ls"), own.environment),
        "python": command((sys.executable, "-c", "import asyncio"), own.environment),
    }
    found = await in_turn(cases, effort.of(EACH), effort.of(WARM_UP), effort.rounds)
    return [
        Row("hook-command", "installed hook command, at a tool call, wall", found["hook"], "sh -c :", found["sh"], 12, 5, unit=Unit.MS),
        Row(
            "hook-command-end", "the same at the end of a turn, with its look for mail", found["end"], "sh -c :", found["sh"], unit=Unit.MS
        ),
        Row("ls", "tocsin ls, cold start, wall", found["ls"], "python -c 'import asyncio'", found["python"], 4, 3, unit=Unit.MS),
    ]
