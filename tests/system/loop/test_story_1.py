"""three workers, a gate, a fix round"""

from support import Deadline
from system.loop.installation import Installation
from system.loop.party import Run, worktrees
from tocsin.contract.custody import CustodyState
from tocsin.contract.run import SETTLED, DispatchMoved, TaskMoved, VerdictGiven, WorkReported

COMMIT = "do: write {0}.txt round\ndo: commit {0}\n"
TASKS = (
    {
        "id": "parser",
        "spec": COMMIT.format("parser") + "do: beat 1 implementing\ndo: report succeeded The parser is there.",
        "accept": "auto",
    },
    {"id": "printer", "spec": COMMIT.format("printer") + "do: report succeeded The printer is there.", "accept": "coordinator"},
    {
        "id": "evaluator",
        "spec": "do 1: write evaluator.txt wrong\ndo 2: write evaluator.txt right\ndo: commit evaluator\ndo: report succeeded The evaluator is there.",
        "accept": "gate",
    },
    {
        "id": "review",
        "spec": "do 1: verdict rework Division by zero is not handled.\ndo 2: verdict accept",
        "kind": "review",
        "reviews": "evaluator",
        "deps": ["parser", "printer"],
    },
)

DISPOSED = frozenset({CustodyState.RELEASED, CustodyState.RETAINED, CustodyState.REUSED, CustodyState.TAKEN_OVER})


def coordinate(run: Run, repository: str) -> None:
    """Start what is ready, where it says so each time; accept what is left to the coordinator; ack what is dealt with."""
    for _ in Deadline(180, "every Task ends"):
        tasks = run.tasks()
        if run.ended():
            return
        for name, row in tasks.items():
            if row["state"] == "ready":
                attempt = row["attempts"] + 1
                place = ["--where", "new-top-level", "--path", repository, "--branch", f"{name}-{attempt}"]
                if name == "review":
                    place += ["--base", tasks["evaluator"]["report"].get("commit") or f"evaluator-{tasks['evaluator']['attempts']}"]
                elif attempt > 1:
                    place += ["--base", f"{name}-{attempt - 1}"]
                run.start(name, *place)
            if row["state"] == "reported" and row["accept"] == "coordinator" and row["kind"] == "work":
                run.accept(name)
        mail = run.check("--wait", "2")
        if mail["delivery"]:
            run.ack(mail["delivery"])


def test_three_independent_workers_a_review_gate_that_depends_on_them_and_one_fix_round_end_with_everything_accounted_for(
    here: Installation,
):
    repository = here.repository()
    run = Run.create(here, "a calculator")
    run.add(*TASKS)
    coordinate(run, str(repository))

    # Every Task ended, as the events of the Run alone account for it.
    assert run.states() == dict.fromkeys(["parser", "printer", "evaluator", "review"], "accepted")
    events = run.events()
    assert [(event.review, event.verdict) for event in events if isinstance(event, VerdictGiven)] == [
        ("review", "rework"),
        ("review", "accept"),
    ]
    assert [event.commit is not None for event in events if isinstance(event, VerdictGiven)] == [True, True]
    rounds = [event.findings for event in events if isinstance(event, TaskMoved) and event.task == "evaluator" and event.findings]
    assert rounds
    assert "Division by zero" in rounds[0]
    assert "Division by zero" in here.ask("worker", "show", f"{run.id}.evaluator.2")["brief"]

    # Every Dispatch ended, each with one report and one life.
    workers = run.workers()
    assert sorted(workers) == sorted(
        f"{run.id}.{name}" for name in ("parser.1", "printer.1", "evaluator.1", "evaluator.2", "review.1", "review.2")
    )
    assert {row["state"] for row in workers.values()} == {"succeeded"}
    assert {row["state"] for row in workers.values()} <= SETTLED
    reported = [event.dispatch for event in events if isinstance(event, WorkReported)]
    assert sorted(reported) == sorted(set(reported))
    assert {dispatch: here.lives(dispatch) for dispatch in workers} == dict.fromkeys(workers, 1)
    assert [event for event in events if isinstance(event, DispatchMoved) and event.to == "failed"] == []

    # Every worker with a disposition, every worktree gone or kept for a reason.
    def disposed() -> bool:
        rows = run.custody()
        return set(rows) == set(workers) and {row["state"] for row in rows.values()} <= DISPOSED

    run.until("every worker has its disposition", disposed)
    rows = run.custody()
    assert [row for row in rows.values() if row.get("obligation")] == []
    for worktree in worktrees(here, repository):
        row = next(row for row in rows.values() if worktree in (row["path"], row.get("trash")))
        if worktree == row["path"]:
            assert row["worktree"] == "kept"
            assert row["worktree_why"]
            assert row["next"]
        else:
            assert row["worktree"] == "trashed"
            assert row["worktree_until_ms"]

    audit = here.run("audit")
    assert audit.returncode == 0, audit.stdout + audit.stderr
    here.ask("run", "close", run.id)
