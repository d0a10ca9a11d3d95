"""The fleet: one row for each attempt, who needs somebody first, with the next step as a command."""

from typing import Any, NamedTuple

import msgspec

from tocsin.contract.messages import Ask, PaneStatus, State
from tocsin.contract.run import DispatchState, TaskState
from tocsin.dispatcher.core.draft import Custody
from tocsin.dispatcher.core.run import Dispatch, Run
from tocsin.dispatcher.core.watch import HEARD, HOST_SILENT_MS, is_gone
from tocsin.dispatcher.core.wedge import Activity, Judgement, classify

FRESH_MS_MAX = 10 * 60_000
"""A heartbeat older than this is stale: workers are asked for one every few minutes."""

S = DispatchState

OUTCOMES = {
    S.SUCCEEDED: "succeeded", S.FAILED: "failed", S.STOPPED: "stopped", S.ABANDONED: "abandoned", S.SUPERSEDED: "superseded",
    S.FINISHED_UNVERIFIED: "finished_unverified", S.START_UNKNOWN: "outcome_unknown", S.CONTACT_LOST: "outcome_unknown",
}  # fmt: skip

ACTION = frozenset({"guidance", "input", "approval", "failure", "interruption", "unverifiable"})
"""Attention that somebody must act on; a stale heartbeat and a completion alone are none."""

URGENCY = ("approval", "input", "guidance", "unverifiable", "failure", "interruption", "stale", "completion")
"""Rows with the same need for action: whoever holds up the most comes first."""


class Seen(NamedTuple):
    """What is seen of one attempt beside its Run."""

    status: PaneStatus | None
    silent_ms: int
    custody: Custody | None


def worker_row(run: Run, dispatch: Dispatch, seen: Seen, now_ms: int) -> dict[str, Any]:
    """One attempt. What each field means stands with ListWorkers in the contract."""
    task = run.tasks[dispatch.task]
    judgement = classify(dispatch, seen.status, seen.silent_ms, now_ms)
    liveness, reason = liveness_of(dispatch, seen)
    is_current = task.current == dispatch.id
    attention = attention_of(run, dispatch, seen, judgement, now_ms)
    beat_age_ms = None if dispatch.beat_ms is None else max(0, now_ms - dispatch.beat_ms)
    return {
        "dispatch": dispatch.id,
        "run": run.id,
        "task": task.id,
        "title": task.spec.title,
        "fence": dispatch.fence,
        "current": is_current,
        "agent": dispatch.launch.agent,
        "host": dispatch.launch.host,
        "pane": dispatch.pane,
        "path": dispatch.path,
        "state": dispatch.state,
        "since_ms": dispatch.since_ms,
        "why": dispatch.why,
        "code": dispatch.code,
        "liveness": liveness,
        "liveness_reason": reason,
        "outcome": OUTCOMES.get(dispatch.state, "in_progress"),
        "activity": judgement.activity,
        "activity_reason": judgement.reason,
        "attention": attention,
        "requires_action": bool(ACTION & set(attention)),
        "human_wait": human_wait(dispatch, seen),
        "turn_start": turn_start(dispatch),
        "heartbeat": "none" if beat_age_ms is None else "fresh" if beat_age_ms < FRESH_MS_MAX else "stale",
        "heartbeat_ms": beat_age_ms,
        "phase": dispatch.phase,
        "custody": seen.custody.state if seen.custody is not None else None,
        "next": next_step(dispatch, seen, attention),
        "report": msgspec.to_builtins(dispatch.report),
        "late_reports": len(dispatch.late),
        "requested_ms": dispatch.requested_ms,
        "settled_ms": dispatch.settled_ms,
    }


def liveness_of(dispatch: Dispatch, seen: Seen) -> tuple[str, str]:
    """live, exited or unverifiable, with the reason. Only a proof makes it exited."""
    status = seen.status
    if dispatch.exited:
        return "exited", "its process was seen to end"
    if dispatch.state is S.STOPPED:
        return "exited", "it was stopped with proof"
    if status is not None and is_gone(status):
        return "exited", status.cause
    if dispatch.pane is None:
        return "unverifiable", "not_materialized"
    if seen.silent_ms >= HOST_SILENT_MS:
        return "unverifiable", "host_unavailable"
    if status is None:
        return "unverifiable", "missing_status"
    if status.live is None:
        return "unverifiable", "host_indeterminate"
    return "live", status.cause


