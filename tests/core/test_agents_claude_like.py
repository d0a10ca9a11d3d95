"""Claude Code, Codex, Gemini CLI and Qwen Code: what each of their events means, and why."""

from typing import Any

import pytest

from tocsin.agents.agent import BadPayload, Translated, UnknownEvent
from tocsin.agents.registry import AGENTS
from tocsin.contract.messages import Ask, Kind, Origin, Task


def keyed(text: str) -> str:
    return f"<{text}>"


def say(agent: str, event: str, **payload: Any) -> Translated | None:
    return AGENTS[agent].translate(None, {"session_id": "s1", "hook_event_name": event, **payload}, keyed)


def said(agent: str, event: str, **payload: Any) -> Translated:
    meaning = say(agent, event, **payload)
    assert meaning is not None
    return meaning


def picked(meaning: Translated, *names: str) -> tuple:
    return tuple(getattr(meaning, name) for name in names)


BASH = {"tool_name": "Bash", "tool_input": {"command": "npm test", "description": "Tests"}}

CASES = [
    ("claude", "SessionStart", {"source": "clear"}, {"kind": Kind.SESSION_STARTED, "detail": "clear"},
     "the word decides what a start means"),
    ("claude", "SessionStart", {"source": "compact", "agent_id": "a1"}, {"child": "a1"}, "a child's start is not the session's"),
    ("claude", "SessionEnd", {"reason": "prompt_input_exit"}, {"kind": Kind.SESSION_ENDED, "detail": "prompt_input_exit"},
     "the person left"),
    ("claude", "SessionEnd", {"reason": "I typed my password"}, {"detail": None}, "a reason is one word or none"),
    ("claude", "UserPromptSubmit", {"prompt": "fix it", "prompt_id": "p1"}, {"kind": Kind.PROMPTED, "origin": Origin.PERSON, "turn": "p1"},
     "typed"),
    ("claude", "UserPromptSubmit", {"prompt": "<task-notification>\n<summary>x"}, {"origin": Origin.AGENT},
     "background work has ended, or a wake"),
    ("claude", "UserPromptSubmit", {"prompt": "<system-reminder>x"}, {"origin": Origin.AGENT}, "injected"),
    ("claude", "UserPromptSubmit", {"prompt": "why <task-notification>?"}, {"origin": Origin.PERSON}, "a tag counts only at the start"),
    ("claude", "UserPromptSubmit", {"prompt": "<div> is broken"}, {"origin": Origin.PERSON}, "an unknown tag is the person's text"),
    ("claude", "UserPromptSubmit", {"prompt": "This session is being continued from a previous conversation that ran out of context."},
     {"origin": Origin.COMPACTION}, "no turn follows the summary of a compaction"),
    ("claude", "UserPromptSubmit", {"prompt": '\n\n<pasted_content id="1">a\nb\n</pasted_content id="1">'},
     {"origin": Origin.PERSON, "prompt_hash": "<a\nb>"}, "a long paste is known by what was pasted"),
    ("claude", "UserPromptSubmit", {"prompt": "go", "agent_id": "a1"}, {"kind": Kind.CHILD_STARTED, "child": "a1", "prompt_hash": None},
     "the child's"),
    ("claude", "PreToolUse", {**BASH, "tool_use_id": "t1"},
     {"kind": Kind.TOOL_STARTED, "call": "t1", "tool": "Bash", "target": "npm", "ask": None}, "an ordinary call"),
    ("claude", "PreToolUse", {"tool_name": "AskUserQuestion", "tool_use_id": "t1"}, {"kind": Kind.ASKED, "ask": Ask.QUESTION, "call": "t1"},
     "a question stands from the call on, in every mode"),
    ("claude", "PreToolUse", {"tool_name": "ExitPlanMode", "tool_use_id": "t1"}, {"kind": Kind.ASKED, "ask": Ask.PLAN}, "so does a plan"),
    ("claude", "PermissionRequest", BASH, {"kind": Kind.ASKED, "ask": Ask.PERMISSION, "call": None, "reviewed": False},
     "there is no call id"),
    ("claude", "PermissionRequest", {"tool_name": "AskUserQuestion", "tool_input": {"questions": []}}, {"ask": Ask.QUESTION},
     "recognised as the same prompt by tool and input"),
    ("claude", "PermissionRequest", {**BASH, "permission_mode": "dontAsk"}, {"reviewed": True}, "refused by itself, nobody sees a dialog"),
    ("claude", "PermissionRequest", {**BASH, "agent_id": "a1"}, {"kind": Kind.ASKED, "child": "a1"}, "the dialog of a child is shown"),
    ("claude", "PermissionDenied", {**BASH, "tool_use_id": "t1"}, {"kind": Kind.DENIED, "call": "t1"},
     "the classifier refused; nobody was asked"),
    ("claude", "PostToolUse", {**BASH, "tool_response": {"backgroundTaskId": "b1"}}, {"launched": Task(id="b1", kind="shell")},
     "a shell stays"),
    ("claude", "PostToolUse", {"tool_name": "Agent", "tool_response": {"status": "async_launched", "agentId": "a1"}},
     {"launched": Task(id="a1", kind="agent")}, "the only notice before the next stop lists it"),
    ("claude", "PostToolUse", {"tool_name": "Agent", "tool_response": {"status": "completed", "agentId": "a1"}}, {"launched": None},
     "it is over"),
    ("claude", "PostToolUse", {"tool_name": "Workflow", "tool_response": {"status": "async_launched", "taskId": "w1",
     "taskType": "local_workflow"}},
     {"launched": Task(id="w1", kind="local_workflow")}, "a kind without a word of ours keeps its own"),
    ("claude", "PostToolUse", {"tool_name": "TaskStop", "tool_input": {"task_id": "b1"}}, {"stopped": "b1"}, "ended by the agent"),
    ("claude", "PostToolUse", {"tool_name": "KillShell", "tool_input": {"shell_id": "b1"}}, {"stopped": "b1"},
     "an older name of the field"),
    ("claude", "PostToolUse", {**BASH, "tool_response": "text"}, {"kind": Kind.TOOL_ENDED, "launched": None},
     "a response may be of any type"),
    ("claude", "PostToolUseFailure", {**BASH, "is_interrupt": True}, {"kind": Kind.TOOL_FAILED, "interrupted": True}, "a hint, not an end"),
    ("claude", "Stop", {"background_tasks": [], "session_crons": []}, {"kind": Kind.TURN_ENDED, "tasks": (), "timers": False},
     "nothing runs"),
    ("claude", "Stop", {}, {"tasks": None}, "absent is not none"),
    ("claude", "Stop", {"background_tasks": [{"id": "a1", "type": "subagent", "status": "running"}, {"id": "b1", "type": "shell",
     "status": "completed"}]},
     {"tasks": (Task(id="a1", kind="agent"), Task(id="b1", kind="shell", running=False))}, "what runs, in our words"),
    ("claude", "Stop", {"background_tasks": [{"id": "c1", "type": "cloud session", "status": "paused"}, "odd"]},
     {"tasks": (Task(id="c1", kind="cloud_session"), Task(id="unnamed-other", kind="other"))}, "unknown is not done"),
    ("claude", "Stop", {"session_crons": [{"id": "c"}]}, {"timers": True}, "the session will wake itself"),
    ("claude", "Stop", {"agent_id": "a1", "background_tasks": []}, {"kind": Kind.CHILD_ENDED, "child": "a1", "tasks": None},
     "the child's end"),
    ("claude", "StopFailure", {"error": "rate_limit"}, {"kind": Kind.TURN_FAILED, "detail": "rate_limit"}, "in place of a stop"),
    ("claude", "SubagentStop", {"agent_id": "a1", "background_tasks": [{"id": "a1"}]}, {"kind": Kind.CHILD_ENDED, "tasks": None},
     "the list is the parent's, and still names the child"),
    ("claude", "TeammateIdle", {"teammate_name": "tester"}, {"kind": Kind.CHILD_ENDED, "child": "tester", "detail": "idle"},
     "it holds no longer"),
    ("claude", "Notification", {"notification_type": "permission_prompt"}, {"kind": Kind.ASK_NOTICED, "ask": Ask.PERMISSION},
     "six seconds late"),
    ("claude", "Notification", {"notification_type": "elicitation_url_dialog"}, {"kind": Kind.ASK_NOTICED, "ask": Ask.FORM}, "a form"),
    ("claude", "Notification", {"notification_type": "idle_prompt"}, {"kind": Kind.IDLE_NOTICED}, "at rest for a minute"),
    ("claude", "Elicitation", {"mcp_server_name": "db", "elicitation_id": "e1"}, {"kind": Kind.ASKED, "ask": Ask.FORM, "call": "e1",
     "tool": "db"}, "a form"),
    ("claude", "ElicitationResult", {"mcp_server_name": "db", "action": "decline"}, {"kind": Kind.ANSWERED, "ask": Ask.FORM,
     "detail": "decline"},
     "any answer takes it away"),
    ("claude", "PostCompact", {"trigger": "manual"}, {"kind": Kind.COMPACTED, "detail": "manual"}, "no result, a boundary"),
    ("codex", "UserPromptSubmit", {"prompt": "go", "turn_id": "u1"}, {"kind": Kind.PROMPTED, "turn": "u1"}, "the root's"),
    ("codex", "UserPromptSubmit", {"prompt": "go", "agent_id": "a1"}, {"kind": Kind.CHILD_STARTED, "child": "a1"}, "children send it too"),
    ("codex", "PreToolUse", {"tool_name": "request_user_input", "permission_mode": "default", "tool_use_id": "t1"},
     {"kind": Kind.ASKED, "ask": Ask.QUESTION, "call": "t1"}, "the mode does not tell whether it is shown"),
    ("codex", "PreToolUse", {"tool_name": "apply_patch", "tool_input": {"command": "*** Begin Patch\n*** Update File: src/app.py\n+x"}},
     {"target": "app.py"}, "the file of a patch"),
    ("codex", "PreToolUse", {"tool_name": "shell", "tool_input": {"command": ["bash", "-lc", "npm test --token x"]}}, {"target": "npm"},
     "a list of words"),
    ("codex", "PermissionRequest", {**BASH, "permission_mode": "bypassPermissions"}, {"ask": Ask.PERMISSION, "reviewed": True},
     "a reviewer answers"),
    ("codex", "PermissionRequest", {**BASH, "permission_mode": "new"}, {"reviewed": False}, "in doubt the person is needed"),
    ("codex", "PermissionRequest", {"tool_name": "request_user_input", "permission_mode": "bypassPermissions"},
     {"ask": Ask.QUESTION, "reviewed": False}, "no reviewer answers a question"),
    ("codex", "Interrupt", {"turn_id": "u1"}, {"kind": Kind.TURN_INTERRUPTED, "turn": "u1", "interrupted": True},
     "its own sign of a cancel"),
    ("codex", "Stop", {"agent_id": "a1"}, {"kind": Kind.CHILD_ENDED, "child": "a1"}, "a child's turn"),
    ("codex", "PostCompact", {"trigger": "manual"}, {"kind": Kind.NOTED}, "no change"),
    ("gemini", "BeforeAgent", {"prompt": "go"}, {"kind": Kind.PROMPTED, "prompt_hash": "<go>"}, "the turn starts"),
    ("gemini", "Notification", {"notification_type": "ToolPermission", "details": {"type": "exec", "command": "touch x",
     "rootCommand": "touch"}},
     {"kind": Kind.ASKED, "ask": Ask.PERMISSION, "tool": "run_shell_command", "target": "touch"}, "a dialog is about to be awaited"),
    ("gemini", "Notification", {"notification_type": "ToolPermission", "details": {"type": "ask_user", "title": "Ask User"}},
     {"ask": Ask.QUESTION, "tool": "ask_user"}, "a question comes as a permission"),
    ("gemini", "Notification", {"notification_type": "ToolPermission", "details": {"type": "edit", "fileName": "app.py",
     "newContent": "x"}},
     {"ask": Ask.PERMISSION, "tool": None, "target": "app.py", "input_hash": None},
     "it does not say which call: the next end of a tool answers it"),
    ("gemini", "Notification", {"notification_type": "ToolPermission"}, {"ask": Ask.PERMISSION}, "a dialog of an unknown sort is one"),
    ("gemini", "AfterTool", {"tool_name": "x", "tool_response": {"error": {"message": "no"}}}, {"kind": Kind.TOOL_FAILED}, "it failed"),
    ("gemini", "AfterAgent", {"prompt_response": "[no response text]"}, {"kind": Kind.TURN_ENDED, "detail": "no_response"},
     "no model gave it"),
    ("gemini", "AfterAgent", {"prompt_response": "all my secrets"}, {"kind": Kind.TURN_ENDED, "detail": None},
     "of an answer nothing is kept"),
    ("gemini", "SessionEnd", {"reason": "exit"}, {"detail": "prompt_input_exit"}, "the person left"),
    ("qwen", "UserPromptSubmit", {"prompt": "go", "submitted_prompt": "go"}, {"kind": Kind.PROMPTED, "origin": Origin.PERSON},
     "a real one"),
    ("qwen", "UserPromptSubmit", {"prompt": ""}, {"kind": Kind.NOTED}, "comes behind each tool result"),
    ("qwen", "UserPromptSubmit", {"prompt": "INBOX"}, {"kind": Kind.PROMPTED, "origin": Origin.AGENT},
     "a hook's answer goes on as a prompt"),
    ("qwen", "PermissionRequest", {"tool_name": "ask_user_question"}, {"ask": Ask.QUESTION}, "a question comes as a permission"),
    ("qwen", "PermissionRequest", {"tool_name": "exit_plan_mode"}, {"ask": Ask.PLAN}, "so does a plan"),
    ("qwen", "PermissionRequest", {"tool_name": "edit", "agent_id": "a1"}, {"reviewed": True}, "refused by itself, no dialog is shown"),
    ("qwen", "PreToolUse", {"tool_name": "ask_user_question"}, {"kind": Kind.TOOL_STARTED, "ask": None},
     "the call starts when it is answered"),
    ("qwen", "Stop", {"background_tasks": [{"id": "g1", "status": "running", "agent_type": "general"}, {"id": "g2", "status": "completed",
     "agent_type": "x"}]},
     {"tasks": (Task(id="g1", kind="agent"), Task(id="g2", kind="agent", running=False))}, "its entries have no type"),
    ("qwen", "Stop", {"crons": [1]}, {"timers": True, "tasks": None}, "the session will wake itself"),
    ("qwen", "Notification", {"notification_type": "idle_prompt", "agent_id": "a1"}, {"kind": Kind.IDLE_NOTICED, "child": None},
     "the main agent's rest may carry a child's id"),
    ("qwen", "Notification", {"notification_type": "permission_prompt"}, {"kind": Kind.ASK_NOTICED, "ask": Ask.PERMISSION},
     "beside the request"),
    ("qwen", "StopFailure", {"error": "invalid_request"}, {"kind": Kind.TURN_FAILED, "detail": "invalid_request"}, "in place of a stop"),
]  # fmt: skip


