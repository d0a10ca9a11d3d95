"""The graph of Tasks: what may be added and changed. Rings are refused on every way in, by name."""

import re
from collections.abc import Iterator, Mapping

import msgspec

from tocsin.agents.registry import AGENTS
from tocsin.contract.decision import Decision
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.run import (
    TASK_ENDS,
    Accept,
    AddTasks,
    CancelTask,
    ReopenTask,
    TaskAdded,
    TaskKind,
    TaskMoved,
    TaskSpec,
    TaskState,
    TaskUpdated,
    UpdateTask,
)
from tocsin.dispatcher.core.draft import Draft
from tocsin.dispatcher.core.rows import clean, clean_text, task_row
from tocsin.dispatcher.core.run import Run, Task, waits_on

TASK_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")

TASKS_MAX = 20_000
"""Tasks of one Run: the plan of a very large project; beyond it a list of Tasks is no plan any more."""

ROUNDS_MAX = 100
TITLE_MAX = 400
TOLD_MAX = 200
"""Tasks that the receipt of an addition names."""


def add_tasks(draft: Draft, ask: AddTasks) -> Decision | Refusal:
    """Add all or nothing. Refuses: bad_request, task_exists, not_found, ring, unknown_agent, capacity."""
    run = draft.run
    new: dict[str, TaskSpec] = {}
    for spec in ask.tasks:
        if refusal := _unfit(spec):
            return refusal
        if spec.id in new or spec.id in run.tasks:
            return Refusal(Code.TASK_EXISTS, f"there is a Task {spec.id} already")
        new[spec.id] = msgspec.structs.replace(
            spec, title=clean(spec.title), spec=clean_text(spec.spec), deps=tuple(dict.fromkeys(spec.deps))
        )
    if not new:
        return Refusal(Code.BAD_REQUEST, "no Task was given")
    if len(run.tasks) + len(new) > TASKS_MAX:
        return Refusal(Code.CAPACITY, f"a Run has at most {TASKS_MAX} Tasks")
    for spec in new.values():
        for named in (*spec.deps, *filter(None, (spec.parent, spec.reviews))):
            if named not in new and named not in run.tasks:
                return Refusal(Code.NOT_FOUND, f"Task {spec.id} names {named}, which does not exist in {run.id}")
        if refusal := _unfit_review(spec, new, run):
            return refusal
    if ring := ring_among(run, new):
        return Refusal(Code.RING, f"the dependencies would form a ring: {' -> '.join(ring)}")
    for spec in new.values():
        draft.add(TaskAdded(task=spec))
    for spec in new.values():
        if draft.settle(draft.run.tasks[spec.id]):
            draft.spread([spec.id])
    # A Task waits for its children: one that was ready may have to wait now.
    draft.spread(spec.id for spec in new.values() if spec.parent is not None)
    rows = [draft.run.tasks[name] for name in list(new)[:TOLD_MAX]]
    told = [{"task": task.id, "state": task.state, "blocked_by": list(task.blocked_by)} for task in rows]
    return draft.decided({"tasks": told, "total": len(new)})


