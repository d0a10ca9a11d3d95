"""Reported cases of mail and wakes, under their ids; what each is about stands in tests/data/cases.jsonl."""

import pytest

from builders import NOW_MS
from mailbox_builders import WORKER, Desk, a_message, a_run_box, after, at_rest, at_work, with_mail
from tocsin.contract.decision import Decision
from tocsin.contract.hosting import Saw
from tocsin.contract.mail import AckMail, CheckMail, MailType, Message, Rung, WakeState
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.run import (
    Beaten,
    DispatchMoved,
    DispatchState,
    Outcome,
    Receipt,
    Report,
    ReportRefused,
    RunEvent,
    RunRecorded,
    TaskMoved,
    TaskState,
    WorkReady,
    WorkReported,
)
from tocsin.mailbox.core.delivery import ack, check, shown
from tocsin.mailbox.core.follow_up import take
from tocsin.mailbox.core.ladder import IDLE_HOOK_MS
from tocsin.mailbox.core.news import news_of

MINUTE = 60_000


def hear(desk: Desk, seq: int, *events: RunEvent) -> None:
    """What is recorded of the Run reaches its mailbox."""
    recorded = RunRecorded(
        run="r1", request="", caller=WORKER, payload_hash="", events=events, receipt=Receipt(request=""), at_ms=desk.now_ms
    )
    desk.box = after(desk.box, take(desk.box, news_of(recorded, str(seq)).get("run:r1", ()), desk.now_ms), desk.now_ms)
    desk.look()


def unread(desk: Desk) -> list[Message]:
    """What is not acked, oldest first."""
    return desk.box.numbered(desk.box.first, desk.box.end)


def a_report(task: str) -> WorkReported:
    report = Report(outcome=Outcome.SUCCEEDED, body="done")
    return WorkReported(dispatch=f"r1.{task}.1", task=task, report=report, by=WORKER)


def a_whole_turn(desk: Desk, turn: int) -> None:
    """The turn that a wake has started runs and ends without a look at the mail."""
    assert desk.claim() or desk.box.wake.rung is not Rung.NATIVE
    desk.pane(at_work(turn, started_ms=desk.now_ms, agent="claude"))
    desk.pane(at_rest(turn, ended_ms=desk.now_ms, agent="claude"))


def test_e01_heartbeats_of_five_workers_over_an_hour_wake_nobody_a_rejected_one_and_a_report_do():
    desk = Desk(a_run_box(), at_rest(agent="claude"))
    seq, turn = 0, 1
    for at_ms in range(0, 60 * MINUTE, 5 * MINUTE):
        desk.now_ms = NOW_MS + at_ms
        for worker in range(1, 6):
            seq += 1
            hear(desk, seq, Beaten(dispatch=f"r1.t{worker}.1", phase="", at_ms=desk.now_ms))
        if at_ms == 20 * MINUTE:
            refused = ReportRefused(dispatch="r1.t2.1", task="t2", code="sender_not_assignee", why="another pane", by=WORKER, what="beat")
            hear(desk, seq := seq + 1, refused)
            a_whole_turn(desk, turn := turn + 1)
        if at_ms == 45 * MINUTE:
            hear(desk, seq := seq + 1, a_report("t3"))
            a_whole_turn(desk, turn := turn + 1)
    assert len(desk.wakes) == 2
    step = check(desk.box, CheckMail(), desk.now_ms)
    assert isinstance(step, Decision)
    messages = shown(after(desk.box, step), step.result["delivery"])["messages"]
    assert [message.type for message in messages] == [MailType.REJECTION, MailType.REPORT]


def test_e02_a_half_written_sentence_is_left_alone_and_the_wake_comes_when_its_writer_has_sent_it():
    desk = Desk(a_run_box(), at_rest(ended_ms=NOW_MS - 1_000, agent="claude", last_key_ms=NOW_MS + 2_800))
    desk.now_ms = NOW_MS + 3_000
    desk.tell(a_message("m1"))
    desk.pass_ms(500)
    desk.tell(a_message("m2", MailType.QUESTION))
    while desk.now_ms < NOW_MS + 60_000:
        desk.pass_ms(1_000)
        if desk.box.wake.rung is Rung.TYPED and desk.state is WakeState.OFFERED:
            # The hands look into the composer before they write a byte.
            desk.hands(Saw.TYPE_HELD, code="composer_busy", detail="a human draft")
    assert desk.state is WakeState.HELD
    assert "human draft" in desk.box.wake.proof
    assert Rung.NATIVE not in desk.rungs
    desk.now_ms = NOW_MS + 61_100
    desk.pane(at_work(2, started_ms=desk.now_ms, agent="claude", last_key_ms=NOW_MS + 61_000))
    desk.now_ms = NOW_MS + 100_000
    assert desk.hook()
    assert (len(desk.wakes), desk.fired[-1].rung, desk.fired[-1].messages) == (1, Rung.IDLE_HOOK, ("m1", "m2"))
    assert desk.box.unread_count == 2


