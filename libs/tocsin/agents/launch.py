"""How a worker is started: from a brief and a folder of its own to one command line. What each agent takes stands in `launching/`.

Every launch gives the agent its brief as an argument, lets it write into the pane's own folder, and lets it run exactly the
reporting commands without asking anybody; where an agent offers no such way, its plan says so.
Source: README, decision on reporting from inside a sandbox.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tocsin.agents.launching import claude, codex, copilot, cursor, gemini, generic, opencode, pi, qwen
from tocsin.agents.launching.plan import BRIEF_VARIABLE, LaunchPlan, LaunchRequest
from tocsin.agents.registry import AGENTS
from tocsin.contract.refusals import Code, Refusal

__all__ = ["BRIEF_VARIABLE", "LaunchPlan", "LaunchRequest", "interrupt_keys", "launch_of"]

_PLANS: Mapping[str, Callable[[LaunchRequest], LaunchPlan | Refusal]] = MappingProxyType(
    {
        "claude": claude.plan,
        "codex": codex.plan,
        "gemini": gemini.plan,
        "qwen": qwen.plan,
        "cursor": cursor.plan,
        "opencode": opencode.plan,
        "copilot": copilot.plan,
        "pi": pi.plan,
        "generic": generic.plan,
    }
)

INTERRUPTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "claude": ("Escape",),
        "codex": ("Escape",),
        "gemini": ("Escape",),
        "qwen": ("Escape",),
        "opencode": ("Escape", "Escape"),  # the first one only asks
        "pi": ("Escape",),
        "copilot": ("Escape",),
        "cursor": ("C-c",),
        "aider": ("C-c",),
        "generic": ("C-c",),
    }
)


def launch_of(request: LaunchRequest) -> LaunchPlan | Refusal:
    """How to start what is asked for.

    Refuses: unknown_agent; agent_cannot, when that agent cannot be a worker or cannot take what is asked; bad_request.
    """
    make = _PLANS.get(request.agent)
    if make is not None:
        return make(request)
    agent = AGENTS.get(request.agent)
    if agent is None:
        return Refusal(Code.UNKNOWN_AGENT, f"no agent {request.agent}; there are {', '.join(_PLANS)}")
    return Refusal(Code.AGENT_CANNOT, f"{agent.label} runs no command without its person, so it can report nothing")


def interrupt_keys(agent: str) -> tuple[str, ...]:
    """The keys, by tmux's names, with which that agent cancels its turn. Ctrl+C for a program that we do not know."""
    return INTERRUPTS.get(agent, ("C-c",))
