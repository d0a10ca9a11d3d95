"""Every agent that we know, by name, and which of them a running program is."""

from collections.abc import Mapping
from types import MappingProxyType

from tocsin.agents.agent import Agent
from tocsin.agents.aider import AIDER
from tocsin.agents.claude import CLAUDE
from tocsin.agents.codex import CODEX
from tocsin.agents.copilot import COPILOT
from tocsin.agents.cursor import CURSOR
from tocsin.agents.gemini import GEMINI
from tocsin.agents.generic import GENERIC
from tocsin.agents.opencode import OPENCODE
from tocsin.agents.pi import PI
from tocsin.agents.qwen import QWEN
from tocsin.agents.titles import read_title
from tocsin.contract.messages import Reading

AGENTS: Mapping[str, Agent] = MappingProxyType(
    {agent.name: agent for agent in (CLAUDE, CODEX, GEMINI, QWEN, CURSOR, OPENCODE, COPILOT, PI, AIDER, GENERIC)}
)

SUFFIXES = (".exe", ".cmd", ".bat", ".ps1", ".js", ".mjs", ".cjs", ".py")
"""Ends of a program's file name that are not part of its name."""

_BY_PROGRAM: Mapping[str, Agent] = MappingProxyType(
    {program: agent for agent in AGENTS.values() for program in agent.programs if "/" not in program}
)
_BY_FOLDER: Mapping[str, Agent] = MappingProxyType(
    {f"/{program}/": agent for agent in AGENTS.values() for program in agent.programs if "/" in program}
)


def agent_of_program(program: str) -> Agent | None:
    """The agent that `program` is: the name or path of a process, or of the script that an interpreter runs.

    A path counts by its last part, else by the package that it lies in (`.../@openai/codex/bin/codex.js`). None for anything
    else, so a worktree or file that is merely named after an agent is none.
    """
    path = program.replace("\\", "/")
    last = path.rpartition("/")[2].lower()
    for suffix in SUFFIXES:
        last = last.removesuffix(suffix)
    found = _BY_PROGRAM.get(last)
    if found is not None:
        return found
    return next((agent for folder, agent in _BY_FOLDER.items() if folder in path), None)


def read_title_of(agent: str | None, text: str) -> Reading:
    """What a title says in a pane in which `agent` is known to run (None: nobody knows), by that agent's own reading if it has one."""
    known = AGENTS.get(agent) if agent is not None else None
    own = known.read_title if known is not None else None
    return own(text) if own is not None else read_title(text, agent)
