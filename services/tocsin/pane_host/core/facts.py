"""From what is remembered of a terminal to what is said about it."""

from dataclasses import dataclass

from tocsin.contract.ids import HostId, PaneId, WorkspaceId, tmux_pane
from tocsin.contract.messages import Mark, PaneSeen, PaneTitled, Process
from tocsin.pane_host.core.listing import Pane
from tocsin.pane_host.core.liveness import Server
from tocsin.pane_host.core.titles import TitleLog, plain

NO_TITLES = TitleLog()


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who says it: this host, the list that its panes belong to, and this life of pane-host, which numbers titles and marks."""

    host: HostId
    workspace: WorkspaceId
    life: str


@dataclass(frozen=True, slots=True)
class Resident:
    """The agent that lives in a terminal. `cwd` is a real path."""

    agent: str
    process: Process
    cwd: str | None


@dataclass(frozen=True, slots=True)
class Terminal:
    """One tmux pane, as far as it is known. `searched` is False until its processes have been looked at."""

    id: PaneId
    server: Server
    pane: Pane
    titles: TitleLog = NO_TITLES
    resident: Resident | None = None
    searched: bool = False
    cwd: str | None = None  # real path of the pane's own folder
    last_key_ms: int | None = None


def pane_id(server: Server, number: str) -> PaneId:
    """The pane as a hook in it names it by $TMUX and $TMUX_PANE."""
    return tmux_pane(f"{server.socket},{server.pid}", number)


def needs_search(before: Terminal | None, pane: Pane) -> bool:
    """True when another agent may live there than before: what is in front, or what its title is about, has changed."""
    if before is None or not before.searched:
        return True

    def signs(one: Pane) -> tuple[int, bool, str, str]:
        return one.pid, one.dead, one.command, plain(one.title)

    return signs(before.pane) != signs(pane)


def seen(speaker: Speaker, terminal: Terminal, marks: tuple[Mark, ...], at_ms: int) -> PaneSeen:
    """What is seen of a terminal whose processes were looked at. No process means: no agent is there."""
    resident = terminal.resident
    return PaneSeen(
        host=speaker.host,
        pane=terminal.id,
        life=speaker.life,
        at_ms=at_ms,
        workspace=speaker.workspace,
        agent=resident.agent if resident else None,
        process=resident.process if resident else None,
        cwd=(resident.cwd if resident else None) or terminal.cwd,
        last_key_ms=terminal.last_key_ms,
        marks=marks,
        locator=locator(terminal),
    )


def marked(speaker: Speaker, pane: PaneId, marks: tuple[Mark, ...], at_ms: int) -> PaneSeen:
    """Marks of a pane that is no terminal here (its session is known by hooks alone). Without a locator nothing but the marks is meant."""
    return PaneSeen(host=speaker.host, pane=pane, life=speaker.life, at_ms=at_ms, workspace=speaker.workspace, marks=marks)


def over(speaker: Speaker, pane: PaneId, locator: str | None, at_ms: int) -> PaneSeen:
    """The last that is said of a terminal: it has ended, and that is proven."""
    return PaneSeen(host=speaker.host, pane=pane, life=speaker.life, at_ms=at_ms, workspace=speaker.workspace, live=False, locator=locator)


def locator(terminal: Terminal) -> str:
    """How a person's tmux is told to select it."""
    return f"{terminal.server.socket} {terminal.pane.number}"


def titled(speaker: Speaker, terminal: Terminal) -> PaneTitled:
    """The last few titles of a terminal."""
    return PaneTitled(host=speaker.host, pane=terminal.id, life=speaker.life, titles=terminal.titles.titles)
