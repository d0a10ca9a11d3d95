"""What a record of a Run means for mailboxes: what is mail and for whom; what comes again, and late."""

from typing import Any

import pytest

from builders import A_PERSON, NOW_MS
from mailbox_builders import COORDINATOR, WORKER, a_run_box, after
from tocsin.contract.mail import MailType, Message
from tocsin.contract.run import (
    Accept,
    CoordinatorBound,
    DispatchMoved,
    DispatchRequested,
    DispatchState,
    GateOpened,
    GateResolved,
    Launch,
    Outcome,
    Placement,
    Receipt,
    Report,
    ReportMissing,
    ReportRefused,
    RunClosed,
    RunCreated,
    RunEvent,
    RunPaused,
    RunRecorded,
    TaskAdded,
    TaskMoved,
    TaskSpec,
    TaskState,
    Verdict,
    VerdictGiven,
    Where,
    WorkReady,
    WorkReported,
)
from tocsin.mailbox.core.follow_up import Bind, Close, Join, Leave, Open, Place, Posts, Tell, take
from tocsin.mailbox.core.mailbox import Mailbox, blank
from tocsin.mailbox.core.news import news_of

DISPATCH = "r1.t1.1"
REPORT = Report(outcome=Outcome.SUCCEEDED, body="done", commit="abc")
LAUNCH = Launch(agent="codex", host="h", placement=Placement(where=Where.CURRENT))


def news(*events: RunEvent, seq: str = "7") -> dict[str, tuple[Posts, ...]]:
    recorded = RunRecorded(
        run="r1", request="q", caller=A_PERSON, payload_hash="", events=events, receipt=Receipt(request="q"), at_ms=NOW_MS
    )
    return news_of(recorded, seq)


def mail(found: dict[str, tuple[Posts, ...]], address: str = "run:r1") -> list[Message]:
    return [post.message for post in found.get(address, ()) if isinstance(post, Tell)]


def moved(to: DispatchState, **fields: Any) -> DispatchMoved:
    return DispatchMoved(dispatch=DISPATCH, task="t1", fence=1, to=to, saw="seen", **fields)


def refused(what: str, by: Any = WORKER, **fields: Any) -> ReportRefused:
    return ReportRefused(dispatch=DISPATCH, task="t1", code="sender_not_assignee", why="another pane", by=by, what=what, **fields)


MAIL = [
    (WorkReported(dispatch=DISPATCH, task="t1", report=REPORT, by=WORKER), MailType.REPORT),
    (WorkReported(dispatch=DISPATCH, task="t1", report=REPORT, by=WORKER, late=True, current="r1.t1.2"), MailType.REPORT),
    (VerdictGiven(review="t2", task="t1", verdict=Verdict.REWORK, findings="no", commit="abc", by=WORKER), MailType.REPORT),
    (refused("report"), MailType.REJECTION),
    (refused("beat"), MailType.REJECTION),
    (ReportMissing(dispatch=DISPATCH, task="t1", why="its turn has ended"), MailType.MISSING),
    (GateOpened(gate="r1.g1", task="t1", question="ok?", options=(), to="coordinator", by=WORKER), MailType.GATE),
    (GateOpened(gate="r1.g1", task="t1", question="ok?", options=(), to="person", by=WORKER), MailType.STATUS),
    (GateResolved(gate="r1.g1", task="t1", verdict=Verdict.ACCEPT, answer="yes", by=A_PERSON), MailType.STATUS),
    (WorkReady(tasks=("t1", "t2")), MailType.READY),
    (RunPaused(reason="three failures", circuit=True), MailType.ESCALATION),
    (TaskMoved(task="t1", to=TaskState.BLOCKED, why="max_rounds"), MailType.ESCALATION),
    (moved(DispatchState.START_UNKNOWN), MailType.ESCALATION),
    (moved(DispatchState.CONTACT_LOST), MailType.ESCALATION),
    (moved(DispatchState.FAILED, code="agent_missing"), MailType.ESCALATION),
]


@pytest.mark.parametrize(("event", "type_"), MAIL, ids=lambda value: type(value).__name__)
def test_what_the_coordinator_must_hear_of_is_mail_whose_id_is_the_records_sequence(event, type_):
    [message] = mail(news(event))
    assert (message.id, message.type, message.run) == ("7", type_, "r1")


