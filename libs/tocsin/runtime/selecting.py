"""Selecting a tmux pane for a person who wants to go there."""

import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path


def selection(locator: str, tmux: str | None) -> tuple[list[list[str]], str | None]:
    """Commands that select a pane, and the command that the user still has to give, if this terminal does not show that server.

    `locator`: "socket-path %7". `tmux`: the value of $TMUX here.
    """
    socket, _, pane = locator.rpartition(" ")
    server = ["tmux", "-S", socket]
    select = [[*server, "select-window", "-t", pane], [*server, "select-pane", "-t", pane]]
    here = tmux.split(",")[0] if tmux else None
    if here and Path(here).resolve() == Path(socket).resolve():
        return [*select, [*server, "switch-client", "-t", pane]], None
    # A client inside another server would nest: unset, tmux attaches plainly.
    return select, shlex.join([*(["env", "-u", "TMUX"] if here else []), *server, "attach-session", "-t", pane])


def go(commands: Sequence[Sequence[str]]) -> str | None:
    """Run them; returns what went wrong with the first that failed."""
    for command in commands:
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            return "tmux is not installed here"
        if done.returncode:
            return done.stderr.strip() or f"{command[3]} failed"
    return None


def attached(socket: str) -> str | None:
    """The client of a tmux server that its person used last; None when nobody is attached to it, or there is no such server."""
    words = ["tmux", "-S", socket, "list-clients", "-F", "#{client_activity} #{client_name}"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    clients = [line.split(" ", 1) for line in done.stdout.splitlines() if " " in line]
    return max(clients, key=lambda one: int(one[0]))[1] if clients else None
