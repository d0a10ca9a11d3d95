"""What real agents sent: every recorded hook is understood, and none of its text gets through."""

import json
from collections.abc import Iterator

import msgspec
import pytest

from support import DATA
from tocsin.agents.agent import UnknownEvent
from tocsin.agents.registry import AGENTS
from tocsin.contract.messages import Ask, Kind

CAPTURES = sorted(path for path in (DATA / "captures").glob("*.jsonl") if not path.name.startswith("titles-"))

OF_THE_RIG = {"StopRewake", "StartRewake", "HttpStop", "HttpPreToolUse"}
"""A second handler or an http handler of the recorder on an event that is recorded beside it: no events of Claude Code."""

SPOKEN = {"prompt", "submitted_prompt", "text", "last_assistant_message", "prompt_response", "compact_summary", "message", "description"}


def hooks(path) -> Iterator[dict]:
    for line in path.read_text().splitlines():
        row = json.loads(line)
        if row["kind"] == "hook" and isinstance(row["payload"], dict):
            yield row


def keyed(text: str) -> str:
    return "hash"


def kinds(name: str, without: frozenset[Kind] = frozenset({Kind.NOTED, Kind.BUSY})) -> list[str]:
    """The neutral words of a recording, in order; `without` those that only say that work goes on."""
    path = DATA / "captures" / f"{name}.jsonl"
    agent = AGENTS[name.partition("-")[0]]
    said = (agent.translate(row["event"], row["payload"], keyed) for row in hooks(path) if row["event"] not in OF_THE_RIG)
    return [meaning.kind.value for meaning in said if meaning is not None and meaning.kind not in without]


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_every_recorded_event_is_known_to_its_agent(path):
    agent = AGENTS[path.name.partition("-")[0]]
    unknown = set()
    for row in hooks(path):
        try:
            agent.translate(row["event"], row["payload"], keyed)
        except UnknownEvent:
            unknown.add(row["event"])
    assert unknown <= OF_THE_RIG


def texts(value, under: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from texts(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner, under)
    elif isinstance(value, str) and under in SPOKEN and len(value) > 12:
        yield value


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_nothing_that_was_spoken_gets_through(path):
    agent = AGENTS[path.name.partition("-")[0]]
    for row in hooks(path):
        if row["event"] in OF_THE_RIG:
            continue
        said = msgspec.json.encode(agent.translate(row["event"], row["payload"], keyed)).decode()
        assert [text for text in texts(row["payload"]) if json.dumps(text)[1:-1] in said] == []


STORIES = [
    ("claude-2.1.332-b", "session_started prompted tool_started asked ask_noticed tool_ended turn_ended session_ended",
     "a grant shows only in the result of the call"),
    ("claude-2.1.332-d", "session_started prompted session_ended", "Esc fires nothing"),
    ("claude-2.1.332-e", "session_started prompted asked asked ask_noticed tool_ended turn_ended session_ended",
     "a question is asked by its call, and once more by its permission"),
    ("claude-2.1.332-bg", "session_started prompted tool_started asked tool_ended turn_ended prompted turn_ended session_ended",
     "the end of background work is a prompt"),
    ("claude-2.1.332-j",
     "session_started prompted tool_started child_started tool_ended turn_ended child_ended prompted turn_ended session_ended",
     "a subagent outlives its parent's turn"),
    ("claude-2.1.332-k",
     "session_started prompted turn_ended child_ended child_ended session_started compacted prompted turn_ended session_ended",
     "a compaction is a boundary of its own"),
    ("claude-2.1.332-l", "session_started prompted turn_failed session_ended", "a failure stands in for the stop"),
    ("codex-0.171.0-b", "session_started prompted tool_started asked tool_ended turn_ended session_ended session_ended",
     "notify says nothing; the daemon ends the set-up session too"),
    ("codex-0.171.0-c", "session_started prompted tool_started asked turn_interrupted session_ended session_ended",
     "a refusal is an interrupt"),
    ("codex-0.171.0-e", "session_started prompted asked tool_ended turn_ended session_ended session_ended",
     "the mode is `default` although the question was on the screen"),
    ("codex-0.171.0-j",
     "session_started prompted tool_started tool_ended child_started child_started turn_ended child_ended session_ended session_ended",
     "a prompt with an agent_id is the child's"),
    ("gemini-0.61.0-b", "session_started prompted tool_started asked tool_ended turn_ended", "the notice is the dialog"),
    ("gemini-0.61.0-c", "session_started prompted tool_started asked", "a refusal fires nothing"),
    ("qwen-0.24.4-b", "session_started prompted asked ask_noticed tool_started tool_ended turn_ended idle_noticed session_ended",
     "asked before it is announced; the empty prompt behind the result is no prompt"),
    ("qwen-0.24.4-d", "session_started prompted idle_noticed session_ended", "the idle notice is all that an Esc gives"),
    ("qwen-0.24.4-f", "session_started prompted turn_ended prompted turn_ended idle_noticed session_ended",
     "a stop that a hook answers goes on as a prompt"),
    ("opencode-1.18.33-b", "session_started prompted tool_started asked answered tool_ended turn_ended turn_ended",
     "both forms of idle come"),
    ("opencode-1.18.33-d", "session_started prompted turn_interrupted turn_ended turn_ended turn_ended turn_ended",
     "two idles follow an abort"),
    ("pi-0.73.1-d", "session_started prompted turn_interrupted", "the last message says aborted"),
    ("pi-0.73.1-l", "session_started prompted turn_failed", "the last message says error"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "story", "why"), STORIES, ids=[name for name, _, _ in STORIES])
def test_a_recording_tells_its_story(name, story, why):
    assert kinds(name) == story.split(), why


def test_a_request_and_its_call_have_the_same_hash_of_input_in_every_agent():
    # The one way to pair them where the request has no call id. The agents differ in what they add to the input.
    def hashed(text: str) -> str:
        return text

    pairs = 0
    for path in CAPTURES:
        agent = AGENTS[path.name.partition("-")[0]]
        if agent.name == "opencode":
            continue  # it names requests
        asked: set = set()
        calls: set = set()
        for row in hooks(path):
            said = None if row["event"] in OF_THE_RIG else agent.translate(row["event"], row["payload"], hashed)
            if said is None:
                continue
            if said.kind is Kind.ASKED and said.ask is Ask.PERMISSION:
                asked.add((said.child, said.tool, said.input_hash))
            elif said.kind is Kind.TOOL_STARTED:
                calls.add((said.child, said.tool, said.input_hash))
        assert asked <= calls, path.name
        pairs += len(asked)
    assert pairs > 10
