"""What is shown of Runs, Tasks and workers, and what a worker is told."""

import msgspec
import pytest

from builders import NOW_MS, a_status
from dispatcher_builders import AUTO, COORDINATOR, GATE, PERSON, World, a_review, a_spec, worker
from tocsin.contract.messages import Ask, Evidence, PromptSeen, State
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.run import (
    ANY_RUN,
    PAGE_MAX,
    AcceptTask,
    ListGates,
    ListRuns,
    ListTasks,
    ListWorkers,
    OpenGate,
    Receipt,
    ResolveGate,
    RunCommand,
    ShowRequest,
    ShowRun,
    ShowTask,
    ShowWorker,
    TaskState,
    Verdict,
)
from tocsin.dispatcher.core.brief import brief
from tocsin.dispatcher.core.draft import Custody
from tocsin.dispatcher.core.fleet import FRESH_MS_MAX, Seen, need_first, worker_row
from tocsin.dispatcher.core.life import DispatchEvent as E
from tocsin.dispatcher.core.reads import Shown, read
from tocsin.dispatcher.core.watch import HOST_SILENT_MS

NOTHING = Seen(None, 0, None)


def look(ask, *worlds: World, run: str | None = "r1", caller=PERSON, receipt=None, seen=NOTHING, owed=()):
    """A read's result, or its refusal."""
    runs = {world.run.id: world.run for world in worlds}
    command = RunCommand(run=run or ANY_RUN, request="q", caller=caller, ask=ask, at_ms=NOW_MS)
    now_ms = max([NOW_MS, *(world.now_ms for world in worlds)])
    answer = read(command, runs.get(run or ""), Shown(runs, now_ms, lambda dispatch: seen, lambda run: owed, lambda request: receipt))
    return answer if isinstance(answer, Refusal) else answer.result


def row(world: World, name: str, seen: Seen = NOTHING, after_ms: int = 0):
    return worker_row(world.run, world.dispatch(name), seen, world.now_ms + after_ms)


# ---------------------------------------------------------------------- the fleet


PERMISSION = a_status(state=State.BLOCKED, prompts=(PromptSeen(number=1, ask=Ask.PERMISSION, since_ms=1),), live=True)


@pytest.mark.parametrize(
    ("status", "silent_ms", "wait", "live"),
    [
        (a_status(live=True), 0, "none", "live"),
        (PERMISSION, 0, "permission", "live"),
        (None, 0, "unknown", "unverifiable"),
        (a_status(live=True, hooked=False), 0, "unknown", "live"),
        (a_status(live=True, evidence=Evidence.STALE), 0, "unknown", "live"),
        (a_status(live=None), 0, "none", "unverifiable"),
        (a_status(live=True), HOST_SILENT_MS, "unknown", "unverifiable"),
        (a_status(live=False), 0, "none", "exited"),
    ],
)
def test_a_human_wait_has_three_values_and_liveness_its_reason(status, silent_ms, wait, live):
    world = World(a_spec("a"))
    shown = row(world, world.begin("a"), Seen(status, silent_ms, None))
    assert (shown["human_wait"], shown["liveness"]) == (wait, live)
    assert shown["liveness_reason"]


def test_only_a_proof_makes_a_worker_exited():
    world = World(a_spec("a"))
    name = world.begin("a")
    world.see(name, E.HOST_SILENT)
    assert row(world, name, Seen(None, HOST_SILENT_MS, None))["liveness"] == "unverifiable"
    world.see(name, E.EXIT_PROVEN)
    assert row(world, name, NOTHING)["liveness"] == "exited"


def test_a_heartbeats_age_stands_beside_liveness():
    world = World(a_spec("a"))
    name = world.begin("a")
    assert row(world, name)["heartbeat"] == "none"
    world.beat(name)
    assert (row(world, name)["heartbeat"], row(world, name, after_ms=5)["heartbeat_ms"]) == ("fresh", 5)
    stale = row(world, name, Seen(a_status(live=True), 0, None), after_ms=FRESH_MS_MAX)
    assert (stale["heartbeat"], stale["liveness"], stale["attention"], stale["requires_action"]) == ("stale", "live", ["stale"], False)


