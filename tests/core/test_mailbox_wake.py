"""The wake policy, row by row, and the ladder. A wake is a turn of a mailbox's reader that we cause."""

from dataclasses import replace

import pytest
from msgspec import structs

from builders import NOW_MS
from mailbox_builders import COORDINATOR, SUCCESSOR, Desk, a_message, a_run_box, a_worker_box, after, at_rest, at_work
from tocsin.agents.agent import WakeWay
from tocsin.agents.registry import AGENTS
from tocsin.contract.hosting import HostFact, Saw
from tocsin.contract.ids import HostId
from tocsin.contract.mail import CheckMail, MailType, Rung, WakeState
from tocsin.contract.messages import Ask, Evidence, PaneStatus, PromptSeen, State
from tocsin.contract.run import Beaten, RunRecorded
from tocsin.mailbox.core import delivery, wake
from tocsin.mailbox.core.follow_up import Bind, Close, Join, take
from tocsin.mailbox.core.ladder import DRAFT_QUIET_MS, IDLE_HOOK_MS, Reader, next_rung
from tocsin.mailbox.core.mailbox import WAKES_PER_HOUR_MAX, blank
from tocsin.mailbox.core.news import news_of
from tocsin.mailbox.core.wake import HOUR_MS, LIFE, NOTICE_MS, TAKE_MS_MAX, TURN_MS_MAX, TYPE_AGAIN_MS, TYPE_MS_MAX, pointer

SECOND = 1_000
MINUTE = 60_000


def an_idle_claude(**fields) -> Desk:
    return Desk(a_run_box(), at_rest(agent="claude", **fields))


def its_turn_starts(desk: Desk, turn: int = 2) -> None:
    desk.pane(at_work(turn, started_ms=desk.now_ms, agent=desk.status.agent))


def its_turn_ends(desk: Desk, turn: int = 2) -> None:
    desk.pane(at_rest(turn, ended_ms=desk.now_ms, agent=desk.status.agent))


def replace_turn(status: PaneStatus, **fields) -> PaneStatus:
    return structs.replace(status, turns=(structs.replace(status.turns[-1], **fields),))


# ------------------------------------------------------------------ the table


def test_row_1_heartbeats_wake_nobody():
    beats = RunRecorded(
        run="r1", request="q", caller=COORDINATOR, payload_hash="", receipt=None, at_ms=NOW_MS,
        events=tuple(Beaten(dispatch="r1.t1.1", phase="", at_ms=NOW_MS) for _ in range(50)),
    )  # fmt: skip
    assert news_of(beats, "7") == {}


def test_row_2_one_question_and_a_page_of_status_is_one_wake():
    desk = an_idle_claude()
    desk.tell(*[a_message(f"s{number}", MailType.STATUS) for number in range(50)])
    assert desk.wakes == []
    desk.tell(a_message("m1", MailType.QUESTION))
    assert len(desk.wakes) == 1
    assert desk.box.wake.cause is MailType.QUESTION
    assert desk.box.wake.messages == ("m1",)


def test_row_3_any_number_of_actionable_messages_before_they_are_read_is_one_wake():
    desk = an_idle_claude()
    desk.tell(a_message("m1"))
    desk.tell(a_message("m2"))
    desk.claim()
    its_turn_starts(desk)
    desk.tell(*[a_message(f"m{number}") for number in range(3, 9)])
    its_turn_ends(desk)
    assert not desk.hook()
    desk.pass_ms(10 * MINUTE)
    assert len(desk.wakes) == 1
    assert desk.state is WakeState.DELIVERED


def test_row_3_what_comes_after_the_read_or_after_that_turn_is_news_again():
    desk = an_idle_claude()
    desk.tell(a_message("m1"))
    desk.claim()
    its_turn_starts(desk)
    desk.check()
    desk.tell(a_message("m2"))
    assert desk.hook(goes_on=False)
    assert desk.wakes == ["run:r1.w1", "run:r1.w2"]


@pytest.mark.parametrize("way", ["check", "inbox"])
def test_row_4_after_the_mail_was_read_by_any_path_the_pending_wake_is_withdrawn(way):
    desk = Desk(a_run_box(), at_work(agent="claude"))
    desk.tell(a_message("m1"))
    assert desk.state is WakeState.HELD
    if way == "check":
        desk.check()
    else:
        desk.box = after(desk.box, delivery.look(desk.box), desk.now_ms)
        desk.look()
    assert desk.state is WakeState.WITHDRAWN
    its_turn_ends(desk)
    assert not desk.hook()
    assert desk.fired == []


