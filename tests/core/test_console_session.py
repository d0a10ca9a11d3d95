"""A session is what we signed, until its time is over; nothing else is one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW_MS
from tocsin.console.core.session import SESSION_MS, Scope, Session, digest_of, is_to_renew, key_of, read, sign

KEY = key_of(b"instance.secret-of-the-command")
SESSION = Session(name="dev", scope=Scope.COMMAND, until_ms=NOW_MS + 1)


@given(st.text(), st.sampled_from(Scope))
def test_a_session_is_read_as_it_was_signed(name, scope):
    session = Session(name=name.encode(errors="replace").decode(), scope=scope, until_ms=NOW_MS + 1)
    assert read(sign(session, KEY), KEY, NOW_MS) == session


def test_a_session_ends_at_its_moment():
    assert read(sign(SESSION, KEY), KEY, NOW_MS) == SESSION
    assert read(sign(SESSION, KEY), KEY, NOW_MS + 1) is None


def test_another_command_credential_ends_every_session():
    assert read(sign(SESSION, KEY), key_of(b"instance.another"), NOW_MS) is None


@given(st.integers(0, 500), st.characters(codec="ascii"))
def test_a_session_with_any_character_changed_is_none(at, other):
    signed = sign(SESSION, KEY)
    at %= len(signed)
    changed = signed[:at] + other + signed[at + 1 :]
    found = read(changed, KEY, NOW_MS)
    # The last character of base64 holds bits that stand for nothing: the bytes, and so the session, stay the same.
    assert found is None or found == SESSION


@pytest.mark.parametrize("cookie", ["", ".", "a.b", "=", "é.é", sign(SESSION, KEY).partition(".")[0]], ids=repr)
def test_what_is_no_session_is_none(cookie):
    assert read(cookie, KEY, NOW_MS) is None


def test_a_reader_cannot_make_itself_a_commander():
    reader, commander = (sign(Session(name="dev", scope=scope, until_ms=NOW_MS + 1), KEY) for scope in (Scope.READ, Scope.COMMAND))
    assert read(commander.partition(".")[0] + "." + reader.partition(".")[2], KEY, NOW_MS) is None


def test_a_session_is_renewed_when_half_of_it_is_over():
    fresh = Session(name="dev", scope=Scope.READ, until_ms=NOW_MS + SESSION_MS)
    assert not is_to_renew(fresh, NOW_MS + SESSION_MS // 2)
    assert is_to_renew(fresh, NOW_MS + SESSION_MS // 2 + 1)


def test_what_a_ticket_is_stored_under_does_not_tell_the_ticket():
    assert "ticket-abc" not in digest_of("ticket-abc")
    assert digest_of("ticket-abc") != digest_of("ticket-abd")
