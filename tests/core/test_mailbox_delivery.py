"""Handing mail over: one fixed batch at a time, the same until its ack; who may take it; what may be sent and answered."""

import pytest

from builders import NOW_MS
from mailbox_builders import COORDINATOR, SHELL, SUCCESSOR, WORKER, a_message, a_run_box, a_worker_box, after, with_mail
from tocsin.contract.decision import Decision
from tocsin.contract.mail import AskQuestion, CheckMail, MailType, ReadMail
from tocsin.contract.messages import State
from tocsin.contract.parties import Caller, Role
from tocsin.contract.refusals import Code, Refusal
from tocsin.mailbox.core import delivery, post
from tocsin.mailbox.core.delivery import LEASE_MS, ack, batch_last, beyond, check, lapse, shown
from tocsin.mailbox.core.follow_up import Bind, Close, Join, Leave, Open, Tell, take
from tocsin.mailbox.core.mailbox import READ_KEPT_MAX, Mailbox, blank
from tocsin.mailbox.core.pages import page
from tocsin.mailbox.core.reader import refuse_looker, refuse_reader

PLAIN = CheckMail()


def taken(box: Mailbox, at_ms: int = NOW_MS) -> tuple[Mailbox, str]:
    """The mailbox with its next Delivery handed out, and that Delivery's id."""
    step = check(box, PLAIN, at_ms)
    assert isinstance(step, Decision)
    return after(box, step, at_ms), step.result["delivery"]


def texts(box: Mailbox, delivery_id: str) -> list[str]:
    return [message.id for message in shown(box, delivery_id)["messages"]]


def code_of(answer: object) -> Code:
    assert isinstance(answer, Refusal), answer
    return answer.code


# -------------------------------------------------------------- Deliveries


def test_a_check_hands_out_the_oldest_messages_in_their_order():
    box, id_ = taken(with_mail(a_run_box(), *[a_message(f"m{number}") for number in range(60)]))
    assert texts(box, id_) == [f"m{number}" for number in range(50)]


def test_a_second_check_repeats_the_same_delivery_with_the_same_rows_and_says_so():
    box, first = taken(with_mail(a_run_box(), a_message("m1")))
    box = with_mail(box, a_message("m2"))
    again = check(box, PLAIN, NOW_MS + LEASE_MS - 1)
    assert isinstance(again, Decision)
    assert (again.events, again.result["delivery"], again.result["repeat"]) == ((), first, True)
    assert texts(box, first) == ["m1"]


def test_a_delivery_hides_nothing_newer_it_says_how_many_wait_beyond_it_and_names_the_actionable_ones():
    box, id_ = taken(with_mail(a_run_box(), a_message("m1", MailType.STATUS)))
    box = with_mail(box, a_message("m2", MailType.STATUS), a_message("m3", MailType.QUESTION))
    ahead = shown(box, id_)["beyond"]
    assert ahead["count"] == 2
    assert [head["id"] for head in ahead["actionable"]] == ["m3"]


def test_after_its_ack_the_next_batch_follows_and_nothing_comes_twice():
    box, first = taken(with_mail(a_run_box(), *[a_message(f"m{number}") for number in range(55)]))
    box = after(box, ack(box, first))
    box, second = taken(box)
    assert texts(box, second) == [f"m{number}" for number in range(50, 55)]
    box = after(box, ack(box, second))
    assert check(box, PLAIN, NOW_MS) == Decision((), {"delivery": None})


def test_an_ack_and_the_next_check_can_be_one_request():
    box, first = taken(with_mail(a_run_box(), a_message("m1")))
    box = with_mail(box, a_message("m2"))
    step = check(box, CheckMail(ack=first), NOW_MS)
    box = after(box, step)
    assert isinstance(step, Decision)
    assert texts(box, step.result["delivery"]) == ["m2"]


