"""Edits JSON in its own text, so that everything but the edit keeps its bytes: order, comments, indentation, line ends.

An edit is named by a path of keys and positions, as in `("hooks", "Stop", 0)`; of a key that stands twice the last
one counts, as it does for every agent that we know.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

DEPTH_MAX = 200
"""Deepest nesting that is read; no settings file comes near, and no agent's parser is asked for more by us."""

Path = Sequence[str | int]

_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")
_SPACE = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_SAME_LINE = re.compile(r"[ \t]*(?:/\*[^\n]*?\*/[ \t]*)*(?://[^\r\n]*)?")


@dataclass(frozen=True)
class Dialect:
    """What a file's own reader takes beyond JSON."""

    comments: bool = False
    trailing_commas: bool = False


STRICT = Dialect()
WITH_COMMENTS = Dialect(comments=True)
LENIENT = Dialect(comments=True, trailing_commas=True)


class Broken(ValueError):
    """A text that is no JSON of its dialect. The message says why; `line` counts from 1."""

    def __init__(self, text: str, at: int, why: str) -> None:
        super().__init__(why)
        self.line = text.count("\n", 0, at) + 1


@dataclass(frozen=True)
class Node:
    """A value and where it stands: `text[start:end]`. An object's `keys` go along with its `items`."""

    value: Any
    start: int
    end: int
    items: tuple["Node", ...] = ()
    keys: tuple[str, ...] = ()
    starts: tuple[int, ...] = ()  # where each item begins, its key included
    commas: tuple[int, ...] = ()  # where each comma stands; one more than between the items when the last one trails

    def at(self, key: str | int) -> int:
        """The position of the item named `key` (a key or a position). Raises KeyError."""
        if isinstance(key, int):
            if not isinstance(self.value, list) or not 0 <= key < len(self.items):
                raise KeyError(key)
            return key
        if not isinstance(self.value, dict) or key not in self.value:
            raise KeyError(key)
        return len(self.keys) - 1 - self.keys[::-1].index(key)


class _Reader:
    def __init__(self, text: str, dialect: Dialect) -> None:
        self.text = text
        self.dialect = dialect

    def broken(self, at: int, why: str) -> Broken:
        return Broken(self.text, at, why if at < len(self.text) else "it ends too early")

    def past_space(self, at: int) -> int:
        """The next place after `at` that is neither space nor comment."""
        while True:
            at = _SPACE.match(self.text, at).end()  # type: ignore[union-attr]
            comment = _COMMENT.match(self.text, at) if self.dialect.comments else None
            if comment is None:
                return at
            at = comment.end()

    def value(self, at: int, depth: int = 0) -> Node:
        if depth > DEPTH_MAX:
            raise self.broken(at, "it is nested too deeply")
        opener = self.text[at : at + 1]
        if opener in ("{", "["):
            return self.container(at, depth)
        if opener == '"':
            return self.string(at)
        found = _PLAIN.match(self.text, at)
        if found is None:
            raise self.broken(at, "no value stands here")
        return Node(json.loads(found.group()), at, found.end())

    def string(self, at: int) -> Node:
        found = _STRING.match(self.text, at)
        if found is None:
            raise self.broken(at, "no complete string stands here")
        return Node(json.loads(found.group()), at, found.end())

    def container(self, opened: int, depth: int) -> Node:
        is_object = self.text[opened] == "{"
        closer = "}" if is_object else "]"
        keys: list[str] = []
        items: list[Node] = []
        starts: list[int] = []
        commas: list[int] = []
        at = self.past_space(opened + 1)
        while self.text[at : at + 1] != closer:
            if len(commas) < len(items):
                raise self.broken(at, f"a comma or {closer} is missing")
            starts.append(at)
            if is_object:
                key = self.string(at)
                at = self.past_space(key.end)
                if self.text[at : at + 1] != ":":
                    raise self.broken(at, "a colon is missing")
                keys.append(key.value)
                at = self.past_space(at + 1)
            items.append(self.value(at, depth + 1))
            at = self.past_space(items[-1].end)
            if self.text[at : at + 1] == ",":
                commas.append(at)
                at = self.past_space(at + 1)
        if items and len(commas) == len(items) and not self.dialect.trailing_commas:
            raise self.broken(commas[-1], "a comma stands after the last item")
        values = [item.value for item in items]
        value = dict(zip(keys, values, strict=True)) if is_object else values
        return Node(value, opened, at + 1, tuple(items), tuple(keys), tuple(starts), tuple(commas))


def parse(text: str, dialect: Dialect = STRICT) -> Node:
    """The one value in `text`, a byte-order mark before it allowed. Raises Broken."""
    reader = _Reader(text, dialect)
    root = reader.value(reader.past_space(text.startswith("\ufeff")))
    after = reader.past_space(root.end)
    if after < len(text):
        raise reader.broken(after, "something follows the value")
    return root


def find(root: Node, path: Path) -> Node:
    """The node at `path`. Raises KeyError when there is none."""
    for key in path:
        root = root.items[root.at(key)]
    return root


