"""May we type? Read from screens of real agents, and from what is known of a pane. Case F04: nothing is written behind anything."""

import dataclasses
import json

import pytest

from builders import NOW_MS, a_status
from support import DATA
from tocsin.contract.messages import Ask, Evidence, Process, PromptSeen, State
from tocsin.pane_host.core.composer import (
    Held,
    Pane,
    Screen,
    bright,
    excerpt,
    holds,
    may_send,
    may_write,
    read_composer,
    typable,
)

LINE = "Mail waits: run `tocsin mail check` and read it."
FEW = "You are a worker.\nLine two is here.\n\nLine four, after a blank one."
MANY = "\n".join(f"Line {n} of a long brief, with words in it." for n in range(30))
LONG = "word " * 400
TEXTS = {"pasted line": LINE, "pasted few lines": FEW, "pasted many lines": MANY, "pasted long line": LONG}

SCREENS = [json.loads(line) for line in (DATA / "composers.jsonl").read_text().splitlines()]
BY_NAME = {(one["agent"], one["label"]): Screen(tuple(one["rows"]), one["x"], one["y"]) for one in SCREENS}
AGENTS = sorted({agent for agent, _ in BY_NAME})


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("wide, after a turn", ""),
        ("wide, draft", "hello draft"),
        ("wide, long draft", "hello draft" + " and a much longer one " * 9),
    ],
)
def test_what_stands_beside_a_composer_is_no_part_of_it(label, text):
    """On a wide terminal opencode writes its folder and branch to the right of its composer, in the same rows."""
    shown = read_composer("opencode", BY_NAME["opencode", label]).text
    assert shown is not None
    assert shown.split() == text.split()


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("label", ["empty", "after a turn"])
def test_an_empty_composer_is_recognised(agent, label):
    composer = read_composer(agent, BY_NAME[agent, label])
    if (agent, label) == ("opencode", "empty"):
        # Its first page shows a suggestion in an ordinary colour: not certainly empty.
        assert not composer.empty
    else:
        assert composer.empty


@pytest.mark.parametrize(
    ("agent", "label", "text"), [(a, "draft", "hello draft") for a in AGENTS] + [(a, "working with draft", "x") for a in AGENTS]
)
def test_a_draft_is_seen_with_its_text(agent, label, text):
    composer = read_composer(agent, BY_NAME[agent, label])
    assert composer.text == text
    assert not composer.empty


@pytest.mark.parametrize("agent", ["gemini", "qwen"])
def test_a_composer_has_another_sign_in_the_mode_that_approves_everything(agent):
    assert read_composer(agent, BY_NAME[agent, "yolo empty"]).empty
    assert read_composer(agent, BY_NAME[agent, "yolo draft"]).text == "hello draft"


@pytest.mark.parametrize("agent", ["gemini", "qwen"])
def test_what_would_run_as_a_shell_command_is_no_empty_composer(agent):
    assert not read_composer(agent, BY_NAME[agent, "shell mode"]).empty


@pytest.mark.parametrize("label", ["suggested", "suggested, in two rows", "yolo dracula suggested", "yolo dracula suggested, in two rows"])
def test_what_qwen_suggests_was_typed_by_nobody(label):
    assert read_composer("qwen", BY_NAME["qwen", label]).empty


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("suggestion taken", "run the tests"),
        ("suggestion taken, cursor at its start", "run the tests"),
        ("typed over a suggestion", "x"),
        ("draft, cursor at its start", "hello draft"),
        ("yolo dracula draft, cursor at its start", "hello draft"),
        ("one letter, cursor on it", "h"),
        # The name of a file is drawn in a colour of its own: behind one letter it looks as what is suggested does.
        ("draft with a file, cursor at its start", "a@README.md"),
        ("yolo dracula draft with a file, cursor at its start", "a@README.md"),
        ("draft of a command, cursor at its start", "/help"),
        ("two lines, cursor at their start", "line one\nline two"),
        ("yolo dracula two lines, cursor at their start", "line one\nline two"),
        ("dracula empty line above another, cursor on it", "line two"),
        ("dracula one letter above another line, cursor on it", "x\nline two"),
    ],
)
def test_a_draft_is_never_taken_for_what_qwen_suggests(label, text):
    assert read_composer("qwen", BY_NAME["qwen", label]).text == text


