"""The person's marks: what is urgent, and what is snoozed."""

from collections.abc import Mapping
from typing import Any

import msgspec
from fastapi import APIRouter, Request, Response

from tocsin.console.answers import answer, body_of, refuse
from tocsin.console.notifier import Notifier
from tocsin.console.service import Live
from tocsin.contract.faults import Unavailable
from tocsin.contract.ids import WorktreeId
from tocsin.contract.messages import Row
from tocsin.contract.notices import Mark, Snooze
from tocsin.contract.refusals import Code, Refusal
from tocsin.listing.find import resolve
from tocsin.listing.marks import by_worktree, latest_prompt_ms
from tocsin.listing.plain import plain_marks
from tocsin.runtime.clock import Clock

SNOOZE_MS_MAX = 30 * 24 * 3_600_000
"""Who needs nobody for longer is better closed."""

MARKS_MAX = 1_000
"""More marks than this mark nothing."""

ANEW = "anew"


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a mark is to become. What is not named stays. `snooze`: milliseconds, "anew", or null: none."""

    worktree: str
    urgent: bool | msgspec.UnsetType = msgspec.UNSET
    snooze: int | str | msgspec.UnsetType | None = msgspec.UNSET


def cleared(marks: Mapping[WorktreeId, Mark], asked: Asked, unlisted: Refusal) -> Mark | Refusal:
    """The mark of a worktree that is not listed any more, taken away. Refuses: `unlisted`, whatever else is asked."""
    mark = marks.get(WorktreeId(asked.worktree))
    if mark is None or asked.urgent is not False or asked.snooze is not None:
        return unlisted
    return msgspec.structs.replace(mark, urgent=False, snooze=None)


def marked(marks: Mapping[WorktreeId, Mark], row: Row, asked: Asked, now_ms: int) -> Mark | Refusal:
    """The mark of `row` as it is asked for. Refuses: bad_field, also when there are too many marks."""
    before = marks.get(row.id)
    if before is None and len(marks) >= MARKS_MAX:
        return Refusal(Code.BAD_FIELD, f"there are {MARKS_MAX} marks already: clear some")
    mark = msgspec.structs.replace(before, at_ms=now_ms) if before is not None else Mark(worktree=row.id, at_ms=now_ms)
    if asked.urgent is not msgspec.UNSET:
        mark = msgspec.structs.replace(mark, urgent=asked.urgent)
    match asked.snooze:
        case msgspec.UNSET:
            return mark
        case None:
            return msgspec.structs.replace(mark, snooze=None)
        case int(length) if 0 < length <= SNOOZE_MS_MAX:
            return msgspec.structs.replace(mark, snooze=Snooze(until_ms=now_ms + length))
        case "anew":
            return msgspec.structs.replace(mark, snooze=Snooze(prompt_ms=latest_prompt_ms(row)))
    return Refusal(Code.BAD_FIELD, f"snooze: milliseconds, at most {SNOOZE_MS_MAX}, or {ANEW!r}, or null")


def routes(live: Live, notifier: Notifier, clock: Clock) -> APIRouter:
    """`live` knows the list, `notifier` keeps the marks."""
    router = APIRouter()

    @router.get("/api/marks")
    async def look() -> Response:
        """All marks, by worktree."""
        return answer({"marks": plain_marks(live.marks)})

    @router.post("/api/marks")
    async def mark(request: Request) -> Response:
        """Change the mark of one worktree, named by id or name as the list has it; answers with all."""
        body = await body_of(request)
        asked = body if isinstance(body, Refusal) else understand(body)
        if isinstance(asked, Refusal):
            return refuse(asked)
        found = live.latest()
        row = found if isinstance(found, Refusal) else resolve(found.worktrees, asked.worktree)
        try:
            marks = by_worktree(await notifier.marks())
            wanted = cleared(marks, asked, row) if isinstance(row, Refusal) else marked(marks, row, asked, clock.now_ms())
            if isinstance(wanted, Refusal):
                return refuse(wanted)
            marks = by_worktree(await notifier.mark(wanted))
        except Unavailable as error:
            return refuse(Refusal(Code.UNAVAILABLE, str(error)))
        name = wanted.worktree if isinstance(row, Refusal) else row.name
        return answer({"worktree": wanted.worktree, "name": name, "marks": plain_marks(marks)})

    return router


def understand(body: Mapping[str, Any]) -> Asked | Refusal:
    """What a body asks for. Refuses: bad_field."""
    try:
        return msgspec.convert(body, Asked)
    except msgspec.ValidationError as error:
        return Refusal(Code.BAD_FIELD, str(error))
