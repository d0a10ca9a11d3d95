"""A graph of Tasks from a YAML or JSON file: every mistake with its line, its field and its remedy; else the Tasks, in the file's order.

The file holds a list of Tasks, or a mapping whose `tasks` is that list. Words are taken as they are written: `id: 007` and
`title: yes` are the texts 007 and yes.
"""

import difflib
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

from tocsin.contract.run import Accept, OnSettle, TaskKind, TaskSpec

BYTES_MAX = 4 * 1024 * 1024
"""Largest file; what a Run records of one request is bounded by the same size."""

DEPTH_MAX = 20
NODES_MAX = 500_000
"""Values of one file, repeated ones counted each time: a few lines of YAML can stand for billions."""

FAULTS_SHOWN_MAX = 50
"""Lines that a person is shown of one file; programs get all."""

TASK_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")

_NO_TEXT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
"""Controls other than line ends and tabs, and half characters."""

_WHOLE_NUMBER = re.compile(r"[0-9]{1,9}")


class Fault(NamedTuple):
    """A mistake of a file. Lines count from 1; `field` is empty when the mistake is not of one field."""

    line: int
    field: str
    problem: str
    remedy: str

    def told(self, file: str) -> str:
        """The mistake in one line, in the form that editors jump to."""
        return f"{file}:{self.line}: {f'{self.field}: ' if self.field else ''}{self.problem}; {self.remedy}"


