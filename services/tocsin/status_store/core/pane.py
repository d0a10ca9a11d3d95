"""What is known of one pane, and the one state that follows from it.

Three facts of its session decide: the lead (the main agent's turn), the pending prompts, and the children that
were alive when the turn ended. Everything else here is what is needed to judge the next event.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import msgspec

from tocsin.contract.ids import DEFAULT_WORKSPACE, HostId, PaneId, WorkspaceId
from tocsin.contract.messages import (
    HISTORY_MAX,
    TURNS_MAX,
    Ask,
    CallNow,
    Evidence,
    PaneStatus,
    Past,
    Process,
    PromptSeen,
    Reading,
    State,
    Task,
    TitleNow,
    TurnSeen,
)

IDENTITIES_MAX = 64
"""Event ids kept per pane, to count a repeated one once."""

CALLS_MAX = 32
"""Tool calls and ended children kept per pane, to pair a prompt with its call and to know an end seen before its start."""

IN_FLIGHT_MAX = 16
"""Calls in flight that a status names; agents start a handful at once."""

EVENTS_MAX = 8
"""Names of the last events shown with a status."""


class Moment(msgspec.Struct, frozen=True):
    """When something is held to have happened: `at_ms` on our UTC clock, `awake_ms` on the clock that limits use."""

    at_ms: int
    awake_ms: int


class Lead(StrEnum):
    """The main agent's turn."""

    NONE = "none"
    WORKING = "working"
    DONE = "done"
    INTERRUPTED = "interrupted"


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt that stands. `owner` is the child that asks, empty for the lead."""

    number: int
    ask: Ask
    since_ms: int
    stamp: int
    owner: str = ""
    call: str | None = None
    tool: str | None = None
    input_hash: str | None = None
    target: str | None = None
    excerpt: str | None = None


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call that was started or ended. Stamps are the sender's, None while not seen."""

    owner: str
    id: str | None
    tool: str | None
    input_hash: str | None
    target: str | None = None
    started: int | None = None
    ended: int | None = None


class Child(msgspec.Struct, frozen=True, kw_only=True):
    """A subagent or a piece of background work that is alive."""

    id: str
    kind: str
    heard_awake_ms: int


