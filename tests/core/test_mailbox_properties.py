"""Over any order of mail, reads, hooks, restarts and lost words: nothing is lost, nothing comes twice, nobody is woken twice for it."""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from builders import NOW_MS
from mailbox_builders import COORDINATOR, SUCCESSOR, Desk, a_message, a_run_box, after, at_rest, at_work
from tocsin.contract.decision import Decision
from tocsin.contract.hosting import Saw
from tocsin.contract.mail import ACTIONABLE, CheckMail, Delivered, MailType, Rung, WakeState
from tocsin.contract.messages import State
from tocsin.contract.refusals import Refusal
from tocsin.ledger.family import Layout
from tocsin.ledger.receipts import Receipts
from tocsin.mailbox.core import delivery
from tocsin.mailbox.core.delivery import LEASE_MS, ack, check, lapse
from tocsin.mailbox.core.follow_up import Bind, Join, take
from tocsin.mailbox.core.mailbox import WAKES_PER_HOUR_MAX
from tocsin.mailbox.core.wake import ENDED, HOUR_MS, LIFE
from tocsin.mailbox.store import FAMILY

TYPES = st.sampled_from([MailType.REPORT, MailType.QUESTION, MailType.STATUS, MailType.READY, MailType.MISSING])
AGENTS = st.sampled_from(["claude", "codex", "gemini", "qwen", "opencode", "pi", "copilot", "aider"])
LAYOUT = Layout(FAMILY)