class BadGraph(ValueError):
    """The file is no graph of Tasks; `faults` are all mistakes that were found, in the order of their lines."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__(f"{len(faults)} mistakes")
        self.faults = tuple(sorted(faults))


class Node(NamedTuple):
    """A value and its line. `written`: the text of an unquoted word, whatever type a reader would make of it."""

    value: "str | int | float | bool | list[Node] | dict[str, tuple[int, Node]] | None"
    line: int
    written: str | None = None


_EMPTY = Fault(1, "", "the file is empty", "write a list of Tasks")
_TOO_MUCH = Fault(1, "", "nested or repeated beyond the limit", "write it flatter")

# ---------------------------------------------------------------- reading


def read(data: bytes, as_json: bool) -> tuple[TaskSpec, ...]:
    """The Tasks of a file. Raises BadGraph."""
    if len(data) > BYTES_MAX:
        raise BadGraph([Fault(1, "", f"the file has {len(data)} bytes, the limit is {BYTES_MAX}", "add the Tasks in parts")])
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadGraph([Fault(data.count(b"\n", 0, error.start) + 1, "", "not UTF-8", "save the file as UTF-8")]) from error
    return tasks_of(from_json(text) if as_json else from_yaml(text))


def looks_like_json(name: str, data: bytes) -> bool:
    """By its name; where that does not tell (standard input), by its first character."""
    if name.endswith((".yaml", ".yml")):
        return False
    return name.endswith(".json") or data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")


def from_yaml(text: str) -> Node:
    """The tree of one YAML document. Raises BadGraph."""
    import yaml

    # Either loader only builds the tree here; no tag makes an object.
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        document = yaml.compose(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = " ".join(filter(None, (error.context, error.problem)))
        raise BadGraph([Fault(mark.line + 1 if mark else 1, "", f"no YAML: {problem}", "mend the line or the one above it")]) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise BadGraph([Fault(line, "", "a character that no text has", "take it out")]) from error
    except RecursionError as error:
        raise BadGraph([_TOO_MUCH._replace(line=1)]) from error
    if document is None:
        raise BadGraph([_EMPTY])
    return _Yaml(NODES_MAX).node(document, ())


class _Yaml:
    """Turns a composed YAML tree into ours; counts what it makes."""

    def __init__(self, left: int) -> None:
        self.left = left

    def node(self, given: Any, above: tuple[int, ...]) -> Node:
        """One value. `above`: the values that it lies in. Raises BadGraph."""
        line = given.start_mark.line + 1
        self.left -= 1
        if id(given) in above:
            raise BadGraph([Fault(line, "", "an alias that contains itself", "write the value out")])
        if self.left < 0 or len(above) > DEPTH_MAX:
            raise BadGraph([_TOO_MUCH._replace(line=line)])
        inside = (*above, id(given))
        if given.id == "sequence":
            return Node([self.node(one, inside) for one in given.value], line)
        if given.id == "mapping":
            return Node(_mapping((self._name(key), key.start_mark.line + 1, self.node(one, inside)) for key, one in given.value), line)
        if given.style:
            return Node(given.value, line)
        if given.tag.endswith(":null"):
            return Node(None, line, given.value)
        return Node(int(given.value) if _WHOLE_NUMBER.fullmatch(given.value) else given.value, line, given.value)

    def _name(self, key: Any) -> str:
        if key.id != "scalar":
            raise BadGraph([Fault(key.start_mark.line + 1, "", "a name that is no word", "write `name: value`")])
        return str(key.value)


def _mapping(entries: Iterator[tuple[str, int, Node]]) -> dict[str, tuple[int, Node]]:
    found: dict[str, tuple[int, Node]] = {}
    for name, line, node in entries:
        if name in found:
            raise BadGraph([Fault(line, name, f"given twice, first in line {found[name][0]}", "leave one of them out")])
        found[name] = (line, node)
    return found


def from_json(text: str) -> Node:
    """The tree of one JSON value. Raises BadGraph."""
    ends = [at for at, char in enumerate(text) if char == "\n"]
    decoder = json.JSONDecoder()
    blank = re.compile(r"[ \t\n\r]*")
    left = [NODES_MAX]

    def line(at: int) -> int:
        return bisect_right(ends, at - 1) + 1

    def skip(at: int) -> int:
        found = blank.match(text, at)
        return found.end() if found else at

    def wrong(at: int, problem: str) -> BadGraph:
        return BadGraph([Fault(line(min(at, len(text))), "", f"no JSON: {problem}", "mend the line or the one above it")])

    def value(at: int, depth: int) -> tuple[Node, int]:
        left[0] -= 1
        if depth > DEPTH_MAX or left[0] < 0:
            raise BadGraph([_TOO_MUCH._replace(line=line(at))])
        if text[at : at + 1] == "[":
            return items(at, depth)
        if text[at : at + 1] == "{":
            return fields(at, depth)
        try:
            plain, after = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            raise wrong(error.pos, error.msg) from error
        except ValueError as error:
            raise wrong(at, str(error)) from error
        return Node(plain, line(at)), after

    def items(start: int, depth: int) -> tuple[Node, int]:
        found: list[Node] = []
        at = skip(start + 1)
        while text[at : at + 1] != "]":
            if found:
                at = skip(expect(at, ","))
            node, after = value(at, depth + 1)
            found.append(node)
            at = skip(after)
        return Node(found, line(start)), at + 1

    def fields(start: int, depth: int) -> tuple[Node, int]:
        found: list[tuple[str, int, Node]] = []
        at = skip(start + 1)
        while text[at : at + 1] != "}":
            if found:
                at = skip(expect(at, ","))
            if text[at : at + 1] != '"':
                raise wrong(at, "a name in double quotes is missing")
            name, after = value(at, depth + 1)
            node, end = value(skip(expect(skip(after), ":")), depth + 1)
            found.append((str(name.value), name.line, node))
            at = skip(end)
        return Node(_mapping(iter(found)), line(start)), at + 1

    def expect(at: int, char: str) -> int:
        if text[at : at + 1] != char:
            raise wrong(at, f"a {'comma' if char == ',' else 'colon'} is missing")
        return at + 1

    first = skip(0)
    if first == len(text):
        raise BadGraph([_EMPTY])
    whole, end = value(first, 0)
    if skip(end) != len(text):
        raise wrong(skip(end), "something stands behind the end")
    return whole


# ---------------------------------------------------------------- judging


def tasks_of(whole: Node) -> tuple[TaskSpec, ...]:
    """The Tasks of a tree. Raises BadGraph with everything that is wrong, not with the first of it."""
    listed = whole
    if isinstance(whole.value, dict):
        strange = [name for name in whole.value if name != "tasks"]
        if strange or not whole.value:
            at = whole.value[strange[0]][0] if strange else whole.line
            raise BadGraph(
                [Fault(at, strange[0] if strange else "", "no such field here", "write `tasks:` and below it the list of Tasks")]
            )
        listed = whole.value["tasks"][1]
    if not isinstance(listed.value, list):
        raise BadGraph([Fault(listed.line, "tasks", "no list", "begin each Task with `- id: NAME`")])
    if not listed.value:
        raise BadGraph([Fault(listed.line, "tasks", "there is no Task in it", "write at least one")])
    faults: list[Fault] = []
    lines: dict[str, int] = {}
    tasks: list[TaskSpec] = []
    for node in listed.value:
        task = _task(node, faults)
        if task is None:
            continue
        if task.id in lines:
            faults.append(Fault(node.line, "id", f"{task.id} is in line {lines[task.id]} already", "give each Task its own id"))
        lines.setdefault(task.id, node.line)
        tasks.append(task)
    if not faults and (ring := ring_of(tasks)):
        told = " needs ".join(ring)
        faults.append(Fault(lines[ring[0]], "deps", f"a ring: {told}", "leave out one of these dependencies"))
    if faults:
        raise BadGraph(faults)
    return tuple(tasks)


def _task(node: Node, faults: list[Fault]) -> TaskSpec | None:
    if not isinstance(node.value, dict):
        faults.append(Fault(node.line, "", "no Task", "begin each Task with `- id: NAME`"))
        return None
    before = len(faults)
    given: dict[str, Any] = {}
    for name, (line, inner) in node.value.items():
        judge = FIELDS.get(name)
        if judge is None:
            near = difflib.get_close_matches(name, FIELDS, 1)
            remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(FIELDS)}"
            faults.append(Fault(line, name[:64], "no such field", remedy))
            continue
        judged = judge(inner)
        if isinstance(judged, _Wrong):
            faults.append(Fault(judged.line or inner.line, name, judged.problem, judged.remedy))
        else:
            given[name] = judged
    if "id" not in node.value:
        faults.append(Fault(node.line, "id", "missing", "give the Task an id of letters, digits, - and _"))
    if "spec" not in node.value and "title" not in node.value:
        faults.append(Fault(node.line, "spec", "missing", "say what is to be done"))
    if given.get("kind") is TaskKind.REVIEW and "reviews" not in node.value:
        faults.append(Fault(node.line, "reviews", "missing", "name the Task that this one judges"))
    if given.get("kind") is TaskKind.WORK and "reviews" in node.value:
        faults.append(Fault(node.line, "kind", "only a review judges another Task", "write `kind: review`"))
    if len(faults) > before:
        return None
    if "reviews" in given:
        given["kind"] = TaskKind.REVIEW
    given.setdefault("title", given["id"])
    given.setdefault("spec", given["title"])
    return TaskSpec(**given)


class _Wrong(NamedTuple):
    problem: str
    remedy: str
    line: int | None = None


def _word(node: Node) -> str | None:
    """The text of a value; None when it is none."""
    if isinstance(node.value, str):
        return node.value
    return node.written if node.value is not None else None


def _text(node: Node) -> str | _Wrong:
    word = _word(node)
    if word is None:
        return _Wrong("no text", "write a text, in quotes if need be")
    if _NO_TEXT.search(word):
        return _Wrong("holds a control character", "take it out")
    return word if word.strip() else _Wrong("is empty", "write a text or leave the field out")


def _line(node: Node) -> str | _Wrong:
    text = _text(node)
    if isinstance(text, str) and "\n" in text.strip():
        return _Wrong("has several lines", "keep it to one; spec is the place for more")
    return text.strip() if isinstance(text, str) else text


def _id(node: Node) -> str | _Wrong:
    word = _word(node)
    if word is None or not TASK_ID.fullmatch(word):
        return _Wrong("no id of a Task", "use 1 to 64 letters, digits, - and _")
    return word


def _ids(node: Node) -> tuple[str, ...] | _Wrong:
    if not isinstance(node.value, list):
        return _Wrong("no list", "write the ids in brackets: [a, b]")
    found: list[str] = []
    for one in node.value:
        judged = _id(one)
        if isinstance(judged, _Wrong):
            return judged._replace(line=one.line)
        if judged in found:
            return _Wrong(f"names {judged} twice", "name it once", one.line)
        found.append(judged)
    return tuple(found)


def _count(node: Node) -> int | _Wrong:
    if isinstance(node.value, bool) or not isinstance(node.value, int) or node.value < 0:
        return _Wrong("no number of rounds", "write a whole number, 0 or more")
    return node.value


E = TypeVar("E", bound=StrEnum)


def _one_of(words: type[E]) -> Callable[[Node], E | _Wrong]:
    def judge(node: Node) -> E | _Wrong:
        word = _word(node)
        if word is None or word not in list(words):
            return _Wrong("no such word", f"choose {', '.join(words)}")
        return words(word)

    return judge


FIELDS: Mapping[str, Callable[[Node], Any]] = {
    "id": _id,
    "title": _line,
    "spec": _text,
    "deps": _ids,
    "kind": _one_of(TaskKind),
    "reviews": _id,
    "accept": _one_of(Accept),
    "max_rounds": _count,
    "on_settle": _one_of(OnSettle),
    "agent": _line,
    "parent": _id,
}
"""What a Task may say of itself, and who judges it."""


def ring_of(tasks: Sequence[TaskSpec]) -> tuple[str, ...]:
    """One ring of dependencies among `tasks`, its first id also its last; empty when there is none. Ids of other Tasks form none."""
    needs = {task.id: task.deps for task in tasks}
    done: set[str] = set()
    for start in needs:
        path: dict[str, Iterator[str]] = {}
        stack = [start] if start not in done else []
        while stack:
            here = stack[-1]
            if here not in path:
                path[here] = iter(needs[here])
            after = next((one for one in path[here] if one in needs and one not in done), None)
            if after is None:
                done.add(here)
                path.pop(stack.pop())
            elif after in path:
                return (*stack[stack.index(after) :], after)
            else:
                stack.append(after)
    return ()
