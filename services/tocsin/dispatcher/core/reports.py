"""What a worker says: its report, its heartbeat, its verdict. Who says it counts, not what the text claims."""

from tocsin.contract.decision import Decision
from tocsin.contract.parties import Caller
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.run import (
    Accept,
    Beat,
    Beaten,
    DispatchState,
    GateOpened,
    GiveVerdict,
    Outcome,
    Report,
    ReportRefused,
    ReportWork,
    TaskKind,
    TaskState,
    Verdict,
    VerdictGiven,
    WorkReported,
)
from tocsin.dispatcher.core.draft import Draft
from tocsin.dispatcher.core.life import LIFE, DispatchEvent
from tocsin.dispatcher.core.rows import clean, clean_text
from tocsin.dispatcher.core.run import Dispatch, Run, Task, gate_id, place
from tocsin.dispatcher.core.starts import authors
from tocsin.dispatcher.core.tasks import found, reset_reviews

BODY_BYTES_MAX = 256 * 1024
"""Of a report or findings: more belongs into a file that the report names."""

COMMIT_LETTERS_MIN = 7
"""An abbreviated commit is told by at least so many."""

WHY_MAX = 300


def target_of(run: Run, caller: Caller, named: str | None) -> Dispatch | Refusal:
    """The attempt that somebody speaks of: the one named, else the newest in the caller's pane, else the one the pane was made for."""
    name = named or run.panes.get(place(caller.host or "", caller.pane or ""), caller.dispatch or "")
    if not name:
        return Refusal(Code.BAD_REQUEST, "which Dispatch? Inside its own pane it need not be named")
    dispatch = run.dispatches.get(name)
    return dispatch if dispatch is not None else Refusal(Code.NOT_FOUND, f"there is no Dispatch {clean(name)[:120]}")


def is_assignee(dispatch: Dispatch, caller: Caller) -> bool:
    """It was said from the pane and by the process that were started for this attempt, and its host vouches for that."""
    if not caller.vouched:
        return False
    is_there = caller.host == dispatch.launch.host and caller.pane is not None and caller.pane == dispatch.pane
    if caller.pane is not None and dispatch.pane is not None and not is_there:
        return False
    if caller.process is not None and dispatch.processes and caller.process not in dispatch.processes:
        return False
    return is_there or caller.dispatch == dispatch.id


def report(draft: Draft, ask: ReportWork) -> Decision | Refusal:
    """Take a report.

    Refuses: bad_request, not_found, too_large, sender_not_assignee, not_lead, lifecycle_conflict, stale_dispatch, run_closed.
    """
    dispatch = target_of(draft.run, draft.caller, ask.dispatch)
    if isinstance(dispatch, Refusal):
        return dispatch
    if ask.task is not None and ask.task != dispatch.task:
        return Refusal(Code.BAD_REQUEST, f"{dispatch.id} is an attempt at {dispatch.task}, not at {clean(ask.task)[:80]}")
    said = Report(
        outcome=ask.report.outcome, body=clean_text(ask.report.body), files=tuple(map(clean, ask.report.files)),
        commit=clean(ask.report.commit) if ask.report.commit else None, path=clean(ask.report.path) if ask.report.path else None,
    )  # fmt: skip
    if len(said.body.encode()) > BODY_BYTES_MAX:
        return Refusal(Code.TOO_LARGE, f"a report has at most {BODY_BYTES_MAX} bytes: write the rest into a file and name it with --path")
    if refused := _unfit_sender(draft, dispatch, "report", said):
        return refused
    if draft.run.tasks[dispatch.task].spec.kind is TaskKind.REVIEW and said.outcome is Outcome.SUCCEEDED and dispatch.report is None:
        return Refusal(Code.BAD_REQUEST, "a review reports by its verdict: tocsin review verdict accept|rework|reject")
    taken = take(draft, dispatch, said)
    if taken is not None:
        return taken
    task = draft.run.tasks[dispatch.task]
    if said.outcome is Outcome.FAILED:
        draft.put(task.id, TaskState.FAILED, f"{dispatch.id} reported: {_short(said.body)}")
    else:
        _reported(draft, task)
    return draft.decided(_told(draft.run, dispatch, said))