def test_a_suggestion_is_only_known_with_the_cursor_in_front_of_it():
    suggested = BY_NAME["qwen", "suggested"]
    assert read_composer("qwen", dataclasses.replace(suggested, cursor_x=suggested.cursor_x + 1)).text == "run the tests"
    assert read_composer("qwen", dataclasses.replace(suggested, cursor_y=suggested.cursor_y + 1)).text == "run the tests"


def test_a_suggestion_that_names_a_file_or_command_may_be_a_draft():
    suggested = BY_NAME["qwen", "suggested"]
    for text in ("r@n the tests", "run/the tests"):
        rows = tuple(row.replace("r\x1b[0m", f"{text[0]}\x1b[0m").replace("un the tests", text[1:]) for row in suggested.rows)
        assert read_composer("qwen", dataclasses.replace(suggested, rows=rows)).text == text


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("label", TEXTS)
def test_our_own_text_is_recognised_as_it_stands_there_or_collapsed(agent, label):
    assert holds(agent, read_composer(agent, BY_NAME[agent, label]), TEXTS[label])


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("label", TEXTS)
def test_another_text_is_not_taken_for_ours(agent, label):
    composer = read_composer(agent, BY_NAME[agent, label])
    if label == "pasted long line" and agent in ("claude", "opencode"):
        # Collapsed without its length: only a text of other lines is told apart. That it was empty before, and no key came, says the rest.
        assert not holds(agent, composer, "something else\non two lines") or agent == "claude"
    else:
        assert not holds(agent, composer, TEXTS[label] + "\nand more")
        assert not holds(agent, composer, "something else")


@pytest.mark.parametrize(("agent", "label"), [key for key in BY_NAME if key[1] == "approval"] + [("codex", "after interrupt")])
def test_a_dialog_is_no_empty_composer(agent, label):
    assert not read_composer(agent, BY_NAME[agent, label]).empty


def test_the_composer_of_an_agent_that_we_do_not_know_is_never_empty():
    for agent in (None, "generic", "aider", "cursor"):
        assert read_composer(agent, Screen(("$ ",), 2, 0)).text is None


def test_a_suggestion_that_is_dimmed_was_typed_by_nobody():
    assert bright("\x1b[1m›\x1b[0m \x1b[2mAsk Codex to do anything\x1b[0m") == "›"
    assert bright("\x1b[38;2;2;2;2mtyped in some colour") == "typed in some colour"
    assert bright("\x1b[2mdim\x1b[22m bright") == " bright"


@pytest.mark.parametrize(
    ("given", "typed"),
    [
        ("a\x1b[201~\rrm -rf /\r", "a\nrm -rf /"),  # nothing ends the paste, and a CR is a line end
        ("tab\there", "tab    here"),
        ("bell\x07 nul\0 del\x7f c1\x9b", "bell nul del c1"),
        ("\n\n brief \n", "brief"),
        ("Grüße 漢字 🙂", "Grüße 漢字 🙂"),
    ],
)
def test_what_is_pasted_presses_no_key(given, typed):
    assert typable(given) == typed


def test_a_long_content_is_told_by_its_start():
    assert len(excerpt("x" * 10_000)) < 500
    assert excerpt(None)


# ---------------------------------------------------------------- the guard

AGENT = Process(pid=7, started_ms=1, boot="b")
IDLE = a_status(state=State.DONE, since_ms=NOW_MS - 60_000, agent="claude")
QUIET = Pane(there=True, process=AGENT, agent="claude", status=IDLE, screen=BY_NAME["claude", "after a turn"], last_key_ms=None)


