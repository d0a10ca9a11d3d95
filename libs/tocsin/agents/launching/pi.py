"""pi. It asks nobody for anything, so there is nothing to allow. Source: facts, its help."""

from tocsin.agents.launching.plan import LaunchPlan, LaunchRequest, environment_of, model_words, no_command, prompt_of
from tocsin.contract.refusals import Refusal


def plan(request: LaunchRequest) -> LaunchPlan | Refusal:
    """In a terminal: interactive. Without one: prints one JSON object a line."""
    refusal = no_command(request, "pi")
    if refusal is not None:
        return refusal
    headless = ("--mode", "json") if request.terminal == "process" else ()
    return LaunchPlan(argv=("pi", *headless, *model_words(request), prompt_of(request)), environment=environment_of(request))
