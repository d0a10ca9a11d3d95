"""The bus loses everything that it had on disk. What stood on record comes back from the store, and the loop goes on."""

from system.loop.installation import Installation
from system.loop.party import Run
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
