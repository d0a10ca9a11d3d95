"""The loops: look, and say what changed. Each goes on by itself; none waits for another."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from tocsin.agents.registry import AGENTS
from tocsin.bus.bus import Bus
from tocsin.contract import metrics
from tocsin.contract.ids import PaneId, WorktreeId
from tocsin.contract.messages import PaneStatus, State, WorktreeKnown
from tocsin.contract.subjects import PANE_SEEN, PANE_STATUS, WORKTREE_KNOWN
from tocsin.contract.tally import Sample
from tocsin.pane_host import sight
from tocsin.pane_host.boot_clock import BootClock
from tocsin.pane_host.core.checkouts import removed
from tocsin.pane_host.core.facts import Speaker
from tocsin.pane_host.core.follow import Wanted, wanted
from tocsin.pane_host.core.pace import wait_ms
from tocsin.pane_host.git import Git
from tocsin.pane_host.glances import Glances
from tocsin.pane_host.last_values import Family, LastValues
from tocsin.pane_host.notices import Notices
from tocsin.pane_host.spool import Away, Spool
from tocsin.pane_host.terminals import Terminals
from tocsin.pane_host.tmux import Tmux
from tocsin.pane_host.transcripts import Transcripts
from tocsin.pane_host.worktrees import Sought, Worktrees, folders_of, unseen
from tocsin.runtime.clock import Clock
from tocsin.runtime.logs import log

TRANSCRIPTS_EVERY_S = 0.1
"""A mark must be said within 300 ms of its line; the rest is for the bus."""

WORKTREES_EVERY_S = 2.0
WORKTREE_SPREAD_S = 0.02
"""A round goes once in two seconds, or rarer with more than a hundred worktrees: a look at one costs a tenth of a millisecond."""
EXAMINE_EVERY_S = 0.5
SPOOL_EVERY_S = 1.0
SPOOL_WAIT_S_MAX = 2.0
"""Ingest that was away is tried again so soon: a spool is delivered within seconds of its return."""

SIGHT_EVERY_S = 5.0
SIGHT_AGAIN_MS = 30_000

TRANSCRIPT_ROOTS: Mapping[str, str] = {agent.name: agent.transcript_root for agent in AGENTS.values() if agent.transcript_root}


class Beside(Protocol):
    """Another half of this host."""

    async def run(self) -> None:
        """Work until cancelled."""
        ...

    def samples(self) -> Iterator[Sample]:
        """What it has to show."""
        ...


@dataclass
class PaneHost:
    """The eyes of one host."""

    bus: Bus
    clock: Clock
    speaker: Speaker
    values: LastValues
    tmux: Tmux
    terminals: Terminals
    transcripts: Transcripts
    git: Git
    worktrees: Worktrees
    known_worktrees: Family[WorktreeKnown]
    spool: Spool
    boot_clock: BootClock
    glances: Glances
    notices: Notices
    configured: tuple[str, ...] = ()
    hands: "Beside | None" = None
    """What acts on what the eyes see; ends with them."""
    statuses: dict[PaneId, PaneStatus] = field(default_factory=dict)
    looked: asyncio.Event = field(default_factory=asyncio.Event)
    """All terminals have been looked at once."""
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    """The last status of every pane has been heard."""
    _hurry: asyncio.Event = field(default_factory=asyncio.Event)
    _turns: asyncio.Event = field(default_factory=asyncio.Event)
    _places: asyncio.Event = field(default_factory=asyncio.Event)
    _changed_ms: int = 0
    _former_worktrees: dict[WorktreeId, WorktreeKnown] = field(default_factory=dict)
    _spool_away: str | None = None

    async def run(self) -> None:
        """Look and say until cancelled. A loop that fails ends all: the keeper starts them anew."""
        async with asyncio.TaskGroup() as loops:
            loops.create_task(self.values.run())
            loops.create_task(self._hear_former_panes())
            loops.create_task(self._hear_former_worktrees())
            loops.create_task(self._hear_statuses())
            loops.create_task(self._watch_terminals())
            loops.create_task(self._watch_transcripts())
            loops.create_task(self._watch_worktrees())
            loops.create_task(self._examine_worktrees())
            loops.create_task(self._deliver_spool())
            loops.create_task(self._tell_sight())
            loops.create_task(self.glances.run())
            loops.create_task(self.notices.run())
            if self.hands is not None:
                loops.create_task(self.hands.run())

    def samples(self) -> Iterator[Sample]:
        """What is seen on this host, its spool, and what its hands have done."""
        terminals = self.terminals.known.values()
        counts = self.spool.counts
        yield Sample(metrics.TERMINALS, (), len(terminals))
        yield Sample(metrics.AGENTS_SEEN, (), sum(terminal.resident is not None for terminal in terminals))
        yield Sample(metrics.WORKTREES, (), len(self.known_worktrees.values))
        yield Sample(metrics.SPOOL_WAITING, (), counts.waiting)
        yield Sample(metrics.SPOOL_AGE, (), max(0, self.clock.now_ms() - counts.oldest_ms) / 1000 if counts.waiting else 0)
        for outcome, count in (("delivered", counts.delivered), ("refused", counts.refused), ("torn", counts.torn)):
            yield Sample(metrics.SPOOL_ENDED, (outcome,), count)
        yield Sample(metrics.SPOOL_LOST, (), self.spool.lost())
        yield from self.notices.samples()
        if self.hands is not None:
            yield from self.hands.samples()

    # ------------------------------------------------------------ hearing

    async def _hear_former_panes(self) -> None:
        """Once: what an earlier life saw alive, so that its end can be said."""
        async with self.bus.follow(PANE_SEEN, self.speaker.host) as reading:
            async for batch in reading:
                for heard in batch:
                    self.terminals.adopt(heard.body)
                if not batch:
                    self.terminals.former_heard = True
                    self._nudge()
                    return

    async def _hear_former_worktrees(self) -> None:
        """Once: what an earlier life has found, so that it is looked at again."""
        async with self.bus.follow(WORKTREE_KNOWN, self.speaker.host) as reading:
            async for batch in reading:
                self._former_worktrees |= {heard.body.worktree: heard.body for heard in batch if not heard.body.removed}
                if not batch:
                    self._places.set()
                    return

    async def _hear_statuses(self) -> None:
        """Where agents are, and where their transcripts lie."""
        async with self.bus.follow(PANE_STATUS, self.speaker.host) as reading:
            async for batch in reading:
                for heard in batch:
                    self._take(heard.body)
                if batch:
                    self._turns.set()
                else:
                    self.heard.set()

    def _take(self, status: PaneStatus) -> None:
        before = self.statuses.get(status.pane)
        if status.state is State.GONE:
            self.statuses.pop(status.pane, None)
        else:
            self.statuses[status.pane] = status
        if before is None or (before.state, before.turn, before.session) != (status.state, status.turn, status.session):
            self._nudge()
            if status.cwd:
                self.worktrees.touch([status.cwd])
        if before is None or before.cwd != status.cwd:
            self._places.set()
        terminal = self.terminals.known.get(status.pane)
        if status.agent and (before is None or before.session != status.session) and (terminal is None or terminal.resident is None):
            self.terminals.search_soon = True

    def _nudge(self) -> None:
        """Something moves: look at the terminals now, and often for a while."""
        self._changed_ms = self.clock.awake_ms()
        self._hurry.set()

    # ------------------------------------------------------------ looking

    async def _watch_terminals(self) -> None:
        self._nudge()
        while True:
            self._hurry.clear()
            hooked = {pane: status.agent for pane, status in self.statuses.items() if status.agent}
            folders = self._sought()
            if await self.terminals.look(hooked):
                self._changed_ms = self.clock.awake_ms()
            self.looked.set()
            if self._sought() != folders:
                self._places.set()
            await _wait(self._hurry, wait_ms(self.clock.awake_ms() - self._changed_ms) / 1000)

    async def _watch_transcripts(self) -> None:
        files: list[Wanted] = []
        loop = asyncio.get_running_loop()
        # A thread of its own: a program that does not answer may hold up all the others.
        reader = ThreadPoolExecutor(1, "transcripts")
        while True:
            if self._turns.is_set() or not files:
                await self._turns.wait()
                self._turns.clear()
                files = wanted(self.statuses.values(), TRANSCRIPT_ROOTS)
                self.transcripts.keep((pane, status.transcript) for pane, status in self.statuses.items() if status.transcript)
                self.terminals.forget_marks(self.statuses)
            for marked in await loop.run_in_executor(reader, self.transcripts.look, files) if files else ():
                self.terminals.mark(marked.pane, marked.session, marked.found)
            await asyncio.sleep(TRANSCRIPTS_EVERY_S)

    def _sought(self, former: Iterable[WorktreeKnown] = ()) -> Sought:
        """Where to look for worktrees. What an earlier life has found is looked at once more; then it stands on its own."""
        terminals = self.terminals.known.values()
        agents = [terminal.resident.cwd for terminal in terminals if terminal.resident]
        agents += [status.cwd for status in self.statuses.values() if status.live is not False]
        agents += [known.path for known in former]
        return Sought(self.configured, folders_of(agents), folders_of(terminal.cwd for terminal in terminals))

    async def _watch_worktrees(self) -> None:
        said: dict[WorktreeId, WorktreeKnown] = {}
        while True:
            self._places.clear()
            former, self._former_worktrees = self._former_worktrees, {}
            said |= former
            found = await self.worktrees.round(self._sought(former.values()))
            for known in found.found.values():
                self.known_worktrees.put(known)
            for worktree in removed(said, found.found, found.silent):
                tombstone = msgspec.structs.replace(said.pop(worktree), removed=True, at_ms=self.clock.now_ms())
                self.known_worktrees.put(tombstone, final=True)
                log("worktree.removed", worktree=worktree)
            said |= found.found
            await _wait(self._places, max(WORKTREES_EVERY_S, WORKTREE_SPREAD_S * self.worktrees.checkouts))

    async def _examine_worktrees(self) -> None:
        while True:
            checkout = self.worktrees.due()
            if checkout is None:
                await asyncio.sleep(EXAMINE_EVERY_S)
                continue
            await self.worktrees.examine(checkout)
            known = self.worktrees.tell(checkout)
            if known is not None:
                self.known_worktrees.put(known)

    async def _deliver_spool(self) -> None:
        wait_s = SPOOL_EVERY_S
        while True:
            try:
                left = await asyncio.to_thread(self.spool.deliver)
                wait_s = 0.0 if left else SPOOL_EVERY_S
                self._spool_away = None
            except Away as error:
                if self._spool_away != str(error):
                    self._spool_away = str(error)
                    log("spool.waits", "warning", why=self._spool_away)
                wait_s = min(max(wait_s, 0.25) * 2, SPOOL_WAIT_S_MAX)
            await asyncio.sleep(wait_s)

    # ------------------------------------------------------------ telling what is seen

    async def _tell_sight(self) -> None:
        """Leave word of what can be seen, when it changes and every half minute; and of the clock, for hook commands."""
        before: sight.Sight | None = None
        while True:
            await asyncio.to_thread(self.boot_clock.keep)
            now = await asyncio.to_thread(self.sight)
            if before is None or now.blind != before.blind:
                log("sight.changed", "warning" if now.blind else "info", blind=list(now.blind))
            if before is None or now.at_ms - before.at_ms >= SIGHT_AGAIN_MS or now != msgspec.structs.replace(before, at_ms=now.at_ms):
                await asyncio.to_thread(sight.write, self.spool.state, now)
                before = now
            await asyncio.sleep(SIGHT_EVERY_S)

    def sight(self) -> sight.Sight:
        """What is seen now, and what is not."""
        terminals = list(self.terminals.known.values())
        counts = self.spool.counts
        waiting = len(self.spool.waiting())
        return sight.Sight(
            process=sight.of_this_process(),
            life=self.speaker.life,
            host=self.speaker.host,
            at_ms=self.clock.now_ms(),
            servers=tuple(
                sight.ServerSight(look.socket, len(look.listing.panes) if look.listing else 0, look.why) for look in self.terminals.looks
            ),
            panes=len(terminals),
            agents=sum(terminal.resident is not None for terminal in terminals),
            worktrees=len(self.known_worktrees.values),
            repositories=self.worktrees.repositories,
            transcripts=self.transcripts.followed,
            bus_away=self.values.away,
            spool_waiting=waiting,
            spool_delivered=counts.delivered,
            spool_refused=counts.refused,
            spool_torn=counts.torn,
            spool_lost=self.spool.lost(),
            notices=self.notices.how,
            notices_failed=self.notices.failed,
            blind=tuple(self._blind(waiting)),
        )

    def _blind(self, waiting: int) -> list[str]:
        lines = []
        if self.tmux.program is None:
            lines.append("tmux is not installed: agents are known by their hooks alone")
        lines += [f"tmux shows nothing on {look.socket}: {look.why}" for look in self.terminals.looks if look.why]
        if self.terminals.hidden:
            lines.append(f"the processes of {len(self.terminals.hidden)} panes cannot be seen: which agent runs there is not known")
        if self.git.program is None:
            lines.append("git is not installed: worktrees are known as far as their own files tell")
        lines += [f"{path} is configured and not there" for path in unseen(self.configured)]
        if waiting and self._spool_away:
            lines.append(f"events wait in the spool: {self._spool_away}")
        return lines


async def _wait(event: asyncio.Event, seconds: float) -> None:
    """Until the event is set, for `seconds` at most."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass
