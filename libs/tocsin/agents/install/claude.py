"""Hooks of Claude Code: `settings.json` in its folder. Read again while it runs. Source: facts, agent-hooks 2.1, 2.4 and 11."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tocsin.agents.install.entries import Form
from tocsin.agents.install.installer import Event, SettingsHooks, Values
from tocsin.agents.install.jsonc import LENIENT, parse
from tocsin.agents.install.machine import PARK, HookCommand, Machine
from tocsin.agents.install.settings_file import read

PARKED_S_MAX = 24 * 60 * 60
"""How long one parked call may wait. After a day without a turn the session is woken no more: the next turn's end parks again."""

REWAKES = (2, 1, 89)
"""The first version in which a parked call is sure to run in the background."""


def _folder(machine: Machine) -> Path:
    return machine.folder("CLAUDE_CONFIG_DIR", ".claude")


def _entry(event: Event, hook: HookCommand) -> Mapping[str, Any]:
    if event.parks:
        # Its end with code 2 starts a turn of the idle session, the draft stays; until then it holds nothing up.
        parked = {"type": "command", "command": hook.line("claude", PARK), "async": True, "asyncRewake": True, "timeout": event.limit_s}
        return {"hooks": [parked]}
    # Not async: the order of events would be lost, and a background process is killed when `claude -p` ends.
    handler = {"type": "command", "command": hook.line("claude"), "timeout": event.limit_s}
    return {"hooks": [handler]} if event.matcher is None else {"matcher": event.matcher, "hooks": [handler]}


def _known(machine: Machine, events: tuple[Event, ...]) -> tuple[Event, ...]:
    version = machine.version("claude")
    return tuple(event for event in events if version is None or version >= event.since)


def _todo(machine: Machine, value: Mapping[str, Any]) -> tuple[str, ...]:
    if value.get("disableAllHooks") is True:
        return ("`disableAllHooks` is true in this file: as long as it is, Claude Code reports nothing.",)
    return ()


def _plugins(machine: Machine) -> Values:
    """The hooks that installed plugins bring. Of a plugin that is there in several versions, the newest file counts."""
    enabled = _value(_folder(machine) / "settings.json").get("enabledPlugins")
    newest: dict[tuple[str, str], Path] = {}
    for file in sorted((_folder(machine) / "plugins" / "cache").glob("*/*/*/hooks/hooks.json"), key=lambda file: file.stat().st_mtime):
        market, plugin = file.parts[-5], file.parts[-4]
        if not isinstance(enabled, dict) or enabled.get(f"{plugin}@{market}") is not False:
            newest[market, plugin] = file
    for file in newest.values():
        yield str(file), _value(file)


def _value(file: Path) -> Mapping[str, Any]:
    try:
        value = parse((read(file) or b"{}").decode(), LENIENT).value
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


CLAUDE = SettingsHooks(
    agent="claude",
    label="Claude Code",
    programs=("claude",),
    folder=_folder,
    name="settings.json",
    entry=_entry,
    form=Form(),
    events=(
        Event("SessionStart"),
        Event("UserPromptSubmit"),
        Event("PreToolUse"),
        Event("PermissionRequest"),
        # Before 2.1.101 an unknown name could void the file; this one is younger than 2.1.78, the oldest that we expect.
        Event("PermissionDenied", since=(2, 1, 89)),
        Event("PostToolUse"),
        Event("PostToolUseFailure"),
        Event("Notification", matcher="permission_prompt|idle_prompt"),
        Event("SubagentStart"),
        Event("SubagentStop"),
        Event("Elicitation"),
        Event("ElicitationResult"),
        Event("PostCompact"),
        Event("Stop"),
        Event("StopFailure"),
        Event("SessionEnd", limit_s=2),  # leaving the program waits for it
        # These two cover all idle times: before the first prompt, and after each turn. Each lets the one before it go.
        Event("SessionStart", limit_s=PARKED_S_MAX, parks=True, since=REWAKES),
        Event("Stop", limit_s=PARKED_S_MAX, parks=True, since=REWAKES),
    ),
    project_files=(".claude/settings.json", ".claude/settings.local.json"),
    equal_lines_run_once=True,
    known=_known,
    todo=_todo,
    more=_plugins,
)