def human_wait(dispatch: Dispatch, seen: Seen) -> str:
    """What a person is awaited for; `none`: looked, nothing; `unknown`: nobody could look."""
    status = seen.status
    if dispatch.is_settled:
        return "none"
    if status is not None and status.prompts:
        return status.prompts[0].ask
    if status is None or not status.hooked or status.evidence not in HEARD or seen.silent_ms >= HOST_SILENT_MS:
        return "unknown"
    return "none"


def turn_start(dispatch: Dispatch) -> str:
    """seen, not_seen or awaited."""
    if dispatch.turn_seen_ms is not None:
        return "seen"
    return "awaited" if dispatch.state in (S.REQUESTED, S.STARTING) else "not_seen"


def attention_of(run: Run, dispatch: Dispatch, seen: Seen, judgement: Judgement, now_ms: int) -> list[str]:
    """Why somebody should look, most urgent first."""
    task = run.tasks[dispatch.task]
    is_current = task.current == dispatch.id
    found = set()
    if not dispatch.is_settled:
        wait = human_wait(dispatch, seen)
        if wait == Ask.PERMISSION:
            found.add("approval")
        elif wait not in ("none", "unknown"):
            found.add("input")
        if dispatch.state in (S.START_UNKNOWN, S.CONTACT_LOST, S.FINISHED_UNVERIFIED):
            found.add("unverifiable")
        is_cut = seen.status is not None and seen.status.interrupted and seen.status.state in (State.DONE, State.IDLE)
        if is_cut and dispatch.state in (S.RUNNING, S.FINISHED_UNVERIFIED):
            found.add("interruption")
        beat_is_old = dispatch.beat_ms is not None and now_ms - dispatch.beat_ms >= FRESH_MS_MAX
        if beat_is_old or judgement.activity is Activity.WEDGED:
            found.add("stale")
    elif is_current and dispatch.state is S.FAILED and task.state in (TaskState.FAILED, TaskState.READY):
        found.add("failure")
    elif is_current and dispatch.state is S.SUCCEEDED and task.state is TaskState.REPORTED:
        found.add("completion")
    return [one for one in URGENCY if one in found]


def next_step(dispatch: Dispatch, seen: Seen, attention: list[str]) -> dict[str, Any]:
    """What to do about it, as one command; none when looking again would show the same row."""
    if dispatch.is_settled:
        if seen.custody is not None and seen.custody.is_open:
            return _step("release", "tocsin", "custody", "release", dispatch.id)
        return _step("inspect", "tocsin", "worker", "show", dispatch.id) if "failure" in attention else _step("none")
    if "approval" in attention or "input" in attention:
        return _step("answer", "tocsin", "worker", "read", dispatch.id)
    if dispatch.state is S.FINISHED_UNVERIFIED:
        return _step("recover", "tocsin", "worker", "stop" if dispatch.exited else "read", dispatch.id)
    if dispatch.state is S.STOPPING and seen.silent_ms >= HOST_SILENT_MS:
        return _step("recover", "tocsin", "worker", "abandon", dispatch.id, "--reason", "WHY")
    if dispatch.state in (S.START_UNKNOWN, S.CONTACT_LOST) or "interruption" in attention or "stale" in attention:
        return _step("inspect", "tocsin", "worker", "read", dispatch.id)
    return _step("none")


def _step(kind: str, *command: str) -> dict[str, Any]:
    return {"kind": kind, "command": list(command)}


def need_first(row: dict[str, Any]) -> tuple[bool, int, bool, int, str]:
    """Orders rows: who needs an action, who is urgent, who is unsettled; then the newest, so that a page cuts the healthy tail."""
    attention = row["attention"]
    urgency = URGENCY.index(attention[0]) if attention else len(URGENCY)
    return not row["requires_action"], urgency, row["settled_ms"] is not None, -row["requested_ms"], row["dispatch"]
