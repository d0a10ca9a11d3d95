"""What the loop holds: the same read verbs that the command puts, each as one address. Nothing here changes anything."""

import asyncio
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Response

from tocsin.console.answers import answer, refuse
from tocsin.console.core.ground import by_host
from tocsin.console.reads import Reads, Told
from tocsin.contract.custody import ALL, LIST_MAX, CustodyRow, ListCustodies, ShowCustody
from tocsin.contract.ids import HostId
from tocsin.contract.mail import RUN_MARK, ReadMail, ReadWakes
from tocsin.contract.refusals import ADVICE, Code, Refusal
from tocsin.contract.run import (
    ANY_RUN,
    PAGE_MAX,
    ListGates,
    ListRuns,
    ListTasks,
    ListWorkers,
    Refused,
    ShowRun,
    ShowTask,
    ShowWorker,
    run_of_dispatch,
)
from tocsin.runtime.clock import Clock

BOXES_MAX = 20
"""Runs of one page of mailboxes or wakes: each is a request of its own."""

AUDIT_PAGES_MAX = 10
"""Pages of custodies that are summed up; beyond them the page says that it has not seen all."""

NUMBER_MAX = 2**53 - 1
"""What JSON's readers take as a whole number."""

Before = Annotated[int | None, Query(ge=1, le=NUMBER_MAX)]
Limit = Annotated[int, Query(ge=1, le=PAGE_MAX)]
Boxes = Annotated[int, Query(ge=1, le=BOXES_MAX)]


def routes(reads: Reads, clock: Clock) -> APIRouter:
    """Each answer carries `now`, the service's clock, by which ages are shown."""
    router = APIRouter(prefix="/api")

    def say(told: Told, **more: Any) -> Response:
        if isinstance(told, Refusal):
            return refuse(told)
        if isinstance(told, Refused):
            status = ADVICE[Code(told.code)].status if told.code in set(Code) else 409
            return answer({"code": told.code, "message": told.message, "retry": told.retry, "next": told.next}, status)
        return answer({**told, **more, "now": clock.now_ms()})

    # ------------------------------------------------------------ Runs

    @router.get("/runs")
    async def runs(closed: bool = False, after: str | None = None, limit: Limit = 50) -> Response:
        """The Runs, latest change first."""
        return say(await reads.run(ListRuns(closed=closed, after=after, limit=limit), ANY_RUN))

    @router.get("/runs/{run}")
    async def run(run: str) -> Response:
        """One Run."""
        return say(await reads.run(ShowRun(), run))

    @router.get("/runs/{run}/tasks")
    async def tasks(run: str, after: str | None = None, limit: Limit = 50) -> Response:
        """Its Tasks in the order in which they were added."""
        return say(await reads.run(ListTasks(after=after, limit=limit), run))

    @router.get("/runs/{run}/tasks/{task}")
    async def task(run: str, task: str) -> Response:
        """One Task with all its attempts and verdicts."""
        return say(await reads.run(ShowTask(task=task), run))

    @router.get("/runs/{run}/gates")
    async def gates(run: str, every: bool = False) -> Response:
        """Its gates, oldest first; answered ones too with `every`."""
        return say(await reads.run(ListGates(all=every), run))

    @router.get("/workers")
    async def workers(
        run: str = ANY_RUN, settled: bool = False, failed: bool = False, after: str | None = None, limit: Limit = 50
    ) -> Response:
        """The fleet, who needs somebody first."""
        return say(await reads.run(ListWorkers(settled=settled, failed=failed, after=after, limit=limit), run))

    @router.get("/workers/{dispatch}")
    async def worker(dispatch: str) -> Response:
        """One attempt: its row, its brief, its reports."""
        return say(await reads.run(ShowWorker(dispatch=dispatch), run_of_dispatch(dispatch)))

    # ------------------------------------------------------------ mail

    async def of_each_run(ask: ReadMail | ReadWakes, after: str | None, limit: int) -> Response:
        listed = await reads.run(ListRuns(after=after, limit=limit), ANY_RUN)
        if not isinstance(listed, dict):
            return say(listed)
        told = await asyncio.gather(*(reads.mailbox(ask, RUN_MARK + row["run"]) for row in listed["rows"]))
        # A Run of this very moment has no mailbox yet.
        rows = [{"run": row, "box": box if isinstance(box, dict) else None} for row, box in zip(listed["rows"], told, strict=True)]
        return say({**listed, "rows": rows})

    @router.get("/mail")
    async def boxes(after: str | None = None, limit: Boxes = BOXES_MAX) -> Response:
        """The mailboxes of open Runs, each with its newest message."""
        return await of_each_run(ReadMail(limit=1), after, limit)

    @router.get("/mail/{mailbox}")
    async def mailbox(mailbox: str, before: Before = None, unread: bool = False, limit: Limit = 50) -> Response:
        """One mailbox, newest first; nothing is taken."""
        return say(await reads.mailbox(ReadMail(before=before, unread=unread, limit=limit), mailbox))

    @router.get("/wakes")
    async def all_wakes(after: str | None = None, limit: Boxes = BOXES_MAX) -> Response:
        """The accounts of open Runs, each with its last wake."""
        return await of_each_run(ReadWakes(limit=1), after, limit)

    @router.get("/wakes/{mailbox}")
    async def wakes(mailbox: str, limit: Limit = 50) -> Response:
        """The account of one mailbox, newest first."""
        return say(await reads.mailbox(ReadWakes(limit=limit), mailbox))

    # ------------------------------------------------------------ custody

    @router.get("/custody")
    async def custodies(
        run: str | None = None,
        host: str | None = None,
        every: bool = False,
        owed: bool = False,
        after: str | None = None,
        limit: Limit = 50,
    ) -> Response:
        """Who owns each terminal and worktree, those that need a decision first."""
        ask = ListCustodies(
            run=run, host=HostId(host) if host else None, open_only=not every and not owed, obligations_only=owed, after=after, limit=limit
        )
        return say(await reads.custody(ask, ALL))

    @router.get("/custody/{custody}")
    async def custody(custody: str) -> Response:
        """One of them, with every decision about it."""
        return say(await reads.custody(ShowCustody(), custody))

    @router.get("/audit")
    async def audit() -> Response:
        """The ledger's side of each machine. `complete`: whether every custody that is not over was summed up."""
        rows: list[CustodyRow] = []
        after: str | None = None
        for _ in range(AUDIT_PAGES_MAX):
            told = await reads.custody(ListCustodies(open_only=True, after=after, limit=LIST_MAX), ALL)
            if not isinstance(told, dict):
                return say(told)
            rows += msgspec.convert(told["rows"], list[CustodyRow])
            after = told["next"]
            if after is None:
                break
        return say({"hosts": by_host(rows), "count": len(rows), "complete": after is None})

    return router
