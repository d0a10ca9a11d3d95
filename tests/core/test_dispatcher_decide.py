"""The verbs of a Run: who may say them, what they make true, and when they are refused."""

import msgspec
import pytest

from builders import NOW_MS
from dispatcher_builders import AUTO, COORDINATOR, GATE, PERSON, PROCESS, World, a_launch, a_review, a_spec, worker
from tocsin.contract.messages import Process
from tocsin.contract.parties import Caller, Role
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.run import (
    AbandonWorker,
    Accept,
    AcceptTask,
    AddTasks,
    CancelTask,
    CloseRun,
    CreateRun,
    DispatchMoved,
    GateOpened,
    Observe,
    OpenGate,
    PauseRun,
    Placement,
    PurgeRun,
    ReopenTask,
    Report,
    ReportRefused,
    ReportWork,
    ResolveGate,
    ResumeRun,
    RunCommand,
    TaskKind,
    UpdateTask,
    UseRun,
    Verdict,
    VerdictGiven,
    Where,
    WorkReported,
)
from tocsin.dispatcher.core.decide import decide
from tocsin.dispatcher.core.draft import Around, Custody
from tocsin.dispatcher.core.life import DispatchEvent as E
from tocsin.dispatcher.core.reports import BODY_BYTES_MAX
from tocsin.dispatcher.core.run import blank
from tocsin.dispatcher.core.tasks import TASKS_MAX

SECOND = Caller(role=Role.COORDINATOR, name="claude", host="h", pane="c1")


def code(answer: object) -> Code | None:
    return answer.code if isinstance(answer, Refusal) else None


# --------------------------------------------------------------- who owns a Run


def test_a_second_coordinator_is_refused_until_it_takes_over_and_then_the_first_is_fenced_with_a_trace():
    world = World(a_spec("t"))
    fenced = world.say(PauseRun(), SECOND)
    assert (code(fenced), "h/c0" in fenced.message) == (Code.CONSUMER_FENCED, True)
    assert world.say(UseRun(), SECOND) == {"run": "r1", "generation": 2, "before": "h/c0"}
    assert code(world.start("t")) is Code.CONSUMER_FENCED
    assert world.say(UseRun(), SECOND)["generation"] == 2, "who is bound already is not bound again"


def test_a_fenced_generation_is_told_even_to_a_person_and_a_person_is_otherwise_free():
    world = World(a_spec("t"))
    assert code(world.say(PauseRun(), PERSON, generation=7)) is Code.CONSUMER_FENCED
    assert world.say(PauseRun(), PERSON, generation=1) == {"run": "r1"}


def test_a_worker_may_not_decide_about_the_run_that_it_works_for():
    world = World(a_spec("t"))
    own = worker(world.begin("t"))
    for ask in (PauseRun(), CancelTask(task="t", reason="x"), AddTasks(tasks=(a_spec("u"),)), UseRun(), CloseRun(force="x")):
        assert code(world.say(ask, own)) is Code.SENDER_NOT_ASSIGNEE
    assert code(world.say(Observe(dispatch="r1.t.1", fence=1, saw=E.EXIT_PROVEN), own)) is Code.SENDER_NOT_ASSIGNEE


def test_an_absent_run_and_a_purged_one_are_answered_the_same():
    world = World()
    world.say(CloseRun(), PERSON)
    world.say(PurgeRun(), PERSON)
    absent = world.say(PauseRun(), PERSON)
    assert (absent.code, absent.message) == (Code.NOT_FOUND, "there is no Run r1")


def test_a_closed_run_takes_nothing_new_and_keeps_what_is_late():
    world = World(a_spec("t"))
    name = world.begin("t")
    owed = world.say(CloseRun(), COORDINATOR)
    assert (code(owed), name in owed.message) == (Code.OBLIGATIONS, True)
    assert world.say(CloseRun(force="the budget is spent"), COORDINATOR)["unsettled"] == [name]
    assert code(world.add(a_spec("u"))) is Code.RUN_CLOSED
    assert code(world.report(name)) is Code.RUN_CLOSED
    assert [event.late for event in world.events(WorkReported)] == [True]
    assert code(world.say(PurgeRun(), PERSON)) is Code.ATTEMPT_UNSETTLED, "nobody would know of it any more"