class Mailboxes(RuleBasedStateMachine):
    """One Run's mailbox, everything that can happen to it in any order."""

    @initialize(agent=AGENTS)
    def start(self, agent: str) -> None:
        self.agent = agent
        self.desk = Desk(a_run_box(), at_rest(agent=agent))
        self.turn = 1
        self.count = 0
        self.sent: list[str] = []
        self.acked: list[str] = []
        self.wakes_of: dict[tuple[int, str], set[str]] = {}
        self.offers_ms: list[int] = []
        self.heard = 0
        self.fence = 0
        self.states: dict[str, WakeState] = {}
        self.kinds: dict[str, MailType] = {}

    def step(self, answer: Decision | Refusal) -> None:
        assert isinstance(answer, Decision), answer
        self.desk.box = after(self.desk.box, answer, self.desk.now_ms)
        self.desk.look()

    # ------------------------------------------------------------- what happens

    @rule(type_=TYPES, again=st.booleans())
    def mail_comes(self, type_: MailType, again: bool) -> None:
        """New, or an old message once more."""
        if again and self.sent:
            self.desk.tell(a_message(self.sent[-1], self.kinds[self.sent[-1]]))
            return
        self.count += 1
        id_ = f"m{self.count}"
        self.sent.append(id_)
        self.kinds[id_] = type_
        self.desk.tell(a_message(id_, type_))

    @rule()
    def reader_checks(self) -> None:
        box = self.desk.box
        step = check(box, CheckMail(), self.desk.now_ms)
        assert isinstance(step, Decision)
        for event in step.events:
            if isinstance(event, Delivered):
                assert not set(event.messages) & set(self.acked)
                assert box.delivery is None or self.desk.now_ms >= box.delivery.lease_until_ms
        if box.delivery is not None and self.desk.now_ms < box.delivery.lease_until_ms:
            assert step.result["delivery"] == box.delivery.id
        self.step(step)

    @rule(which=st.sampled_from(["outstanding", "lapsed", "twice"]))
    def reader_acks(self, which: str) -> None:
        box = self.desk.box
        held = {"outstanding": box.delivery, "lapsed": box.lapsed}.get(which)
        if which == "twice" and box.acked:
            again = ack(box, box.acked[-1])
            assert isinstance(again, Decision)
            assert (again.duplicate, again.events) == (True, ())
        if held is not None:
            self.acked += [message.id for message in box.numbered(held.first, held.last)]
            self.step(ack(box, held.id))

    @rule()
    def reader_looks(self) -> None:
        self.step(delivery.look(self.desk.box))

    @rule(wait_ms=st.integers(1, 55_000))
    def reader_waits(self, wait_ms: int) -> None:
        self.step(delivery.park(self.desk.box, f"q{wait_ms}", (), "me", self.desk.now_ms + wait_ms, self.desk.now_ms))

    @rule(who=st.sampled_from([COORDINATOR, SUCCESSOR]), older=st.booleans())
    def somebody_binds(self, who, older: bool) -> None:
        generation = self.desk.box.generation + (0 if older else 1)
        self.step(take(self.desk.box, (Bind(run="r1", generation=generation, reader=who),), self.desk.now_ms))

    @rule(number=st.integers(0, 3))
    def work_is_started(self, number: int) -> None:
        self.step(take(self.desk.box, (Join(dispatch=f"r1.t{number}.1", agent="codex"),), self.desk.now_ms))

    @rule()
    def turn_starts(self) -> None:
        self.turn += 1
        self.desk.pane(at_work(self.turn, started_ms=self.desk.now_ms, agent=self.agent))

    @rule(key=st.booleans())
    def turn_ends(self, key: bool) -> None:
        now_ms = self.desk.now_ms
        self.desk.pane(at_rest(self.turn, ended_ms=now_ms, agent=self.agent, last_key_ms=now_ms + 1000 if key else None))

    @rule(state=st.sampled_from([State.BLOCKED, State.WAITING, State.GONE]))
    def pane_stands(self, state: State) -> None:
        self.desk.pane(at_work(self.turn, started_ms=self.desk.now_ms, agent=self.agent, state=state))

    @rule()
    def pane_is_lost_from_sight(self) -> None:
        self.desk.pane(None)

    @rule(goes_on=st.booleans())
    def idle_hook_asks(self, goes_on: bool) -> None:
        self.desk.hook(goes_on)

    @rule()
    def parked_handler_asks(self) -> None:
        self.desk.claim()

    @precondition(lambda self: self.desk.box.wake is not None and self.desk.box.wake.rung is Rung.TYPED)
    @rule(saw=st.sampled_from([Saw.TYPED, Saw.TYPE_HELD, Saw.EXPIRED, Saw.REFUSED, Saw.UNKNOWN_STEP]))
    def hands_answer(self, saw: Saw) -> None:
        self.desk.hands(saw)

    @rule(milliseconds=st.sampled_from([1, 100, 3_000, 15_000, 60_000, LEASE_MS, HOUR_MS]))
    def time_passes(self, milliseconds: int) -> None:
        self.desk.pass_ms(milliseconds)
        self.step(lapse(self.desk.box, self.desk.now_ms))

    @rule()
    def two_quiet_hours_pass(self) -> None:
        """The agent rests, nobody types: whatever its reader must be told of has been told, or a person knows that it could not."""
        self.desk.pane(at_rest(self.turn, ended_ms=self.desk.now_ms - 1, agent=self.agent))
        self.desk.pass_ms(2 * HOUR_MS)
        wake = self.desk.box.wake
        assert not self.desk.box.due or (wake is not None and wake.state is WakeState.UNDELIVERABLE)

    @rule()
    def service_restarts(self) -> None:
        """All that is left is what the view holds."""
        parts, _ = LAYOUT.changes(self.desk.box, Receipts(), None)
        restored, _ = LAYOUT.restore("run:r1", parts)
        assert restored == self.desk.box
        self.desk.box = restored
        self.desk.look()

    # --------------------------------------------------------------- what holds

    @invariant()
    def no_message_is_lost_and_none_is_there_twice(self) -> None:
        box = self.desk.box
        unread = [box.at(number).id for number in range(box.first, box.end)]
        assert self.acked + unread == self.sent

    @invariant()
    def generations_only_grow(self) -> None:
        assert self.desk.box.generation >= self.fence
        self.fence = self.desk.box.generation

    @invariant()
    def every_step_of_a_wake_is_in_the_table_and_no_content_is_told_twice(self) -> None:
        for event in self.desk.steps[self.heard :]:
            assert event.state in LIFE[self.states.get(event.wake)]
            self.states[event.wake] = event.state
            if event.state is WakeState.OFFERED:
                self.note_offer(event)
        self.heard = len(self.desk.steps)

    def note_offer(self, event) -> None:
        assert event.messages
        for id_ in event.messages:
            assert self.kinds[id_] in ACTIONABLE
            told = self.wakes_of.setdefault((self.desk.box.generation, id_), set())
            told.add(event.wake)
            # One that an offer told of, which then was neither read nor followed, is told of by that same wake alone.
            assert len(told) == 1, f"{id_} by {told}"

    @invariant()
    def no_more_than_one_wake_is_open_and_none_without_cause(self) -> None:
        open_ = [event.wake for event in self.desk.box.wakes.values() if event.state not in ENDED]
        assert len(open_) <= 1

    @invariant()
    def the_budget_of_an_hour_holds(self) -> None:
        times = self.desk.box.wake_times_ms
        assert sum(at_ms > self.desk.now_ms - HOUR_MS for at_ms in times) <= WAKES_PER_HOUR_MAX
        assert self.desk.now_ms >= NOW_MS


TestMailboxes = Mailboxes.TestCase
TestMailboxes.settings = settings(max_examples=150, stateful_step_count=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
