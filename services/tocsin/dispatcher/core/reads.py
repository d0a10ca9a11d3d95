"""Reads: what callers are shown. They change nothing and keep no receipt."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from tocsin.contract.decision import Decision
from tocsin.contract.parties import Caller, Role
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.run import (
    ANY_RUN,
    PAGE_MAX,
    ListGates,
    ListRuns,
    ListTasks,
    ListWorkers,
    Receipt,
    RunCommand,
    ShowRequest,
    ShowRun,
    ShowTask,
    ShowWorker,
    run_of_dispatch,
)
from tocsin.dispatcher.core.decide import absent
from tocsin.dispatcher.core.fleet import Seen, need_first, worker_row
from tocsin.dispatcher.core.life import S
from tocsin.dispatcher.core.rows import clean, cut_task_row, gate_row, named, run_row, task_row
from tocsin.dispatcher.core.run import Dispatch, Run
from tocsin.dispatcher.core.starts import authors
from tocsin.dispatcher.core.tasks import found

STARTING = frozenset({S.REQUESTED, S.STARTING, S.START_UNKNOWN})


class Shown(NamedTuple):
    """What reads are answered from. `seen`: what is seen of an attempt; `receipt`: of the caller's request."""

    runs: Mapping[str, Run]
    now_ms: int
    seen: Callable[[Dispatch], Seen]
    receipt: Callable[[str], Receipt | None]


def read(command: RunCommand, run: Run | None, shown: Shown) -> Decision | Refusal:
    """Answer a read. `run`: the one that is asked about, None when there is none. Refuses: not_found, bad_request."""
    ask = command.ask
    if isinstance(ask, ListRuns):
        return Decision((), _runs(ask, shown, command.caller))
    if isinstance(ask, ListWorkers) and command.run == ANY_RUN:
        open_runs = [one for one in shown.runs.values() if not one.closed and may_see(one, command.caller, shown.runs)]
        return Decision((), _workers(ask, open_runs, shown, "all"))
    if run is None or not run.is_known or not may_see(run, command.caller, shown.runs):
        return absent(command.run)
    match ask:
        case ShowRun():
            return Decision((), {"run": run_row(run)})
        case ListTasks():
            return Decision((), _tasks(ask, run))
        case ShowTask():
            return _task(ask, run, shown)
        case ListWorkers():
            return Decision((), _workers(ask, [run], shown, run.id))
        case ShowWorker():
            return _worker(ask, run, shown)
        case ListGates():
            gates = sorted((gate for gate in run.gates.values() if ask.all or gate.verdict is None), key=lambda gate: gate.opened_ms)
            return Decision((), {"rows": [gate_row(gate) for gate in gates[-PAGE_MAX:]], "total": len(gates)})
        case ShowRequest():
            return Decision((), _request(ask, run, shown))
    return Refusal(Code.BAD_REQUEST, f"{type(ask).__name__} is no read")


def may_see(run: Run, caller: Caller, runs: Mapping[str, Run]) -> bool:
    """A worker sees the Run that it works for and those nested in its own Dispatch; to it another one is the same as none."""
    if caller.role is not Role.WORKER or not caller.vouched or caller.dispatch is None:
        return True
    return run.id == run_of_dispatch(caller.dispatch) or run.parent == caller.dispatch


def _runs(ask: ListRuns, shown: Shown, caller: Caller) -> dict[str, Any]:
    runs = [run for run in shown.runs.values() if run.is_known and (ask.closed or not run.closed) and may_see(run, caller, shown.runs)]
    runs.sort(key=lambda run: (-run.updated_ms, run.id))
    return _page(runs, ask.after, ask.limit, lambda run: run.id, run_row)


def _tasks(ask: ListTasks, run: Run) -> dict[str, Any]:
    states = set(ask.states)
    tasks = sorted((task for task in run.tasks.values() if not states or task.state in states), key=lambda task: task.number)
    return _page(tasks, ask.after, ask.limit, lambda task: task.id, lambda task: cut_task_row(run, task))


