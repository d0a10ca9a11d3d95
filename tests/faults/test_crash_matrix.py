"""anything killed at any step: the same request goes on

One process, one terminal, one report, one Delivery, one wake, whatever dies when.

The table is made of two lists: STEPS, each with the moments at which something can die, and VICTIMS. A moment is a message
on the bus, at whose sight the victim is killed; `asked` is the moment before the request itself.

`TOCSIN_CRASH_MATRIX=all` tries the whole table, which takes a quarter of an hour, as `make acceptance` does. Otherwise each
moment is tried with three victims, in turn, so that every row and every column is in it.
"""

import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
import redis

from system.loop.installation import Installation
from system.loop.party import Coordinator, Run
from tocsin.contract.custody import MovedTo
from tocsin.contract.hosting import Saw
from tocsin.contract.mail import Acked, Arrived, Delivered, Woken
from tocsin.contract.run import DispatchMoved, DispatchRequested, WorkReported
from tocsin.contract.subjects import CUSTODY_EVENT, HOST_FACT, MAIL_EVENT, RUN_EVENT, Subject
from tocsin.runtime import instance


@dataclass(frozen=True)
class Moment:
    """A message that shows how far a step has come. `holds` is asked of each event, or of a fact itself."""

    name: str
    subject: Subject[Any] | None = None
    holds: Callable[[Any], bool] = lambda event: False

    def is_in(self, body: Any, run: str) -> bool:
        """Whether a message of that Run shows it."""
        named = getattr(body, "dispatch", None) or getattr(body, "custody", None) or getattr(body, "run", None) or body.mailbox
        of = named.removeprefix("run:").partition(".")[0]
        return of == run and any(self.holds(event) for event in getattr(body, "events", (body,)))


ASKED = Moment("asked")


def fact(saw: Saw) -> Moment:
    return Moment(saw.value, HOST_FACT, lambda fact: fact.saw is saw)


STEPS: Mapping[str, tuple[Moment, ...]] = {
    "start": (
        ASKED,
        Moment("requested", RUN_EVENT, lambda event: isinstance(event, DispatchRequested)),
        fact(Saw.TERMINAL_MADE),
        fact(Saw.AGENT_STARTED),
        Moment("running", RUN_EVENT, lambda event: isinstance(event, DispatchMoved) and event.to == "running"),
    ),
    "report": (
        ASKED,
        Moment("reported", RUN_EVENT, lambda event: isinstance(event, WorkReported)),
        Moment("arrived", MAIL_EVENT, lambda event: isinstance(event, Arrived)),
    ),
    "check": (
        ASKED,
        Moment("delivered", MAIL_EVENT, lambda event: isinstance(event, Delivered)),
        Moment("acked", MAIL_EVENT, lambda event: isinstance(event, Acked)),
    ),
    "wake": (
        Moment("arrived", MAIL_EVENT, lambda event: isinstance(event, Arrived)),
        Moment("offered", MAIL_EVENT, lambda event: isinstance(event, Woken) and event.state == "offered"),
        Moment("delivered", MAIL_EVENT, lambda event: isinstance(event, Woken) and event.state == "delivered"),
    ),
    "release": (
        ASKED,
        Moment("releasing", CUSTODY_EVENT, lambda event: isinstance(event, MovedTo) and event.to == "releasing"),
        fact(Saw.TREE_ENDED),
        Moment("released", CUSTODY_EVENT, lambda event: isinstance(event, MovedTo) and event.to == "released"),
    ),
}

VICTIMS = ("dispatcher", "mailbox", "release-accountant", "pane-host", "nats", "valkey", "valkey wiped")

MOMENTS = [(step, moment) for step, moments in STEPS.items() for moment in moments]
VICTIMS_OF_A_MOMENT = 1

CELLS = [
    (step, moment, victim)
    for row, (step, moment) in enumerate(MOMENTS)
    for column, victim in enumerate(VICTIMS)
    if os.environ.get("TOCSIN_CRASH_MATRIX") == "all" or (column - VICTIMS_OF_A_MOMENT * row) % len(VICTIMS) < VICTIMS_OF_A_MOMENT
]
"""The victim changes fastest, so that each has time to live between two deaths, as supervisors want it."""


@pytest.fixture(scope="module")
def here() -> Iterator[Installation]:
    with Installation() as one:
        yield one


@pytest.fixture(scope="module")
def boss(here: Installation) -> Coordinator:
    return Coordinator(here)


@dataclass
class Cell:
    """One death at one moment."""

    here: Installation
    moment: Moment
    victim: str
    dead: list[instance.Identity] = field(default_factory=list)

    def kill(self) -> None:
        if self.victim == "valkey wiped":
            reached = instance.endpoint(self.here.state)
            assert reached is not None
            store = redis.Redis.from_url(reached.redis_url, password=instance.credential(self.here.state, instance.REDIS_CREDENTIAL))
            store.flushall()
            store.close()
        else:
            self.dead.append(self.here.kill(self.victim))

    def around(self, run: Run, act: Callable[[], Any]) -> Any:
        """Do something during which the victim dies at the moment; returns when it lives again."""
        if self.moment.subject is None:
            self.kill()
            done = act()
        else:
            moment = self.moment
            with self.here.when(moment.subject, lambda body: moment.is_in(body, run.id), self.kill) as killed:
                done = act()
                self.here.until(f"the moment {moment.name} comes", killed.is_set)
        for process in self.dead:
            self.here.wait_for_another(self.victim, process)
        return done