@pytest.mark.parametrize(
    ("event", "outcome", "kind"),
    [
        (E.TURN_SEEN, "in_progress", "none"),
        (E.TURN_NOT_SEEN, "outcome_unknown", "inspect"),
        (E.HOST_SILENT, "outcome_unknown", "inspect"),
        (E.EXIT_PROVEN, "finished_unverified", "recover"),
    ],
)
def test_an_attempts_outcome_is_never_guessed_and_its_next_step_is_a_command(event, outcome, kind):
    world = World(a_spec("a"))
    name = world.start("a")["dispatch"]
    world.see(name, E.AGENT_STARTED, pane="p")
    world.see(name, event)
    shown = row(world, name)
    assert (shown["outcome"], shown["next"]["kind"]) == (outcome, kind)
    assert shown["next"]["command"][-1:] == ([] if kind == "none" else [name])


def test_a_settled_worker_that_still_owns_its_terminal_is_to_be_released_and_then_nothing():
    world = World(a_spec("a", accept=AUTO))
    name = world.done("a")
    assert row(world, name, Seen(None, 0, Custody("owned", True)))["next"]["command"] == ["tocsin", "custody", "release", name]
    assert row(world, name, Seen(None, 0, Custody("released", False)))["next"] == {"kind": "none", "command": []}


def test_who_needs_somebody_stands_first_and_a_page_cuts_the_healthy_tail():
    world = World(*(a_spec(f"t{n}") for n in range(4)), workers_max=9)
    names = [world.begin(f"t{n}") for n in range(4)]
    world.see(names[2], E.EXIT_PROVEN)
    page = look(ListWorkers(limit=2), world)
    assert [one["dispatch"] for one in page["rows"]] == [names[2], names[3]]
    assert (page["total"], page["next"], page["scope"]) == (4, names[3], "r1")
    rest = look(ListWorkers(limit=2, after=page["next"]), world)
    assert ([one["dispatch"] for one in rest["rows"]], rest["next"]) == ([names[1], names[0]], None)


def test_settled_workers_are_shown_while_somebody_must_act_and_all_when_asked():
    world = World(a_spec("a", accept=AUTO), a_spec("b"))
    world.done("a")
    failed = world.done("b", "failed")
    assert [one["dispatch"] for one in look(ListWorkers(), world)["rows"]] == [failed]
    assert len(look(ListWorkers(settled=True), world)["rows"]) == 2
    assert [one["dispatch"] for one in look(ListWorkers(failed=True), world)["rows"]] == [failed]
    world.start("b", retry_of=failed)
    assert [one["fence"] for one in look(ListWorkers(), world)["rows"]] == [2], "what a newer attempt has taken over needs nobody"


def test_a_settled_worker_is_shown_while_its_terminal_has_no_disposition():
    world = World(a_spec("a", accept=AUTO))
    name = world.done("a")
    assert look(ListWorkers(), world)["rows"] == []
    shown = look(ListWorkers(), world, seen=Seen(None, 0, Custody("owned", True)), owed=(name,))
    assert [one["next"]["kind"] for one in shown["rows"]] == ["release"]


def pages(ask, *worlds: World, run: str | None = "r1") -> list[str]:
    """All pages of a list of workers, one after the other."""
    found: list[str] = []
    while True:
        page = look(msgspec.structs.replace(ask, after=found[-1] if found else None), *worlds, run=run)
        found += [one["dispatch"] for one in page["rows"]]
        if page["next"] is None:
            assert page["total"] == len(found)
            return found


def a_busy_world(run: str) -> World:
    """Attempts of every kind: accepted, reported, failed, failed and tried again, gone without a report, at work."""
    world = World(
        *(a_spec(name, accept=AUTO) for name in ("a", "b", "c")), *(a_spec(name) for name in ("d", "e", "f", "g", "h")),
        run=run, workers_max=9,
    )  # fmt: skip
    for name in ("a", "d", "b"):
        world.done(name)
    world.done("e", "failed")
    world.done("c")
    failed = world.done("f", "failed")
    world.begin("f", retry_of=failed)
    world.see(world.begin("g"), E.EXIT_PROVEN)
    world.begin("h")
    return world


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
@pytest.mark.parametrize("count", [1, 2])
def test_pages_of_workers_are_together_the_whole_list_sorted_by_need(limit, count):
    worlds = [a_busy_world(f"r{n}") for n in range(1, count + 1)]
    now_ms = max(world.now_ms for world in worlds)
    rows = [worker_row(world.run, one, NOTHING, now_ms) for world in worlds for one in world.run.dispatches.values()]
    whole = [one["dispatch"] for one in sorted(rows, key=need_first)]
    assert pages(ListWorkers(settled=True, limit=limit), *worlds, run=None if count > 1 else "r1") == whole
    assert len(whole) == 9 * count


