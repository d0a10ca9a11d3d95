"""The whole HTTP service: the hook route in front, FastAPI for the rest, the border around both."""

import asyncio
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse, Response

from tocsin.bus.bus import Bus, Unavailable
from tocsin.contract.refusals import ADVICE, Code, Refusal
from tocsin.contract.subjects import HOOK_REPORTED
from tocsin.hook_ingest.account import Account
from tocsin.hook_ingest.credentials import Credentials
from tocsin.hook_ingest.envelope import HEADERS
from tocsin.hook_ingest.idle import PARK_PATH, PARK_S, SESSION_HEADER
from tocsin.hook_ingest.publisher import SAY_S_MAX
from tocsin.hook_ingest.service import HOOK_PATH, HookIngest
from tocsin.runtime.http.asgi import Receive, Scope, Send, answer_refusal
from tocsin.runtime.http.border import Border, joined

OPEN_PATHS = frozenset({"/health", "/openapi.json"})
"""What may be read without a credential: it names no pane, path or person."""

HOOK_REFUSALS = (
    Code.BAD_JSON,
    Code.BAD_TEXT,
    Code.TOO_DEEP,
    Code.NO_CREDENTIAL,
    Code.FOREIGN_INSTANCE,
    Code.FOREIGN_ORIGIN,
    Code.UNKNOWN_AGENT,
    Code.NOT_FOUND,
    Code.TOO_SLOW,
    Code.TOO_LARGE,
    Code.NOT_JSON,
    Code.FOREIGN_HOST,
    Code.BAD_FIELD,
    Code.UNKNOWN_EVENT,
    Code.UNAVAILABLE,
)
"""What a hook may be refused with."""


class Front:
    """Sends a request where it belongs.

    What is neither a hook nor open to all needs the command credential, also to learn that it is not there.
    """

    def __init__(self, hooks: HookIngest, rest: FastAPI, border: Border, credentials: Credentials, account: Account) -> None:
        self._hooks = hooks
        self._rest = rest
        self._border = border
        self._credentials = credentials
        self._account = account

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["path"].startswith(HOOK_PATH):
            await self._hooks(scope, receive, send)
            return
        refusal = self._check(scope)
        if refusal is not None:
            self._account.refuse(refusal)
            await answer_refusal(refusal, send, unread=receive)
            return
        await self._rest(scope, receive, send)

    def _check(self, scope: Scope) -> Refusal | None:
        headers = joined(scope["headers"])
        refusal = self._border.check(headers)
        if refusal is not None:
            return refusal
        if scope["path"] not in OPEN_PATHS:
            return self._credentials.may_command(headers.get(b"authorization")) or Refusal(Code.NOT_FOUND, "nothing is served here")
        if scope["method"] != "GET":
            return Refusal(Code.NOT_FOUND, "this can only be read, with GET")
        return None


def rest_of(bus: Bus, agents: tuple[str, ...]) -> FastAPI:
    """Health and the OpenAPI description. No page of documentation: it would load its scripts from the internet."""
    app = FastAPI(title="Tocsin hook-ingest", version=version("tocsin"), docs_url=None, redoc_url=None)

    @app.get("/health", responses={503: {"description": ADVICE[Code.UNAVAILABLE].meaning}})
    async def health() -> Response:
        """200 when a hook would be taken now, 503 when the bus does not answer."""
        try:
            async with asyncio.timeout(SAY_S_MAX):
                await bus.birth(HOOK_REPORTED)
        except (Unavailable, TimeoutError):
            refusal = Refusal(Code.UNAVAILABLE, "the bus does not answer")
            return JSONResponse(refusal.public(), refusal.advice.status)
        return JSONResponse({"status": "ok", "version": app.version})

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = get_openapi(title=app.title, version=app.version, routes=app.routes)
            app.openapi_schema["paths"][f"{HOOK_PATH}{{agent}}"] = {"post": hook_route(agents)}
            app.openapi_schema["paths"][f"{PARK_PATH}{{agent}}"] = {"get": park_route(agents)}
            app.openapi_schema.setdefault("components", {})["securitySchemes"] = {"hook": {"type": "http", "scheme": "bearer"}}
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]
    return app


def hook_route(agents: tuple[str, ...]) -> dict[str, Any]:
    """The hook route in OpenAPI's words; FastAPI does not serve it, so it cannot describe it."""
    refusal = {
        "type": "object",
        "required": ["code", "message", "retry", "next"],
        "properties": {
            "code": {"type": "string"},
            "message": {"type": "string"},
            "retry": {"enum": ["never", "after_change", "same_request"]},
            "next": {"type": "array", "items": {"type": "string"}},
        },
    }
    meanings: dict[int, list[str]] = {}
    for code in HOOK_REFUSALS:
        meanings.setdefault(ADVICE[code].status, []).append(f"`{code}`: {ADVICE[code].meaning}")
    return {
        "summary": "Report one event of one agent",
        "operationId": "report_hook",
        "security": [{"hook": []}],
        "parameters": [
            {"name": "agent", "in": "path", "required": True, "schema": {"type": "string", "enum": list(agents)}},
            *(
                {"name": name, "in": "header", "required": False, "description": about, "schema": {"type": "string"}}
                for name, about in HEADERS.items()
            ),
        ],
        "requestBody": {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}},
        "responses": {
            "204": {"description": "Taken: on record, or an event that means nothing."},
            "200": {
                "description": "Taken, and there is mail for this session: the agent's own JSON for an idle hook that is to go on.",
                "content": {"application/json": {"schema": {"type": "object"}}},
            },
            **{
                str(status): {"description": "; ".join(some), "content": {"application/json": {"schema": refusal}}}
                for status, some in sorted(meanings.items())
            },
        },
    }


def park_route(agents: tuple[str, ...]) -> dict[str, Any]:
    """The route where handlers wait beside idle sessions, in OpenAPI's words."""
    return {
        "summary": "Wait until an idle session has mail",
        "operationId": "park",
        "security": [{"hook": []}],
        "parameters": [
            {"name": "agent", "in": "path", "required": True, "schema": {"type": "string", "enum": list(agents)}},
            {"name": SESSION_HEADER.decode().title(), "in": "header", "required": True, "schema": {"type": "string"}},
        ],
        "responses": {
            "200": {
                "description": "There is mail: one line to hand to the agent.",
                "content": {"text/plain": {"schema": {"type": "string"}}},
            },
            "204": {"description": f"Nothing in {PARK_S:.0f} seconds: ask again."},
            "409": {"description": "A newer handler waits in your place: end."},
        },
    }
