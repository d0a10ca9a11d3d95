"""Cursor's agent. Its rules stand in the user's or the project's own files alone, so a launch can allow nothing.

Source: its documentation.
"""

from tocsin.agents.launching.plan import LaunchPlan, LaunchRequest, environment_of, model_words, no_command, prompt_of
from tocsin.contract.refusals import Refusal

ASKS = (
    "Cursor asks its person before the first `tocsin` command: allow it there, or put Shell(tocsin) into permissions.allow of its "
    "cli-config.json."
)
SILENT = "In print mode Cursor tells nobody that its turn has begun: a report is the first that is heard of it."


def plan(request: LaunchRequest) -> LaunchPlan | Refusal:
    """In a terminal: interactive, its turn start is `beforeSubmitPrompt`. Without one: print mode, which has no turn start."""
    refusal = no_command(request, "Cursor")
    if refusal is not None:
        return refusal
    headless = request.terminal == "process"
    words = ("cursor-agent", *(("--print", "--output-format", "stream-json") if headless else ()), *model_words(request))
    return LaunchPlan(
        argv=(*words, prompt_of(request)),
        environment=environment_of(request),
        turn_start_signal=not headless,
        reports_from_sandbox=False,
        note=f"{ASKS} {SILENT}" if headless else ASKS,
    )
