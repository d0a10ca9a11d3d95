"""Cursor, opencode, Copilot CLI, pi, aider and scripts: what each of their events means, and why."""

from typing import Any

import pytest

from tocsin.agents.agent import BadPayload, Translated
from tocsin.agents.registry import AGENTS
from tocsin.contract.messages import Ask, Kind, Origin

BASE: dict[str, dict[str, Any]] = {
    "cursor": {"conversation_id": "s1", "workspace_roots": ["/w", "/x"]},
    "opencode": {"sessionID": "s1"},
    "copilot": {"sessionId": "s1"},
    "pi": {"session": "s1"},
    "generic": {"session": "s1"},
}


def keyed(text: str) -> str:
    return f"<{text}>"


def say(agent: str, event: str, payload: dict[str, Any]) -> Translated | None:
    return AGENTS[agent].translate(event, BASE[agent] | payload, keyed)


CASES = [
    ("cursor", "beforeSubmitPrompt", {"prompt": "go", "generation_id": "g1"}, {"kind": Kind.PROMPTED, "turn": "g1", "cwd": "/w"},
     "the turn starts"),
    ("cursor", "preToolUse", {"tool_name": "Shell", "tool_input": {"command": "ls -l"}}, {"kind": Kind.TOOL_STARTED, "target": "ls"},
     "a call"),
    ("cursor", "beforeShellExecution", {"command": "rm -rf /"}, {"kind": Kind.BUSY, "target": None}, "fires for allowed commands too"),
    ("cursor", "afterAgentResponse", {"text": "secret"}, {"kind": Kind.NOTED}, "may come after the stop"),
    ("cursor", "postToolUseFailure", {"failure_type": "permission_denied"}, {"kind": Kind.TOOL_FAILED, "detail": "permission_denied"},
     "refused"),
    ("cursor", "subagentStart", {"subagent_type": "x"}, {"kind": Kind.NOTED, "child": None}, "its end could not be told from another's"),
    ("cursor", "stop", {"status": "completed"}, {"kind": Kind.TURN_ENDED}, "done"),
    ("cursor", "stop", {"status": "aborted"}, {"kind": Kind.TURN_INTERRUPTED, "interrupted": True}, "cancelled by the person"),
    ("cursor", "stop", {"status": "error"}, {"kind": Kind.TURN_FAILED}, "the person must look"),
    ("cursor", "stop", {"status": "new"}, {"kind": Kind.TURN_ENDED}, "a stop is an end, whatever its word"),
    ("cursor", "sessionEnd", {"reason": "aborted"}, {"kind": Kind.SESSION_ENDED, "interrupted": True, "detail": "other"},
     "cancelled with the session"),
    ("cursor", "sessionEnd", {"reason": "user_close"}, {"detail": "prompt_input_exit"}, "the person left"),
    ("opencode", "session.created", {"info": {"id": "s1", "directory": "/w"}}, {"kind": Kind.SESSION_STARTED, "cwd": "/w", "child": None},
     "a root session"),
    ("opencode", "session.created", {"sessionID": "c1", "info": {"id": "c1", "parentID": "s1"}},
     {"kind": Kind.CHILD_STARTED, "session": "c1", "parent": "s1", "child": "c1"}, "the only event that names the parent"),
    ("opencode", "session.status", {"status": {"type": "busy"}}, {"kind": Kind.BUSY, "parent": None}, "the main busy signal"),
    ("opencode", "session.status", {"status": {"type": "retry", "message": "secret"}}, {"kind": Kind.BUSY, "detail": "retry"},
     "a long back-off"),
    ("opencode", "session.status", {"status": {"type": "idle"}}, {"kind": Kind.TURN_ENDED}, "at rest"),
    ("opencode", "session.idle", {}, {"kind": Kind.TURN_ENDED}, "the older form"),
    ("opencode", "session.error", {"error": {"name": "MessageAbortedError"}}, {"kind": Kind.TURN_INTERRUPTED, "interrupted": True}, "Esc"),
    ("opencode", "session.error", {"error": {"name": "APIError", "data": {"message": "secret"}}}, {"kind": Kind.TURN_FAILED,
     "detail": "APIError"}, "failed"),
    ("opencode", "permission.asked", {"id": "per_1", "permission": "bash", "metadata": {"command": "touch x"}, "tool": {"callID": "c"}},
     {"kind": Kind.ASKED, "ask": Ask.PERMISSION, "call": "per_1", "tool": "bash", "target": "touch"},
     "the reply names the request, not the call"),
    ("opencode", "permission.updated", {"id": "per_1", "type": "edit", "metadata": {"filePath": "/w/app.py"}},
     {"kind": Kind.ASKED, "call": "per_1", "tool": "edit", "target": "app.py"}, "the older name"),
    ("opencode", "permission.replied", {"requestID": "per_1", "reply": "reject"}, {"kind": Kind.ANSWERED, "call": "per_1",
     "detail": "reject"}, "answered"),
    ("opencode", "permission.replied", {"permissionID": "per_1", "response": "once"}, {"call": "per_1", "detail": "once"}, "older fields"),
    ("opencode", "question.asked", {"id": "que_1", "questions": []}, {"kind": Kind.ASKED, "ask": Ask.QUESTION, "call": "que_1"},
     "a question"),
    ("opencode", "question.rejected", {"requestID": "que_1"}, {"kind": Kind.ANSWERED, "ask": Ask.QUESTION, "detail": "reject"},
     "dismissed"),
    ("opencode", "question.replied", {"requestID": "que_1", "answers": [["secret"]]}, {"kind": Kind.ANSWERED, "detail": None},
     "no answer is kept"),
    ("opencode", "tool.execute.before", {"input": {"sessionID": "s2", "tool": "bash", "callID": "c1"},
     "output": {"args": {"command": "ls"}}},
     {"kind": Kind.TOOL_STARTED, "session": "s2", "call": "c1", "target": "ls"}, "arguments stand in the output"),
    ("opencode", "tool.execute.after", {"input": {"sessionID": "s2", "tool": "bash", "callID": "c1", "args": {"command": "ls"}}},
     {"kind": Kind.TOOL_ENDED, "call": "c1", "target": "ls"}, "and here in the input"),
    ("opencode", "chat.message", {"input": {"sessionID": "s2"}, "output": {"parts": [{"text": "a"}, {"type": "file"}, {"text": "b"}]}},
     {"kind": Kind.PROMPTED, "session": "s2", "prompt_hash": "<a\nb>"}, "the text is in parts"),
    ("opencode", "chat.message", {"input": {"sessionID": "s2"}, "output": {"parts": [{"text": "a"}, {"text": "b", "synthetic": True}]}},
     {"origin": Origin.PERSON, "prompt_hash": "<a>"}, "what opencode added is not the person's"),
    ("opencode", "chat.message", {"input": {"sessionID": "s2"}, "output": {"parts": [{"text": "b", "synthetic": True}]}},
     {"origin": Origin.AGENT, "prompt_hash": None}, "nothing else in it: nobody wrote it"),
    ("opencode", "session.compacted", {}, {"kind": Kind.COMPACTED, "detail": "auto"}, "in the middle of a turn"),
    ("copilot", "sessionStart", {"source": "new"}, {"kind": Kind.SESSION_STARTED, "detail": "startup"}, "our word for it"),
    ("copilot", "sessionEnd", {"reason": "abort"}, {"kind": Kind.SESSION_ENDED, "interrupted": True, "detail": "other"}, "cancelled"),
    ("copilot", "sessionEnd", {"reason": "user_exit"}, {"detail": "prompt_input_exit"}, "the person left"),
    ("copilot", "userPromptSubmitted", {"prompt": "go"}, {"kind": Kind.PROMPTED, "origin": Origin.PERSON}, "the turn starts"),
    ("copilot", "preToolUse", {"toolName": "ask_user"}, {"kind": Kind.ASKED, "ask": Ask.QUESTION}, "a question is a tool"),
    ("copilot", "preToolUse", {"toolName": "bash", "toolArgs": '{"command": "npm test"}'}, {"kind": Kind.TOOL_STARTED, "target": "npm"},
     "JSON in JSON"),
    ("copilot", "preToolUse", {"toolName": "bash", "toolArgs": "[" * 60000}, {"target": None}, "and if it is too deep, none"),
    ("copilot", "permissionRequest", {"toolName": "bash"}, {"kind": Kind.NOTED, "ask": None},
     "before the rules: most are allowed without asking"),
    ("copilot", "notification", {"notification_type": "permission_prompt"}, {"kind": Kind.ASKED, "ask": Ask.PERMISSION}, "the true sign"),
    ("copilot", "notification", {"notification_type": "elicitation_dialog"}, {"kind": Kind.ASKED, "ask": Ask.FORM}, "a form"),
    ("copilot", "agentStop", {"stopReason": "end_turn"}, {"kind": Kind.TURN_ENDED}, "done"),
    ("copilot", "errorOccurred", {"recoverable": True, "error": {"name": "Timeout"}}, {"kind": Kind.NOTED}, "it goes on"),
    ("copilot", "errorOccurred", {"recoverable": False, "error": {"name": "Timeout", "message": "secret"}},
     {"kind": Kind.TURN_FAILED, "detail": "Timeout"}, "it does not"),
    ("copilot", "subagentStart", {"agentName": "x"}, {"kind": Kind.NOTED}, "the commonest sort sends none"),
    ("pi", "session_start", {"reason": "startup"}, {"kind": Kind.SESSION_STARTED, "detail": "startup"}, "at its prompt"),
    ("pi", "session_start", {"reason": "new"}, {"detail": "clear"}, "our word for it"),
    ("pi", "session_start", {"reason": "reload"}, {"kind": Kind.NOTED}, "the session goes on"),
    ("pi", "input", {"text": "go", "source": "interactive"}, {"kind": Kind.NOTED, "prompt_hash": None}, "may start no turn"),
    ("pi", "before_agent_start", {"prompt": "go"}, {"kind": Kind.PROMPTED, "origin": None, "prompt_hash": "<go>"},
     "who wrote it is not said"),
    ("pi", "agent_start", {}, {"kind": Kind.BUSY}, "the turn runs"),
    ("pi", "tool_execution_start", {"toolCallId": "c1", "toolName": "bash", "args": {"command": "ls"}},
     {"kind": Kind.TOOL_STARTED, "call": "c1", "tool": "bash", "target": "ls"}, "a call"),
    ("pi", "tool_execution_end", {"toolCallId": "c1", "isError": True}, {"kind": Kind.TOOL_FAILED, "call": "c1"}, "failed"),
    ("pi", "turn_end", {}, {"kind": Kind.NOTED}, "one request to the model, not the person's turn"),
    ("pi", "agent_end", {"messages": [{"stopReason": "stop"}]}, {"kind": Kind.TURN_ENDED}, "done"),
    ("pi", "agent_end", {"stopReason": "aborted"}, {"kind": Kind.TURN_INTERRUPTED}, "as a slim post says it"),
    ("pi", "agent_end", {"messages": []}, {"kind": Kind.TURN_ENDED}, "without a word it is an end"),
    ("pi", "session_shutdown", {"reason": "quit"}, {"kind": Kind.SESSION_ENDED, "detail": "prompt_input_exit"}, "the person left"),
    ("generic", "started", {}, {"kind": Kind.SESSION_STARTED, "detail": "startup"}, "at rest"),
    ("generic", "prompted", {"cwd": "/w"}, {"kind": Kind.PROMPTED, "cwd": "/w"}, "work begins"),
    ("generic", "asked", {"tool": "deploy", "call": "1"}, {"kind": Kind.ASKED, "ask": Ask.PERMISSION, "tool": "deploy", "call": "1"},
     "needs a person"),
    ("generic", "asked", {"ask": "question"}, {"ask": Ask.QUESTION}, "and says what for"),
    ("generic", "answered", {"call": "1"}, {"kind": Kind.ANSWERED, "ask": None, "call": "1"}, "needs nobody"),
    ("generic", "ended", {}, {"kind": Kind.TURN_ENDED}, "done"),
    ("generic", "failed", {"reason": "timeout"}, {"kind": Kind.TURN_FAILED, "detail": "timeout"}, "a word for it"),
    ("generic", "interrupted", {}, {"kind": Kind.TURN_INTERRUPTED, "interrupted": True}, "a person stopped it"),
    ("generic", "child_started", {"child": "c1"}, {"kind": Kind.CHILD_STARTED, "child": "c1"}, "work beside it"),
    ("generic", "left", {}, {"kind": Kind.SESSION_ENDED, "detail": "prompt_input_exit"}, "gone"),
]  # fmt: skip


