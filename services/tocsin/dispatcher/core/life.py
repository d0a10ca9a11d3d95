"""The life of one attempt, as one table. What is not written there is refused."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType

from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.run import SETTLED, DispatchState


class DispatchEvent(StrEnum):
    """What can happen to an attempt."""

    # its host
    TAKEN = "taken"  # the order is being carried out: a worktree, its setup
    SETUP_ENDED = "setup_ended"
    TERMINAL_MADE = "terminal_made"
    AGENT_STARTED = "agent_started"
    PROMPT_WRITTEN = "prompt_written"  # into a live pane, with its one Enter
    PROMPT_LEFT = "prompt_left"  # into a live pane, and its Enter was not sent
    HOST_REFUSED = "host_refused"  # nothing was started, and nothing half-made is left
    ORDER_EXPIRED = "order_expired"  # nobody carried it out in time
    STEP_UNKNOWN = "step_unknown"  # its host was killed in the middle
    EXIT_PROVEN = "exit_proven"
    # its pane
    TURN_SEEN = "turn_seen"
    TURN_NOT_SEEN = "turn_not_seen"
    TURN_ENDED = "turn_ended"  # at rest, no report, and nobody human is awaited
    # contact
    HOST_SILENT = "host_silent"
    HOST_BACK = "host_back"  # a turn had been seen before
    HOST_BACK_EARLY = "host_back_early"  # none had
    # its worker
    REPORTED = "reported"
    OUTCOME_SUCCEEDED = "outcome_succeeded"
    OUTCOME_FAILED = "outcome_failed"
    # who owns it
    STOP_ASKED = "stop_asked"
    STOP_PROVEN = "stop_proven"
    STOP_NOT_CONFIRMED = "stop_not_confirmed"
    ABANDONED = "abandoned"
    SUPERSEDED = "superseded"


S, E = DispatchState, DispatchEvent

UNSETTLED = frozenset(DispatchState) - SETTLED
OPEN = frozenset(UNSETTLED - {S.REPORTED})
"""States in which its worker may still be at work, or nobody knows."""


def _from(
    states: Iterable[DispatchState], event: DispatchEvent, to: DispatchState
) -> dict[tuple[DispatchState, DispatchEvent], DispatchState]:
    return {(state, event): to for state in states}


LIFE: Mapping[tuple[DispatchState, DispatchEvent], DispatchState] = MappingProxyType(
    {
        # From an order to a terminal with an agent in it.
        (S.REQUESTED, E.TAKEN): S.STARTING,
        (S.REQUESTED, E.SETUP_ENDED): S.STARTING,
        (S.REQUESTED, E.TERMINAL_MADE): S.STARTING,
        (S.REQUESTED, E.AGENT_STARTED): S.STARTING,
        (S.REQUESTED, E.PROMPT_WRITTEN): S.STARTING,
        (S.STARTING, E.TAKEN): S.STARTING,
        (S.STARTING, E.SETUP_ENDED): S.STARTING,
        (S.STARTING, E.TERMINAL_MADE): S.STARTING,
        (S.STARTING, E.AGENT_STARTED): S.STARTING,
        (S.STARTING, E.PROMPT_WRITTEN): S.STARTING,
        # Facts that arrive behind others add what they know and move nothing.
        (S.RUNNING, E.TERMINAL_MADE): S.RUNNING,
        (S.RUNNING, E.AGENT_STARTED): S.RUNNING,
        (S.RUNNING, E.PROMPT_WRITTEN): S.RUNNING,
        (S.START_UNKNOWN, E.TERMINAL_MADE): S.STARTING,  # its host went on where it was killed
        (S.START_UNKNOWN, E.AGENT_STARTED): S.STARTING,
        (S.START_UNKNOWN, E.PROMPT_WRITTEN): S.STARTING,
        (S.FINISHED_UNVERIFIED, E.TERMINAL_MADE): S.FINISHED_UNVERIFIED,
        (S.FINISHED_UNVERIFIED, E.AGENT_STARTED): S.FINISHED_UNVERIFIED,
        (S.STOPPING, E.TERMINAL_MADE): S.STOPPING,
        (S.STOPPING, E.AGENT_STARTED): S.STOPPING,
        # Readiness is an observed turn start, never an accepted write.
        (S.REQUESTED, E.TURN_SEEN): S.RUNNING,
        (S.STARTING, E.TURN_SEEN): S.RUNNING,
        (S.STARTING, E.TURN_NOT_SEEN): S.START_UNKNOWN,  # not failed: the agent may be at work, so it keeps its rights
        (S.START_UNKNOWN, E.TURN_SEEN): S.RUNNING,
        (S.REQUESTED, E.PROMPT_LEFT): S.START_UNKNOWN,  # a person may send what stands in the composer
        (S.STARTING, E.PROMPT_LEFT): S.START_UNKNOWN,
        (S.REQUESTED, E.STEP_UNKNOWN): S.START_UNKNOWN,
        (S.STARTING, E.STEP_UNKNOWN): S.START_UNKNOWN,
        # Its host says that nothing was started.
        **_from((S.REQUESTED, S.STARTING, S.START_UNKNOWN, S.CONTACT_LOST), E.HOST_REFUSED, S.FAILED),
        (S.REQUESTED, E.ORDER_EXPIRED): S.FAILED,
        (S.CONTACT_LOST, E.ORDER_EXPIRED): S.FAILED,
        (S.STOPPING, E.HOST_REFUSED): S.STOPPED,
        (S.STOPPING, E.ORDER_EXPIRED): S.STOPPED,
        # A host that is silent: neither dead nor done.
        **_from((S.REQUESTED, S.STARTING, S.RUNNING, S.START_UNKNOWN), E.HOST_SILENT, S.CONTACT_LOST),
        (S.CONTACT_LOST, E.HOST_BACK): S.RUNNING,
        (S.CONTACT_LOST, E.HOST_BACK_EARLY): S.START_UNKNOWN,
        (S.CONTACT_LOST, E.TAKEN): S.STARTING,
        (S.CONTACT_LOST, E.SETUP_ENDED): S.STARTING,
        (S.CONTACT_LOST, E.TERMINAL_MADE): S.STARTING,
        (S.CONTACT_LOST, E.AGENT_STARTED): S.STARTING,
        (S.CONTACT_LOST, E.PROMPT_WRITTEN): S.STARTING,
        (S.CONTACT_LOST, E.PROMPT_LEFT): S.START_UNKNOWN,
        (S.CONTACT_LOST, E.STEP_UNKNOWN): S.START_UNKNOWN,
        (S.CONTACT_LOST, E.TURN_SEEN): S.RUNNING,
        # Quiet or gone without a report is neither success nor failure.
        **_from((S.RUNNING, S.START_UNKNOWN, S.CONTACT_LOST), E.TURN_ENDED, S.FINISHED_UNVERIFIED),
        **_from(OPEN - {S.STOPPING}, E.EXIT_PROVEN, S.FINISHED_UNVERIFIED),
        (S.FINISHED_UNVERIFIED, E.TURN_SEEN): S.RUNNING,  # it only rested
        # A report is a claim. It counts from every state in which the attempt has its rights.
        **_from(OPEN, E.REPORTED, S.REPORTED),
        (S.REPORTED, E.OUTCOME_SUCCEEDED): S.SUCCEEDED,
        (S.REPORTED, E.OUTCOME_FAILED): S.FAILED,
        # Ends that somebody asks for.
        **_from(OPEN, E.STOP_ASKED, S.STOPPING),
        (S.STOPPING, E.STOP_PROVEN): S.STOPPED,
        (S.STOPPING, E.EXIT_PROVEN): S.STOPPED,  # a stop that meets an exit has what it wanted
        (S.STOPPING, E.STOP_NOT_CONFIRMED): S.STOPPING,
        (S.FINISHED_UNVERIFIED, E.STOP_PROVEN): S.STOPPED,
        **_from(OPEN, E.ABANDONED, S.ABANDONED),
        **_from(OPEN, E.SUPERSEDED, S.SUPERSEDED),
    }
)  # fmt: skip


def advance(state: DispatchState, event: DispatchEvent) -> DispatchState | Refusal:
    """The state after `event`. Refuses: lifecycle_conflict, when LIFE has no such step."""
    after = LIFE.get((state, event))
    return after if after is not None else Refusal(Code.LIFECYCLE_CONFLICT, f"{event} while {state}")
