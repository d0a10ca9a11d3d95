"""A hook's body into one HookReported: what is refused, what leaves, and when it happened."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import NOW_MS
from tocsin.agents.registry import AGENTS
from tocsin.contract.ids import HostId, session_source
from tocsin.contract.messages import HookReported, Kind
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.subjects import HOOK_REPORTED
from tocsin.hook_ingest.core.body import DEPTH_MAX, VALUES_MAX, Payload, parse
from tocsin.hook_ingest.core.excerpt import CHARACTERS_MAX, asked_text, masked_excerpt
from tocsin.hook_ingest.core.payload import SENT_AHEAD_MS_MAX, SENT_BEHIND_MS_MAX, Envelope, report

HOST = HostId("h")
STOP = {"session_id": "s1", "hook_event_name": "Stop", "cwd": "/repo", "prompt_id": "p1"}


def keyed(text: str) -> str:
    return "hash"


def read(payload: object) -> Payload:
    parsed = parse(json.dumps(payload).encode())
    assert isinstance(parsed, Payload)
    return parsed


def reported(
    payload: dict[str, Any] = STOP, agent: str = "claude", at_ms: int = NOW_MS, show_text: bool = False, **envelope: Any
) -> HookReported:
    body = report(AGENTS[agent], None, read(payload), Envelope(HOST, **envelope), at_ms, keyed, show_text=show_text)
    assert isinstance(body, HookReported)
    return body


def refused(payload: dict[str, Any], agent: str = "claude", **envelope: Any) -> Code:
    refusal = report(AGENTS[agent], None, read(payload), Envelope(HOST, **envelope), NOW_MS, keyed)
    assert isinstance(refusal, Refusal)
    return refusal.code


# ---------------------------------------------------------------- bodies

BODIES = [
    (b"", Code.BAD_JSON, "nothing"),
    (b"{", Code.BAD_JSON, "half of it"),
    (b"[]", Code.BAD_JSON, "a list"),
    (b"42", Code.BAD_JSON, "a number"),
    (b"null", Code.BAD_JSON, "nothing, in JSON"),
    (b'"text"', Code.BAD_JSON, "a text"),
    (b"{} {}", Code.BAD_JSON, "two"),
    (b'{"a": "b\nc"}', Code.BAD_JSON, "a control character that is not escaped"),
    (b'{"a": NaN}', Code.BAD_JSON, "no JSON number"),
    (b'{"a": -Infinity}', Code.BAD_JSON, "no JSON number"),
    (b'{"a": 1e999}', Code.BAD_JSON, "would be read as infinity"),
    (b'{"a": ' + b"9" * 400 + b".0}", Code.BAD_JSON, "so would this"),
    (b'{"a": ' + b"9" * 5000 + b"}", Code.BAD_JSON, "longer than Python reads"),
    (b'{"a": "\xff"}', Code.BAD_TEXT, "Latin-1"),
    ('{"a": 1}'.encode("utf-16"), Code.BAD_TEXT, "another encoding"),
    (b"[" * 20_000 + b"]" * 20_000, Code.TOO_DEEP, "every parser has a limit, ours is our own"),
    (b'{"a":' * 20_000 + b"1" + b"}" * 20_000, Code.TOO_DEEP, "the same in objects"),
    (b"[" * 20_000, Code.BAD_JSON, "and it must not reach the parser when it never ends"),
    (b"]" * 20_000 + b"[" * 20_000, Code.BAD_JSON, "nor the wrong way round"),
    (b'{"a":[' + b"[]," * VALUES_MAX + b"[]]}", Code.TOO_LARGE, "three million bytes that would be sixty"),
    (b'{"a":[' + b"1," * (VALUES_MAX + 1) + b"1]}", Code.TOO_LARGE, "numbers"),
    (b'{"a":[' + b'"",' * (VALUES_MAX + 1) + b"1]}", Code.TOO_LARGE, "texts"),
]


@pytest.mark.parametrize(("body", "code", "why"), BODIES, ids=[why for _, _, why in BODIES])
def test_a_body_is_refused(body, code, why):
    refusal = parse(body)
    assert isinstance(refusal, Refusal)
    assert refusal.code == code, why


FINE = [
    (b'{"a": {}}', "an object"),
    (b' {"a": 1.5e10, "b": -0.0}\r\n', "white space around it"),
    (b'{"a":' * (DEPTH_MAX - 1) + b"{}" + b"}" * (DEPTH_MAX - 1), "as deep as may be"),
    (json.dumps({"a": "[" * 20_000}).encode(), "brackets inside a text are no depth"),
    (json.dumps({"a": '\\"' + "[{" * 20_000 + '\\\\"'}).encode(), "nor behind quotes that do not end it"),
    (json.dumps({"a": "\\", "b": "[" * 100, "c": "\\\\"}).encode(), "nor behind backslashes at its end"),
    (json.dumps({"a": ", " * (VALUES_MAX + 1)}).encode(), "commas inside a text are no values"),
    (json.dumps({"a": "\ud800"}).encode(), "half a character, escaped"),
]


@pytest.mark.parametrize(("body", "why"), FINE, ids=[why for _, why in FINE])
def test_a_body_is_read(body, why):
    parsed = parse(body)
    assert isinstance(parsed, Payload), why
    assert parsed.fields == json.loads(body)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(max_size=8), JSON, max_size=5), st.booleans())
def test_every_object_is_read_as_it_is(value, ascii_only):
    parsed = parse(json.dumps(value, ensure_ascii=ascii_only).encode(errors="replace"))
    assert isinstance(parsed, Payload)


def depth_of(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max((depth_of(inner) for inner in value.values()), default=0)
    if isinstance(value, list):
        return 1 + max((depth_of(inner) for inner in value), default=0)
    return 0


@given(st.lists(st.sampled_from(['{"a":', "["]), min_size=DEPTH_MAX - 3, max_size=DEPTH_MAX + 3), st.text(alphabet='[{}]"\\,', max_size=6))
def test_the_limit_of_depth_is_exact_whatever_stands_in_texts(opened, text):
    inner = json.dumps([text] * 40)
    body = '{"a":' + "".join(opened) + inner + "".join("}" if one.startswith("{") else "]" for one in reversed(opened)) + "}"
    allowed = depth_of(json.loads(body)) <= DEPTH_MAX
    assert isinstance(parse(body.encode()), Payload) is allowed


@given(st.binary(max_size=200) | st.text(alphabet='{}[]",:\\ae1-. \n', max_size=120).map(str.encode))
def test_no_bytes_break_the_reader(body):
    assert isinstance(parse(body), Payload | Refusal)


# ------------------------------------------------------ which pane, which id

TMUX = {"tmux": "/tmp/tmux-1000/default,1716,0", "tmux_pane": "%7"}


def test_the_pane_is_the_one_that_the_environment_names():
    body = reported(**TMUX)
    assert (body.pane, body.source) == ("default.1716.7", "default.1716.7")


def test_a_launched_pane_s_own_name_comes_before_tmux():
    assert reported(tocsin_pane="w1.p2", **TMUX).pane == "w1.p2"


def test_without_a_pane_the_source_is_agent_and_session():
    body = reported()
    assert (body.pane, body.source) == (None, session_source("claude", "s1"))


def test_an_environment_that_is_another_pane_s_names_nothing():
    # Codex runs its hooks in a daemon with the environment of the first pane.
    body = reported(STOP, agent="codex", tocsin_pane="w1.p2", **TMUX)
    assert (body.pane, body.source) == (None, session_source("codex", "s1"))


@pytest.mark.parametrize(
    "envelope",
    [
        {"tmux": "screen", "tmux_pane": "%7"},
        {"tmux": "/tmp/x,12", "tmux_pane": "%7"},
        {"tmux": "/tmp/x,many,0", "tmux_pane": "%7"},
        {"tmux": "/tmp/x,12,0", "tmux_pane": "7"},
        {"tmux": "/tmp/x,12,0"},
        {"tmux_pane": "%7"},
    ],
)
def test_what_is_not_tmux_s_names_no_pane(envelope):
    assert reported(**envelope).pane is None


HOSTILE = ["w1\r\nPUB hub.admin 1\r\nx", "a\x00b", "\ud800", "a\x7f"]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("field", ["tocsin_pane", "tmux_pane"])
def test_j06_a_pane_that_hides_control_characters_is_refused(field, name):
    assert refused(STOP, tmux="/tmp/x,12,0", **{field: name}) == Code.BAD_FIELD


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("field", ["session_id", "prompt_id", "agent_id"])
def test_j06_an_id_that_hides_control_characters_is_refused(field, name):
    assert refused(STOP | {field: name}) == Code.BAD_FIELD


@pytest.mark.parametrize("host", ["", "h" * 201, "\ud800"])
def test_a_host_that_can_be_no_name_is_refused(host):
    body = report(AGENTS["claude"], None, read(STOP), Envelope(HostId(host)), NOW_MS, keyed)
    assert isinstance(body, Refusal)
    assert body.code == Code.BAD_FIELD


@pytest.mark.parametrize("name", ["a.b", "*", ">", "r *", "ключ 1", "../../etc"])
def test_j06_a_name_with_signs_of_subjects_stays_one_place(name):
    body = reported(tocsin_pane=name)
    assert HOOK_REPORTED.of(body).count(".") == 3
    assert body.pane == name


def test_an_over_long_pane_or_session_still_makes_a_subject():
    assert HOOK_REPORTED.of(reported(tocsin_pane="p" * 5000))
    assert HOOK_REPORTED.of(reported(STOP | {"session_id": "s" * 5000}))


REFUSED = [
    ({}, Code.BAD_FIELD, "no event"),
    ({"hook_event_name": "Stop"}, Code.BAD_FIELD, "no session"),
    ({"hook_event_name": "NoSuch", "session_id": "s1"}, Code.UNKNOWN_EVENT, "no such event"),
    (STOP | {"background_tasks": "none"}, Code.BAD_FIELD, "a list that is none"),
]


@pytest.mark.parametrize(("payload", "code", "why"), REFUSED, ids=[why for _, _, why in REFUSED])
def test_a_payload_is_refused(payload, code, why):
    assert refused(payload) == code, why


def test_a_refusal_holds_nothing_of_the_payload():
    refusal = report(AGENTS["claude"], None, read({"hook_event_name": "MARKER", "session_id": "MARKER"}), Envelope(HOST), NOW_MS, keyed)
    assert isinstance(refusal, Refusal)
    assert "MARKER" not in refusal.message


def test_an_event_that_means_nothing_is_no_report():
    assert report(AGENTS["claude"], "PreCompact", read({"session_id": "s1"}), Envelope(HOST), NOW_MS, keyed) is None


# ---------------------------------------------------------- folder and process


def test_the_folder_is_the_real_path_in_which_the_hook_ran():
    # The payload's may go through a link.
    assert reported(cwd="/real/repo").cwd == "/real/repo"
    assert reported(cwd=None).cwd == "/repo"
    assert reported(cwd="relative").cwd == "/repo"


def test_of_an_agent_whose_hooks_run_elsewhere_only_the_payload_knows_the_folder():
    payload = {"conversation_id": "s1", "hook_event_name": "stop", "workspace_roots": ["/repo"]}
    assert reported(payload, agent="cursor", cwd="/home/dev/.cursor").cwd == "/repo"


@pytest.mark.parametrize(("pid", "expected"), [(12, 12), (0, None), (-1, None), (2**40, None), (None, None)])
def test_a_process_id_is_one_or_none(pid, expected):
    assert reported(pid=pid).pid == expected


def test_a_headless_run_says_so():
    assert reported(attended=False).attended is False
    assert reported().attended is None


# ------------------------------------------------------------- two times

STAMPS = [
    (0, True, "now"),
    (-SENT_BEHIND_MS_MAX, True, "a day ago"),
    (-SENT_BEHIND_MS_MAX - 1, False, "longer ago"),
    (SENT_AHEAD_MS_MAX, True, "a little ahead: two machines' clocks differ"),
    (SENT_AHEAD_MS_MAX + 1, False, "from the future"),
    (10**15, False, "far from it"),
]


@pytest.mark.parametrize(("offset_ms", "orders", "why"), STAMPS, ids=[why for _, _, why in STAMPS])
def test_a_stamp_orders_events_only_if_its_clock_can_be_right(offset_ms, orders, why):
    body = reported(sent_ms=NOW_MS + offset_ms)
    assert body.sent_ms == (NOW_MS + offset_ms if orders else None), why
    assert body.at_ms == NOW_MS


def test_a_stamp_of_a_clock_that_is_known_to_be_off_orders_in_our_time_and_the_id_stays_the_senders():
    ahead_ms = 600_000
    stop = read(STOP)
    off = report(AGENTS["claude"], None, stop, Envelope(HOST, sent_ms=NOW_MS + ahead_ms - 5), NOW_MS, keyed, ahead_ms=ahead_ms)
    assert isinstance(off, HookReported)
    assert off.sent_ms == NOW_MS - 5
    assert off.id == reported(sent_ms=NOW_MS + ahead_ms - 5).id


def test_a_spooled_event_happened_as_long_ago_as_its_sender_s_own_clock_says():
    # That clock is an hour behind ours; only the difference counts.
    sent_ms = NOW_MS - 3_600_000
    body = reported(sent_ms=sent_ms, sent_now_ms=sent_ms + 10_000, spooled=True)
    assert (body.at_ms, body.spooled) == (NOW_MS - 10_000, True)


def test_no_age_is_negative():
    assert reported(sent_ms=NOW_MS, sent_now_ms=NOW_MS - 5_000, spooled=True).at_ms == NOW_MS
    assert reported(sent_ms=0, sent_now_ms=10**15, spooled=True).at_ms == 0


@pytest.mark.parametrize("envelope", [{"sent_ms": NOW_MS - 9_000}, {"sent_now_ms": NOW_MS}])
def test_a_spooled_event_without_both_stamps_happened_when_it_came(envelope):
    assert reported(spooled=True, **envelope).at_ms == NOW_MS


# ------------------------------------------------------------- identity


def test_a_transport_s_retry_is_the_same_message():
    first = reported(sent_ms=NOW_MS, at_ms=NOW_MS)
    again = reported(sent_ms=NOW_MS, at_ms=NOW_MS + 5_000, sent_now_ms=NOW_MS + 5_000, spooled=True)
    assert first.id == again.id


def test_white_space_around_a_body_makes_no_other_message():
    # The spool keeps the body with a line's end less.
    one, other = (parse(json.dumps(STOP).encode() + end) for end in (b"", b"\n\n"))
    assert isinstance(one, Payload)
    assert isinstance(other, Payload)
    assert one.digest == other.digest


@pytest.mark.parametrize(
    ("change", "envelope"),
    [({"prompt_id": "p2"}, {"sent_ms": NOW_MS}), ({}, {"sent_ms": NOW_MS + 1}), ({"hook_event_name": "SubagentStop"}, {"sent_ms": NOW_MS})],
)
def test_another_body_time_or_event_is_another_message(change, envelope):
    assert reported(sent_ms=NOW_MS).id != reported(STOP | change, **envelope).id


def test_equal_bodies_of_one_moment_in_two_panes_are_two_messages():
    said = {"event": "asked", "session": "s1"}
    assert reported(said, "generic", sent_ms=NOW_MS, tocsin_pane="p1").id != reported(said, "generic", sent_ms=NOW_MS, tocsin_pane="p2").id


def test_two_equal_bodies_of_a_sender_without_a_clock_are_two_messages():
    assert reported(at_ms=NOW_MS).id != reported(at_ms=NOW_MS + 1).id


def test_an_event_s_name_may_come_from_the_hook_command():
    payload = read({"sessionId": "s1"})
    body = report(AGENTS["copilot"], None, payload, Envelope(HOST, event="agentStop"), NOW_MS, keyed)
    assert isinstance(body, HookReported)
    assert (body.event, body.kind) == ("agentStop", Kind.TURN_ENDED)


# -------------------------------------------------------- no free text leaves

MARKER = "mark er§"
"""Free text: neither a word, nor a path, nor a program's name."""

