"""What a title says: every row of the facts, the traps, and what must never happen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import DATA
from tocsin.agents.titles import NAMES, agent_in_title, read_title, unknown_glyph
from tocsin.contract.messages import Reading

# Raw: titles may begin and end with blanks, and one is empty.
ROWS = [tuple(line.split("\t")) for line in (DATA / "titles.tsv").read_text().split("\n")[1:] if line]

NO_AGENT = {"-", "shell", "editor", "custom"}


def test_the_table_of_titles_is_whole():
    assert len(ROWS) == 237


@pytest.mark.parametrize(("title", "agent", "expected", "source"), ROWS, ids=[row[0] or "empty" for row in ROWS])
def test_a_title_says(title, agent, expected, source):
    assert read_title(title) == expected, source


@pytest.mark.parametrize(("title", "agent", "expected", "source"), ROWS, ids=[row[0] or "empty" for row in ROWS])
def test_a_title_says_the_same_when_its_agent_is_known(title, agent, expected, source):
    assert read_title(title, None if agent in NO_AGENT else agent) == expected, source


@pytest.mark.parametrize(("title", "agent", "expected", "source"), ROWS, ids=[row[0] or "empty" for row in ROWS])
def test_a_title_names_its_own_agent_or_none(title, agent, expected, source):
    assert agent_in_title(title) in ((None,) if agent in NO_AGENT else (None, agent)), source


B01 = [
    ("claude-notes", None, Reading.NONE),
    ("~/src/codex-bench", None, Reading.NONE),
    ("opencode-blink — zsh", None, Reading.NONE),
    ("codex.exe", "codex", Reading.IDLE),
    ("⠋ codex", "codex", Reading.WORKING),
    ("gemini/fix-login", None, Reading.NONE),
]


@pytest.mark.parametrize(("title", "agent", "expected"), B01)
def test_b01_a_folder_that_is_named_after_an_agent_is_no_agent(title, agent, expected):
    assert (agent_in_title(title), read_title(title)) == (agent, expected)


NAMED = [
    ("✳ Claude Code", "claude"),
    ("◐ Claude Code", "claude"),
    ("claude", "claude"),
    ("claude fix the tests", "claude"),  # a command line
    ("[ ! ] Action Required | Add tests | project", "codex"),
    ("◇  Ready (project)", "gemini"),
    ("✋  Action Required (project)", "gemini"),
    ("✦  Fixing the claude adapter (project)", "gemini"),
    ("✳︎ Qwen - project", "qwen"),
    ("OC | waiting room for gemini", "opencode"),
    ("GitHub Copilot", "copilot"),
    ("Cursor Agent", "cursor"),
    ("π - my-project", "pi"),
    ("zsh | ⠋ π - my-project", "pi"),
    ("π ! my-project", "omp"),
    ("Fix permission dialog - grok", "grok"),
    ("opencode2", "opencode"),
    ("✳ Gemini adapter is working", None),  # a topic
    ("⠋ Fix codex", None),
    ("Fix the text cursor", None),
    ("cursor blinks", None),  # an ordinary word
    ("claude@laptop:~", None),
    ("", None),
]


@pytest.mark.parametrize(("title", "expected"), NAMED)
def test_a_title_names_an_agent(title, expected):
    assert agent_in_title(title) == expected


def test_b03_old_and_new_spinners_both_say_working():
    frames = ["⠂ Claude Code", "◐ Claude Code", "◑ Fix login", "◐ Fix login"]
    assert {read_title(frame) for frame in frames} == {Reading.WORKING}
    assert read_title("✳ Fix login") is Reading.IDLE


@pytest.mark.parametrize(
    ("title", "glyph"), [("⬖ Fix login", "⬖"), ("⬗ Fix login", "⬗"), ("⬖ Claude Code", "⬖"), ("✻ claude ready", "✻"), ("⬖", "⬖")]
)
def test_b03_a_leading_glyph_that_is_not_known_is_no_evidence_and_is_told(title, glyph):
    assert read_title(title) is Reading.NONE
    assert unknown_glyph(title) == glyph


@pytest.mark.parametrize(
    "title", ["", "✳ Fix", "✋", "⠋ x", "claude", "π - x", "⬖Fix", "[ ! ] Action Required", "x ⬖ y", "🚀ship", "~ x", "* claude"]
)
def test_a_glyph_that_is_known_or_does_not_stand_alone_in_front_is_not_told(title):
    assert unknown_glyph(title) is None


def test_no_row_of_the_table_has_an_unknown_glyph():
    assert [title for title, *_ in ROWS if unknown_glyph(title)] == []


TEXT = st.text(max_size=60)
WORDS = st.lists(
    st.sampled_from(
        [
            "action required",
            "permission",
            "waiting",
            "ready",
            "idle",
            "done",
            "working",
            "thinking",
            "running",
            "|",
            "-",
            "✋",
            "⠋",
            "✳",
            "◇",
        ]
    )
    | st.sampled_from(NAMES.split("|"))
    | st.text(alphabet="ab |-✳⠋✋π:!>\"'/~@.", max_size=6),
    max_size=8,
).map(" ".join)


@given(TEXT | WORDS)
def test_every_title_can_be_read(title):
    assert read_title(title) in Reading
    assert agent_in_title(title) is None or agent_in_title(title)


@given(WORDS)
def test_words_behind_a_leading_glyph_decide_nothing(words):
    assert read_title(f"⠋ {words}") is Reading.WORKING
    assert read_title(f"✳ {words}", "claude") is Reading.IDLE
    assert read_title(f"✋ {words}") is Reading.PERMISSION


@given(WORDS)
def test_padding_and_variation_selectors_change_nothing(words):
    assert read_title(f"  {words}\N{VARIATION SELECTOR-16}   ") is read_title(words)


@given(st.sampled_from(NAMES.split("|")), st.sampled_from(list("/\\@-_~x7")), st.sampled_from(["", " working", " waiting", " ready"]))
def test_a_name_inside_a_longer_word_or_path_is_no_agent(name, guard, keyword):
    before, behind = f"{guard}{name}{keyword}", f"{name}{guard}"
    assert read_title(before) is Reading.NONE
    assert agent_in_title(before) is None
    if guard != "~":
        assert read_title(behind) is (Reading.IDLE if behind in NAMES.split("|") else Reading.NONE)
