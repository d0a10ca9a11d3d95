"""The ladder: how the reader of a mailbox stands, and by which ways it can be called. What each agent can do stands in its own file.

Source: README, decisions on wakes; facts on real clients, sections 3, 4 and 9.
"""

from enum import StrEnum

import msgspec

from tocsin.agents.agent import Agent, WakeWay
from tocsin.contract.mail import Rung
from tocsin.contract.messages import Evidence, PaneStatus, State

KEY_QUIET_MS = 5_000
"""After a person's last key in the pane nothing is done to it for so long."""

DRAFT_QUIET_MS = 120_000
"""A draft that may stand and cannot be looked for holds a native wake for so long: such a wake lets the draft be, but not its writer."""

IDLE_HOOK_MS = 500
"""After the end of a turn the agent's idle hook has so long to ask, before another way is taken: its answer disturbs no draft.
hook-ingest puts the end on record, then asks within 150 ms."""

NATIVE = frozenset({WakeWay.NATIVE_PARK, WakeWay.NATIVE_PLUGIN})


class Stand(StrEnum):
    """How a reader stands."""

    AT_REST = "at rest"
    WORKS = "works"
    ASKED = "asked"  # a prompt stands
    TYPING = "typing"  # a person's hand is in the pane
    ABSENT = "absent"  # gone, or nothing is known of it


class Reader(msgspec.Struct, frozen=True):
    """The pane in which a mailbox is read, as far as it is known, and what its agent can do."""

    status: PaneStatus | None
    agent: Agent | None

    @property
    def ways(self) -> frozenset[WakeWay]:
        """How it can be woken."""
        return self.agent.wake if self.agent is not None else frozenset()

    @property
    def turn(self) -> int:
        """Number of its last turn."""
        return self.status.turn if self.status is not None else 0

    @property
    def in_turn(self) -> bool:
        """Whether its lead is in a turn. Background work does not count: the lead is at rest beside it."""
        status = self.status
        if status is None or status.state is not State.WORKING:
            return False
        return not status.turns or status.turns[-1].ended_ms is None

    def may_hold_draft(self) -> bool:
        """Whether a person has pressed a key since the last turn ended, so that a draft may stand in the composer."""
        status = self.status
        if status is None or status.last_key_ms is None or self.in_turn:
            return False
        ended_ms = status.turns[-1].ended_ms if status.turns else None
        return status.last_key_ms > (ended_ms if ended_ms is not None else status.since_ms)


class Standing(msgspec.Struct, frozen=True):
    """How it stands, why, and when to look again if nothing is heard before."""

    stand: Stand
    why: str = ""
    again_ms: int | None = None


def standing(reader: Reader, now_ms: int) -> Standing:
    """How a reader stands now. Silence is neither rest nor death: what is not known is absent."""
    status = reader.status
    if status is None:
        return Standing(Stand.ABSENT, "nothing is known of a pane in which it is read")
    if status.state is State.GONE or status.live is False:
        return Standing(Stand.ABSENT, "its pane is gone")
    if status.state in (State.BLOCKED, State.WAITING):
        return Standing(Stand.ASKED, "a prompt stands")
    if status.evidence is Evidence.NO_SIGNAL:
        return Standing(Stand.ABSENT, "nothing tells what its agent does")
    if reader.in_turn:
        if status.evidence is Evidence.STALE:
            return Standing(Stand.ABSENT, "its agent was last heard of too long ago")
        return Standing(Stand.WORKS, "the agent works")
    if status.last_key_ms is not None and now_ms - status.last_key_ms < KEY_QUIET_MS:
        return Standing(Stand.TYPING, "a person is typing", status.last_key_ms + KEY_QUIET_MS)
    return Standing(Stand.AT_REST)


class Choice(msgspec.Struct, frozen=True):
    """The next rung; None: there is none, or none yet, which `why` and `again_ms` say."""

    rung: Rung | None
    why: str = ""
    again_ms: int | None = None


def next_rung(reader: Reader, tried: tuple[Rung, ...], now_ms: int) -> Choice:
    """By which way to call a reader that is at rest; `tried`: the ways that were tried for this wake."""
    native = Rung.NATIVE if reader.ways & NATIVE and Rung.NATIVE not in tried else None
    typed = Rung.TYPED if WakeWay.TYPED in reader.ways and Rung.TYPED not in tried else None
    if not reader.may_hold_draft():
        return Choice(native or typed)
    if typed is not None:
        # Whoever types looks into the composer first, and leaves a draft alone.
        return Choice(typed)
    if native is None:
        return Choice(None)
    key_ms = reader.status.last_key_ms if reader.status is not None else None
    quiet_ms = (key_ms or 0) + DRAFT_QUIET_MS
    return Choice(native) if now_ms >= quiet_ms else Choice(None, "a draft may stand", quiet_ms)


def may_answer_idle_hook(reader: Reader, in_a_row: int) -> bool:
    """Whether the agent's idle hook can be answered, after so many answers in a row: beyond its cap it drops them in silence."""
    if reader.agent is None or WakeWay.IDLE_HOOK not in reader.ways:
        return False
    return reader.agent.idle_cap is None or in_a_row < reader.agent.idle_cap


def idle_hook_until(reader: Reader, tried: tuple[Rung, ...], in_a_row: int, now_ms: int) -> int | None:
    """Until when the idle hook of the turn that has just ended may still ask; None: it does not, or its time is over."""
    last = reader.status.turns[-1] if reader.status is not None and reader.status.turns else None
    if last is None or last.ended_ms is None or last.interrupted:
        return None
    if Rung.IDLE_HOOK in tried or not may_answer_idle_hook(reader, in_a_row):
        return None
    # An end that lies ahead was told by another clock.
    return last.ended_ms + IDLE_HOOK_MS if last.ended_ms <= now_ms < last.ended_ms + IDLE_HOOK_MS else None
