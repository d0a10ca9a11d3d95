"""Our entries in the `hooks` of a settings file: put in beside the user's, and taken out again. Pure: text in, text out."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tocsin.agents.install.jsonc import STRICT, Broken, Dialect, append, find, parse, remove

IsOurs = Callable[[object], bool]
"""Whether a command line is one of ours."""


@dataclass(frozen=True)
class Form:
    """How an agent writes hooks down: event -> handlers, or event -> groups of handlers (`grouped`)."""

    grouped: bool = True
    command: str = "command"  # the key of the command line in a handler
    dialect: Dialect = STRICT
    base: Mapping[str, Any] | None = None  # members that the file must have besides


@dataclass(frozen=True)
class Entry:
    """What belongs into the list of one event: a group, or a handler."""

    event: str
    value: Mapping[str, Any]


def commands(value: object, form: Form) -> Iterator[tuple[str, str]]:
    """Every (event, command line) of a settings value, the user's and ours."""
    for path, handler in _handlers(value, form):
        if isinstance(handler.get(form.command), str):
            yield str(path[1]), handler[form.command]


def has_ours(text: str, form: Form, is_ours: IsOurs) -> bool:
    """Whether anything of ours is in it. Raises Broken."""
    return any(is_ours(command) for _, command in commands(parse(text, form.dialect).value, form))


def merged(text: str | None, entries: Sequence[Entry], form: Form, is_ours: IsOurs) -> str:
    """`text` with each of `entries` exactly once, and nothing else of ours; all of the user's as it was. No two of `entries` are equal.

    None: a new file. Raises Broken also where `hooks` or an event in it is not of the kind that the agent reads.
    """
    text = "{}\n" if text is None else text
    root = _checked(text, form, [entry.event for entry in entries])
    missing = list(entries)
    doomed = []
    for path in _ours(root, form, is_ours):
        event = str(path[1])
        here = Entry(event, root["hooks"][event][path[2]]) if len(path) == 3 else None
        if here in missing:
            missing.remove(here)
        else:
            doomed.append(path)
    text = _without(text, doomed, form, kept=[entry.event for entry in entries])
    held = parse(text, form.dialect).value
    for key, value in (form.base or {}).items():
        if key not in held:
            text = append(text, (), value, key=key, dialect=form.dialect)
    by_event: dict[str, list[dict[str, Any]]] = {}
    for entry in missing:
        by_event.setdefault(entry.event, []).append(dict(entry.value))
    if missing and "hooks" not in held:
        return append(text, (), by_event, key="hooks", dialect=form.dialect)
    for event, values in by_event.items():
        if event not in held["hooks"]:
            text = append(text, ("hooks",), values, key=event, dialect=form.dialect)
            continue
        for value in values:
            text = append(text, ("hooks", event), value, dialect=form.dialect)
    return text


def cleared(text: str, first: str | None, entries: Sequence[Entry], form: Form, is_ours: IsOurs) -> str | None:
    """`text` without anything of ours; None when nothing but what we made the file for is left.

    `first` is the file before we came, None when it is not known or there was no file: what stood there empty stays. Where
    only we have changed the file since, it comes back byte for byte. Raises Broken.
    """
    if first is not None and merged(first, entries, form, is_ours) == text:
        return first
    doomed = list(_ours(_checked(text, form, ()), form, is_ours))
    if not doomed:
        return text
    was = {} if first is None else parse(first, form.dialect).value
    was_hooks = was.get("hooks")
    text = _without(text, doomed, form, kept=list(was_hooks) if isinstance(was_hooks, dict) else [])
    if "hooks" not in was and parse(text, form.dialect).value["hooks"] == {}:
        text = remove(text, ("hooks",), dialect=form.dialect)
    base = dict(form.base or {})
    if first is None:
        return None if parse(text, form.dialect).value == base else text
    for key, value in base.items():
        if key not in was and parse(text, form.dialect).value.get(key) == value:
            text = remove(text, (key,), dialect=form.dialect)
    return text


def _checked(text: str, form: Form, events: Sequence[str]) -> Any:
    """The value of `text`, once it is sure that entries can be put into the lists of `events`."""
    root = parse(text, form.dialect)
    if not isinstance(root.value, dict):
        raise Broken(text, root.start, "the file holds no object")
    if "hooks" in root.value:
        hooks = find(root, ("hooks",))
        if not isinstance(hooks.value, dict):
            raise Broken(text, hooks.start, "`hooks` is no object")
        for event in events:
            if not isinstance(hooks.value.get(event, []), list):
                raise Broken(text, find(hooks, (event,)).start, f"`hooks.{event}` is no list")
    return root.value


def _handlers(value: object, form: Form) -> Iterator[tuple[tuple[str | int, ...], Mapping[str, Any]]]:
    """Each handler of a settings value with its path; what is not of the agent's form is passed over."""
    hooks = value.get("hooks") if isinstance(value, dict) else None
    for event, items in hooks.items() if isinstance(hooks, dict) else ():
        for index, item in enumerate(items) if isinstance(items, list) else ():
            if not isinstance(item, dict):
                continue
            if not form.grouped:
                yield ("hooks", event, index), item
                continue
            handlers = item.get("hooks")
            for place, handler in enumerate(handlers) if isinstance(handlers, list) else ():
                if isinstance(handler, dict):
                    yield ("hooks", event, index, "hooks", place), handler


def _ours(value: Any, form: Form, is_ours: IsOurs) -> Iterator[tuple[str | int, ...]]:
    """The paths of what is ours: a whole group where every handler in it is, else the handler."""
    done: set[tuple[str | int, ...]] = set()
    for path, handler in _handlers(value, form):
        if not is_ours(handler.get(form.command)):
            continue
        group = path[:3]
        if form.grouped and any(
            not (isinstance(other, dict) and is_ours(other.get(form.command))) for other in value["hooks"][group[1]][group[2]]["hooks"]
        ):
            yield path
        elif group not in done:
            done.add(group)
            yield group


def _without(text: str, doomed: Sequence[tuple[str | int, ...]], form: Form, kept: Sequence[str]) -> str:
    """`text` without what is at the paths, and without the lists that this empties, but for the events of `kept`."""
    for path in reversed(doomed):
        text = remove(text, path, dialect=form.dialect)
    for event in {str(path[1]) for path in doomed}.difference(kept):
        if parse(text, form.dialect).value["hooks"][event] == []:
            text = remove(text, ("hooks", event), dialect=form.dialect)
    return text