def test_row_5_the_same_unread_content_is_never_a_second_wake_after_any_restart_on_any_replica():
    desk = an_idle_claude()
    desk.tell(a_message("m1"))
    desk.claim()
    its_turn_starts(desk)
    its_turn_ends(desk)
    again = Desk(desk.box, desk.status)  # all that another replica, or a later life, has
    again.now_ms = desk.now_ms
    again.look()
    again.pass_ms(HOUR_MS)
    assert not again.hook()
    assert again.fired == []


def test_row_5_a_new_coordinator_has_been_told_of_nothing():
    desk = an_idle_claude()
    desk.tell(a_message("m1"))
    desk.claim()
    its_turn_starts(desk)
    desk.box = after(desk.box, take(desk.box, (Bind(run="r1", generation=2, reader=SUCCESSOR),), desk.now_ms))
    its_turn_ends(desk)
    desk.pass_ms(IDLE_HOOK_MS)
    assert len(desk.wakes) == 2


def test_row_6_a_missing_report_is_one_wake_per_attempt():
    desk = an_idle_claude()
    desk.tell(a_message("7", MailType.MISSING))
    desk.tell(a_message("7", MailType.MISSING))
    desk.claim()
    its_turn_starts(desk)
    its_turn_ends(desk)
    desk.tell(a_message("7", MailType.MISSING))
    assert len(desk.wakes) == 1


def test_row_7_ready_work_is_one_wake_per_set_when_the_coordinator_rests():
    desk = Desk(a_run_box(), at_work(agent="claude"))
    desk.tell(a_message("7", MailType.READY))
    assert desk.state is WakeState.HELD
    its_turn_ends(desk)
    desk.pass_ms(IDLE_HOOK_MS)
    assert len(desk.wakes) == 1


def test_row_7_ready_work_that_was_started_meanwhile_wakes_nobody():
    desk = Desk(a_run_box(), at_work(agent="claude"))
    desk.tell(a_message("7", MailType.READY))
    desk.box = after(desk.box, take(desk.box, (Join(dispatch="r1.t1.1", agent="codex"),), NOW_MS))
    desk.look()
    assert desk.state is WakeState.WITHDRAWN
    its_turn_ends(desk)
    assert desk.fired == []
    assert desk.box.unread_count == 1


def test_row_7_a_coordinator_that_waits_for_mail_is_answered_and_not_woken():
    desk = an_idle_claude()
    desk.box = after(desk.box, delivery.park(desk.box, "q1", (), "me", NOW_MS + 50_000, NOW_MS))
    desk.tell(a_message("7", MailType.READY))
    assert desk.box.wake is None
    desk.box = after(desk.box, delivery.check(desk.box, CheckMail(), NOW_MS, "q1"))
    desk.look()
    assert (desk.box.wake, desk.box.wait) == (None, None)


def test_row_7_a_wait_whose_caller_has_died_is_believed_until_its_time_and_no_longer():
    desk = an_idle_claude()
    desk.box = after(desk.box, delivery.park(desk.box, "q1", (), "me", NOW_MS + 50_000, NOW_MS))
    desk.tell(a_message("m1"))
    assert desk.fired == []
    desk.pass_ms(50_000)
    assert len(desk.wakes) == 1


def run_many_wakes(desk: Desk, count: int) -> None:
    """Each message is told, its turn runs and the mail is dealt with."""
    for number in range(count):
        desk.tell(a_message(f"m{number}"))
        desk.claim()
        its_turn_starts(desk, number + 2)
        desk.check()
        desk.ack()
        its_turn_ends(desk, number + 2)
        desk.pass_ms(SECOND)


