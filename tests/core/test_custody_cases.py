"""Given cases H01, H02, H04 and H06, as far as custody decides them; what hands must do stands in the tests of pane-host."""

from custody_builders import A1, COORDINATOR, HOST, PERSON, Desk
from tocsin.contract.custody import CustodyState, WorktreeState
from tocsin.contract.hosting import RemoveWorktree, Saw
from tocsin.contract.refusals import Code, Refusal
from tocsin.release_accountant.core.obligations import obligation
from tocsin.release_accountant.core.rows import shown

S, W = CustodyState, WorktreeState


def test_h01_a_worktree_is_removed_only_by_a_host_that_has_looked_and_every_decision_keeps_its_reason():
    # A1: three commits and seventeen files that exist nowhere else.
    a1 = Desk().made().asks()
    a1.release()
    a1.answers(Saw.TREE_ENDED, detail="runner and agent")
    assert a1.state.state is S.RELEASED
    (order,) = a1.orders()
    # Nothing in the order overrules what the host finds: there is no force.
    assert order.order == RemoveWorktree(path="/w/build", branch="tocsin/build")
    found = "17 files not committed (app.py and 16 more); 3 commits that exist nowhere else (a, b, c)"
    a1.answers(Saw.WORKTREE_KEPT, code="dirty", detail=found, next=("git -C '/w/build' status",))
    assert (a1.state.worktree.state, a1.state.worktree.why) == (W.KEPT, found)

    # A2: clean when it was looked at, written into before it was moved. A3: git did not answer.
    for detail, code in (("it has changed since it was looked at", "changed"), ("git did not tell the state of its files", "unknown")):
        kept = Desk().made().settled().answers(Saw.TREE_ENDED).answers(Saw.WORKTREE_KEPT, code=code, detail=detail)
        assert kept.state.worktree.state is W.KEPT
        assert kept.state.worktree.next == (f"tocsin custody release {A1}",)
        told = shown(kept.state)["history"]
        assert {"what": "worktree kept", "why": detail} in [{"what": past["what"], "why": past["why"]} for past in told]


def test_h02_released_means_that_the_recorded_process_is_gone_and_releasing_is_repeatable_until_then():
    a1 = Desk().made(worktree=False).asks()
    a1.release()
    # The terminal is said to be closed, and the process lives.
    a1.answers(Saw.TERMINAL_CLOSED)
    a1.answers(Saw.NOT_CONFIRMED, detail="pid 4711 started at 12:00:01 lives")
    assert a1.state.state is S.RELEASE_UNKNOWN
    assert "4711" in obligation(a1.state).why
    assert not isinstance(a1.release(), Refusal)
    a1.answers(Saw.NOT_CONFIRMED, detail="pid 4711 lives")
    a1.sees(Saw.EXITED, step="start", exit_code=0)
    assert a1.state.state is S.RELEASE_UNKNOWN
    a1.release()
    a1.answers(Saw.ALREADY_ENDED)
    assert a1.state.state is S.RELEASED
    records = a1.records
    assert a1.release()["already"]
    assert a1.records == records
    assert not a1.orders()

    # A2: its terminal was closed by hand last week. Two ask at the same time.
    a2 = Desk().made(worktree=False).asks()
    first, second = a2.release(COORDINATOR), a2.release(PERSON)
    assert first["state"] == second["state"] == "releasing"
    assert second["joined"]
    assert len(a2.orders()) == 1
    a2.answers(Saw.ALREADY_ENDED, detail="the resource was already gone")
    assert a2.state.state is S.RELEASED
    assert "already gone" in a2.state.proof
    assert [past.what for past in a2.state.past].count("released") == 1


def test_h04_what_a_person_uses_is_theirs_and_our_own_writes_are_nobody_s():
    # A1: done, then a person goes on in its pane.
    a1 = Desk().made().asks().sees(Saw.HUMAN_KEY)
    refusal = a1.release()
    assert isinstance(refusal, Refusal)
    assert refusal.code is Code.TAKEN_OVER
    assert a1.state.state is S.TAKEN_OVER
    assert not a1.orders()
    assert obligation(a1.state) is None

    # A2: the key comes before the row of its terminal.
    a2 = Desk().sees(Saw.HUMAN_KEY).made().asks()
    assert a2.state.state is S.TAKEN_OVER
    assert a2.state.terminal is not None
    assert isinstance(a2.release(), Refusal)

    # A3: a wake was typed into its pane by us.
    a3 = Desk().made().asks().sees(Saw.TYPED, step="wake-1")
    a3.release()
    assert a3.answers(Saw.TREE_ENDED).state.state is S.RELEASED


def test_h06_the_release_is_of_the_recorded_tree_and_counts_what_it_ended():
    # The agent was killed; what it had started lives on.
    a1 = Desk().made(worktree=False).settled("failed")
    (order,) = a1.orders()
    assert (order.host, order.dispatch, order.fence) == (HOST, A1, 1)
    assert order.order.process == a1.state.terminal.process
    a1.answers(Saw.TREE_ENDED, count=2, detail="mcp-db, vite")
    assert a1.state.state is S.RELEASED
    assert "2 ended" in a1.state.proof
