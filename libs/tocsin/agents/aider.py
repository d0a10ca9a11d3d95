"""aider: no hooks, and its own title says nothing. Only its name in a command line or a process shows it.

Its notifications command has no payload and fires alike for an answer and for a question: it means nothing here. A script
around aider can say more by titles, or as the generic agent.
"""

from tocsin.agents.agent import Agent, Keyed, Payload, Translated, UnknownEvent

IGNORED = frozenset({"notify"})


def translate(event: str | None, payload: Payload, keyed: Keyed) -> Translated | None:
    """Nothing, for the one event there is. Raises UnknownEvent."""
    if event in IGNORED:
        return None
    raise UnknownEvent("aider has no hooks")


AIDER = Agent(name="aider", label="aider", programs=("aider",), ignored=IGNORED, translate=translate, turn_start_signal=False)
