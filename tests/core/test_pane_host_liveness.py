"""When a terminal has ended: a complete listing of its server's life lacks it, or the server's process is gone. Nothing else."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.pane_host.core.liveness import Answer, Server, ended

SERVER = Server("/tmp/tmux-0/default", 100, 5_000)
KNOWN = {"a": SERVER, "b": SERVER}


def answer(server=SERVER, panes=(), complete=True) -> Answer:
    return Answer(server, frozenset(panes), complete)


def test_a_complete_listing_of_the_same_life_that_lacks_a_pane_ends_it():
    assert ended(KNOWN, [answer(panes={"a"})], set()) == {"b"}


def test_a_server_whose_process_is_gone_ends_all_its_panes():
    assert ended(KNOWN | {"c": replace(SERVER, pid=7)}, [], {SERVER}) == {"a", "b"}


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ([], "silence"),
        ([answer(complete=False)], "an answer in part"),
        ([answer(replace(SERVER, started_ms=6_000))], "another life under the same pid"),
        ([answer(replace(SERVER, pid=101))], "another life on the same socket"),
        ([answer(replace(SERVER, socket="/tmp/tmux-0/other"))], "another server"),
    ],
)
def test_what_proves_nothing_ends_nothing(answers, why):
    assert ended(KNOWN, answers, set()) == set(), why


def test_a_start_time_that_is_not_known_tells_no_lives_apart():
    unseen = replace(SERVER, started_ms=None)
    assert ended({"a": unseen}, [answer(SERVER)], set()) == {"a"}
    assert ended({"a": SERVER}, [answer(unseen)], set()) == {"a"}


servers = st.builds(Server, st.sampled_from(["/s1", "/s2"]), st.integers(1, 3), st.sampled_from([None, 10, 20]))
names = st.sampled_from("abcdef")
answers = st.builds(Answer, servers, st.frozensets(names), st.booleans())


@given(st.dictionaries(names, servers), st.lists(answers, max_size=4), st.frozensets(servers, max_size=2))
def test_whatever_comes_a_pane_ends_only_by_a_proof_and_every_proof_ends_it(known, looks, gone):
    over = ended(known, looks, gone)
    for pane, server in known.items():
        lacking = any(
            look.complete
            and (look.server.socket, look.server.pid) == (server.socket, server.pid)
            and (None in (look.server.started_ms, server.started_ms) or look.server.started_ms == server.started_ms)
            and pane not in look.panes
            for look in looks
        )
        assert (pane in over) == (lacking or server in gone)


@given(st.dictionaries(names, servers), st.lists(answers, max_size=4))
def test_an_answer_in_part_changes_nothing(known, looks):
    partial = [replace(look, complete=False) for look in looks]
    assert ended(known, partial, set()) == set()
