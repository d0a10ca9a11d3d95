"""What becomes of a worker: dispositions, releases with their proofs, worktrees."""

import pytest

from custody_builders import A1, COORDINATOR, PERSON, REVIEW, RUNNER, Desk, a_fact
from tocsin.contract.custody import TRASH_KEPT_MS, CustodyState, WorktreeState
from tocsin.contract.hosting import ReleaseTerminal, RemoveWorktree, RestoreWorktree, Saw, StopAgent
from tocsin.contract.messages import Process
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.run import OnSettle
from tocsin.release_accountant.core import notices
from tocsin.release_accountant.core.notices import Hold
from tocsin.release_accountant.core.obligations import obligation

S, W = CustodyState, WorktreeState


def code(told):
    assert isinstance(told, Refusal)
    return told.code


# ------------------------------------------------------------ dispositions


def test_a_custody_is_there_with_its_terminal_before_any_agent_boots():
    desk = Desk().made()
    assert desk.state.state is S.OWNED
    assert (desk.state.run, desk.state.task, desk.state.fence) == ("r1", "build", 1)
    assert desk.state.terminal.process == RUNNER
    assert obligation(desk.state) is None


POLICIES = [
    (None, "succeeded", None, S.RELEASING, "the default: released once its work is over"),
    (None, "succeeded", REVIEW, S.RETAINED, "the default: kept while a review is open"),
    (None, "failed", None, S.RELEASING, "a failure needs its worker no longer"),
    (None, "stopped", None, S.RELEASING, "its terminal still stands"),
    (None, "superseded", None, S.RELEASING, "no second editor stays behind"),
    (None, "abandoned", None, S.OWNED, "given up as it is: somebody decides"),
    (OnSettle.RELEASE, "succeeded", REVIEW, S.RELEASING, "its Task says so, review or not"),
    (OnSettle.RELEASE, "abandoned", None, S.RELEASING, "its Task says so"),
    (OnSettle.RETAIN, "succeeded", None, S.RETAINED, "its Task says so"),
    (OnSettle.ASK, "succeeded", REVIEW, S.OWNED, "its Task leaves it to somebody"),
]


@pytest.mark.parametrize(("policy", "outcome", "hold", "state", "why"), POLICIES, ids=[case[-1] for case in POLICIES])
def test_the_policy_of_the_task_gives_a_settled_worker_its_disposition(policy, outcome, hold, state, why):
    assert Desk().made().settled(outcome, policy, hold).state.state is state


@pytest.mark.parametrize(("policy", "outcome", "hold", "state", "why"), POLICIES, ids=[case[-1] for case in POLICIES])
def test_the_disposition_is_the_same_when_the_host_is_heard_after_the_outcome(policy, outcome, hold, state, why):
    desk = Desk().settled(outcome, policy, hold).made()
    assert desk.state.state is state


def test_a_gate_lets_go_with_its_verdict():
    desk = Desk().made().settled(hold=REVIEW)
    desk.tell(notices.HoldChanged(hold=None))
    assert desk.state.state is S.RELEASING


def test_what_a_task_retains_is_not_let_go_by_a_verdict():
    desk = Desk().made().settled(on_settle=OnSettle.RETAIN, hold=REVIEW)
    desk.tell(notices.HoldChanged(hold=None))
    assert desk.state.state is S.RETAINED


def test_a_retention_says_by_what_it_is_held_now():
    desk = Desk().made().settled(hold=REVIEW)
    desk.tell(notices.HoldChanged(hold=Hold(gate="fix-round", why="a fix round is due")))
    assert (desk.state.state, desk.state.gate, desk.state.why) == (S.RETAINED, "fix-round", "a fix round is due")


def test_somebody_may_keep_a_worker_before_it_has_settled_and_the_outcome_does_not_undo_that():
    desk = Desk().made()
    desk.retain()
    desk.settled(hold=REVIEW)
    desk.tell(notices.HoldChanged(hold=None))
    assert (desk.state.state, desk.state.by, desk.state.why) == (S.RETAINED, COORDINATOR, "I look at it")