def take(draft: Draft, dispatch: Dispatch, said: Report) -> Decision | None:
    """Put a report on record and settle its attempt; a Decision when that is all there is to it."""
    task = draft.run.tasks[dispatch.task]
    if dispatch.report is not None:
        if dispatch.report.outcome is said.outcome:
            return Decision((), _told(draft.run, dispatch, dispatch.report), duplicate=True)
        why = f"{dispatch.id} has reported {dispatch.report.outcome} already: {said.outcome} contradicts that"
        return refuse(draft, dispatch, "report", Refusal(Code.LIFECYCLE_CONFLICT, why), said)
    if dispatch.is_settled or draft.run.closed:
        return _late(draft, dispatch, task, said)
    draft.add(WorkReported(dispatch=dispatch.id, task=dispatch.task, report=said, by=draft.caller))
    settle(draft, dispatch, said.outcome)
    return None


def settle(draft: Draft, dispatch: Dispatch, outcome: Outcome) -> None:
    """A report has its attempt's outcome; whether the Task is done is another question."""
    succeeded = outcome is Outcome.SUCCEEDED
    draft.move(dispatch.id, DispatchEvent.REPORTED, by=draft.caller)
    draft.move(dispatch.id, DispatchEvent.OUTCOME_SUCCEEDED if succeeded else DispatchEvent.OUTCOME_FAILED, by=draft.caller)


def _late(draft: Draft, dispatch: Dispatch, task: Task, said: Report) -> Decision:
    current = task.current if task.current != dispatch.id else None
    if said.outcome not in {late.outcome for late in dispatch.late}:
        draft.add(WorkReported(dispatch=dispatch.id, task=task.id, report=said, by=draft.caller, late=True, current=current))
    if draft.run.closed and current is None and not dispatch.is_settled:
        refusal = Refusal(Code.RUN_CLOSED, f"{draft.run.id} is closed: this report is kept and changes nothing")
    else:
        ended = f"{dispatch.id} is {dispatch.state}{': ' + dispatch.why if dispatch.why else ''}"
        now = f"the current attempt is {current}" if current else f"Task {task.id} is {task.state}"
        refusal = Refusal(Code.STALE_DISPATCH, f"{ended}; {now}. This report is kept and changes nothing; sending it again cannot help")
    return draft.decided({"dispatch": dispatch.id, "task": task.id, "current": task.current}, refusal)


def _reported(draft: Draft, task: Task) -> None:
    draft.put(task.id, TaskState.REPORTED)
    if task.spec.accept is Accept.AUTO:
        draft.put(task.id, TaskState.ACCEPTED, "by its report, as its policy is")
    elif task.spec.accept is Accept.GATE and not live_reviews(draft.run, task.id) and task.gate is None:
        draft.add(
            GateOpened(
                gate=gate_id(draft.run.id, draft.run.asked + 1), task=task.id, to="person", by=draft.caller,
                question=f"Is Task {task.id} ({task.spec.title}) done, round {task.round}?", options=tuple(Verdict),
            )
        )  # fmt: skip


def live_reviews(run: Run, task: str) -> list[Task]:
    """Review Tasks whose verdict on a Task can still come, or has come."""
    over = (TaskState.CANCELLED, TaskState.UNVERIFIABLE, TaskState.FAILED)
    return [review for name in sorted(run.reviews.get(task, ())) if (review := run.tasks[name]).state not in over]


def judge(draft: Draft, task: Task, verdict: Verdict, findings: str, who: str) -> None:
    """What a verdict makes of a reported Task. A fix round is bounded; beyond it the Task is blocked, and says so."""
    match verdict:
        case Verdict.ACCEPT:
            draft.put(task.id, TaskState.ACCEPTED, f"accepted by {who}")
        case Verdict.REJECT:
            draft.put(task.id, TaskState.FAILED, f"rejected by {who}: {_short(findings)}", findings=findings)
        case Verdict.REWORK if task.round >= task.spec.max_rounds:
            draft.put(
                task.id, TaskState.BLOCKED, f"{task.round} rounds and not accepted; {who}: {_short(findings)}",
                blocked_by=(f"rounds:{task.round}",), findings=findings,
            )  # fmt: skip
            reset_reviews(draft, task.id)
        case Verdict.REWORK:
            draft.release(task.id, f"sent back by {who}: {_short(findings)}", round=task.round + 1, findings=findings)
            reset_reviews(draft, task.id)