FREE_TEXT = [
    ("claude", {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "prompt": MARKER}),
    ("claude", {"hook_event_name": "PreToolUse", "session_id": "s1", "tool_name": "Bash",
     "tool_input": {"command": f"X={MARKER} ls {MARKER}"}}),
    ("claude", {"hook_event_name": "PreToolUse", "session_id": "s1", "tool_name": "Bash", "tool_input": {"command": MARKER}}),
    ("claude", {"hook_event_name": "PermissionRequest", "session_id": "s1", "tool_name": "Write",
                "tool_input": {"file_path": f"/{MARKER}/app.py", "content": MARKER}}),
    ("claude", {"hook_event_name": "PreToolUse", "session_id": "s1", "tool_name": "AskUserQuestion",
     "tool_input": {"questions": [{"question": MARKER}]}}),
    ("claude", {"hook_event_name": "PostToolUse", "session_id": "s1", "tool_name": "Bash", "tool_response": {"stdout": MARKER}}),
    ("claude", {"hook_event_name": "PostToolUseFailure", "session_id": "s1", "error": MARKER}),
    ("claude", {"hook_event_name": "Stop", "session_id": "s1", "last_assistant_message": MARKER,
                "background_tasks": [{"id": "b", "type": MARKER, "command": MARKER, "description": MARKER}],
                "session_crons": [{"prompt": MARKER}]}),
    ("claude", {"hook_event_name": "StopFailure", "session_id": "s1", "error": MARKER, "error_details": MARKER}),
    ("claude", {"hook_event_name": "SessionEnd", "session_id": "s1", "reason": MARKER}),
    ("claude", {"hook_event_name": "Notification", "session_id": "s1", "notification_type": "permission_prompt", "message": MARKER,
     "title": MARKER}),
    ("claude", {"hook_event_name": "Elicitation", "session_id": "s1", "mcp_server_name": "db", "message": MARKER, "url": MARKER}),
    ("claude", {"hook_event_name": "ElicitationResult", "session_id": "s1", "action": MARKER, "content": {"a": MARKER}}),
    ("claude", {"hook_event_name": "PostCompact", "session_id": "s1", "trigger": "auto", "compact_summary": MARKER}),
    ("codex", {"hook_event_name": "PreToolUse", "session_id": "s1", "tool_name": "shell", "tool_input": {"command": ["bash",
     "-lc", f"ls {MARKER}"]}}),
    ("gemini", {"hook_event_name": "AfterAgent", "session_id": "s1", "prompt": MARKER, "prompt_response": MARKER}),
    ("gemini", {"hook_event_name": "Notification", "session_id": "s1", "notification_type": "ToolPermission", "message": MARKER,
                "details": {"type": "exec", "title": MARKER, "command": f"ls {MARKER}", "rootCommand": MARKER}}),
    ("qwen", {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "prompt": MARKER, "submitted_prompt": MARKER}),
    ("cursor", {"hook_event_name": "beforeShellExecution", "conversation_id": "s1", "command": MARKER, "user_email": MARKER}),
    ("opencode", {"event": "chat.message", "properties": {"input": {"sessionID": "s1"}, "output": {"parts": [{"text": MARKER}]}}}),
    ("opencode", {"event": "question.asked", "properties": {"sessionID": "s1", "id": "q", "questions": [{"question": MARKER}]}}),
    ("opencode", {"event": "session.error", "properties": {"sessionID": "s1", "error": {"name": MARKER, "data": {"message": MARKER}}}}),
    ("pi", {"event": "before_agent_start", "session": "s1", "prompt": MARKER}),
    ("generic", {"event": "failed", "session": "s1", "reason": MARKER}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("agent", "payload"), FREE_TEXT, ids=[f"{agent}-{payload.get('hook_event_name') or payload['event']}" for agent, payload in FREE_TEXT]
)
def test_free_text_leaves_only_as_a_keyed_hash(agent, payload):
    assert MARKER.split()[1] not in msgspec.json.encode(reported(payload, agent=agent)).decode()


SPOKEN_FIELDS = """
    prompt submitted_prompt tool_input tool_response error message title last_assistant_message description command text reason source
    trigger detail status notification_type details background_tasks session_crons crons permission_mode prompt_response questions metadata output
    input args toolArgs is_interrupt compact_summary info properties parts messages stopReason workspace_roots recoverable ask duration_ms
"""
FIELDS = st.sampled_from(SPOKEN_FIELDS.split())
MARKED = st.recursive(
    st.just(MARKER) | st.text(max_size=5).map(lambda text: text + MARKER) | st.none() | st.booleans() | st.integers() | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=4),
    max_leaves=10,
)
EVENTS = sorted(
    {"SessionStart", "SessionEnd", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure", "Stop",
    "StopFailure",
     "SubagentStart", "SubagentStop", "TeammateIdle", "Notification", "Elicitation", "ElicitationResult", "PostCompact", "Interrupt",
     "BeforeAgent",
     "BeforeTool", "AfterTool", "AfterAgent", "beforeSubmitPrompt", "preToolUse", "postToolUse", "postToolUseFailure", "stop",
     "sessionStart",
     "sessionEnd", "session.created", "session.status", "session.idle", "session.error", "permission.asked", "permission.replied",
     "question.asked",
     "tool.execute.before", "tool.execute.after", "chat.message", "notification", "agentStop", "errorOccurred", "session_start",
     "session_shutdown",
     "before_agent_start", "tool_execution_start", "agent_end", "asked", "failed", "left", "notify", "PreCompact", "nothing of ours"}
)  # fmt: skip
SESSIONS = {"session_id": "s1", "conversation_id": "s1", "sessionID": "s1", "sessionId": "s1", "session": "s1"}


