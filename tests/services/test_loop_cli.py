"""The loop's verbs as a coordinator, a worker and a script meet them; the services are a few lines that answer what a test is about."""

import asyncio
import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from builders import a_status
from loop_cli_builders import (
    ANSWERED,
    ASKED,
    CREATED,
    EMPTY_INBOX,
    OWNER,
    PANE,
    SERVER,
    STARTED,
    Answer,
    Command,
    PaneHost,
    a_delivery,
    a_message,
    a_run_row,
    a_shown_worker,
    a_task_row,
    a_worker_row,
    mails,
    runs,
    serving,
    serving_commands,
    taken,
)
from support import Deadline, settled
from tmux_server import TmuxServer
from tocsin.cli import mail, starting
from tocsin.cli.callers import Memory
from tocsin.cli.lines import Post
from tocsin.cli.speak import Options, Speaker
from tocsin.contract.mail import AckMail, AskQuestion, CheckMail, EndWait, MailType, ReadMail, ReadWakes, ReplyMail, SendMail
from tocsin.contract.messages import Process
from tocsin.contract.parties import Caller, Role
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.run import (
    ANY_RUN,
    AcceptTask,
    Beat,
    CloseRun,
    CreateRun,
    GiveVerdict,
    ListRuns,
    ListTasks,
    ListWorkers,
    OpenGate,
    PauseRun,
    PurgeRun,
    Receipt,
    Refused,
    ReportWork,
    ResolveGate,
    ShowRequest,
    ShowRun,
    ShowWorker,
    StartWorker,
    StopWorker,
    TaskState,
    UpdateTask,
    Verdict,
    Where,
    new_run_id,
)
from tocsin.contract.subjects import CUSTODY_CMD, MAIL_CMD, PANE_STATUS, RUN_CMD
from tocsin.pane_host.hands import runner
from tocsin.pane_host.hands.made import Cabinet, Made


@pytest.fixture
def tocsin(nats_server, tmp_path) -> Command:
    return Command(tmp_path, nats_server.url)


@pytest.fixture
def pane(tmp_path) -> PaneHost:
    return PaneHost(tmp_path / "pane")


@pytest.fixture
def inside(pane, tmp_path) -> Command:
    return pane.command(tmp_path)


# ---------------------------------------------------------------- who asks, and about which Run


async def test_creating_a_run_binds_the_pane_so_that_no_other_verb_has_to_name_it(bus, tocsin):
    here = tocsin.with_(**SERVER)
    async with runs(bus, create=CREATED, pause={"run": "r1"}) as got:
        said = await here.json("run", "create", "build", "it")
        assert (said["run"], said["generation"], said["duplicate"]) == ("r1", 1, False)
        await here.json("run", "pause", "--reason", "lunch")
    created, paused = got
    assert created.ask == CreateRun(objective="build it")
    assert created.caller == Caller(role=Role.COORDINATOR, name="dev@h", host="h", pane=PANE)
    assert created.run == new_run_id(created.caller, said["request"])
    assert (paused.run, paused.generation, paused.ask) == ("r1", 1, PauseRun(reason="lunch"))


async def test_each_pane_is_bound_to_its_own_run(bus, tocsin):
    one, other = tocsin.with_(**SERVER), tocsin.with_(**SERVER | {"TMUX_PANE": "%4"})
    async with runs(bus, use=CREATED, show={"run": a_run_row()}) as got:
        await one.json("run", "use", "r1")
        await one.json("run", "show")
    assert got[-1].run == "r1"
    async with runs(bus, list={"rows": [], "total": 0, "next": None}):
        assert (await other.refused("run", "show"))["code"] == "run_required"


async def test_in_codex_the_pane_is_that_of_its_session_since_its_shells_have_the_environment_of_another(bus, tocsin):
    await bus.say(PANE_STATUS, a_status(host="h", pane="default.4711.7", agent="codex", session="c1"))
    async with runs(bus, create=CREATED) as got:
        for session in ("c1", "c2"):
            await tocsin.with_(**SERVER, CODEX_SESSION_ID=session).json("run", "create", "x")
    known, unknown = (command.caller for command in got)
    assert (known.pane, known.session) == ("default.4711.7", "c1")
    assert (unknown.pane, unknown.session) == (None, "c2")  # never the pane of whoever started the daemon


async def test_a_shell_outside_tmux_is_bound_as_well(bus, tocsin):
    async with runs(bus, create=CREATED, show={"run": a_run_row()}) as got:
        await tocsin.json("run", "create", "build it")
        await tocsin.json("run", "show")
    assert got[-1].run == "r1"
    assert got[-1].caller.pane is None


async def test_a_run_that_is_named_goes_before_the_environment_and_that_before_what_is_bound(bus, tocsin):
    here = tocsin.with_(**SERVER)
    async with runs(bus, create=CREATED, resume={"run": "r"}) as got:
        await here.json("run", "create", "build it")
        await here.with_(TOCSIN_RUN="r2").json("run", "resume")
        await here.with_(TOCSIN_RUN="r2").json("run", "resume", "r3")
        assert [command.run for command in got[1:]] == ["r2", "r3"]
        assert [command.generation for command in got[1:]] == [None, None]
        _, _, said = await here.with_(TOCSIN_RUN="r2").run("run", "create", "another")
    assert "export TOCSIN_RUN=r1" in said


async def test_without_anything_bound_the_only_open_run_of_this_caller_is_meant(bus, tocsin):
    here = tocsin.with_(**SERVER)
    foreign = a_run_row(run="r9", coordinator=OWNER | {"pane": "default.4711.4"})
    async with runs(bus, list={"rows": [foreign, a_run_row()], "total": 2, "next": None}, show={"run": a_run_row()}) as got:
        await here.json("run", "show")
    assert [(command.run, command.ask) for command in got] == [(ANY_RUN, ListRuns(limit=100)), ("r1", ShowRun())]


async def test_with_several_open_runs_the_caller_is_asked_which(bus, tocsin):
    rows = [a_run_row(), a_run_row(run="r2")]
    async with runs(bus, list={"rows": rows, "total": 2, "next": None}):
        refused = await tocsin.with_(**SERVER).refused("task", "list")
    assert refused["code"] == "run_required"
    assert refused["next"] == ["--run r1", "--run r2"]


