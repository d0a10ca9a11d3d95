"""Following real files: what is appended is read once, whole lines only, and only below the agent's own folder."""

import json

import pytest

from tocsin.pane_host import transcripts
from tocsin.pane_host.core.follow import Wanted
from tocsin.pane_host.transcripts import LINE_BYTES_MAX, LOOK_BACK_BYTES_MAX, Transcripts

TURN_BEGAN_MS = 1_796_000_000_000


def line(turn: str, said: str = "2026-11-30T01:00:00.000Z") -> str:
    row = {"type": "user", "promptId": turn, "sessionId": "s1", "timestamp": said, "message": {"content": "[Request interrupted by user]"}}
    return json.dumps(row) + "\n"


@pytest.fixture
def home(tmp_path):
    (tmp_path / ".claude/projects/app").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def file(home):
    return home / ".claude/projects/app/s1.jsonl"


def wanted(file, pane="p1") -> Wanted:
    return Wanted(pane, "claude", "s1", str(file), ".claude/projects", TURN_BEGAN_MS)


def append(file, text: str) -> None:
    with file.open("a") as opened:
        opened.write(text)


def turns(eyes: Transcripts, *files) -> list[str]:
    return [mark.found.turn for mark in eyes.look(files)]


def test_a_line_that_is_appended_is_read_once(home, file):
    file.write_text('{"type":"user"}\n')
    eyes = Transcripts(home)
    assert turns(eyes, wanted(file)) == []
    append(file, line("p1"))
    assert turns(eyes, wanted(file)) == ["p1"]
    assert turns(eyes, wanted(file)) == []
    append(file, '{"type":"assistant"}\n' + line("p2"))
    assert turns(eyes, wanted(file)) == ["p2"]


def test_half_a_line_waits_for_its_other_half(home, file):
    file.write_text("")
    eyes = Transcripts(home)
    whole = line("p1")
    append(file, whole[:30])
    assert turns(eyes, wanted(file)) == []
    append(file, whole[30:])
    assert turns(eyes, wanted(file)) == ["p1"]


def test_a_file_that_is_written_later_is_read_from_its_start(home, file):
    eyes = Transcripts(home)
    assert turns(eyes, wanted(file)) == []
    file.write_text(line("p1"))
    assert turns(eyes, wanted(file)) == ["p1"]


def test_at_first_sight_only_lines_since_the_turn_began_count(home, file):
    file.write_text(line("old", "2026-11-29T00:00:00.000Z") + line("new"))
    assert turns(Transcripts(home), wanted(file)) == ["new"]


def test_at_first_sight_the_look_back_is_bounded(home, file):
    file.write_text(line("far") + ("x" * 99 + "\n") * (LOOK_BACK_BYTES_MAX // 100) + line("near"))
    assert turns(Transcripts(home), wanted(file)) == ["near"]


def test_what_was_written_while_nobody_followed_is_looked_back_on_in_the_same_way(home, file):
    file.write_text("{}\n")
    eyes = Transcripts(home)
    turns(eyes, wanted(file))
    append(file, line("far") + ("x" * 99 + "\n") * (LOOK_BACK_BYTES_MAX // 100) + line("near"))
    assert turns(eyes, wanted(file)) == ["near"]


def test_a_line_too_long_to_be_a_mark_is_skipped_however_it_arrives(home, file):
    file.write_text("{}\n")
    eyes = Transcripts(home)
    turns(eyes, wanted(file))
    for _ in range(4):
        append(file, "x" * (LINE_BYTES_MAX // 2 + 1))
        assert turns(eyes, wanted(file)) == []
    append(file, line("inside a long line") + line("p1"))
    assert turns(eyes, wanted(file)) == ["p1"]


def test_much_that_is_appended_at_once_is_read_in_parts(home, file, monkeypatch):
    monkeypatch.setattr(transcripts, "READ_BYTES_MAX", 1_000)
    file.write_text("{}\n")
    eyes = Transcripts(home)
    turns(eyes, wanted(file))
    append(file, "".join(line(f"p{number}") for number in range(50)))
    found: list[str] = []
    for _ in range(50):
        found += turns(eyes, wanted(file))
    assert found == [f"p{number}" for number in range(50)]


def test_a_file_that_is_cut_or_replaced_is_a_new_file(home, file):
    file.write_text(line("p1") + line("p2"))
    eyes = Transcripts(home)
    assert turns(eyes, wanted(file)) == ["p1", "p2"]
    file.write_text(line("p3"))
    assert turns(eyes, wanted(file)) == ["p3"]
    beside = file.with_name("beside")
    beside.write_text(line("p4") + line("p5"))
    beside.replace(file)
    assert turns(eyes, wanted(file)) == ["p4", "p5"]


@pytest.mark.parametrize(
    "path", ["notes.jsonl", ".claude/settings.jsonl", ".claude/projects-of-another/s1.jsonl", ".claude/projects/../x.jsonl"]
)
def test_nothing_outside_the_agents_own_folder_is_read(home, path):
    file = home / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(line("p1"))
    assert turns(Transcripts(home), wanted(file)) == []


def test_a_link_counts_as_what_it_leads_to(home, file):
    secret = home / "secret.jsonl"
    secret.write_text(line("p1"))
    file.symlink_to(secret)
    assert turns(Transcripts(home), wanted(file)) == []


def test_an_agents_folder_that_is_itself_a_link_is_followed(home, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("disk")
    (elsewhere / "s1.jsonl").write_text(line("p1"))
    (home / ".claude/projects/app").rmdir()
    (home / ".claude/projects").rmdir()
    (home / ".claude/projects").symlink_to(elsewhere)
    assert turns(Transcripts(home), wanted(home / ".claude/projects/s1.jsonl")) == ["p1"]


def test_folders_and_missing_files_are_no_evidence(home, file):
    assert turns(Transcripts(home), wanted(file), wanted(file.parent)) == []


def test_each_pane_reads_a_shared_file_for_itself(home, file):
    file.write_text(line("p1"))
    eyes = Transcripts(home)
    assert [(mark.pane, mark.found.turn) for mark in eyes.look([wanted(file, "a"), wanted(file, "b")])] == [("a", "p1"), ("b", "p1")]


def test_a_file_that_no_status_names_is_forgotten(home, file):
    file.write_text(line("p1"))
    eyes = Transcripts(home)
    turns(eyes, wanted(file))
    eyes.keep([("p1", str(file))])
    assert eyes.followed == 1
    eyes.keep([])
    assert eyes.followed == 0
