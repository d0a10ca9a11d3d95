"""Hooks of pi: an extension file of our own. Source: facts, agent-hooks 8 and real-clients 6."""

from pathlib import Path

from tocsin.agents.install.installer import OwnFile
from tocsin.agents.install.machine import Machine


def _folder(machine: Machine) -> Path:
    return machine.folder("PI_CODING_AGENT_DIR", ".pi/agent")


PI = OwnFile(
    agent="pi",
    label="pi",
    programs=("pi",),
    folder=_folder,
    below="extensions",
    name="tocsin.ts",
    parts=("forward.js", "pi.js"),
    once=("pi loads extensions when it starts: sessions that run now report nothing until they are started again.",),
)