async def test_a_purged_run_is_bound_to_nobody_any_more(bus, tocsin):
    here = tocsin.with_(**SERVER)
    async with runs(bus, create=CREATED, purge={"run": "r1"}, list={"rows": [], "total": 0, "next": None}) as got:
        await here.json("run", "create", "build it")
        await here.json("run", "purge", "r1")
        assert got[-1].ask == PurgeRun()
        assert (await here.refused("run", "show"))["code"] == "run_required"


async def test_a_person_says_that_they_decide_themselves(bus, tocsin):
    async with runs(bus, resolve_gate={"gate": "r1.g1", "task": "api", "verdict": "accept", "task_state": "accepted"}) as got:
        await tocsin.json("gate", "resolve", "r1.g1", "accept", "go on", "--person")
    assert got[0].caller.role is Role.PERSON
    assert (got[0].run, got[0].ask) == ("r1", ResolveGate(gate="r1.g1", verdict=Verdict.ACCEPT, answer="go on"))


async def test_who_is_no_coordinator_of_a_run_and_never_was_decides_as_a_person(bus, tocsin):
    def answer(command: Any) -> Answer:
        is_coordinator = command.caller.role is Role.COORDINATOR
        return Refusal(Code.CONSUMER_FENCED, "r1 is bound to somebody else") if is_coordinator else {"run": "r1"}

    async with serving_commands(bus, RUN_CMD, answer) as got:
        await tocsin.json("run", "pause", "r1")
        assert [command.caller.role for command in got] == [Role.COORDINATOR, Role.PERSON]
        assert len({command.request for command in got}) == 1


async def test_a_coordinator_that_was_replaced_is_told_and_is_no_person_by_that(bus, tocsin):
    here = tocsin.with_(**SERVER)
    async with runs(bus, create=CREATED, pause=Refusal(Code.CONSUMER_FENCED, "r1 is at generation 2")) as got:
        await here.json("run", "create", "build it")
        assert (await here.refused("run", "pause"))["code"] == "consumer_fenced"
    assert [command.caller.role for command in got] == [Role.COORDINATOR, Role.COORDINATOR]


# ---------------------------------------------------------------- requests


async def test_a_request_has_an_id_that_is_printed_and_can_be_given_again(bus, tocsin):
    async with runs(bus, pause={"run": "r1"}) as got:
        code, out, _ = await tocsin.run("run", "pause", "r1")
        assert code == 0
        assert out.splitlines() == ["Run r1: paused: nothing new starts", f"request {got[0].request}"]
        await tocsin.json("run", "pause", "r1", "--request", got[0].request)
    assert got[0].request == got[1].request


async def test_a_service_that_is_away_is_asked_again_under_the_same_id(bus, tocsin):
    answers: list[Answer] = [Refusal(Code.UNAVAILABLE, "starting"), Refusal(Code.UNAVAILABLE, "starting"), {"run": "r1"}]
    async with serving(bus, RUN_CMD, lambda _: answers.pop(0)) as got:
        await tocsin.json("run", "pause", "r1")
    assert len(got) == 3
    assert len({command.request for command in got}) == 1


async def test_when_nobody_answers_in_time_the_id_finds_out_later(tocsin):
    code, out, err = await tocsin.run("run", "pause", "r1", "--timeout", "0.2", "--json")
    said = json.loads(err)
    assert (code, out) == (4, "")
    assert (said["code"], said["retry"]) == ("unavailable", "same_request")
    assert said["next"][0] == f"the same command with --request {said['request']}"


async def test_a_bus_that_is_away_is_unavailable_after_the_time_that_was_given(tmp_path):
    code, out, err = await Command(tmp_path).run("run", "list", "--timeout", "0.1")
    assert (code, out) == (4, "")
    assert "does not answer" in err
    assert "next: tocsin doctor" in err


async def test_a_refusal_says_code_message_retry_and_next_steps(bus, tocsin):
    async with runs(bus, close=Refusal(Code.OBLIGATIONS, "r1.api.1 has no owner")) as got:
        said = await tocsin.refused("run", "close", "r1")
        assert said["code"] == "obligations"
        assert (said["message"], said["retry"]) == ("r1.api.1 has no owner", "after_change")
        assert "tocsin custody list" in said["next"]
        code, out, err = await tocsin.run("run", "close", "r1", "--force", "it is over")
    assert (code, out) == (3, "")
    assert err.splitlines()[0] == "tocsin: r1.api.1 has no owner [obligations]"
    assert "  next: tocsin audit" in err.splitlines()
    assert got[-1].ask == CloseRun(force="it is over")


async def test_ctrl_c_says_that_the_same_id_finds_out(bus, tocsin):
    asked = asyncio.Event()

    async def never(_command: Any) -> Receipt:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with bus.serve(RUN_CMD, never, name="fake"):
        await settled(bus.client)
        process = tocsin.start("run", "pause", "r1", "--request", "q7")
        await asyncio.wait_for(asked.wait(), 20)
        process.send_signal(signal.SIGINT)
        _, err = await asyncio.to_thread(process.communicate, timeout=20)
    assert process.returncode == 130
    assert "--request q7" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
async def test_a_wait_that_is_given_up_is_ended_at_the_other_end_too(bus, tocsin, number, code):
    parked: asyncio.Queue[Any] = asyncio.Queue()

    async def handle(command: Any) -> Receipt:
        await parked.put(command)
        if isinstance(command.ask, CheckMail):
            await asyncio.Event().wait()
        return Receipt(request=command.request)

    async with bus.serve(MAIL_CMD, handle, name="fake"):
        await settled(bus.client)
        process = tocsin.start("mail", "check", "--wait", "10m", "--run", "r1")
        wait = await asyncio.wait_for(parked.get(), 20)
        process.send_signal(number)
        ended = await asyncio.wait_for(parked.get(), 20)
        _, err = await asyncio.to_thread(process.communicate, timeout=20)
    assert ended.ask == EndWait(wait=wait.request)
    assert process.returncode == code
    assert "Traceback" not in err


class FakeLine:
    """Answers what the test says, and keeps what it was asked."""

    def __init__(self, *answers: Answer | Exception) -> None:
        self.answers = list(answers)
        self.got: list[tuple[Post, Any]] = []

    async def put(self, post: Post, command: Any, request: str, timeout_s: float, keep: bool) -> Receipt | Refused:
        self.got.append((post, command))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Refusal):
            return Refused(request=request, code=answer.code, message=answer.message, retry=answer.advice.retry)
        return Receipt(request=request, result=answer)


