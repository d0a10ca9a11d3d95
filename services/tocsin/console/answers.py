"""What every route answers with: JSON, or a refusal in its public form. And who asked, as the front has found out."""

from typing import Any, cast

import msgspec
from fastapi import Request, Response

from tocsin.console.core.session import Session
from tocsin.contract.nesting import DEPTH_MAX, is_too_deep
from tocsin.contract.refusals import Code, Refusal

SESSION = "tocsin.session"
"""Where the front leaves the session in the scope of a request."""


def session_of(request: Request) -> Session:
    """Who asks; the front lets nobody else reach a route that needs it."""
    return cast(Session, request.scope[SESSION])


def answer(value: Any, status: int = 200) -> Response:
    """JSON. Nothing that the console answers may be kept by a browser: it is about now."""
    return Response(msgspec.json.encode(value), status, media_type="application/json", headers={"Cache-Control": "no-store"})


def refuse(refusal: Refusal) -> Response:
    """A request that changed nothing, and what helps."""
    return answer(refusal.public(), refusal.advice.status)


async def body_of(request: Request) -> dict[str, Any] | Refusal:
    """The JSON object that was sent. Refuses: bad_json, too_deep."""
    too_deep = Refusal(Code.TOO_DEEP, f"the body may be nested {DEPTH_MAX} deep")
    try:
        body = msgspec.json.decode(await request.body(), type=dict[str, Any])
    except RecursionError:
        return too_deep
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return Refusal(Code.BAD_JSON, "the body is not one JSON object")
    return too_deep if is_too_deep(body) else body