def test_row_8_beyond_the_cap_of_an_hour_wakes_coalesce_and_the_person_is_told_once():
    desk = an_idle_claude()
    run_many_wakes(desk, WAKES_PER_HOUR_MAX)
    assert len(desk.wakes) == WAKES_PER_HOUR_MAX
    for number in range(5):
        desk.tell(a_message(f"late{number}"))
    assert not desk.hook()
    told = [event for event in desk.steps if event.state is WakeState.COALESCED]
    assert [event.rung for event in told] == [Rung.PERSON]
    assert len(desk.wakes) == WAKES_PER_HOUR_MAX
    desk.pass_ms(HOUR_MS)
    assert len(desk.wakes) == WAKES_PER_HOUR_MAX + 1
    assert len(desk.fired[-1].messages) == 5


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (at_work(), "works"),
        (at_work(state=State.BLOCKED, prompts=(PromptSeen(number=1, ask=Ask.PERMISSION, since_ms=NOW_MS),)), "prompt"),
        (at_work(state=State.WAITING, prompts=(PromptSeen(number=1, ask=Ask.QUESTION, since_ms=NOW_MS),)), "prompt"),
        (at_rest(last_key_ms=NOW_MS - SECOND), "typing"),
    ],
)
def test_row_9_while_the_coordinator_works_or_a_prompt_stands_or_a_person_types_the_wake_is_held_with_its_reason(status, why):
    desk = Desk(a_run_box(), status)
    desk.tell(a_message("m1"))
    assert desk.state is WakeState.HELD
    assert why in desk.box.wake.proof
    desk.look()
    assert len(desk.steps) == 1
    assert desk.fired == []


def test_row_9_a_held_wake_tells_nobody_however_long_it_is_held():
    desk = Desk(a_run_box(), at_work())
    desk.tell(a_message("m1"))
    desk.pass_ms(6 * HOUR_MS)
    assert {event.rung for event in desk.steps} == {None}


def test_row_9_a_draft_holds_the_wake_until_its_writer_has_sent_it():
    desk = an_idle_claude(last_key_ms=NOW_MS - 10 * SECOND)
    desk.tell(a_message("m1"))
    assert desk.rungs == [Rung.TYPED]  # whoever types looks into the composer first
    desk.hands(Saw.TYPE_HELD, code="composer_busy", detail="a draft stands")
    assert desk.state is WakeState.HELD
    assert "a draft stands" in desk.box.wake.proof
    desk.pass_ms(TYPE_AGAIN_MS)
    assert [event.tries for event in desk.fired] == [1, 2]
    desk.hands(Saw.TYPE_HELD, code="composer_busy", detail="a draft stands")
    its_turn_starts(desk)
    assert "works" in desk.box.wake.proof
    assert desk.hook()
    assert len(desk.wakes) == 1


def test_row_9_background_work_beside_a_lead_at_rest_holds_nothing():
    desk = an_idle_claude(state=State.WORKING)
    desk.tell(a_message("m1"))
    assert desk.rungs == [Rung.NATIVE]


NO_WAY = [
    (a_run_box(COORDINATOR), None, None, "nothing is known"),
    (a_run_box(COORDINATOR), at_rest(agent="aider"), None, "no way in"),
    (a_run_box(COORDINATOR), at_rest(state=State.GONE, live=False), None, "gone"),
    (a_run_box(COORDINATOR), at_rest(evidence=Evidence.NO_SIGNAL), None, "nothing tells"),
    (a_run_box(COORDINATOR), at_work(evidence=Evidence.STALE), None, "too long ago"),
    (a_run_box(COORDINATOR), at_rest(agent="copilot"), None, "no way in"),
]


@pytest.mark.parametrize(("box", "status", "agent", "why"), NO_WAY)
def test_row_10_a_wake_that_no_channel_can_deliver_is_a_notice_to_the_person_within_a_minute_and_once(box, status, agent, why):
    desk = Desk(box, status, agent)
    desk.tell(a_message("m1"))
    assert desk.state is WakeState.DUE
    desk.pass_ms(NOTICE_MS)
    assert NOTICE_MS < MINUTE
    assert (desk.state, desk.box.wake.rung) == (WakeState.UNDELIVERABLE, Rung.PERSON)
    assert why in desk.box.wake.proof
    desk.tell(a_message("m2"))
    desk.pass_ms(HOUR_MS)
    assert [event.rung for event in desk.steps].count(Rung.PERSON) == 1
    desk.check()
    assert desk.state is WakeState.WITHDRAWN


