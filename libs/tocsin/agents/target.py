"""What a tool call is about, in one word that may be shown: the program of a command, or the name of a file.

A command line may hold secrets anywhere but in its first word; of a path, only the last part is for other people's eyes.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from tocsin.agents.fields import NAME_CHARACTERS_MAX, clean

COMMAND_FIELDS = ("command", "cmd")
FILE_FIELDS = ("file_path", "filePath", "filepath", "notebook_path", "absolute_path", "path", "fileName")

COMMAND_CHARACTERS_MAX = 1000
"""How much of a command is looked at: assignments in front of a program are short."""

WRAPPERS: Mapping[str, str] = MappingProxyType(
    {
        "sudo": "ugpChrtTDRU",
        "doas": "uC",
        "env": "uCS",
        "nice": "n",
        "time": "fo",
        "exec": "a",
        "command": "",
        "nohup": "",
    }
)
"""Programs that start another, and those of their one-letter options that take a value."""

SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh"})

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=", re.ASCII)
_COMMENTS = re.compile(r"\A(?:\s*#[^\n]*(?:\n|\Z))+")
_PLAIN = re.compile(r"\s*(?:[\w.+@-]*/)*([A-Za-z0-9_][A-Za-z0-9_.+@-]{0,39})(?=[\s;|&<>()]|\Z)", re.ASCII)
_PROGRAM = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+@-]{0,39}")


def program(command: str) -> str | None:
    """The name of the program that `command` starts, without its folder; None when that cannot be told for sure.

    Comments, assignments, `sudo` and the like in front are passed over, never shown.
    """
    plain = _PLAIN.match(command)
    if plain is not None and plain[1] not in WRAPPERS:
        return plain[1]  # most commands: nothing in the first word needs the lexer, which costs ten times as much
    lexer = shlex.shlex(_COMMENTS.sub("", command[:COMMAND_CHARACTERS_MAX]), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    wrapper: str | None = None
    try:
        for word in lexer:
            if "$(" in word or "`" in word or word.endswith("$"):
                return None  # another command stands inside: the words that follow may be its own
            if _ASSIGNMENT.match(word):
                continue
            if wrapper is not None and word.startswith("-"):
                if len(word) == 2 and word[1] in WRAPPERS[wrapper]:
                    next(lexer)
                continue
            first = word.rpartition("/")[2]
            if first not in WRAPPERS:
                return first if _PROGRAM.fullmatch(first) else None
            wrapper = first
    except (ValueError, StopIteration):
        return None
    return wrapper


def file_name(path: str) -> str | None:
    """The last part of `path`, cleaned and cut; None when there is none."""
    last = path.rstrip("/").replace("\\", "/").rpartition("/")[2]
    return clean(last[:NAME_CHARACTERS_MAX]) or None


def target(given: object) -> str | None:
    """The program or file that a tool's input names; None when it names neither."""
    if not isinstance(given, Mapping):
        return None
    for field in COMMAND_FIELDS:
        command = given.get(field)
        if isinstance(command, str):
            return program(command)
        if isinstance(command, list):
            return _program_of_words(command)
    for field in FILE_FIELDS:
        path = given.get(field)
        if isinstance(path, str) and path:
            return file_name(path)
    return None


def _program_of_words(words: Sequence[object]) -> str | None:
    if not words or not all(isinstance(word, str) for word in words):
        return None
    first, *rest = (str(word) for word in words)
    name = first.rpartition("/")[2]
    if name in SHELLS and len(rest) >= 2 and rest[0].startswith("-") and rest[0].endswith("c"):
        return program(rest[1])
    return name if _PROGRAM.fullmatch(name) else None
