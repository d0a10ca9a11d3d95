"""The worked example of the README: a shell script coordinates three workers, a review and a fix round."""

import subprocess

import yaml

from system.loop.installation import ROOT, Installation
from system.loop.party import Run
from tocsin.contract.run import TASK_ENDS

COORDINATOR, GRAPH = ROOT / "examples" / "coordinator.sh", ROOT / "examples" / "graph.yaml"
LINES_MAX = 30

WORK = "do: run echo $TOCSIN_DISPATCH >> {0}.py\ndo: commit {0}\ndo: report succeeded {0} is there."
REVIEW = "do 1: verdict rework Division by zero is not handled.\ndo 2: verdict accept"


def test_the_script_of_the_readme_runs_the_worked_example_to_its_end(here: Installation):
    assert len(COORDINATOR.read_text().splitlines()) <= LINES_MAX
    graph = yaml.safe_load(GRAPH.read_text())
    for task in graph["tasks"]:
        # The same graph; only what the workers are to do is said in words that the scripted ones understand.
        task["spec"] = REVIEW if task.get("kind") == "review" else WORK.format(task["id"])
    file = here.folder / "graph.yaml"
    file.write_text(yaml.safe_dump(graph))
    repository = here.repository()
    worker = ["--agent", "generic", *Run(here, "").command()]
    said = here.folder / "coordinator.log"
    with said.open("w") as output:
        code = subprocess.run(
            [COORDINATOR, file, repository, *worker], env=here.environment, cwd=here.home, stdout=output, stderr=output,
            stdin=subprocess.DEVNULL, timeout=150, check=False,
        ).returncode  # fmt: skip
    assert code == 0, said.read_text() + here.logs()
    run = Run(here, here.ask("run", "list")["rows"][0]["run"])
    assert run.states() == {task["id"]: "accepted" for task in graph["tasks"]}
    assert set(run.states().values()) <= TASK_ENDS
    assert sorted(run.workers()) == sorted(
        f"{run.id}.{attempt}"
        for attempt in ("parser.1", "printer.1", "evaluator.1", "evaluator.2", "review-evaluator.1", "review-evaluator.2")
    )
    # The fix round went on from the attempt before it.
    assert here.git(repository, "show", "evaluator-2:evaluator.py").count("evaluator.") == 2
    assert here.ask("mail", "check", "--run", run.id)["messages"] == []