def test_somebody_s_retention_lets_go_with_the_gate_that_it_names():
    desk = Desk().made().settled(hold=REVIEW)
    desk.retain(gate="r1.g1")
    desk.tell(notices.HoldChanged(hold=None))
    assert desk.state.state is S.RELEASING


def test_a_retention_until_a_time_ends_with_it_and_the_policy_decides_again():
    desk = Desk().made().settled(hold=REVIEW)
    desk.retain(until_ms=desk.now_ms + 1_000)
    desk.tell(notices.TimePassed(hold=None))
    assert desk.state.state is S.RETAINED
    desk.now_ms += 1_000
    desk.tell(notices.TimePassed(hold=None))
    assert desk.state.state is S.RELEASING


def test_a_retention_that_ends_before_a_decision_leaves_an_obligation():
    desk = Desk().made().asks()
    desk.retain(until_ms=desk.now_ms + 1_000)
    desk.now_ms += 1_000
    desk.tell(notices.TimePassed(hold=None))
    assert desk.state.state is S.OWNED
    assert obligation(desk.state)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [({"reason": " "}, Code.BAD_REQUEST), ({"until_ms": 1}, Code.BAD_REQUEST), ({"gate": "nowhere"}, Code.NOT_FOUND)],
)
def test_a_retention_says_why_and_for_what_that_can_still_end(fields, expected):
    desk = Desk().made().asks()
    desk.gate_is_open = False
    assert code(desk.retain(**fields)) is expected
    assert desk.state.state is S.OWNED


def test_a_release_that_is_under_way_cannot_become_a_retention():
    desk = Desk().made().settled()
    assert code(desk.retain()) is Code.LIFECYCLE_CONFLICT


def test_an_unsettled_worker_is_not_released():
    desk = Desk().made()
    assert code(desk.release()) is Code.LIFECYCLE_CONFLICT
    assert desk.state.state is S.OWNED


def test_nothing_is_known_of_what_was_never_heard_of():
    assert code(Desk().release()) is Code.NOT_FOUND
    assert code(Desk().retain()) is Code.NOT_FOUND
    assert code(Desk().undo()) is Code.NOT_FOUND


# ------------------------------------------------------------------- reuse


def a_pair(person=False):
    """A settled worker whose terminal goes to a later Dispatch."""
    first, second = Desk().made().settled(hold=REVIEW), Desk("r1.fix.1")
    if person:
        first.sees(Saw.HUMAN_KEY)
    first.tell(notices.HandedOn(dispatch="r1.fix.1"))
    given = first.state
    second.tell(
        notices.Inherits(
            earlier=given.id, host=given.host, pane=given.terminal.pane, process=given.terminal.process, path=given.path,
            worktree_made=True, branch=given.branch, taken_over=given.taken,
        )
    )  # fmt: skip
    return first, second


def test_a_reused_worker_belongs_to_the_later_dispatch_with_its_worktree():
    first, second = a_pair()
    assert (first.state.state, first.state.handed_to) == (S.REUSED, "r1.fix.1")
    assert "r1.fix.1" in first.release().message
    assert second.state.state is S.OWNED
    second.settled()
    assert second.order().order == ReleaseTerminal(pane="p1", process=RUNNER)
    second.answers(Saw.TREE_ENDED)
    assert second.order().order == RemoveWorktree(path="/w/build", branch="tocsin/build")


def test_what_a_person_has_taken_over_stays_theirs_when_it_is_reused():
    first, second = a_pair(person=True)
    assert first.state.state is S.REUSED
    assert second.state.state is S.TAKEN_OVER
    assert code(second.settled().release()) is Code.TAKEN_OVER


