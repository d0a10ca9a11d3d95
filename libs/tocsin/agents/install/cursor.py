"""Hooks of Cursor and cursor-agent: `hooks.json` in the folder that both share. Source: facts, agent-hooks 5.

One unknown event name voids the whole file, so a younger event is asked for only where each of the two programs that is
installed knows it. Those without `since` came with 1.7, the first version with hooks; the others were all there in 2.5
and in the agent of spring 2026.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tocsin.agents.install.entries import Form
from tocsin.agents.install.installer import Event, SettingsHooks
from tocsin.agents.install.jsonc import LENIENT
from tocsin.agents.install.machine import HookCommand, Machine

PROGRAMS = ("cursor-agent", "cursor")

YOUNGER = (2, 5)
"""The first version of the editor with the younger events. The agent counts by date, so its 2026 is beyond it as well."""

AGENT_YOUNGER = (2026, 3)


def _folder(machine: Machine) -> Path:
    return machine.folder("", ".cursor")


def _entry(event: Event, hook: HookCommand) -> Mapping[str, Any]:
    return {"command": hook.line("cursor"), "timeout": event.limit_s}


def _knows_younger(machine: Machine) -> bool:
    versions = [machine.version(program) for program in PROGRAMS if machine.program(program)]
    return bool(versions) and all(version is not None and _is_younger(version) for version in versions)


def _is_younger(version: tuple[int, ...]) -> bool:
    return version >= (AGENT_YOUNGER if version[0] > 2000 else YOUNGER)


def _known(machine: Machine, events: tuple[Event, ...]) -> tuple[Event, ...]:
    younger = _knows_younger(machine)
    return tuple(event for event in events if younger or not event.since)


def _todo(machine: Machine, value: Mapping[str, Any]) -> tuple[str, ...]:
    if not _knows_younger(machine):
        return ("This Cursor is older than 2.5, or does not say: only its first events are used. Install again after an update.",)
    return ()


CURSOR = SettingsHooks(
    agent="cursor",
    label="Cursor",
    programs=PROGRAMS,
    folder=_folder,
    name="hooks.json",
    entry=_entry,
    form=Form(grouped=False, dialect=LENIENT, base={"version": 1}),
    events=(
        Event("sessionStart", since=YOUNGER),
        Event("beforeSubmitPrompt"),
        Event("beforeShellExecution"),
        Event("beforeMCPExecution"),
        Event("afterFileEdit"),
        Event("preToolUse", since=YOUNGER),
        Event("postToolUse", since=YOUNGER),
        Event("postToolUseFailure", since=YOUNGER),
        Event("subagentStart", since=YOUNGER),
        Event("subagentStop", since=YOUNGER),
        Event("stop"),
        Event("sessionEnd", limit_s=2, since=YOUNGER),
    ),
    project_files=(".cursor/hooks.json",),
    known=_known,
    once=("Cursor tells nobody when it asks for an approval: such a pane shows as working.",),
    todo=_todo,
)