@pytest.mark.parametrize(("agent", "event", "payload", "expected", "why"), CASES, ids=[f"{case[0]}-{case[1]}-{case[4]}" for case in CASES])
def test_an_event_means(agent, event, payload, expected, why):
    assert {name: getattr(said(agent, event, **payload), name) for name in expected} == expected, why


NOTHING = [
    ("claude", "Notification", {"notification_type": "agent_needs_input"}, "another session's"),
    ("claude", "Notification", {"notification_type": "auth_success"}, "a login"),
    ("claude", "Notification", {"notification_type": "elicitation_response"}, "ElicitationResult has said so"),
    ("claude", "CwdChanged", {"new_cwd": "/elsewhere"}, "a cd moves no pane"),
    ("claude", "PreCompact", {"trigger": "manual"}, "it may be dropped"),
    ("claude", "TaskCompleted", {}, "an entry of a to-do list"),
    ("codex", "PreCompact", {}, "no change"),
    ("gemini", "PreCompress", {"trigger": "auto"}, "in every turn, though nothing is compressed"),
    ("gemini", "AfterModel", {}, "one a piece"),
    ("gemini", "Notification", {"notification_type": "New"}, "no dialog that is known"),
    ("qwen", "InstructionsLoaded", {}, "no change"),
]


@pytest.mark.parametrize(("agent", "event", "payload", "why"), NOTHING, ids=[f"{case[0]}-{case[1]}-{case[3]}" for case in NOTHING])
def test_an_event_means_nothing(agent, event, payload, why):
    assert say(agent, event, **payload) is None, why


