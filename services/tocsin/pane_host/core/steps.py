"""What an order has come to, read from its journal: what is done, what was broken off, and what may be done again.

Each order is a row of steps. A step is noted before it begins and after it has been done. A host that is killed in
between finds a step that began and has no end; this table says what may follow then.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import msgspec

from tocsin.contract.hosting import HostCommand, HostFact, Saw


class Step(StrEnum):
    """Everything that hands do to a machine, by name."""

    # starting
    WORKTREE = "worktree"  # branch and checkout
    SETUP = "setup"  # the command that prepares a new worktree
    PREPARE = "prepare"  # the pane's own folder, brief and launch files
    TERMINAL = "terminal"  # the terminal, with a runner that waits in it
    TOLD = "told"  # the bus has it on record that there is a terminal
    GO = "go"  # the runner may start the agent
    # writing into a live pane
    PASTE = "paste"
    ENTER = "enter"
    INTERRUPT = "interrupt"
    # ending
    ARCHIVE = "archive"
    END = "end"
    CLOSE = "close"
    # cleaning up
    TRASH = "trash"
    RESTORE = "restore"


class BrokenOff(StrEnum):
    """What may follow when a step began and its end is not noted."""

    LOOK_AGAIN = "look_again"  # the step looks what is there before it does anything: doing it again does nothing twice
    UNKNOWN = "unknown"  # whether it took effect cannot be told, and twice would be wrong


AFTER: Mapping[Step, BrokenOff] = MappingProxyType(
    {
        Step.WORKTREE: BrokenOff.LOOK_AGAIN,
        Step.SETUP: BrokenOff.LOOK_AGAIN,  # it runs under a runner of its own, which goes on without us
        Step.PREPARE: BrokenOff.LOOK_AGAIN,
        Step.TERMINAL: BrokenOff.LOOK_AGAIN,
        Step.TOLD: BrokenOff.LOOK_AGAIN,  # the same message id counts once
        Step.GO: BrokenOff.LOOK_AGAIN,
        Step.PASTE: BrokenOff.LOOK_AGAIN,  # the composer shows whether the text arrived
        Step.ENTER: BrokenOff.UNKNOWN,  # an Enter that may have been sent is never sent again
        Step.INTERRUPT: BrokenOff.UNKNOWN,  # twice may open a menu, or end the agent
        Step.ARCHIVE: BrokenOff.LOOK_AGAIN,
        Step.END: BrokenOff.LOOK_AGAIN,
        Step.CLOSE: BrokenOff.LOOK_AGAIN,
        Step.TRASH: BrokenOff.LOOK_AGAIN,
        Step.RESTORE: BrokenOff.LOOK_AGAIN,
    }
)
"""Every step, and what a host does that finds it broken off."""


LAST = frozenset(
    {
        Saw.REFUSED, Saw.PROMPT_WRITTEN, Saw.PROMPT_LEFT, Saw.TYPED, Saw.TYPE_HELD, Saw.INTERRUPTED, Saw.NOT_CONFIRMED,
        Saw.WORKTREE_TRASHED, Saw.WORKTREE_KEPT, Saw.WORKTREE_RESTORED, Saw.EXPIRED, Saw.UNKNOWN_STEP,
    }
)  # fmt: skip
"""Facts that end an order: once one is noted, nothing more is done for it, whoever was killed before it was noted as over."""


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of an order's journal: exactly one of its fields, and `data` beside `began` or `did`."""

    order: HostCommand | None = None
    began: str | None = None
    did: str | None = None
    data: dict[str, Any] = msgspec.field(default_factory=dict)
    fact: HostFact | None = None
    said: int | None = None  # the number of a fact that the bus has on record
    over: bool = False  # nothing is left to do


@dataclass
class Account:
    """What the lines of one order add up to."""

    order: HostCommand
    began: dict[Step, dict[str, Any]] = field(default_factory=dict)
    did: dict[Step, dict[str, Any]] = field(default_factory=dict)
    facts: list[HostFact] = field(default_factory=list)
    said: set[int] = field(default_factory=set)
    over: bool = False

    def add(self, entry: Entry) -> None:
        """Take one more line into account. Steps of a later version are ignored."""
        if entry.began in set(Step):
            self.began[Step(entry.began)] = entry.data
        elif entry.did in set(Step):
            self.did[Step(entry.did)] = entry.data
        elif entry.fact is not None:
            self.facts.append(entry.fact)
        elif entry.said is not None:
            self.said.add(entry.said)
        elif entry.over:
            self.over = True

    @property
    def unsaid(self) -> list[int]:
        """Numbers of the facts that the bus may not have, oldest first."""
        return [number for number in range(len(self.facts)) if number not in self.said]


def read_account(lines: Iterable[bytes]) -> Account | None:
    """What a journal says; None when not even the order is in it. A line that was cut off by a crash says nothing."""
    account: Account | None = None
    for line in lines:
        try:
            entry = msgspec.json.decode(line, type=Entry)
        except msgspec.MsgspecError:
            continue
        if account is None:
            account = Account(entry.order) if entry.order is not None else None
        else:
            account.add(entry)
    return account


class Standing(StrEnum):
    """Where one step of an order stands."""

    NEW = "new"
    DONE = "done"
    BROKEN_OFF = "broken_off"  # and may be looked at again
    UNKNOWN = "unknown"


def standing(account: Account, step: Step) -> Standing:
    """Where `step` stands, and so whether it may be done now."""
    if step in account.did:
        return Standing.DONE
    if step not in account.began:
        return Standing.NEW
    return Standing.BROKEN_OFF if AFTER[step] is BrokenOff.LOOK_AGAIN else Standing.UNKNOWN


def expired(command: HostCommand, now_ms: int) -> bool:
    """True for an order that was too old when it was read."""
    return command.expires_ms is not None and now_ms >= command.expires_ms


def fact_id(fact: HostFact, number: int) -> str:
    """What the bus tells a fact by when it is said again: facts of one order are numbered."""
    return f"{fact.host}|{fact.dispatch}|{fact.fence}|{fact.step}|{number}"
