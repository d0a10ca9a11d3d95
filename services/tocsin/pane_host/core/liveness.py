"""Which terminals have ended: only what is proven, never what is silent."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from tocsin.contract.ids import PaneId


@dataclass(frozen=True, slots=True)
class Server:
    """One life of a tmux server: its pid and start time. `started_ms` is None where the process cannot be seen from here."""

    socket: str
    pid: int
    started_ms: int | None

    def same_life(self, other: "Server") -> bool:
        """True unless something tells them apart; a start time that is not known tells nothing."""
        unknown = self.started_ms is None or other.started_ms is None
        return self.socket == other.socket and self.pid == other.pid and (unknown or self.started_ms == other.started_ms)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server listed just now."""

    server: Server
    panes: Collection[PaneId]
    complete: bool


def ended(known: Mapping[PaneId, Server], answers: Iterable[Answer], gone: Collection[Server]) -> set[PaneId]:
    """The known panes that are no more: a complete listing of their server's life lacks them, or its process is gone.

    A server that does not answer, answers in part, or lives elsewhere proves nothing.
    Source: README, decision on death (pid and start time, or a complete listing of the same server life).
    """
    complete = [answer for answer in answers if answer.complete]
    return {
        pane
        for pane, server in known.items()
        if server in gone or any(server.same_life(answer.server) and pane not in answer.panes for answer in complete)
    }