def test_a_settled_worker_without_a_disposition_keeps_its_run_open():
    world = World(a_spec("t", accept=AUTO))
    name = world.done("t")
    world.around = {"custody": {name: Custody("owned", True), "r9.x.1": Custody("owned", True)}}
    owed = world.say(CloseRun(), COORDINATOR)
    assert (code(owed), name in owed.message, "r9" in owed.message) == (Code.OBLIGATIONS, True, False)
    world.around = {"custody": {name: Custody("retained", False)}}
    assert world.say(CloseRun(), COORDINATOR)["obligations"] == []


# ---------------------------------------------------------------------- nesting


def nested(outer: World, **fields) -> object:
    """What the worker of r1.t.1 is answered when it makes a Run."""
    ask = CreateRun(objective="a part of it", **fields)
    command = RunCommand(run="r2", request="q", caller=worker("r1.t.1"), ask=ask, at_ms=1)
    answer = decide(blank("r2"), command, Around(NOW_MS, parent=outer.run))
    return answer if isinstance(answer, Refusal) else dict(answer.result)


def test_a_workers_run_is_nested_in_its_dispatch_and_no_deeper_than_the_run_around_it_allows():
    flat = World(a_spec("t"))
    flat.begin("t")
    assert code(nested(flat, depth_max=4)) is Code.DEPTH
    deep = World(a_spec("t"), depth_max=2, workers_max=3)
    deep.begin("t")
    assert nested(deep, depth_max=4, workers_max=9, parent=None) == {
        "run": "r2", "generation": 1, "depth": 1, "depth_max": 2, "workers_max": 3,
    }  # fmt: skip


# ------------------------------------------------------------------------ Tasks


@pytest.mark.parametrize(
    ("specs", "refused"),
    [
        ((a_spec("../x"),), Code.BAD_REQUEST),
        ((a_spec("a.b"),), Code.BAD_REQUEST),
        ((a_spec("x" * 65),), Code.BAD_REQUEST),
        ((a_spec("a", title=" \x00 "),), None),
        ((a_spec("a", title="   "),), Code.BAD_REQUEST),
        ((a_spec("a", max_rounds=0),), Code.BAD_REQUEST),
        ((a_spec("a", agent="hal"),), Code.UNKNOWN_AGENT),
        ((a_spec("a"), a_spec("a")), Code.TASK_EXISTS),
        ((a_spec("a", "ghost"),), Code.NOT_FOUND),
        ((a_spec("a", parent="ghost"),), Code.NOT_FOUND),
        ((a_spec("a", kind=TaskKind.REVIEW),), Code.BAD_REQUEST),
        ((a_spec("a", reviews="b"), a_spec("b")), Code.BAD_REQUEST),
        ((a_review("a", "b"), a_spec("b", accept=AUTO)), Code.BAD_REQUEST),
        ((a_review("a", "b"), a_review("b", "c"), a_spec("c")), Code.BAD_REQUEST),
        ((), Code.BAD_REQUEST),
    ],
)
def test_a_graph_that_does_not_fit_is_refused_whole(specs, refused):
    world = World()
    answer = world.say(AddTasks(tasks=specs), COORDINATOR)
    assert code(answer) is refused
    assert bool(world.run.tasks) == (refused is None)


def test_controls_in_text_for_people_become_visible():
    world = World(a_spec("a", title="tidy\x1b[2J\nup", spec="one\x07\ntwo"))
    assert (world.task("a").spec.title, world.task("a").spec.spec) == ("tidy\ufffd[2J up", "one\ufffd\ntwo")


def test_a_run_holds_so_many_tasks_and_no_more():
    world = World()
    world.add(*(a_spec(f"t{n}") for n in range(TASKS_MAX)))
    assert code(world.add(a_spec("one-more"))) is Code.CAPACITY


def test_a_task_waits_for_its_children():
    world = World(a_spec("p"))
    assert world.states() == {"p": "ready"}
    world.add(a_spec("k", parent="p", accept=AUTO))
    assert world.states() == {"k": "ready", "p": "pending"}
    world.done("k")
    assert world.states() == {"k": "accepted", "p": "ready"}
    world.check()


def test_a_cancelled_or_unverifiable_dependency_blocks_by_name():
    world = World(a_spec("a"), a_spec("b"), a_spec("c", "a", "b"))
    world.say(CancelTask(task="a", reason="not needed"), COORDINATOR)
    world.say(CancelTask(task="b", reason="nobody knows", unverifiable=True), COORDINATOR)
    assert world.task("c").blocked_by == ("a", "b")
    assert world.task("c").why == "dependency a was cancelled; dependency b ended unverifiable"
    world.say(UpdateTask(task="c", deps=()), COORDINATOR)
    assert world.states()["c"] == "ready"