def test_row_10_a_reader_that_comes_by_itself_within_that_time_is_no_matter_for_the_person():
    desk = Desk(a_run_box(), None)
    desk.tell(a_message("m1"))
    desk.pass_ms(NOTICE_MS - 1)
    desk.check()
    assert desk.state is WakeState.WITHDRAWN
    assert Rung.PERSON not in {event.rung for event in desk.steps}


def test_row_10_what_was_undeliverable_is_delivered_when_a_way_opens():
    desk = Desk(a_run_box(), None)
    desk.tell(a_message("m1"))
    desk.pass_ms(NOTICE_MS)
    desk.pane(at_rest(agent="claude"))
    assert desk.rungs == [Rung.NATIVE]


# ------------------------------------------------------------------ the ladder


def test_rung_2_an_idle_hook_is_answered_and_a_turn_behind_it_is_the_proof():
    desk = Desk(a_run_box(), at_work(agent="codex"))
    desk.tell(a_message("m1"))
    desk.now_ms += MINUTE
    assert desk.hook()
    assert (desk.rungs, desk.state) == ([Rung.IDLE_HOOK], WakeState.OFFERED)
    its_turn_ends(desk)  # the end that had asked: the same moment proves nothing
    assert desk.state is WakeState.OFFERED
    desk.now_ms += SECOND
    desk.pane(at_work(2, started_ms=NOW_MS, updated_ms=desk.now_ms, agent="codex"))  # the same turn goes on
    assert desk.state is WakeState.DELIVERED
    assert "goes on" in desk.box.wake.proof


@pytest.mark.parametrize(
    ("agent", "after_it"), [("claude", Rung.NATIVE), ("codex", Rung.TYPED), ("gemini", Rung.TYPED), ("qwen", Rung.TYPED)]
)
def test_rung_2_the_idle_hook_of_the_turn_that_has_ended_is_waited_for(agent, after_it):
    desk = Desk(a_run_box(), at_work(agent=agent))
    desk.tell(a_message("m1"))
    its_turn_ends(desk)  # is told by the bus, which may be quicker than the hook's question
    assert not desk.claim()
    assert desk.hook()
    silent = Desk(a_run_box(), at_work(agent=agent))
    silent.tell(a_message("m1"))
    its_turn_ends(silent)
    silent.pass_ms(IDLE_HOOK_MS)
    assert (desk.rungs, silent.rungs) == ([Rung.IDLE_HOOK], [after_it])


def test_rung_2_where_no_idle_hook_comes_none_is_waited_for():
    ended = at_rest(2, ended_ms=NOW_MS)
    interrupted = replace_turn(ended, interrupted=True)
    by_another_clock = replace_turn(ended, ended_ms=NOW_MS + MINUTE)
    for agent, status in (("opencode", ended), ("codex", interrupted), ("codex", by_another_clock)):
        desk = Desk(a_run_box(), structs.replace(status, agent=agent))
        desk.tell(a_message("m1"))
        assert len(desk.wakes) == 1


def test_rung_2_an_answer_without_a_turn_behind_it_is_followed_by_the_next_way_once():
    desk = Desk(a_run_box(), at_work(agent="codex"))
    desk.tell(a_message("m1"))
    desk.now_ms += MINUTE
    assert desk.hook()
    its_turn_ends(desk)
    desk.pass_ms(TURN_MS_MAX)
    assert desk.rungs == [Rung.IDLE_HOOK, Rung.TYPED]
    desk.pass_ms(TYPE_MS_MAX)
    assert (desk.state, desk.box.wake.rung) == (WakeState.UNDELIVERABLE, Rung.PERSON)
    assert "idle_hook, typed" in desk.box.wake.proof
    assert len(desk.wakes) == 1


@pytest.mark.parametrize(("agent", "answers"), [("claude", 8), ("qwen", 7), ("codex", 20), ("gemini", 20)])
def test_rung_2_an_idle_hook_is_answered_no_more_often_in_a_row_than_its_agent_takes(agent, answers):
    desk = Desk(a_run_box(), at_work(agent=agent))
    answered = 0
    for number in range(20):
        desk.tell(a_message(f"m{number}"))
        desk.now_ms += MINUTE
        answered += desk.hook(goes_on=number > 0)
        desk.pane(at_work(2, started_ms=NOW_MS, updated_ms=desk.now_ms + 1, agent=agent))
        desk.check()
        desk.ack()
    assert answered == answers
    desk.tell(a_message("fresh"))
    assert desk.hook(goes_on=False)


