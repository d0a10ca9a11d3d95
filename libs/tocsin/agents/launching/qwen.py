"""Qwen Code: the options of Gemini CLI, from which it comes, but for its rules. Source: its help; measured on 0.24.4."""

from tocsin.agents.launching.plan import REPORTING, LaunchPlan, LaunchRequest, environment_of, model_words, no_command, prompt_of
from tocsin.contract.refusals import Refusal


def plan(request: LaunchRequest) -> LaunchPlan | Refusal:
    """In a terminal: interactive. Without one: prints one JSON object a line, and what would ask is refused by itself."""
    refusal = no_command(request, "Qwen Code")
    if refusal is not None:
        return refusal
    allowed = [f"--allowed-tools=run_shell_command(tocsin {verb})" for verb in REPORTING]
    words = ("qwen", *model_words(request), *allowed, f"--include-directories={request.folder}")
    prompt = prompt_of(request)
    # A prompt without a name stands behind an option that takes one word: the two above take any number.
    last = ("--output-format=stream-json", prompt) if request.terminal == "process" else (f"--prompt-interactive={prompt}",)
    return LaunchPlan(argv=(*words, *last), environment=environment_of(request))