def test_a_task_under_an_unsettled_attempt_is_neither_cancelled_nor_reopened():
    world = World(a_spec("a"))
    name = world.begin("a")
    for ask in (CancelTask(task="a", reason="x"), ReopenTask(task="a", reason="x")):
        refused = world.say(ask, COORDINATOR)
        assert (code(refused), name in refused.message) == (Code.ATTEMPT_UNSETTLED, True)


def test_dependencies_stand_once_work_has_begun():
    world = World(a_spec("a"), a_spec("b"))
    world.begin("a")
    assert code(world.say(UpdateTask(task="a", deps=("b",)), COORDINATOR)) is Code.LIFECYCLE_CONFLICT
    assert world.say(UpdateTask(task="a", title="better"), COORDINATOR)["task"]["title"] == "better"


def test_reopening_what_others_built_on_makes_those_wait_that_have_not_begun():
    world = World(a_spec("a", accept=AUTO), a_spec("b", "a"), a_spec("c", "a"))
    world.done("a")
    world.begin("c")
    world.say(ReopenTask(task="a", reason="wrong"), COORDINATOR)
    assert world.states() == {"a": "ready", "b": "pending", "c": "dispatched"}


# ----------------------------------------------------------------------- starts


@pytest.mark.parametrize(
    ("launch", "refused"),
    [
        (a_launch(agent="hal"), Code.UNKNOWN_AGENT),
        (a_launch(agent="generic"), Code.BAD_REQUEST),
        (a_launch(agent="generic", command=("make",)), None),
        (a_launch(placement=Placement(where=Where.CURRENT)), Code.PLACEMENT_REQUIRED),
        (a_launch(placement=Placement(where=Where.NEW_CHILD, branch="x")), Code.PLACEMENT_REQUIRED),
        (a_launch(host=""), Code.BAD_REQUEST),
    ],
)
def test_a_launch_says_who_where_and_on_which_machine(launch, refused):
    assert code(World(a_spec("a")).start("a", launch)) is refused


def test_a_task_that_waits_names_what_it_waits_for():
    world = World(a_spec("a"), a_spec("b", "a"))
    refused = world.start("b")
    assert (code(refused), "a (ready)" in refused.message) == (Code.TASK_NOT_STARTABLE, True)


def test_a_failed_task_is_tried_again_by_naming_the_attempt_with_its_place_said_anew():
    world = World(a_spec("a"))
    failed = world.done("a", "failed")
    hint = world.start("a")
    assert (code(hint), failed in hint.message) == (Code.TASK_NOT_STARTABLE, True)
    assert code(world.start("a", retry_of="r1.other.1")) is Code.NOT_FOUND
    bare = a_launch(placement=Placement(where=Where.EXISTING))
    assert code(world.start("a", bare, retry_of=failed)) is Code.PLACEMENT_REQUIRED
    assert world.start("a", retry_of=failed)["fence"] == 2


def test_a_run_has_so_many_workers_at_once_and_a_host_too():
    world = World(a_spec("a"), a_spec("b"), workers_max=1)
    world.begin("a")
    assert code(world.start("b")) is Code.CAPACITY
    assert world.start("a", supersede="it is stuck")["fence"] == 2, "the same place"
    other = World(a_spec("a"))
    other.around = {"host_load": 4, "host_workers_max": 4}
    assert code(other.start("a")) is Code.CAPACITY


def test_three_failures_in_a_row_open_the_circuit_and_a_success_between_them_does_not():
    world = World(*(a_spec(f"t{n}") for n in range(6)))
    world.done("t0", "failed")
    world.done("t1", "failed")
    world.done("t2")
    for n in (3, 4):
        world.see(world.start(f"t{n}")["dispatch"], E.HOST_REFUSED, code="no_space")
    assert world.states()["t3"] == "ready", "nothing was started, so nothing has failed but the start"
    world.done("t5", "failed")
    assert code(world.start("t4")) is Code.CIRCUIT_OPEN
    world.say(ResumeRun(), COORDINATOR)
    assert isinstance(world.start("t4"), dict)


