"""What the hook that says "my turn has ended" answers, so that the agent goes on with a text of ours.

Source: facts, measured for Claude Code, Codex, Gemini CLI and Qwen Code; the documentation of Cursor and Copilot for theirs.
"""

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType

from tocsin.agents.agent import WakeWay
from tocsin.agents.registry import AGENTS


def _blocks(pointer: str) -> dict[str, str]:
    return {"decision": "block", "reason": pointer}


_FORMS: Mapping[str, Callable[[str], dict[str, str]]] = MappingProxyType(
    {
        "claude": _blocks,
        "codex": _blocks,
        "qwen": _blocks,
        "copilot": _blocks,
        "gemini": lambda pointer: {"decision": "deny", "reason": pointer},
        "cursor": lambda pointer: {"followup_message": pointer},
    }
)


def idle_answer(agent_name: str, pointer: str) -> str:
    """The JSON text to answer an idle hook of that agent with, in its own form; its next turn begins with `pointer`.

    Raises ValueError for an agent whose idle hook takes no answer (WakeWay.IDLE_HOOK is not among its ways).
    """
    form = _FORMS.get(agent_name)
    if form is None or WakeWay.IDLE_HOOK not in AGENTS[agent_name].wake:
        raise ValueError(f"no idle hook of {agent_name} takes an answer")
    return json.dumps(form(pointer), ensure_ascii=False)
