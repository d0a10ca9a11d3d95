"""Values for tests that name only what the test is about."""

from typing import Any

from tocsin.contract.hosting import HostCommand, StopAgent
from tocsin.contract.messages import Evidence, HookReported, Kind, PaneStatus, State
from tocsin.contract.parties import Caller, Role
from tocsin.contract.run import RunCommand, RunVerb

NOW_MS = 1_800_000_000_000


def a_hook(kind: Kind, **fields: Any) -> HookReported:
    """One event of a Claude Code session in pane p1 of host h."""
    defaults: dict[str, Any] = {
        "id": "e1", "host": "h", "source": "p1", "pane": "p1", "agent": "claude", "event": kind.value, "session": "s1",
        "at_ms": NOW_MS, "cwd": "/repo",
    }  # fmt: skip
    return HookReported(kind=kind, **(defaults | fields))


def a_status(**fields: Any) -> PaneStatus:
    """A pane that works."""
    defaults: dict[str, Any] = {
        "host": "h", "pane": "p1", "workspace": "default", "seq": 1, "state": State.WORKING, "since_ms": NOW_MS, "updated_ms": NOW_MS,
        "evidence": Evidence.OBSERVED, "cause": "prompted", "hooked": True, "agent": "claude", "session": "s1", "cwd": "/repo",
    }  # fmt: skip
    return PaneStatus(**(defaults | fields))


A_PERSON = Caller(role=Role.PERSON, name="dev@h")


def a_run_command(ask: RunVerb, **fields: Any) -> RunCommand:
    """A person's request to Run r1."""
    defaults: dict[str, Any] = {"run": "r1", "request": "q1", "caller": A_PERSON, "at_ms": NOW_MS}
    return RunCommand(ask=ask, **(defaults | fields))


def a_host_command(**fields: Any) -> HostCommand:
    """An order to end the agent of Dispatch d1."""
    defaults: dict[str, Any] = {"host": "h", "dispatch": "d1", "fence": 1, "step": "stop", "order": StopAgent(), "at_ms": NOW_MS}
    return HostCommand(**(defaults | fields))
