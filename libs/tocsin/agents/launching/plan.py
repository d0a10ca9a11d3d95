"""What a launch is asked, what it comes to, and what all launches have in common."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from tocsin.contract.refusals import Code, Refusal

REPORTING = ("report", "heartbeat", "ask", "mail", "review")
"""The verbs of `tocsin` that an agent may run without asking anybody: all they do is speak to the Run."""

BRIEF_VARIABLE = "TOCSIN_BRIEF"
"""Names the file of the brief in the environment of every worker."""

BRIEF_BYTES_MAX = 96 * 1024
"""Longest brief that goes as an argument: Linux takes 128 KiB for one argument, macOS 1 MiB for all together."""

COMMAND_SIGNS = ("-", "/", "@", "!", "#")
"""How a text begins that an agent may take for an option, a command, a file or a shell line in place of a prompt."""

FOREIGN = frozenset(
    {
        "CLAUDECODE",
        "CLAUDE_CODE_CHILD_SESSION",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_SESSION_ATTENDED",
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_ENV_FILE",
        "CLAUDE_PID",
        "CLAUDE_PROJECT_DIR",
        "AI_AGENT",
        "AGENT",
        "GEMINI_CLI",
        "GEMINI_SESSION_ID",
        "OPENCODE",
        "OPENCODE_PID",
        "QWEN_CODE",
        "QWEN_CODE_SESSION_ID",
    }
)
"""Variables with which an agent marks what runs inside it. A worker is started by nobody's session, so it inherits none."""


@dataclass(frozen=True, kw_only=True)
class LaunchRequest:
    """Who is to be started, with what, where. Paths are absolute and real.

    `folder`: the pane's own folder, for requests and answers. `brief_file`: where `brief` is written before the start.
    """

    agent: str
    folder: str
    brief: str
    brief_file: str
    cwd: str
    model: str | None = None
    terminal: Literal["tmux", "process"] = "tmux"
    command: tuple[str, ...] = ()  # agent `generic`: the program to run


@dataclass(frozen=True, kw_only=True)
class LaunchPlan:
    """What to run. `argv[0]` is to be found on PATH (not there: agent_missing), in the request's `cwd`."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    unset: frozenset[str] = FOREIGN  # variables that the program must not inherit
    files: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Path -> text, to be written before the start, for the user's eyes alone. All lie in the pane's own folder."""
    turn_start_signal: bool = True  # one of its hooks will tell that its turn has begun
    reports_from_sandbox: bool = True  # the reporting commands run without anybody being asked, and reach the folder
    note: str = ""  # what a person should know of this launch; empty: nothing out of the ordinary


def prompt_of(request: LaunchRequest) -> str:
    """The brief as an argument; one line that names its file where it is too long for one, or would be read as a command."""
    brief = request.brief
    if (
        brief
        and not brief.lstrip().startswith(COMMAND_SIGNS)
        and "\0" not in brief
        and len(brief.encode(errors="replace")) <= BRIEF_BYTES_MAX
    ):
        return brief
    return f"Your brief is in the file {request.brief_file}: read all of it, then do what it says."


def environment_of(request: LaunchRequest, **more: str) -> Mapping[str, str]:
    """What every worker's environment has, and `more`."""
    return MappingProxyType({BRIEF_VARIABLE: request.brief_file, **more})


def model_words(request: LaunchRequest) -> tuple[str, ...]:
    """`--model NAME`, where one is asked for."""
    return () if request.model is None else ("--model", request.model)


def no_command(request: LaunchRequest, label: str) -> Refusal | None:
    """Refuses a command line for an agent that has its own: agent_cannot."""
    if request.command:
        return Refusal(Code.AGENT_CANNOT, f"{label} is started by its own command line: a command goes with the agent generic alone")
    return None