def test_the_fleet_of_all_open_runs():
    one, two = World(a_spec("a")), World(a_spec("a"), run="r2")
    one.begin("a")
    two.begin("a")
    page = look(ListWorkers(), one, two, run=None)
    assert ({shown["run"] for shown in page["rows"]}, page["scope"]) == ({"r1", "r2"}, "all")


# ------------------------------------------------------------ Runs, Tasks, requests


def test_a_run_says_how_far_it_is_and_whether_it_stands_still():
    world = World(a_spec("a", accept=AUTO), a_spec("b"))
    assert look(ShowRun(), world)["run"]["summary"] == "quiet, nothing is under way: 2 ready"
    world.begin("a")
    shown = look(ShowRun(), world)["run"]
    assert (shown["state"], shown["unsettled"], shown["tasks"], shown["quiet"]) == ("open", 1, {"ready": 1, "dispatched": 1}, False)
    assert look(ListRuns(), world, run=None)["rows"][0]["run"] == "r1"


def test_a_list_of_tasks_is_brief_says_so_and_comes_in_pages_that_say_they_are_pages():
    world = World(*(a_spec(f"t{n}", spec="x" * 500) for n in range(PAGE_MAX + 5)))
    page = look(ListTasks(limit=1000), world)
    assert (len(page["rows"]), page["total"], page["next"]) == (PAGE_MAX, PAGE_MAX + 5, f"t{PAGE_MAX - 1}")
    assert (len(page["rows"][0]["spec"]), page["rows"][0]["spec_cut"]) == (160, True)
    assert [one["task"] for one in look(ListTasks(after=page["next"]), world)["rows"]] == [f"t{n}" for n in range(PAGE_MAX, PAGE_MAX + 5)]
    for name in ("t3", "t9", "t5"):
        world.done(name)
    reported = look(ListTasks(states=(TaskState.REPORTED,), limit=2), world)
    assert ([one["task"] for one in reported["rows"]], reported["total"], reported["next"]) == (["t3", "t5"], 3, "t5")
    world.say(AcceptTask(task="t5", verdict=Verdict.ACCEPT), COORDINATOR)
    rest = look(ListTasks(states=(TaskState.REPORTED,), limit=2, after="t5"), world)
    assert ([one["task"] for one in rest["rows"]], rest["next"]) == (["t9"], None), (
        "a page goes on where a Task stood that has left the list"
    )
    assert look(ListTasks(after="ghost", limit=1), world)["rows"][0]["task"] == "t0"


def test_a_task_is_shown_with_its_attempts_verdicts_and_who_waits_for_it():
    world = World(a_spec("a", accept=GATE), a_review("r", "a"), a_spec("b", "a"))
    world.done("a")
    world.judge(world.begin("r"), "rework", "no tests")
    shown = look(ShowTask(task="a"), world)
    assert (shown["task"]["findings"], shown["task"]["round"], shown["task"]["dependents"]) == ("no tests", 2, ["b", "r"])
    assert [one["dispatch"] for one in shown["workers"]] == ["r1.a.1"]
    assert [(one["verdict"], one["round"], one["by"]) for one in shown["verdicts"]] == [("rework", 1, "r1.r.1")]
    assert look(ShowTask(task="ghost"), world).code is Code.NOT_FOUND


def test_a_worker_is_shown_with_its_brief_its_late_reports_and_what_was_refused():
    world = World(a_spec("a"))
    first = world.begin("a")
    world.start("a", supersede="stuck")
    world.report(first)
    world.report(first, caller=worker("r9.x.1", "q"), dispatch=first)
    shown = look(ShowWorker(dispatch=first), world)
    assert "Task a: do a" in shown["brief"]
    assert [late["outcome"] for late in shown["late_reports"]] == ["succeeded"]
    assert [refused["code"] for refused in shown["refused"]] == ["sender_not_assignee"]
    assert (shown["worker"]["current"], shown["worker"]["late_reports"]) == (False, 1)


