"""Start an agent: worktree, setup, terminal, agent; or nothing at all."""

import asyncio
import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tocsin.agents.launch import LaunchPlan, LaunchRequest, launch_of
from tocsin.contract.hosting import Saw, StartAgent
from tocsin.contract.ids import PaneId, tmux_pane
from tocsin.contract.messages import Process
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.run import Where
from tocsin.pane_host.core.placement import TRASH, checked_path, within
from tocsin.pane_host.core.steps import Standing, Step, standing
from tocsin.pane_host.core.tree import MARK
from tocsin.pane_host.git import branch_at, top_of
from tocsin.pane_host.hands import runner
from tocsin.pane_host.hands.checkouts import Mark, Plan
from tocsin.pane_host.hands.journal import plain_name
from tocsin.pane_host.hands.launcher import Launcher, end_of, identity_of, is_there, pane_path, prepare, taken, words_for
from tocsin.pane_host.hands.made import BRIEF, PANE_FOLDER, SETUP, Made
from tocsin.pane_host.hands.screens import Failed
from tocsin.pane_host.hands.tools import Order, uncut
from tocsin.runtime.instance import FILE_MODE, FOLDER_MODE, Identity, alive

REQUESTS, ANSWERS = "requests", "answers"
"""In the pane's own folder: what its agent asks, and what it is answered."""

SHELL = "/bin/sh"

CHECKOUTS_MAX = 4
"""Worktrees that are made at the same time: each keeps the disk busy."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where an attempt will work, decided before anything is made. `plan`: of a new worktree."""

    path: str
    mark: str
    branch: str | None = None
    plan: Plan | None = None


@dataclass(frozen=True)
class Folders:
    """Where what belongs to one terminal lies."""

    own: Path

    @property
    def pane(self) -> Path:
        """The one that its agent may write to."""
        return self.own / PANE_FOLDER

    @property
    def brief(self) -> Path:
        """Its brief."""
        return self.pane / BRIEF