def update_task(draft: Draft, ask: UpdateTask) -> Decision | Refusal:
    """Change what may still change. Refuses: not_found, lifecycle_conflict, ring, bad_request."""
    task = found(draft.run, ask.task)
    if isinstance(task, Refusal):
        return task
    if task.state in TASK_ENDS:
        return Refusal(Code.LIFECYCLE_CONFLICT, f"Task {task.id} has ended ({task.state}): reopen it first")
    changes = {name: value for name in ("title", "spec", "accept", "max_rounds", "on_settle") if (value := getattr(ask, name)) is not None}
    if "title" in changes:
        changes["title"] = clean(changes["title"])
    if "spec" in changes:
        changes["spec"] = clean_text(changes["spec"])
    if ask.deps is not None:
        if task.state not in (TaskState.PENDING, TaskState.READY, TaskState.BLOCKED):
            return Refusal(Code.LIFECYCLE_CONFLICT, f"Task {task.id} is {task.state}: its dependencies stand")
        changes["deps"] = tuple(dict.fromkeys(ask.deps))
    spec = msgspec.structs.replace(task.spec, **changes)
    if spec == task.spec:
        return Decision((), {"task": task_row(draft.run, task)}, duplicate=True)
    if refusal := _unfit(spec) or _unfit_review(spec, {spec.id: spec}, draft.run):
        return refusal
    for named in spec.deps:
        if named not in draft.run.tasks:
            return Refusal(Code.NOT_FOUND, f"there is no Task {named} in {draft.run.id}")
    if ask.accept is Accept.AUTO and (reviews := draft.run.reviews.get(task.id)):
        return Refusal(Code.BAD_REQUEST, f"{', '.join(sorted(reviews))} reviews it: accept cannot be auto")
    if ask.deps is not None and (ring := ring_among(draft.run, {spec.id: spec})):
        return Refusal(Code.RING, f"the dependencies would form a ring: {' -> '.join(ring)}")
    draft.add(TaskUpdated(task=spec))
    if draft.settle(draft.run.tasks[task.id]):
        draft.spread([task.id])
    return draft.decided({"task": task_row(draft.run, draft.run.tasks[task.id])})


def cancel_task(draft: Draft, ask: CancelTask) -> Decision | Refusal:
    """End it without a result. Refuses: not_found, bad_request, attempt_unsettled, lifecycle_conflict."""
    task = found(draft.run, ask.task)
    if isinstance(task, Refusal):
        return task
    to = TaskState.UNVERIFIABLE if ask.unverifiable else TaskState.CANCELLED
    if task.state is to:
        return Decision((), {"task": task_row(draft.run, task)}, duplicate=True)
    if refusal := unsettled(draft.run, task):
        return refusal
    if task.state is TaskState.ACCEPTED:
        return Refusal(Code.LIFECYCLE_CONFLICT, f"Task {task.id} is accepted: reopen it first")
    if not ask.reason.strip():
        return Refusal(Code.BAD_REQUEST, "say why")
    draft.put(task.id, to, clean(ask.reason))
    return draft.decided({"task": task_row(draft.run, draft.run.tasks[task.id])})


def reopen_task(draft: Draft, ask: ReopenTask) -> Decision | Refusal:
    """Bring an ended or blocked Task back, with its rounds before it, and the reviews of it.

    Refuses: not_found, bad_request, attempt_unsettled, lifecycle_conflict.
    """
    task = found(draft.run, ask.task)
    if isinstance(task, Refusal):
        return task
    if refusal := unsettled(draft.run, task):
        return refusal
    if task.state in (TaskState.PENDING, TaskState.READY):
        return Decision((), {"task": task_row(draft.run, task)}, duplicate=True)
    if task.state not in TASK_ENDS and not task.is_held:
        return Refusal(Code.LIFECYCLE_CONFLICT, f"Task {task.id} is {task.state}{': ' + task.why if task.why else ''}")
    if task.gate is not None:
        return Refusal(Code.LIFECYCLE_CONFLICT, f"gate {task.gate} is open on Task {task.id}: answer it")
    if not ask.reason.strip():
        return Refusal(Code.BAD_REQUEST, "say why")
    # A state of its own first: what holds it now must not count when it is found out where it stands.
    draft.release(task.id, clean(ask.reason), round=1, findings=clean(ask.reason))
    reset_reviews(draft, task.id)
    return draft.decided({"task": task_row(draft.run, draft.run.tasks[task.id])})


def reset_reviews(draft: Draft, task: str) -> None:
    """Reviews that have judged a Task wait for its next report. One that is under way finds out when it is done."""
    for name in sorted(draft.run.reviews.get(task, ())):
        review = draft.run.tasks[name]
        if review.state in (TaskState.ACCEPTED, TaskState.FAILED, TaskState.READY):
            draft.add(TaskMoved(task=name, to=TaskState.PENDING, why=f"waits for the next report of {task}"))
            draft.settle(draft.run.tasks[name])
            draft.spread([name])


