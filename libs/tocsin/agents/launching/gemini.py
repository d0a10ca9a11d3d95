"""Gemini CLI. A policy file of this launch allows the reporting commands. Source: facts, its help; measured on 0.61.0."""

import json
from types import MappingProxyType

from tocsin.agents.launching.plan import REPORTING, LaunchPlan, LaunchRequest, environment_of, model_words, no_command, prompt_of
from tocsin.contract.refusals import Refusal

POLICY = "gemini-policy.toml"
"""Name of the policy file in the pane's own folder."""

PRIORITY = 200
"""Of our rules among the user's own, from 0 to 999."""


def policy() -> str:
    """Rules that allow the reporting commands, and nothing else."""
    prefixes = json.dumps([f"tocsin {verb}" for verb in REPORTING])
    return f'[[rule]]\ntoolName = "run_shell_command"\ncommandPrefix = {prefixes}\ndecision = "allow"\npriority = {PRIORITY}\n'


def plan(request: LaunchRequest) -> LaunchPlan | Refusal:
    """In a terminal: interactive. Without one: prints one JSON object a line, and what would ask is refused by itself."""
    refusal = no_command(request, "Gemini CLI")
    if refusal is not None:
        return refusal
    file = f"{request.folder}/{POLICY}"
    words = ("gemini", *model_words(request), f"--policy={file}", f"--include-directories={request.folder}")
    prompt = prompt_of(request)
    if request.terminal == "process":
        words = (*words, "--output-format=stream-json", f"--prompt={prompt}")
    else:
        words = (*words, f"--prompt-interactive={prompt}")
    return LaunchPlan(argv=words, environment=environment_of(request), files=MappingProxyType({file: policy()}))
