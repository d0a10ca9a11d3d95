"""What each agent's file declares, and the words it translates its hooks into."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import msgspec

from tocsin.contract.messages import Ask, Kind, Origin, Reading, Task

Payload = Mapping[str, Any]
"""One JSON object as an agent sent it. Every field may be missing or of any type."""

Keyed = Callable[[str], str]
"""A keyed hash: the only form in which free text leaves the ingest."""


class BadPayload(ValueError):
    """A field that the mapping needs is missing or of the wrong type; the text names the field and holds no payload."""


class UnknownEvent(ValueError):
    """The agent has no event of that name."""


class Translated(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent's event means. Field for field as in HookReported, which adds who, where and when."""

    event: str
    kind: Kind
    session: str
    cwd: str | None = None
    turn: str | None = None
    child: str | None = None
    parent: str | None = None
    call: str | None = None
    tool: str | None = None
    target: str | None = None
    input_hash: str | None = None
    prompt_hash: str | None = None
    origin: Origin | None = None
    ask: Ask | None = None
    detail: str | None = None
    reviewed: bool = False
    interrupted: bool = False
    tasks: tuple[Task, ...] | None = None
    timers: bool = False
    launched: Task | None = None
    stopped: str | None = None
    transcript: str | None = None
    excerpt: str | None = None


@dataclass(frozen=True)
class TitleSpeech:
    """What an agent's own title can say. All False: its title carries no state and never ends or closes anything."""

    busy: bool = False
    rest: bool = False
    needs_you: bool = False


class WakeWay(StrEnum):
    """A way to start a turn of an agent that lets a person's draft be. In the order of the ladder."""

    IDLE_HOOK = "idle_hook"  # the hook that says its turn has ended may answer with text: the next turn begins with it
    NATIVE_PARK = "native_park"  # a background hook waits on us, and wakes the idle session when it ends
    NATIVE_PLUGIN = "native_plugin"  # a plugin of ours waits inside the agent, and sends the text as a message
    TYPED = "typed"  # keys into its composer, once that is known to be empty


@dataclass(frozen=True)
class Agent:
    """One coding agent. Facts with their sources stand in the agent's own file."""

    name: str
    label: str  # as people write it
    programs: tuple[str, ...]  # names of its process or script, to find it in a pane
    titles: TitleSpeech = TitleSpeech()
    trusts_environment: bool = True  # its hooks run with the environment of their own pane
    queues_prompts: bool = False  # a prompt typed into a running turn may get a turn of its own, without an event (Claude Code)
    idle_notice_ends: bool = False  # its idle notice, without a turn end before it, is the only sign of a cancel (Qwen Code)
    starts_after_grant: bool = False  # a tool's start comes behind the answer to its permission, and is that answer (Qwen Code)
    ends_on_cancel: bool = False  # it reports a cancelled turn as an ordinary end (Gemini CLI)
    hooks_run_in_cwd: bool = True  # its hooks run in the session's folder (not Cursor's: there only the payload knows it)
    transcript_root: str | None = None  # folder below the home in which the transcripts that its hooks name may lie
    environment: tuple[str, ...] = ()  # variables of its hooks that the hook command may send on
    ignored: frozenset[str] = frozenset()  # events that are its own and mean nothing to us
    translate: Callable[[str | None, Payload, Keyed], Translated | None] = field(default=lambda event, payload, keyed: None)
    """(event as the hook command names it or None, payload, keyed) -> meaning, or None for an event that means nothing.

    Raises UnknownEvent and BadPayload.
    """
    wake: frozenset[WakeWay] = frozenset()  # by which ways it can be woken; none: only a person can
    idle_cap: int | None = (
        None  # how many answers of idle hooks in a row start a turn; the next is dropped in silence. None: no cap is known
    )
    turn_start_signal: bool = True  # a hook tells that its turn has begun (headless may differ: see launch_of)
    read_title: Callable[[str], Reading] | None = None  # where its glyphs differ from everybody's
