"""The bus loses everything that it had on disk, or the store does. What stood on record comes back from the other, and the loop goes on."""

import pytest

from system.loop.installation import Installation, Refused
from system.loop.party import Coordinator, Run
from tocsin.contract.run import DispatchRequested, Restored


def test_k05_runs_mail_and_receipts_come_back_from_the_store_and_the_same_request_starts_no_second_worker():
    with Installation() as here:
        run = Run.create(here)
        run.add(
            {"id": "done", "spec": "do: report succeeded Done.", "accept": "auto"},
            {"id": "running", "spec": "do: await later\ndo: report succeeded Later.", "deps": ["done"]},
        )
        run.start("done")
        run.until("its report is mail", lambda: run.mail_of("report"))
        dispatch = run.start("running", request="start-running")["dispatch"]
        mail = run.check()

        here.lose("nats")
        run.until("the Run is back", lambda: run.answers() and run.states() == {"done": "accepted", "running": "dispatched"}, 90)
        assert isinstance(run.events()[0], Restored)
        again = run.start("running", request="start-running")
        assert (again["dispatch"], again["duplicate"]) == (dispatch, True)
        assert [event for event in run.events() if isinstance(event, DispatchRequested)] == []
        same = here.insist("mail", "check", "--run", run.id)
        assert (same["delivery"], same["messages"]) == (mail["delivery"], mail["messages"])
        here.insist("mail", "ack", mail["delivery"])

        here.mark("later")
        run.until("the worker's report counts", lambda: run.states()["running"] == "reported")
        run.until("and is mail", lambda: [message for message in run.mail_of("report") if message["dispatch"] == dispatch])
        assert here.lives(dispatch) == 1


@pytest.mark.parametrize("server", ["nats", "valkey"])
def test_k05_a_server_comes_back_without_its_disk_and_all_is_as_it_was_and_nothing_is_told_or_started_twice(server):
    with Installation() as here:
        boss = Coordinator(here)
        run = boss.create()
        run.add(
            {"id": "first", "spec": "do: report succeeded First."}, {"id": "last", "spec": "do: await last\ndo: report succeeded Last."}
        )
        of_shell = Run.create(here, "of a shell, which reads nothing")
        of_shell.add({"id": "done", "spec": "do: report succeeded Done."}, {"id": "open", "spec": "do: await open"})
        workers = [run.start(task)["dispatch"] for task in ("first", "last")]
        workers += [of_shell.start(task)["dispatch"] for task in ("done", "open")]
        of_shell.until("its mail is there", lambda: of_shell.mail_of("report"))
        boss.until("the report has woken it", lambda: len(boss.woken()) == 1 and boss.is_at_rest())

        def told() -> tuple[object, ...] | None:
            """What must be as it was: Tasks, attempts, mail, who was woken, and the list. None while somebody is away."""
            try:
                rows = {name: (row["task"], row["state"]) for one in (run, of_shell) for name, row in one.workers().items()}
                tasks = [one.states() for one in (run, of_shell)]
                classes = {row["path"]: row["class"] for row in here.ask("ls")["worktrees"]}
            except Refused:
                return None
            return rows, tasks, classes, run.mail_of("report"), of_shell.mail_of("report"), boss.woken(), boss.read()

        def says_that_it_was_reset() -> list[bool]:
            return ["Its log was lost once" in here.run("run", "show", one.id).stdout for one in (run, of_shell)]

        before = told()
        assert says_that_it_was_reset() == [False, False]
        here.lose(server)
        run.until("all is as it was", lambda: told() == before, 90)
        # Of a lost store nothing has to be said: all that it held is made again of the log.
        run.until("what was reset is named", lambda: says_that_it_was_reset() == [server == "nats"] * 2)

        here.mark("last")
        boss.until("the last report has woken it", lambda: len(boss.woken()) == 2 and boss.is_at_rest())
        assert [message["dispatch"] for message in boss.read() if message["type"] == "report"] == workers[:2]
        assert [here.lives(dispatch) for dispatch in workers] == [1] * len(workers)
