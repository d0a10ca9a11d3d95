"""Hooks of opencode: a plugin file of our own. Source: facts, agent-hooks 6 and real-clients 6."""

from pathlib import Path

from tocsin.agents.install.installer import OwnFile
from tocsin.agents.install.machine import Machine


def _folder(machine: Machine) -> Path:
    return machine.folder("XDG_CONFIG_HOME", ".config/opencode", "opencode")


OPENCODE = OwnFile(
    agent="opencode",
    label="opencode",
    programs=("opencode",),
    folder=_folder,
    below="plugin",
    name="tocsin.js",
    parts=("forward.js", "opencode.js"),
    also_loads=("plugins",),
    once=(
        "opencode loads plugins when it starts: sessions that run now report nothing until they are started again.",
        "With its first plugin, opencode fetches its plugin kit at the next start: it needs the network once.",
    ),
)
