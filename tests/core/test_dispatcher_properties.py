"""Whatever is said and seen, in whatever order and however often: what always holds of a Run."""

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from dispatcher_builders import COORDINATOR, PERSON, World, a_launch, a_review, a_spec, worker
from tocsin.contract.refusals import Refusal
from tocsin.contract.run import (
    TASK_ENDS,
    AbandonWorker,
    Accept,
    AcceptTask,
    CancelTask,
    DispatchRequested,
    GateResolved,
    OpenGate,
    PauseRun,
    ReopenTask,
    ResolveGate,
    ResumeRun,
    RunRecorded,
    StopWorker,
    TaskMoved,
    TaskState,
    UpdateTask,
    Verdict,
    VerdictGiven,
    WorkReported,
)
from tocsin.dispatcher.core.draft import Draft, standing
from tocsin.dispatcher.core.life import LIFE, UNSETTLED
from tocsin.dispatcher.core.life import DispatchEvent as E
from tocsin.dispatcher.core.observe import miss, tell_ready
from tocsin.dispatcher.core.run import blank, evolve
from tocsin.dispatcher.core.tasks import ring_among
from tocsin.dispatcher.store import FAMILY
from tocsin.ledger.family import Layout
from tocsin.ledger.receipts import Receipts

SEEN = (
    E.TAKEN, E.SETUP_ENDED, E.TERMINAL_MADE, E.AGENT_STARTED, E.PROMPT_WRITTEN, E.PROMPT_LEFT, E.HOST_REFUSED, E.ORDER_EXPIRED,
    E.STEP_UNKNOWN, E.EXIT_PROVEN, E.TURN_SEEN, E.TURN_NOT_SEEN, E.TURN_ENDED, E.HOST_SILENT, E.HOST_BACK, E.STOP_PROVEN,
    E.STOP_NOT_CONFIRMED,
)  # fmt: skip
NAMES = st.sampled_from(["a", "b", "c", "d", "r", "k", "late"])
PICK = st.integers(0, 30)