def found(run: Run, task: str) -> Task | Refusal:
    """A Task of this Run. Refuses: not_found."""
    known = run.tasks.get(task)
    return known if known is not None else Refusal(Code.NOT_FOUND, f"there is no Task {task} in {run.id}")


def unsettled(run: Run, task: Task) -> Refusal | None:
    """Refuses: attempt_unsettled, naming the attempt that is."""
    current = run.dispatches.get(task.current or "")
    if current is None or current.is_settled:
        return None
    return Refusal(Code.ATTEMPT_UNSETTLED, f"{current.id} is {current.state} on {current.launch.host}: stop or abandon it first")


def _unfit(spec: TaskSpec) -> Refusal | None:
    if not TASK_ID.fullmatch(spec.id):
        return Refusal(Code.BAD_REQUEST, f"a Task id has 1 to 64 letters, digits, _ or -: {clean(spec.id)[:80]!r} has not")
    if not clean(spec.title).strip() or len(spec.title) > TITLE_MAX:
        return Refusal(Code.BAD_REQUEST, f"Task {spec.id} needs a title of at most {TITLE_MAX} characters")
    if not 1 <= spec.max_rounds <= ROUNDS_MAX:
        return Refusal(Code.BAD_REQUEST, f"Task {spec.id}: max_rounds is from 1 to {ROUNDS_MAX}")
    if spec.agent is not None and spec.agent not in AGENTS:
        return Refusal(Code.UNKNOWN_AGENT, f"Task {spec.id}: no agent {clean(spec.agent)[:40]!r}; there are {', '.join(AGENTS)}")
    if spec.id in spec.deps or spec.id in (spec.parent, spec.reviews):
        return Refusal(Code.RING, f"Task {spec.id} would wait for itself: {spec.id} -> {spec.id}")
    return None


def _unfit_review(spec: TaskSpec, new: Mapping[str, TaskSpec], run: Run) -> Refusal | None:
    if (spec.kind is TaskKind.REVIEW) != (spec.reviews is not None):
        return Refusal(Code.BAD_REQUEST, f"Task {spec.id}: a review names what it reviews, and only a review does")
    if spec.reviews is None:
        return None
    judged = new.get(spec.reviews) or run.tasks[spec.reviews].spec
    if judged.kind is TaskKind.REVIEW:
        return Refusal(Code.BAD_REQUEST, f"Task {spec.id}: {judged.id} is a review itself")
    if judged.accept is Accept.AUTO:
        return Refusal(
            Code.BAD_REQUEST, f"Task {spec.id}: {judged.id} is accepted without anybody (accept auto), so there is nothing to review"
        )
    return None


def ring_among(run: Run, new: Mapping[str, TaskSpec]) -> list[str] | None:
    """A ring that `new` Tasks would close, by name from one of them back to itself; None when there is none.

    Edges of all kinds count: a Task waits for its dependencies, its children and what it reviews.
    """
    children: dict[str, list[str]] = {}
    for spec in new.values():
        if spec.parent is not None:
            children.setdefault(spec.parent, []).append(spec.id)
    # What exists already can only lead back into the new ones by a new child, or when the new one is an old one changed.
    leads_back = any(parent not in new for parent in children) or any(name in run.tasks for name in new)

    def edges(name: str) -> Iterator[str]:
        spec = new.get(name)
        if spec is not None:
            yield from waits_on(run, spec)
        elif leads_back:
            yield from waits_on(run, run.tasks[name].spec)
        yield from children.get(name, ())

    done: set[str] = set()
    for start in new:
        path, open_edges = [start], [edges(start)]
        on_path = {start}
        while path:
            name = next(open_edges[-1], None)
            if name is None:
                done.add(path[-1])
                on_path.discard(path.pop())
                open_edges.pop()
            elif name in on_path:
                return [*path[path.index(name) :], name]
            elif name not in done:
                path.append(name)
                on_path.add(name)
                open_edges.append(edges(name))
    return None