def test_a_start_that_a_live_pane_refuses_ends_nothing_in_it():
    _, second = a_pair()
    second.sees(Saw.REFUSED, dispatch="r1.fix.1", code=Code.COMPOSER_BUSY)
    assert second.state.state is S.OWNED


# ------------------------------------------------------------------ release


def test_a_release_is_told_to_the_host_under_a_step_of_its_own_for_each_attempt():
    desk = Desk().made().settled()
    first = desk.order()
    assert (first.dispatch, first.fence, first.order) == (A1, 1, ReleaseTerminal(pane="p1", process=RUNNER))
    desk.answers(Saw.NOT_CONFIRMED, detail="pid 4711 lives")
    assert not desk.orders()
    desk.release()
    assert desk.order().step != first.step


def test_released_names_its_proof():
    desk = Desk().made().settled().answers(Saw.TREE_ENDED, count=3, detail="runner, agent, mcp-db")
    assert desk.state.state is S.RELEASED
    for part in ("4711", "b1", "p1", "3 ended", "mcp-db"):
        assert part in desk.state.proof


def test_a_closed_terminal_alone_is_no_proof():
    desk = Desk().made().settled().answers(Saw.TERMINAL_CLOSED)
    assert desk.state.state is S.RELEASING


@pytest.mark.parametrize("saw", [Saw.NOT_CONFIRMED, Saw.UNKNOWN_STEP, Saw.REFUSED])
def test_what_is_not_confirmed_is_unknown_with_the_command_that_tries_again(saw):
    desk = Desk().made().settled().answers(saw, detail="pid 4711 lives")
    assert desk.state.state is S.RELEASE_UNKNOWN
    assert f"tocsin custody release {A1}" in obligation(desk.state).next


def test_a_host_that_speaks_of_another_process_has_proven_nothing():
    other = Process(pid=4711, started_ms=RUNNER.started_ms + 1, boot="b1")
    assert Desk().made().settled().answers(Saw.TREE_ENDED, process=other).state.state is S.RELEASE_UNKNOWN


def test_an_answer_to_an_older_attempt_means_nothing():
    desk = Desk().made().settled()
    first = desk.order().step
    desk.answers(Saw.NOT_CONFIRMED)
    desk.release()
    desk.sees(Saw.TREE_ENDED, step=first)
    assert desk.state.state is S.RELEASING


def test_a_silent_host_leaves_the_release_pending_and_its_late_answer_ends_it():
    desk = Desk().made().settled()
    order = desk.order()
    desk.tell(notices.HostSilent(attempt=1))
    assert desk.state.state is S.RELEASE_PENDING
    assert desk.order().step == order.step
    assert obligation(desk.state)
    assert desk.answers(Saw.TREE_ENDED).state.state is S.RELEASED


def test_an_order_that_was_read_too_late_is_given_again_by_itself():
    desk = Desk().made().settled()
    first = desk.order().step
    desk.answers(Saw.EXPIRED)
    assert desk.state.state is S.RELEASE_PENDING
    assert desk.order().step != first


def test_two_releases_at_once_are_one():
    desk = Desk().made().asks()
    desk.release()
    records = desk.records
    assert desk.release()["joined"]
    assert desk.records == records


def test_what_the_host_has_made_of_an_attempt_that_nobody_told_of_is_ended_too():
    desk = Desk()
    desk.tell(notices.Requested(run="r1", task="build", fence=1, host="h"))
    desk.settled()
    assert desk.order().order == StopAgent()
    # The start was under way: now its terminal is known, and closed as a new attempt.
    desk.made()
    assert desk.order().order == ReleaseTerminal(pane="p1", process=RUNNER)


def test_a_refused_start_leaves_nothing_behind_and_is_over_with_that_as_its_proof():
    desk = Desk().sees(Saw.WORKTREE_READY, made=True).sees(Saw.REFUSED, code=Code.AGENT_MISSING, detail="codex is not installed")
    assert desk.state.state is S.RELEASED
    assert "codex is not installed" in desk.state.proof
    assert desk.state.worktree.state is W.PURGED
    desk.settled("failed")
    assert not desk.orders()


