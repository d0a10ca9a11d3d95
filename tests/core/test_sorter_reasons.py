"""Every row says in one line why it stands where it stands, and how that is known."""

import pytest

from builders import NOW_MS, a_status
from tocsin.contract.messages import Ask, Evidence, PromptSeen, Reading, State, TitleNow
from tocsin.sorter.core.reasons import explain, topic


def said(fresh=True, speaks=True, **fields):
    state, evidence, reason, _since_ms = explain(a_status(**fields), fresh, speaks)
    return state, evidence, reason


def test_a_fresh_hook_is_told_in_the_words_it_came_with():
    assert said(state=State.BLOCKED, cause="asks to run npm") == (State.BLOCKED, Evidence.OBSERVED, "asks to run npm")
    assert said(state=State.DONE, evidence=Evidence.INFERRED, cause="its transcript says so")[1:] == (
        Evidence.INFERRED,
        "its transcript says so",
    )


def test_a_state_without_a_cause_is_told_all_the_same():
    assert said(state=State.DONE, cause="")[2] == "has finished its turn"
    assert said(state=State.IDLE, cause="")[2] == "is at its prompt"


def test_further_prompts_of_the_pane_are_counted():
    prompts = tuple(PromptSeen(number=number, ask=Ask.PERMISSION, since_ms=NOW_MS) for number in (1, 2, 3))
    assert said(state=State.BLOCKED, cause="asks to run npm", prompts=prompts)[2] == "asks to run npm, and 2 more"


def test_what_was_restored_is_never_shown_as_certain():
    found = said(state=State.WORKING, evidence=Evidence.RESTORED, cause="works on its turn")
    assert found == (State.WORKING, Evidence.RESTORED, "works on its turn, not confirmed since a restart")


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