def a_speaker(line: FakeLine, tmp_path: Path, **fields: Any) -> Speaker:
    caller = Caller(role=Role.COORDINATOR, name="dev@h", host="h")
    return Speaker(line, caller, Memory(tmp_path), Options(run="r1", limit_s=5.0), "h", fields.get("inside", False))


async def test_a_long_wait_is_asked_in_slices_and_an_empty_one_says_nothing_bad(tmp_path, monkeypatch):
    monkeypatch.setattr(mail, "SLICE_S", 0.01)
    line = FakeLine(a_delivery(), a_delivery(), a_delivery(a_message()))
    receipt = await mail.check(a_speaker(line, tmp_path), "run:r1", CheckMail(ack="run:r1.d0"), 60)
    assert isinstance(receipt, Receipt)
    assert len(receipt.result["messages"]) == 1
    asked = [command for _, command in line.got]
    assert [command.ask.ack for command in asked] == ["run:r1.d0", None, None]
    assert len({command.request for command in asked}) == 3
    assert all(command.ask.wait_ms == 10 for command in asked)


async def test_a_wait_ends_with_its_time(tmp_path):
    line = FakeLine(a_delivery())
    receipt = await mail.check(a_speaker(line, tmp_path), "run:r1", CheckMail(), 0.0)
    assert isinstance(receipt, Receipt)
    assert receipt.result["messages"] == []


# ---------------------------------------------------------------- runs and tasks


async def test_runs_are_listed_and_a_page_says_that_it_is_one(bus, tocsin):
    async with runs(bus, list={"rows": [a_run_row()], "total": 3, "next": "c1"}) as got:
        code, out, _ = await tocsin.run("run", "list", "--closed", "--limit", "1")
    heading, row, left = out.splitlines()
    assert code == 0
    assert heading.split() == ["run", "state", "tasks", "unsettled", "gates", "coordinator", "age", "objective"]
    assert row.split()[:6] == ["r1", "open", "3", "1", "0", "dev@h"]
    assert left == "1 of 3; the next ones: tocsin run list --closed --after c1"
    assert got[0].ask == ListRuns(closed=True, limit=1)


async def test_a_run_is_shown_for_a_person_and_for_a_program(bus, tocsin):
    async with runs(bus, show={"run": a_run_row(state="circuit", why="three failures in a row")}):
        _, out, _ = await tocsin.run("run", "show", "r1")
        said = await tocsin.json("run", "show", "r1")
    assert "r1  circuit: three failures in a row" in out
    assert "Tasks: 2 ready, 1 accepted. Unsettled attempts: 1 (at most 8)." in out
    assert said["state"] == "circuit"


async def test_one_task_is_added_with_what_was_said_of_it(bus, tocsin):
    async with runs(bus, add={"tasks": [{"task": "check", "state": "pending", "blocked_by": ["api"]}]}) as got:
        code, out, _ = await tocsin.run(
            "task", "add", "check", "read", "it", "--spec", "-", "--deps", "api,docs", "--review", "api", "--accept", "auto",
            "--max-rounds", "0", "--on-settle", "release", "--run", "r1", said="carefully\n",
        )  # fmt: skip
    (task,) = got[0].ask.tasks
    assert msgspec.to_builtins(task) == {
        "id": "check", "title": "read it", "spec": "carefully\n", "deps": ("api", "docs"), "kind": "review", "reviews": "api",
        "accept": "auto", "max_rounds": 0, "on_settle": "release",
    }  # fmt: skip
    assert code == 0
    assert out.startswith("check: pending (waits for api)\n")


async def test_a_graph_is_added_from_a_file_or_from_standard_input(bus, tocsin, tmp_path):
    (tmp_path / "graph.yaml").write_text("- {id: api, title: the API}\n- {id: docs, title: words, deps: [api]}\n")
    rows = [{"task": "api", "state": "ready", "blocked_by": []}, {"task": "docs", "state": "pending", "blocked_by": ["api"]}]
    async with runs(bus, add={"tasks": rows}) as got:
        await tocsin.json("task", "add", "--file", "graph.yaml", "--run", "r1")
        await tocsin.run("task", "add", "--file", "-", "--run", "r1", said='[{"id": "api", "title": "the API"}]')
    assert [[task.id for task in command.ask.tasks] for command in got] == [["api", "docs"], ["api"]]


async def test_a_file_with_mistakes_asks_nobody_and_names_every_line(tocsin, tmp_path):
    (tmp_path / "graph.yaml").write_text("- id: api\n  titel: the API\n- id: a b\n  title: x\n")
    code, out, err = await tocsin.run("task", "add", "--file", "graph.yaml", "--run", "r1")
    assert (code, out) == (2, "")
    assert err.splitlines() == [
        "graph.yaml:1: spec: missing; say what is to be done",
        "graph.yaml:2: titel: no such field; did you mean title?",
        "graph.yaml:3: id: no id of a Task; use 1 to 64 letters, digits, - and _",
    ]
    code, _, err = await tocsin.run("task", "add", "--file", "graph.yaml", "--run", "r1", "--json")
    assert [fault["line"] for fault in json.loads(err)["faults"]] == [1, 2, 3]
    assert (await tocsin.run("task", "add", "--file", "nothing.yaml", "--run", "r1"))[0] == 2


async def test_a_task_is_changed_judged_and_shown(bus, tocsin):
    shown = {
        "task": a_task_row(findings="no tests", state="ready", why="sent back", dependents=["docs"]),
        "workers": [a_worker_row()],
        "verdicts": [],
    }
    row = {"task": a_task_row(state="ready", why="sent back")}
    async with runs(bus, update=row, accept=row, reopen=row, cancel=row, task=shown) as got:
        await tocsin.json("task", "update", "api", "--deps", "", "--title", "the whole API", "--run", "r1")
        code, out, _ = await tocsin.run("task", "accept", "api", "rework", "--reason", "no tests", "--commit", "abc", "--run", "r1")
        await tocsin.json("task", "reopen", "api", "--reason", "again", "--run", "r1")
        await tocsin.json("task", "cancel", "api", "--reason", "nobody knows", "--unverifiable", "--run", "r1")
        _, told, _ = await tocsin.run("task", "show", "api", "--run", "r1")
    assert got[0].ask == UpdateTask(task="api", title="the whole API", deps=())
    assert got[1].ask == AcceptTask(task="api", verdict=Verdict.REWORK, reason="no tests", commit="abc")
    assert got[3].ask.unverifiable
    assert (code, out.splitlines()[0]) == (0, "api: ready: sent back")
    assert "Findings: no tests" in told
    assert "needed by docs" in told
    assert "r1.api.1  codex  running" in told