@pytest.mark.parametrize("kept", [lambda desk: None, lambda desk: desk.retain(), lambda desk: desk.sees(Saw.HUMAN_KEY)])
def test_a_terminal_that_its_host_has_found_gone_is_tidied_up_and_proven_by_itself(kept):
    desk = Desk().made().asks()
    kept(desk)
    desk.sees(Saw.LOST, detail="its runner and its agent are gone")
    assert desk.state.state is S.RELEASING
    desk.answers(Saw.ALREADY_ENDED, detail="nothing of it was left")
    assert (desk.state.state, desk.state.worktree.state) == (S.RELEASED, W.KEPT)


def test_what_it_has_left_behind_is_ended_by_a_release_alone():
    desk = Desk().made().sees(Saw.LOST, count=1, detail="mcp-db 4712, 9 s old carries its mark")
    assert desk.asks().sees(Saw.LOST, count=1).state.state is S.OWNED
    desk.release()
    assert desk.answers(Saw.TREE_ENDED, count=1).state.state is S.RELEASED


def test_a_terminal_that_is_gone_before_its_dispatch_has_settled_waits_for_its_outcome():
    desk = Desk().made().sees(Saw.LOST)
    assert desk.state.state is S.OWNED
    assert desk.settled("failed").state.state is S.RELEASING


def test_another_pane_of_the_same_number_is_not_ours():
    desk = Desk().made().asks()
    desk.sees(Saw.LOST, process=Process(pid=1, started_ms=1, boot="b1"))
    desk.sees(Saw.HUMAN_KEY, pane="p2")
    assert desk.state.state is S.OWNED


def test_a_terminal_that_is_found_alive_after_its_end_was_proven_is_not_hidden():
    desk = Desk().made(worktree=False).settled().answers(Saw.TREE_ENDED)
    desk.sees(Saw.FOUND, at_ms=desk.state.proof_ms)
    assert desk.state.state is S.RELEASED
    desk.sees(Saw.FOUND, at_ms=desk.state.proof_ms + 1)
    assert desk.state.state is S.RELEASE_UNKNOWN
    assert obligation(desk.state)


def test_a_released_worker_of_which_something_lives_can_be_released_again():
    desk = Desk().made(worktree=False).settled().answers(Saw.TREE_ENDED)
    desk.release(again=True)
    assert desk.state.state is S.RELEASING
    assert desk.answers(Saw.TREE_ENDED).state.state is S.RELEASED


def test_a_terminal_that_may_still_stand_although_its_processes_have_ended_is_not_hidden():
    desk = Desk().made(worktree=False).settled()
    step = desk.order().step
    desk.answers(Saw.TREE_ENDED).sees(Saw.UNKNOWN_STEP, step=step, detail="tmux does not answer")
    assert desk.state.state is S.RELEASE_UNKNOWN
    desk.release()
    assert desk.answers(Saw.ALREADY_ENDED).state.state is S.RELEASED


def test_the_tail_of_its_output_is_kept():
    desk = Desk().made().settled()
    desk.answers(Saw.ARCHIVED, detail="/archive/r1.build.1.txt", count=812)
    assert (desk.state.archive, desk.state.archive_bytes) == ("/archive/r1.build.1.txt", 812)


# ---------------------------------------------------------------- take-over


def test_a_person_s_key_makes_it_theirs_whatever_its_policy():
    desk = Desk().made().sees(Saw.HUMAN_KEY).settled(on_settle=OnSettle.RELEASE)
    assert desk.state.state is S.TAKEN_OVER
    assert obligation(desk.state) is None
    assert not desk.orders()


def test_nobody_keeps_a_taken_over_terminal_in_its_person_s_place():
    desk = Desk().made().sees(Saw.HUMAN_KEY).settled()
    assert code(desk.retain()) is Code.TAKEN_OVER


