"""Names as tokens, and bodies of other versions."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import a_hook, a_status
from tocsin.contract.ids import (
    TOKEN_BYTES_MAX,
    BadName,
    HostId,
    from_token,
    session_source,
    tmux_pane,
    token,
    worktree_id,
)
from tocsin.contract.messages import HookReported, Kind, WorktreesSorted
from tocsin.contract.refusals import ADVICE, Code, Refusal
from tocsin.contract.subjects import HOOK_REPORTED, PANE_STATUS, SUBJECTS
from tocsin.contract.versions import Unreadable, decode

NAMES = st.text(min_size=1).filter(lambda name: len(name.encode(errors="replace")) <= TOKEN_BYTES_MAX)


@given(NAMES)
def test_a_name_becomes_one_token_and_comes_back(name):
    try:
        encoded = token(name)
    except BadName:
        with pytest.raises(UnicodeEncodeError):
            name.encode()
        return
    assert from_token(encoded) == name
    assert not set(encoded) & set(". *>\r\n\t")
    assert encoded.isascii()


@pytest.mark.parametrize("name", ["", "x" * (TOKEN_BYTES_MAX + 1), "\ud800"])
def test_a_name_that_cannot_be_a_token_is_refused(name):
    with pytest.raises(BadName):
        token(name)


def test_j06_a_dotted_worktree_and_a_worktree_with_a_pane_are_two_places():
    dotted = PANE_STATUS.of(a_status(host="a.b", pane="c"))
    nested = PANE_STATUS.of(a_status(host="a", pane="b.c"))
    assert dotted != nested
    assert {subject.count(".") for subject in (dotted, nested)} == {PANE_STATUS.name.count(".") + 2}
    assert from_token(token("ключ 1")) == "ключ 1"


@pytest.mark.parametrize("name", ["r *", "team >", ">", "*", "a b", "w1\r\nPUB hub.admin 1\r\nx"])
def test_j06_no_wildcard_and_no_line_end_reaches_the_wire_from_a_name(name):
    subject = HOOK_REPORTED.of(a_hook(Kind.NOTED, host=name, source="s"))
    assert not set(subject) & set("*> \r\n")


def test_a_pattern_covers_all_below_the_keys_that_are_given():
    assert PANE_STATUS.at() == "pane.status.>"
    assert PANE_STATUS.at("h.1") == "pane.status.h%2E1.>"
    assert PANE_STATUS.at("h", "p") == "pane.status.h.p"


def test_the_same_pane_number_of_another_tmux_server_is_another_pane():
    assert tmux_pane("/tmp/tmux-1000/default,1716", "%0") == "default.1716.0"
    assert tmux_pane("/tmp/tmux-1000/default,1717", "%0") != tmux_pane("/tmp/tmux-1000/default,1716", "%0")


def test_worktrees_of_one_name_are_told_apart_by_host_and_path():
    ids = {worktree_id(HostId(host), path) for host in ("a", "b") for path in ("/x/api", "/y/api", "/")}
    assert len(ids) == 6
    assert all(one.startswith(("api-", "root-")) for one in ids)
    token(worktree_id(HostId("h"), "/" + "ж" * 300))


def test_sources_of_sessions_do_not_collide_over_the_seam_of_their_parts():
    assert session_source("a", "bc") != session_source("ab", "c")


def test_unknown_fields_are_ignored():
    payload = msgspec.json.encode({**msgspec.to_builtins(a_hook(Kind.NOTED)), "new": {"field": 1}})
    assert decode(HookReported, payload) == a_hook(Kind.NOTED)


@pytest.mark.parametrize("payload", [b'{"v": 2}', msgspec.json.encode({**msgspec.to_builtins(a_hook(Kind.NOTED)), "v": 2})])
def test_an_unknown_version_is_the_reason_whatever_else_is_wrong(payload):
    with pytest.raises(Unreadable, match="version 2, this reader knows 1"):
        decode(HookReported, payload)


@pytest.mark.parametrize("payload", [b"", b"[]", b"null", b'{"v": 1}', b"\xff"])
def test_what_is_no_body_is_unreadable(payload):
    with pytest.raises(Unreadable):
        decode(HookReported, payload)


def test_every_body_carries_its_version_on_the_wire():
    for subject in SUBJECTS.values():
        assert "v" in subject.body.__struct_fields__
    assert msgspec.json.decode(msgspec.json.encode(a_status()))["v"] == 1
    assert WorktreesSorted.VERSION == 1


def test_a_refusal_tells_what_to_do_next():
    said = Refusal(Code.NO_CREDENTIAL, "the credential is wrong").public()
    assert said == {
        "code": "no_credential",
        "message": "the credential is wrong",
        "retry": "after_change",
        "next": list(ADVICE[Code.NO_CREDENTIAL].next),
    }