def test_e04_mail_that_comes_between_the_answer_of_an_idle_hook_and_the_idle_state_wakes_once():
    desk = Desk(a_run_box(), at_work(1, started_ms=NOW_MS - MINUTE, agent="claude"))
    assert not desk.hook()
    desk.now_ms += 5
    desk.tell(a_message("m1"))
    assert desk.fired == []
    desk.pane(at_rest(1, ended_ms=NOW_MS, agent="claude"))
    desk.pass_ms(IDLE_HOOK_MS)
    assert len(desk.wakes) == 1


def test_e04_a_truly_idle_session_is_woken_by_another_channel_and_one_without_any_is_listed_as_undeliverable():
    desk = Desk(a_run_box(), at_rest(agent="claude"))
    desk.now_ms += 10 * MINUTE
    desk.tell(a_message("m2"))
    desk.pass_ms(MINUTE)
    assert Rung.IDLE_HOOK not in desk.rungs
    assert len(desk.wakes) == 1
    other = Desk(a_run_box(), None)
    other.tell(a_message("m3"))
    other.pass_ms(MINUTE)
    assert other.state is WakeState.UNDELIVERABLE
    assert other.box.wake.proof


def test_e06_a_repeat_looks_like_a_repeat_hides_nothing_and_an_ack_says_what_it_did():
    desk = Desk(a_run_box(), at_work(agent="claude"))
    desk.tell(a_message("m1", MailType.STATUS))
    first = desk.check()
    desk.pane(at_rest(2, ended_ms=desk.now_ms - MINUTE, agent="claude"))
    desk.tell(a_message("m2", MailType.QUESTION))
    assert len(desk.wakes) == 1
    desk.tell(a_message("m3"))
    again = check(desk.box, CheckMail(), desk.now_ms)
    assert isinstance(again, Decision)
    assert again.result == {"delivery": first.id, "repeat": True}
    beyond = shown(desk.box, first.id)["beyond"]
    assert (beyond["count"], [head["id"] for head in beyond["actionable"]]) == (2, ["m2", "m3"])
    nameless = ack(desk.box, AckMail(delivery="").delivery)
    assert isinstance(nameless, Refusal)
    assert nameless.code is Code.BAD_REQUEST
    assert first.id in nameless.message
    desk.ack()
    second = desk.check()
    assert [message.id for message in desk.box.numbered(second.first, second.last)] == ["m2", "m3"]
    repeated = ack(desk.box, first.id)
    assert isinstance(repeated, Decision)
    assert (repeated.duplicate, repeated.events) == (True, ())


@pytest.mark.parametrize("to", [DispatchState.START_UNKNOWN, DispatchState.CONTACT_LOST])
def test_f04_f06_an_attempt_that_is_not_known_to_have_begun_is_told_once(to):
    desk = Desk(a_run_box(), at_rest(agent="claude"))
    unknown = DispatchMoved(dispatch="r1.t1.1", task="t1", fence=1, saw="turn_not_seen", to=to, why="no turn was seen")
    hear(desk, 1, unknown)
    hear(desk, 1, unknown)
    assert [(message.type, message.dispatch) for message in unread(desk)] == [(MailType.ESCALATION, "r1.t1.1")]
    assert len(desk.wakes) == 1


def test_g01_what_one_failure_blocks_is_told_in_one_message():
    desk = Desk(a_run_box(), at_rest(agent="claude"))
    hear(
        desk,
        1,
        TaskMoved(task="T2", to=TaskState.BLOCKED, why="dependency T1 failed"),
        TaskMoved(task="T3", to=TaskState.BLOCKED, why="dependency T1 failed (through T2)"),
    )
    (message,) = unread(desk)
    assert message.body.splitlines()[:2] == ["T2: dependency T1 failed", "T3: dependency T1 failed (through T2)"]
    assert len(desk.wakes) == 1


def test_g06_ready_work_wakes_an_idle_coordinator_once_for_each_set_and_a_working_one_not_at_all():
    desk = Desk(a_run_box(), at_work(1, agent="claude"))
    hear(desk, 1, WorkReady(tasks=("T1",)))
    desk.pass_ms(10 * MINUTE)
    assert desk.fired == [], "it works"
    desk.pane(at_rest(1, ended_ms=desk.now_ms, agent="claude"))
    desk.pass_ms(IDLE_HOOK_MS)
    assert len(desk.wakes) == 1
    a_whole_turn(desk, 2)
    desk.pass_ms(60 * MINUTE)
    assert len(desk.wakes) == 1, "not repeated for the same set"
    hear(desk, 2, WorkReady(tasks=("T1", "T5")))
    assert len(desk.wakes) == 2
    assert unread(desk)[-1].body.splitlines()[:1] == ["T1, T5"]


def test_i08_five_hundred_unread_messages_of_a_reader_that_is_away_are_all_there():
    box = with_mail(a_run_box(), *[a_message(f"m{number}") for number in range(500)])
    assert [box.at(number).id for number in range(box.first, box.end)] == [f"m{number}" for number in range(500)]


@pytest.mark.parametrize("count", [1, 400])
def test_i08_what_was_read_is_kept_within_a_bound(count):
    box = with_mail(a_run_box(), *[a_message(f"m{number}") for number in range(count)])
    while box.unread_count:
        box = after(box, check(box, CheckMail(), NOW_MS))
        box = after(box, ack(box, box.delivery.id))
    assert len(box.read) == min(count, 200)
