"""eight start the same Task in one instant: one terminal, one worktree, one worker"""

import json
import subprocess

from system.loop.installation import Installation
from system.loop.party import Run, worktrees
from tocsin.contract.hosting import Saw
from tocsin.contract.run import DispatchRequested, RunRecorded
from tocsin.contract.subjects import RUN_EVENT

CLAIMANTS, LOST = 8, 3
REFUSED = 3


def test_f07_of_eight_callers_on_two_dispatchers_one_starts_a_worker_and_the_others_are_told_who_holds_the_task(here: Installation):
    repository = here.repository()
    run = Run.create(here)
    run.add({"id": "T1", "spec": "do: await over"})
    claim = f"{run.id}.T1.1"

    def caller(number: int) -> "subprocess.Popen[str]":
        words = ["worker", "start", "T1", "--run", run.id, "--where", "new-top-level", "--path", str(repository), "--branch", f"b{number}"]
        words += ["--agent", "generic", "--request", f"claim-{number}", "--detach", "--json", *run.command()]
        return subprocess.Popen(
            [here.bin / "tocsin", *words], env=here.environment, cwd=here.home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def claims(record: RunRecorded) -> bool:
        return any(isinstance(event, DispatchRequested) for event in record.events)

    with here.another("dispatcher"):
        callers: list[subprocess.Popen[str]] = []
        with here.when(RUN_EVENT, claims, lambda: callers[LOST].kill()) as somebody_has_claimed:
            for number in range(CLAIMANTS):
                callers.append(caller(number))  # noqa: PERF401 (read while it grows)
            said = [one.communicate(timeout=60) for one in callers]
            run.until("somebody has claimed it", somebody_has_claimed.is_set)
        run.until("its worker is at work", lambda: run.worker(claim)["state"] == "running")
    told = [(one.returncode, *texts) for number, (one, texts) in enumerate(zip(callers, said, strict=True)) if number != LOST]
    won = [json.loads(out)["dispatch"] for code, out, _ in told if code == 0]
    refusals = [json.loads(err.splitlines()[-1]) for code, _, err in told if code == REFUSED]
    assert len(won) + len(refusals) == CLAIMANTS - 1
    assert {(refusal["code"], claim in refusal["message"]) for refusal in refusals} == {("attempt_unsettled", True)}
    its = here.ask("request", "show", f"claim-{LOST}", "--run", run.id, codes=(0, 1))
    if its["state"] == "absent":
        assert won == [claim], "nothing is left of who lost and has gone"
    else:
        assert (won, its["worker"]["dispatch"]) == ([], claim), "who has gone has won, and finds it by the request"
    assert [event.dispatch for event in run.events() if isinstance(event, DispatchRequested)] == [claim]
    assert here.lives(claim) == 1
    assert len(worktrees(here, repository)) == 1
    assert len({fact.pane for fact in run.facts(claim) if fact.saw is Saw.TERMINAL_MADE}) == 1