async def test_tasks_are_listed_by_state_and_ready_ones_by_a_word_of_their_own(bus, tocsin):
    rows = [a_task_row(state="blocked", blocked_by=["docs"])]
    async with runs(bus, tasks={"rows": rows, "total": 9, "next": "c"}) as got:
        _, out, _ = await tocsin.run("task", "list", "--status", "blocked", "--run", "r1")
        await tocsin.json("task", "list", "--ready", "--run", "r1")
    assert out.splitlines()[1].split() == ["api", "blocked", "0", "0", "-", "docs", "the", "API"]
    assert out.splitlines()[2] == "1 of 9; the next ones: tocsin task list --run r1 --status blocked --after c"
    assert [command.ask for command in got] == [ListTasks(states=(TaskState.BLOCKED,)), ListTasks(states=(TaskState.READY,))]


# ---------------------------------------------------------------- workers


async def test_a_worker_is_started_nowhere_unless_it_is_said_where(bus, tocsin):
    async with runs(bus) as got:
        refused = await tocsin.refused("worker", "start", "api", "--agent", "codex", "--run", "r1")
        assert refused["code"] == "placement_required"
        assert (await tocsin.refused("worker", "start", "api", "--agent", "codex", "--where", "existing", "--run", "r1"))[
            "code"
        ] == "placement_required"
        refused = await tocsin.refused("worker", "start", "api", "--agent", "codex", "--where", "current", "--path", "gone", "--run", "r1")
        assert refused["code"] == "bad_place"
    assert got == []


async def test_a_start_says_where_with_what_and_how(bus, tocsin, tmp_path):
    async with runs(bus, start=STARTED) as got:
        await tocsin.json(
            "worker", "start", "api", "--where", "new-child", "--branch", "api", "--base", "main", "--setup", "make", "--no-wait",
            "--agent", "generic", "--terminal", "process", "--retry-of", "r1.api.0", "--detach", "--run", "r1",
        )  # fmt: skip
    ask = got[0].ask
    assert isinstance(ask, StartWorker)
    assert (ask.task, ask.retry_of, ask.supersede) == ("api", "r1.api.0", None)
    assert (ask.launch.agent, ask.launch.host, ask.launch.terminal) == ("generic", "h", "process")
    placement = ask.launch.placement
    assert (placement.where, placement.path) == (Where.NEW_CHILD, str(tmp_path.resolve()))
    assert (placement.branch, placement.base, placement.setup, placement.wait_for_setup) == ("api", "main", "make", False)


async def test_the_program_of_a_generic_worker_stands_last_as_words_or_in_one_piece(bus, tocsin):
    words = ("worker", "start", "api", "--where", "current", "--agent", "generic", "--detach", "--json", "--run", "r1", "--command")
    async with runs(bus, start=STARTED) as got:
        assert (await tocsin.run(*words, "python", "agent.py", "--control", "a b"))[0] == 0
        assert (await tocsin.run(*words, "python agent.py --control 'a b'"))[0] == 0
        assert (await tocsin.run(*words, "python 'agent.py"))[0] == 2
    assert [command.ask.launch.command for command in got] == [("python", "agent.py", "--control", "a b")] * 2


async def test_a_new_worktree_has_a_branch_of_its_own_that_a_repeated_request_keeps(bus, tocsin):
    words = ("worker", "start", "api", "--where", "new-top-level", "--agent", "codex", "--detach", "--run", "r1")
    async with runs(bus, start=STARTED) as got:
        for more in (["--request", "q1"], ["--request", "q1"], []):
            await tocsin.json(*words, *more)
    one, again, other = (command.ask.launch.placement.branch for command in got)
    assert one.startswith("api-")
    assert one == again != other


async def test_the_agent_is_the_tasks_own_when_none_is_named(bus, tocsin):
    async with runs(bus, start=STARTED, task={"task": a_task_row(), "workers": [], "verdicts": []}) as got:
        await tocsin.json("worker", "start", "api", "--where", "current", "--detach", "--run", "r1")
    assert got[-1].ask.launch.agent == "codex"
    async with runs(bus, task={"task": a_task_row(agent=None), "workers": [], "verdicts": []}):
        refused = await tocsin.refused("worker", "start", "api", "--where", "current", "--run", "r1")
    assert refused["next"] == ["--agent AGENT"]


async def start_with(bus, tocsin: Command, *rows: dict[str, Any]) -> tuple[int, str, str]:
    left = list(rows)

    def answer(ask: Any) -> Answer:
        if isinstance(ask, StartWorker):
            return STARTED
        return a_shown_worker(**(left.pop(0) if len(left) > 1 else left[0]))

    async with serving(bus, RUN_CMD, answer):
        return await tocsin.run("worker", "start", "api", "--where", "current", "--agent", "codex", "--run", "r1", "--timeout", "5")


async def test_a_start_is_waited_for_until_its_turn_is_seen(bus, tocsin):
    code, out, _ = await start_with(
        bus, tocsin, {"state": "requested"}, {"state": "starting", "turn_start": "awaited"}, {"state": "running"}
    )
    assert code == 0
    assert out.splitlines()[:2] == ["r1.api.1: codex on h in pane tocsin.1.2 at /w/api", "running: turn start seen"]


async def test_a_start_whose_turn_was_not_seen_is_no_success_and_no_failure(bus, tocsin):
    code, out, _ = await start_with(bus, tocsin, {"state": "start_unknown", "turn_start": "not_seen", "why": "no hook in 60 s"})
    assert code == 1
    assert "turn start was not seen. It keeps its rights" in out
    assert "submitted" not in out


async def test_a_start_that_failed_says_why_and_what_helps(bus, tocsin):
    code, out, err = await start_with(
        bus, tocsin, {"state": "failed", "code": "agent_missing", "why": "codex is not on PATH", "turn_start": "not_seen"}
    )
    assert (code, out) == (3, "")
    assert err.splitlines()[0] == "tocsin: r1.api.1 has failed: codex is not on PATH [agent_missing]"
    assert "  next: install it" in err.splitlines()


