"""All terminals of this host: looks at them, and puts into the last values what it saw."""

import asyncio
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from tocsin.agents.titles import read_title
from tocsin.contract.ids import PaneId
from tocsin.contract.messages import Mark, PaneSeen, PaneTitled
from tocsin.pane_host.core import facts, keys, titles
from tocsin.pane_host.core.facts import Speaker, Terminal
from tocsin.pane_host.core.listing import Listing, Pane
from tocsin.pane_host.core.liveness import Answer, Server, ended
from tocsin.pane_host.core.marks import Found, noted
from tocsin.pane_host.last_values import Family
from tocsin.pane_host.memory import Memory, remember, with_servers
from tocsin.pane_host.processes import Residents
from tocsin.pane_host.tmux import Look, Tmux
from tocsin.runtime.clock import Clock
from tocsin.runtime.instance import Unusable
from tocsin.runtime.logs import log

SEARCH_EVERY_MS = 10_000
"""All terminals are searched for agents at least so often: an agent may start without a sign (below a script, without a title)."""


class Terminals:
    """What is known of them. One task looks; another adds marks."""

    def __init__(
        self,
        tmux: Tmux,
        residents: Residents,
        *,
        seen: Family[PaneSeen],
        titled: Family[PaneTitled],
        speaker: Speaker,
        clock: Clock,
        state: Path,
        memory: Memory,
    ) -> None:
        self._tmux = tmux
        self._residents = residents
        self._seen = seen
        self._titled = titled
        self._speaker = speaker
        self._clock = clock
        self._state = state
        self._memory = memory
        self._unwritten: str | None = None  # why the memory could not be written; "": it was
        self._marks: dict[PaneId, tuple[Mark, ...]] = {}
        self._clients: dict[Server, keys.Before] = {}
        self._searched_ms = clock.awake_ms() - SEARCH_EVERY_MS
        self.search_soon = False
        """Set by whoever has heard of an agent whose terminal is not known."""
        self.known: dict[PaneId, Terminal] = {}
        self.former: dict[PaneId, tuple[Server, str]] = {}
        """Panes that an earlier life saw alive, with their locators."""
        self.former_heard = False
        """Set when all of them have been adopted; until then every server in the memory may be the proof of an end."""
        self.looks: list[Look] = []
        self.hidden: set[PaneId] = set()
        """Panes whose processes cannot be seen from here."""

    # ------------------------------------------------------------ former lives, marks

    def adopt(self, last: PaneSeen) -> None:
        """A pane that an earlier life saw alive: if it is no more, its end must still be said."""
        socket, _, _ = (last.locator or "").rpartition(" ")
        pid = last.pane.rpartition(".")[0].rpartition(".")[2]
        if not last.live or last.life == self._speaker.life or last.pane in self.known or not socket or not pid.isdecimal():
            return
        started = [one.started_ms for one in self._memory.servers if (one.socket, one.pid) == (socket, int(pid))]
        self.former[last.pane] = Server(socket, int(pid), started[0] if started else None), last.locator or ""

    def mark(self, pane: PaneId, session: str, found: Found) -> None:
        """A line was found in the transcript of the session in `pane`."""
        before = self._marks.get(pane, ())
        marks = noted(before, found, session, self._clock.now_ms())
        if marks is before:
            return
        self._marks[pane] = marks
        terminal = self.known.get(pane)
        if terminal is None:
            self._seen.put(facts.marked(self._speaker, pane, marks, self._clock.now_ms()))
        elif terminal.searched:
            self._seen.put(facts.seen(self._speaker, terminal, marks, self._clock.now_ms()))

    def forget_marks(self, stay: Iterable[PaneId]) -> None:
        """Only panes of which something is known keep their marks."""
        for pane in self._marks.keys() - set(stay) - self.known.keys():
            del self._marks[pane]
            self._seen.forget(facts.marked(self._speaker, pane, (), 0))

    # ------------------------------------------------------------ looking

    async def look(self, agents: Mapping[PaneId, str]) -> bool:
        """One look at everything; returns whether anything has changed.

        `agents` tells which agent's hooks spoke from a pane, to read the titles of panes whose processes cannot be seen.
        """
        self.looks = await self._tmux.look()
        answers: list[Answer] = []
        shown: list[Terminal] = []
        typed: dict[PaneId, int] = {}
        for one in self.looks:
            # A partial answer proves nothing, and what it does not show may be what matters.
            if one.server is not None and one.listing is not None and one.listing.complete:
                panes = [self._take(one.server, pane) for pane in one.listing.panes]
                typed |= self._keys(one.server, one.listing)
                answers.append(Answer(one.server, frozenset(terminal.id for terminal in panes), complete=True))
                shown += panes
        await self._search(shown)
        changed = False
        for terminal in shown:
            changed |= self._say(self.known[terminal.id], typed.get(terminal.id), agents.get(terminal.id))
        changed |= self._end(answers)
        self._remember(answers)
        return changed

    def _take(self, server: Server, pane: Pane) -> Terminal:
        name = facts.pane_id(server, pane.number)
        before = self.known.get(name)
        now = replace(before, server=server, pane=pane) if before else Terminal(name, server, pane)
        if before is None or before.pane.path != pane.path:
            now = replace(now, cwd=os.path.realpath(pane.path) if pane.path else None)
        left = now.resident is not None and not self._residents.alive(now.resident.process)
        if left or facts.needs_search(before, pane):
            now = replace(now, searched=False)
        self.known[name] = now
        self.former.pop(name, None)
        return now

    def _keys(self, server: Server, listing: Listing) -> dict[PaneId, int]:
        typed = keys.typed(self._clients.get(server, {}), listing.clients)
        self._clients[server] = keys.remembered(listing.clients)
        return {facts.pane_id(server, number): at_ms for number, at_ms in typed.items()}

    async def _search(self, shown: list[Terminal]) -> None:
        """Look which agents live in the terminals where that may have changed; in all of them every few seconds."""
        now_ms = self._clock.awake_ms()
        every = self.search_soon or now_ms - self._searched_ms >= SEARCH_EVERY_MS
        due = [terminal for terminal in shown if every or not terminal.searched]
        if every:
            self.search_soon, self._searched_ms = False, now_ms
        living = [terminal.pane.pid for terminal in due if not terminal.pane.dead]
        found = await asyncio.to_thread(self._residents.find, living) if living else {}
        for terminal in due:
            self.hidden.discard(terminal.id)
            if terminal.pane.dead:
                self.known[terminal.id] = replace(terminal, resident=None, searched=True)
            elif terminal.pane.pid in found:
                self.known[terminal.id] = replace(terminal, resident=found[terminal.pane.pid], searched=True)
            else:
                self.hidden.add(terminal.id)

    def _say(self, terminal: Terminal, key_ms: int | None, hooked_agent: str | None) -> bool:
        agent = terminal.resident.agent if terminal.resident else hooked_agent
        title = terminal.pane.title
        log_of_titles = titles.noted(terminal.titles, title, read_title(title, agent), self._clock.now_ms())
        terminal = replace(terminal, titles=log_of_titles, last_key_ms=key_ms or terminal.last_key_ms)
        self.known[terminal.id] = terminal
        changed = self._titled.put(facts.titled(self._speaker, terminal))
        # Before its processes were looked at, "no agent is there" would be a guess.
        if terminal.searched:
            marks = self._marks.get(terminal.id, ())
            changed |= self._seen.put(facts.seen(self._speaker, terminal, marks, self._clock.now_ms()))
        return changed

    # ------------------------------------------------------------ ends

    def _end(self, answers: list[Answer]) -> bool:
        servers = {name: terminal.server for name, terminal in self.known.items()}
        servers |= {name: server for name, (server, _) in self.former.items()}
        silent = set(servers.values()) - {answer.server for answer in answers}
        gone = {server for server in silent if self._is_gone(server)}
        for name in (over := ended(servers, answers, gone)):
            terminal = self.known.pop(name, None)
            _, locator = self.former.pop(name, (None, ""))
            self._seen.put(
                facts.over(self._speaker, name, facts.locator(terminal) if terminal else locator, self._clock.now_ms()), final=True
            )
            if terminal:
                self._titled.forget(facts.titled(self._speaker, terminal))
            self._marks.pop(name, None)
            self.hidden.discard(name)
            log("terminal.ended", pane=name)
        for server in gone:
            self._clients.pop(server, None)
        return bool(over)

    def _is_gone(self, server: Server) -> bool:
        """Proven only for a server whose process was seen once: no process of that number and start time runs."""
        return server.started_ms is not None and self._residents.table.started_ms(server.pid) != server.started_ms

    def _remember(self, answers: list[Answer]) -> None:
        """Keep in mind the servers that answer, and those whose panes have not ended."""
        servers = {answer.server for answer in answers}
        servers |= {terminal.server for terminal in self.known.values()} | {server for server, _ in self.former.values()}
        if not self.former_heard:
            servers |= {Server(one.socket, one.pid, one.started_ms) for one in self._memory.servers}
        now = with_servers(self._memory, servers)
        if now == self._memory and self._unwritten == "":
            return
        try:
            remember(self._state, now)
            self._memory, self._unwritten = now, ""
        except Unusable as error:
            if self._unwritten != str(error):
                self._unwritten = str(error)
                log("memory.unwritten", "warning", why=self._unwritten)
