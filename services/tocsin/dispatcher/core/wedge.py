"""Is a worker at work, or stuck? This only reads. Absence of signs is `unknown`: never wedged, and never working."""

from enum import StrEnum
from typing import NamedTuple

from tocsin.contract.messages import PaneStatus, State
from tocsin.contract.run import DispatchState
from tocsin.dispatcher.core.run import Dispatch
from tocsin.dispatcher.core.watch import HEARD, HOST_SILENT_MS, is_gone

QUIET_MS_MAX = 15 * 60_000
"""An open turn from which nothing has come for so long, no hook and no heartbeat, is wedged."""


class Activity(StrEnum):
    """What a worker does."""

    WORKING = "working"
    BLOCKED = "blocked"  # on a person
    UNKNOWN = "unknown"
    WEDGED = "wedged"  # its turn is open by its own word, it can be seen, and nothing comes


class Judgement(NamedTuple):
    """What a worker does, and why that is thought."""

    activity: Activity
    reason: str


def classify(dispatch: Dispatch, status: PaneStatus | None, silent_ms: int, now_ms: int) -> Judgement:
    """What the worker of an attempt does. `silent_ms`: since its host was heard, awake; `now_ms`: UTC."""
    if dispatch.is_settled:
        return Judgement(Activity.UNKNOWN, f"it is {dispatch.state}")
    if status is None:
        return Judgement(Activity.UNKNOWN, "nothing is known of its pane")
    if silent_ms >= HOST_SILENT_MS:
        return Judgement(Activity.UNKNOWN, f"{dispatch.launch.host} is silent")
    if is_gone(status):
        return Judgement(Activity.UNKNOWN, "its process has ended")
    if not status.hooked:
        return Judgement(Activity.UNKNOWN, "its agent says nothing by hooks")
    if status.evidence not in HEARD:
        return Judgement(Activity.UNKNOWN, f"its state is {status.evidence}")
    if status.prompts:
        return Judgement(Activity.BLOCKED, f"waits for a person: {status.prompts[0].ask}")
    if status.state is not State.WORKING or dispatch.state is DispatchState.FINISHED_UNVERIFIED:
        return Judgement(Activity.UNKNOWN, f"its pane is {status.state}")
    quiet_ms = max(0, now_ms - max(status.updated_ms, status.since_ms, dispatch.beat_ms or 0))
    if quiet_ms < QUIET_MS_MAX:
        return Judgement(Activity.WORKING, status.cause)
    return Judgement(Activity.WEDGED, f"its turn is open, and for {quiet_ms // 60_000} min nothing has come")
