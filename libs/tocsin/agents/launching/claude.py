"""Claude Code. Its permission mode stays the user's; one narrow rule per reporting command goes on top. Source: facts; measured on 2.1.332.

Never `--add-dir`: for a folder outside what its person trusts already, it asks before it starts.
"""

import json

from tocsin.agents.launching.plan import REPORTING, LaunchPlan, LaunchRequest, environment_of, model_words, no_command, prompt_of
from tocsin.contract.refusals import Refusal

HEADLESS = ("--print", "--output-format", "stream-json", "--verbose")


def plan(request: LaunchRequest) -> LaunchPlan | Refusal:
    """In a terminal: interactive. Without one: prints one JSON object a line, and what would ask is refused by itself."""
    refusal = no_command(request, "Claude Code")
    if refusal is not None:
        return refusal
    allowed = ",".join(f"Bash(tocsin {verb}:*)" for verb in REPORTING)
    # Means something only where its person has switched its sandbox on.
    settings = json.dumps({"sandbox": {"filesystem": {"allowWrite": [request.folder]}}})
    return LaunchPlan(
        argv=(
            "claude",
            *(HEADLESS if request.terminal == "process" else ()),
            *model_words(request),
            "--settings",
            settings,
            "--allowed-tools",
            allowed,
            "--",  # the option above takes any number of words
            prompt_of(request),
        ),
        environment=environment_of(request),
    )