@pytest.mark.parametrize(("agent", "event", "payload", "expected", "why"), CASES, ids=[f"{case[0]}-{case[1]}-{case[4]}" for case in CASES])
def test_an_event_means(agent, event, payload, expected, why):
    meaning = say(agent, event, payload)
    assert {name: getattr(meaning, name) for name in expected} == expected, why


NOTHING = [
    ("cursor", "sessionEnd", {"is_background_agent": True}, "another session in the same environment"),
    ("opencode", "session.error", {"sessionID": None}, "an error of the server"),
    ("opencode", "message.part.updated", {}, "very many"),
    ("opencode", "tui.toast.show", {}, "of a family that means nothing"),
    ("opencode", "session.status", {"status": {"type": "new"}}, "a status that is not known"),
    ("copilot", "notification", {"notification_type": "agent_idle"}, "agentStop has said so"),
    ("copilot", "preCompact", {}, "no change"),
    ("pi", "tool_call", {}, "the same call again"),
]


@pytest.mark.parametrize(("agent", "event", "payload", "why"), NOTHING, ids=[f"{case[0]}-{case[1]}-{case[3]}" for case in NOTHING])
def test_an_event_means_nothing(agent, event, payload, why):
    assert say(agent, event, payload) is None, why


@pytest.mark.parametrize("name", ["event", "type"])
def test_opencode_s_plugin_may_post_name_and_properties_as_one_object(name):
    post = {name: "session.idle", "properties": {"sessionID": "s1"}}
    meaning = AGENTS["opencode"].translate(None, post, keyed)
    assert meaning is not None
    assert (meaning.event, meaning.kind, meaning.session) == ("session.idle", Kind.TURN_ENDED, "s1")


def test_pi_s_extension_may_name_the_event_in_its_payload():
    assert AGENTS["pi"].translate(None, {"event": "agent_start", "session": "s1"}, keyed) is not None
    assert AGENTS["pi"].translate(None, {"type": "agent_start", "session": "s1"}, keyed) is not None


def test_the_one_event_of_aider_means_nothing():
    # It is the same for an answer and for a question, and has no payload.
    assert AGENTS["aider"].translate("notify", {}, keyed) is None


def test_a_script_that_asks_for_something_unheard_of_is_told():
    with pytest.raises(BadPayload, match="ask is not"):
        say("generic", "asked", {"ask": "money"})


def test_a_script_s_child_needs_a_name():
    with pytest.raises(BadPayload, match="child is missing"):
        say("generic", "child_ended", {})