def verdict(draft: Draft, ask: GiveVerdict) -> Decision | Refusal:
    """Take a review's verdict, which is its worker's report too.

    Refuses: bad_request, not_found, sender_not_assignee, not_lead, same_worker, already_decided, stale_dispatch, too_large.
    """
    named = None
    if ask.task is not None:
        asked = found(draft.run, ask.task)
        if isinstance(asked, Refusal):
            return asked
        named = asked.current
    dispatch = target_of(draft.run, draft.caller, named)
    if isinstance(dispatch, Refusal):
        return dispatch
    review = draft.run.tasks[dispatch.task]
    if review.spec.reviews is None:
        return Refusal(Code.BAD_REQUEST, f"{dispatch.task} is no review: report with tocsin report")
    target = draft.run.tasks[review.spec.reviews]
    findings = clean_text(ask.findings)
    commit = clean(ask.commit) if ask.commit else None
    said = Report(outcome=Outcome.SUCCEEDED, body=f"{ask.verdict}: {findings}" if findings else ask.verdict.value, commit=commit)
    if len(findings.encode()) > BODY_BYTES_MAX:
        return Refusal(Code.TOO_LARGE, f"findings have at most {BODY_BYTES_MAX} bytes")
    if refused := _unfit_sender(draft, dispatch, "verdict", said):
        return refused
    result = {"review": review.id, "task": target.id, "verdict": ask.verdict}
    if dispatch.report is not None:
        given = next((one.verdict for one in reversed(target.verdicts) if one.review == review.id and one.round == dispatch.round), None)
        if given in (ask.verdict, None):
            return Decision((), {**result, "task_state": target.state, "round": dispatch.round}, duplicate=True)
        return Refusal(Code.ALREADY_DECIDED, f"{dispatch.id} has judged round {dispatch.round} of {target.id}: {given}")
    if is_same_worker(draft.run, dispatch, target.id):
        why = f"{dispatch.id} runs in the pane or process that worked on {target.id}"
        return refuse(draft, dispatch, "verdict", Refusal(Code.SAME_WORKER, why), said)
    if ask.verdict is not Verdict.ACCEPT and not findings:
        return Refusal(Code.BAD_REQUEST, f"{ask.verdict} needs findings")
    if refusal := _other_commit(draft.run, target, commit):
        return refusal
    is_over = dispatch.is_settled or draft.run.closed
    if is_over or target.state is not TaskState.REPORTED or target.round != dispatch.round:
        late = take(draft, dispatch, said)
        if late is not None:
            return late
        draft.release(review.id, f"round {dispatch.round} of {target.id} was decided without it")
        why = f"round {dispatch.round} of {target.id} is decided: it is {target.state} in round {target.round}"
        return draft.decided(result, Refusal(Code.ALREADY_DECIDED, why))
    draft.add(VerdictGiven(review=review.id, task=target.id, verdict=ask.verdict, findings=findings, commit=commit, by=draft.caller))
    settle(draft, dispatch, Outcome.SUCCEEDED)
    _settle_review(draft, review, target, ask.verdict, findings)
    after = draft.run.tasks[target.id]
    return draft.decided({**result, "task_state": after.state, "round": dispatch.round})


def _settle_review(draft: Draft, review: Task, target: Task, given: Verdict, findings: str) -> None:
    match given:
        case Verdict.ACCEPT:
            draft.put(review.id, TaskState.ACCEPTED, f"{target.id} stands")
            all_accept = all(one.state is TaskState.ACCEPTED for one in live_reviews(draft.run, target.id))
            if target.spec.accept is Accept.GATE and all_accept:
                judge(draft, target, given, findings, f"review {review.id}")
        case Verdict.REWORK:
            judge(draft, target, given, findings, f"review {review.id}")
            draft.release(review.id, f"waits for the next report of {target.id}")
        case Verdict.REJECT:
            judge(draft, target, given, findings, f"review {review.id}")
            draft.put(review.id, TaskState.FAILED, f"{target.id} was rejected")


def is_same_worker(run: Run, reviewer: Dispatch, task: str) -> bool:
    """An author of the Task is at work in this attempt: same pane or same process."""
    for author in authors(run, task):
        if author.pane is not None and (author.launch.host, author.pane) == (reviewer.launch.host, reviewer.pane):
            return True
        if set(author.processes) & set(reviewer.processes):
            return True
    return False


