"""What a record of a Run means for mailboxes: what is mail, for whom, and what is not. Heartbeats are not.

The id of a message is made of the record's sequence, so a record that comes twice makes the same message.
"""

from collections.abc import Iterator

from tocsin.contract.mail import MailType, Message
from tocsin.contract.run import (
    SETTLED,
    CoordinatorBound,
    DispatchMoved,
    DispatchRequested,
    DispatchState,
    GateOpened,
    GateResolved,
    ReportMissing,
    ReportRefused,
    RunClosed,
    RunEvent,
    RunPaused,
    RunRecorded,
    TaskMoved,
    TaskState,
    VerdictGiven,
    WorkReady,
    WorkReported,
)
from tocsin.mailbox.core.addresses import PERSON, of_dispatch, of_run
from tocsin.mailbox.core.follow_up import Bind, Close, Join, Leave, Open, Place, Posts, Tell
from tocsin.mailbox.core.post import first_line

LISTED_MAX = 20
"""Tasks named in one message; it says how many more there are."""

ALARMING = frozenset({DispatchState.START_UNKNOWN, DispatchState.CONTACT_LOST, DispatchState.FAILED})
"""Ways in which an attempt leaves its course without a word of its worker: its coordinator would wait for ever."""

WHAT_TO_DO = "To see more: tocsin worker show {dispatch}"


def news_of(recorded: RunRecorded, seq: str) -> dict[str, tuple[Posts, ...]]:
    """What each mailbox gets of a record, by address. `seq`: the record's sequence, and whatever makes it unique beside others."""
    found: dict[str, list[Posts]] = {}
    told = 0
    reported = {event.task for event in recorded.events if isinstance(event, VerdictGiven | WorkReported)}
    for address, post in _posts(recorded, reported):
        if isinstance(post, Tell):
            id_ = seq if told == 0 else f"{seq}.{told}"
            told += 1
            post = Tell(message=_with_id(post.message, id_))
        found.setdefault(address, []).append(post)
    return {address: tuple(posts) for address, posts in found.items()}


def _with_id(message: Message, id_: str) -> Message:
    return Message(**{field: getattr(message, field) for field in Message.__struct_fields__ if field != "id"}, id=id_)


def _posts(recorded: RunRecorded, reported: set[str]) -> Iterator[tuple[str, Posts]]:
    run = of_run(recorded.run)
    blocked: list[TaskMoved] = []
    for event in recorded.events:
        match event:
            case CoordinatorBound():
                yield run, Bind(run=recorded.run, generation=event.generation, reader=event.caller)
            case RunClosed():
                yield run, Close(why="the Run is closed", by=recorded.caller)
            case DispatchRequested():
                worker = of_dispatch(event.dispatch)
                yield worker, Open(run=recorded.run, task=event.task, agent=event.launch.agent, host=event.launch.host)
                yield run, Join(dispatch=event.dispatch, agent=event.launch.agent)
            case DispatchMoved():
                yield from _moved(recorded, event, run, event.task in reported)
            case WorkReady():
                yield run, Tell(message=_ready(recorded, event))
            case TaskMoved(to=TaskState.BLOCKED):
                blocked.append(event)
            case ReportRefused():
                yield from _refused(recorded, event, run)
            case _:
                message = _message(recorded, event, run)
                if message is not None:
                    yield run, Tell(message=message)
    if blocked:
        yield run, Tell(message=_blocked(recorded, blocked))


def _moved(recorded: RunRecorded, event: DispatchMoved, run: str, is_reported: bool) -> Iterator[tuple[str, Posts]]:
    worker = of_dispatch(event.dispatch)
    if event.pane is not None:
        yield worker, Place(host=None, pane=event.pane, process=event.process)
    if event.to in SETTLED:
        yield worker, Close(why=f"the Dispatch is {event.to}", by=recorded.caller)
        yield run, Leave(dispatch=event.dispatch)
    if event.to in ALARMING and not is_reported:
        what = f"{event.why or event.saw}\n{WHAT_TO_DO.format(dispatch=event.dispatch)}"
        told = _mail(
            recorded, MailType.ESCALATION, worker, f"{event.dispatch}: {event.to}", what, task=event.task, dispatch=event.dispatch,
            code=event.code,
        )  # fmt: skip
        yield run, Tell(message=told)