class NotMade(Exception):
    """Nothing comes of this start. Carries the refusal that tells why."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class Starter:
    """Starts agents in terminals that it makes."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        self._starts = asyncio.Semaphore(CHECKOUTS_MAX)

    async def start(self, order: Order) -> None:
        """Do one StartAgent, from wherever an earlier life has left it."""
        ask = order.command.order
        assert isinstance(ask, StartAgent)
        has_terminal = standing(order.account, Step.TERMINAL) is Standing.DONE
        if order.stopped and has_terminal:
            return  # whoever stops it finds its terminal by its record
        try:
            if order.stopped:
                raise NotMade(Refusal(Code.LIFECYCLE_CONFLICT, "it was stopped before it was started"))
            await self._start(order, ask)
        except NotMade as error:
            await self._take_back(order, error.refusal)
        except asyncio.CancelledError:
            if not order.stopped or standing(order.account, Step.TERMINAL) is Standing.DONE:
                raise
            await self._take_back(order, Refusal(Code.LIFECYCLE_CONFLICT, "it was stopped while it was being started"))

    async def _start(self, order: Order, ask: StartAgent) -> None:
        tools, folders = order.tools, Folders(order.tools.cabinet.folder(order.command.dispatch, order.command.fence))
        is_broken_off = standing(order.account, Step.WORKTREE) is Standing.BROKEN_OFF
        place = await self._place(order, ask, folders)
        await self._worktree(order, place, is_broken_off=is_broken_off)
        made_it = place.plan is not None
        dirty = "what it branches off has uncommitted changes, which are not in it" if place.plan and place.plan.dirty else ""
        order.tell(Saw.WORKTREE_READY, path=place.path, made=made_it, branch=place.branch, detail=dirty)
        if made_it and ask.launch.placement.setup:
            await self._setup(order, ask, place, folders)
        plan = _launch(ask, folders, place.path)
        if isinstance(plan, Refusal):
            raise NotMade(plan)
        await order.once(Step.PREPARE, lambda: _prepared(order, ask, place, plan, folders))
        await order.once(Step.TERMINAL, lambda: uncut(self._terminal(order, ask, place, folders)))
        made = tools.cabinet.get(order.command.dispatch, order.command.fence)
        assert made is not None
        number = order.tell(
            Saw.TERMINAL_MADE, pane=made.pane, process=made.runner, path=made.path, made=made_it, branch=made.branch, detail=plan.note
        )
        # Whoever takes custody of it must be able to know of it before anything happens in it.
        await order.once(Step.TOLD, lambda: _on_record(order, number))
        await order.once(Step.GO, lambda: _go(folders))
        # It may have ended already; without an agent its terminal was closed first, which is told when that is looked at.
        process = tools.trees.process_of(await identity_of(folders.own, runner.AGENT, alive_in=folders.own))
        if process is not None:
            tools.cabinet.change(made, process=process)
            order.tell(Saw.AGENT_STARTED, pane=made.pane, process=process, path=made.path)

    # -------------------------------------------------------------- place

    async def _place(self, order: Order, ask: StartAgent, folders: Folders) -> Place:
        """Where it will work. Raises NotMade while nothing has been made yet."""
        began = order.account.began.get(Step.WORKTREE)
        if began is not None:
            return msgspec.convert(began, Place)
        place = await asyncio.to_thread(_decide, order, ask)
        if isinstance(place, Refusal):
            raise NotMade(place)
        plan = _launch(ask, folders, place.path)
        if isinstance(plan, Refusal):
            raise NotMade(plan)
        if not is_there(plan.argv[0], pane_path()):
            raise NotMade(Refusal(Code.AGENT_MISSING, f"{plan.argv[0]} is not on the PATH of {order.tools.host}"))
        if ask.launch.terminal == "tmux" and order.tools.screens.program is None:
            raise NotMade(Refusal(Code.TMUX_MISSING, f"tmux is not installed on {order.tools.host}"))
        order.page.began(Step.WORKTREE, **msgspec.to_builtins(place))
        return place

    async def _worktree(self, order: Order, place: Place, *, is_broken_off: bool) -> None:
        if standing(order.account, Step.WORKTREE) is Standing.DONE:
            return
        plan = place.plan
        if plan is not None:
            checkouts = order.tools.checkouts
            if is_broken_off:
                # An earlier life was killed in the middle of it: nobody has worked there yet.
                await uncut(asyncio.to_thread(checkouts.unmake, plan))
            mark = Mark(
                dispatch=order.command.dispatch,
                fence=order.command.fence,
                branch=plan.branch,
                base=plan.base,
                base_branch=plan.base_branch,
                path=plan.path,
                made_ms=order.tools.clock.now_ms(),
            )
            async with self._starts:
                refusal = await uncut(asyncio.to_thread(checkouts.make, plan, mark))
            if refusal is not None:
                raise NotMade(refusal)
        order.page.did(Step.WORKTREE)

    # -------------------------------------------------------------- setup

    async def _setup(self, order: Order, ask: StartAgent, place: Place, folders: Folders) -> None:
        """Run the setup command under a runner of its own, so that its end is known whoever is killed meanwhile."""
        command = ask.launch.placement.setup or ""
        folder = folders.own / SETUP
        waits = ask.launch.placement.wait_for_setup

        async def act() -> dict[str, Any]:
            if not taken(folder):
                environment = _environment(order, ask, place)
                spec = runner.Spec(
                    argv=(SHELL, "-c", command), cwd=place.path, environment=environment, unset=(), terminal=False, waits=False, pane=""
                )
                await asyncio.to_thread(prepare, folder, spec, {})
                self._launcher.start(folder, place.path)
            order.tell(Saw.SETUP_RUNNING, path=place.path)
            if not waits:
                return {"waited": False}
            began = await identity_of(folder, runner.RUNNER)
            ended = await end_of(folder, order.tools.setup_s_max) if began is not None else None
            if ended is None:
                late = began is not None and alive(began)
                why = f"it took longer than {order.tools.setup_s_max:g} s" if late else "how it ended is not known"
                raise NotMade(Refusal(Code.SETUP_FAILED, f"the setup command failed: {why}"))
            if ended.code != 0:
                raise NotMade(Refusal(Code.SETUP_FAILED, f"the setup command ended with {ended.code}: {ended.tail[-2000:]}".rstrip(": ")))
            return {"waited": True}

        result = await order.once(Step.SETUP, act)
        if result["waited"]:
            order.tell(Saw.SETUP_ENDED, path=place.path, exit_code=0)

    # ----------------------------------------------------------- terminal

    async def _terminal(self, order: Order, ask: StartAgent, place: Place, folders: Folders) -> dict[str, Any]:
        tools, command = order.tools, order.command
        session = plain_name(command.dispatch, str(command.fence))
        made = Made(
            dispatch=command.dispatch,
            fence=command.fence,
            step=command.step,
            run=ask.run,
            task=ask.task,
            agent=ask.launch.agent,
            terminal=ask.launch.terminal,
            mark=place.mark,
            path=place.path,
            made_ms=tools.clock.now_ms(),
            worktree_made=place.plan is not None,
            branch=place.branch,
            setup_said=place.plan is None or not ask.launch.placement.setup or ask.launch.placement.wait_for_setup,
        )
        if ask.launch.terminal == "process":
            if not taken(folders.own):
                self._launcher.start(folders.own, place.path)
            made = msgspec.structs.replace(made, pane=process_pane(command.dispatch, command.fence))
        else:
            try:
                opened = await tools.screens.find(place.mark)
                if opened is None and not taken(folders.own):
                    opened = await tools.screens.open(session, place.mark, place.path, words_for(folders.own))
            except Failed as error:
                raise NotMade(Refusal(Code.UNAVAILABLE, f"tmux made no terminal: {error}")) from error
            if opened is None:
                raise NotMade(Refusal(Code.UNAVAILABLE, "its terminal was closed before its agent began"))
            started_ms = tools.trees.table.started_ms(opened.server_pid)
            made = msgspec.structs.replace(
                made,
                pane=tmux_pane(f"{tools.screens.socket},{opened.server_pid}", opened.number),
                session=session,
                socket=tools.screens.socket,
                server=Process(pid=opened.server_pid, started_ms=started_ms or 0, boot=tools.trees.boot),
                number=opened.number,
            )
        identity = await identity_of(folders.own, runner.RUNNER)
        process = tools.trees.process_of(identity)
        if identity is None or process is None or not alive(identity):
            raise NotMade(Refusal(Code.UNAVAILABLE, "its terminal ended before its agent began"))
        made = tools.cabinet.put(msgspec.structs.replace(made, runner=process))
        return {"pane": made.pane}

    # ---------------------------------------------------------- take back

    async def _take_back(self, order: Order, refusal: Refusal) -> None:
        """Undo all that was begun, and tell why. Nothing half-made stays."""
        tools, command = order.tools, order.command
        folder = tools.cabinet.folder(command.dispatch, command.fence)
        began = order.account.began.get(Step.WORKTREE)
        if began is not None:
            place = msgspec.convert(began, Place)
            await tools.trees.end(lambda: (_identity(folder), _identity(folder / SETUP)), place.mark)
            try:
                opened = await tools.screens.find(place.mark) if tools.screens.program else None
                if opened is not None:
                    await tools.screens.close(tools.screens.socket, opened.number)
            except Failed:
                pass  # its only process has ended, and a terminal ends with it
            if place.plan is not None:
                await asyncio.to_thread(tools.checkouts.unmake, place.plan)
        made = tools.cabinet.get(command.dispatch, command.fence)
        if made is not None and made.dispatch == command.dispatch:
            tools.cabinet.drop(made)
        await asyncio.to_thread(shutil.rmtree, folder, True)
        order.refuse(refusal)