NAMES = (f"t{number}" for number in itertools.count(1))


def a_task(run: Run) -> str:
    """A Task whose worker reports when its mark comes, and leaves when the mark of its end comes."""
    task = next(NAMES)
    run.add({"id": task, "spec": f"do: await {task}\ndo: report succeeded Done.\ndo: await {task}-over\ndo: exit 0", "on_settle": "retain"})
    return task


def a_worker(run: Run) -> tuple[str, str]:
    """Such a Task and its Dispatch, at work."""
    task = a_task(run)
    return task, run.start(task)["dispatch"]


def one_of_each(here: Installation, run: Run, dispatch: str) -> None:
    """One process, one terminal, one request on record."""
    assert here.lives(dispatch) == 1
    assert len({fact.pane for fact in run.facts(dispatch) if fact.saw is Saw.TERMINAL_MADE}) == 1
    assert [event.dispatch for event in run.events() if isinstance(event, DispatchRequested)].count(dispatch) == 1


# ------------------------------------------------------------------- steps


def start(cell: Cell, run: Run, boss: Coordinator) -> None:
    task = a_task(run)
    started = cell.around(run, lambda: run.start(task, request=f"start-{task}"))
    dispatch = started["dispatch"]
    run.until("it is at work", lambda: run.worker(dispatch)["state"] == "running")
    again = run.start(task, request=f"start-{task}")
    assert (again["dispatch"], again["duplicate"]) == (dispatch, True)
    one_of_each(cell.here, run, dispatch)


def report(cell: Cell, run: Run, boss: Coordinator) -> None:
    task, dispatch = a_worker(run)
    cell.around(run, lambda: cell.here.mark(task))
    run.until("the report counts and is mail", lambda: run.states()[task] == "reported" and run.mail_of("report"))
    run.until("the worker knows it", lambda: [step for step in cell.here.did(dispatch) if step["step"] == "report"])
    assert [step["code"] for step in cell.here.did(dispatch) if step["step"] == "report"] == [0]
    assert [event.dispatch for event in run.events() if isinstance(event, WorkReported)] == [dispatch]
    assert len(run.mail_of("report")) == 1
    one_of_each(cell.here, run, dispatch)


def check(cell: Cell, run: Run, boss: Coordinator) -> None:
    task, _ = a_worker(run)
    cell.here.mark(task)
    run.until("the report is mail", lambda: run.mail_of("report"))

    def take_and_ack() -> tuple[dict[str, Any], dict[str, Any]]:
        first = cell.here.insist("mail", "check", "--run", run.id)
        again = cell.here.insist("mail", "check", "--run", run.id)
        cell.here.insist("mail", "ack", first["delivery"], "--request", f"ack-{task}")
        return first, again

    first, again = cell.around(run, take_and_ack)
    assert [message["type"] for message in first["messages"]] == ["report"]
    assert (again["delivery"], again["messages"]) == (first["delivery"], first["messages"])
    assert cell.here.insist("mail", "ack", first["delivery"], "--request", f"ack-{task}")["duplicate"]
    assert cell.here.insist("mail", "check", "--run", run.id)["messages"] == []
    assert len([event for event in run.mail_events() if isinstance(event, Delivered)]) == 1
    assert len([event for event in run.mail_events() if isinstance(event, Acked)]) == 1


def wake(cell: Cell, run: Run, boss: Coordinator) -> None:
    task, dispatch = a_worker(run)
    woken, read = len(boss.woken()), len(boss.read())
    cell.around(run, lambda: cell.here.mark(task))
    boss.until("it was woken and has read the report", lambda: len(boss.read()) > read)
    run.until("the wake is accounted for", lambda: [row["state"] for row in run.wakes()] == ["delivered"])
    # What could still come late would come before the next wake.
    boss.runs("run", "show", run.id)
    assert [message["dispatch"] for message in boss.read()[read:]] == [dispatch]
    assert len(boss.woken()) == woken + 1  # by whichever way: an Enter that we have typed is one of them


def release(cell: Cell, run: Run, boss: Coordinator) -> None:
    task, dispatch = a_worker(run)
    cell.here.mark(task)
    run.until("its work is done", lambda: run.worker(dispatch)["state"] == "succeeded")
    words = ("custody", "release", dispatch, "--request", f"release-{task}")
    cell.around(run, lambda: cell.here.insist(*words, codes=(0, 1)))
    run.until("it is released", lambda: run.custody()[dispatch]["state"] == "released")
    assert cell.here.insist(*words, codes=(0, 1))["duplicate"]
    moves = [event.to for event in run.custody_events(dispatch) if isinstance(event, MovedTo)]
    assert moves.count("released") == 1
    pid = next(step["pid"] for step in cell.here.did(dispatch))
    assert instance.identify(pid) is None
    one_of_each(cell.here, run, dispatch)


ACTS = {"start": start, "report": report, "check": check, "wake": wake, "release": release}


@pytest.mark.parametrize(("step", "moment", "victim"), CELLS, ids=[f"{step}, {moment.name}, {victim}" for step, moment, victim in CELLS])
def test_the_same_request_goes_on_whatever_dies_at_whichever_moment(
    here: Installation, boss: Coordinator, step: str, moment: Moment, victim: str
):
    run = boss.create() if step == "wake" else Run.create(here)
    ACTS[step](Cell(here, moment, victim), run, boss)
    for task in run.tasks():
        here.mark(task)
        here.mark(f"{task}-over")