def test_the_old_notify_of_codex_means_nothing():
    # It says "agent-turn-complete" for the turn that writes the title, before the real end.
    payload = {"type": "agent-turn-complete", "thread-id": "x", "turn-id": "y"}
    assert AGENTS["codex"].translate("notify", payload, keyed) is None
    assert AGENTS["codex"].translate(None, payload, keyed) is None


def test_the_hook_command_s_word_for_an_event_comes_before_the_payload_s():
    with pytest.raises(UnknownEvent):
        AGENTS["claude"].translate("StopRewake", {"session_id": "s1", "hook_event_name": "Stop"}, keyed)


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "qwen"])
@pytest.mark.parametrize(
    ("payload", "field"),
    [
        ({}, "hook_event_name"),
        ({"hook_event_name": "SessionEnd"}, "session_id"),
        ({"hook_event_name": "SessionEnd", "session_id": ["s1"]}, "session_id"),
        ({"hook_event_name": "SessionEnd", "session_id": "s\r\nPUB x"}, "session_id"),
        ({"hook_event_name": "SessionEnd", "session_id": "s1", "cwd": 7}, "cwd"),
        ({"hook_event_name": "SessionEnd", "session_id": "s1", "reason": {}}, "reason"),
        ({"hook_event_name": ["SessionEnd"], "session_id": "s1"}, "hook_event_name"),
    ],
)
def test_a_bad_payload_is_refused_with_the_field_s_name(agent, payload, field):
    with pytest.raises(BadPayload, match=f"^{field} "):
        AGENTS[agent].translate(None, payload, keyed)


