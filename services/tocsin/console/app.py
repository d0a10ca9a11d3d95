"""The whole HTTP service: the front, and the routes behind it."""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from tocsin.bus.bus import Bus, Unavailable
from tocsin.console.answers import answer, refuse
from tocsin.console.asker import Askers
from tocsin.console.front import Front
from tocsin.console.moves import Moves
from tocsin.console.notifier import Notifier
from tocsin.console.reads import Reads
from tocsin.console.routes import commands, day, jump, loop, marks, notify, page, session, worktrees
from tocsin.console.service import Live
from tocsin.console.store import ConsoleStore
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.subjects import WORKTREE_SORTED
from tocsin.runtime.clock import Clock


def front_of(
    bus: Bus,
    store: ConsoleStore,
    live: Live,
    moves: Moves,
    notifier: Notifier,
    askers: Askers,
    clock: Clock,
    host: str,
    about: Mapping[str, Any],
) -> Front:
    """Everything that is served, ready for a server."""
    # No page of documentation: it would load its scripts from the internet.
    app = FastAPI(title="Tocsin console", version=version("tocsin"), docs_url=None, redoc_url=None, openapi_url="/api/openapi.json")

    @app.exception_handler(RequestValidationError)
    async def not_understood(_request: Request, error: RequestValidationError) -> Response:
        """A parameter that is missing or of the wrong kind; its value is not repeated."""
        fields = ", ".join(".".join(map(str, one["loc"])) for one in error.errors())
        return refuse(Refusal(Code.BAD_FIELD, f"missing or not understood: {fields}"))

    @app.exception_handler(HTTPException)
    async def not_there(_request: Request, _error: HTTPException) -> Response:
        """A path or a method that nobody serves."""
        return refuse(Refusal(Code.NOT_FOUND, "nothing is served here"))

    @app.get("/health")
    async def health() -> Response:
        """200 while the list can be told, 503 when the bus does not answer."""
        try:
            await bus.birth(WORKTREE_SORTED)
        except Unavailable:
            return refuse(Refusal(Code.UNAVAILABLE, "the bus does not answer"))
        return answer({"status": "ok", "version": app.version})

    app.include_router(session.routes(store, askers, clock, about))
    app.include_router(worktrees.routes(live, moves, clock))
    app.include_router(loop.routes(Reads(bus, clock, lambda: moves.heard), clock))
    app.include_router(commands.routes(bus, clock))
    app.include_router(day.routes(store, clock))
    app.include_router(jump.routes(live, host))
    app.include_router(marks.routes(live, notifier, clock))
    app.include_router(notify.routes(notifier, clock))
    app.include_router(page.routes(page.read()))  # last: it takes every path that is left
    return Front(app, askers)
