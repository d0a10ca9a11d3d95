"""The life of a custody as one table, and that no place in it is a dead end."""

import pytest

from custody_builders import COORDINATOR, PERSON, Desk
from tocsin.contract.custody import CustodyState, Release, Retain
from tocsin.contract.hosting import Saw
from tocsin.contract.refusals import Refusal
from tocsin.release_accountant.core import notices
from tocsin.release_accountant.core.life import CLOSING, LIFE, OVER, Step
from tocsin.release_accountant.core.obligations import obligation

S = CustodyState

WAYS = {
    S.EXPECTED: lambda: Desk().asks(),
    S.OWNED: lambda: Desk().made().asks(),
    S.TAKEN_OVER: lambda: Desk().made().asks().sees(Saw.HUMAN_KEY),
    S.RETAINED: lambda: then(Desk().made().asks(), Retain(reason="I look at it")),
    S.RELEASING: lambda: then(Desk().made().asks(), Release()),
    S.RELEASE_PENDING: lambda: then(Desk().made().asks(), Release(), notices.HostSilent(attempt=1)),
    S.RELEASE_UNKNOWN: lambda: then(Desk().made().asks(), Release()).answers(Saw.NOT_CONFIRMED),
    S.RELEASED: lambda: then(Desk().made(worktree=False).asks(), Release()).answers(Saw.TREE_ENDED),
    S.REUSED: lambda: then(Desk().made().asks(), notices.HandedOn(dispatch="r1.fix.1")),
    S.EXTERNAL: lambda: then(Desk(), notices.WorksElsewhere(host="h", pane="p9")),
}
"""How a settled worker comes into each state."""


def then(desk, *asks):
    for ask in asks:
        told = desk.tell(ask, COORDINATOR)
        assert not isinstance(told, Refusal)
    return desk


def a_worker(state):
    desk = WAYS[state]()
    assert desk.state.state is state
    return desk


def test_every_state_can_be_reached():
    assert set(WAYS) == set(S)
    assert set(LIFE.values()) | {S.EXPECTED} == set(S)


@pytest.mark.parametrize("state", sorted(set(S) - OVER), ids=str)
def test_every_state_that_is_not_over_has_a_verb_that_leads_to_a_proven_end(state):
    desk = a_worker(state)
    told = desk.release(PERSON, person=True)
    assert not isinstance(told, Refusal)
    assert desk.state.state in CLOSING
    desk.answers(Saw.ALREADY_ENDED, detail="nothing of it lives")
    assert desk.state.state is S.RELEASED
    assert desk.state.proof


@pytest.mark.parametrize("state", sorted(set(S) - OVER - {S.TAKEN_OVER}), ids=str)
def test_only_what_a_person_has_taken_over_needs_that_person(state):
    desk = a_worker(state)
    assert not isinstance(desk.release(COORDINATOR), Refusal)
    assert desk.state.state in CLOSING


@pytest.mark.parametrize("state", sorted(OVER), ids=str)
def test_what_is_over_is_no_obligation_and_closes_nothing(state):
    desk = a_worker(state)
    assert obligation(desk.state) is None
    desk.release()
    assert desk.state.state is state
    assert not desk.orders()


@pytest.mark.parametrize("state", sorted(S), ids=str)
def test_every_settled_worker_has_a_disposition_or_is_an_obligation_with_its_way_out(state):
    owed = obligation(a_worker(state).state)
    has_disposition = state in {S.TAKEN_OVER, S.RETAINED, *OVER}
    assert (owed is None) == has_disposition
    assert owed is None or all(step for step in owed.next)


@pytest.mark.parametrize("step", sorted(Step), ids=str)
def test_a_step_that_the_table_lacks_changes_nothing(step):
    over = [state for state in OVER if (state, step) in LIFE]
    assert over == ([S.RELEASED] if step is Step.ALIVE else [])


def test_an_abandoned_worker_is_an_obligation_and_can_still_be_closed():
    desk = Desk().made().settled("abandoned")
    assert desk.state.state is S.OWNED
    owed = obligation(desk.state)
    assert owed
    assert "tocsin custody release r1.build.1" in owed.next
    desk.release()
    assert desk.answers(Saw.TREE_ENDED).state.state is S.RELEASED
