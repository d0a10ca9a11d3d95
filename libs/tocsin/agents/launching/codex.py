"""Codex CLI. In its sandbox a command needs no approval, so the folder as a writable root is all that reporting takes.

Never through its daemon: there hooks and commands would have the environment of another pane. Source: facts; measured on 0.171.0.
"""

from tocsin.agents.launching.plan import LaunchPlan, LaunchRequest, environment_of, model_words, no_command, prompt_of
from tocsin.contract.refusals import Refusal

KEEPS_PATH = ("--config", "allow_login_shell=false")
"""Its commands run in login shells otherwise, and where /etc/profile sets PATH anew (Debian, Ubuntu) they find no `tocsin`
that lies elsewhere. So they have the PATH of their pane."""


def plan(request: LaunchRequest) -> LaunchPlan | Refusal:
    """In a terminal: interactive. Without one: `codex exec`, in which what would ask is refused by itself."""
    refusal = no_command(request, "Codex")
    if refusal is not None:
        return refusal
    sandbox = (*KEEPS_PATH, "--sandbox", "workspace-write", "--add-dir", request.folder)
    if request.terminal == "process":
        # A plain folder is a worktree like any other.
        words = ("codex", "exec", "--json", "--skip-git-repo-check", *sandbox)
    else:
        words = ("codex", "--no-daemon", *sandbox, "--ask-for-approval", "on-request")
    return LaunchPlan(argv=(*words, *model_words(request), "--", prompt_of(request)), environment=environment_of(request))
