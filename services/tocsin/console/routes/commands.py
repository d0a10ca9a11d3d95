"""A person's commands to Runs, mailboxes and custodies: the bodies of the contract, with the person put in as their caller."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from fastapi import APIRouter, Request, Response

from tocsin.bus.bus import Bus, Unavailable
from tocsin.console.answers import answer, body_of, refuse, session_of
from tocsin.contract.ids import BadName
from tocsin.contract.messages import Body
from tocsin.contract.parties import Caller, Role
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.run import Refused
from tocsin.contract.subjects import CUSTODY_CMD, MAIL_CMD, RUN_CMD, Subject
from tocsin.runtime.clock import Clock

B = TypeVar("B", bound=Body)

ASK_S_MAX = 12.0
"""A little longer than the services take at most; the page repeats a request that had no answer, under the same id."""

PATHS: Mapping[str, Subject[Any]] = {
    "/api/run/commands": RUN_CMD,
    "/api/mail/commands": MAIL_CMD,
    "/api/custody/commands": CUSTODY_CMD,
}
"""Where each kind of command is posted."""


def routes(bus: Bus, clock: Clock) -> APIRouter:
    """One route for each kind of command. 200: the receipt; 409: refused, with code, message and next steps; 503: ask again."""
    router = APIRouter()
    for path, subject in PATHS.items():
        router.add_api_route(path, _command(bus, clock, subject), methods=["POST"])
    return router


def understand(body: Mapping[str, Any], kind: type[B], caller: Caller, now_ms: int) -> B | Refusal:
    """The command that a page sends. Refuses: bad_field."""
    if "caller" in body:
        return Refusal(Code.BAD_FIELD, "caller: the console says who asks")
    try:
        return msgspec.convert({**body, "caller": msgspec.to_builtins(caller), "at_ms": now_ms}, kind)
    except msgspec.ValidationError as error:
        return Refusal(Code.BAD_FIELD, str(error))


def _command(bus: Bus, clock: Clock, subject: Subject[B]) -> Any:
    async def command(request: Request) -> Response:
        body = await body_of(request)
        if isinstance(body, Refusal):
            return refuse(body)
        caller = Caller(role=Role.PERSON, name=f"{session_of(request).name}@console")
        asked = understand(body, subject.body, caller, clock.now_ms())
        if isinstance(asked, Refusal):
            return refuse(asked)
        try:
            said = await bus.ask(subject, asked, timeout_s=ASK_S_MAX)
        except BadName as error:
            return refuse(Refusal(Code.BAD_FIELD, f"{subject.keys[0]}: {error}"))
        except Unavailable as error:
            return refuse(Refusal(Code.UNAVAILABLE, str(error)))
        return answer(msgspec.to_builtins(said), 409 if isinstance(said, Refused) else 200)

    return command
