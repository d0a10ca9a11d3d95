"""How a notice is shown on this machine: which program, with which arguments and which environment."""

import shlex
from collections.abc import Mapping
from enum import StrEnum
from html import escape
from typing import NamedTuple

from tocsin.contract.notices import NoticeDue

SCRIPT = ("on run argv", "display notification (item 2 of argv) with title (item 1 of argv)", "end run")
"""Told to osascript; what it shows comes as arguments, so that no text becomes script."""

IDS_MAX = 256
"""Notices that are remembered: one that comes twice, after a crash of its sayer, is shown once."""


class Way(StrEnum):
    """What shows it."""

    DESKTOP = "desktop"
    COMMAND = "command"


class BadCommand(ValueError):
    """The command cannot be split into words."""


class Start(NamedTuple):
    """A program to be started, without a shell."""

    way: Way
    words: tuple[str, ...]
    environment: Mapping[str, str]


def clean(text: str) -> str:
    """Text for a program: no control but the line break. Neither an argument nor an environment can hold a NUL."""
    return "".join(char if char.isprintable() or char == "\n" else "\ufffd" for char in text)


def split(command: str) -> tuple[str, ...]:
    """The words of a command as a shell would take them. Raises BadCommand."""
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise BadCommand(str(error)) from error
    if not words:
        raise BadCommand("it has no words")
    return words


def start_of(notice: NoticeDue, command: tuple[str, ...], is_macos: bool) -> Start:
    """How to show a notice: by `command`, or by the desktop when that is empty."""
    title, text = clean(notice.title), clean(notice.text)
    if command:
        fields = {"TITLE": title, "TEXT": text, "URGENT": str(int(notice.urgent)), "CLICK": clean(notice.click), "ID": clean(notice.id)}
        return Start(Way.COMMAND, command, {f"TOCSIN_NOTICE_{name}": value for name, value in fields.items()})
    if is_macos:
        return Start(Way.DESKTOP, ("osascript", *(word for line in SCRIPT for word in ("-e", line)), "--", title, text), {})
    urgency = "critical" if notice.urgent else "normal"
    # A desktop may read markup in the text, never in the title.
    return Start(Way.DESKTOP, ("notify-send", "--app-name=Tocsin", f"--urgency={urgency}", "--", title, escape(text, quote=False)), {})


class Shown:
    """Which notices have been shown."""

    def __init__(self, ids_max: int = IDS_MAX) -> None:
        self._ids_max = ids_max
        self._ids: dict[str, None] = {}

    def is_new(self, notice: str) -> bool:
        """Whether this id was not seen before; from here on it was."""
        if notice in self._ids:
            return False
        self._ids[notice] = None
        if len(self._ids) > self._ids_max:
            del self._ids[next(iter(self._ids))]
        return True