def pane(**fields):
    return dataclasses.replace(QUIET, **fields)


def status(**fields):
    return pane(status=a_status(**({"state": State.DONE, "agent": "claude"} | fields)))


def held(now, wanted=AGENT, quiet_ms=5_000):
    return may_write(now, wanted, NOW_MS, quiet_ms)


def test_an_idle_agent_with_an_empty_composer_may_be_written_to():
    assert held(QUIET) is None
    assert held(status(state=State.IDLE)) is None
    assert held(QUIET, wanted=None) is None
    assert held(status(evidence=Evidence.INFERRED)) is None


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (pane(there=False), Held.GONE),
        (pane(screen=None), Held.GONE),
        (pane(process=None), Held.GONE),
        (pane(process=Process(pid=7, started_ms=2, boot="b")), Held.GONE),  # the number was used again
        (pane(status=None), Held.NO_STATUS),
        (status(state=State.WORKING), Held.WORKING),
        (status(state=State.BLOCKED), Held.PROMPT),
        (status(state=State.WAITING), Held.PROMPT),
        (status(prompts=(PromptSeen(number=1, ask=Ask.QUESTION, since_ms=0),)), Held.PROMPT),
        (status(state=State.GONE), Held.GONE),
        (status(evidence=Evidence.RESTORED), Held.UNCERTAIN),
        (status(evidence=Evidence.STALE), Held.UNCERTAIN),
        (status(evidence=Evidence.NO_SIGNAL), Held.UNCERTAIN),
        (status(hooked=False), Held.UNCERTAIN),  # a title alone is no ground to type on
        (pane(last_key_ms=NOW_MS - 4_000), Held.RECENT_KEY),
        (pane(screen=dataclasses.replace(BY_NAME["claude", "after a turn"], scrolled=True)), Held.SCROLLED),
        (pane(screen=BY_NAME["claude", "approval"]), Held.COMPOSER_UNKNOWN),
        (pane(agent="generic"), Held.COMPOSER_UNKNOWN),
        (pane(screen=BY_NAME["claude", "draft"]), Held.COMPOSER_BUSY),
    ],
)
def test_anything_that_speaks_against_it_holds_the_text_back(now, why):
    assert held(now) is why


def test_a_key_of_long_ago_holds_nothing():
    assert held(pane(last_key_ms=NOW_MS - 5_001)) is None


def test_the_enter_is_sent_when_the_composer_holds_exactly_our_text():
    assert may_send(pane(screen=BY_NAME["claude", "pasted line"]), AGENT, LINE, NOW_MS) is None


def test_a_key_long_before_it_was_written_does_not_keep_the_enter_back():
    assert may_send(pane(screen=BY_NAME["claude", "pasted line"], last_key_ms=NOW_MS - 10_000), AGENT, LINE, NOW_MS) is None


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (pane(screen=BY_NAME["claude", "draft"]), Held.CHANGED),
        (pane(screen=BY_NAME["claude", "after a turn"]), Held.CHANGED),
        (pane(screen=BY_NAME["claude", "pasted line"], last_key_ms=NOW_MS + 1), Held.RECENT_KEY),
        (pane(screen=BY_NAME["claude", "pasted line"], last_key_ms=NOW_MS // 1000 * 1000), Held.RECENT_KEY),
        (pane(screen=BY_NAME["claude", "pasted line"], process=None), Held.GONE),
        (dataclasses.replace(status(state=State.WORKING), screen=BY_NAME["claude", "pasted line"]), Held.WORKING),
        (dataclasses.replace(status(state=State.BLOCKED), screen=BY_NAME["claude", "approval"]), Held.PROMPT),
    ],
)
def test_whatever_moved_since_it_was_written_keeps_the_enter_back(now, why):
    assert may_send(now, AGENT, LINE, NOW_MS) is why
