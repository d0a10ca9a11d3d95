"""loss of contact permits no second editor"""

import os
import signal

import pytest

from system.loop.installation import Installation, Refused
from system.loop.party import Run
from tocsin.contract.run import DispatchRequested


def attempts(run: Run) -> list[str]:
    return [event.dispatch for event in run.events() if isinstance(event, DispatchRequested)]


def test_while_a_host_is_silent_its_worker_keeps_the_task_and_its_late_report_counts(here: Installation):
    run = Run.create(here)
    run.add({"id": "edit", "spec": "do: mark editing\ndo: await silence\ndo: report succeeded Edited."})
    dispatch = run.start("edit")["dispatch"]
    here.wait_for_mark("editing")
    hands = here.children()["pane-host"]
    os.kill(hands.pid, signal.SIGSTOP)
    try:
        run.until("contact is lost", lambda: run.worker(dispatch)["state"] == "contact_lost", 180)
        row = run.worker(dispatch)
        assert row["liveness"] == "unverifiable"
        assert row["outcome"] not in ("succeeded", "failed")
        for words in (
            ("worker", "start", "edit", "--detach", *run.some_folder("edit"), "--agent", "generic", *run.command()),
            ("worker", "start", "edit", "--detach", "--retry-of", dispatch, *run.some_folder("edit"), "--agent", "generic", *run.command()),
            ("task", "cancel", "edit", "--reason", "it is silent"),
            ("task", "reopen", "edit", "--reason", "it is silent"),
        ):
            with pytest.raises(Refused) as refused:
                here.ask(*words)
            assert refused.value.code == "attempt_unsettled", words
        # It goes on all the same, and its report waits on its own machine.
        here.mark("silence")
        run.until("the worker has reported", lambda: [step for step in here.did(dispatch) if step["step"] == "report"], 90)
    finally:
        os.kill(hands.pid, signal.SIGCONT)
    run.until("the report counts", lambda: run.states()["edit"] == "reported")
    assert run.worker(dispatch)["state"] == "succeeded"
    assert attempts(run) == [dispatch]
    assert here.lives(dispatch) == 1


def test_a_second_editor_needs_a_stated_reason_and_fences_the_first(here: Installation):
    run = Run.create(here)
    run.add({"id": "edit", "spec": "do 1: await late\ndo 1: report succeeded Old.\ndo 2: report succeeded New.", "on_settle": "retain"})
    first = run.start("edit")["dispatch"]
    with pytest.raises(Refused) as refused:
        here.ask("worker", "start", "edit", "--detach", *run.some_folder("edit"), "--agent", "generic", *run.command())
    assert refused.value.code == "attempt_unsettled"
    second = here.ask(
        "worker", "supersede", "edit", "--reason", "its machine was taken away", *run.some_folder("edit-2"), "--agent", "generic", *run.command()
    )["dispatch"]  # fmt: skip
    run.until("the new one has reported", lambda: run.states()["edit"] == "reported")
    here.mark("late")
    run.until("the old one is told", lambda: [step for step in here.did(first) if step["step"] == "report"])
    told = next(step for step in here.did(first) if step["step"] == "report")
    assert told["code"] == 3
    assert second in told["err"]
    assert run.tasks()["edit"]["report"]["body"] == "New."
    assert run.worker(first)["state"] == "superseded"
