"""nothing is accepted on idle, exit or commit alone"""

from system.loop.installation import Installation
from system.loop.party import Run
from tocsin.contract.run import TaskMoved, TaskState

WITHOUT_A_REPORT = {
    "idle": "do: write work.txt done",
    "exit": "do: exit 0",
    "failure": "do: exit 1",
    "killed": "do: die",
    "commit": "do: write work.txt done\ndo: commit the work is done\ndo: exit 0",
    "talk": "do: beat 2 done\ndo: run echo succeeded",
}


def test_no_task_is_accepted_because_its_worker_rests_has_ended_or_has_committed(here: Installation):
    repository = here.repository()
    run = Run.create(here)
    run.add(
        *({"id": name, "spec": spec, "accept": "auto"} for name, spec in WITHOUT_A_REPORT.items()),
        {"id": "next", "deps": ["commit"], "spec": "no"},
    )
    for name in WITHOUT_A_REPORT:
        place = ["--where", "new-top-level", "--path", str(repository), "--branch", f"work-{name}"] if name == "commit" else []
        run.start(name, *place)
    run.until(
        "each is an attempt without a report, and said so",
        lambda: (
            {row["state"] for row in run.workers().values()} == {"finished_unverified"}
            and len(run.mail_of("missing")) == len(WITHOUT_A_REPORT)
        ),
        90,
    )
    assert here.git(repository, "log", "--format=%s", "-1", "work-commit") == "the work is done"
    assert [
        event.task for event in run.events() if isinstance(event, TaskMoved) and event.to in (TaskState.ACCEPTED, TaskState.REPORTED)
    ] == []
    assert run.states() == dict.fromkeys(WITHOUT_A_REPORT, "dispatched") | {"next": "pending"}
    for row in run.workers().values():
        assert row["outcome"] == "finished_unverified"
        assert row["requires_action"]
        assert row["next"]["command"]
