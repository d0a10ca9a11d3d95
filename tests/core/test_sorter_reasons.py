"""Every row says in one line why it stands where it stands, and how that is known."""

import pytest

from builders import NOW_MS, a_status
from tocsin.contract.messages import Ask, Evidence, PromptSeen, Reading, State, Task, TitleNow, TurnSeen
from tocsin.sorter.core.reasons import explain, topic, what_it_asks


def a_prompt(ask=Ask.PERMISSION, number=1, **fields):
    return PromptSeen(number=number, ask=ask, since_ms=NOW_MS, **fields)


ASKS = [
    (a_prompt(tool="Bash", target="npm"), "asks to run npm (permission)"),
    (a_prompt(tool="run_shell_command", target="git"), "asks to run git (permission)"),
    (a_prompt(tool="apply_patch", target="app.py"), "asks to edit app.py (permission)"),
    (a_prompt(tool="WebFetch", target="example.org"), "asks to fetch example.org (permission)"),
    (a_prompt(tool="Read", target="app.py"), "asks to read app.py (permission)"),
    (a_prompt(tool="mcp__mail__send"), "asks to use mcp__mail__send (permission)"),
    (a_prompt(), "asks for permission"),
    (a_prompt(Ask.QUESTION, tool="AskUserQuestion"), "asks a question"),
    (a_prompt(Ask.PLAN), "asks to approve its plan"),
    (a_prompt(Ask.FORM), "asks to fill in a form"),
    (a_prompt(Ask.QUESTION, excerpt="Which colour?"), "asks a question: Which colour?"),
    (a_prompt(tool="Bash", target="npm", child="c1"), "asks to run npm (permission), for a child agent"),
]


@pytest.mark.parametrize(("prompt", "line"), ASKS, ids=[line for _, line in ASKS])
def test_a_prompt_names_the_tool_and_its_target(prompt, line):
    assert what_it_asks(prompt) == line


def said(fresh=True, speaks=True, **fields):
    state, evidence, reason, _since_ms = explain(a_status(**fields), fresh, speaks)
    return state, evidence, reason


OBSERVED = [
    ({"state": State.DONE}, "finished its turn"),
    ({"state": State.DONE, "interrupted": True}, "was interrupted"),
    ({"state": State.WORKING}, "working"),
    ({"state": State.IDLE}, "at rest"),
    ({"state": State.WAITING, "cause": "asks something"}, "asks something"),
    (
        {
            "state": State.WORKING,
            "background": (Task(id="b1", kind="shell"),),
            "turns": (TurnSeen(number=1, started_ms=1, ended_ms=2),),
        },
        "working in the background",
    ),
    (
        {"state": State.BLOCKED, "prompts": (a_prompt(tool="Bash", target="npm"), a_prompt(number=2))},
        "asks to run npm (permission), and 1 more",
    ),
]


@pytest.mark.parametrize(("fields", "line"), OBSERVED, ids=[line for _, line in OBSERVED])
def test_a_fresh_hook_explains_itself(fields, line):
    assert said(**fields) == (fields["state"], Evidence.OBSERVED, line)


def test_what_was_inferred_says_from_what():
    found = said(state=State.DONE, evidence=Evidence.INFERRED, cause="its title came to rest")
    assert found == (State.DONE, Evidence.INFERRED, "finished its turn (its title came to rest)")


def test_what_was_restored_is_never_shown_as_certain():
    found = said(state=State.WORKING, evidence=Evidence.RESTORED)
    assert found == (State.WORKING, Evidence.RESTORED, "working, unconfirmed: from before a gap")


def a_title(reading):
    return TitleNow(text="t", reading=reading, since_ms=5)


def test_a_stale_pane_says_so_and_keeps_its_last_state():
    assert said(fresh=False, state=State.BLOCKED) == (State.BLOCKED, Evidence.STALE, "no contact for 30 min: stale")


def test_the_title_explains_a_pane_whose_hook_does_not_count():
    found = explain(a_status(title=a_title(Reading.PERMISSION)), False, True)
    assert found == (State.BLOCKED, Evidence.INFERRED, "its title says that it needs you", 5)
    assert said(fresh=False, hooked=False, title=a_title(Reading.WORKING))[2] == "its title says that it works"
    assert said(fresh=False, hooked=False, title=a_title(Reading.IDLE))[2] == "its title says that it rests"


def test_a_title_that_may_not_be_heard_explains_nothing():
    found = said(fresh=False, speaks=False, hooked=False, title=a_title(Reading.PERMISSION))
    assert found == (State.IDLE, Evidence.NO_SIGNAL, "no signal from claude")


def test_a_plain_terminal_is_no_agent():
    assert said(fresh=False, hooked=False, agent=None)[1:] == (Evidence.NO_SIGNAL, "no agent")


TOPICS = [
    ("✳ Fix the login", "Fix the login"),
    ("⠂ Fix the login", "Fix the login"),
    ("✳\ufe0e Qwen - api", "Qwen - api"),
    ("◇  Ready (api)", "Ready (api)"),
    ("[ ! ] Action Required | api", "Action Required | api"),
    ("[ . ] Action Required | api", "Action Required | api"),
    ("π - session", "π - session"),
    ("", ""),
    ("✳ ", ""),
    ("red \x1b[31m", "red [31m"),
]


@pytest.mark.parametrize(("title", "shown"), TOPICS, ids=[repr(title) for title, _ in TOPICS])
def test_a_title_is_shown_without_what_only_moves(title, shown):
    assert topic(title) == shown
