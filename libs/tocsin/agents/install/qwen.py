"""Hooks of Qwen Code: `settings.json` in its folder. Source: facts, real-clients 2 and 6."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tocsin.agents.install.entries import Form
from tocsin.agents.install.installer import Event, SettingsHooks
from tocsin.agents.install.jsonc import WITH_COMMENTS
from tocsin.agents.install.machine import HookCommand, Machine


def _folder(machine: Machine) -> Path:
    return machine.folder("QWEN_HOME", ".qwen")


def _entry(event: Event, hook: HookCommand) -> Mapping[str, Any]:
    return {"hooks": [{"type": "command", "command": hook.line("qwen"), "timeout": event.limit_s}]}


def _todo(machine: Machine, value: Mapping[str, Any]) -> tuple[str, ...]:
    if value.get("disableAllHooks") is True:
        return ("`disableAllHooks` is true in this file: as long as it is, Qwen Code reports nothing.",)
    return ()


QWEN = SettingsHooks(
    agent="qwen",
    label="Qwen Code",
    programs=("qwen",),
    folder=_folder,
    name="settings.json",
    entry=_entry,
    form=Form(dialect=WITH_COMMENTS),
    events=(
        Event("SessionStart"),
        Event("UserPromptSubmit"),
        Event("PreToolUse"),
        Event("PermissionRequest"),
        Event("PostToolUse"),
        Event("PostToolUseFailure"),
        Event("Notification"),
        Event("SubagentStart"),
        Event("SubagentStop"),
        Event("Stop"),
        Event("StopFailure"),
        Event("SessionEnd", limit_s=2),
    ),
    project_files=(".qwen/settings.json",),
    once=("Qwen Code reads its settings when it starts: sessions that run now report nothing until they are started again.",),
    todo=_todo,
)
