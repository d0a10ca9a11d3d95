"""What installing, removing and looking at hooks means, whatever the agent; each agent's own facts stand in its file."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from tocsin.agents.install.entries import Entry, Form, cleared, commands, has_ours, merged
from tocsin.agents.install.jsonc import Broken, parse
from tocsin.agents.install.machine import HookCommand, Machine, packaged
from tocsin.agents.install.settings_file import Change, backup_of, read, replace_file, update
from tocsin.contract.refusals import Code, Refusal


class Did(StrEnum):
    """What came of it."""

    INSTALLED = "installed"
    ALREADY = "already"
    REMOVED = "removed"
    NOTHING = "nothing there"
    NOT_FOUND = "not found"  # the agent is not on this machine


@dataclass(frozen=True)
class Outcome:
    """What was done for one agent. `todo`: what the user must still do, in sentences."""

    did: Did
    file: Path
    backup: Path | None = None
    todo: tuple[str, ...] = ()


@dataclass(frozen=True)
class Found:
    """One place where our hook command is called: for which event, by which line, in which file."""

    event: str
    command: str
    place: str
    runs_once: str = ""  # lines of equal text run once, as far as this is equal too


class Installer(Protocol):
    """How one agent is told to call the hook command."""

    @property
    def agent(self) -> str:
        """Its name in commands and messages."""
        ...

    @property
    def label(self) -> str:
        """Its name as people write it."""
        ...

    def file(self, machine: Machine) -> Path:
        """The file that is changed or made."""
        ...

    def is_here(self, machine: Machine) -> bool:
        """Whether the agent is on this machine: its program on PATH, or its folder."""
        ...

    def install(self, machine: Machine, hook: HookCommand) -> Outcome | Refusal:
        """Have the agent call `hook`; nothing changes where it does already. Refuses broken_settings, changed_meanwhile."""
        ...

    def uninstall(self, machine: Machine, hook: HookCommand) -> Outcome | Refusal:
        """Take out everything of ours, and nothing else. Refuses broken_settings, changed_meanwhile."""
        ...

    def is_installed(self, machine: Machine, hook: HookCommand) -> bool:
        """Whether the agent calls `hook` for everything that it should."""
        ...

    def calls(self, machine: Machine, hook: HookCommand, projects: tuple[Path, ...]) -> Iterator[Found]:
        """Every place from which the agent calls the hook command, in the user's files and those of `projects`."""
        ...


@dataclass(frozen=True)
class Event:
    """An event that we ask for. Waiting for us ends after `limit_s` seconds at the latest."""

    name: str
    limit_s: int = 5
    matcher: str | None = None
    since: tuple[int, ...] = ()  # the first version that knows it; an unknown name can void the whole file
    parks: bool = False  # a second call, which waits in the background until there is a reason to wake the session


Values = Iterator[tuple[str, object]]
"""(where it stands, value of a settings file)."""


@dataclass(frozen=True)
class SettingsHooks:
    """An agent that reads its hooks from a JSON file of the user's."""

    agent: str
    label: str
    programs: tuple[str, ...]
    folder: Callable[[Machine], Path]
    name: str  # of the file, below the folder
    events: tuple[Event, ...]
    entry: Callable[[Event, HookCommand], Mapping[str, Any]]
    form: Form = field(default_factory=Form)
    project_files: tuple[str, ...] = ()  # files of a project with hooks of the same form
    equal_lines_run_once: bool = False  # the agent runs handlers of equal text once, whatever file they stand in
    known: Callable[[Machine, tuple[Event, ...]], tuple[Event, ...]] = lambda machine, events: events  # by the installed version
    once: tuple[str, ...] = ()  # what the user must do after a change
    todo: Callable[[Machine, Mapping[str, Any]], tuple[str, ...]] = lambda machine, value: ()  # and as long as things are so
    more: Callable[[Machine], Values] = lambda machine: iter(())  # other places of the user's with hooks of the same form

    def file(self, machine: Machine) -> Path:
        """The settings file."""
        return self.folder(machine) / self.name

    def is_here(self, machine: Machine) -> bool:
        """Whether its program is on PATH or its folder exists."""
        return any(map(machine.program, self.programs)) or self.folder(machine).is_dir()

    def entries(self, machine: Machine, hook: HookCommand) -> list[Entry]:
        """What we want to stand in the file."""
        return [Entry(event.name, self.entry(event, hook)) for event in self.known(machine, self.events)]

    def install(self, machine: Machine, hook: HookCommand) -> Outcome | Refusal:
        """Merge our entries in; the first state is kept beside the file."""
        file = self.file(machine)
        entries = self.entries(machine, hook)
        kept: list[Path] = []

        def edit(text: str | None) -> str | None:
            after = merged(text, entries, self.form, hook.starts)
            if text is not None and after != text and not has_ours(text, self.form, hook.starts):
                replace_file(backup_of(file), text.encode(), mode=file.stat().st_mode & 0o777)
                kept.append(backup_of(file))
            return after

        change = update(file, edit)
        if isinstance(change, Refusal):
            return change
        value = parse(change.after or "{}", self.form.dialect).value
        steps = self.todo(machine, value)
        if not change.changed:
            return Outcome(Did.ALREADY, file, todo=steps)
        return Outcome(Did.INSTALLED, file, kept[-1] if kept else None, (*self.once, *steps))

    def uninstall(self, machine: Machine, hook: HookCommand) -> Outcome | Refusal:
        """Take our entries out; the copy of the first state goes as well, once the file equals it."""
        file = self.file(machine)
        backup = backup_of(file)
        entries = self.entries(machine, hook)

        def edit(text: str | None) -> str | None:
            first = read(backup)
            return text and cleared(text, None if first is None else first.decode(), entries, self.form, hook.starts)

        change = update(file, edit)
        if isinstance(change, Refusal):
            return change
        if change.after is not None and read(backup) == change.after.encode():
            backup.unlink()
        return Outcome(Did.REMOVED if change.changed else Did.NOTHING, file, backup if backup.exists() else None)

    def is_installed(self, machine: Machine, hook: HookCommand) -> bool:
        """Whether installing would change nothing."""
        try:
            held = read(self.file(machine))
            text = None if held is None else held.decode()
            return text is not None and merged(text, self.entries(machine, hook), self.form, hook.starts) == text
        except (OSError, ValueError):
            return False

    def calls(self, machine: Machine, hook: HookCommand, projects: tuple[Path, ...]) -> Iterator[Found]:
        """Our command in the settings file, in `more`, and in the projects' files. A file that cannot be read has none."""
        files = [self.file(machine), *(project / name for project in projects for name in self.project_files)]
        # A project in the home would name the user's own file again.
        for file in dict.fromkeys(file.resolve() for file in files):
            yield from self._found(str(file), _value(file, self.form), hook, "settings" if self.equal_lines_run_once else str(file))
        for place, value in self.more(machine):
            yield from self._found(place, value, hook, place)

    def _found(self, place: str, value: object, hook: HookCommand, runs_once: str) -> Iterator[Found]:
        for event, command in commands(value, self.form):
            if hook.is_called_by(command) and not hook.parks(command):
                yield Found(event, command, place, runs_once if self.equal_lines_run_once else "")