def test_only_a_person_says_that_it_is_theirs_to_close():
    desk = Desk().made().sees(Saw.HUMAN_KEY).settled()
    assert code(desk.release(COORDINATOR, person=True)) is Code.TAKEN_OVER
    desk.release(PERSON, person=True)
    assert desk.state.state is S.RELEASING
    # Their own keys while it closes are no second take-over.
    assert desk.sees(Saw.HUMAN_KEY).state.state is S.RELEASING


def test_a_key_while_it_is_being_closed_stops_the_orders():
    desk = Desk().made().settled()
    desk.sees(Saw.HUMAN_KEY)
    assert desk.state.state is S.TAKEN_OVER
    assert not desk.orders()


def test_a_taken_over_terminal_stays_its_person_s_when_its_end_is_unknown():
    desk = Desk().made().sees(Saw.HUMAN_KEY).settled()
    desk.release(PERSON, person=True)
    desk.answers(Saw.NOT_CONFIRMED)
    assert code(desk.release()) is Code.TAKEN_OVER
    assert f"tocsin custody release {A1} --person" in obligation(desk.state).next


def test_a_host_that_knows_of_a_person_s_key_first_refuses_to_close_it():
    desk = Desk().made().settled().answers(Saw.REFUSED, code=Code.TAKEN_OVER)
    assert desk.state.state is S.TAKEN_OVER


# ----------------------------------------------------------------- worktree


def a_released(**fields):
    desk = Desk().made().asks()
    desk.release(**fields)
    return desk.answers(Saw.TREE_ENDED)


def test_a_worktree_is_looked_at_only_after_a_confirmed_release():
    desk = Desk().made().settled()
    assert [type(order.order) for order in desk.orders()] == [ReleaseTerminal]
    desk.answers(Saw.NOT_CONFIRMED)
    assert not desk.orders()
    desk.release()
    desk.answers(Saw.TREE_ENDED)
    assert desk.order().order == RemoveWorktree(path="/w/build", branch="tocsin/build")


def test_a_worktree_that_was_not_made_by_us_is_never_touched():
    desk = Desk().made(worktree=False).settled().answers(Saw.TREE_ENDED)
    assert desk.state.worktree is None
    assert not desk.orders()


def test_a_worktree_told_of_late_is_cleaned_up_too():
    desk = Desk().sees(Saw.TERMINAL_MADE).settled().answers(Saw.TREE_ENDED)
    desk.sees(Saw.WORKTREE_READY, made=True)
    assert isinstance(desk.order().order, RemoveWorktree)


def test_a_kept_worktree_says_why_and_what_resolves_it():
    desk = a_released().answers(Saw.WORKTREE_KEPT, code="dirty", detail="17 files not committed", next=("git -C /w/build status",))
    worktree = desk.state.worktree
    assert (worktree.state, worktree.why, worktree.code) == (W.KEPT, "17 files not committed", "dirty")
    assert worktree.next == ("git -C /w/build status", f"tocsin custody release {A1}")


def test_once_its_reason_is_gone_a_kept_worktree_can_be_removed():
    desk = a_released().answers(Saw.WORKTREE_KEPT, code="dirty", detail="17 files not committed")
    first = f"remove-{desk.state.worktree.attempt}"
    desk.release()
    assert desk.order().step != first
    desk.answers(Saw.WORKTREE_TRASHED, detail="/w/.tocsin-trash/build")
    assert desk.state.worktree.state is W.TRASHED


@pytest.mark.parametrize("saw", [Saw.UNKNOWN_STEP, Saw.REFUSED, Saw.EXPIRED, Saw.NOT_CONFIRMED])
def test_a_worktree_of_which_nothing_is_known_is_kept(saw):
    assert a_released().answers(saw).state.worktree.state is W.KEPT


def test_a_release_may_leave_the_worktree():
    desk = a_released(worktree=False)
    assert desk.state.worktree.state is W.KEPT
    assert not desk.orders()