class Pane(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything held about a pane. Stamps order events of its session (the sender's clock where it can be trusted)."""

    host: HostId
    pane: PaneId
    workspace: WorkspaceId = DEFAULT_WORKSPACE
    agent: str | None = None
    session: str | None = None
    past_sessions: tuple[str, ...] = ()
    hooked: bool = False
    cwd: str | None = None
    transcript: str | None = None
    locator: str | None = None

    # what is shown
    state: State = State.IDLE
    interrupted: bool = False
    since_ms: int = 0
    updated_ms: int = 0
    evidence: Evidence = Evidence.NO_SIGNAL
    cause: str = "no event yet"
    history: tuple[Past, ...] = ()

    # the three facts
    lead: Lead = Lead.NONE
    pending: tuple[Prompt, ...] = ()
    roster: tuple[Child, ...] = ()
    held: frozenset[str] = frozenset()  # of the roster: alive when the turn ended
    gone: bool = False

    # turns
    turn: int = 0
    turn_id: str | None = None
    turn_started: int = 0  # stamp
    turn_ended: int = 0  # stamp
    turn_ended_ms: int = 0
    turn_ended_awake_ms: int = 0
    ended_by_inference: bool = False
    queued: int | None = None  # stamp of a prompt that waits for the end of this turn
    ended_turn_ids: tuple[str, ...] = ()
    turns: tuple[TurnSeen, ...] = ()
    auto_reviewed_turn: str | None = None

    # order and duplicates
    seq: int = 0
    stamp: int = 0  # newest stamp of the lead
    identities: tuple[str, ...] = ()
    recent: tuple[tuple[str, int], ...] = ()  # identity and stamp of events that carry no id of their own
    calls: tuple[Call, ...] = ()
    ended_children: tuple[str, ...] = ()
    child_sessions: tuple[str, ...] = ()
    last_events: tuple[str, ...] = ()
    prompts_opened: int = 0
    prompts_closed: int = 0
    late: int = 0
    repeated: int = 0  # events that were delivered twice

    # the terminal
    live: bool | None = None
    process: Process | None = None
    life: str = ""
    title_number: int = 0
    mark_number: int = 0
    title: TitleNow | None = None
    key_ms: int | None = None
    key_cancels: bool | None = None
    cancel_awake_ms: int | None = None  # the agent's own sign of a cancel in this turn
    busy_shown: bool = False  # the title was busy in this turn
    rest: Moment | None = None  # the title has rested since, with no event of the turn behind it
    asked_shown: bool = False  # the title said "needs you" for what is pending
    dialog_gone_awake_ms: int | None = None  # that title has gone to rest since


def change(pane: Pane, /, **fields: Any) -> Pane:
    """The pane with some fields changed."""
    return msgspec.structs.replace(pane, **fields)


def state_of(pane: Pane) -> tuple[State, bool]:
    """The combined state and whether it is an interrupted end. Source: README, decision 5."""
    if pane.gone:
        return State.GONE, False
    if pane.pending:
        # A permission outweighs a question: it stops a call that has begun.
        return (State.BLOCKED if any(prompt.ask is Ask.PERMISSION for prompt in pane.pending) else State.WAITING), False
    if pane.lead is Lead.WORKING or pane.held:
        return State.WORKING, False
    if pane.lead is Lead.DONE:
        return State.DONE, False
    if pane.lead is Lead.INTERRUPTED:
        return State.DONE, True
    return State.IDLE, False


def settle(pane: Pane, at_ms: int, evidence: Evidence, cause: str) -> Pane:
    """The pane with its combined state brought up to its facts.

    The start of the state moves only when the state changes; the state that is left joins the history.
    """
    state, interrupted = state_of(pane)
    if (state, interrupted) == (pane.state, pane.interrupted):
        # An end keeps the words of its own event; what stands or runs is told anew.
        told = cause if state in (State.BLOCKED, State.WAITING, State.WORKING) else pane.cause
        return change(pane, evidence=evidence, cause=told)
    history = pane.history
    if pane.state not in (State.IDLE, State.GONE):
        left = Past(state=pane.state, since_ms=pane.since_ms, interrupted=pane.interrupted)
        history = (*history, left)[-HISTORY_MAX:]
    return change(pane, state=state, interrupted=interrupted, since_ms=at_ms, history=history, evidence=evidence, cause=cause)


def start_turn(pane: Pane, moment: Moment, stamp: int, turn_id: str | None, prompt: str | None) -> Pane:
    """The pane with a new turn of the lead running, and no dialog of the lead standing."""
    seen = TurnSeen(number=pane.turn + 1, started_ms=moment.at_ms, prompt=prompt)
    return change(
        close_prompts(pane, lambda prompt: not prompt.owner),
        lead=Lead.WORKING,
        gone=False,
        turn=pane.turn + 1,
        turn_id=turn_id,
        turn_started=stamp,
        ended_by_inference=False,
        queued=None,
        turns=(*pane.turns, seen)[-TURNS_MAX:],
        cancel_awake_ms=None,
        busy_shown=pane.title is not None and pane.title.reading is Reading.WORKING,
        rest=None,
    )


def resume_turn(pane: Pane, moment: Moment, stamp: int) -> Pane:
    """The pane with its last turn running again: what ended it was wrong, or somebody's hook made the agent go on."""
    if pane.lead is Lead.WORKING:
        return pane
    if pane.turn == 0:
        return start_turn(pane, moment, stamp, None, None)
    last = pane.turns[-1] if pane.turns else None
    turns = (*pane.turns[:-1], msgspec.structs.replace(last, ended_ms=None, interrupted=False)) if last else ()
    return change(
        pane, lead=Lead.WORKING, gone=False, ended_by_inference=False, turns=turns, held=frozenset(), rest=None,
        cancel_awake_ms=None,
    )  # fmt: skip


def end_turn(pane: Pane, moment: Moment, stamp: int, lead: Lead, *, inferred: bool = False) -> Pane:
    """The pane with its lead at rest: its own prompts are closed, and what is alive now holds the turn."""
    last = pane.turns[-1] if pane.turns else None
    turns = pane.turns
    if last is not None:
        turns = (*turns[:-1], msgspec.structs.replace(last, ended_ms=moment.at_ms, interrupted=lead is Lead.INTERRUPTED))
    ended_ids = pane.ended_turn_ids
    if pane.turn_id is not None and pane.turn_id not in ended_ids:
        ended_ids = (*ended_ids, pane.turn_id)[-EVENTS_MAX:]
    return change(
        close_prompts(pane, lambda prompt: not prompt.owner),
        lead=lead,
        turns=turns,
        turn_ended=max(stamp, pane.turn_started),
        turn_ended_ms=moment.at_ms,
        turn_ended_awake_ms=moment.awake_ms,
        ended_by_inference=inferred,
        ended_turn_ids=ended_ids,
        queued=None,
        held=frozenset(child.id for child in pane.roster),
        rest=None,
    )


def close_prompts(pane: Pane, closed: Callable[[Prompt], bool]) -> Pane:
    """The pane without the prompts for which `closed` is true."""
    left = tuple(prompt for prompt in pane.pending if not closed(prompt))
    if len(left) == len(pane.pending):
        return pane
    return change(
        pane,
        pending=left,
        prompts_closed=pane.prompts_closed + len(pane.pending) - len(left),
        asked_shown=pane.asked_shown and bool(left),
        dialog_gone_awake_ms=None,
    )


def without_child(pane: Pane, child: str) -> Pane:
    """The pane with a child gone: from the roster, from what holds the turn, and with its prompts."""
    return change(
        close_prompts(pane, lambda prompt: prompt.owner == child),
        roster=tuple(one for one in pane.roster if one.id != child),
        held=pane.held - {child},
    )


def status(pane: Pane) -> PaneStatus:
    """What is said of the pane."""
    return PaneStatus(
        host=pane.host,
        pane=pane.pane,
        workspace=pane.workspace,
        seq=pane.seq,
        state=pane.state,
        since_ms=pane.since_ms,
        updated_ms=pane.updated_ms,
        evidence=pane.evidence,
        cause=pane.cause,
        interrupted=pane.interrupted,
        hooked=pane.hooked,
        live=pane.live,
        agent=pane.agent,
        session=pane.session,
        transcript=pane.transcript,
        cwd=pane.cwd,
        process=pane.process,
        title=pane.title,
        background=tuple(Task(id=child.id, kind=child.kind) for child in pane.roster),
        prompts=tuple(
            PromptSeen(
                number=prompt.number, ask=prompt.ask, since_ms=prompt.since_ms, tool=prompt.tool, target=prompt.target,
                child=prompt.owner or None, excerpt=prompt.excerpt,
            )
            for prompt in pane.pending
        ),
        prompts_opened=pane.prompts_opened,
        prompts_closed=pane.prompts_closed,
        calls=tuple(
            CallNow(tool=call.tool, target=call.target, child=call.owner or None)
            for call in pane.calls
            if call.ended is None and call.started is not None and call.started >= pane.turn_started
        )[-IN_FLIGHT_MAX:],
        turn=pane.turn,
        turns=pane.turns,
        history=pane.history,
        last_key_ms=pane.key_ms,
        last_events=pane.last_events,
        locator=pane.locator,
        late=pane.late,
    )  # fmt: skip