@settings(max_examples=400)
@given(st.sampled_from(sorted(AGENTS)), st.sampled_from(EVENTS), st.dictionaries(FIELDS, MARKED, max_size=8), st.booleans())
def test_whatever_an_agent_sends_is_reported_without_its_text_or_refused(agent, event, payload, spooled):
    parsed = Payload(SESSIONS | {"id": "x1", "tool_name": "Bash", "input": {"sessionID": "s1"}} | payload, "digest")
    body = report(AGENTS[agent], event, parsed, Envelope(HOST, spooled=spooled), NOW_MS, keyed)
    if isinstance(body, HookReported):
        assert MARKER.split()[1] not in msgspec.json.encode(body).decode()
        assert HOOK_REPORTED.of(body)
    elif body is not None:
        assert body.code in {Code.BAD_FIELD, Code.UNKNOWN_EVENT}
        assert MARKER.split()[1] not in body.message


@settings(max_examples=300)
@given(
    st.sampled_from(sorted(AGENTS)),
    st.none() | st.sampled_from(EVENTS),
    st.dictionaries(st.sampled_from([*SESSIONS, "hook_event_name", "event", "type", "cwd", "transcript_path", "agent_id", "prompt_id",
    "tool_use_id",
                                     "tool_name", "tool_input", "background_tasks", "info", "status", "input", "output", "details"]), JSON),
    st.builds(Envelope, host=st.text(max_size=9), cwd=st.none() | st.text(),
              sent_ms=st.none() | st.integers(), sent_now_ms=st.none() | st.integers(),
              spooled=st.booleans(), tmux=st.none() | st.text(), tmux_pane=st.none() | st.text(), tocsin_pane=st.none() | st.text(),
              pid=st.none() | st.integers(), attended=st.none() | st.booleans(), event=st.none() | st.text()),
    st.integers(0, 2**53),
)  # fmt: skip
def test_nothing_that_can_be_sent_breaks_a_report(agent, event, payload, envelope, at_ms):
    body = report(AGENTS[agent], event, Payload(payload, "digest"), envelope, at_ms, keyed, show_text=True)
    if isinstance(body, HookReported):
        again = msgspec.json.decode(msgspec.json.encode(body), type=HookReported)
        assert again == body
        assert HOOK_REPORTED.of(body)
        assert 0 <= body.at_ms <= at_ms