def test_a_start_is_pending_until_it_is_known_to_have_begun_and_is_never_dropped_before():
    world = World(a_spec("a"))
    started = world.start("a")
    receipt = Receipt(request="q", result=started)
    assert look(ShowRequest(id="q"), world, receipt=receipt)["state"] == "pending"
    world.see(started["dispatch"], E.TURN_SEEN)
    shown = look(ShowRequest(id="q"), world, receipt=receipt)
    assert (shown["state"], shown["worker"]["state"]) == ("completed", "running")
    assert look(ShowRequest(id="other"), world)["state"] == "absent"


def test_a_worker_sees_the_run_it_works_for_and_those_nested_in_it_and_no_other():
    mine, foreign = World(a_spec("a")), World(a_spec("a"), run="r2")
    own = worker(mine.begin("a"))
    assert look(ShowRun(), mine, foreign, caller=own)["run"]["run"] == "r1"
    absent = look(ShowRun(), mine, foreign, run="r2", caller=own)
    assert (absent.code, absent.message) == (Code.NOT_FOUND, "there is no Run r2")
    assert [one["run"] for one in look(ListRuns(), mine, foreign, run=None, caller=own)["rows"]] == ["r1"]


# ----------------------------------------------------------------------- the brief


def test_a_brief_is_one_screen_names_no_id_to_copy_and_puts_the_vital_part_first():
    world = World(a_spec("a", spec="Make the tests pass."))
    text = brief(world.run, world.task("a"))
    lines = text.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 110
    assert "r1" not in text
    assert text.index("tocsin report succeeded") < text.index("Make the tests pass.")
    for command in ("tocsin report", "tocsin heartbeat", "tocsin ask", "tocsin mail check"):
        assert command in text
    assert not [word for word in ("!", "MUST", "NEVER", "IMPORTANT") if word in text], "nothing is shouted"


def test_a_brief_tells_what_it_builds_on_and_a_reviews_what_to_judge():
    world = World(a_spec("a"), a_spec("b", "a", accept=GATE), a_review("r", "b", "a"))
    first = world.begin("a")
    world.report(first, commit="abc1234")
    world.say(AcceptTask(task="a", verdict=Verdict.ACCEPT), COORDINATOR)
    assert "  a (commit abc1234): done" in brief(world.run, world.task("b"))
    second = world.begin("b")
    world.see(second, E.TERMINAL_MADE, path="/repo/b")
    world.report(second, commit="def5678")
    text = brief(world.run, world.task("r"))
    assert "tocsin review verdict accept --commit def5678" in text
    assert "It was reported" in text


def test_a_brief_is_the_same_text_that_an_agents_hook_will_name():
    world = World(a_spec("a", spec="\tindented\n\n"))
    text = brief(world.run, world.task("a"))
    assert text == text.strip()
    assert "\t" not in text


def test_open_gates_are_listed_and_answered_ones_when_asked_for():
    world = World(a_spec("a"))
    name = world.begin("a")
    world.say(OpenGate(task="a", question="which way?", options=("left", "right")), worker(name))
    (gate,) = look(ListGates(), world)["rows"]
    assert (gate["gate"], gate["open"], gate["options"], gate["task"]) == ("r1.g1", True, ["left", "right"], "a")
    world.say(ResolveGate(gate="r1.g1", verdict=Verdict.ACCEPT, answer="left"), PERSON)
    assert look(ListGates(), world)["rows"] == []
    assert [one["answer"] for one in look(ListGates(all=True), world)["rows"]] == ["left"]


def test_of_many_gates_the_last_are_shown_in_the_order_in_which_they_were_opened():
    world = World(a_spec("a"))
    for number in range(1, PAGE_MAX + 3):
        world.say(OpenGate(task="a", question=f"question {number}?"), PERSON)
        world.say(ResolveGate(gate=f"r1.g{number}", verdict=Verdict.ACCEPT), PERSON)
    shown = look(ListGates(all=True), world)
    assert [one["gate"] for one in shown["rows"]] == [f"r1.g{number}" for number in range(3, PAGE_MAX + 3)]
    assert shown["total"] == PAGE_MAX + 2