def test_another_run_of_the_same_coordinator_does_not_go_around_an_open_circuit():
    world = World(a_spec("a"))
    world.around = {"circuit": "r0"}
    refused = world.start("a")
    assert (code(refused), "r0" in refused.message) == (Code.CIRCUIT_OPEN, True)


def test_a_paused_run_starts_nothing_and_touches_nothing_that_runs():
    world = World(a_spec("a"), a_spec("b"))
    name = world.begin("a")
    world.say(PauseRun(reason="lunch"), PERSON)
    assert code(world.start("b")) is Code.RUN_PAUSED
    assert world.report(name)["task_state"] == "reported"


def test_a_live_pane_takes_the_next_task_only_when_the_one_before_is_over_there():
    world = World(a_spec("a"), a_spec("b"))
    name = world.begin("a", a_launch(pane="p"))
    assert code(world.start("b", a_launch(pane="p"))) is Code.ATTEMPT_UNSETTLED
    world.report(name)
    assert isinstance(world.start("b", a_launch(pane="p")), dict)
    elsewhere = World(a_spec("a"))
    elsewhere.around = {"pane_holder": "r0.x.1"}
    assert code(elsewhere.start("a", a_launch(pane="p"))) is Code.ATTEMPT_UNSETTLED


# ---------------------------------------------------------------------- reports


@pytest.mark.parametrize(
    ("caller", "taken"),
    [
        (worker("r1.a.1", "p", PROCESS), True),
        (worker("r1.a.1", "p", Process(pid=9, started_ms=9, boot="b")), False),
        (worker("r1.a.1", "p", PROCESS, vouched=False), False),
        (worker("r1.a.1", "elsewhere", PROCESS), False),
        (worker("r1.a.1", "p", PROCESS, host="another"), False),
        (worker("r0.old.1", "p", PROCESS), True),  # a live pane that was made for an earlier attempt
        (PERSON, False),
        (COORDINATOR, False),
    ],
)
def test_a_report_counts_from_the_assigned_pane_and_the_process_that_was_started_and_from_nobody_else(caller, taken):
    world = World(a_spec("a"))
    name = world.start("a")["dispatch"]
    world.see(name, E.AGENT_STARTED, pane="p", process=PROCESS)
    answer = world.report(name, caller=caller, dispatch=name)
    assert (code(answer) is None) == taken
    assert world.states()["a"] == ("reported" if taken else "dispatched")


def test_a_report_of_a_child_agent_is_held_and_says_so():
    world = World(a_spec("a"))
    name = world.begin("a")
    held = world.report(name, caller=worker(name, child=True))
    assert code(held) is Code.NOT_LEAD
    assert world.events(ReportRefused)[0].report.body == "done"
    assert world.report(name)["task_state"] == "reported"


def test_a_report_needs_no_id_inside_its_pane_also_in_one_that_was_made_for_an_earlier_attempt():
    world = World(a_spec("a"), a_spec("b"))
    first = world.begin("a", a_launch(pane="p"))
    world.report(first, caller=worker(first, "p"))
    second = world.begin("b", a_launch(pane="p"))
    assert world.report(second, caller=worker(first, "p"))["dispatch"] == second


def test_a_late_report_of_an_attempt_that_was_stopped_is_kept_and_says_what_ended_it():
    world = World(a_spec("a"))
    name = world.begin("a")
    world.say(AbandonWorker(dispatch=name, reason="too slow"), COORDINATOR)
    late = world.report(name)
    assert (code(late), "too slow" in late.message, "sending it again cannot help" in late.message) == (Code.STALE_DISPATCH, True, True)
    assert (world.states()["a"], len(world.dispatch(name).late)) == ("ready", 1)
    world.report(name)
    assert len(world.events(WorkReported)) == 1, "kept once"


def test_a_report_that_is_too_long_names_the_way():
    world = World(a_spec("a"))
    name = world.begin("a")
    answer = world.say(ReportWork(report=Report(outcome="succeeded", body="x" * (BODY_BYTES_MAX + 1))), worker(name))
    assert (code(answer), "--path" in answer.message) == (Code.TOO_LARGE, True)