class RunMachine(RuleBasedStateMachine):
    """A Run under everything that can be said and seen."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(run="r1", workers_max=3)
        self.fences: dict[str, int] = {}
        self.settled: dict[str, str] = {}
        self.seen_records = 0
        self.accepted: dict[str, int] = {}

    @initialize(accept=st.sampled_from(list(Accept)))
    def plan(self, accept: Accept) -> None:
        self.world.add(
            a_spec("a", accept=Accept.AUTO), a_spec("b", "a", accept=accept, max_rounds=2), a_spec("c", "a", "b"),
            a_spec("d", accept=Accept.GATE, max_rounds=2), a_review("r", "d"), a_spec("k", parent="c"),
        )  # fmt: skip

    def some(self, pick: int) -> str | None:
        names = sorted(self.world.run.dispatches)
        return names[pick % len(names)] if names else None

    # ------------------------------------------------------------- what is said

    @rule(task=NAMES, pane=st.sampled_from([None, None, "shared"]), supersede=st.booleans(), retry=st.booleans())
    def start(self, task: str, pane: str | None, supersede: bool, retry: bool) -> None:
        known = self.world.run.tasks.get(task)
        retry_of = known.current if retry and known else None
        self.world.start(task, a_launch(pane=pane), supersede="on purpose" if supersede else None, retry_of=retry_of)

    @rule(pick=PICK, outcome=st.sampled_from(["succeeded", "succeeded", "failed"]), verdict=st.sampled_from(list(Verdict)))
    def work(self, pick: int, outcome: str, verdict: Verdict) -> None:
        """One ready Task done as it should be."""
        if self.world.run.paused is not None:
            self.world.say(ResumeRun(), PERSON)
        ready = sorted(self.world.run.ready)
        started = self.world.start(ready[pick % len(ready)]) if ready else None
        if not isinstance(started, dict):
            return
        name = started["dispatch"]
        self.world.see(name, E.TERMINAL_MADE, pane=f"p-{name}")
        self.world.see(name, E.TURN_SEEN)
        if self.world.task(started["task"]).spec.reviews is not None:
            self.world.judge(name, verdict, "because")
        else:
            self.world.report(name, outcome)

    @rule(pick=PICK, event=st.sampled_from(SEEN), again=st.booleans())
    def see(self, pick: int, event: E, again: bool) -> None:
        if (name := self.some(pick)) is None:
            return
        before = self.world.dispatch(name)
        self.world.see(name, event, pane=before.pane or f"p-{name}")
        if again:
            state = self.world.run
            self.world.see(name, event, pane=before.pane or f"p-{name}")
            known = self.world.dispatch(name)
            assert (known.state, known.since_ms) == (state.dispatches[name].state, state.dispatches[name].since_ms), "twice is once"

    @rule(
        pick=PICK, outcome=st.sampled_from(["succeeded", "failed"]), who=st.sampled_from(["own", "own", "own", "other", "child", "person"])
    )
    def report(self, pick: int, outcome: str, who: str) -> None:
        if (name := self.some(pick)) is None:
            return
        own = worker(name, self.world.dispatch(name).pane)
        callers: dict[str, Any] = {
            "own": own, "other": worker("r9.x.1", "elsewhere"), "child": worker(name, own.pane, child=True), "person": PERSON,
        }  # fmt: skip
        before = self.world.run
        answer = self.world.report(name, outcome, caller=callers[who], dispatch=name)
        if who != "own":
            assert isinstance(answer, Refusal)
            assert {n: t.state for n, t in before.tasks.items()} == {n: t.state for n, t in self.world.run.tasks.items()}

    @rule(pick=PICK, verdict=st.sampled_from(list(Verdict)))
    def judge(self, pick: int, verdict: Verdict) -> None:
        if (name := self.some(pick)) is not None:
            self.world.judge(name, verdict, "because")

    @rule(pick=PICK)
    def beat(self, pick: int) -> None:
        if (name := self.some(pick)) is not None:
            self.world.beat(name)

    @rule(pick=PICK, abandon=st.booleans())
    def end(self, pick: int, abandon: bool) -> None:
        if (name := self.some(pick)) is not None:
            self.world.say(AbandonWorker(dispatch=name, reason="enough") if abandon else StopWorker(dispatch=name), COORDINATOR)

    @rule(task=NAMES, verdict=st.sampled_from(list(Verdict)), by=st.sampled_from([COORDINATOR, PERSON]))
    def accept(self, task: str, verdict: Verdict, by: Any) -> None:
        self.world.say(AcceptTask(task=task, verdict=verdict, reason="because"), by)

    @rule(task=NAMES, what=st.sampled_from(["reopen", "reopen", "reopen", "cancel", "unverifiable", "gate"]))
    def change(self, task: str, what: str) -> None:
        asks: dict[str, Any] = {
            "reopen": ReopenTask(task=task, reason="again"), "cancel": CancelTask(task=task, reason="no"),
            "unverifiable": CancelTask(task=task, reason="who knows", unverifiable=True), "gate": OpenGate(task=task, question="really?"),
        }  # fmt: skip
        self.world.say(asks[what], COORDINATOR)

    @rule(pick=PICK, verdict=st.sampled_from(list(Verdict)))
    def answer_gate(self, pick: int, verdict: Verdict) -> None:
        gates = sorted(self.world.run.gates)
        if gates:
            self.world.say(ResolveGate(gate=gates[pick % len(gates)], verdict=verdict, answer="because"), PERSON)

    @rule(task=NAMES, deps=st.lists(NAMES, max_size=2, unique=True))
    def rewire(self, task: str, deps: list[str]) -> None:
        self.world.say(UpdateTask(task=task, deps=tuple(deps)), COORDINATOR)

    @rule(deps=st.lists(NAMES, max_size=2, unique=True))
    def add_late(self, deps: list[str]) -> None:
        self.world.add(a_spec("late", *deps))

    @rule(choice=st.integers(0, 5))
    def pause(self, choice: int) -> None:
        self.world.say(PauseRun() if choice == 0 else ResumeRun(), PERSON)

    @rule(pick=PICK)
    def time_passes(self, pick: int) -> None:
        self.world.record(tell_ready(Draft(self.world.run, COORDINATOR, self.world.now_ms)))
        if (name := self.some(pick)) is not None:
            self.world.record(miss(Draft(self.world.run, COORDINATOR, self.world.now_ms), name, "quiet"))

    @rule()
    def restart(self) -> None:
        """The Run as it comes back from its view, and from its log."""
        layout = Layout(FAMILY)
        parts, _ = layout.changes(self.world.run, Receipts(), None)
        from_view, _ = layout.restore("r1", parts)
        from_log = blank("r1")
        for record in self.world.records:
            from_log = evolve(from_log, record)
        again, _ = layout.changes(from_view, Receipts(), None)
        assert again == parts
        assert layout.changes(from_log, Receipts(), None)[0] == parts
        self.world.run = from_view

    # ------------------------------------------------------------ what holds

    @invariant()
    def no_task_has_two_live_attempts(self) -> None:
        live: dict[str, list[str]] = {}
        for dispatch in self.world.run.dispatches.values():
            if dispatch.state in UNSETTLED:
                live.setdefault(dispatch.task, []).append(dispatch.id)
        assert all(len(names) == 1 for names in live.values()), live
        for task, names in live.items():
            assert self.world.task(task).current == names[0]
            assert self.world.task(task).state is TaskState.DISPATCHED

    @invariant()
    def fences_only_grow(self) -> None:
        for name, task in self.world.run.tasks.items():
            assert task.attempts >= self.fences.get(name, 0)
            self.fences[name] = task.attempts

    @invariant()
    def what_is_settled_stays_settled(self) -> None:
        for name, dispatch in self.world.run.dispatches.items():
            if name in self.settled:
                assert dispatch.state == self.settled[name]
            elif dispatch.is_settled:
                self.settled[name] = dispatch.state

    @invariant()
    def every_move_of_an_attempt_is_in_the_table(self) -> None:
        for record in self.world.records[self.seen_records :]:
            for event in record.events:
                if event.__struct_config__.tag == "dispatch_moved" and event.saw is not None:
                    assert any(to is event.to for (_, saw), to in LIFE.items() if saw == event.saw)
        self.note(self.world.records[self.seen_records :])
        self.seen_records = len(self.world.records)

    def note(self, records: list[RunRecorded]) -> None:
        """Nothing is accepted without a report that counts, and a review only by a verdict."""
        for record in records:
            for event in record.events:
                match event:
                    case WorkReported(late=False) | VerdictGiven():
                        task = event.task if isinstance(event, WorkReported) else event.review
                        self.accepted[task] = self.accepted.get(task, 0) + 1
                    case DispatchRequested():
                        self.accepted[event.task] = 0
                    case TaskMoved(to=TaskState.ACCEPTED):
                        assert self.accepted.get(event.task, 0) > 0, f"{event.task} was accepted without a report"
                        kinds = {type(one) for one in record.events}
                        assert kinds & {WorkReported, VerdictGiven, GateResolved} or record.caller.role in ("coordinator", "person")

    @invariant()
    def nobody_stands_where_he_should_not_by_what_he_waits_for(self) -> None:
        for task in self.world.run.tasks.values():
            if task.state in (TaskState.PENDING, TaskState.READY, TaskState.BLOCKED) and not task.is_held:
                state, _, blocked_by = standing(self.world.run, task)
                assert (task.state, task.blocked_by) == (state, blocked_by), task.id
            assert task.round <= task.spec.max_rounds

    @invariant()
    def there_is_no_ring(self) -> None:
        specs = {name: task.spec for name, task in self.world.run.tasks.items()}
        assert ring_among(self.world.run, specs) is None

    @invariant()
    def whatever_ended_has_no_live_attempt(self) -> None:
        for name in self.world.run.unsettled:
            assert self.world.task(self.world.dispatch(name).task).state not in TASK_ENDS

    def teardown(self) -> None:
        self.world.check()


RunMachine.TestCase.settings = settings(
    max_examples=60, stateful_step_count=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestWhateverIsSaidAndSeen = RunMachine.TestCase
