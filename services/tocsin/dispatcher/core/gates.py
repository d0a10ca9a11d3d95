"""Gates: a question on a Task, answered once; and the verdict of a coordinator or person on a reported Task."""

from tocsin.contract.decision import Decision
from tocsin.contract.parties import Role
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.run import (
    TASK_ENDS,
    Accept,
    AcceptTask,
    GateOpened,
    GateResolved,
    OpenGate,
    ResolveGate,
    RunCommand,
    TaskState,
    Verdict,
)
from tocsin.dispatcher.core.draft import Draft
from tocsin.dispatcher.core.reports import is_assignee, judge, live_reviews
from tocsin.dispatcher.core.rows import clean, clean_text, named, task_row
from tocsin.dispatcher.core.run import gate_id
from tocsin.dispatcher.core.runs import may_own
from tocsin.dispatcher.core.tasks import found

QUESTION_MAX = 4_000


def accept(draft: Draft, ask: AcceptTask) -> Decision | Refusal:
    """A coordinator's or person's verdict. Refuses: not_found, bad_request, already_decided, lifecycle_conflict."""
    task = found(draft.run, ask.task)
    if isinstance(task, Refusal):
        return task
    if task.state is not TaskState.REPORTED:
        if task.state is TaskState.ACCEPTED and ask.verdict is Verdict.ACCEPT:
            return Decision((), {"task": task_row(draft.run, task)}, duplicate=True)
        if task.state in TASK_ENDS:
            return Refusal(Code.ALREADY_DECIDED, f"Task {task.id} is {task.state}{': ' + task.why if task.why else ''}")
        return Refusal(Code.LIFECYCLE_CONFLICT, f"Task {task.id} is {task.state}: there is no report to judge")
    if task.spec.accept is Accept.GATE and draft.caller.role is not Role.PERSON:
        held = task.gate or ", ".join(review.id for review in live_reviews(draft.run, task.id))
        return Refusal(Code.LIFECYCLE_CONFLICT, f"a gate decides about Task {task.id}: {held}")
    reason = clean_text(ask.reason)
    if ask.verdict is not Verdict.ACCEPT and not reason:
        return Refusal(Code.BAD_REQUEST, f"{ask.verdict} needs a reason")
    who = f"{named(draft.caller)}{' on ' + clean(ask.commit) if ask.commit else ''}"
    if task.gate is not None:
        draft.add(GateResolved(gate=task.gate, task=task.id, verdict=ask.verdict, answer=reason, by=draft.caller))
    judge(draft, draft.run.tasks[task.id], ask.verdict, reason, who)
    return draft.decided({"task": task_row(draft.run, draft.run.tasks[task.id])})


def open_gate(draft: Draft, ask: OpenGate, command: RunCommand) -> Decision | Refusal:
    """Put a question on a Task. Its owner may, and the worker that is on it.

    Refuses: not_found, bad_request, lifecycle_conflict, and as may_own.
    """
    task = found(draft.run, ask.task)
    if isinstance(task, Refusal):
        return task
    current = draft.run.dispatches.get(task.current or "")
    is_worker = current is not None and not current.is_settled and is_assignee(current, draft.caller)
    if not is_worker and (refusal := may_own(draft.run, command)):
        return refusal
    question = clean_text(ask.question)
    if not question or len(question) > QUESTION_MAX:
        return Refusal(Code.BAD_REQUEST, f"a gate needs a question of at most {QUESTION_MAX} characters")
    if task.state in TASK_ENDS:
        return Refusal(Code.LIFECYCLE_CONFLICT, f"Task {task.id} has ended ({task.state})")
    if task.gate is not None:
        return Refusal(Code.LIFECYCLE_CONFLICT, f"gate {task.gate} is open on Task {task.id} already")
    gate = gate_id(draft.run.id, draft.run.asked + 1)
    draft.add(GateOpened(gate=gate, task=task.id, question=question, options=tuple(map(clean, ask.options)), to=ask.to, by=draft.caller))
    if task.state in (TaskState.PENDING, TaskState.READY) or (task.state is TaskState.BLOCKED and not task.is_held):
        draft.put(task.id, TaskState.BLOCKED, f"gate {gate} is open", blocked_by=(f"gate:{gate}",))
    return draft.decided({"gate": gate, "task": task.id})


def resolve_gate(draft: Draft, ask: ResolveGate) -> Decision | Refusal:
    """Answer it. Refuses: not_found, already_decided, sender_not_assignee, bad_request."""
    gate = draft.run.gates.get(ask.gate)
    if gate is None:
        return Refusal(Code.NOT_FOUND, f"there is no gate {clean(ask.gate)[:80]} in {draft.run.id}")
    task = draft.run.tasks[gate.task]
    result = {"gate": gate.id, "task": task.id, "verdict": ask.verdict}
    if gate.verdict is not None:
        if gate.verdict is ask.verdict:
            return Decision((), {**result, "task_state": task.state}, duplicate=True)
        return Refusal(Code.ALREADY_DECIDED, f"gate {gate.id} was answered by {named(gate.resolved_by)}: {gate.verdict}")
    if gate.to == "person" and draft.caller.role is not Role.PERSON:
        return Refusal(Code.SENDER_NOT_ASSIGNEE, f"gate {gate.id} is put to a person")
    answer = clean_text(ask.answer)
    if ask.verdict is not Verdict.ACCEPT and not answer:
        return Refusal(Code.BAD_REQUEST, f"{ask.verdict} needs an answer that says why")
    draft.add(GateResolved(gate=gate.id, task=task.id, verdict=ask.verdict, answer=answer, by=draft.caller))
    after = draft.run.tasks[task.id]
    who = f"gate {gate.id} ({named(draft.caller)})"
    if after.is_held and after.blocked_by == (f"gate:{gate.id}",):
        if ask.verdict is Verdict.REJECT:
            draft.put(task.id, TaskState.CANCELLED, f"{who}: {clean(answer)[:300]}")
        else:
            draft.release(task.id, "", findings=answer or None)
    elif after.state is TaskState.REPORTED and after.spec.accept is Accept.GATE and not live_reviews(draft.run, task.id):
        judge(draft, after, ask.verdict, answer, who)
    return draft.decided({**result, "task_state": draft.run.tasks[task.id].state})
