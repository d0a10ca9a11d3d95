"""Hooks of Codex CLI: `hooks.json` in its folder. Each new or changed one needs the user's review. Source: facts, agent-hooks 3."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tocsin.agents.install.installer import Event, SettingsHooks, Values
from tocsin.agents.install.machine import HookCommand, Machine


def _folder(machine: Machine) -> Path:
    return machine.folder("CODEX_HOME", ".codex")


def _entry(event: Event, hook: HookCommand) -> Mapping[str, Any]:
    return {"hooks": [{"type": "command", "command": hook.line("codex"), "timeout": event.limit_s}]}


def _config(machine: Machine) -> Mapping[str, Any]:
    try:
        return tomllib.loads((_folder(machine) / "config.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _todo(machine: Machine, value: Mapping[str, Any]) -> tuple[str, ...]:
    steps = ['Start codex once: it says "Hooks need review". Choose "Trust all and continue"; until then it reports nothing.']
    features = _config(machine).get("features")
    if isinstance(features, dict) and False in (features.get("hooks"), features.get("codex_hooks")):
        steps.append("`[features]` in its config.toml switches hooks off: set `hooks = true`.")
    return tuple(steps)


def _config_hooks(machine: Machine) -> Values:
    yield str(_folder(machine) / "config.toml"), _config(machine)


CODEX = SettingsHooks(
    agent="codex",
    label="Codex",
    programs=("codex",),
    folder=_folder,
    name="hooks.json",
    entry=_entry,
    events=(
        Event("SessionStart"),
        Event("UserPromptSubmit"),
        Event("PreToolUse"),
        Event("PermissionRequest"),
        Event("PostToolUse"),
        Event("SubagentStart"),
        Event("SubagentStop"),
        Event("Stop"),
        Event("Interrupt", limit_s=3),  # Codex allows these two no more
        Event("SessionEnd", limit_s=3),
    ),
    project_files=(".codex/hooks.json",),
    todo=_todo,
    more=_config_hooks,
)
