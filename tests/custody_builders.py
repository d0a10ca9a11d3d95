"""One custody at a desk: requests and notices in, its state and refusals out."""

from typing import Any

from builders import NOW_MS
from tocsin.contract.custody import CustodyRecorded, CustodyState, Release, Retain, UndoRemoval
from tocsin.contract.hosting import HostCommand, HostFact, Saw
from tocsin.contract.messages import Process
from tocsin.contract.parties import Caller, Role
from tocsin.contract.refusals import Refusal
from tocsin.contract.run import OnSettle, Receipt
from tocsin.release_accountant.core import notices
from tocsin.release_accountant.core.custody import SERVICE, Custody, blank, evolve
from tocsin.release_accountant.core.decide import Asks, decide
from tocsin.release_accountant.core.moves import Around
from tocsin.release_accountant.core.notices import Hold
from tocsin.release_accountant.core.orders import orders

A1 = "r1.build.1"
HOST = "h"
RUNNER = Process(pid=4711, started_ms=NOW_MS - 60_000, boot="b1")
COORDINATOR = Caller(role=Role.COORDINATOR, name="dev@h")
PERSON = Caller(role=Role.PERSON, name="ann@h")
REVIEW = Hold(gate="review", why="the review review of its work is open")


def a_fact(saw: Saw, **fields: Any) -> HostFact:
    """What host h has seen of attempt A1 in its terminal."""
    defaults: dict[str, Any] = {
        "host": HOST, "dispatch": A1, "fence": 1, "step": "start", "at_ms": NOW_MS, "pane": "p1", "process": RUNNER, "path": "/w/build",
    }  # fmt: skip
    return HostFact(saw=saw, **(defaults | fields))


class Desk:
    """A custody that is decided about, with a clock that stands unless it is told to go on."""

    def __init__(self, custody: str = A1) -> None:
        self.state: Custody = blank(custody)
        self.now_ms = NOW_MS
        self.workers_there: tuple[str, ...] = ()
        self.gate_is_open = True
        self.records = 0

    def tell(self, ask: Asks, caller: Caller = SERVICE) -> dict[str, Any] | Refusal:
        """Decide and record; returns what the caller is told."""
        around = Around(now_ms=self.now_ms, caller=caller, workers_there=self.workers_there, gate_is_open=self.gate_is_open)
        decision = decide(self.state, ask, around)
        if isinstance(decision, Refusal):
            return decision
        if decision.events:
            self.records += 1
            self.state = evolve(
                self.state,
                CustodyRecorded(
                    custody=self.state.id, request="q", caller=caller, payload_hash="", events=decision.events,
                    receipt=Receipt(request="q"), at_ms=self.now_ms,
                ),
            )  # fmt: skip
        return dict(decision.result)

    # what happens, by name

    def made(self, worktree: bool = True, **fields: Any) -> "Desk":
        """Its worktree (made by us or not) and its terminal are there."""
        self.sees(Saw.WORKTREE_READY, made=worktree, branch="tocsin/build")
        return self.sees(Saw.TERMINAL_MADE, **fields)

    def settled(self, outcome: str = "succeeded", on_settle: OnSettle | None = None, hold: Hold | None = None) -> "Desk":
        self.tell(notices.HasSettled(host=HOST, outcome=outcome, on_settle=on_settle, hold=hold))
        return self

    def asks(self, outcome: str = "succeeded") -> "Desk":
        """Settled, with a policy that leaves the decision to somebody."""
        return self.settled(outcome, OnSettle.ASK)

    def sees(self, saw: Saw, **fields: Any) -> "Desk":
        self.now_ms += 1
        self.tell(notices.Observed(fact=a_fact(saw, **({"at_ms": self.now_ms} | fields))))
        return self

    def answers(self, saw: Saw, **fields: Any) -> "Desk":
        """Its host answers the order that stands for it."""
        return self.sees(saw, step=self.order().step, **fields)

    def release(self, caller: Caller = COORDINATOR, **fields: Any) -> dict[str, Any] | Refusal:
        return self.tell(Release(**fields), caller)

    def retain(self, caller: Caller = COORDINATOR, **fields: Any) -> dict[str, Any] | Refusal:
        return self.tell(Retain(**({"reason": "I look at it"} | fields)), caller)

    def undo(self, caller: Caller = COORDINATOR) -> dict[str, Any] | Refusal:
        return self.tell(UndoRemoval(), caller)

    def orders(self) -> tuple[HostCommand, ...]:
        return orders(self.state, self.now_ms)

    def order(self) -> HostCommand:
        (order,) = self.orders()
        return order


def is_closing(desk: Desk) -> bool:
    """True while something is told to end it."""
    return desk.state.state in (CustodyState.RELEASING, CustodyState.RELEASE_PENDING)
