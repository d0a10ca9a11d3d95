"""Which coding agent runs in a terminal, told from the processes below it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

INTERPRETERS = ("node", "bun", "deno", "python", "pypy")
"""Programs whose first argument is the program that people mean."""

WORDS_MAX = 6
"""Words of a command line that are looked at: a script stands behind few options of its interpreter."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the process table. `foreground` is the process group that its terminal listens to."""

    pid: int
    parent: int
    group: int
    foreground: int
    has_terminal: bool


@dataclass(frozen=True, slots=True)
class Found:
    """An agent's process."""

    pid: int
    agent: str


def programs(words: Iterable[str]) -> list[str]:
    """What a command line may be known by: its program, and the script when an interpreter runs one. Names or paths."""
    first, *rest = list(words)[:WORDS_MAX] or [""]
    # A login shell has a dash in front of its name; a process title may hold its arguments in the first word.
    program = first.removeprefix("-")
    names = list(dict.fromkeys([program, program.partition(" ")[0]]))
    if program.rpartition("/")[2].lower().rstrip("0123456789.") in INTERPRETERS:
        names += [word for word in rest if not word.startswith("-")][:1]
    return [name for name in names if name]


def below(table: Mapping[int, Row], root: int) -> list[Row]:
    """The process `root` and all below it, nearest first. Empty when `root` is not in the table."""
    children: dict[int, list[Row]] = {}
    for row in table.values():
        children.setdefault(row.parent, []).append(row)
    found = [table[root]] if root in table else []
    seen = {root}
    for row in found:
        nearer = sorted((child for child in children.get(row.pid, ()) if child.pid not in seen), key=lambda child: child.pid)
        seen.update(child.pid for child in nearer)
        found += nearer
    return found


def choose(rows: Iterable[Row], words: Mapping[int, Iterable[str]], agent_of: Callable[[str], str | None]) -> Found | None:
    """The agent among `rows` (nearest to the terminal first); None when there is none.

    One in the foreground of its terminal is preferred, then the nearest: an agent that an agent has started is its
    tool. A process without a terminal is a daemon (Codex keeps one), not what a person looks at.
    """
    found: list[tuple[bool, Found]] = []
    for row in rows:
        if not row.has_terminal:
            continue
        agent = next((agent for name in programs(words.get(row.pid, ())) if (agent := agent_of(name))), None)
        if agent:
            found.append((row.group == row.foreground, Found(row.pid, agent)))
    front = [one for in_front, one in found if in_front]
    return front[0] if front else found[0][1] if found else None