# ------------------------------------------------------------- excerpts

BASH = {
    "hook_event_name": "PermissionRequest",
    "session_id": "s1",
    "tool_name": "Bash",
    "tool_input": {"command": "npm publish --token hunter2"},
}


def test_an_excerpt_is_kept_only_when_it_is_asked_for():
    assert reported(BASH).excerpt is None
    assert reported(BASH, show_text=True).excerpt == "npm publish --token ***"


def test_of_what_is_not_asked_there_is_no_excerpt():
    assert reported(BASH | {"hook_event_name": "PostToolUse"}, show_text=True).excerpt is None
    prompt = {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "prompt": "fix it"}
    assert reported(prompt, show_text=True).excerpt is None


ASKED = [
    ({"tool_input": {"questions": [{"header": "File", "question": "Keep it?"}]}}, "Keep it?"),
    ({"tool_input": {"plan": "1. Read"}}, "1. Read"),
    ({"tool_input": {"file_path": "/w/app.py", "content": "x"}}, "/w/app.py"),
    ({"details": {"type": "exec", "title": "Confirm", "command": "touch x"}}, "touch x"),
    ({"event": "permission.asked", "properties": {"metadata": {"command": "touch x"}}}, "touch x"),
    ({"questions": [{"question": "Keep it?"}]}, "Keep it?"),
    ({"mcp_server_name": "db", "message": "Your name?"}, "Your name?"),
    ({"tool_input": {"count": 1}}, None),
    ({"tool_input": None, "questions": [None]}, None),
]


