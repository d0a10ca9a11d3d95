"""The store fails over to one that has nothing of what was written. What was claimed and reported stands in the ledgers all the same."""

import asyncio
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from builders import a_hook
from system.loop.installation import Installation, Refused
from system.loop.party import Run
from tocsin.contract.hosting import Saw
from tocsin.contract.messages import Kind
from tocsin.contract.run import DispatchRequested, RunRecorded
from tocsin.contract.subjects import HOOK_REPORTED, RUN_EVENT


def somebody_has_worked_for_a_minute(here: Installation) -> None:
    """A session whose last event is a minute old."""

    async def say() -> None:
        async with here.connected() as bus:
            await bus.say(HOOK_REPORTED, a_hook(Kind.PROMPTED, host="elsewhere", cwd="/quiet", at_ms=time.time_ns() // 1_000_000 - 60_000))

    asyncio.run(say())


def line_of(here: Installation, worktree: str) -> str:
    """Its line in the list."""
    return next((line for line in here.run("ls").stdout.splitlines() if worktree in line), "")


def test_i06_a_claim_and_a_report_outlive_the_store_and_what_only_the_log_knows_of_a_pane_is_unconfirmed():
    with Installation() as here:
        run = Run.create(here)
        run.add({"id": "T0", "spec": "do: await t0\ndo: report succeeded Done."}, {"id": "T1", "spec": "do: await t1"})
        run.start("T0")
        somebody_has_worked_for_a_minute(here)
        run.until("the quiet pane is shown", lambda: line_of(here, "quiet"))
        assert "?restored" not in line_of(here, "quiet")
        holder = here.children()["dispatcher"]
        claim = f"{run.id}.T1.1"

        def claims(record: RunRecorded) -> bool:
            return any(isinstance(event, DispatchRequested) and event.dispatch == claim for event in record.events)

        with ThreadPoolExecutor() as beside:
            with here.when(RUN_EVENT, claims, lambda: os.kill(holder.pid, signal.SIGSTOP)) as paused:
                asked = beside.submit(run.start, "T1", request="of-a")
                run.until("A has claimed T1 and stands still", paused.is_set)
            try:
                here.lose("valkey")
                with here.another("dispatcher"):
                    other = ("--detach", *run.some_folder("other"), "--agent", "generic", "--request", "of-b", *run.command())
                    with pytest.raises(Refused) as refused:
                        here.insist("worker", "start", "T1", "--run", run.id, *other)
                    assert refused.value.code == "attempt_unsettled"
                    assert claim in str(refused.value), "the holder is named"
                    os.kill(holder.pid, signal.SIGCONT)
                    assert asked.result()["dispatch"] == claim
                    run.until("it is at work", lambda: run.worker(claim)["state"] == "running")
            finally:
                os.kill(holder.pid, signal.SIGCONT)
        assert here.children()["dispatcher"] == holder, "A itself went on"
        assert here.lives(claim) == 1
        assert len({fact.pane for fact in run.facts(claim) if fact.saw is Saw.TERMINAL_MADE}) == 1
        assert [event.dispatch for event in run.events() if isinstance(event, DispatchRequested)] == [f"{run.id}.T0.1", claim]

        here.mark("t0")
        run.until(
            "its worker is told that the report counts", lambda: [step for step in here.did(f"{run.id}.T0.1") if step["step"] == "report"]
        )
        here.lose("valkey", "status-store", "dispatcher")
        assert [step["code"] for step in here.did(f"{run.id}.T0.1") if step["step"] == "report"] == [0]
        run.until("the Run answers again", run.answers)
        assert run.tasks()["T0"]["report"]["body"] == "Done."
        assert run.states() == {"T0": "reported", "T1": "dispatched"}
        run.until("it is mail, once", lambda: len(run.mail_of("report")) == 1)
        run.until("the quiet pane is a memory", lambda: "?restored" in line_of(here, "quiet"))
        assert here.lives(claim) == 1
