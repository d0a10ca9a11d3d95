"""Values for tests of mailboxes that name only what a test is about."""

from typing import Any

from builders import NOW_MS, a_status
from tocsin.agents.registry import AGENTS
from tocsin.contract.decision import Decision
from tocsin.contract.hosting import HostFact, Saw
from tocsin.contract.mail import CheckMail, MailType, Message, Rung, WakeState, Woken
from tocsin.contract.messages import PaneStatus, State, TurnSeen
from tocsin.contract.parties import Caller, Role
from tocsin.contract.refusals import Refusal
from tocsin.mailbox.core.delivery import ack, check
from tocsin.mailbox.core.follow_up import Bind, Open, Place, take
from tocsin.mailbox.core.ladder import Reader
from tocsin.mailbox.core.mailbox import Delivery, Mailbox, blank, fold
from tocsin.mailbox.core.post import arrive
from tocsin.mailbox.core.wake import Look, look, on_claim, on_idle, on_typed, type_step

COORDINATOR = Caller(role=Role.COORDINATOR, name="claude", host="h", pane="p1")
SUCCESSOR = Caller(role=Role.COORDINATOR, name="claude", host="h", pane="p2")
SHELL = Caller(role=Role.PERSON, name="dev@h")
WORKER = Caller(role=Role.WORKER, name="worker", host="h", pane="p9", dispatch="r1.t1.1", vouched=True)


def after(box: Mailbox, step: Decision | Refusal, at_ms: int = NOW_MS) -> Mailbox:
    """The mailbox after a step, which must not be a refusal."""
    assert isinstance(step, Decision), step
    return fold(box, step.events, at_ms)


def a_run_box(reader: Caller = COORDINATOR) -> Mailbox:
    """The mailbox of Run r1, read by a Claude Code in pane p1 of host h."""
    box = blank("run:r1")
    return after(box, take(box, (Bind(run="r1", generation=1, reader=reader),), NOW_MS))


def a_worker_box(dispatch: str = "r1.t1.1", agent: str = "codex") -> Mailbox:
    """The mailbox of a Dispatch whose worker runs in pane p9."""
    box = blank(f"dispatch:{dispatch}")
    return after(box, take(box, (Open(run="r1", task="t1", agent=agent, host="h"), Place(host=None, pane="p9")), NOW_MS))


def a_message(id_: str = "m1", type_: MailType = MailType.REPORT, **fields: Any) -> Message:
    """A report of Dispatch r1.t1.1."""
    defaults: dict[str, Any] = {"sender": "dispatch:r1.t1.1", "subject": f"subject of {id_}", "body": "text", "at_ms": NOW_MS}
    return Message(id=id_, type=type_, **(defaults | fields))


def with_mail(box: Mailbox, *messages: Message, at_ms: int = NOW_MS) -> Mailbox:
    """The mailbox with these in it."""
    for message in messages:
        box = after(box, arrive(box, message), at_ms)
    return box


def at_rest(turn: int = 1, ended_ms: int = NOW_MS - 60_000, **fields: Any) -> PaneStatus:
    """A pane whose agent has ended its last turn."""
    turns = (TurnSeen(number=turn, started_ms=ended_ms - 5_000, ended_ms=ended_ms),)
    defaults: dict[str, Any] = {"state": State.DONE, "since_ms": ended_ms, "updated_ms": ended_ms, "turn": turn, "turns": turns}
    return a_status(**(defaults | fields))


def at_work(turn: int = 2, started_ms: int = NOW_MS, **fields: Any) -> PaneStatus:
    """A pane whose agent is in a turn."""
    turns = (TurnSeen(number=turn, started_ms=started_ms),)
    defaults: dict[str, Any] = {"state": State.WORKING, "since_ms": started_ms, "updated_ms": started_ms, "turn": turn, "turns": turns}
    return a_status(**(defaults | fields))


def a_reader(status: PaneStatus | None, agent: str | None = None) -> Reader:
    """Whoever runs in that pane."""
    name = agent or (status.agent if status is not None else None)
    return Reader(status, AGENTS.get(name) if name is not None else None)


class Desk:
    """One mailbox, its reader and a clock, driven as the service drives them; keeps what was fired and what was recorded."""

    def __init__(self, box: Mailbox, status: PaneStatus | None, agent: str | None = None) -> None:
        self.box = box
        self.status = status
        self.agent = agent
        self.now_ms = NOW_MS
        self.again_ms: int | None = None
        self.fired: list[Woken] = []
        self.steps: list[Woken] = []

    @property
    def reader(self) -> Reader:
        return a_reader(self.status, self.agent)

    @property
    def wakes(self) -> list[str]:
        """Wakes for which a channel was used, each once."""
        return list(dict.fromkeys(event.wake for event in self.fired))

    @property
    def rungs(self) -> list[Rung | None]:
        return [event.rung for event in self.fired]

    @property
    def state(self) -> WakeState | None:
        return self.box.wake.state if self.box.wake is not None else None

    def record(self, found: Look) -> None:
        if found.event is not None:
            self.steps.append(found.event)
            self.box = fold(self.box, (found.event,), self.now_ms)
            if found.fire:
                self.fired.append(found.event)

    def look(self) -> None:
        """Look until nothing follows."""
        for _ in range(10):
            found = look(self.box, self.reader, self.now_ms)
            self.again_ms = found.again_ms
            self.record(found)
            if found.event is None:
                return
        raise AssertionError("the steps of a wake chase each other")

    def tell(self, *messages: Message) -> None:
        self.box = with_mail(self.box, *messages, at_ms=self.now_ms)
        self.look()

    def pane(self, status: PaneStatus | None) -> None:
        self.status = status
        self.look()

    def pass_ms(self, milliseconds: int) -> None:
        """Let time pass, looking whenever it was asked for."""
        end_ms = self.now_ms + milliseconds
        while self.again_ms is not None and self.again_ms <= end_ms:
            self.now_ms = max(self.now_ms, self.again_ms)
            self.look()
            if self.again_ms is not None and self.again_ms <= self.now_ms:
                raise AssertionError("asks to be looked at in the past")
        self.now_ms = end_ms
        self.look()

    def check(self) -> Delivery:
        """The reader takes its mail."""
        self.box = after(self.box, check(self.box, CheckMail(), self.now_ms), self.now_ms)
        self.look()
        assert self.box.delivery is not None
        return self.box.delivery

    def ack(self) -> None:
        assert self.box.delivery is not None
        self.box = after(self.box, ack(self.box, self.box.delivery.id), self.now_ms)
        self.look()

    def hook(self, goes_on: bool = False) -> bool:
        """The idle hook of the agent asks; whether it is answered."""
        found = on_idle(self.box, self.reader, self.now_ms, goes_on, self.now_ms)
        self.record(found)
        return found.fire

    def claim(self) -> bool:
        """A parked handler asks; whether it gets the wake."""
        found = on_claim(self.box, self.reader, self.now_ms)
        self.record(found)
        return found.fire

    def hands(self, saw: Saw, **fields: Any) -> None:
        """What became of the last order to type."""
        assert self.box.wake is not None
        fact = HostFact(host="h", dispatch=self.box.address, fence=1, step=type_step(self.box.wake), saw=saw, at_ms=self.now_ms, **fields)
        self.record(on_typed(self.box, fact, self.now_ms))
        self.look()
