"""opencode. Its plugin of ours, which tells of its turns, also allows the reporting commands in a pane that Tocsin started.

Not by a configuration in the environment: that takes the place of the user's rule for commands, and then nothing asks any
more. Source: facts; measured on 1.18.33.
"""

from tocsin.agents.launching.plan import LaunchPlan, LaunchRequest, environment_of, model_words, no_command, prompt_of
from tocsin.contract.refusals import Refusal

STOPS = "Without a terminal opencode ends its turn at the first command that would ask: then no report comes."


def plan(request: LaunchRequest) -> LaunchPlan | Refusal:
    """In a terminal: interactive. Without one: `opencode run`, in which what would ask is refused by itself, and ends the turn."""
    refusal = no_command(request, "opencode")
    if refusal is not None:
        return refusal
    prompt = prompt_of(request)
    environment = environment_of(request)
    if request.terminal == "process":
        words = ("opencode", "run", "--format=json", *model_words(request), "--", prompt)
        return LaunchPlan(argv=words, environment=environment, note=STOPS)
    return LaunchPlan(argv=("opencode", *model_words(request), f"--prompt={prompt}"), environment=environment)
