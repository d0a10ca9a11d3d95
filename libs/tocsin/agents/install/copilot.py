"""Hooks of GitHub Copilot CLI: a file of our own among its hook files. Source: facts, agent-hooks 7.

Events in camelCase get fields in camelCase, and no field that names the event: the command line names it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tocsin.agents.install.entries import Form
from tocsin.agents.install.installer import Event, SettingsHooks, Values
from tocsin.agents.install.jsonc import LENIENT, parse
from tocsin.agents.install.machine import HookCommand, Machine
from tocsin.agents.install.settings_file import read


def _folder(machine: Machine) -> Path:
    return machine.folder("COPILOT_HOME", ".copilot")


def _entry(event: Event, hook: HookCommand) -> Mapping[str, Any]:
    return {"type": "command", "bash": hook.line("copilot", event.name), "timeoutSec": event.limit_s}


def _others(machine: Machine) -> Values:
    """The user's other hook files, and the hooks in Copilot's own settings."""
    ours = _folder(machine) / "hooks" / "tocsin.json"
    for file in [*sorted((_folder(machine) / "hooks").glob("*.json")), _folder(machine) / "settings.json"]:
        if file == ours:
            continue
        try:
            yield str(file), parse((read(file) or b"{}").decode(), LENIENT).value
        except (OSError, ValueError):
            continue


COPILOT = SettingsHooks(
    agent="copilot",
    label="Copilot CLI",
    programs=("copilot",),
    folder=_folder,
    name="hooks/tocsin.json",
    entry=_entry,
    form=Form(grouped=False, command="bash", dialect=LENIENT, base={"version": 1}),
    events=(
        Event("sessionStart"),
        Event("userPromptSubmitted"),
        Event("preToolUse"),
        Event("postToolUse"),
        Event("postToolUseFailure"),
        Event("notification"),
        Event("subagentStart"),
        Event("subagentStop"),
        Event("agentStop"),
        Event("errorOccurred"),
        Event("sessionEnd", limit_s=2),
    ),
    once=("Copilot reads its hooks when it starts: sessions that run now report nothing until they are started again.",),
    more=_others,
)
