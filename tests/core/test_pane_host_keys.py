"""Where a person's last key went. tmux tells only when a client was active, and which pane is before it."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tocsin.pane_host.core.keys import remembered, typed
from tocsin.pane_host.core.listing import Client

SOMEBODY = Client("/dev/pts/1", created_s=100, activity_s=100, pane="%1", person=True)


def active(client: Client, at_s: int, pane: str | None = None) -> Client:
    return replace(client, activity_s=at_s, pane=pane or client.pane)


def test_a_key_belongs_to_the_pane_before_its_client():
    assert typed(remembered([SOMEBODY]), [active(SOMEBODY, 107)]) == {"%1": 107_000}


def test_without_activity_there_was_no_key():
    assert typed(remembered([SOMEBODY]), [SOMEBODY]) == {}


def test_a_look_at_another_pane_is_no_key_there():
    assert typed(remembered([SOMEBODY]), [active(SOMEBODY, 107, "%2")]) == {"%1": 107_000}


def test_attaching_is_no_key_and_whoever_typed_since_did_so_here():
    assert typed({}, [SOMEBODY]) == {}
    assert typed({}, [active(SOMEBODY, 107)]) == {"%1": 107_000}


def test_a_program_in_control_mode_is_nobody():
    program = replace(SOMEBODY, person=False)
    assert typed(remembered([program]), [active(program, 107)]) == {}


def test_a_client_of_the_same_name_that_came_later_is_another_one():
    other = Client(SOMEBODY.name, created_s=200, activity_s=200, pane="%2", person=True)
    assert typed(remembered([active(SOMEBODY, 150)]), [other]) == {}


def test_of_two_people_before_one_pane_the_later_key_counts():
    friend = replace(SOMEBODY, name="/dev/pts/2")
    assert typed(remembered([SOMEBODY, friend]), [active(SOMEBODY, 107), active(friend, 105)]) == {"%1": 107_000}


clients = st.builds(Client, st.sampled_from("ab"), st.just(1), st.integers(1, 9), st.sampled_from(["%1", "%2"]), st.booleans())
looks = st.lists(st.lists(clients, unique_by=lambda client: client.name), max_size=6)


@given(looks)
def test_a_key_is_told_only_of_a_pane_that_an_active_person_was_seen_in(many):
    before: list[Client] = []
    for now in many:
        for pane, at_ms in typed(remembered(before), now).items():
            assert any(client.person and client.activity_s * 1000 == at_ms for client in now)
            assert pane in {client.pane for client in (*before, *now) if client.person or client in before}
        before = now
