"""Watches over the terminals that we made: which still live after our own restart, which agents have ended, where a person has typed."""

import asyncio
import shutil

from tocsin.contract.hosting import Saw
from tocsin.contract.messages import PaneSeen
from tocsin.contract.subjects import DAY_S
from tocsin.pane_host.core.facts import Speaker
from tocsin.pane_host.hands import runner
from tocsin.pane_host.hands.ending import is_still
from tocsin.pane_host.hands.folders import PaneFolders
from tocsin.pane_host.hands.made import Made
from tocsin.pane_host.hands.tools import Tools, tell_of
from tocsin.pane_host.last_values import Family
from tocsin.runtime.instance import Identity, alive
from tocsin.runtime.logs import log

LOOK_S = 0.25

KEY_AGAIN_MS = 60_000
"""A person who types on is told of at most so often."""

KEPT_MS = 7 * DAY_S * 1000
"""How long what is left of a released terminal, and the journal of orders that are over, stay on disk."""

SHOWN_MAX = 10


class Watcher:
    """One look after the other at all terminals that are not released."""

    def __init__(self, tools: Tools, speaker: Speaker, seen: Family[PaneSeen]) -> None:
        self._tools = tools
        self._speaker = speaker
        self._seen = seen

    async def find_again(self) -> None:
        """Once, after a start: tell of every terminal that lives. Which ones do not is told by the first look."""
        for made in self._tools.cabinet:
            if not made.released and (self._runs(made) or await is_still(self._tools, made)):
                log("terminal.found", dispatch=made.dispatch, pane=made.pane)
                tell_of(self._tools, made, Saw.FOUND, once=False, process=made.runner, detail=f"it lives; made for {made.dispatch}")

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            for made in self._tools.cabinet:
                if not made.released:
                    await self._look(made)
                elif made.terminal == "process" and made.pane:
                    self._say_process(made, is_over=True)
            await asyncio.sleep(LOOK_S)

    def _runs(self, made: Made) -> bool:
        identity = self._tools.cabinet.runner_of(made)
        return identity is not None and alive(identity)

    async def _look(self, made: Made) -> None:
        cabinet = self._tools.cabinet
        # In this order: a runner that has just gone may have written the end before.
        runs = self._runs(made)
        ended = cabinet.end_of(made)
        if ended is not None and not made.exited:
            made = self._tools.cabinet.change(made, exited=True)
            tell_of(self._tools, made, Saw.EXITED, process=made.process, exit_code=ended.code, detail=ended.tail)
            log("agent.ended", dispatch=made.dispatch, code=ended.code)
        elif ended is None and not runs and not made.exited and not self._agent_runs(made):
            made = self._tools.cabinet.change(made, exited=True, lost=True)
            left = await asyncio.to_thread(self._tools.trees.look, (None,), made.mark) or {}
            names = ", ".join(
                f"{one.program} {one.process.pid}, {self._age_s(one.process.started_ms)} s old" for one in list(left.values())[:SHOWN_MAX]
            )
            detail = (
                f"its runner and its agent are gone, how they ended is not known{f'; {len(left)} carry its mark: {names}' if left else ''}"
            )
            tell_of(self._tools, made, Saw.LOST, process=made.runner, detail=detail, count=len(left), next=self._next(made))
            log("terminal.lost", "warning", dispatch=made.dispatch, left=len(left))
        if not made.setup_said:
            made = self._setup(made)
        self._keys(made)
        if made.terminal == "process":
            self._say_process(made, is_over=made.exited and not runs)

    def _agent_runs(self, made: Made) -> bool:
        identity = self._tools.cabinet.agent_of(made)
        return identity is not None and alive(identity)

    def _age_s(self, started_ms: int) -> int:
        return max(0, self._tools.clock.now_ms() - started_ms) // 1000

    def _next(self, made: Made) -> tuple[str, ...]:
        holder = made.holder or made
        return (f"tocsin worker show {holder.dispatch}", f"tocsin custody release {holder.dispatch}")

    def _setup(self, made: Made) -> Made:
        """Tell how a setup has ended that nobody waited for."""
        folder = self._tools.cabinet.setup_of(made)
        ended: runner.Ended | None = runner.read(folder, runner.EXIT, runner.Ended)
        identity: Identity | None = runner.read(folder, runner.RUNNER, Identity)
        if ended is None and (identity is None or alive(identity)):
            return made
        made = self._tools.cabinet.change(made, setup_said=True)
        how = {"exit_code": ended.code, "detail": ended.tail} if ended else {"detail": "how it ended is not known"}
        tell_of(self._tools, made, Saw.SETUP_ENDED, **how)
        return made

    def _keys(self, made: Made) -> None:
        terminal = self._tools.eyes.terminals().get(made.pane) if made.pane else None
        key_ms = terminal.last_key_ms if terminal else None
        if key_ms is None or key_ms < made.made_ms // 1000 * 1000 or key_ms < made.key_said_ms + KEY_AGAIN_MS:
            return
        made = self._tools.cabinet.change(made, key_said_ms=key_ms)
        log("terminal.key", dispatch=made.dispatch, pane=made.pane)
        tell_of(self._tools, made, Saw.HUMAN_KEY, once=False)

    def _say_process(self, made: Made, *, is_over: bool) -> None:
        """An agent without a terminal is in no listing of tmux: whether it lives is said from here."""
        assert made.pane is not None
        lives = self._agent_runs(made)
        seen = PaneSeen(
            host=self._speaker.host,
            pane=made.pane,
            life=self._speaker.life,
            at_ms=self._tools.clock.now_ms(),
            workspace=self._speaker.workspace,
            live=not is_over,
            agent=made.agent if lives else None,
            process=made.process if lives else None,
            cwd=made.path,
            locator=f"process {made.runner.pid if made.runner else 0}",
        )
        known = self._seen.values.get(self._seen.subject.of(seen))
        if is_over and known is None:
            return
        self._seen.put(seen, final=is_over)

    async def tidy(self, folders: PaneFolders) -> None:
        """Remove what is left of terminals that were released long ago, and the journal of orders that are over."""
        tools = self._tools
        before_ms = tools.clock.now_ms() - KEPT_MS
        for made in tools.cabinet:
            if made.released and made.made_ms < before_ms and folders.idle(made):
                await asyncio.to_thread(shutil.rmtree, tools.cabinet.folder_of(made), True)
                tools.cabinet.drop(made)
                folders.forget(made)
        kept = {made.dispatch for made in tools.cabinet} | {made.holder.dispatch for made in tools.cabinet if made.holder}
        forgotten = await asyncio.to_thread(tools.journal.forget_before, before_ms, kept)
        if forgotten:
            log("journal.tidied", orders=forgotten)
