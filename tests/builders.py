"""Values for tests that name only what the test is about."""

from typing import Any

from tocsin.contract.messages import Evidence, HookReported, Kind, PaneStatus, State

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
