"""What one tmux call printed, as values.

One call asks for everything: server, panes, a line that proves that the panes were listed to the end, clients.
Titles and paths may hold any character, so fields and rows end in a mark that the caller drew by lot.
"""

from dataclasses import dataclass

PANE_FIELDS = ("pane_id", "pane_pid", "pane_dead", "pane_current_command", "pane_title", "pane_current_path")
CLIENT_FIELDS = ("client_name", "client_created", "client_activity", "client_control_mode", "client_readonly", "pane_id")


@dataclass(frozen=True, slots=True)
class Pane:
    """One terminal. `number` is tmux's own (`%7`), `pid` the process that it was opened with, `command` what is in front."""

    number: str
    pid: int
    dead: bool
    command: str
    title: str
    path: str


@dataclass(frozen=True, slots=True)
class Client:
    """Somebody attached, and the pane before them. Times are UTC seconds; `activity_s` moves with keys and the mouse.

    `person` is False for programs in control mode and for those who may only read.
    """

    name: str
    created_s: int
    activity_s: int
    pane: str
    person: bool


@dataclass(frozen=True, slots=True)
class Listing:
    """What a server answered. Only a complete one may prove that a pane is no more."""

    pid: int
    panes: tuple[Pane, ...]
    clients: tuple[Client, ...]
    complete: bool


def arguments(mark: str) -> list[str]:
    """The words behind `tmux -S SOCKET` that ask for a listing; `mark` is what `read` gets, too."""

    def row(kind: str, fields: tuple[str, ...]) -> str:
        return "".join([kind, *(f"{mark}:#{{{field}}}" for field in fields), f"{mark}."])

    return [
        "display-message", "-p", row("server", ("pid",)), ";",
        # Without a session tmux refuses to list panes; then this list, and the line behind it, tell that there are none.
        "list-sessions", "-F", row("session", ()), ";",
        "display-message", "-p", row("sessions", ()), ";",
        "list-panes", "-a", "-F", row("pane", PANE_FIELDS), ";",
        "display-message", "-p", row("listed", ()), ";",
        "list-clients", "-F", row("client", CLIENT_FIELDS),
    ]  # fmt: skip


def read(output: str, mark: str) -> Listing | None:
    """What the server said; None when it did not even say who it is. Rows that are not whole make the listing incomplete."""
    server: int | None = None
    panes: dict[str, Pane] = {}
    clients: list[Client] = []
    sessions, listed, whole = 0, False, True
    *rows, rest = output.split(f"{mark}.")
    if rest.strip():
        whole = False
    for row in rows:
        kind, *fields = row.lstrip("\n").split(f"{mark}:")
        try:
            if kind == "server" and len(fields) == 1:
                server = int(fields[0])
            elif kind == "session" and not fields:
                sessions += 1
            elif kind == "sessions" and not fields:
                listed = sessions == 0
            elif kind == "pane" and len(fields) == len(PANE_FIELDS):
                number, pid, dead, command, title, path = fields
                # A window linked into two sessions is listed twice.
                panes[number] = Pane(number, int(pid), dead == "1", command, title, path)
            elif kind == "listed" and not fields:
                listed = True
            elif kind == "client" and len(fields) == len(CLIENT_FIELDS):
                name, created, activity, control, readonly, pane = fields
                person = control != "1" and readonly != "1"
                clients.append(Client(name, int(created), int(activity), pane, person))
            else:
                whole = False
        except ValueError:
            whole = False
    if server is None:
        return None
    return Listing(server, tuple(panes.values()), tuple(clients), listed and whole)