@pytest.mark.parametrize(("payload", "expected"), ASKED)
def test_what_is_asked_is_found_where_agents_keep_it(payload, expected):
    assert asked_text(payload) == expected


SECRETS = [
    ("curl -H 'Authorization: Bearer hunter2abc' x", "hunter2abc"),
    ("curl https://me:hunter2@host/path", "hunter2"),
    ("git clone https://hunter2@host/path", "hunter2"),
    ("curl 'https://host/?a=1&access_token=hunter2&b=2'", "hunter2"),
    ("DB_PASSWORD=hunter2 npm start", "hunter2"),
    ("export API_KEY='hunter two'", "hunter"),
    ("login --password hunter2", "hunter2"),
    ("login --password=hunter2", "hunter2"),
    ("curl -u me:hunter2 x", "hunter2"),
    ('{"client_secret": "hunter2"}', "hunter2"),
    ("password: hunter2", "hunter2"),
    ("use sk-ant-api03-Hunter2Hunter2", "Hunter2"),
    ("ghp_Hunter2Hunter2Hunter2", "Hunter2"),
    ("AKIAIOSFODNN7EXAMPLE", "IOSFODNN"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-def_ghi", "abc-def"),
    ("echo 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", "9f86d081"),
    ("echo dGhpcyBpcyBhIHNlY3JldCBvZiBzb21lIGtpbmQ0", "dGhpcyBp"),
    ("-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----", "hunter2"),
    ("-----BEGIN RSA PRIVATE KEY-----\nhunter2 and no end", "hunter2"),
    ("word " * 196 + "hunter2" * 10, "hunter2"),
]


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_an_excerpt_masks_what_looks_like_a_secret(text, secret):
    assert secret not in masked_excerpt(text)


@pytest.mark.parametrize(
    "text", ["Keep the old file?", "edit src/components/Keyboard/index.ts", "npm run build && npm test", "rotate the token today"]
)
def test_an_excerpt_leaves_ordinary_words_alone(text):
    assert masked_excerpt(text) == text


@given(st.text(st.characters()) | st.text(st.characters(categories=["Cs", "Cc", "Zs"])))
def test_an_excerpt_is_one_short_valid_line(text):
    shown = masked_excerpt(text)
    assert len(shown) <= CHARACTERS_MAX
    assert "\n" not in shown
    assert shown == shown.encode().decode()