def test_a_heartbeat_is_state_and_shows_that_a_turn_runs():
    world = World(a_spec("a"))
    name = world.start("a")["dispatch"]
    world.see(name, E.AGENT_STARTED, pane="p")
    world.see(name, E.TURN_NOT_SEEN)
    assert world.beat(name, caller=worker(name, "p")) == {"dispatch": name, "state": "running"}
    assert (world.dispatch(name).phase, world.dispatch(name).beat_ms) == ("testing", world.now_ms)
    assert code(world.beat(name, caller=worker("r9.x.1", "q"), dispatch=name)) is Code.SENDER_NOT_ASSIGNEE
    world.beat(name, caller=worker("r9.x.1", "q"), dispatch=name)
    assert [event.what for event in world.events(ReportRefused)] == ["beat"], "a refused one is told once"
    world.report(name, caller=worker(name, "p"))
    assert code(world.beat(name)) is Code.LIFECYCLE_CONFLICT


# ------------------------------------------------- acceptance, reviews, fix rounds


@pytest.mark.parametrize(("accept", "state"), [(Accept.AUTO, "accepted"), (Accept.GATE, "reported"), (Accept.COORDINATOR, "reported")])
def test_a_report_is_a_claim_and_acceptance_follows_the_tasks_policy(accept, state):
    world = World(a_spec("a", accept=accept), a_spec("b", "a"))
    world.done("a")
    assert world.states() == {"a": state, "b": "ready" if state == "accepted" else "pending"}


def test_a_coordinator_sends_a_task_back_with_the_reason_as_a_fix_round():
    world = World(a_spec("a"))
    world.done("a")
    assert code(world.say(AcceptTask(task="a", verdict=Verdict.REWORK), COORDINATOR)) is Code.BAD_REQUEST
    row = world.say(AcceptTask(task="a", verdict=Verdict.REWORK, reason="no tests"), COORDINATOR)["task"]
    assert (row["state"], row["round"], row["findings"]) == ("ready", 2, "no tests")
    again = world.begin("a")
    assert "Round 2" in world.dispatch(again).brief
    assert "no tests" in world.dispatch(again).brief
    world.report(again)
    assert world.say(AcceptTask(task="a", verdict=Verdict.ACCEPT), COORDINATOR)["task"]["state"] == "accepted"
    assert code(world.say(AcceptTask(task="a", verdict=Verdict.REJECT, reason="x"), COORDINATOR)) is Code.ALREADY_DECIDED


def test_rounds_are_bounded_then_the_task_is_blocked_and_says_so_and_a_reopening_begins_anew():
    world = World(a_spec("a", max_rounds=2), a_spec("b", "a"))
    for _ in range(2):
        world.done("a")
        world.say(AcceptTask(task="a", verdict=Verdict.REWORK, reason="still wrong"), COORDINATOR)
    assert (world.task("a").state, world.task("a").blocked_by) == ("blocked", ("rounds:2",))
    assert "2 rounds and not accepted" in world.task("a").why
    assert world.task("b").blocked_by == ("a",)
    assert code(world.start("a")) is Code.TASK_NOT_STARTABLE
    world.say(ReopenTask(task="a", reason="with a better text"), COORDINATOR)
    assert (world.states(), world.task("a").round) == ({"a": "ready", "b": "pending"}, 1)


def reviewed(**fields) -> tuple[World, str, str]:
    """A Task at its gate, and the attempt of its reviewer."""
    world = World(a_spec("a", accept=GATE, **fields), a_review("r", "a"), a_spec("next", "a"), a_spec("after", "r"))
    assert world.states()["r"] == "pending"
    author = world.begin("a")
    world.report(author, commit="abc1234def")
    assert world.states() == {"a": "reported", "after": "pending", "next": "pending", "r": "ready"}
    return world, author, world.begin("r")


def test_a_reviews_verdict_accepts_and_is_its_workers_report_too():
    world, _, reviewer = reviewed()
    told = world.judge(reviewer, "accept", commit="abc1234")
    assert told == {"review": "r", "task": "a", "verdict": "accept", "task_state": "accepted", "round": 1}
    assert world.states() == {"a": "accepted", "after": "ready", "next": "ready", "r": "accepted"}
    assert world.dispatch(reviewer).state == "succeeded"
    recorded = len(world.records)
    assert world.judge(reviewer, "accept", commit="abc1234")["task_state"] == "accepted"
    assert len(world.records) == recorded
    assert code(world.judge(reviewer, "reject", "no", commit="abc1234")) is Code.ALREADY_DECIDED
    world.check()


