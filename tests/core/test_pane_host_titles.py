"""Titles are numbered and kept; a spinner is no news."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.agents.titles import read_title
from tocsin.contract.messages import Reading
from tocsin.pane_host.core.titles import TITLE_CHARS_MAX, TITLES_MAX, TitleLog, noted, plain, shown


def after(*titles: str, agent: str | None = None) -> TitleLog:
    log = TitleLog()
    for at_ms, title in enumerate(titles):
        log = noted(log, title, read_title(title, agent), at_ms)
    return log


@pytest.mark.parametrize(
    ("frames", "agent"),
    [
        (["⠋ Fix it | app", "⠙ Fix it | app", "⠹ Fix it | app"], "codex"),
        (["[ ! ] Action Required | Fix it | app", "[ . ] Action Required | Fix it | app"], "codex"),
        (["◐ Claude Code", "◑ Claude Code"], "claude"),
        (["◐︎ Qwen - app", "◐ Qwen - app"], "qwen"),
        (["✦  Working… (app)          ", "✦  Working… (app)"], "gemini"),
    ],
)
def test_frames_of_one_spinner_are_one_title_which_keeps_its_first_moment(frames, agent):
    log = after(*frames, agent=agent)
    assert [(title.number, title.at_ms) for title in log.titles] == [(1, 0)]


def test_another_state_or_another_topic_is_another_title():
    log = after("⠋ Fix it | app", "Fix it | app", "Mend it | app", "[ ! ] Action Required | Mend it | app", agent="codex")
    assert [title.number for title in log.titles] == [1, 2, 3, 4]


def test_a_title_that_means_something_else_for_another_agent_is_news():
    log = noted(TitleLog(), "✳ Qwen - app", Reading.IDLE, 1)
    assert [title.at_ms for title in noted(log, "✳ Qwen - app", Reading.PERMISSION, 2).titles] == [1, 2]


def test_an_empty_title_is_a_title_too():
    assert [title.text for title in after("Claude Code", "").titles] == ["Claude Code", ""]


def test_what_could_not_travel_is_replaced_and_what_is_long_loses_its_middle():
    assert shown("a\x07b\ud800c\x9bd ") == "a\ufffdb\ufffdc\ufffdd"
    long = shown("⠋ " + "x" * 5_000 + " | app")
    assert len(long) <= TITLE_CHARS_MAX
    assert long.startswith("⠋ x")
    assert long.endswith("x | app")


def test_only_leading_glyphs_are_taken_off():
    assert plain("⠋ mend the ⠋ spinner") == "mend the ⠋ spinner"
    assert plain("✋") == ""


glyphs = st.sampled_from(["", "⠋ ", "⠙ ", "✋  ", "✳ ", "[ ! ] Action Required | ", "[ . ] Action Required | "])
titles = st.builds("{}{}".format, glyphs, st.sampled_from(["", "Fix it", "Mend it | app", "Claude Code"]))


@given(st.lists(titles, max_size=30))
def test_numbers_grow_by_one_and_the_last_title_always_says_what_stands(shown_titles):
    log = TitleLog()
    for at_ms, title in enumerate(shown_titles):
        before = log
        log = noted(log, title, read_title(title), at_ms)
        assert read_title(log.titles[-1].text) == read_title(title)
        assert plain(log.titles[-1].text) == plain(title)
        assert log is before or log.titles[-1].at_ms == at_ms
    numbers = [title.number for title in log.titles]
    assert len(numbers) <= TITLES_MAX
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers))) if numbers else not shown_titles
