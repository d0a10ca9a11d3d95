"""`tocsin rank FILE`: what it reads, what it prints, and what it says of a bad file."""

import io
import json
import math

import pytest

from support import DATA
from tocsin.cli.main import main
from tocsin.cli.rank import BadFile, decide, read


def a_case(worktrees="[]", **fields):
    return ('{"id": "x", "now": 1000, "worktrees": ' + worktrees + "}").encode()


def test_one_case_is_read_like_a_list_of_one():
    assert read(a_case()) == read(b"[" + a_case() + b"]")


def test_the_command_prints_a_list_of_id_order_and_classes(capsys, tmp_path):
    file = tmp_path / "case.json"
    file.write_text(json.dumps(json.loads((DATA / "sort-cases.json").read_text())[0]))
    assert main(["rank", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {"id": "A01-four-classes", "order": ["block", "done", "work", "idle"], "classes": {"idle": 4, "work": 3, "done": 2, "block": 1}}
    ]


def test_a_dash_reads_standard_input(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(a_case())))
    assert main(["rank", "-"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"id": "x", "order": [], "classes": {}}]


BAD = [
    (b'[\n{"id": "x",\n "now": ]', "line 3"),
    (b"", "line 1"),
    (b"\xff\xfe", "line 1"),
    (b'["\xff"]', "not JSON"),
    (b'{"id": "x", "now": 1}', "worktrees"),
    (b'{"id": 7, "now": 1, "worktrees": []}', "$.id"),
    (b'[{"id": "x", "now": "soon", "worktrees": []}]', "$[0].now"),
    (b'{"id": "x", "now": "NaN", "worktrees": []}', "$[0].now"),
    (a_case('[{"id": "w"}]'), "displayName"),
    (a_case('[{"id": "w", "displayName": "w", "lastActivityAt": "yesterday"}]'), "$.worktrees[0].lastActivityAt"),
    (
        a_case('[{"id": "w", "displayName": "w", "tabs": [{"id": "t", "panes": [{"id": "p", "hook": {"state": "sad"}}]}]}]'),
        "panes[0].hook.state",
    ),
    (a_case('[{"id": "w", "displayName": "a"}, {"id": "w", "displayName": "b"}]'), "worktrees[1].id"),
]


@pytest.mark.parametrize(("data", "place"), BAD, ids=[place for _, place in BAD])
def test_a_bad_file_is_refused_with_its_line_or_field(data, place, capsys, tmp_path):
    with pytest.raises(BadFile) as caught:
        read(data)
    assert place in str(caught.value)
    file = tmp_path / "bad.json"
    file.write_bytes(data)
    assert main(["rank", str(file)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert place in said.err
    assert "Traceback" not in said.err


def test_a_missing_file_is_named(capsys):
    assert main(["rank", "/nowhere/at/all"]) == 2
    assert "/nowhere/at/all" in capsys.readouterr().err


def test_numbers_that_are_no_times_are_as_absent_as_their_words():
    worktree = '[{"id": "w", "displayName": "w", "createdAt": 1e999, "lastActivityAt": -Infinity}]'
    with pytest.raises(BadFile):
        read(a_case(worktree))
    huge = "9" * 400
    (case,) = read(a_case(f'[{{"id": "w", "displayName": "w", "createdAt": {huge}, "lastActivityAt": "-Infinity"}}]'))
    assert decide(case)["order"] == ["w"]


def test_an_update_at_infinity_is_no_contact():
    hook = '{"state": "blocked", "stateStartedAt": 1, "updatedAt": "Infinity"}'
    (case,) = read(
        a_case('[{"id": "w", "displayName": "w", "tabs": [{"id": "t", "ptyLive": true, "panes": [{"id": "p", "hook": ' + hook + "}]}]}]")
    )
    assert decide(case)["classes"] == {"w": 4}
    assert math.isfinite(case.now)
