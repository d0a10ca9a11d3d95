"""What a transcript's line says. Only whole, exact shapes are evidence; a text that merely speaks of one is not."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.contract.messages import MarkKind
from tocsin.pane_host.core.marks import FORMATS, MARKS_MAX, Found, noted, read_line

SAID_MS = 1_796_000_000_123
SAID = "2026-11-30T00:53:20.123Z"


def claude(text="[Request interrupted by user]", **fields) -> bytes:
    """A line of Claude Code 2.1.332, with the keys that it has."""
    row = {
        "parentUuid": "u0", "isSidechain": False, "promptId": "p1", "type": "user",
        "message": {"role": "user", "content": [{"type": "text", "text": text}]},
        "uuid": "u1", "timestamp": SAID, "cwd": "/repo", "sessionId": "s1", "version": "2.1.332",
    }  # fmt: skip
    return json.dumps(row | fields, separators=(",", ":")).encode()


def codex(**context) -> bytes:
    payload = {"turn_id": "t1", "cwd": "/repo", "approval_policy": "on-request", "approvals_reviewer": "auto_review"} | context
    return json.dumps({"timestamp": SAID, "type": "turn_context", "payload": payload}, separators=(",", ":")).encode()


INTERRUPTED = Found(MarkKind.INTERRUPTED, "p1", "s1", SAID_MS)
REVIEWED = Found(MarkKind.AUTO_REVIEWED, "t1", None, SAID_MS)


@pytest.mark.parametrize("text", ["[Request interrupted by user]", "[Request interrupted by user for tool use]"])
def test_claude_writes_an_interruption_with_the_prompts_id(text):
    assert read_line("claude", claude(text)) == INTERRUPTED
    assert read_line("claude", claude(message={"role": "user", "content": text})) == INTERRUPTED


@pytest.mark.parametrize("reviewer", ["auto_review", "guardian_subagent"])
def test_a_codex_turn_names_who_reviews_its_approvals(reviewer):
    assert read_line("codex", codex(approvals_reviewer=reviewer)) == REVIEWED


TALK = "[Request interrupted by user]"


@pytest.mark.parametrize(
    ("agent", "line", "why"),
    [
        ("claude", claude(f"why does it say {TALK}?"), "a person speaks of it"),
        ("claude", claude(type="assistant"), "the model quotes it"),
        ("claude", claude(message={"role": "user", "content": [{"type": "tool_result", "content": TALK}]}), "a tool printed it"),
        ("claude", claude(isSidechain=True), "a child was interrupted"),
        ("claude", claude(promptId=None), "no prompt's id: an older format"),
        ("claude", claude(promptId=7), "an id of another type"),
        ("claude", claude(message=TALK), "a message of another shape"),
        ("claude", claude(message={"content": [[TALK], None, {"type": "text", "text": [TALK]}]}), "parts of another shape"),
        ("claude", claude()[:-2], "half a line"),
        ("claude", b'["[Request interrupted by user]"]', "no object"),
        ("claude", b'{"a":' * 5_000 + b'"[Request interrupted by user]"', "deep"),
        ("codex", codex(approvals_reviewer="user"), "the person reviews"),
        ("codex", codex(approvals_reviewer=["auto_review"]), "a reviewer of another type"),
        ("codex", codex(approvals_reviewer="somebody_new"), "a reviewer that is not known"),
        ("codex", codex(turn_id=None), "no turn"),
        ("codex", codex().replace(b"turn_context", b"response_item"), "another kind of line"),
        ("gemini", claude(), "an agent whose format is not known"),
    ],
)
def test_what_is_not_exactly_that_is_no_evidence(agent, line, why):
    assert read_line(agent, line) is None, why


@given(st.sampled_from(sorted(FORMATS)), st.binary(max_size=60), st.binary(max_size=60))
def test_no_line_can_break_the_reader(agent, before, behind):
    assert read_line(agent, before + FORMATS[agent].hint + behind) is None


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from([TALK, "user", "text", "turn_context", "auto_review"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "message", "content", "text", "promptId", "payload", "turn_id", "approvals_reviewer"]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(st.sampled_from(sorted(FORMATS)), json_values)
def test_a_mark_always_names_its_turn_whatever_the_shape_of_the_line(agent, value):
    found = read_line(agent, json.dumps(value).encode())
    assert found is None or found.turn


def test_a_line_without_a_time_counts_as_of_now_and_none_lies_ahead():
    undated = read_line("claude", claude(timestamp="soon"))
    assert noted((), undated, "s", 5)[0].at_ms == 5
    assert noted((), INTERRUPTED, "s", SAID_MS - 1)[0].at_ms == SAID_MS - 1
    assert noted((), INTERRUPTED, "s", SAID_MS + 1)[0].at_ms == SAID_MS


def test_the_session_is_the_lines_own_else_the_one_that_the_hooks_named():
    assert noted((), INTERRUPTED, "hooks", SAID_MS)[0].session == "s1"
    assert noted((), REVIEWED, "hooks", SAID_MS)[0].session == "hooks"


turns = st.lists(st.sampled_from("abcdefghijkl"), max_size=40)


@given(turns)
def test_marks_are_numbered_in_order_each_turn_once_and_the_last_few_kept(found):
    marks = ()
    for turn in found:
        marks = noted(marks, Found(MarkKind.INTERRUPTED, turn, "s", None), "s", 1)
        assert marks[-1].turn == turn or turn in [mark.turn for mark in marks]
    numbers = [mark.number for mark in marks]
    assert numbers == sorted(set(numbers))
    assert len({mark.turn for mark in marks}) == len(marks) <= MARKS_MAX