def _message(recorded: RunRecorded, event: RunEvent, run: str) -> Message | None:
    match event:
        case WorkReported():
            late = f" (late: {event.current or 'no attempt'} is the current one)" if event.late else ""
            said = event.report
            found = [said.body]
            found += [f"commit: {said.commit}"] if said.commit else []
            found += [f"path: {said.path}"] if said.path else []
            found += [f"files: {', '.join(said.files)}"] if said.files else []
            return _mail(
                recorded, MailType.REPORT, of_dispatch(event.dispatch), f"{event.task} {said.outcome}{late}", "\n".join(found),
                task=event.task, dispatch=event.dispatch, code="late" if event.late else None,
            )  # fmt: skip
        case VerdictGiven():
            commit = f"\ncommit: {event.commit}" if event.commit else ""
            sender = of_dispatch(event.by.dispatch) if event.by.dispatch else PERSON
            return _mail(
                recorded, MailType.REPORT, sender, f"review {event.review} of {event.task}: {event.verdict}", event.findings + commit,
                task=event.task, dispatch=event.by.dispatch, code=event.verdict,
            )  # fmt: skip
        case ReportMissing():
            return _mail(
                recorded, MailType.MISSING, of_dispatch(event.dispatch), f"{event.task}: no report",
                f"{event.why}\n{WHAT_TO_DO.format(dispatch=event.dispatch)}", task=event.task, dispatch=event.dispatch,
            )  # fmt: skip
        case GateOpened():
            # One that is put to a person is no matter of the coordinator's: it may know, and need not wake.
            kind = MailType.GATE if event.to == "coordinator" else MailType.STATUS
            return _mail(
                recorded, kind, run, f"{event.gate} on {event.task}: {first_line(event.question)}", event.question,
                task=event.task, thread=event.gate, options=event.options,
            )  # fmt: skip
        case GateResolved():
            return _mail(
                recorded, MailType.STATUS, run, f"{event.gate} on {event.task}: {event.verdict}", event.answer, task=event.task,
                thread=event.gate,
            )  # fmt: skip
        case RunPaused():
            kind = MailType.ESCALATION if event.circuit else MailType.STATUS
            subject = "the circuit is open: nothing new starts" if event.circuit else "the Run is paused"
            return _mail(recorded, kind, run, subject, event.reason)
    return None


def _ready(recorded: RunRecorded, event: WorkReady) -> Message:
    count = len(event.tasks)
    subject = f"{count} Task{'s' if count != 1 else ''} ready, and no attempt runs"
    return _mail(recorded, MailType.READY, of_run(recorded.run), subject, _listed(list(event.tasks)))


def _blocked(recorded: RunRecorded, moved: list[TaskMoved]) -> Message:
    lines = [f"{event.task}: {event.why or ', '.join(event.blocked_by)}" for event in moved]
    subject = f"{moved[0].task} is blocked" if len(moved) == 1 else f"{len(moved)} Tasks are blocked"
    return _mail(recorded, MailType.ESCALATION, of_run(recorded.run), subject, _listed(lines, "\n"), task=moved[0].task)


def _refused(recorded: RunRecorded, event: ReportRefused, run: str) -> Iterator[tuple[str, Posts]]:
    sender = of_dispatch(event.by.dispatch or event.dispatch or "") if event.by.dispatch or event.dispatch else PERSON
    current = f"\nThe current attempt is {event.current}." if event.current else ""
    kept = f"\nIt said: {event.report.body}" if event.report is not None else ""
    told = _mail(
        recorded, MailType.REJECTION, sender, f"{event.what} refused: {event.code}", f"{event.why}{current}{kept}", task=event.task,
        dispatch=event.dispatch, code=event.code,
    )  # fmt: skip
    yield run, Tell(message=told)
    if event.by.dispatch is not None:
        yield of_dispatch(event.by.dispatch), Tell(message=told)


def _listed(lines: list[str], separator: str = ", ") -> str:
    more = f"{separator}and {len(lines) - LISTED_MAX} more" if len(lines) > LISTED_MAX else ""
    return separator.join(lines[:LISTED_MAX]) + more


def _mail(
    recorded: RunRecorded, type_: MailType, sender: str, subject: str, body: str, *, task: str | None = None, dispatch: str | None = None,
    thread: str | None = None, code: str | None = None, options: tuple[str, ...] = (),
) -> Message:  # fmt: skip
    return Message(
        id="", type=type_, sender=sender, subject=first_line(subject), body=body, at_ms=recorded.at_ms, run=recorded.run, task=task,
        dispatch=dispatch, thread=thread, code=code, options=options,
    )  # fmt: skip