async def test_a_start_that_somebody_ended_meanwhile_is_told_as_that(bus, tocsin):
    code, _, err = await start_with(bus, tocsin, {"state": "superseded", "why": "by r1.api.2"})
    assert code == 3
    assert "r1.api.1 is superseded: by r1.api.2 [lifecycle_conflict]" in err


async def test_a_start_that_takes_longer_goes_on_and_says_so(bus, tocsin, tmp_path):
    row = a_worker_row(state="starting", why="setup runs", turn_start="awaited")
    looked = await starting.wait(a_speaker(FakeLine({"worker": row}), tmp_path), "r1.api.1", starting.STARTED, 0.0)
    assert looked == row
    assert starting.said(starting.DispatchState.STARTING, row)[0] == "starting: setup runs: not ready in this time, and it goes on"


async def test_a_start_whose_wait_is_given_up_goes_on_and_is_named(bus, tocsin):
    looked = asyncio.Event()

    def answer(ask: Any) -> Answer:
        if isinstance(ask, ShowWorker):
            looked.set()
            return a_shown_worker(state="starting")
        return STARTED

    async with serving(bus, RUN_CMD, answer):
        process = tocsin.start("worker", "start", "api", "--where", "current", "--agent", "codex", "--run", "r1")
        await asyncio.wait_for(looked.wait(), 20)
        process.send_signal(signal.SIGINT)
        _, err = await asyncio.to_thread(process.communicate, timeout=20)
    assert process.returncode == 130
    assert "r1.api.1 is under way and goes on" in err


async def test_superseding_needs_a_reason_and_a_place(bus, tocsin):
    async with runs(bus, start=STARTED) as got:
        await tocsin.json(
            "worker", "supersede", "api", "--reason", "it hangs", "--where", "current", "--agent", "codex", "--detach", "--run", "r1"
        )
        assert got[0].ask.supersede == "it hangs"
        assert (await tocsin.run("worker", "supersede", "api", "--where", "current", "--run", "r1"))[0] == 2


async def test_the_fleet_has_its_columns_and_keeps_the_order_of_need(bus, tocsin):
    asks = a_worker_row(
        dispatch="r1.docs.1", liveness="unverifiable", liveness_reason="host_unavailable", outcome="outcome_unknown", attention=["unverifiable", "approval"],
        requires_action=True, human_wait="permission", heartbeat="stale", next={"kind": "inspect", "command": ["tocsin", "worker", "show", "r1.docs.1"]},
    )  # fmt: skip
    quiet = a_worker_row(human_wait="unknown", heartbeat="none", heartbeat_ms=None, custody=None)
    async with runs(bus, workers={"rows": [asks, quiet], "total": 2, "next": None, "scope": "r1"}) as got:
        code, out, _ = await tocsin.run("worker", "list", "--run", "r1")
        said = await tocsin.json("worker", "list", "--failed", "--run", "r1")
    heading, first, second = out.splitlines()
    assert code == 0
    assert heading.split() == [
        "dispatch",
        "agent",
        "state",
        "liveness",
        "outcome",
        "activity",
        "attention",
        "human",
        "beat",
        "custody",
        "next",
    ]
    assert first.startswith("r1.docs.1")
    for word in (
        "unverifiable (host_unavailable)",
        "outcome_unknown",
        "!unverifiable, approval",
        "permission",
        "1m stale",
        "owned",
        "tocsin worker show r1.docs.1",
    ):
        assert word in first
    assert second.split()[-4:] == ["?", "-", "-", "-"]
    assert [row["dispatch"] for row in said["rows"]] == ["r1.docs.1", "r1.api.1"]
    assert got[1].ask == ListWorkers(failed=True)


async def test_without_a_run_the_fleet_is_that_of_all_open_runs(bus, tocsin):
    fleet = {"rows": [a_worker_row()], "total": 101, "next": "c", "scope": "all"}
    async with runs(bus, list={"rows": [], "total": 0, "next": None}, workers=fleet) as got:
        _, out, _ = await tocsin.run("worker", "list", "--all")
    assert got[-1].run == ANY_RUN
    assert out.splitlines()[-1] == "all open Runs: 1 of 101; the next ones: tocsin worker list --every-run --all --after c"


async def test_a_worker_is_shown_with_its_place_and_what_was_refused(bus, tocsin):
    shown = a_shown_worker(report={"outcome": "succeeded", "body": "done"}) | {
        "refused": [{"what": "report", "code": "not_lead", "why": "a child said it"}]
    }
    async with runs(bus, worker=shown):
        _, out, _ = await tocsin.run("worker", "show", "r1.api.1")
    assert "Placement new-child, branch api" in out
    assert "Refused report: a child said it [not_lead]" in out
    assert "Heartbeat: fresh, 1m ago, reviewing" in out


async def test_stopping_waits_for_the_end_and_succeeds_when_there_is_nothing_left_to_end(bus, tocsin):
    states = ["stopping", "stopped"]

    def answer(ask: Any) -> Answer:
        if isinstance(ask, StopWorker):
            return {"dispatch": "r1.api.1", "state": "stopping", "already_ended": False}
        return a_shown_worker(state=states.pop(0))

    async with serving(bus, RUN_CMD, answer):
        assert (await tocsin.run("worker", "stop", "r1.api.1", "--reason", "enough"))[1].startswith("r1.api.1: stopped\n")
    async with runs(bus, stop={"dispatch": "r1.api.1", "state": "stopped", "already_ended": True}):
        code, out, _ = await tocsin.run("worker", "stop", "r1.api.1")
    assert (code, out.splitlines()[0]) == (0, "r1.api.1: stopped (it had ended already)")


async def test_an_abandoned_worker_is_told_how_to_be_closed(bus, tocsin):
    async with runs(bus, abandon={"dispatch": "r1.api.1", "state": "abandoned"}):
        _, out, _ = await tocsin.run("worker", "abandon", "r1.api.1", "--reason", "lost")
    assert "tocsin custody release r1.api.1" in out


async def test_a_request_is_shown_as_completed_pending_or_absent(bus, tocsin):
    pending = {"request": "q1", "state": "pending", "receipt": None, "worker": a_worker_row(state="starting")}
    async with runs(bus, request=pending) as got:
        code, out, _ = await tocsin.run("request", "show", "q1", "--run", "r1")
    assert code == 1
    assert out.startswith("q1: pending")
    assert got[0].ask == ShowRequest(id="q1")


