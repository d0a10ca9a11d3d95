"""A graph of Tasks from a file: every mistake with its line, its field and its remedy."""

import contextlib
import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.cli.graph import BYTES_MAX, FIELDS, BadGraph, looks_like_json, read, ring_of
from tocsin.contract.run import Accept, OnSettle, TaskKind, TaskSpec


def faults(text: str | bytes, as_json: bool = False) -> list[str]:
    with pytest.raises(BadGraph) as raised:
        read(text if isinstance(text, bytes) else text.encode(), as_json)
    return [fault.told("f") for fault in raised.value.faults]


GRAPH = """\
# three workers and a gate
tasks:
  - id: parser
    title: the parser
    spec: |
      Write it.
      Test it.
    agent: codex
  - id: printer
    title: the printer
    max_rounds: 1
    on_settle: release
  - id: check
    title: read both
    reviews: parser
    deps: [parser, printer]
    accept: auto
"""

AS_TASKS = (
    TaskSpec(id="parser", title="the parser", spec="Write it.\nTest it.\n", agent="codex"),
    TaskSpec(id="printer", title="the printer", spec="the printer", max_rounds=1, on_settle=OnSettle.RELEASE),
    TaskSpec(
        id="check", title="read both", spec="read both", kind=TaskKind.REVIEW, reviews="parser", deps=("parser", "printer"), accept=Accept.AUTO
    ),
)  # fmt: skip


def test_a_yaml_file_is_its_tasks_in_their_order():
    assert read(GRAPH.encode(), False) == AS_TASKS


def test_a_json_file_says_the_same():
    rows = [
        {"id": "parser", "title": "the parser", "spec": "Write it.\nTest it.\n", "agent": "codex"},
        {"id": "printer", "title": "the printer", "max_rounds": 1, "on_settle": "release"},
        {"id": "check", "title": "read both", "reviews": "parser", "deps": ["parser", "printer"], "accept": "auto"},
    ]
    assert read(json.dumps({"tasks": rows}, indent="\t").encode(), True) == AS_TASKS
    assert read(json.dumps(rows).encode(), True) == AS_TASKS


def test_a_word_is_the_text_that_was_written_whatever_yaml_makes_of_it():
    (task,) = read(b"- id: 007\n  title: yes\n  spec: 1.10\n", False)
    assert (task.id, task.title, task.spec) == ("007", "yes", "1.10")


def test_json_keeps_characters_beyond_the_first_plane():
    assert read(rb'[{"id": "a", "title": "\ud83d\ude00"}]', True)[0].title == "\U0001f600"


MISTAKES = [
    ("- id: a\n  title: x\n  dep: [b]\n", ["f:3: dep: no such field; did you mean deps?"]),
    ("- id: a b\n  title: x\n", ["f:1: id: no id of a Task; use 1 to 64 letters, digits, - and _"]),
    ("- title: x\n", ["f:1: id: missing; give the Task an id of letters, digits, - and _"]),
    ("- id: a\n", ["f:1: spec: missing; say what is to be done"]),
    ("- id: a\n  title:\n", ["f:2: title: no text; write a text, in quotes if need be"]),
    ("- id: a\n  title: x\n  max_rounds: true\n", ["f:3: max_rounds: no number of rounds; write a whole number, 0 or more"]),
    ("- id: a\n  title: x\n  deps: b\n", ["f:3: deps: no list; write the ids in brackets: [a, b]"]),
    ("- id: a\n  title: x\n  deps:\n    - b\n    - c d\n", ["f:5: deps: no id of a Task; use 1 to 64 letters, digits, - and _"]),
    ("- id: a\n  title: x\n  deps: [b, b]\n", ["f:3: deps: names b twice; name it once"]),
    ("- id: a\n  title: x\n  accept: me\n", ["f:3: accept: no such word; choose auto, gate, coordinator"]),
    ("- id: a\n  title: x\n  kind: review\n", ["f:1: reviews: missing; name the Task that this one judges"]),
    ("- id: a\n  title: x\n  kind: work\n  reviews: b\n", ["f:1: kind: only a review judges another Task; write `kind: review`"]),
    ("- id: a\n  title: x\n- id: a\n  title: y\n", ["f:3: id: a is in line 1 already; give each Task its own id"]),
    ("- id: a\n  id: b\n", ["f:2: id: given twice, first in line 1; leave one of them out"]),
    ("- 3\n", ["f:1: no Task; begin each Task with `- id: NAME`"]),
    ("task:\n- id: a\n", ["f:1: task: no such field here; write `tasks:` and below it the list of Tasks"]),
    ("tasks: []\n", ["f:1: tasks: there is no Task in it; write at least one"]),
    ("", ["f:1: the file is empty; write a list of Tasks"]),
    ("- &a [*a]\n", ["f:1: an alias that contains itself; write the value out"]),
]


