"""A Run in a test's hands: say something to it, and look at what became of it."""

from typing import Any

import msgspec

from builders import NOW_MS
from tocsin.contract.decision import Decision
from tocsin.contract.messages import Process
from tocsin.contract.parties import Caller, Role
from tocsin.contract.refusals import Refusal
from tocsin.contract.run import (
    Accept,
    AddTasks,
    Beat,
    CreateRun,
    GiveVerdict,
    Launch,
    Observe,
    Outcome,
    Placement,
    Receipt,
    Report,
    ReportWork,
    RunCommand,
    RunRecorded,
    StartWorker,
    TaskKind,
    TaskSpec,
    Verdict,
    Where,
)
from tocsin.dispatcher.core.decide import decide
from tocsin.dispatcher.core.draft import Around
from tocsin.dispatcher.core.life import DispatchEvent as E
from tocsin.dispatcher.core.run import DERIVED, Dispatch, Run, Task, blank, derive, evolve

COORDINATOR = Caller(role=Role.COORDINATOR, name="claude", host="h", pane="c0")
PERSON = Caller(role=Role.PERSON, name="dev@h")
SERVICE = Caller(role=Role.SERVICE, name="dispatcher")
PROCESS = Process(pid=7, started_ms=1, boot="b")


def a_spec(name: str, *deps: str, **fields: Any) -> TaskSpec:
    """A Task that is accepted by its coordinator."""
    return TaskSpec(id=name, deps=deps, **({"title": f"do {name}", "spec": f"Do {name}."} | fields))


def a_review(name: str, of: str, *deps: str, **fields: Any) -> TaskSpec:
    """A review of a Task."""
    return a_spec(name, *deps, kind=TaskKind.REVIEW, reviews=of, **fields)


def a_launch(pane: str | None = None, host: str = "h", **fields: Any) -> Launch:
    """Claude Code in an existing folder; `pane`: in a live pane."""
    defaults: dict[str, Any] = {"agent": "claude", "placement": Placement(where=Where.EXISTING, path="/repo")}
    return Launch(host=host, pane=pane, **(defaults | fields))


def worker(dispatch: str, pane: str | None = None, process: Process | None = None, **fields: Any) -> Caller:
    """The worker of a Dispatch, as its pane-host vouches for it."""
    defaults: dict[str, Any] = {"name": dispatch, "host": "h", "dispatch": dispatch, "vouched": True}
    return Caller(role=Role.WORKER, pane=pane or f"p-{dispatch}", process=process, **(defaults | fields))