async def test_gates_are_opened_and_listed(bus, tocsin):
    row = {
        "gate": "r1.g1", "task": "api", "question": "which port?", "options": ["80", "81"], "to": "person", "open": True, "verdict": None,
        "answer": "", "by": None, "opened_ms": 0, "resolved_ms": None,
    }  # fmt: skip
    async with runs(bus, open_gate={"gate": "r1.g1", "task": "api"}, gates={"rows": [row], "total": 1}) as got:
        await tocsin.json("gate", "create", "api", "which", "port?", "--option", "80", "--option", "81", "--to", "person", "--run", "r1")
        _, out, _ = await tocsin.run("gate", "list", "--run", "r1")
    assert got[0].ask == OpenGate(task="api", question="which port?", options=("80", "81"), to="person")
    assert "which port? [80 | 81]" in out


# ---------------------------------------------------------------- mail


async def test_a_delivery_is_shown_with_the_command_that_acks_it_and_what_waits_behind_it(bus, tocsin):
    question = a_message(id="r1.docs.1.q1", type="question", body="which port?", subject="which port?", options=["80", "81"])
    beyond = {"count": 3, "actionable": [{"id": "m9", "type": "escalation", "sender": "dispatch:r1.x.1", "subject": "help"}]}
    async with mails(bus, check=a_delivery(a_message(), question, beyond=beyond)) as got:
        code, out, _ = await tocsin.run("mail", "check", "--ack", "run:r1.d0", "--run", "r1")
    assert code == 0
    assert got[0].mailbox == "run:r1"
    assert got[0].ask == CheckMail(ack="run:r1.d0")
    for line in (
        "[m1] report from dispatch:r1.api.1, Task api", "  all tests pass", "  choose: 80 | 81", "  answer: tocsin mail reply r1.docs.1.q1 ANSWER",
        "When dealt with: tocsin mail ack run:r1.d1", "3 more behind them; escalation from dispatch:r1.x.1: help",
    ):  # fmt: skip
        assert line in out


async def test_no_mail_is_a_success_unless_it_was_waited_for(bus, tocsin):
    async with mails(bus, check=a_delivery()) as got:
        assert (await tocsin.run("mail", "check", "--run", "r1"))[:2] == (0, "No mail.\n")
        assert (await tocsin.run("mail", "check", "--run", "r1", "--wait", "0.01", "--types", "question,report"))[0] == 1
        assert (await tocsin.run("mail", "check", "--run", "r1", "--types", "letter"))[0] == 2
    assert got[-1].ask.types == (MailType.QUESTION, MailType.REPORT)


async def test_an_ack_and_a_reply_find_their_mailbox_by_the_id(bus, tocsin):
    async with mails(bus, ack={"acked": "run:r1.d1"}, reply={"question": "r1.api.1.q1", "message": "m"}) as got:
        await tocsin.json("mail", "ack", "run:r1.d1")
        await tocsin.json("mail", "reply", "r1.api.1.qa7", "port", "81")
        assert (await tocsin.refused("mail", "ack", "d1"))["code"] == "stale_delivery"
        assert (await tocsin.refused("mail", "reply", "m1", "yes"))["code"] == "not_found"
    assert [(command.mailbox, command.ask) for command in got] == [
        ("run:r1", AckMail(delivery="run:r1.d1")), ("dispatch:r1.api.1", ReplyMail(question="r1.api.1.qa7", body="port 81")),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("to", "address"),
    [
        ("r1.api.1", "dispatch:r1.api.1"),
        ("run:r2", "run:r2"),
        ("dispatch:r1.api.1", "dispatch:r1.api.1"),
        ("coordinator", "run:r1"),
        ("@idle", "@idle"),
    ],
)
async def test_a_message_goes_to_a_dispatch_a_run_a_coordinator_or_a_group(tmp_path, to, address):
    line = FakeLine({"message": "m"})
    await mail.send(a_speaker(line, tmp_path), to, "mind the port\nit is 81", MailType.GUIDANCE, "")
    ((_, command),) = line.got
    assert command.mailbox == address
    assert isinstance(command.ask, SendMail)
    message = command.ask.message
    assert (message.type, message.subject, message.body) == (MailType.GUIDANCE, "mind the port", "mind the port\nit is 81")
    assert message.run == ("r1" if to.startswith("@") or to == "coordinator" else None)


async def test_a_word_that_is_no_address_is_refused_before_anybody_is_asked(bus, tocsin):
    async with mails(bus) as got:
        assert (await tocsin.refused("mail", "send", "nobody", "hello", "--run", "r1"))["code"] == "not_found"
    assert got == []


# ---------------------------------------------------------------- a worker outside its pane


async def test_a_question_waits_for_its_answer_and_hands_over_what_came_with_it(bus, tocsin):
    guidance = a_message(id="m2", type="guidance", body="be brief")
    handed = a_delivery(guidance, ANSWERED, delivery="dispatch:r1.api.1.d4")
    async with mails(bus, ask=ASKED, inbox=EMPTY_INBOX, check=handed, ack={"acked": ""}) as got:
        code, out, _ = await tocsin.run("ask", "which", "port?", "--option", "80", "--dispatch", "r1.api.1")
    assert code == 0
    assert out.splitlines()[0] == "81"
    assert "be brief" in out
    assert [command.mailbox for command in got] == ["dispatch:r1.api.1"] * 4
    asked, _, waited, acked = (command.ask for command in got)
    assert asked == AskQuestion(question="which port?", options=("80",))
    assert waited.types == (MailType.ANSWER,)
    assert acked == AckMail(delivery="dispatch:r1.api.1.d4")


async def test_a_question_without_an_answer_in_time_stands_and_can_be_waited_for_again(bus, tocsin):
    async with mails(bus, ask=ASKED, inbox=EMPTY_INBOX, check=a_delivery()):
        code, out, err = await tocsin.run("ask", "which port?", "--dispatch", "r1.api.1", "--timeout", "0.2")
    assert (code, out) == (1, "")
    assert "tocsin ask --resume r1.api.1.qa7" in err


async def test_an_answer_that_was_handed_over_before_is_found_again(bus, tocsin):
    inbox = {"rows": [{"number": 4, "read": True, "message": ANSWERED}], "total": 1, "next": None}
    async with mails(bus, inbox=inbox) as got:
        said = await tocsin.json("ask", "--resume", "r1.api.1.qa7")
    assert said["body"] == "81"
    assert [type(command.ask) for command in got] == [ReadMail]