def append(text: str, path: Path, value: Any, *, key: str | None = None, dialect: Dialect = STRICT) -> str:
    """`text` with `value` as the last item of the container at `path`, under `key` in an object.

    Written the way its neighbours are: on a line of its own or on theirs, with their indentation and line ends.
    Raises Broken, and KeyError when `path` names no container or `key` is there already.
    """
    root = parse(text, dialect)
    container = find(root, path)
    if not isinstance(container.value, list if key is None else dict) or (key is not None and key in container.value):
        raise KeyError(key)
    line_end = "\r\n" if "\r\n" in text else "\n"
    in_lines = _on_its_own_line(text, container.starts[-1]) if container.items else _opens_lines(text, root)
    outer = _indent(text, container.start)
    inner = _indent(text, container.starts[-1]) if container.items and in_lines else outer + _unit(text, root)
    name = "" if key is None else json.dumps(key, ensure_ascii=False) + (": " if in_lines or _airy(text, root) else ":")
    if in_lines:
        shown = json.dumps(value, ensure_ascii=False, indent=_unit(text, root)).replace("\n", line_end + inner)
        lead = line_end + inner
    else:
        shown = json.dumps(value, ensure_ascii=False, separators=None if _airy(text, root) else (",", ":"))
        lead = " " if _airy(text, root) and container.items else ""
    if not container.items:
        rest = text[container.start + 1 : container.end - 1]
        close = line_end + outer if in_lines and "\n" not in rest else ""
        at = container.start + 1
        return text[:at] + lead + name + shown + rest + close + text[container.end - 1 :]
    last = container.items[-1]
    if len(container.commas) == len(container.items):
        # The file ends its lists with a comma: ours ends with one as well.
        at = _line_rest(text, container.commas[-1] + 1) if in_lines else container.commas[-1] + 1
        return text[:at] + lead + name + shown + "," + text[at:]
    at = _line_rest(text, last.end) if in_lines else last.end
    return text[: last.end] + "," + text[last.end : at] + lead + name + shown + text[at:]


def remove(text: str, path: Path, *, dialect: Dialect = STRICT) -> str:
    """`text` without the item at `path`, comments around it kept. Raises Broken, and KeyError when there is none."""
    container = find(parse(text, dialect), path[:-1])
    index = container.at(path[-1])
    start, end = container.starts[index], container.items[index].end
    rest = text[end:]
    trailed = index < len(container.commas)
    if trailed:
        comma = container.commas[index]
        between = text[end:comma]
        rest = (between if between.strip() else "") + text[comma + 1 :]
    floor = container.start + 1 if index == 0 else container.commas[index - 1] + 1
    begin = floor + len(text[floor:start].rstrip(" \t\r\n"))
    after = text[container.end - 1 :]
    if len(container.items) == 1 and begin == floor and not rest[: len(rest) - len(after)].strip():
        return text[:floor] + after
    if not re.match(r"[ \t]*\r?\n", rest):
        if _ends_in_line_comment(text[floor:begin]):
            # What follows must not become part of that comment.
            begin = text.index("\n", begin) + 1
        elif index == 0 and start == floor:
            rest = rest.lstrip(" \t")
    if index == len(container.items) - 1 and index and not trailed:
        return text[: floor - 1] + text[floor:begin] + rest
    return text[:begin] + rest


def _ends_in_line_comment(space: str) -> bool:
    comments = _COMMENT.findall(space)
    return bool(comments) and comments[-1].startswith("//")


def _indent(text: str, at: int) -> str:
    """The white space with which the line of `at` begins."""
    begin = text.rfind("\n", 0, at) + 1
    line = text[begin:at].removeprefix("\ufeff")
    return line[: len(line) - len(line.lstrip(" \t"))]


def _on_its_own_line(text: str, at: int) -> bool:
    begin = text.rfind("\n", 0, at) + 1
    return begin > 0 and not text[begin:at].strip(" \t")


def _opens_lines(text: str, root: Node) -> bool:
    """Whether a container that is empty so far is to be filled line by line: yes, unless the file keeps its items on one line."""
    return "\n" in text[root.start : root.end] or not root.items


def _unit(text: str, root: Node) -> str:
    """One step of the file's indentation; two spaces where it shows none."""
    if root.items and _on_its_own_line(text, root.starts[0]):
        return _indent(text, root.starts[0]).removeprefix(_indent(text, root.start)) or "  "
    return "  "


def _airy(text: str, root: Node) -> bool:
    """Whether one-line JSON of this file has spaces after colons and commas."""
    return not root.items or text[root.items[0].start - 1].isspace()


def _line_rest(text: str, at: int) -> int:
    """The place after what else belongs to the line of `at`: comments up to its end, none when other text stands there."""
    rest = _SAME_LINE.match(text, at)
    end = rest.end() if rest else at
    kept = at + len(text[at:end].rstrip(" \t"))
    return kept if re.match(r"[ \t]*\r?\n", text[end:]) else at