def test_a_review_that_says_no_sends_the_task_back_with_its_findings_and_waits_for_the_next_report():
    world, _, reviewer = reviewed()
    assert code(world.judge(reviewer, "rework", commit="abc1234")) is Code.BAD_REQUEST, "why?"
    world.judge(reviewer, "rework", "no tests", commit="abc1234")
    assert world.states() == {"a": "ready", "after": "pending", "next": "pending", "r": "pending"}
    assert (world.task("a").round, world.task("a").findings) == (2, "no tests")
    world.done("a")
    again = world.begin("r")
    world.judge(again, "accept", commit=None)
    assert world.states() == {"a": "accepted", "after": "ready", "next": "ready", "r": "accepted"}
    assert [(event.review, event.verdict) for event in world.events(VerdictGiven)] == [("r", "rework"), ("r", "accept")]
    world.check()


def test_a_rejection_fails_the_task_and_blocks_what_waits():
    world, _, reviewer = reviewed()
    world.judge(reviewer, "reject", "the wrong thing", commit="abc1234")
    assert world.states() == {"a": "failed", "after": "blocked", "next": "blocked", "r": "failed"}
    world.say(ReopenTask(task="a", reason="the right thing"), COORDINATOR)
    assert world.states() == {"a": "ready", "after": "pending", "next": "pending", "r": "pending"}


def test_a_verdict_names_the_commit_that_was_reported():
    world, _, reviewer = reviewed()
    unnamed = world.judge(reviewer, "accept")
    assert (code(unnamed), "--commit abc1234def" in unnamed.message) == (Code.BAD_REQUEST, True)
    assert code(world.judge(reviewer, "accept", commit="fffffff")) is Code.BAD_REQUEST
    assert code(world.judge(reviewer, "accept", commit="abc")) is Code.BAD_REQUEST, "too short to tell"


def test_a_commit_that_was_reported_by_a_name_that_git_did_not_know_can_be_judged_by_that_name():
    world = World(a_spec("a", accept=GATE), a_review("r", "a"))
    author = world.start("a")["dispatch"]
    world.report(author, commit="main")
    reviewer = world.start("r")["dispatch"]
    assert world.judge(reviewer, "accept", commit="main")["task_state"] == "accepted"


@pytest.mark.parametrize("how", ["pane", "process"])
def test_a_review_comes_from_another_worker_than_the_author(how):
    world = World(a_spec("a", accept=GATE), a_review("r", "a"))
    author = world.start("a", a_launch(pane="p"))["dispatch"]
    world.see(author, E.AGENT_STARTED, pane="p", process=PROCESS)
    world.report(author, caller=worker(author, "p", PROCESS))
    if how == "pane":
        assert code(world.start("r", a_launch(pane="p"))) is Code.SAME_WORKER
        return
    reviewer = world.start("r")["dispatch"]
    world.see(reviewer, E.AGENT_STARTED, pane="q", process=PROCESS)
    assert code(world.judge(reviewer, "accept", caller=worker(reviewer, "q", PROCESS))) is Code.SAME_WORKER
    assert world.states()["a"] == "reported"


def test_a_reviewer_does_not_report_success_and_may_say_that_it_cannot_judge():
    world, _, reviewer = reviewed()
    assert code(world.report(reviewer)) is Code.BAD_REQUEST
    world.report(reviewer, "failed")
    assert (world.states()["r"], world.states()["a"]) == ("failed", "reported")


def test_a_round_is_decided_once_and_a_later_verdict_is_kept_and_changes_nothing():
    world = World(a_spec("a", accept=GATE), a_review("r1", "a"), a_review("r2", "a"))
    world.done("a")
    first, second = world.begin("r1"), world.begin("r2")
    world.judge(first, "rework", "no")
    world.done("a")
    late = world.judge(second, "accept")
    assert code(late) is Code.ALREADY_DECIDED
    assert world.states() == {"a": "reported", "r1": "ready", "r2": "ready"}
    assert world.dispatch(second).state == "succeeded"
    world.check()


def test_several_reviews_must_all_accept():
    world = World(a_spec("a", accept=GATE), a_review("r1", "a"), a_review("r2", "a"))
    world.done("a")
    world.judge(world.begin("r1"), "accept")
    assert world.states()["a"] == "reported"
    world.judge(world.begin("r2"), "accept")
    assert world.states()["a"] == "accepted"


