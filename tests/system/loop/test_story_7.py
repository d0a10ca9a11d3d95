"""two machines, one list; one cut off"""

from typing import Any

import pytest

from system.loop.installation import Installation, Refused
from system.loop.neighbour import Neighbour
from system.loop.party import Run

SPEC = "do: mark {0}\ndo: await {0}-on\ndo: report succeeded Done on {0}."


def listed(here: Installation) -> dict[str, dict[str, Any]]:
    """The ranked list by folder."""
    return {row["path"]: row for row in here.ask("ls")["worktrees"]}


def known(row: dict[str, Any]) -> tuple[Any, ...]:
    """What a row of the list says of its worktree; its rank beside others may move."""
    return row["host"], row["class"], row["reason"], row["evidence"]


def test_the_agents_of_two_machines_stand_in_one_list_and_of_the_one_that_is_cut_off_nothing_is_known(here: Installation):
    run = Run.create(here)
    with Neighbour(here, "second") as second:
        run.add({"id": "near", "spec": SPEC.format("near")}, {"id": "far", "spec": SPEC.format("far")})
        near_place, far_place = run.some_folder("near"), run.some_folder("far")
        near = run.start("near", *near_place)["dispatch"]
        far = run.start("far", *far_place, "--host", "second")["dispatch"]
        for name in ("near", "far"):
            here.wait_for_mark(name)
        places = {near_place[-1], far_place[-1]}
        run.until(
            "both work, in one list", lambda: places <= set(listed(here)) and {listed(here)[place]["class"] for place in places} == {3}
        )
        before = listed(here)
        assert before[near_place[-1]]["host"] != before[far_place[-1]]["host"] == "second"

        second.cut_off()
        run.until("nothing is known of the far one", lambda: run.worker(far)["state"] == "contact_lost", 180)
        row = run.worker(far)
        assert row["liveness"] == "unverifiable"
        assert row["outcome"] not in ("succeeded", "failed", "stopped")
        assert run.worker(near)["state"] == "running"
        assert run.worker(near)["liveness"] == "live"
        assert known(listed(here)[near_place[-1]]) == known(before[near_place[-1]])
        cut_off = listed(here)[far_place[-1]]
        assert (cut_off["class"], cut_off["evidence"]) == (before[far_place[-1]]["class"], "unverifiable")
        # Nobody knows whether it still works, so nobody else gets its Task.
        with pytest.raises(Refused) as refused:
            run.start("far", *near_place)
        assert refused.value.code == "attempt_unsettled"
        assert run.states() == {"near": "dispatched", "far": "dispatched"}

        # The near one goes on as if nothing were; the far one is found as it was.
        here.mark("near-on")
        run.until("the near one is done", lambda: run.states()["near"] == "reported")
        second.reconnect()
        run.until("the far one is back", lambda: run.worker(far)["state"] == "running")
        here.mark("far-on")
        run.until("the far one is done", lambda: run.states()["far"] == "reported")
        assert (here.lives(near), here.lives(far)) == (1, 1)
