"""a worker and a coordinator in a sandbox"""

import json
import os
import signal

from system.loop.installation import AGENT, Installation
from system.loop.party import Run
from tocsin.contract.run import WorkReported
from tocsin.contract.subjects import PANE_STATUS

WITHIN = ("--within", str(AGENT.with_name("sandbox.sh")))


def codes(here: Installation, dispatch: str, step: str) -> list[int]:
    return [did["code"] for did in here.did(dispatch) if did["step"] == step]


def test_a_worker_that_reaches_nothing_but_its_panes_folder_reports_and_nobody_is_asked(here: Installation):
    run = Run.create(here)
    closed = f"do: run ! touch {here.state}/no && ! touch {here.home}/no && ! curl -s -m 1 $(sed -n 's/^url = //p' {here.state}/hook.curl | tr -d '\\042')"
    run.add({"id": "work", "spec": f"{closed}\ndo: beat 1 working\ndo: ask Which one?\ndo: mail\ndo: report succeeded Done."})
    dispatch = run.start("work", agent=WITHIN)["dispatch"]
    question = run.until("the question has come", lambda: run.mail_of("question"))[0]
    here.ask("mail", "reply", question["id"], "the first")
    run.until("the report has come", lambda: run.mail_of("report") and codes(here, dispatch, "report"))
    assert codes(here, dispatch, "run") == [0], "the sandbox does not hold"
    assert [codes(here, dispatch, step) for step in ("beat", "ask", "mail", "report")] == [[0]] * 4
    assert "the first" in next(step["out"] for step in here.did(dispatch) if step["step"] == "ask")
    assert run.worker(dispatch)["human_wait"] == "none"
    assert [status.prompts for status in here.last_values(PANE_STATUS) if status.prompts] == []


def test_a_report_that_nobody_takes_is_kept_in_the_sandbox_and_comes_once(here: Installation):
    run = Run.create(here)
    run.add({"id": "work", "spec": "do: mark working\ndo: await alone\ndo: report succeeded Done alone."})
    dispatch = run.start("work", agent=WITHIN)["dispatch"]
    here.wait_for_mark("working")
    hands = here.children()["pane-host"]
    os.kill(hands.pid, signal.SIGSTOP)
    here.mark("alone")
    run.until("the worker's command is done", lambda: codes(here, dispatch, "report"), 90)
    assert codes(here, dispatch, "report") == [0]
    os.kill(hands.pid, signal.SIGKILL)
    run.until("the report has come", lambda: run.mail_of("report"))
    here.wait_for_another("pane-host", here.kill("pane-host"))
    run.until("everything is as it was", lambda: run.worker(dispatch)["state"] == "succeeded")
    assert [event.report.body for event in run.events() if isinstance(event, WorkReported)] == ["Done alone."]
    assert len(run.mail_of("report")) == 1


def test_a_coordinator_in_a_sandbox_runs_its_own_workers_through_its_panes_folder(here: Installation):
    run = Run(here, here.ask("run", "create", "a story", "--depth", "2")["run"])
    folder = here.folder / "below"
    folder.mkdir()
    graph = here.folder / "below.json"
    graph.write_text(json.dumps([{"id": "part", "title": "part", "spec": "do: report succeeded The part is done."}]))
    start = " ".join(["tocsin worker start part --agent generic --where existing --path", str(folder), *run.command()])
    steps = [
        "run tocsin run create below | sed -n 's/^Run \\([^,]*\\),.*/\\1/p' > run.id",
        f"run tocsin task add --file {graph}",
        f"run {start}",
        "run tocsin mail check --wait 60 --run $(cat run.id)",
        "run tocsin task accept part",
        "report succeeded All parts are done.",
    ]
    run.add({"id": "lead", "spec": "\n".join(f"do: {step}" for step in steps)})
    dispatch = run.start("lead", agent=WITHIN)["dispatch"]
    run.until("the report has come", lambda: run.mail_of("report"), 120)
    did = [step for step in here.did(dispatch) if step["step"] == "run"]
    assert [step["code"] for step in did] == [0] * 5, "\n".join(step["out"] + step["err"] for step in did)
    assert "The part is done." in did[3]["out"]
