"""Remove worktrees that may go, bring them back, and forget them when their time is over. Each decision is logged with its reason."""

import asyncio
import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import psutil

from tocsin.contract.hosting import RemoveWorktree, RestoreWorktree, Saw
from tocsin.contract.messages import State
from tocsin.contract.refusals import Code, Refusal
from tocsin.pane_host.core.placement import checked_path, within
from tocsin.pane_host.core.steps import Standing, Step, standing
from tocsin.pane_host.core.trash import KEEP_MS, Keep, Kept, reason_to_keep
from tocsin.pane_host.hands.checkouts import Failed
from tocsin.pane_host.hands.journal import plain_name
from tocsin.pane_host.hands.tools import Order, Tools, fact_of
from tocsin.runtime.instance import FOLDER_MODE, write_private
from tocsin.runtime.logs import log

TRASH_NOTES = "trash"


class Trashed(msgspec.Struct, frozen=True, kw_only=True):
    """One worktree in the trash: what is needed to bring it back, or to forget it."""

    dispatch: str
    fence: int
    step: str
    path: str
    trash: str
    branch: str | None
    tip: str | None
    at_ms: int
    until_ms: int


class Cleaner:
    """Moves worktrees to the trash and back."""

    async def remove(self, order: Order) -> None:
        """Do one RemoveWorktree."""
        ask = order.command.order
        assert isinstance(ask, RemoveWorktree)
        await order.tools.eyes.open()
        tools = order.tools
        given = checked_path(ask.path)
        if isinstance(given, Refusal):
            order.refuse(given)
            return
        path = await asyncio.to_thread(os.path.realpath, given)
        if Step.TRASH not in order.account.began:
            kept = await asyncio.to_thread(self._examine, tools, path, ask.branch)
            if kept is not None:
                self._keep(order, path, kept)
                return
        name = plain_name(Path(path).name, order.command.dispatch, order.command.step)
        trash = tools.checkouts.trash_for(path, name)
        try:
            result = await order.once(Step.TRASH, lambda: self._move(order, path, trash, ask.branch), path=path, trash=trash)
        except Failed as error:
            self._keep(order, path, Kept(Keep.CANNOT_MOVE, f"git does not move it: {error}", (f"git -C '{path}' status",)))
            return
        if result.get("kept"):
            self._keep(order, path, msgspec.convert(result["kept"], Kept))
            return
        log("worktree.trashed", dispatch=order.command.dispatch, path=path, trash=trash)
        order.tell(
            Saw.WORKTREE_TRASHED, path=path, branch=ask.branch, detail=trash, next=(f"tocsin custody undo {order.command.dispatch}",)
        )

    def _keep(self, order: Order, path: str, kept: Kept) -> None:
        log("worktree.kept", dispatch=order.command.dispatch, path=path, code=kept.code, why=kept.why)
        order.tell(Saw.WORKTREE_KEPT, path=path, code=kept.code.value, detail=kept.why, next=kept.next)

    def _examine(self, tools: Tools, path: str, branch: str | None) -> Kept | None:
        found = tools.checkouts.examine(path, users_of(tools, path))
        if branch is not None and found.ours and found.made_branch != branch:
            return Kept(Keep.OTHER_BRANCH, f"it was made for {found.made_branch}, not for {branch}")
        return reason_to_keep(found)

    async def _move(self, order: Order, path: str, trash: str, branch: str | None) -> dict[str, Any]:
        """Move it, and look again where it lies now: what was written meanwhile brings it back."""
        return await asyncio.to_thread(self._move_now, order, path, trash, branch)

    def _move_now(self, order: Order, path: str, trash: str, branch: str | None) -> dict[str, Any]:
        tools = order.tools
        note = _note_of(tools, trash)
        if not Path(trash).exists():
            # Broken off before the move, a moment or a week ago: what was true then may not be now.
            if standing(order.account, Step.TRASH) is Standing.BROKEN_OFF:
                kept = self._examine(tools, path, branch)
                if kept is not None:
                    return {"kept": msgspec.to_builtins(kept)}
            now_ms = tools.clock.now_ms()
            marked = tools.checkouts.mark_of(path)
            trashed = Trashed(
                dispatch=order.command.dispatch,
                fence=order.command.fence,
                step=order.command.step,
                path=path,
                trash=trash,
                branch=marked[1].branch if marked else None,
                tip=tools.checkouts.tip(path),
                at_ms=now_ms,
                until_ms=now_ms + KEEP_MS,
            )
            note.parent.mkdir(exist_ok=True, mode=FOLDER_MODE)
            write_private(note, msgspec.json.encode(trashed))
            try:
                tools.checkouts.move(path, trash)
            except Failed:
                note.unlink(missing_ok=True)
                raise
        found = reason_to_keep(tools.checkouts.examine(trash, ()))
        if found is None:
            return {}
        tools.checkouts.move(trash, path)
        note.unlink(missing_ok=True)
        return {
            "kept": msgspec.to_builtins(Kept(Keep.CHANGED, f"it changed after it was looked at: {found.why}", (f"git -C '{path}' status",)))
        }

    # ------------------------------------------------------------- restore

    async def restore(self, order: Order) -> None:
        """Do one RestoreWorktree."""
        ask = order.command.order
        assert isinstance(ask, RestoreWorktree)
        for path in (ask.path, ask.trash):
            refusal = checked_path(path)
            if isinstance(refusal, Refusal):
                order.refuse(refusal)
                return
        note = await asyncio.to_thread(_read_note, _note_of(order.tools, ask.trash))
        if note is None and Step.RESTORE not in order.account.began:
            order.refuse(
                Refusal(Code.NOT_FOUND, f"{ask.trash} is not in the trash: its time is over, or it was brought back"), path=ask.path
            )
            return
        try:
            result = await order.once(Step.RESTORE, lambda: _bring_back(order.tools, ask.path, ask.trash))
        except Failed as error:
            order.refuse(Refusal(Code.WORKTREE_TAKEN, f"it could not be brought back to {ask.path}: {error}"), path=ask.path)
            return
        if result.get("taken"):
            order.refuse(Refusal(Code.WORKTREE_TAKEN, f"something else is at {ask.path} now"), path=ask.path)
            return
        log("worktree.restored", dispatch=order.command.dispatch, path=ask.path)
        order.tell(Saw.WORKTREE_RESTORED, path=ask.path, branch=note.branch if note else None)

    # --------------------------------------------------------------- purge

    async def purge(self, tools: Tools) -> None:
        """Forget what has been in the trash for its time."""
        for file in await asyncio.to_thread(_notes, tools):
            note = await asyncio.to_thread(_read_note, file)
            if note is None or note.until_ms > tools.clock.now_ms():
                continue
            if await asyncio.to_thread(tools.checkouts.purge, note.trash, note.branch, note.tip):
                await asyncio.to_thread(file.unlink, True)
                log("worktree.purged", dispatch=note.dispatch, path=note.path, branch=note.branch, tip=note.tip)
                page = tools.journal.pages.get((note.dispatch, note.fence, note.step))
                if page is not None:
                    fact = fact_of(tools, page.account.order, Saw.WORKTREE_PURGED, path=note.path, branch=note.branch, detail=note.trash)
                    tools.telling.tell(page, fact)