MARK = "// tocsin-hooks: made by `tocsin hooks install`, removed by `tocsin hooks uninstall`.\n"
"""First line of a file that is ours alone."""


@dataclass(frozen=True)
class OwnFile:
    """An agent that loads a program of ours from a folder for such."""

    agent: str
    label: str
    programs: tuple[str, ...]
    folder: Callable[[Machine], Path]  # the agent's folder
    below: str  # the folder for such files, below it
    name: str
    parts: tuple[str, ...]  # files of the package that make its text
    also_loads: tuple[str, ...] = ()  # further folders, below the agent's, that it loads from
    once: tuple[str, ...] = ()  # what the user must do after a change

    def file(self, machine: Machine) -> Path:
        """The file that is ours."""
        return self.folder(machine) / self.below / self.name

    def text(self) -> str:
        """What we want to stand in it."""
        return MARK + "\n".join(packaged(part) for part in self.parts)

    def is_here(self, machine: Machine) -> bool:
        """Whether its program is on PATH or its folder exists."""
        return any(map(machine.program, self.programs)) or self.folder(machine).is_dir()

    def install(self, machine: Machine, hook: HookCommand) -> Outcome | Refusal:
        """Write the file; another file of that name is refused."""
        file = self.file(machine)
        change = self._update(file, self.text())
        if isinstance(change, Refusal):
            return change
        return Outcome(Did.INSTALLED, file, todo=self.once) if change.changed else Outcome(Did.ALREADY, file)

    def uninstall(self, machine: Machine, hook: HookCommand) -> Outcome | Refusal:
        """Remove the file, and its folder when nothing else is in it."""
        file = self.file(machine)
        change = self._update(file, None)
        if isinstance(change, Refusal):
            # Somebody else's file of that name: nothing of ours is there.
            return Outcome(Did.NOTHING, file) if change.code is Code.BROKEN_SETTINGS and not self._is_ours(file) else change
        if change.changed and not any(file.parent.iterdir()):
            file.parent.rmdir()
        return Outcome(Did.REMOVED if change.changed else Did.NOTHING, file)

    def is_installed(self, machine: Machine, hook: HookCommand) -> bool:
        """Whether the file is there in today's form."""
        try:
            return read(self.file(machine)) == self.text().encode()
        except OSError:
            return False

    def calls(self, machine: Machine, hook: HookCommand, projects: tuple[Path, ...]) -> Iterator[Found]:
        """Each file of ours that the agent loads, whatever its name."""
        for folder in dict.fromkeys((self.below, *self.also_loads)):
            for file in sorted((self.folder(machine) / folder).glob("*.[jt]s")):
                if self._is_ours(file):
                    yield Found("every event", self.name, str(file))

    def _is_ours(self, file: Path) -> bool:
        try:
            return (read(file) or b"").startswith(MARK.encode())
        except OSError:
            return False

    def _update(self, file: Path, wanted: str | None) -> Change | Refusal:
        def edit(text: str | None) -> str | None:
            if text is not None and not text.startswith(MARK):
                raise Broken(text, 0, "a file of that name is there already, and none of ours")
            return wanted

        return update(file, edit)


def _value(file: Path, form: Form) -> object:
    try:
        return parse((read(file) or b"{}").decode(), form.dialect).value
    except (OSError, ValueError):
        return None
