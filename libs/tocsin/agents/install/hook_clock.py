"""A clock for hook commands that costs them no process: one file in the instance's folder, which says when this boot began.

A hook command adds the time since the boot, which the kernel shows in /proc/uptime in hundredths of a second, and believes
the file only on the boot that it names. When somebody sets the machine's clock, the file is wrong until pane-host looks
again, or until it is started again: so long all hooks of the machine are off by the same, which leaves a session's events in
their order, and what is off by more than a clock may be is passed over by the server, as any sender's stamp is. Only that
helps as well where a hook command runs in a container whose /proc/uptime counts from another moment than pane-host's.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from tocsin.agents.install.settings_file import replace_file

NAME = "hook.clock"
"""Name of the file inside the instance's folder. The hook command spells it too."""

_LINE = re.compile(r"([0-9a-f-]+) ([1-9][0-9]{12})\n")
"""The hook command takes no other number of digits: its shell may know no negative or octal ones."""


@dataclass(frozen=True)
class HookClock:
    """`boot` is the kernel's name for this boot, `began_ms` when it began, in UTC ms by the clock as it is set now."""

    boot: str
    began_ms: int


def write_hook_clock(state: Path, clock: HookClock) -> None:
    """Give the hook commands of the instance `state` this clock, replaced at once (0600).

    Raises ValueError for one that they would not take (a clock that shows a year before 2001), OSError.
    """
    line = f"{clock.boot} {clock.began_ms}\n"
    if not _LINE.fullmatch(line):
        raise ValueError("no clock for hook commands")
    replace_file(state / NAME, line.encode(), mode=0o600)


def read_hook_clock(state: Path) -> HookClock | None:
    """What `write_hook_clock` wrote, or None when there is no such file or it is none of ours."""
    try:
        found = _LINE.fullmatch((state / NAME).read_text())
    except (OSError, UnicodeDecodeError):
        return None
    return HookClock(found[1], int(found[2])) if found else None


def remove_hook_clock(state: Path) -> None:
    """Leave hook commands to their own clocks. Raises OSError."""
    (state / NAME).unlink(missing_ok=True)