async def test_outside_a_pane_a_report_names_its_dispatch(bus, tocsin):
    async with runs(bus, report={"dispatch": "r1.api.1"}) as got:
        assert (await tocsin.refused("report", "succeeded", "done"))["code"] == "run_required"
        await tocsin.json(
            "report", "failed", "no compiler", "--dispatch", "r1.api.1", "--file", "a.py", "--file", "b.py", "--commit", "abc"
        )
    (command,) = got
    assert command.run == "r1"
    assert (command.ask.report.outcome, command.ask.report.body, command.ask.report.files) == ("failed", "no compiler", ("a.py", "b.py"))


async def test_the_wakes_are_accounted_for(bus, tocsin):
    row = {
        "wake": "run:r1.w1",
        "content": "c",
        "state": "delivered",
        "cause": "question",
        "messages": ["m1"],
        "rung": "idle_hook",
        "proof": "turn 4",
        "at_ms": 0,
    }
    async with mails(bus, wakes={"rows": [row], "hour": 3, "hour_max": 30, "unread": 0}) as got:
        _, out, _ = await tocsin.run("wakes", "--run", "r1")
    assert got[0].ask == ReadWakes(limit=50)
    assert out.splitlines()[0].split() == ["wake", "time", "state", "cause", "way", "messages", "proof"]
    assert "idle_hook" in out
    assert out.splitlines()[-1] == "3 of at most 30 in the last hour; 0 unread."


# ---------------------------------------------------------------- inside a pane


async def test_inside_a_pane_a_report_is_a_file_that_does_not_say_who_it_is(inside, pane):
    async with pane.serving(taken(dispatch="r1.api.1", outcome="succeeded")):
        code, out, _ = await inside.run("report", "succeeded", "done")
    (request,) = pane.got
    assert (code, out.splitlines()[0]) == (0, "reported: succeeded")
    assert (request["v"], request["id"], request["subject"], request["cwd"], request["mode"]) == (
        1,
        request["file"],
        "run",
        str(inside.cwd),
        0o600,
    )
    body = request["body"]
    assert not {"caller", "run"} & set(body)
    assert body["ask"] == {"verb": "report", "report": {"outcome": "succeeded", "body": "done"}}
    assert body["request"] in out
    assert list((pane.folder / "answers").iterdir()) == []


async def test_inside_a_pane_a_refusal_comes_back_as_one(inside, pane):
    refusal = {
        "request": "q",
        "code": "not_lead",
        "message": "a child said it",
        "retry": "after_change",
        "next": ["let the main agent run it"],
    }
    async with pane.serving(lambda _: {"refused": True, "body": refusal}):
        refused = await inside.refused("report", "succeeded", "done")
    assert (refused["code"], refused["next"]) == ("not_lead", ["let the main agent run it"])


@pytest.mark.parametrize(
    "words", [("report", "succeeded", "done"), ("heartbeat", "reviewing"), ("review", "verdict", "accept"), ("mail", "send", "coordinator", "help")], ids=" ".join
)  # fmt: skip
async def test_what_a_worker_says_is_kept_when_nobody_serves_and_the_worker_may_go_on(inside, pane, words):
    code, out, err = await inside.run(*words, "--timeout", "0.1")
    assert (code, err) == (0, "")
    assert "it is kept on this machine and will be delivered by itself" in out
    (file,) = pane.waiting()
    assert json.loads(file.read_bytes())["body"]["request"] in out


async def test_a_check_that_nobody_waits_for_any_more_is_taken_back(inside, pane):
    code, _, err = await inside.run("mail", "check", "--timeout", "0.1")
    assert code == 4
    assert "nobody serves the requests of this pane now" in err
    assert pane.waiting() == []


async def test_a_worker_that_gives_up_a_wait_says_so_in_a_file(inside, pane):
    process = inside.start("mail", "check", "--wait", "1m")
    async for _ in Deadline(20, "the check is there"):
        if pane.waiting():
            break
    request = json.loads(pane.waiting()[0].read_bytes())
    assert "mailbox" not in request["body"]
    assert request["body"]["ask"]["wait_ms"] == 50_000
    process.send_signal(signal.SIGTERM)
    await asyncio.to_thread(process.communicate, timeout=20)
    (left,) = [json.loads(file.read_bytes())["body"]["ask"] for file in pane.waiting()]
    assert left == {"verb": "end_wait", "wait": request["body"]["request"]}


async def test_a_question_that_nobody_takes_is_kept_and_says_how_to_wait_for_it(inside, pane):
    code, out, err = await inside.run("ask", "which port?", "--timeout", "0.1")
    assert code == 1
    request = json.loads(pane.waiting()[0].read_bytes())["body"]
    assert request["ask"] == {"verb": "ask", "question": "which port?"}
    assert "is kept" in out
    assert f"--request {request['request']}" in err


async def test_a_worker_asks_and_gets_its_answer_without_copying_any_id(inside, pane):
    handed = a_delivery(ANSWERED, delivery="dispatch:r1.api.1.d1")
    answers = {"ask": ASKED, "inbox": EMPTY_INBOX, "check": handed, "ack": {"acked": ""}}
    async with pane.serving(lambda request: taken(**answers[request["body"]["ask"]["verb"]])(request)):
        code, out, _ = await inside.run("ask", "which port?")
    assert (code, out) == (0, "81\n")


def a_commit(folder: Path) -> str:
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "one"]):
        subprocess.run([*git, *words], check=True)
    return subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()


async def test_a_verdict_is_on_the_commit_at_the_head_of_the_folder(inside, pane, tmp_path):
    head = a_commit(tmp_path)
    async with pane.serving(taken(review="check")):
        await inside.run("review", "verdict", "rework", "--findings", "no tests")
    ask = pane.got[0]["body"]["ask"]
    assert msgspec.convert(ask, GiveVerdict) == GiveVerdict(verdict=Verdict.REWORK, findings="no tests", commit=head)


@pytest.mark.parametrize(("said", "recorded"), [("HEAD", "{head}"), ("{short}", "{head}"), ("no-such-branch", "no-such-branch")])
async def test_the_commit_of_a_report_is_recorded_by_the_name_that_everybody_knows(inside, pane, tmp_path, said, recorded):
    head = a_commit(tmp_path)
    async with pane.serving(taken(dispatch="r1.api.1", outcome="succeeded")):
        await inside.run("report", "succeeded", "done", "--commit", said.format(short=head[:7]))
    ask = msgspec.convert(pane.got[0]["body"]["ask"], ReportWork)
    assert ask.report.commit == recorded.format(head=head)