def test_a_second_ack_is_a_success_marked_duplicate():
    box, id_ = taken(with_mail(a_run_box(), a_message("m1")))
    box = after(box, ack(box, id_))
    again = ack(box, id_)
    assert isinstance(again, Decision)
    assert again.duplicate
    assert again.events == ()


def test_an_ack_of_another_delivery_is_stale_and_names_the_one_that_is_outstanding():
    box, id_ = taken(with_mail(a_run_box(), a_message("m1")))
    refused = ack(box, "run:r2.d1")
    assert code_of(refused) is Code.STALE_DELIVERY
    assert id_ in refused.message


def test_an_ack_without_an_id_is_refused_and_names_the_one_that_is_outstanding():
    box, id_ = taken(with_mail(a_run_box(), a_message("m1")))
    refused = ack(box, "")
    assert code_of(refused) is Code.BAD_REQUEST
    assert id_ in refused.message


def test_when_its_lease_has_run_out_the_batch_is_free_and_newer_mail_comes_with_it():
    box, first = taken(with_mail(a_run_box(), a_message("m1")))
    box = with_mail(box, a_message("m2"))
    assert lapse(box, NOW_MS + LEASE_MS - 1).events == ()
    box = after(box, lapse(box, NOW_MS + LEASE_MS))
    box, second = taken(box, NOW_MS + LEASE_MS)
    assert second != first
    assert texts(box, second) == ["m1", "m2"]


def test_a_check_behind_the_lease_hands_out_a_new_delivery_by_itself():
    box, first = taken(with_mail(a_run_box(), a_message("m1")))
    box = with_mail(box, a_message("m2"))
    box, second = taken(box, NOW_MS + LEASE_MS)
    assert second != first
    assert texts(box, second) == ["m1", "m2"]


def test_an_ack_behind_the_lease_counts_while_the_batch_is_free_and_is_stale_once_it_was_handed_out_again():
    box, first = taken(with_mail(a_run_box(), a_message("m1")))
    box = after(box, lapse(box, NOW_MS + LEASE_MS))
    assert code_of(ack(box, "run:r1.d9")) is Code.STALE_DELIVERY
    late = ack(box, first)
    assert isinstance(late, Decision)
    assert late.result["late"]
    box, _ = taken(box, NOW_MS + LEASE_MS)
    assert code_of(ack(box, first)) is Code.STALE_DELIVERY


