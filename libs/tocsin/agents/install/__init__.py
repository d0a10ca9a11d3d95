"""How each agent is told to call the hook command, and what tells whether it does so once."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from tocsin.agents.install.claude import CLAUDE
from tocsin.agents.install.codex import CODEX
from tocsin.agents.install.copilot import COPILOT
from tocsin.agents.install.cursor import CURSOR
from tocsin.agents.install.gemini import GEMINI
from tocsin.agents.install.installer import Installer
from tocsin.agents.install.machine import HookCommand, Machine
from tocsin.agents.install.opencode import OPENCODE
from tocsin.agents.install.pi import PI
from tocsin.agents.install.qwen import QWEN

INSTALLERS: dict[str, Installer] = {one.agent: one for one in (CLAUDE, CODEX, GEMINI, QWEN, CURSOR, OPENCODE, COPILOT, PI)}
"""Every agent that can be told, by name."""


@dataclass(frozen=True)
class DoubleRegistration:
    """An agent that calls the hook command more than once for each event of `events`, and the places that make it do so."""

    agent: str
    events: tuple[str, ...]
    places: tuple[str, ...]

    def __str__(self) -> str:
        """One sentence for a person."""
        where = " and ".join(self.places) if len(self.places) > 1 else f"{self.places[0]}, more than once"
        return f"{INSTALLERS[self.agent].label} reports {', '.join(self.events)} twice: registered in {where}"


def double_registrations(
    home: Path, projects: tuple[Path, ...] = (), environ: Mapping[str, str] = MappingProxyType({})
) -> list[DoubleRegistration]:
    """Each agent and set of places that deliver its events twice, looked for in the user's files and those of `projects`.

    `environ` holds the agents' own overrides of where their folders are.
    """
    machine = Machine(home, environ)
    hook = HookCommand(home)
    doubles: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for installer in INSTALLERS.values():
        places: dict[str, list[str]] = {}
        counted = set()
        for found in installer.calls(machine, hook, projects):
            same = (found.event, found.command, found.runs_once)
            if found.runs_once and same in counted:
                continue
            counted.add(same)
            places.setdefault(found.event, []).append(found.place)
        for event, where in places.items():
            if len(where) > 1:
                doubles.setdefault((installer.agent, tuple(dict.fromkeys(where))), []).append(event)
    return [DoubleRegistration(agent, tuple(events), where) for (agent, where), events in doubles.items()]