async def test_a_heartbeat_has_its_phase_and_no_receipt(inside, pane):
    noted = {"refused": False, "body": {"v": 1, "request": "", "result": {"dispatch": "r1.api.1", "state": "running"}}}
    async with pane.serving(lambda _: noted):
        assert (await inside.run("heartbeat", "reading", "the", "code"))[:2] == (0, "noted\n")
    assert msgspec.convert(pane.got[0]["body"]["ask"], Beat) == Beat(phase="reading the code")


async def test_a_worker_with_workers_of_its_own_has_a_run_beside_the_one_it_works_for(inside, pane):
    answers = {"create": CREATED | {"run": "r5"}, "tasks": {"rows": [], "total": 0, "next": None}, "report": {"dispatch": "r1.api.1"}}
    async with pane.serving(lambda request: taken(**answers[request["body"]["ask"]["verb"]])(request)):
        await inside.json("run", "create", "its parts")
        await inside.json("task", "list")
        await inside.json("report", "succeeded", "done")
    created, *others = [request["body"].get("run") for request in pane.got]
    assert created.startswith("r")
    assert others == ["r5", None]


async def test_a_folder_that_cannot_be_written_is_unavailable(inside, tmp_path):
    (tmp_path / "file").write_text("")
    code, out, err = await inside.with_(TOCSIN_FOLDER=str(tmp_path / "file")).run("report", "succeeded", "done", "--timeout", "0.1")
    assert (code, out) == (4, "")
    assert "cannot be written" in err


async def test_a_request_that_cannot_be_read_back_is_unavailable(inside, pane):
    async with pane.serving(lambda _: {"refused": False, "body": 7}):
        code, _, err = await inside.run("report", "succeeded", "done", "--timeout", "0.1")
    assert code == 4
    assert "cannot be read" in err


# ---------------------------------------------------------------- what is typed


async def test_text_is_made_valid_before_it_is_sent(inside, pane):
    async with pane.serving(taken(dispatch="r1.api.1")):
        await inside.run("report", "succeeded", "-", said="done \x1b[2J\x00 and more\n")
    assert pane.got[0]["body"]["ask"]["report"]["body"] == "done �[2J� and more\n"


@pytest.mark.parametrize(
    "words",
    [("report", "done", "x"), ("report", "succeeded", ""), ("task", "show", "a.b"), ("worker", "show", "r1"), ("run", "use", ""), ("ask",), ("mail", "check", "--wait", "soon")],
    ids=" ".join,
)  # fmt: skip
async def test_what_makes_no_sense_is_bad_usage(inside, words):
    code, out, err = await inside.run(*words)
    assert (code, out) == (2, "")
    assert err


async def test_a_text_over_the_limit_is_bad_usage(inside):
    assert (await inside.run("report", "succeeded", "-", said="x" * (1024 * 1024 + 1)))[0] == 2


async def test_names_cannot_write_to_the_terminal(bus, tocsin):
    async with runs(bus, tasks={"rows": [a_task_row(title="evil\x1b[2J")], "total": 1, "next": None}):
        assert "\x1b" not in (await tocsin.run("task", "list", "--run", "r1"))[1]


# ---------------------------------------------------------------- what a worker shows


async def test_a_worker_on_another_machine_is_read_there(bus, tocsin):
    async with runs(bus, worker=a_shown_worker(host="g")):
        refused = await tocsin.refused("worker", "read", "r1.api.1")
    assert refused["next"] == ["on g: tocsin worker read r1.api.1"]


def a_terminal(cabinet: Cabinet, **fields: Any) -> Made:
    made = Made(
        dispatch="r1.api.1", fence=1, step="start", run="r1", task="api", agent="codex", mark="m", path="/w/api", made_ms=1,
        **({"terminal": "tmux"} | fields),
    )  # fmt: skip
    cabinet.folder_of(made).mkdir()
    return cabinet.put(made)


@pytest.fixture
def cabinet(tmp_path) -> Cabinet:
    return Cabinet(tmp_path / "hands" / "terminals")


@pytest.fixture
def tmux():
    server = TmuxServer()
    yield server
    server.close()


async def test_a_worker_is_read_from_exactly_the_pane_that_was_made_for_it(bus, tocsin, cabinet, tmux):
    pane = tmux.open("printf 'one\\ntwo\\nthree\\n'; exec sleep 300", session="w")
    for _ in Deadline(10, "it has written"):
        if "three" in tmux.tmux("capture-pane", "-p", "-t", pane):
            break
    server = Process(pid=tmux.pid, started_ms=0, boot="b")
    made = a_terminal(cabinet, socket=tmux.socket, number=pane, server=server)
    async with runs(bus, worker=a_shown_worker()), serving(bus, CUSTODY_CMD, lambda _: Refusal(Code.NOT_FOUND, "no custody")):
        code, out, err = await tocsin.run("worker", "read", "r1.api.1", "--lines", "2")
        assert (code, out) == (0, "two\nthree\n")
        assert "the last 2 lines of its terminal" in err
        # Numbers start again with each server: another server's pane of that number is another pane.
        cabinet.put(msgspec.structs.replace(made, server=Process(pid=1, started_ms=0, boot="b")))
        assert (await tocsin.refused("worker", "read", "r1.api.1"))["code"] == "not_found"


async def test_a_worker_without_a_terminal_is_read_from_its_file_and_a_closed_one_from_what_is_kept(bus, tocsin, cabinet, tmp_path):
    made = a_terminal(cabinet, terminal="process")
    (cabinet.folder_of(made) / runner.OUTPUT).write_text("from the file\n")
    (tmp_path / "kept.log").write_text("from the archive\n")
    custody = {"row": {"custody": "r1.api.1", "archive": str(tmp_path / "kept.log")}, "history": []}
    async with runs(bus, worker=a_shown_worker()), serving(bus, CUSTODY_CMD, lambda _: custody):
        assert (await tocsin.json("worker", "read", "r1.api.1"))["source"] == "file"
        said = await tocsin.json("worker", "read", "r1.api.1", "--source", "archive")
    assert (said["source"], said["text"], said["cut"]) == ("archive", "from the archive", False)