def test_rung_2_a_hook_with_nothing_to_say_to_is_not_answered():
    desk = Desk(a_run_box(), at_work(agent="codex"))
    assert not desk.hook()
    desk.tell(a_message("m1", MailType.STATUS))
    assert not desk.hook()


def test_rung_3_a_parked_handler_takes_the_wake_of_an_idle_session_once():
    desk = an_idle_claude()
    assert not desk.claim()
    desk.tell(a_message("m1"))
    assert desk.rungs == [Rung.NATIVE]
    assert desk.claim()
    assert not desk.claim()
    its_turn_starts(desk)
    assert desk.state is WakeState.DELIVERED
    assert not desk.claim()


def test_rung_3_a_handler_that_comes_late_finds_the_wake_by_itself():
    desk = an_idle_claude()
    desk.tell(a_message("m1"))
    desk.now_ms += TAKE_MS_MAX - 1
    assert desk.claim()


def test_rung_3_while_the_agent_works_no_handler_gets_anything():
    desk = Desk(a_run_box(), at_work(agent="claude"))
    desk.tell(a_message("m1"))
    assert not desk.claim()


def test_rung_3_without_a_handler_the_pointer_is_typed():
    desk = an_idle_claude()
    desk.tell(a_message("m1"))
    desk.pass_ms(TAKE_MS_MAX)
    assert desk.rungs == [Rung.NATIVE, Rung.TYPED]
    assert not desk.claim()
    assert len(desk.wakes) == 1


def test_rung_3_a_draft_that_nobody_can_look_for_holds_a_native_wake_for_a_while():
    native_alone = replace(AGENTS["pi"], wake=frozenset({WakeWay.NATIVE_PLUGIN}))
    reader = Reader(at_rest(agent="pi", last_key_ms=NOW_MS), native_alone)
    held = next_rung(reader, (), NOW_MS + 10 * SECOND)
    assert (held.rung, held.again_ms) == (None, NOW_MS + DRAFT_QUIET_MS)
    assert next_rung(reader, (), NOW_MS + DRAFT_QUIET_MS).rung is Rung.NATIVE


def test_rung_4_a_line_that_was_typed_is_delivered_by_the_turn_behind_it():
    desk = Desk(a_run_box(), at_rest(agent="gemini"))
    desk.tell(a_message("m1"))
    desk.hands(Saw.TYPED)
    assert desk.state is WakeState.OFFERED
    its_turn_starts(desk)
    assert desk.state is WakeState.DELIVERED


def test_rung_4_hands_that_were_stopped_in_the_middle_never_type_again():
    desk = Desk(a_run_box(), at_rest(agent="gemini"))
    desk.tell(a_message("m1"))
    desk.hands(Saw.UNKNOWN_STEP)
    desk.pass_ms(HOUR_MS)
    assert desk.rungs == [Rung.TYPED]
    assert desk.state is WakeState.UNDELIVERABLE


def test_rung_4_the_word_of_an_older_order_changes_nothing():
    desk = Desk(a_run_box(), at_rest(agent="gemini"))
    desk.tell(a_message("m1"))
    before = desk.box.wake
    fact = HostFact(host=HostId("h"), dispatch="run:r1", fence=1, step="run:r1.w1.t0", saw=Saw.TYPED, at_ms=NOW_MS)
    desk.record(wake.on_typed(desk.box, fact, NOW_MS))
    assert desk.box.wake == before


# ------------------------------------------------------------------- proofs


def test_mail_that_is_read_behind_an_offer_proves_it():
    desk = an_idle_claude()
    desk.tell(a_message("m1"))
    desk.now_ms += 1
    desk.check()
    assert desk.state is WakeState.DELIVERED
    assert "read" in desk.box.wake.proof


def test_a_batch_that_no_wake_told_of_and_nobody_acked_is_news_again_when_its_lease_ends():
    desk = Desk(a_run_box(), at_work(agent="claude"))
    desk.tell(a_message("m1"))
    desk.check()  # and then its taker dies
    desk.pane(at_rest(3, ended_ms=desk.now_ms, agent="claude"))
    assert desk.fired == []
    desk.now_ms += delivery.LEASE_MS
    desk.box = after(desk.box, delivery.lapse(desk.box, desk.now_ms), desk.now_ms)
    desk.look()
    assert len(desk.wakes) == 1


