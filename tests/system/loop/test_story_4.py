"""a missing report and ready work each surface once"""

import pytest

from system.loop.installation import Installation
from system.loop.party import Coordinator, Run
from tocsin.contract.run import ReportMissing

SILENT = {
    "its turn ends": "do: write notes.txt done",
    "its process ends": "do: exit 0",
    "its process is killed": "do: die",
}


def restart_the_judges(here: Installation) -> None:
    """Whoever decides what surfaces starts again, from its record."""
    for name in ("dispatcher", "mailbox"):
        here.wait_for_another(name, here.kill(name))


def causes(run: Run) -> list[str]:
    return sorted(row["cause"] for row in run.wakes())


@pytest.mark.parametrize("how", SILENT, ids=str)
def test_a_missing_report_surfaces_once_per_attempt(here: Installation, how: str):
    boss = Coordinator(here)
    run = boss.create()
    run.add({"id": "quiet", "spec": SILENT[how]}, {"id": "later", "spec": "do: report succeeded Later."})
    dispatch = run.start("quiet")["dispatch"]
    boss.until("it is told", lambda: [message for message in boss.read() if message["type"] == "missing"])
    if how == "its turn ends":
        server, _, number = run.worker(dispatch)["pane"].split(".")
        here.tmux("-L", server, "kill-pane", "-t", f"%{number}")
        run.until("its end is known", lambda: run.worker(dispatch)["liveness"] == "exited")
    restart_the_judges(here)
    # Whatever was still to come of it would have come before the report of another.
    run.start("later")
    boss.until("the other report has come", lambda: [message for message in boss.read() if message["type"] == "report"])
    assert [message["dispatch"] for message in run.mail_of("missing")] == [dispatch]
    assert [event.dispatch for event in run.events() if isinstance(event, ReportMissing)] == [dispatch]
    assert causes(run).count("missing") == 1
    assert run.worker(dispatch)["state"] == "finished_unverified"
    assert run.states()["quiet"] == "dispatched"


def test_ready_work_and_an_idle_coordinator_surface_once_per_set_of_tasks(here: Installation):
    boss = Coordinator(here)
    run = boss.create()
    run.add({"id": "one", "spec": "do: report succeeded One."})
    boss.until("it is told of the ready work", lambda: [message for message in boss.read() if message["type"] == "ready"])
    restart_the_judges(here)
    # The same set again is nothing new; a larger one is.
    run.add({"id": "two", "spec": "do: report succeeded Two."})
    boss.until("it is told of the larger set", lambda: len([message for message in boss.read() if message["type"] == "ready"]) == 2)
    boss.until("its turn has ended", lambda: len(boss.woken()) == 2)
    assert causes(run) == ["ready", "ready"]
