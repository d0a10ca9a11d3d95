"""Runs, Tasks and gates as reads answer them. What each field means stands with the verbs in the contract."""

import unicodedata
from typing import Any

import msgspec

from tocsin.contract.parties import Caller
from tocsin.contract.run import TASK_ENDS, TaskState
from tocsin.dispatcher.core.run import Gate, Run, Task

SPEC_CUT = 160


def clean(text: str) -> str:
    """Text of one line for people: controls become U+FFFD, line ends a space."""
    return "".join(" " if char in "\r\n\t" else "\ufffd" if unicodedata.category(char) in ("Cc", "Cs") else char for char in text).strip()


def clean_text(text: str) -> str:
    """Text of several lines for people: controls other than line ends and tabs become U+FFFD."""
    return "".join(
        "\ufffd" if char not in "\n\t" and unicodedata.category(char) in ("Cc", "Cs") else char for char in text.replace("\r\n", "\n")
    ).strip()


def named(caller: Caller | None) -> str | None:
    """A caller in one word for people."""
    if caller is None:
        return None
    return caller.dispatch or (f"{caller.host}/{caller.pane}" if caller.pane else caller.name)


def run_row(run: Run) -> dict[str, Any]:
    """One Run."""
    counts = {state.value: count for state in TaskState if (count := run.count(state))}
    return {
        "run": run.id,
        "objective": run.objective,
        "state": state_of(run),
        "why": run.closed_why if run.closed else run.paused or "",
        "generation": run.generation,
        "coordinator": msgspec.to_builtins(run.coordinator),
        "depth": run.depth,
        "depth_max": run.depth_max,
        "parent": run.parent,
        "workers_max": run.workers_max,
        "tasks": counts,
        "unsettled": len(run.unsettled),
        "open_gates": len(run.open_gates),
        "quiet": bool(run.tasks) and not run.unsettled,
        "summary": summary(run),
        "restored": run.restored,
        "created_ms": run.created_ms,
        "updated_ms": run.updated_ms,
    }


def state_of(run: Run) -> str:
    """open, paused, circuit or closed."""
    if run.closed:
        return "closed"
    if run.circuit_ms is not None:
        return "circuit"
    return "open" if run.paused is None else "paused"


def summary(run: Run) -> str:
    """One line: how far it is, and whether it stands still."""
    if not run.tasks:
        return "no Tasks yet"
    words = [f"{count} {state.value}" for state in TaskState if (count := run.count(state))]
    moving = len(run.unsettled)
    if moving:
        return f"{moving} under way: {', '.join(words)}"
    if run.closed or all(run.count(state) == 0 for state in TaskState if state not in TASK_ENDS):
        return f"all ended: {', '.join(words)}"
    return f"quiet, nothing is under way: {', '.join(words)}"


def task_row(run: Run, task: Task) -> dict[str, Any]:
    """One Task."""
    spec = task.spec
    reported = run.dispatches.get(task.reported or "")
    return {
        "task": task.id,
        "title": spec.title,
        "spec": spec.spec,
        "kind": spec.kind,
        "reviews": spec.reviews,
        "deps": list(spec.deps),
        "parent": spec.parent,
        "accept": spec.accept,
        "max_rounds": spec.max_rounds,
        "on_settle": spec.on_settle,
        "agent": spec.agent,
        "state": task.state,
        "why": task.why,
        "blocked_by": list(task.blocked_by),
        "round": task.round,
        "findings": task.findings,
        "attempts": task.attempts,
        "current": task.current,
        "gate": task.gate,
        "report": msgspec.to_builtins(reported.report) if reported is not None else None,
        "updated_ms": task.updated_ms,
    }


def cut_task_row(run: Run, task: Task) -> dict[str, Any]:
    """One Task of a list: its text cut."""
    row = task_row(run, task)
    text = row["spec"]
    report = row["report"]
    if report is not None:
        row["report"] = {**report, "body": report["body"][:SPEC_CUT]}
    return {**row, "spec": text[:SPEC_CUT], "spec_cut": len(text) > SPEC_CUT}


def gate_row(gate: Gate) -> dict[str, Any]:
    """One gate."""
    return {
        "gate": gate.id,
        "task": gate.task,
        "question": gate.question,
        "options": list(gate.options),
        "to": gate.to,
        "open": gate.verdict is None,
        "verdict": gate.verdict,
        "answer": gate.answer,
        "by": named(gate.resolved_by),
        "opened_ms": gate.opened_ms,
        "resolved_ms": gate.resolved_ms,
    }