def _task(ask: ShowTask, run: Run, shown: Shown) -> Decision | Refusal:
    task = found(run, ask.task)
    if isinstance(task, Refusal):
        return task
    rows = [worker_row(run, dispatch, shown.seen(dispatch), shown.now_ms) for dispatch in authors(run, task.id)[-PAGE_MAX:]]
    verdicts = [
        {
            "review": one.review,
            "by": named(one.by),
            "verdict": one.verdict,
            "findings": one.findings,
            "commit": one.commit,
            "round": one.round,
        }
        for one in task.verdicts
    ]
    row = {**task_row(run, task), "dependents": sorted(run.waiters.get(task.id, ()))[:PAGE_MAX]}
    return Decision((), {"task": row, "workers": rows, "verdicts": verdicts})


def _workers(ask: ListWorkers, runs: Sequence[Run], shown: Shown, scope: str) -> dict[str, Any]:
    rows = []
    for run in runs:
        names: Iterable[str] = run.dispatches if ask.settled or ask.failed else {*run.unsettled, *_latest(run)}
        for name in names:
            dispatch = run.dispatches[name]
            if ask.failed and dispatch.state is not S.FAILED:
                continue
            rows.append(worker_row(run, dispatch, shown.seen(dispatch), shown.now_ms))
    if not ask.settled and not ask.failed:
        # A settled one is shown as long as somebody has to do something about it.
        rows = [row for row in rows if row["settled_ms"] is None or row["requires_action"] or row["next"]["kind"] != "none"]
    rows.sort(key=need_first)
    return {**_page(rows, ask.after, ask.limit, lambda row: row["dispatch"], lambda row: row), "scope": scope}


def _latest(run: Run) -> Iterable[str]:
    """Settled attempts that may still need somebody: the newest of each Task."""
    return (task.current for task in run.tasks.values() if task.current is not None)


def _worker(ask: ShowWorker, run: Run, shown: Shown) -> Decision | Refusal:
    dispatch = run.dispatches.get(ask.dispatch)
    if dispatch is None:
        return Refusal(Code.NOT_FOUND, f"there is no Dispatch {clean(ask.dispatch)[:120]}")
    return Decision(
        (),
        {
            "worker": worker_row(run, dispatch, shown.seen(dispatch), shown.now_ms),
            "launch": msgspec.to_builtins(dispatch.launch),
            "brief": dispatch.brief,
            "late_reports": msgspec.to_builtins(dispatch.late),
            "refused": msgspec.to_builtins(dispatch.refused),
        },
    )


def _request(ask: ShowRequest, run: Run, shown: Shown) -> dict[str, Any]:
    receipt = shown.receipt(ask.id)
    if receipt is None:
        return {"request": ask.id, "state": "absent", "receipt": None, "worker": None}
    dispatch = run.dispatches.get(str(receipt.result.get("dispatch", "")))
    row = None if dispatch is None else worker_row(run, dispatch, shown.seen(dispatch), shown.now_ms)
    state = "pending" if is_unresolved(run, receipt) else "completed"
    return {"request": ask.id, "state": state, "receipt": msgspec.to_builtins(receipt), "worker": row}


def is_unresolved(run: Run, receipt: Receipt) -> bool:
    """It started an attempt of which nobody knows yet whether it began."""
    if "fence" not in receipt.result:
        return False
    dispatch = run.dispatches.get(str(receipt.result.get("dispatch", "")))
    return dispatch is not None and dispatch.state in STARTING


def _page(
    items: Sequence[Any], after: str | None, limit: int, key: Callable[[Any], str], row: Callable[[Any], dict[str, Any]]
) -> dict[str, Any]:
    """One page behind the item called `after`; from the start when that is not there any more."""
    start = next((index + 1 for index, item in enumerate(items) if key(item) == after), 0) if after is not None else 0
    page = items[start : start + max(1, min(limit, PAGE_MAX))]
    is_last = start + len(page) >= len(items)
    return {"rows": [row(item) for item in page], "total": len(items), "next": None if is_last or not page else key(page[-1])}