def _notes(tools: Tools) -> list[Path]:
    return sorted((tools.folder / TRASH_NOTES).glob("*.json"))


def _note_of(tools: Tools, trash: str) -> Path:
    return tools.folder / TRASH_NOTES / f"{plain_name(trash)}.json"


def _read_note(file: Path) -> Trashed | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=Trashed)
    except (OSError, msgspec.MsgspecError):
        return None


async def _bring_back(tools: Tools, path: str, trash: str) -> dict[str, Any]:
    def act() -> dict[str, Any]:
        if Path(trash).exists():
            if os.path.lexists(path):
                return {"taken": True}
            tools.checkouts.move(trash, path)
            with contextlib.suppress(OSError):  # others wait in it
                Path(trash).parent.rmdir()
        elif not Path(path).exists():
            raise Failed("it is not there any more")
        _note_of(tools, trash).unlink(missing_ok=True)
        return {}

    return await asyncio.to_thread(act)


def users_of(tools: Tools, path: str) -> list[str] | None:
    """Who is in a folder: panes, agents and processes of this user; None when it cannot be told."""
    if tools.eyes.blind():
        return None
    found: dict[str, None] = {}
    # Whose end is proven works nowhere any more, also while its terminal is still being closed.
    over = {made.pane for made in tools.cabinet if made.released or (made.runner is not None and not tools.trees.runs(made.runner))}
    for made in tools.cabinet:
        if within(made.path, path) and made.pane and made.pane not in over:
            found[f"pane {made.pane}"] = None
    for pane, terminal in list(tools.eyes.terminals().items()):
        folders = [terminal.cwd, terminal.resident.cwd if terminal.resident else None]
        if pane not in over and any(folder and within(folder, path) for folder in folders):
            found[f"pane {pane}"] = None
    for pane, status in list(tools.eyes.statuses().items()):
        # What only hooks tell of is there as long as its process is; processes are looked at below, too.
        lives = status.live is True or (status.process is not None and tools.trees.runs(status.process))
        if pane not in over and status.cwd and within(status.cwd, path) and lives and status.state is not State.GONE:
            found[f"pane {pane}"] = None
    _add_processes(found, path, lambda process: str(process.cwd()))
    return list(found)


def _add_processes(found: dict[str, None], path: str, folder_of: Callable[[psutil.Process], str]) -> None:
    """Processes that work there; those of others cannot be asked, and are none of ours."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if within(folder_of(process), path):
                found[f"{process.name()} {process.pid}"] = None