def test_where_a_coordinator_accepts_a_review_is_advice_until_it_says_no():
    world = World(a_spec("a"), a_review("r", "a"))
    world.done("a")
    world.judge(world.begin("r"), "accept")
    assert world.states() == {"a": "reported", "r": "accepted"}
    world.say(AcceptTask(task="a", verdict=Verdict.ACCEPT), COORDINATOR)
    assert world.states() == {"a": "accepted", "r": "accepted"}


def test_a_gate_without_a_review_is_put_to_a_person():
    world = World(a_spec("a", accept=GATE), a_spec("b", "a"))
    world.done("a")
    (gate,) = world.events(GateOpened)
    assert (gate.to, gate.gate) == ("person", "r1.g1")
    assert code(world.say(AcceptTask(task="a", verdict=Verdict.ACCEPT), COORDINATOR)) is Code.LIFECYCLE_CONFLICT
    assert code(world.say(ResolveGate(gate="r1.g1", verdict=Verdict.ACCEPT), COORDINATOR)) is Code.SENDER_NOT_ASSIGNEE
    assert code(world.say(ResolveGate(gate="r1.g1", verdict=Verdict.REWORK), PERSON)) is Code.BAD_REQUEST
    world.say(ResolveGate(gate="r1.g1", verdict=Verdict.REWORK, answer="not yet"), PERSON)
    assert (world.states()["a"], world.task("a").findings) == ("ready", "not yet")
    assert code(world.say(ResolveGate(gate="r1.g1", verdict=Verdict.ACCEPT), PERSON)) is Code.ALREADY_DECIDED
    world.done("a")
    assert world.say(ResolveGate(gate="r1.g2", verdict=Verdict.ACCEPT), PERSON)["task_state"] == "accepted"
    assert world.states()["b"] == "ready"


def test_opening_a_gate_touches_no_running_attempt_and_holds_a_task_that_has_not_begun():
    world = World(a_spec("a"), a_spec("b"), a_spec("c", "b"))
    name = world.begin("a")
    asked = world.say(OpenGate(task="a", question="which way?", options=("left", "right")), worker(name))
    assert asked == {"gate": "r1.g1", "task": "a"}
    assert (world.states()["a"], world.dispatch(name).state) == ("dispatched", "running")
    world.say(OpenGate(task="b", question="really?"), COORDINATOR)
    assert (world.states()["b"], world.task("b").blocked_by, world.states()["c"]) == ("blocked", ("gate:r1.g2",), "blocked")
    assert code(world.say(OpenGate(task="b", question="and?"), COORDINATOR)) is Code.LIFECYCLE_CONFLICT
    world.say(ResolveGate(gate="r1.g2", verdict=Verdict.ACCEPT, answer="go"), COORDINATOR)
    assert (world.states()["b"], world.states()["c"], world.task("b").findings) == ("ready", "pending", "go")
    world.say(ResolveGate(gate="r1.g1", verdict=Verdict.ACCEPT, answer="left"), COORDINATOR)
    assert world.states()["a"] == "dispatched"


def test_a_gate_that_says_no_before_the_work_has_begun_ends_it():
    world = World(a_spec("a"))
    world.say(OpenGate(task="a", question="really?"), COORDINATOR)
    world.say(ResolveGate(gate="r1.g1", verdict=Verdict.REJECT, answer="no"), COORDINATOR)
    assert world.states()["a"] == "cancelled"


# ------------------------------------------------------------------- the whole


def test_three_workers_a_gate_that_depends_on_them_and_a_fix_round_end_with_everything_ended():
    world = World(
        *(a_spec(name, accept=AUTO) for name in ("w1", "w2", "w3")), a_spec("all", "w1", "w2", "w3", accept=GATE), a_review("gate", "all"),
        a_spec("ship", "all"),
    )  # fmt: skip
    for name in ("w1", "w2", "w3"):
        world.done(name)
    world.done("all")
    world.judge(world.begin("gate"), "rework", "one thing is missing")
    world.done("all")
    world.judge(world.begin("gate"), "accept")
    world.done("ship")
    world.say(AcceptTask(task="ship", verdict=Verdict.ACCEPT), COORDINATOR)
    assert set(world.states().values()) == {"accepted"}
    assert not world.run.unsettled
    assert all(dispatch.is_settled for dispatch in world.run.dispatches.values())
    assert msgspec.json.encode(world.records)
    assert {event.to for event in world.events(DispatchMoved)} >= {"succeeded"}
    world.check()
