"""What holds of a custody whatever happens to it, in whatever order, however often, with a restart at any moment."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from builders import NOW_MS
from custody_builders import COORDINATOR, HOST, PERSON, REVIEW, RUNNER, Desk, a_fact
from tocsin.contract.custody import CustodyState, Release, WorktreeState
from tocsin.contract.decision import Decision
from tocsin.contract.hosting import RemoveWorktree, Saw
from tocsin.contract.messages import Process
from tocsin.contract.run import OnSettle
from tocsin.release_accountant.core import notices
from tocsin.release_accountant.core.custody import Custody
from tocsin.release_accountant.core.decide import decide
from tocsin.release_accountant.core.life import CLOSING, OVER
from tocsin.release_accountant.core.moves import Around
from tocsin.release_accountant.core.obligations import obligation

S = CustodyState

OUTCOMES = st.sampled_from(["succeeded", "failed", "stopped", "abandoned", "superseded"])
POLICIES = st.sampled_from([None, *OnSettle])
HOLDS = st.sampled_from([None, REVIEW])
ANSWERS = st.sampled_from(
    [Saw.TREE_ENDED, Saw.ALREADY_ENDED, Saw.NOT_CONFIRMED, Saw.UNKNOWN_STEP, Saw.REFUSED, Saw.EXPIRED, Saw.ARCHIVED, Saw.TERMINAL_CLOSED]
)
REMOVALS = st.sampled_from([Saw.WORKTREE_TRASHED, Saw.WORKTREE_KEPT, Saw.UNKNOWN_STEP, Saw.WORKTREE_RESTORED, Saw.REFUSED])
OTHER = Process(pid=RUNNER.pid, started_ms=RUNNER.started_ms + 5, boot="b2")


def leaving(custody):
    """True while its worktree is to be moved to the trash."""
    return custody.worktree is not None and custody.worktree.state is WorktreeState.LEAVING


def is_closing_now(machine):
    """True while its end is asked for."""
    return machine.desk.state.state in CLOSING


class Life(RuleBasedStateMachine):
    """One custody, its host, its Run, its coordinator and a person, none of whom wait for each other."""

    @initialize(ends_early=st.sampled_from([None, None, None, "handed on", "refused"]), is_made=st.booleans(), policy=POLICIES)
    def begin(self, ends_early, is_made, policy):
        """Some lives may end early; most go on, and half of them begin with a settled worker."""
        self.desk = Desk()
        self.notices = []
        self.ends_early = ends_early
        if is_made:
            self.desk.made().settled(on_settle=policy, hold=REVIEW)

    # ---------------------------------------------------------- what happens

    def tell(self, notice):
        self.notices.append(notice)
        before = self.desk.state
        self.desk.tell(notice)
        is_gone = isinstance(notice, notices.Observed) and notice.fact.saw is Saw.LOST
        self.check_step(before, is_gone=is_gone)

    def see(self, saw, **fields):
        self.desk.now_ms += 1
        self.tell(notices.Observed(fact=a_fact(saw, **({"at_ms": self.desk.now_ms} | fields))))

    @rule(path=st.sampled_from([None, "/w/build"]))
    def requested(self, path):
        self.tell(notices.Requested(run="r1", task="build", fence=1, host=HOST, path=path))

    @rule(made=st.booleans())
    def worktree_ready(self, made):
        self.see(Saw.WORKTREE_READY, made=made, branch="tocsin/build")

    @rule(saw=st.sampled_from([Saw.TERMINAL_MADE, Saw.FOUND]))
    def terminal(self, saw):
        self.see(saw)

    @rule(outcome=OUTCOMES, policy=POLICIES, hold=HOLDS)
    def settles(self, outcome, policy, hold):
        self.tell(notices.HasSettled(host=HOST, outcome=outcome, on_settle=policy, hold=hold))

    @rule(hold=HOLDS)
    def hold_changes(self, hold):
        self.tell(notices.HoldChanged(hold=hold))

    @rule()
    def key(self):
        self.see(Saw.HUMAN_KEY)

    @rule(process=st.sampled_from([RUNNER, OTHER]), left=st.sampled_from([0, 2]))
    def lost(self, process, left):
        self.see(Saw.LOST, process=process, count=left)

    @precondition(lambda self: self.ends_early == "refused")
    @rule()
    def start_refused(self):
        self.see(Saw.REFUSED, code="agent_missing")

    @precondition(lambda self: self.desk.orders())
    @rule(saw=ANSWERS | REMOVALS, process=st.sampled_from([RUNNER, OTHER]), which=st.integers(0, 1))
    def host_answers(self, saw, process, which):
        some = self.desk.orders()
        self.see(saw, step=some[which % len(some)].step, process=process, detail="seen")

    @rule(saw=ANSWERS | REMOVALS, attempt=st.integers(0, 3), what=st.sampled_from(["release", "remove", "restore"]))
    def host_answers_an_old_order(self, saw, attempt, what):
        self.see(saw, step=f"{what}-{attempt}", detail="old")

    @rule()
    def its_person_closes_it(self):
        before = self.desk.state
        self.desk.release(PERSON, person=True)
        self.check_step(before, by_person=True)

    @rule()
    def its_coordinator_closes_it(self):
        before = self.desk.state
        self.desk.release(COORDINATOR)
        self.check_step(before)

    @precondition(is_closing_now)
    @rule()
    def its_end_is_not_confirmed(self):
        self.see(Saw.NOT_CONFIRMED, step=f"release-{self.desk.state.attempt}")

    @rule()
    def host_is_silent(self):
        self.tell(notices.HostSilent(attempt=self.desk.state.attempt))

    @rule(person=st.booleans(), again=st.booleans(), worktree=st.booleans(), caller=st.sampled_from([COORDINATOR, PERSON]))
    def release(self, person, again, worktree, caller):
        before = self.desk.state
        self.desk.release(caller, person=person, again=again, worktree=worktree)
        self.check_step(before, by_person=person and caller is PERSON)

    @rule(gate=st.sampled_from([None, "check"]), until=st.sampled_from([None, 5]), caller=st.sampled_from([COORDINATOR, PERSON]))
    def retain(self, gate, until, caller):
        before = self.desk.state
        self.desk.retain(caller, gate=gate, until_ms=until and self.desk.now_ms + until)
        self.check_step(before)

    @rule()
    def undo(self):
        before = self.desk.state
        self.desk.undo()
        self.check_step(before)

    @rule(busy=st.booleans())
    def others_come_and_go(self, busy):
        self.desk.workers_there = ("r1.fix.1",) if busy else ()
        self.tell(notices.PlaceFree())

    @rule(passed=st.integers(1, 20))
    def time_passes(self, passed):
        self.desk.now_ms += passed
        self.tell(notices.TimePassed(hold=None))

    @precondition(lambda self: self.ends_early == "handed on")
    @rule()
    def handed_on(self):
        self.tell(notices.HandedOn(dispatch="r1.fix.1"))

    # ----------------------------------------------------------- disturbances

    @precondition(lambda self: self.notices)
    @rule(data=st.data())
    def what_was_just_told_comes_again(self, data):
        """A redelivery straight away: nothing is recorded twice."""
        last = self.notices[-1]
        if isinstance(last, notices.HoldChanged | notices.TimePassed | notices.PlaceFree):
            return
        records = self.desk.records
        self.desk.tell(last)
        if not (isinstance(last, notices.Observed) and last.fact.saw is Saw.FOUND):
            assert self.desk.records == records

    @rule()
    def restart(self):
        """What is known comes back from its view."""
        self.desk.state = msgspec.json.decode(msgspec.json.encode(self.desk.state), type=Custody)

    # -------------------------------------------------------------- what holds

    def check_step(self, before, by_person=False, is_gone=False):
        after = self.desk.state
        assert after.attempt >= before.attempt, "attempts only grow"
        assert after.fence in (before.fence, 1), "a fence never changes"
        if before.worktree and after.worktree:
            assert after.worktree.attempt >= before.worktree.attempt
        assert not (before.taken and not after.taken), "what a person has used stays theirs"
        began = after.state in CLOSING and before.state not in CLOSING
        if began and before.taken:
            assert by_person or is_gone, "nothing taken over is closed without its person"
        if before.taken and leaving(after) and not leaving(before):
            assert by_person or before.person, "nor is its worktree removed"
        if before.settled:
            assert after.outcome == before.outcome, "an outcome stands"

    @invariant()
    def every_settled_worker_has_a_disposition_or_is_an_obligation(self):
        if not self.desk.state.settled:
            return
        owed = obligation(self.desk.state)
        assert owed is not None or self.desk.state.state in {S.TAKEN_OVER, S.RETAINED, *OVER}
        assert owed is None or owed.next

    @invariant()
    def released_has_its_proof(self):
        if self.desk.state.state is S.RELEASED:
            assert self.desk.state.proof
            assert any(word in self.desk.state.proof for word in ("tree ended", "already ended", "refused"))

    @invariant()
    def a_worktree_goes_only_after_a_release_that_was_confirmed(self):
        removals = [order for order in self.desk.orders() if isinstance(order.order, RemoveWorktree)]
        assert not removals or (self.desk.state.state is S.RELEASED and self.desk.state.proof)

    @invariant()
    def what_is_not_over_has_a_way_out(self):
        state = self.desk.state
        if state.settled and state.state not in OVER:
            told = decide(state, Release(person=True), Around(now_ms=NOW_MS, caller=PERSON))
            assert isinstance(told, Decision)


Life.TestCase.settings = settings(max_examples=300, stateful_step_count=40, deadline=None)
TestLife = Life.TestCase


STORIES = {
    "requested": notices.Requested(run="r1", task="build", fence=1, host=HOST, path="/w/build"),
    "worktree": notices.Observed(fact=a_fact(Saw.WORKTREE_READY, made=True, branch="tocsin/build")),
    "terminal": notices.Observed(fact=a_fact(Saw.TERMINAL_MADE)),
    "key": notices.Observed(fact=a_fact(Saw.HUMAN_KEY)),
}


@given(
    order=st.permutations([*STORIES, "settled"]),
    twice=st.sampled_from([*STORIES, None]),
    key=st.booleans(),
    outcome=OUTCOMES,
    policy=POLICIES,
    hold=HOLDS,
)
def test_in_whatever_order_it_is_told_a_worker_comes_to_the_same_disposition(order, twice, key, outcome, policy, hold):
    told = STORIES | {"settled": notices.HasSettled(host=HOST, outcome=outcome, on_settle=policy, hold=hold)}

    def ends(names):
        desk = Desk()
        for name in names:
            if key or name != "key":
                desk.tell(told[name])
        state = desk.state
        return (
            state.state,
            state.terminal,
            state.path,
            state.worktree,
            state.outcome,
            state.gate,
            [type(one.order) for one in desk.orders()],
        )

    assert ends([*order, *([twice] if twice else [])]) == ends([*STORIES, "settled"])
