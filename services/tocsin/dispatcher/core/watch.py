"""What a pane, its host and the passing of time show of an attempt. Silence is never an end."""

from typing import NamedTuple

from tocsin.contract.messages import Evidence, PaneStatus, State, TurnSeen
from tocsin.contract.run import DispatchState
from tocsin.dispatcher.core.life import DispatchEvent
from tocsin.dispatcher.core.run import Dispatch

READY_MS_MAX = 60_000
"""How long a turn start is awaited, from the end of setup. Slow agents need most of it; beyond it the start is unknown, not failed."""

REST_MS = 5_000
"""How long a pane must rest before its turn counts as over: a report may be on its way in a file. A missing one is due within 10 s."""

INTERRUPTED_MS = 60_000
"""The same after an interruption: a person who stops an agent is about to tell it something."""

HOST_SILENT_MS = 95_000
"""A host says its last values again every 30 s; three missed ones are silence."""

HEARD = frozenset({Evidence.OBSERVED, Evidence.INFERRED})
"""Evidence from this life of the agent: what is restored or stale shows nothing new."""


class Sight(NamedTuple):
    """What can be seen of an attempt now. Durations are awake milliseconds: sleep is not silence.

    `waited_ms`: since a turn start is awaited, None while it is not. `rest_ms`: since this rest of its pane was first
    seen. `silent_ms`: since its host was last heard. `ended_ms`: since it counts as finished. `text`: the keyed hash
    of what it was given, as its agent's hook would name it.
    """

    status: PaneStatus | None
    text: str | None = None
    waited_ms: int | None = None
    rest_ms: int = 0
    silent_ms: int = 0
    ended_ms: int = 0


def due(dispatch: Dispatch, sight: Sight) -> tuple[DispatchEvent, str] | None:
    """What has happened to an unsettled attempt, and how that is known; None: nothing new."""
    state, status = dispatch.state, sight.status
    if state is DispatchState.STOPPING:
        return (DispatchEvent.EXIT_PROVEN, "its terminal or process is gone") if is_gone(status) else None
    if is_gone(status):
        return None if dispatch.exited else (DispatchEvent.EXIT_PROVEN, "its terminal or process is gone")
    turn = first_turn(dispatch, status, sight.text)
    if turn is not None and state in STARTS:
        return DispatchEvent.TURN_SEEN, f"its turn {turn.number} has begun"
    if state is DispatchState.FINISHED_UNVERIFIED:
        return (DispatchEvent.TURN_SEEN, "it works again") if not dispatch.exited and works_again(dispatch, status) else None
    if sight.silent_ms >= HOST_SILENT_MS:
        return None if state is DispatchState.CONTACT_LOST else (DispatchEvent.HOST_SILENT, f"{dispatch.launch.host} is silent")
    if state is DispatchState.CONTACT_LOST:
        return DispatchEvent.HOST_BACK, f"{dispatch.launch.host} is heard again"
    if state is DispatchState.STARTING and sight.waited_ms is not None and sight.waited_ms >= READY_MS_MAX:
        return DispatchEvent.TURN_NOT_SEEN, f"no turn start was seen within {READY_MS_MAX // 1000} s; whether it works is unknown"
    if state is DispatchState.RUNNING and status is not None and is_at_rest(dispatch, status, sight.text):
        limit = INTERRUPTED_MS if status.interrupted else REST_MS
        if sight.rest_ms >= limit:
            return (
                DispatchEvent.TURN_ENDED,
                "its turn was interrupted, and no report came" if status.interrupted else "its turn has ended, and no report came",
            )
    return None


STARTS = (DispatchState.REQUESTED, DispatchState.STARTING, DispatchState.START_UNKNOWN, DispatchState.CONTACT_LOST)


def is_gone(status: PaneStatus | None) -> bool:
    """Proven: the terminal is missing in a complete listing of the same server, or the process has ended."""
    return status is not None and (status.live is False or status.state is State.GONE)


def first_turn(dispatch: Dispatch, status: PaneStatus | None, text: str | None) -> TurnSeen | None:
    """The turn in which the attempt began, as the agent's own hook told it; in a live pane only the one with our text."""
    if status is None:
        return None
    for turn in status.turns:
        if not dispatch.is_reuse or (text is not None and turn.prompt == text):
            return turn
    return None


def is_at_rest(dispatch: Dispatch, status: PaneStatus, text: str | None) -> bool:
    """Its last turn is over, nothing of it runs on, and it waits for nobody human."""
    if status.state not in (State.DONE, State.IDLE) or status.prompts or status.background or status.evidence not in HEARD:
        return False
    if not status.turns or status.turns[-1].ended_ms is None:
        return False
    begun = first_turn(dispatch, status, text)
    # Begun long ago, it may have left the list of the last turns.
    return begun is not None or dispatch.turn_seen_ms is not None


def works_again(dispatch: Dispatch, status: PaneStatus | None) -> bool:
    """A turn runs that began after the attempt was taken for finished."""
    if status is None or status.state not in (State.WORKING, State.BLOCKED, State.WAITING) or status.evidence not in HEARD:
        return False
    return bool(status.turns) and status.turns[-1].ended_ms is None and status.turns[-1].started_ms > dispatch.since_ms


def missing(dispatch: Dispatch, sight: Sight) -> str | None:
    """Why a report is missing, once that is due; None while it is not, or while somebody human is awaited."""
    if dispatch.state is not DispatchState.FINISHED_UNVERIFIED or dispatch.missing_told or dispatch.report is not None:
        return None
    if not dispatch.exited and sight.status is not None and sight.status.prompts:
        return None
    if sight.ended_ms < (REST_MS if dispatch.exited else 0):
        return None
    return dispatch.why or "it has ended, and no report came"