def test_ready_work_that_was_offered_and_started_by_somebody_else_is_over():
    desk = an_idle_claude()
    desk.tell(a_message("7", MailType.READY))
    desk.box = after(desk.box, take(desk.box, (Join(dispatch="r1.t1.1", agent="codex"),), NOW_MS))
    desk.pass_ms(MINUTE)
    assert desk.state is WakeState.WITHDRAWN
    assert desk.rungs == [Rung.NATIVE]


def test_a_wake_of_a_mailbox_that_nobody_reads_any_more_is_withdrawn():
    desk = Desk(a_run_box(), at_work())
    desk.tell(a_message("m1"))
    desk.box = after(desk.box, take(desk.box, (Close(why="the Run is closed", by=COORDINATOR),), NOW_MS))
    desk.look()
    assert desk.state is WakeState.WITHDRAWN


def test_a_worker_is_woken_for_answers_and_guidance_and_not_for_status():
    desk = Desk(a_worker_box(), at_rest(agent="codex", pane="p9"))
    desk.tell(a_message("m1", MailType.STATUS))
    assert desk.fired == []
    desk.tell(a_message("m2", MailType.GUIDANCE))
    assert desk.rungs == [Rung.TYPED]


def test_the_pointer_counts_names_the_command_and_holds_no_text_of_a_message():
    desk = an_idle_claude()
    desk.tell(a_message("m1", body="secret"), a_message("m2"), a_message("m3", MailType.QUESTION))
    line = pointer(desk.box)
    assert line == "Tocsin notice: 3 messages (question, 2 report) for Run r1. To read: tocsin mail check"
    assert "\n" not in line


def test_a_mailbox_of_which_nothing_is_known_wakes_nobody():
    desk = Desk(blank("run:r9"), None)
    desk.look()
    assert (desk.steps, desk.again_ms) == ([], None)


def test_every_state_of_a_wake_can_end():
    ends: set[WakeState] = set(wake.ENDED)
    for _ in WakeState:
        ends |= {state for state, nexts in LIFE.items() if state is not None and nexts & ends}
    assert ends == set(WakeState)


def test_what_an_earlier_wake_has_told_of_is_no_cause_of_a_later_one():
    desk = an_idle_claude()
    desk.tell(a_message("m1"))
    desk.claim()
    its_turn_starts(desk)
    its_turn_ends(desk)
    desk.pass_ms(SECOND)
    desk.tell(a_message("m2", MailType.QUESTION))
    assert len(desk.wakes) == 2
    assert (desk.box.wake.cause, desk.box.wake.messages) == (MailType.QUESTION, ("m2",))
    assert "2 messages" in pointer(desk.box)


def test_a_wake_whose_own_cause_is_gone_is_withdrawn_although_older_mail_is_unread():
    desk = an_idle_claude()
    desk.tell(a_message("m1"))
    desk.claim()
    its_turn_starts(desk)
    its_turn_ends(desk)
    desk.pane(at_work(3, started_ms=desk.now_ms, agent="claude"))
    desk.tell(a_message("7", MailType.READY))
    desk.box = after(desk.box, take(desk.box, (Join(dispatch="r1.t1.1", agent="codex"),), NOW_MS))
    desk.look()
    assert desk.state is WakeState.WITHDRAWN


def test_row_3_what_came_before_the_turn_was_seen_is_told_by_it_also_when_only_its_end_was_seen():
    desk = an_idle_claude()
    desk.tell(a_message("m1"))
    desk.claim()
    desk.tell(a_message("m2"))
    desk.now_ms += SECOND
    its_turn_ends(desk)
    desk.pass_ms(10 * MINUTE)
    assert len(desk.wakes) == 1


def test_row_3_after_a_first_batch_was_read_what_comes_in_that_turn_is_news():
    desk = an_idle_claude()
    desk.tell(*[a_message(f"m{number}") for number in range(120)])
    desk.claim()
    its_turn_starts(desk)
    desk.now_ms += SECOND
    desk.check()
    desk.tell(a_message("late"))
    assert desk.state is WakeState.HELD
    its_turn_ends(desk)
    desk.pass_ms(IDLE_HOOK_MS)
    assert len(desk.wakes) == 2
