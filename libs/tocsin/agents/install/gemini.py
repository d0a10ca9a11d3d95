"""Hooks of Gemini CLI: `settings.json` in its folder. Source: facts, agent-hooks 4 and real-clients 6.

Never BeforeModel, AfterModel or BeforeToolSelection: they fire for each request or chunk and slow its stream visibly.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tocsin.agents.install.entries import Form
from tocsin.agents.install.installer import Event, SettingsHooks
from tocsin.agents.install.jsonc import WITH_COMMENTS
from tocsin.agents.install.machine import HookCommand, Machine


def _folder(machine: Machine) -> Path:
    return machine.folder("GEMINI_CLI_HOME", ".gemini", ".gemini")


def _entry(event: Event, hook: HookCommand) -> Mapping[str, Any]:
    handler = {"type": "command", "name": "tocsin", "command": hook.line("gemini"), "timeout": event.limit_s * 1000}  # milliseconds
    return {"matcher": "*", "hooks": [handler]}


def _todo(machine: Machine, value: Mapping[str, Any]) -> tuple[str, ...]:
    steps = []
    config = value.get("hooksConfig")
    if isinstance(config, dict) and config.get("enabled") is False:
        steps.append("`hooksConfig.enabled` is false in this file: as long as it is, Gemini reports nothing.")
    if isinstance(config, dict) and isinstance(config.get("disabled"), list) and "tocsin" in config["disabled"]:
        steps.append("`hooksConfig.disabled` in this file names `tocsin`: take it out.")
    return tuple(steps)


GEMINI = SettingsHooks(
    agent="gemini",
    label="Gemini CLI",
    programs=("gemini",),
    folder=_folder,
    name="settings.json",
    entry=_entry,
    form=Form(dialect=WITH_COMMENTS),
    events=(
        Event("SessionStart"),
        Event("BeforeAgent"),
        Event("BeforeTool"),
        Event("Notification"),
        Event("AfterTool"),
        Event("AfterAgent"),
        Event("SessionEnd", limit_s=2),
    ),
    project_files=(".gemini/settings.json",),
    once=("Gemini reads its settings when it starts: sessions that run now report nothing until they are started again.",),
    todo=_todo,
)