@pytest.mark.parametrize(("text", "told"), MISTAKES, ids=[told[0] for _, told in MISTAKES])
def test_a_mistake_is_told_with_its_line_its_field_and_its_remedy(text, told):
    assert faults(text) == told


def test_all_mistakes_are_told_at_once_in_the_order_of_their_lines():
    told = faults("- id: a\n  accept: me\n  title: x\n- id: b\n- id: c\n  title: x\n  nothing: 1\n")
    assert [line.split(":")[1] for line in told] == ["2", "4", "7"]


def test_a_ring_is_told_with_all_that_is_in_it():
    told = faults(
        "- {id: a, title: x, deps: [c]}\n- {id: b, title: x, deps: [a]}\n- {id: c, title: x, deps: [b]}\n- {id: d, title: x, deps: [a]}\n"
    )
    assert told == ["f:1: deps: a ring: a needs c needs b needs a; leave out one of these dependencies"]


def test_what_is_no_yaml_or_json_is_told_with_the_line():
    assert faults("- id: a\n  title: b: c\n") == [
        "f:2: no YAML: mapping values are not allowed in this context; mend the line or the one above it"
    ]
    assert faults('[\n{"id": "a"\n "title": "x"}]', True) == ["f:3: no JSON: a comma is missing; mend the line or the one above it"]
    assert faults('[\n{"id": "a",}]', True) == ["f:2: no JSON: a name in double quotes is missing; mend the line or the one above it"]
    assert faults('[{"id": "a"}]\n]', True) == ["f:2: no JSON: something stands behind the end; mend the line or the one above it"]
    assert faults("- id: a\n---\n- id: b\n")[0].startswith("f:2: no YAML: ")
    assert faults(b"- id: a\n- id: \xff\n") == ["f:2: not UTF-8; save the file as UTF-8"]
    assert faults("- id: a\n  title: \x07\n") == ["f:2: a character that no text has; take it out"]
    assert faults('[{"id": "a", "title": "\\ud800"}]', True) == ["f:1: title: holds a control character; take it out"]


BOMB = "a: &a [x, x, x, x, x, x, x, x]\n" + "".join(
    f"{here}: &{here} [{', '.join([f'*{there}'] * 8)}]\n" for here, there in zip("bcdefghi", "abcdefgh", strict=True)
)


@pytest.mark.parametrize(("text", "as_json"), [("[" * 10_000, False), ("[" * 10_000, True), (BOMB, False)], ids=["yaml", "json", "aliases"])
def test_nesting_and_repetition_have_a_limit(text, as_json):
    assert len(faults(text, as_json)) == 1


def test_a_file_over_the_limit_is_not_read():
    assert "add the Tasks in parts" in faults(b"#" * (BYTES_MAX + 1))[0]


@pytest.mark.parametrize(
    ("name", "data", "answer"),
    [
        ("a.json", b"", True),
        ("a.yaml", b"[]", False),
        ("a.yml", b"{}", False),
        ("-", b" \n[", True),
        ("-", b"- id: a", False),
        ("-", b"\xef\xbb\xbf{", True),
    ],
)
def test_the_form_is_known_by_the_name_else_by_the_first_character(name, data, answer):
    assert looks_like_json(name, data) is answer


def test_ten_thousand_tasks_in_one_chain_are_read():
    rows = [{"id": f"t{at}", "title": "x", "deps": [f"t{at - 1}"] if at else []} for at in range(10_000)]
    assert len(read(json.dumps(rows).encode(), True)) == 10_000


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=14))
def test_a_ring_is_found_exactly_when_there_is_one(edges):
    tasks = [
        TaskSpec(id=str(at), title="x", spec="x", deps=tuple(str(to) for one, to in dict.fromkeys(edges) if one == at)) for at in range(8)
    ]
    needs = {task.id: set(task.deps) for task in tasks}
    # Taking away what needs nothing, again and again, leaves nothing exactly when there is no ring.
    while free := {one for one, left in needs.items() if not left}:
        needs = {one: left - free for one, left in needs.items() if one not in free}
    ring = ring_of(tasks)
    assert bool(ring) == bool(needs)
    if ring:
        assert ring[0] == ring[-1]
        deps = {task.id: task.deps for task in tasks}
        assert all(after in deps[here] for here, after in itertools.pairwise(ring))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*FIELDS, "tasks", "x"]), inner, max_size=4),
    max_leaves=12,
)


@given(json_values)
def test_whatever_is_in_a_file_it_is_tasks_or_mistakes(value):
    data = json.dumps(value).encode()
    for as_json in (True, False):
        found: tuple[object, ...] = ()
        with contextlib.suppress(BadGraph):
            found = read(data, as_json)
        assert all(isinstance(task, TaskSpec) for task in found)