def _other_commit(run: Run, target: Task, commit: str | None) -> Refusal | None:
    """A verdict is tied to the commit that was reported."""
    reported = run.dispatches.get(target.reported or "")
    due = reported.report.commit if reported is not None and reported.report is not None else None
    if not due:
        return None
    if not commit:
        return Refusal(Code.BAD_REQUEST, f"name the commit that was judged: --commit {due}")
    one, other = sorted((due.lower(), commit.lower()), key=len)
    if one != other and (len(one) < COMMIT_LETTERS_MIN or not other.startswith(one)):
        return Refusal(
            Code.BAD_REQUEST, f"{target.id} was reported with commit {due}; this verdict is on {commit}: judge that one, --commit {due}"
        )
    return None


def beat(draft: Draft, ask: Beat) -> Decision | Refusal:
    """Take a heartbeat; it shows that a turn runs.

    Refuses: bad_request, not_found, sender_not_assignee, stale_dispatch, lifecycle_conflict.
    """
    dispatch = target_of(draft.run, draft.caller, ask.dispatch)
    if isinstance(dispatch, Refusal):
        return dispatch
    if not is_assignee(dispatch, draft.caller):
        return refuse(draft, dispatch, "beat", _not_assignee(dispatch))
    if dispatch.state is DispatchState.SUPERSEDED:
        current = draft.run.tasks[dispatch.task].current
        return refuse(
            draft, dispatch, "beat", Refusal(Code.STALE_DISPATCH, f"{dispatch.id} is superseded; the current attempt is {current}: stop")
        )
    if dispatch.is_settled:
        return Refusal(Code.LIFECYCLE_CONFLICT, f"{dispatch.id} is {dispatch.state} already: nothing is awaited of it")
    if (dispatch.state, DispatchEvent.TURN_SEEN) in LIFE and not dispatch.exited:
        draft.move(dispatch.id, DispatchEvent.TURN_SEEN, why="its worker gave a sign of life")
    draft.add(Beaten(dispatch=dispatch.id, phase=clean(ask.phase)[:200], at_ms=draft.at_ms))
    return draft.decided({"dispatch": dispatch.id, "state": draft.run.dispatches[dispatch.id].state})


def _unfit_sender(draft: Draft, dispatch: Dispatch, what: str, said: Report) -> Decision | None:
    if not is_assignee(dispatch, draft.caller):
        return refuse(draft, dispatch, what, _not_assignee(dispatch), said)
    if draft.caller.child:
        why = f"a child agent of {dispatch.id} said it: it is held until the main agent says it in its own turn"
        return refuse(draft, dispatch, what, Refusal(Code.NOT_LEAD, why), said)
    return None


def _not_assignee(dispatch: Dispatch) -> Refusal:
    where = f"pane {dispatch.pane} on {dispatch.launch.host}" if dispatch.pane else f"its pane on {dispatch.launch.host}"
    return Refusal(Code.SENDER_NOT_ASSIGNEE, f"{dispatch.id} is assigned to {where}; this came from elsewhere")


def refuse(draft: Draft, dispatch: Dispatch, what: str, refusal: Refusal, said: Report | None = None) -> Decision:
    """Refuse what a worker said, and have it on record once, so that the coordinator is told."""
    outcome = said.outcome if said is not None else None
    if all((one.what, one.code, one.outcome) != (what, refusal.code, outcome) for one in dispatch.refused):
        current = draft.run.tasks[dispatch.task].current
        draft.add(
            ReportRefused(
                dispatch=dispatch.id, task=dispatch.task, code=refusal.code, why=refusal.message, by=draft.caller, what=what, report=said,
                current=current,
            )
        )  # fmt: skip
    return draft.decided({"dispatch": dispatch.id, "task": dispatch.task}, refusal)


def _told(run: Run, dispatch: Dispatch, said: Report) -> dict[str, object]:
    task = run.tasks[dispatch.task]
    return {"dispatch": dispatch.id, "task": task.id, "outcome": said.outcome, "task_state": task.state, "current": task.current}


def _short(text: str) -> str:
    flat = clean(text)
    return flat if len(flat) <= WHY_MAX else f"{flat[:WHY_MAX]} ..."
