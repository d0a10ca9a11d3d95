"""GitHub Copilot CLI. One rule per reporting command, and the folder as one that it may use. Source: its documentation."""

from tocsin.agents.launching.plan import REPORTING, LaunchPlan, LaunchRequest, environment_of, model_words, no_command, prompt_of
from tocsin.contract.refusals import Refusal


def plan(request: LaunchRequest) -> LaunchPlan | Refusal:
    """In a terminal: interactive. Without one: one prompt, and what would ask is refused by itself."""
    refusal = no_command(request, "Copilot CLI")
    if refusal is not None:
        return refusal
    allowed = [f"--allow-tool=shell(tocsin {verb}:*)" for verb in REPORTING]
    prompt = prompt_of(request)
    how = f"--prompt={prompt}" if request.terminal == "process" else f"--interactive={prompt}"
    return LaunchPlan(
        argv=("copilot", *model_words(request), *allowed, f"--add-dir={request.folder}", how),
        environment=environment_of(request),
    )