def test_a_worktree_in_which_another_worker_is_stays_until_that_one_is_over():
    desk = Desk().made().settled()
    desk.workers_there = ("r1.fix.1",)
    desk.answers(Saw.TREE_ENDED)
    assert desk.state.worktree.state is W.KEPT
    assert "r1.fix.1" in desk.state.worktree.why
    desk.tell(notices.PlaceFree())
    assert not desk.orders()
    desk.workers_there = ()
    desk.tell(notices.PlaceFree())
    assert isinstance(desk.order().order, RemoveWorktree)


def test_a_worktree_in_which_a_person_has_worked_needs_that_person():
    desk = Desk().made().sees(Saw.HUMAN_KEY).settled().sees(Saw.LOST).answers(Saw.ALREADY_ENDED)
    assert (desk.state.state, desk.state.worktree.state) == (S.RELEASED, W.KEPT)
    assert code(desk.release()) is Code.TAKEN_OVER
    desk.release(PERSON, person=True)
    assert isinstance(desk.order().order, RemoveWorktree)


def test_work_under_review_keeps_its_worktree_when_its_terminal_is_gone():
    desk = Desk().made().settled(hold=REVIEW).sees(Saw.LOST)
    assert desk.state.state is S.RETAINED
    assert not desk.orders()
    desk.tell(notices.HoldChanged(hold=None))
    assert isinstance(desk.answers(Saw.ALREADY_ENDED).order().order, RemoveWorktree)


def test_a_removed_worktree_can_be_brought_back_for_seven_days():
    desk = a_released().answers(Saw.WORKTREE_TRASHED, detail="/w/.tocsin-trash/build")
    assert desk.state.worktree.until_ms == desk.now_ms + TRASH_KEPT_MS
    desk.undo()
    assert desk.order().order == RestoreWorktree(path="/w/build", trash="/w/.tocsin-trash/build")
    desk.answers(Saw.WORKTREE_RESTORED)
    assert desk.state.worktree.state is W.RESTORED
    assert desk.undo()["worktree"] == "restored"
    assert not desk.orders()


def test_after_its_time_in_the_trash_it_cannot_come_back():
    desk = a_released().answers(Saw.WORKTREE_TRASHED, detail="/w/.tocsin-trash/build")
    desk.now_ms += TRASH_KEPT_MS
    assert code(desk.undo()) is Code.EXPIRED
    desk.sees(Saw.WORKTREE_PURGED, step="purge")
    assert desk.state.worktree.state is W.PURGED


def test_a_return_that_fails_leaves_it_in_the_trash():
    desk = a_released().answers(Saw.WORKTREE_TRASHED, detail="/w/.tocsin-trash/build")
    until_ms = desk.state.worktree.until_ms
    desk.undo()
    desk.answers(Saw.REFUSED, detail="the path is taken")
    worktree = desk.state.worktree
    assert (worktree.state, worktree.trash, worktree.until_ms) == (W.TRASHED, "/w/.tocsin-trash/build", until_ms)
    assert "the path is taken" in worktree.why
    # What the trash does not hold any more cannot come back.
    desk.undo()
    desk.answers(Saw.REFUSED, code=Code.NOT_FOUND, detail="it is not in the trash")
    assert desk.state.worktree.state is W.PURGED


def test_a_refused_start_that_is_told_again_ends_no_later_release():
    """Found by the properties: released again because it was found alive, it counted as ended by the old word alone."""
    desk = Desk().made().settled(on_settle=None, hold=None)
    refused = notices.Observed(fact=a_fact(Saw.REFUSED, code="agent_missing", at_ms=desk.now_ms + 1))
    desk.tell(refused)
    desk.release(COORDINATOR, again=True)
    assert desk.state.state is CustodyState.RELEASING
    desk.tell(refused)
    assert desk.state.state is CustodyState.RELEASING