def test_a_batch_holds_no_more_text_than_fits_into_an_answer_and_a_huge_message_goes_alone():
    half = "x" * (delivery.DELIVERY_BYTES_MAX // 2)
    box = with_mail(a_run_box(), a_message("m1", body=half * 4), a_message("m2", body=half), a_message("m3", body=half))
    box, id_ = taken(box)
    assert texts(box, id_) == ["m1"]
    box = after(box, ack(box, id_))
    assert batch_last(box) == 2


def test_unread_mail_is_never_trimmed_and_read_mail_is_kept_within_bounds():
    box = with_mail(a_run_box(), *[a_message(f"m{number}") for number in range(500)])
    assert box.unread_count == 500
    for _ in range(10):
        box, id_ = taken(box)
        box = after(box, ack(box, id_))
    assert box.unread_count == len(box.unread) == 0
    assert len(box.read) == READ_KEPT_MAX
    assert len(box.known) == READ_KEPT_MAX


def test_a_message_that_comes_again_is_the_same_message():
    box = with_mail(a_run_box(), a_message("m1"), a_message("m1"))
    assert box.unread_count == 1


def test_a_look_takes_nothing_and_pages_say_that_they_are_pages():
    box = with_mail(a_run_box(), *[a_message(f"m{number}") for number in range(5)])
    first = page(box, ReadMail(limit=3))
    assert [row["message"].id for row in first["rows"]] == ["m4", "m3", "m2"]
    second = page(box, ReadMail(limit=3, before=first["next"]))
    assert [row["message"].id for row in second["rows"]] == ["m1", "m0"]
    assert second["next"] is None
    assert beyond(box, None)["count"] == 5


def test_a_look_tells_what_is_handed_out_until_when_and_to_whom():
    box, id_ = taken(with_mail(a_run_box(), a_message("m1"), a_message("m2")))
    box = with_mail(box, a_message("m3"))
    told = page(box, ReadMail())
    assert told["delivery"] == {"id": id_, "messages": ["m1", "m2"], "lease_until_ms": NOW_MS + LEASE_MS}
    assert (told["reader"], told["waits_until_ms"], told["shut"]) == (COORDINATOR.name, None, None)
    assert page(after(box, ack(box, id_)), ReadMail())["delivery"] is None


def test_a_look_into_a_run_tells_the_open_questions_of_all_its_workers_the_oldest_first():
    def asking(dispatch: str, at_ms: int) -> Mailbox:
        step = post.ask(a_worker_box(dispatch), f"{dispatch}.q1", AskQuestion(question=f"{dispatch}?"))
        return after(a_worker_box(dispatch), step, at_ms)

    later, earlier = asking("r1.t2.1", NOW_MS + 5), asking("r1.t1.1", NOW_MS)
    told = page(a_run_box(), ReadMail(), [later, a_worker_box("r1.t3.1"), earlier])
    assert [(question["dispatch"], question["text"]) for question in told["questions"]] == [
        ("r1.t1.1", "r1.t1.1?"),
        ("r1.t2.1", "r1.t2.1?"),
    ]
    assert [question["id"] for question in page(later, ReadMail())["questions"]] == ["r1.t2.1.q1"]


# ----------------------------------------------------------- who takes it


def test_a_rebind_fences_the_old_reader_voids_its_delivery_and_leaves_a_trace():
    box, id_ = taken(with_mail(a_run_box(), a_message("m1")))
    step = take(box, (Bind(run="r1", generation=2, reader=SUCCESSOR),), NOW_MS)
    [fenced] = step.events
    assert (fenced.generation, fenced.reader, fenced.before) == (2, SUCCESSOR, COORDINATOR)
    box = after(box, step)
    assert code_of(refuse_reader(box, COORDINATOR, 1)) is Code.CONSUMER_FENCED
    assert code_of(refuse_reader(box, COORDINATOR, None)) is Code.CONSUMER_FENCED
    assert refuse_reader(box, SUCCESSOR, None) is None
    assert code_of(ack(box, id_)) is Code.STALE_DELIVERY
    box, second = taken(box)
    assert texts(box, second) == ["m1"]


def test_an_older_binding_that_comes_late_changes_nothing():
    box = after(a_run_box(), take(a_run_box(), (Bind(run="r1", generation=3, reader=SUCCESSOR),), NOW_MS))
    assert take(box, (Bind(run="r1", generation=2, reader=COORDINATOR),), NOW_MS).events == ()


def test_a_coordinator_in_a_pane_is_known_by_its_pane_and_one_in_a_shell_by_its_name():
    assert refuse_reader(a_run_box(), Caller(role=Role.COORDINATOR, name="other", host="h", pane="p1"), None) is None
    assert code_of(refuse_reader(a_run_box(), SHELL, None)) is Code.CONSUMER_FENCED
    assert refuse_reader(a_run_box(SHELL), SHELL, None) is None


def test_the_mail_of_a_dispatch_is_taken_by_its_vouched_worker_alone():
    box = a_worker_box()
    assert refuse_reader(box, WORKER, None) is None
    assert code_of(refuse_reader(box, COORDINATOR, None)) is Code.SENDER_NOT_ASSIGNEE
    unvouched = Caller(role=Role.WORKER, name="worker", dispatch="r1.t1.1")
    assert code_of(refuse_reader(box, unvouched, None)) is Code.SENDER_NOT_ASSIGNEE


def test_a_worker_of_another_run_learns_no_more_than_that_there_is_nothing():
    stranger = Caller(role=Role.WORKER, name="worker", dispatch="r2.t1.1", vouched=True)
    absent = refuse_reader(blank("dispatch:r1.t9.1"), stranger, None)
    assert refuse_reader(a_worker_box(), stranger, None) == absent
    assert refuse_looker(a_worker_box(), stranger) == refuse_looker(blank("dispatch:r1.t9.1"), stranger)
    assert code_of(post.refuse_sender(a_worker_box(), stranger, None, None)) is Code.NOT_FOUND


def test_whoever_has_the_command_credential_may_look_and_not_take():
    assert refuse_looker(a_run_box(), SHELL) is None
    assert code_of(refuse_reader(a_run_box(), SHELL, None)) is Code.CONSUMER_FENCED


# ------------------------------------------------------------- what is sent


def test_a_send_succeeds_only_when_somebody_durable_reads_the_address():
    assert code_of(post.refuse_sender(blank("dispatch:r1.t1.1"), COORDINATOR, None, None)) is Code.NO_READER
    box = a_worker_box()
    assert post.refuse_sender(box, COORDINATOR, a_run_box(), None) is None
    box = after(box, take(box, (Close(why="the Dispatch is stopped", by=COORDINATOR),), NOW_MS))
    refused = post.refuse_sender(box, COORDINATOR, a_run_box(), None)
    assert code_of(refused) is Code.NO_READER
    assert "stopped" in refused.message


def test_a_mailbox_has_a_reader_before_its_worker_has_a_terminal():
    box = blank("dispatch:r1.t1.1")
    box = after(box, take(box, (Open(run="r1", task="t1", agent="codex", host="h"),), NOW_MS))
    assert post.refuse_sender(box, COORDINATOR, a_run_box(), None) is None


def test_a_replaced_coordinator_is_fenced_when_it_sends():
    run = after(a_run_box(), take(a_run_box(), (Bind(run="r1", generation=2, reader=SUCCESSOR),), NOW_MS))
    assert code_of(post.refuse_sender(a_worker_box(), COORDINATOR, run, None)) is Code.CONSUMER_FENCED
    assert code_of(post.refuse_sender(a_worker_box(), COORDINATOR, run, 1)) is Code.CONSUMER_FENCED
    assert post.refuse_sender(a_worker_box(), SUCCESSOR, run, 2) is None


@pytest.mark.parametrize("type_", [MailType.REPORT, MailType.QUESTION, MailType.ANSWER, MailType.GATE, MailType.REJECTION])
def test_what_tells_of_something_that_happened_cannot_be_sent_as_mail(type_):
    assert code_of(post.refuse_message(a_message(type_=type_))) is Code.BAD_REQUEST


def test_a_message_over_a_mebibyte_is_too_large():
    assert code_of(post.refuse_message(a_message(type_=MailType.GUIDANCE, body="x" * (post.BODY_BYTES_MAX + 1)))) is Code.TOO_LARGE


def test_a_full_mailbox_refuses_senders_and_drops_nothing_and_takes_what_its_run_tells(monkeypatch):
    monkeypatch.setattr(post, "UNREAD_MAX", 3)
    box = with_mail(a_run_box(), *[a_message(f"m{number}") for number in range(3)])
    assert code_of(post.send(box, a_message("m9", MailType.STATUS))) is Code.MAILBOX_FULL
    box = after(box, take(box, (Tell(message=a_message("m10")),), NOW_MS))
    assert box.unread_count == 4


# ---------------------------------------------------------------- questions


def asked(box: Mailbox, id_: str = "r1.t1.1.qabc") -> Mailbox:
    return after(box, post.ask(box, id_, AskQuestion(question="left or right?", options=("left", "right"))))


def test_a_plain_send_to_a_worker_that_waits_for_an_answer_is_refused_with_its_questions_id():
    refused = post.send(asked(a_worker_box()), a_message("m1", MailType.GUIDANCE))
    assert code_of(refused) is Code.ASKER_WAITS
    assert "r1.t1.1.qabc" in refused.message


def test_a_question_is_answered_once_in_the_askers_mailbox_and_closes_with_it():
    box = asked(a_worker_box())
    box = after(box, post.reply(box, "r1.t1.1.qabc", "left", "run:r1", COORDINATOR, NOW_MS))
    [answer] = box.numbered(1, 1)
    assert (answer.type, answer.body, answer.thread) == (MailType.ANSWER, "left", "r1.t1.1.qabc")
    assert code_of(post.reply(box, "r1.t1.1.qabc", "right", "run:r1", COORDINATOR, NOW_MS)) is Code.ALREADY_DECIDED
    assert isinstance(post.send(box, a_message("m1", MailType.GUIDANCE)), Decision)


def test_a_settled_dispatch_closes_its_open_questions():
    box = asked(a_worker_box())
    box = after(box, take(box, (Close(why="the Dispatch is succeeded", by=COORDINATOR),), NOW_MS))
    assert box.open_questions() == []
    refused = post.reply(box, "r1.t1.1.qabc", "left", "run:r1", COORDINATOR, NOW_MS)
    assert code_of(refused) is Code.ALREADY_DECIDED
    assert "gone" in refused.message


def test_the_same_question_asked_again_is_one_question():
    box = asked(a_worker_box())
    assert post.ask(box, "r1.t1.1.qabc", AskQuestion(question="left or right?")).duplicate


# ------------------------------------------------------------------- groups


def group(box: Mailbox, name: str, but: str | None = None) -> object:
    states = {"r1.t1.1": State.DONE, "r1.t2.1": State.WORKING, "r1.t3.1": None}
    return post.members_of(box, name, states, but)


@pytest.mark.parametrize(
    ("name", "but", "reached"),
    [
        ("@all", None, ("r1.t1.1", "r1.t2.1", "r1.t3.1")),
        ("@all", "r1.t2.1", ("r1.t1.1", "r1.t3.1")),
        ("@idle", None, ("r1.t1.1",)),
        ("@codex", None, ("r1.t1.1", "r1.t3.1")),
    ],
)
def test_a_group_reaches_live_dispatches_of_its_own_run_only(name, but, reached):
    box = a_run_box()
    joins = tuple(Join(dispatch=dispatch, agent=agent) for dispatch, agent in
                  [("r1.t1.1", "codex"), ("r1.t2.1", "claude"), ("r1.t3.1", "codex"), ("r1.t4.1", "codex")])  # fmt: skip
    box = after(box, take(box, (*joins, Leave(dispatch="r1.t4.1")), NOW_MS))
    assert group(box, name, but) == reached


def test_a_group_that_reaches_nobody_is_refused():
    assert code_of(group(a_run_box(), "@all")) is Code.NO_READER


# -------------------------------------------------------------- parked checks


def test_a_newer_wait_of_the_same_caller_takes_the_older_ones_place_and_another_callers_is_refused():
    box = after(a_run_box(), delivery.park(a_run_box(), "q1", (), "me", NOW_MS + 50_000, NOW_MS))
    assert code_of(delivery.park(box, "q2", (), "other", NOW_MS + 50_000, NOW_MS)) is Code.WAITER_EXISTS
    box = after(box, delivery.park(box, "q2", (), "me", NOW_MS + 50_000, NOW_MS))
    assert box.wait.id == "q2"
    assert isinstance(delivery.park(box, "q3", (), "other", NOW_MS + 99_000, NOW_MS + 50_000), Decision)


def test_types_decide_what_ends_a_wait_and_never_what_a_delivery_holds():
    box = with_mail(a_run_box(), a_message("m1", MailType.STATUS))
    assert not delivery.ends_wait(box, (MailType.QUESTION,))
    box = with_mail(box, a_message("m2", MailType.QUESTION))
    assert delivery.ends_wait(box, (MailType.QUESTION,))
    box, id_ = taken(box)
    assert texts(box, id_) == ["m1", "m2"]
