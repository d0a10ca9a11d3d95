"""Reads: what callers are shown. They change nothing and keep no receipt."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from heapq import merge
from itertools import dropwhile, islice
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
    TaskState,
    run_of_dispatch,
)
from tocsin.dispatcher.core.decide import absent
from tocsin.dispatcher.core.fleet import Seen, need_first, worker_row
from tocsin.dispatcher.core.life import S
from tocsin.dispatcher.core.numbers import above
from tocsin.dispatcher.core.rows import clean, cut_task_row, gate_row, named, run_row, task_row
from tocsin.dispatcher.core.run import Dispatch, Run, gate_id
from tocsin.dispatcher.core.starts import authors
from tocsin.dispatcher.core.tasks import found

STARTING = frozenset({S.REQUESTED, S.STARTING, S.START_UNKNOWN})


class Shown(NamedTuple):
    """What reads are answered from. `seen`: what is seen of an attempt; `owed`: the attempts of a Run whose custody is open;
    `receipt`: of the caller's request."""

    runs: Mapping[str, Run]
    now_ms: int
    seen: Callable[[Dispatch], Seen]
    owed: Callable[[str], Iterable[str]]
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
            return Decision((), _gates(ask, run))
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
    start = next((index + 1 for index, run in enumerate(runs) if run.id == ask.after), 0)
    end = start + _limit(ask.limit)
    return {"rows": [run_row(run) for run in runs[start:end]], "total": len(runs), "next": runs[end - 1].id if end < len(runs) else None}


def _tasks(ask: ListTasks, run: Run) -> dict[str, Any]:
    """A page costs its rows, however many Tasks there are: none is looked at that is not shown."""
    limit = _limit(ask.limit)
    behind = run.tasks.get(ask.after or "")
    numbers = 0
    for state in set(ask.states or TaskState):
        numbers |= run.in_state.get(state, 0)
    found = above(numbers, behind.number if behind is not None else 0, limit + 1)
    page = [run.tasks[run.numbered[number]] for number in found[:limit]]
    return {
        "rows": [cut_task_row(run, task) for task in page],
        "total": numbers.bit_count(),
        "next": page[-1].id if len(found) > limit else None,
    }


def _gates(ask: ListGates, run: Run) -> dict[str, Any]:
    if ask.all:
        # Gates are numbered in the order in which they were opened: the last ones are known without a look at the others.
        names = [gate_id(run.id, number) for number in range(max(0, run.asked - PAGE_MAX) + 1, run.asked + 1)]
        return {"rows": [gate_row(run.gates[name]) for name in names], "total": len(run.gates)}
    gates = sorted((run.gates[name] for name in run.open_gates), key=lambda gate: gate.opened_ms)
    return {"rows": [gate_row(gate) for gate in gates[-PAGE_MAX:]], "total": len(gates)}


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
    """A page costs its rows and those that may need somebody; settled attempts behind them are looked at when they are shown."""
    first = [
        worker_row(run, run.dispatches[name], shown.seen(run.dispatches[name]), shown.now_ms)
        for run in runs
        for name in (run.failed if ask.failed else _to_look_at(run, ask, shown))
    ]
    if ask.settled and not ask.failed:
        first = [row for row in first if row["settled_ms"] is None or row["attention"]]
    elif not ask.failed:
        # A settled one is shown as long as somebody has to do something about it.
        first = [row for row in first if row["settled_ms"] is None or row["requires_action"] or row["next"]["kind"] != "none"]
    first.sort(key=need_first)
    names = [row["dispatch"] for row in first]
    total = len(names)
    rest: Iterable[tuple[Run, Dispatch]] = ()
    start = names.index(ask.after) + 1 if ask.after in names else 0
    if ask.settled and not ask.failed:
        total = sum(run.started for run in runs)
        is_behind = start == 0 and any(ask.after in run.dispatches for run in runs)
        rest = _healthy(runs, set(names), ask.after if is_behind else None)
        start = len(first) if is_behind else start
    limit = _limit(ask.limit)
    rows = first[start : start + limit + 1]
    rows += [worker_row(run, one, shown.seen(one), shown.now_ms) for run, one in islice(rest, limit + 1 - len(rows))]
    is_last = len(rows) <= limit
    return {"rows": rows[:limit], "total": total, "next": None if is_last else rows[limit - 1]["dispatch"], "scope": scope}


def _to_look_at(run: Run, ask: ListWorkers, shown: Shown) -> set[str]:
    """Attempts that may need somebody: those under way, and of settled ones the newest of its Task when it failed, waits for its
    acceptance, or has a terminal without a disposition."""
    settled = {*run.failed}
    if ask.settled:
        reported = run.in_state.get(TaskState.REPORTED, 0)
        settled.update(run.tasks[run.numbered[number]].current or "" for number in above(reported, 0, reported.bit_count()))
    else:
        settled.update(shown.owed(run.id))
    newest = (run.dispatches[name] for name in settled if name in run.dispatches)
    return {*run.unsettled, *(one.id for one in newest if run.tasks[one.task].current == one.id)}


def _healthy(runs: Sequence[Run], others: AbstractSet[str], behind: str | None) -> Iterator[tuple[Run, Dispatch]]:
    """Every attempt but `others`, the newest first; those behind the one called `behind`, when there is one."""

    def newest(run: Run, below: int) -> Iterator[tuple[Run, Dispatch]]:
        for number in range(below - 1, 0, -1):
            if run.attempted[number] not in others:
                yield run, run.dispatches[run.attempted[number]]

    if len(runs) == 1:
        return newest(runs[0], runs[0].started + 1 if behind is None else runs[0].dispatches[behind].number)
    merged = merge(*(newest(run, run.started + 1) for run in runs), key=lambda one: (-one[1].requested_ms, one[1].id))
    return merged if behind is None else islice(dropwhile(lambda one: one[1].id != behind, merged), 1, None)


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


def _limit(asked: int) -> int:
    """How many rows a page has at most."""
    return max(1, min(asked, PAGE_MAX))