@pytest.mark.parametrize("agent", sorted(AGENTS))
def test_an_event_that_an_agent_does_not_have_is_unknown(agent):
    with pytest.raises(UnknownEvent):
        AGENTS[agent].translate("NoSuchThing", {"session_id": "s1", "session": "s1", "sessionID": "s1", "sessionId": "s1"}, keyed)


def test_the_hash_of_an_input_does_not_depend_on_the_order_of_its_keys():
    one = said("claude", "PreToolUse", tool_input={"a": 1, "b": {"c": 2, "d": 3}})
    other = said("claude", "PermissionRequest", tool_input={"b": {"d": 3, "c": 2}, "a": 1})
    assert one.input_hash == other.input_hash


def test_codex_pairs_a_request_with_its_call_although_it_adds_a_description():
    call = said("codex", "PreToolUse", tool_name="Bash", tool_input={"command": "touch x"})
    request = said("codex", "PermissionRequest", tool_name="Bash", tool_input={"command": "touch x", "description": "Make x"})
    assert picked(call, "tool", "input_hash") == picked(request, "tool", "input_hash")


def test_gemini_pairs_the_notice_of_a_command_with_its_call():
    call = said("gemini", "BeforeTool", tool_name="run_shell_command", tool_input={"command": "touch x", "description": "Make x"})
    notice = said("gemini", "Notification", notification_type="ToolPermission", details={"type": "exec", "command": "touch x"})
    assert picked(call, "tool", "input_hash") == picked(notice, "tool", "input_hash")


def test_a_very_long_id_is_replaced_by_the_same_digest_each_time():
    one, other = (said("claude", event, tool_use_id="x" * 5000) for event in ("PreToolUse", "PostToolUse"))
    assert one.call == other.call
    assert len(one.call or "") < 50


def test_the_hash_of_a_prompt_takes_no_notice_of_outer_white_space():
    # Terminals and agents trim what they pass on; the hash of a text that we sent must still be recognised.
    assert said("claude", "UserPromptSubmit", prompt=" do it\n").prompt_hash == "<do it>"


def test_only_an_absolute_path_is_a_path():
    assert said("claude", "Stop", cwd="/w", transcript_path="relative.jsonl").transcript is None