class World:
    """One Run. `say` returns the receipt's result or the refusal; what is refused with events is recorded all the same."""

    def __init__(self, *specs: TaskSpec, run: str = "r1", **create: Any) -> None:
        self.run: Run = blank(run)
        self.now_ms = NOW_MS
        self.records: list[RunRecorded] = []
        self.around: dict[str, Any] = {}
        self.generation: int | None = None
        self.say(CreateRun(objective="get it done", **create), COORDINATOR)
        if specs:
            self.add(*specs)

    def say(self, ask: Any, caller: Caller = PERSON, **fields: Any) -> Any:
        """Put a request."""
        answer = self.decision(ask, caller, **fields)
        if isinstance(answer, Refusal):
            return answer
        return answer.refusal if answer.refusal is not None else dict(answer.result)

    def decision(self, ask: Any, caller: Caller = PERSON, **fields: Any) -> Decision | Refusal:
        """The same, with the whole decision."""
        self.now_ms += 1000
        command = RunCommand(run=self.run.id, request=f"q{self.now_ms}", caller=caller, ask=ask, at_ms=self.now_ms, **fields)
        answer = decide(self.run, command, Around(self.now_ms, **self.around))
        if isinstance(answer, Decision) and answer.events:
            self.record(answer, caller)
        return answer

    def record(self, decision: Decision, caller: Caller = SERVICE) -> None:
        """Put a decision on record, as it would travel."""
        recorded = RunRecorded(
            run=self.run.id,
            request="q",
            caller=caller,
            payload_hash="",
            events=decision.events,
            receipt=Receipt(request="q"),
            at_ms=self.now_ms,
        )
        travelled = msgspec.json.decode(msgspec.json.encode(recorded), type=RunRecorded)
        self.records.append(travelled)
        self.run = evolve(self.run, travelled)

    # ------------------------------------------------------------- shorthands

    def add(self, *specs: TaskSpec) -> Any:
        """Add Tasks."""
        return self.say(AddTasks(tasks=specs), COORDINATOR)

    def start(self, task: str, launch: Launch | None = None, **fields: Any) -> Any:
        """Order an attempt."""
        return self.say(StartWorker(task=task, launch=launch or a_launch(), **fields), COORDINATOR)

    def see(self, dispatch: str, event: E, **facts: Any) -> Any:
        """Something is observed of an attempt."""
        return self.say(Observe(dispatch=dispatch, fence=int(dispatch.rpartition(".")[2]), saw=event, **facts), SERVICE)

    def begin(self, task: str, launch: Launch | None = None, **fields: Any) -> str:
        """Start an attempt and see its turn begin; returns its id."""
        dispatch: str = self.start(task, launch, **fields)["dispatch"]
        pane = (launch.pane if launch else None) or f"p-{dispatch}"
        self.see(dispatch, E.TERMINAL_MADE, pane=pane)
        self.see(dispatch, E.AGENT_STARTED, pane=pane)
        self.see(dispatch, E.TURN_SEEN)
        return dispatch

    def report(
        self, attempt: str, outcome: str = "succeeded", caller: Caller | None = None, commit: str | None = None, dispatch: str | None = None
    ) -> Any:
        """Its worker reports; `dispatch`: the id that it names."""
        report = Report(outcome=Outcome(outcome), body="done", commit=commit)
        return self.say(ReportWork(report=report, dispatch=dispatch), caller or worker(attempt, self.dispatch(attempt).pane))

    def judge(self, dispatch: str, verdict: str, findings: str = "", caller: Caller | None = None, **fields: Any) -> Any:
        """A review's worker gives its verdict."""
        ask = GiveVerdict(verdict=Verdict(verdict), findings=findings, **fields)
        return self.say(ask, caller or worker(dispatch, self.dispatch(dispatch).pane))

    def beat(self, attempt: str, caller: Caller | None = None, dispatch: str | None = None) -> Any:
        """Its worker beats; `dispatch`: the id that it names."""
        return self.say(Beat(phase="testing", dispatch=dispatch), caller or worker(attempt, self.dispatch(attempt).pane))

    def done(self, task: str, outcome: str = "succeeded") -> str:
        """Start, see and report; returns the attempt."""
        dispatch = self.begin(task)
        self.report(dispatch, outcome)
        return dispatch

    def task(self, name: str) -> Task:
        return self.run.tasks[name]

    def dispatch(self, name: str) -> Dispatch:
        return self.run.dispatches[name]

    def states(self) -> dict[str, str]:
        """Where every Task stands."""
        return {name: task.state.value for name, task in sorted(self.run.tasks.items())}

    def events(self, kind: type) -> list[Any]:
        """All events of a kind, in order."""
        return [event for record in self.records for event in record.events if isinstance(event, kind)]

    def check(self) -> None:
        """What follows from the tables is what is kept beside them, and every record folds to the same Run."""
        again = blank(self.run.id)
        for record in self.records:
            again = evolve(again, record)
        for field in Run.__struct_fields__:
            if field not in DERIVED:
                assert getattr(again, field) == getattr(self.run, field), field
        derived = derive(self.run)
        assert {state: n for state, n in derived.in_state.items() if n} == {state: n for state, n in self.run.in_state.items() if n}
        for field in ("numbered", "attempted", "failed", "ready", "unsettled", "withdrawn", "open_gates", "panes", "reviews", "children"):
            assert getattr(derived, field) == getattr(self.run, field), field
        for name in {*derived.waiters, *self.run.waiters}:
            assert dict(derived.waiters.get(name, {})) == dict(self.run.waiters.get(name, {})), name


AUTO, GATE = Accept.AUTO, Accept.GATE
