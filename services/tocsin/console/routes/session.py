"""Login: a ticket for who has the command credential, a session for who has the ticket."""

import secrets
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request, Response

from tocsin.console.answers import answer, body_of, refuse, session_of
from tocsin.console.asker import Askers
from tocsin.console.core.session import Scope, Session, digest_of, is_to_renew
from tocsin.console.store import TICKET_MS, ConsoleStore, Grant
from tocsin.contract.faults import Unavailable
from tocsin.contract.refusals import Code, Refusal
from tocsin.runtime.clock import Clock

TICKET_BYTES = 32
NAME_CHARS_MAX = 64


def routes(store: ConsoleStore, askers: Askers, clock: Clock, about: Mapping[str, Any]) -> APIRouter:
    """`about`: what a page is told of the instance beside its session."""
    router = APIRouter()

    def told(session: Session) -> dict[str, Any]:
        return {"name": session.name, "scope": session.scope, "until": session.until_ms, "now": clock.now_ms(), **about}

    @router.post("/api/tickets")
    async def give(request: Request) -> Response:
        """A ticket for one session, good for a minute. `name`: who will look; `scope`: `command` or `read`."""
        body = await body_of(request)
        if isinstance(body, Refusal):
            return refuse(body)
        name, scope = body.get("name", "person"), body.get("scope", Scope.COMMAND)
        if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= NAME_CHARS_MAX:
            return refuse(Refusal(Code.BAD_FIELD, f"name: at most {NAME_CHARS_MAX} characters that can be printed"))
        if scope not in set(Scope):
            return refuse(Refusal(Code.BAD_FIELD, "scope: `command` or `read`"))
        ticket = secrets.token_urlsafe(TICKET_BYTES)
        try:
            await store.put_ticket(digest_of(ticket), Grant(name=name, scope=Scope(scope)))
        except Unavailable as error:
            return refuse(Refusal(Code.UNAVAILABLE, str(error)))
        return answer({"ticket": ticket, "lives_ms": TICKET_MS})

    @router.post("/api/login")
    async def login(request: Request) -> Response:
        """A session for a ticket, as a cookie."""
        body = await body_of(request)
        if isinstance(body, Refusal):
            return refuse(body)
        ticket = body.get("ticket")
        if not isinstance(ticket, str):
            return refuse(Refusal(Code.BAD_FIELD, "ticket: a text"))
        try:
            grant = await store.take_ticket(digest_of(ticket))
        except Unavailable as error:
            return refuse(Refusal(Code.UNAVAILABLE, str(error)))
        if grant is None:
            return refuse(Refusal(Code.BAD_TICKET, "the ticket was used already, is older than a minute, or is none"))
        session = askers.fresh(grant.name, grant.scope)
        told_now = answer(told(session))
        told_now.headers["Set-Cookie"] = askers.set_cookie(session)
        return told_now

    @router.get("/api/session")
    async def look(request: Request) -> Response:
        """Who looks, and where; a session of which half is over is renewed."""
        session = session_of(request)
        by_cookie = "authorization" not in request.headers
        renews = by_cookie and is_to_renew(session, clock.now_ms())
        told_now = answer(told(askers.renewed(session) if renews else session))
        if renews:
            told_now.headers["Set-Cookie"] = askers.set_cookie(askers.renewed(session))
        return told_now

    @router.post("/api/logout")
    async def leave() -> Response:
        """The page forgets its session."""
        gone = answer({})
        gone.headers["Set-Cookie"] = askers.drop_cookie()
        return gone

    return router