def process_pane(dispatch: str, fence: int) -> PaneId:
    """The id of an agent without a terminal. Without dots: tmux panes have them."""
    return PaneId(f"process-{plain_name(dispatch, str(fence))}")


def _identity(folder: Path) -> Identity | None:
    found: Identity | None = runner.read(folder, runner.RUNNER, Identity)
    return found


def _decide(order: Order, ask: StartAgent) -> Place | Refusal:
    placement, tools = ask.launch.placement, order.tools
    given = checked_path(placement.path)
    if isinstance(given, Refusal):
        return given
    folder = os.path.realpath(given)
    if not os.path.isdir(folder) or not os.access(folder, os.R_OK | os.X_OK):  # noqa: PTH112
        return Refusal(Code.BAD_PLACE, f"{given} is no folder that can be entered")
    if within(folder, str(tools.state)) or f"/{TRASH}/" in f"{folder}/":
        return Refusal(Code.BAD_PLACE, f"{given} belongs to Tocsin itself")
    mark = secrets.token_hex(8)
    if placement.where in (Where.NEW_CHILD, Where.NEW_TOP_LEVEL):
        plan = tools.checkouts.plan(folder, placement.branch, placement.base, child=placement.where is Where.NEW_CHILD)
        return plan if isinstance(plan, Refusal) else Place(path=plan.path, mark=mark, branch=plan.branch, plan=plan)
    top = top_of(folder)
    return Place(path=folder, mark=mark, branch=branch_at(top) if top else None)


def _environment(order: Order, ask: StartAgent, place: Place) -> dict[str, str]:
    """What everything that runs for this Dispatch carries."""
    return {
        "PATH": pane_path(),
        "TOCSIN_DISPATCH": order.command.dispatch,
        "TOCSIN_RUN": ask.run,
        "TOCSIN_TASK": ask.task,
        "TOCSIN_STATE": str(order.tools.state),
        MARK: place.mark,
    }


def _launch(ask: StartAgent, folders: Folders, cwd: str) -> LaunchPlan | Refusal:
    return launch_of(
        LaunchRequest(
            agent=ask.launch.agent,
            folder=str(folders.pane),
            brief=ask.brief,
            brief_file=str(folders.brief),
            cwd=cwd,
            model=ask.launch.model,
            terminal=ask.launch.terminal,
            command=ask.launch.command,
        )
    )


async def _prepared(order: Order, ask: StartAgent, place: Place, plan: LaunchPlan, folders: Folders) -> dict[str, Any]:
    is_process = ask.launch.terminal == "process"
    spec = runner.Spec(
        argv=plan.argv,
        cwd=place.path,
        environment={**plan.environment, **_environment(order, ask, place), "TOCSIN_FOLDER": str(folders.pane)},
        unset=tuple(sorted(plan.unset)),
        terminal=not is_process,
        pane=process_pane(order.command.dispatch, order.command.fence) if is_process else None,
    )
    files = {folders.brief: ask.brief} | {Path(file): text for file, text in plan.files.items()}
    for folder in (folders.own, folders.pane, folders.pane / REQUESTS, folders.pane / ANSWERS):
        await asyncio.to_thread(folder.mkdir, FOLDER_MODE, exist_ok=True)
    await asyncio.to_thread(prepare, folders.own, spec, files)
    return {}


async def _on_record(order: Order, number: int) -> dict[str, Any]:
    await order.tools.telling.until_said(order.page, number)
    return {}


async def _go(folders: Folders) -> dict[str, Any]:
    os.close(os.open(folders.own / runner.GO, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, FILE_MODE))
    return {}
