"""The list: once, as a stream, and why a worktree stands where it stands."""

import time
from collections.abc import AsyncIterator, Callable

import msgspec
from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from tocsin.console.answers import answer, refuse, session_of
from tocsin.console.core.lists import whole
from tocsin.console.core.moves import TOPICS_MAX, is_topic
from tocsin.console.moves import Moves
from tocsin.console.service import Event, Live
from tocsin.contract.refusals import Code, Refusal
from tocsin.listing.explain import decider, why_above, why_here
from tocsin.listing.find import resolve
from tocsin.listing.marks import MINE
from tocsin.listing.orders import KEYS, SMART
from tocsin.listing.plain import plain_row
from tocsin.runtime.clock import Clock

RETRY_MS = 1_000
"""How long a browser waits before it opens a broken stream again."""

OFFSET_MIN_MAX = 14 * 60
"""The easternmost time zone; the westernmost is nearer."""


def encode(event: Event) -> bytes:
    """An event as it travels. JSON holds no line breaks, so one data line is enough."""
    name = f"id: {event.id}\n" if event.id else ""
    return f"event: {event.name}\n{name}data: ".encode() + msgspec.json.encode(event.data) + b"\n\n"


def time_of(offset_min: int, now_ms: int) -> Callable[[int], str]:
    """Writes moments as a clock shows them that is `offset_min` minutes ahead of UTC; with the date when it is not today's."""

    def shown(moment_ms: int) -> str:
        local, today = (time.gmtime(at_ms / 1000 + offset_min * 60) for at_ms in (moment_ms, now_ms))
        return time.strftime("%H:%M:%S" if local[:3] == today[:3] else "%Y-%m-%d %H:%M:%S", local)

    return shown


def routes(live: Live, moves: Moves, clock: Clock) -> APIRouter:
    """All of them read and change nothing."""
    router = APIRouter()

    def refused_sort(sort: str) -> Refusal | None:
        known = (SMART, *KEYS, MINE)
        return None if sort in known else Refusal(Code.BAD_FIELD, f"sort: one of {', '.join(known)}")

    @router.get("/api/worktrees")
    async def worktrees(sort: str = SMART) -> Response:
        """The list as it stands."""
        body = refused_sort(sort) or live.latest()
        return refuse(body) if isinstance(body, Refusal) else answer(whole(body, sort, live.marks, clock.now_ms()))

    @router.get("/api/stream")
    async def stream(request: Request, sort: str = SMART, after: str | None = None, before: str | None = None, watch: str = "") -> Response:
        """The list, then every change, as server-sent events; `Last-Event-ID` or `after` names the edition that the viewer has.

        `before`: the order that it had until now. `watch`: what else the page shows and hears of when it moves, with commas between:
        `run`, `run:ID`, `mail`, `mail:RUN`, `custody`, `custody:RUN`.
        """
        topics = watch.split(",") if watch else []
        refusal = refused_sort(sort)
        if refusal is None and (len(topics) > TOPICS_MAX or not all(map(is_topic, topics))):
            refusal = Refusal(Code.BAD_FIELD, f"watch: at most {TOPICS_MAX} of run, mail or custody, each with or without :ID")
        if refusal is not None:
            return refuse(refusal)
        has = request.headers.get("last-event-id") or after
        until_ms = session_of(request).until_ms

        async def events() -> AsyncIterator[bytes]:
            async with live.viewer(sort, before) as news:
                if news is None:
                    return
                with moves.watch(topics, news) as watching:
                    yield f"retry: {RETRY_MS}\n\n".encode()
                    async for event in live.stream(news, watching, sort, has, until_ms):
                        yield encode(event)

        return StreamingResponse(events(), media_type="text/event-stream", headers={"Cache-Control": "no-store"})

    @router.get("/api/why")
    async def why(a: str, b: str | None = None, offset: int = 0) -> Response:
        """One line: why `a` stands where it stands, or above or below `b`. `offset`: the reader's clock, in minutes ahead of UTC."""
        body = live.latest()
        if isinstance(body, Refusal):
            return refuse(body)
        if abs(offset) > OFFSET_MIN_MAX:
            return refuse(Refusal(Code.BAD_FIELD, f"offset: minutes, at most {OFFSET_MIN_MAX}"))
        rows = []
        for named in (a, b):
            if named is not None:
                row = resolve(body.worktrees, named)
                if isinstance(row, Refusal):
                    return refuse(row)
                rows.append(row)
        rows.sort(key=lambda row: row.rank)
        written = time_of(offset, clock.now_ms())
        if len(rows) == 1 or rows[0].id == rows[1].id:
            line, decided_by = why_here(rows[0], len(body.worktrees), written), None
        else:
            line, decided_by = why_above(rows[0], rows[1], written), decider(rows[0], rows[1]).value
        return answer({"line": line, "decided_by": decided_by, "worktrees": [plain_row(row) for row in rows]})

    return router