NO_MAIL = [
    RunCreated(objective="o", workers_max=8, depth=0, depth_max=1),
    TaskAdded(task=TaskSpec(id="t1", title="t", spec="s", accept=Accept.AUTO)),
    TaskMoved(task="t1", to=TaskState.READY),
    moved(DispatchState.RUNNING),
    moved(DispatchState.FINISHED_UNVERIFIED),
    moved(DispatchState.STOPPED),
    moved(DispatchState.SUCCEEDED),
]


@pytest.mark.parametrize("event", NO_MAIL, ids=lambda event: type(event).__name__)
def test_what_goes_its_way_is_no_mail(event):
    assert mail(news(event)) == []


def test_a_refused_report_is_mail_to_the_coordinator_and_to_its_sender_and_keeps_what_it_said():
    found = news(refused("report", report=REPORT, current="r1.t1.2"))
    for address in ("run:r1", "dispatch:r1.t1.1"):
        [message] = mail(found, address)
        assert message.type is MailType.REJECTION
        assert "another pane" in message.body
        assert "r1.t1.2" in message.body
        assert "done" in message.body


def test_a_refused_report_of_nobody_known_is_mail_to_the_coordinator_alone():
    assert set(news(refused("report", by=A_PERSON))) == {"run:r1"}


def test_a_failed_attempt_whose_worker_says_so_itself_is_one_report():
    found = news(WorkReported(dispatch=DISPATCH, task="t1", report=REPORT, by=WORKER), moved(DispatchState.FAILED))
    assert [message.type for message in mail(found)] == [MailType.REPORT]


def test_many_blocked_tasks_are_one_message():
    found = news(*[TaskMoved(task=f"t{number}", to=TaskState.BLOCKED, blocked_by=("t0",)) for number in range(30)])
    [message] = mail(found)
    assert "and 10 more" in message.body


def test_two_messages_of_one_record_have_two_ids():
    found = news(WorkReported(dispatch=DISPATCH, task="t1", report=REPORT, by=WORKER), RunPaused(reason="three failures", circuit=True))
    assert [message.id for message in mail(found)] == ["7", "7.1"]


def test_a_dispatch_opens_its_mailbox_joins_the_groups_and_leaves_both_when_it_is_settled():
    requested = DispatchRequested(dispatch=DISPATCH, task="t1", fence=1, launch=LAUNCH, by=COORDINATOR, brief="")
    assert news(requested) == {
        "dispatch:r1.t1.1": (Open(run="r1", task="t1", agent="codex", host="h"),),
        "run:r1": (Join(dispatch=DISPATCH, agent="codex"),),
    }
    assert news(moved(DispatchState.RUNNING, pane="p9")) == {"dispatch:r1.t1.1": (Place(host=None, pane="p9"),)}
    assert news(moved(DispatchState.SUPERSEDED)) == {
        "dispatch:r1.t1.1": (Close(why="the Dispatch is superseded", by=A_PERSON),),
        "run:r1": (Leave(dispatch=DISPATCH),),
    }


def test_a_binding_binds_and_the_end_of_a_run_closes_its_mailbox():
    assert news(CoordinatorBound(generation=3, caller=COORDINATOR)) == {"run:r1": (Bind(run="r1", generation=3, reader=COORDINATOR),)}
    assert news(RunClosed()) == {"run:r1": (Close(why="the Run is closed", by=A_PERSON),)}


def settled(box: Mailbox, *posts: Posts) -> Mailbox:
    return after(box, take(box, posts, NOW_MS))


def test_a_mailbox_that_was_shut_is_not_opened_by_what_comes_late():
    opened = Open(run="r1", task="t1", agent="codex", host="h")
    box = settled(blank("dispatch:r1.t1.1"), Close(why="over", by=A_PERSON))
    assert not settled(box, opened, Place(host=None, pane="p9")).is_open


def test_everything_of_a_record_may_come_again_and_changes_nothing_then():
    posts = (
        Bind(run="r1", generation=1, reader=COORDINATOR), Join(dispatch=DISPATCH, agent="codex"), Tell(message=mail(news(MAIL[0][0]))[0]),
        Leave(dispatch=DISPATCH),
    )  # fmt: skip
    box = settled(blank("run:r1"), *posts[:3])
    assert take(box, posts[:3], NOW_MS).events == ()
    assert a_run_box().reader == box.reader
