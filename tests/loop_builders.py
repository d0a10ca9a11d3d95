"""The loop at work over real servers: its three services, a coordinator, and workers on a machine h that only says what it sees."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import redis.asyncio as redis

from builders import a_status
from dispatcher_builders import COORDINATOR, PROCESS, a_launch, worker
from support import Deadline, running
from tocsin.bus.bus import Unavailable
from tocsin.bus.nats_bus import NatsBus, connect
from tocsin.contract.custody import ALL, CustodyCommand, ListCustodies, ShowCustody
from tocsin.contract.hosting import HostFact, Saw
from tocsin.contract.mail import AskQuestion, MailCommand, ReadMail, ReadWakes
from tocsin.contract.messages import State, TurnSeen
from tocsin.contract.parties import Caller
from tocsin.contract.run import (
    ANY_RUN,
    AddTasks,
    CreateRun,
    ListRuns,
    Outcome,
    Placement,
    Receipt,
    Refused,
    Report,
    ReportWork,
    RunCommand,
    ShowTask,
    ShowWorker,
    StartWorker,
    Where,
    new_run_id,
)
from tocsin.contract.subjects import CUSTODY_CMD, CUSTODY_EVENT, HOST_FACT, MAIL_CMD, MAIL_EVENT, PANE_STATUS, RUN_CMD, RUN_EVENT
from tocsin.dispatcher.service import Dispatcher
from tocsin.dispatcher.sights import Sights
from tocsin.dispatcher.store import FAMILY
from tocsin.ledger import Ledger
from tocsin.mailbox import service as mailbox
from tocsin.release_accountant.service import Accountant, Pace
from tocsin.release_accountant.works import VIEW
from tocsin.runtime.clock import SystemClock
from tocsin.store.views import Views

NEW = Placement(where=Where.NEW_CHILD, path="/repo", branch="work")
QUICK = Pace(tick_ms=20, look_ms=40, patience_ms=60_000, again_ms=60_000)
"""The accountant looks often, and gives hosts time."""


class Loop:
    """What a coordinator, its workers and their machine say."""

    def __init__(self, bus: NatsBus, name: str = "create") -> None:
        self.bus = bus
        self.run = new_run_id(COORDINATOR, name)
        self._name = name
        self._numbers = count()

    async def say(self, subject: Any, kind: Any, ask: Any, caller: Caller = COORDINATOR, request: str = "", **keys: str) -> dict[str, Any]:
        """Ask until somebody answers; the result."""
        asked = kind(request=request or f"q{next(self._numbers)}", caller=caller, ask=ask, at_ms=SystemClock().now_ms(), **keys)
        async for _ in Deadline(20, f"an answer to {type(ask).__name__}"):
            try:
                answer = await self.bus.ask(subject, asked, timeout_s=5)
            except Unavailable:
                continue
            if isinstance(answer, Refused) and answer.code in ("unavailable", "not_found"):
                continue  # who follows from others' records may not be there yet
            assert isinstance(answer, Receipt), answer
            return answer.result
        raise AssertionError

    async def of_run(self, ask: Any, caller: Caller = COORDINATOR, request: str = "") -> dict[str, Any]:
        return await self.say(RUN_CMD, RunCommand, ask, caller, request, run=self.run)

    async def of_mail(self, ask: Any, mailbox: str = "", caller: Caller = COORDINATOR) -> dict[str, Any]:
        return await self.say(MAIL_CMD, MailCommand, ask, caller, mailbox=mailbox or f"run:{self.run}")

    async def of_custody(self, ask: Any, custody: str) -> dict[str, Any]:
        return await self.say(CUSTODY_CMD, CustodyCommand, ask, custody=custody)

    async def ready(self) -> None:
        """All three services answer."""
        asks: tuple[tuple[Any, Any, Any, dict[str, str]], ...] = (
            (RUN_CMD, RunCommand, ListRuns(), {"run": ANY_RUN}),
            (MAIL_CMD, MailCommand, ReadMail(), {"mailbox": "run:none"}),
            (CUSTODY_CMD, CustodyCommand, ListCustodies(), {"custody": ALL}),
        )
        for subject, kind, ask, keys in asks:
            asked = kind(request="ready", caller=COORDINATOR, ask=ask, at_ms=0, **keys)
            async for _ in Deadline(20, f"somebody serves {subject.name}"):
                try:
                    answer = await self.bus.ask(subject, asked, timeout_s=5)
                except Unavailable:
                    continue
                if not (isinstance(answer, Refused) and answer.code == "unavailable"):
                    break

    # ------------------------------------------------------------ what is done

    async def create(self, *specs: Any, objective: str = "get it done") -> None:
        """A Run with Tasks, and its mailbox."""
        await self.of_run(CreateRun(objective=objective), request=self._name)
        if specs:
            await self.of_run(AddTasks(tasks=specs))
        await self.of_mail(ReadWakes())

    async def fact(self, dispatch: str, saw: Saw, step: str = "start", **fields: Any) -> None:
        defaults = {"pane": f"p-{dispatch}", "path": f"/w/{dispatch}", "process": PROCESS}
        fence = int(dispatch.rpartition(".")[2])
        at_ms = SystemClock().now_ms()
        await self.bus.say(
            HOST_FACT, HostFact(host="h", dispatch=dispatch, fence=fence, step=step, saw=saw, at_ms=at_ms, **(defaults | fields))
        )

    async def begin(self, task: str, agent: str = "claude") -> str:
        """Start an attempt at a Task and let its turn be seen; returns its id."""
        started = await self.of_run(StartWorker(task=task, launch=a_launch(agent=agent, placement=NEW)))
        dispatch = str(started["dispatch"])
        await self.fact(dispatch, Saw.WORKTREE_READY, made=True, branch="work")
        await self.fact(dispatch, Saw.TERMINAL_MADE)
        await self.fact(dispatch, Saw.AGENT_STARTED)
        await self.until(dispatch, "starting")
        async for _ in Deadline(10, f"{dispatch} is at work"):
            # Before its process is on record the dispatcher does not know whose pane it is.
            await self.pane(dispatch, State.WORKING)
            if (await self.worker(dispatch))["state"] == "running":
                return dispatch
        raise AssertionError

    async def pane(self, dispatch: str, state: State, **fields: Any) -> None:
        """What is held true of its pane."""
        now_ms = SystemClock().now_ms()
        turns = (TurnSeen(number=1, started_ms=now_ms),)
        await self.bus.say(
            PANE_STATUS,
            a_status(
                pane=f"p-{dispatch}",
                state=state,
                turn=1,
                turns=turns,
                process=PROCESS,
                live=True,
                since_ms=now_ms,
                updated_ms=now_ms,
                **fields,
            ),
        )

    async def report(self, dispatch: str, outcome: Outcome = Outcome.SUCCEEDED, body: str = "All of it is done.") -> None:
        """Its worker reports."""
        await self.of_run(ReportWork(report=Report(outcome=outcome, body=body, commit="0123456789abcdef")), self.who(dispatch))

    async def released(self, dispatch: str) -> None:
        """Its machine proves that its processes have ended, and moves its worktree to the trash."""
        await self.fact(dispatch, Saw.TREE_ENDED, "release-1", count=1)
        await self.until_custody(dispatch, "released")
        await self.fact(dispatch, Saw.WORKTREE_TRASHED, "remove-1", detail=f"/w/.tocsin-trash/{dispatch}")
        async for _ in Deadline(10, "its worktree is in the trash"):
            if (await self.of_custody(ShowCustody(), dispatch))["row"]["worktree"] == "trashed":
                return

    async def ask(self, dispatch: str, question: str, *options: str) -> str:
        """Its worker asks its Run; returns the question's id."""
        asked = await self.of_mail(AskQuestion(question=question, options=options), f"dispatch:{dispatch}", self.who(dispatch))
        return str(asked["question"])

    def who(self, dispatch: str) -> Caller:
        return worker(dispatch, process=PROCESS)

    # ------------------------------------------------------------ what became of it

    async def worker(self, dispatch: str) -> dict[str, Any]:
        row: dict[str, Any] = (await self.of_run(ShowWorker(dispatch=dispatch)))["worker"]
        return row

    async def task(self, task: str) -> dict[str, Any]:
        row: dict[str, Any] = (await self.of_run(ShowTask(task=task)))["task"]
        return row

    async def until(self, dispatch: str, state: str) -> dict[str, Any]:
        async for _ in Deadline(10, f"{dispatch} is {state}"):
            row = await self.worker(dispatch)
            if row["state"] == state:
                return row
        raise AssertionError

    async def until_custody(self, dispatch: str, state: str) -> dict[str, Any]:
        async for _ in Deadline(10, f"the custody of {dispatch} is {state}"):
            row: dict[str, Any] = (await self.of_custody(ShowCustody(), dispatch))["row"]
            if row["state"] == state:
                return row
        raise AssertionError

    async def until_owed(self, dispatch: str) -> dict[str, Any]:
        async for _ in Deadline(10, f"{dispatch} is owed"):
            rows = (await self.of_custody(ListCustodies(obligations_only=True), ALL))["rows"]
            if found := [row for row in rows if row["custody"] == dispatch]:
                return dict(found[0])
        raise AssertionError

    async def until_unread(self, number: int, mailbox: str = "") -> dict[str, Any]:
        async for _ in Deadline(10, f"{number} unread"):
            box = await self.of_mail(ReadMail(), mailbox)
            if box["unread"] == number:
                return box
        raise AssertionError


@asynccontextmanager
async def a_loop(url: str, store: "redis.Redis", bus: NatsBus) -> AsyncIterator[Loop]:
    """Dispatcher, mailbox and release-accountant, each on a connection of its own, as a process has it."""
    clock = SystemClock()
    async with (
        connect(url, name="dispatcher") as one,
        connect(url, name="mailbox") as two,
        connect(url, name="release-accountant") as three,
    ):
        ledger = Ledger(one, Views(store, RUN_EVENT.name), FAMILY, clock.now_ms, lambda *words, **named: None)
        dispatcher = Dispatcher(one, ledger, clock, Sights(clock, lambda text: f"hash of {text}"))
        accountant = Accountant(three, Views(store, CUSTODY_EVENT.name), Views(store, VIEW), clock, QUICK)
        async with (
            running(dispatcher.run()),
            running(mailbox.serve(two, Views(store, MAIL_EVENT.name), clock)),
            running(accountant.run()),
        ):
            loop = Loop(bus)
            await loop.ready()
            yield loop
