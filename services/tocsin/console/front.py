"""The front: border, session and limits before any route, security headers on every answer."""

from collections.abc import Awaitable, Callable

from tocsin.console.answers import SESSION
from tocsin.console.asker import Askers
from tocsin.console.core.session import Scope
from tocsin.contract.refusals import Code, Refusal
from tocsin.runtime.http.asgi import App, Bodies, Disconnected, Message, Receive, Send, answer_refusal
from tocsin.runtime.http.asgi import Scope as Request
from tocsin.runtime.http.border import Headers, joined
from tocsin.runtime.logs import log

BODY_BYTES_MAX = 1024 * 1024
"""Largest command; the largest message that a mailbox takes is a little smaller."""

API = "/api/"

LOGIN = "/api/login"
"""The one route of the API that needs no session: it makes one."""

TICKETS = "/api/tickets"
"""Gives out tickets, to the command credential alone: a session must not be able to multiply itself."""

OF_THE_LIST = frozenset({"/api/worktrees", "/api/stream", "/api/why", "/api/day", "/api/marks", "/api/session"})
"""What the reader's credential may ask for: what its bus login hears as well. Mail and briefs are read by persons, in a session."""

HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'; "
        b"require-trusted-types-for 'script'; trusted-types 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=(), usb=()"),
)
"""On every answer. Scripts, styles and pictures are our own files; no text of anybody becomes markup."""


class Front:
    """Lets a request through to `rest`, with its session in the scope, or refuses it."""

    def __init__(self, rest: App, askers: Askers) -> None:
        self._rest = rest
        self._askers = askers
        self._bodies = Bodies(BODY_BYTES_MAX)

    async def __call__(self, scope: Request, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        headers = joined(scope["headers"])
        refusal = self._admit(scope, headers)
        if refusal is None and scope["method"] == "POST":
            length = headers.get(b"content-length", b"")
            try:
                body = await self._bodies.read(receive, int(length) if length.isdigit() else 0)
            except Disconnected:
                return
            if isinstance(body, Refusal):
                refusal = body
            else:
                receive = _replay(body, receive)
        if refusal is not None:
            # Every page that has no session yet asks once: that is nothing to warn of.
            log("request.refused", "debug" if refusal.code is Code.NO_SESSION else "warning", code=refusal.code, message=refusal.message)
            await answer_refusal(refusal, secured, unread=receive)
            return
        await self._rest(scope, receive, secured)

    def hurry(self) -> None:
        """Do not wait long for bodies that still arrive: the service is told to stop."""
        self._bodies.hurry()

    def _admit(self, scope: Request, headers: Headers) -> Refusal | None:
        path, method = scope["path"], scope["method"]
        is_api = path.startswith(API)
        refusal = self._askers.check_border(headers, is_page=not is_api)
        if refusal is not None:
            return refusal
        if method not in ("GET", "HEAD", "POST") or (method == "POST" and not is_api):
            return Refusal(Code.NOT_FOUND, "nothing is taken here")
        by_cookie = b"authorization" not in headers
        if method == "POST" and (refusal := self._askers.check_write(headers, by_cookie=by_cookie and path != TICKETS)) is not None:
            return refusal
        if not is_api or path == LOGIN:
            return None
        session = self._askers.who(headers)
        if isinstance(session, Refusal):
            return session
        if not by_cookie and session.scope is Scope.READ and path not in OF_THE_LIST:
            return Refusal(Code.NO_CREDENTIAL, "the reader's credential reads the list alone: use the command credential, or tocsin open")
        if path == TICKETS and by_cookie:
            return Refusal(Code.NO_CREDENTIAL, "tickets are given to the command credential alone")
        if method == "POST" and session.scope is not Scope.COMMAND:
            return Refusal(Code.NO_CREDENTIAL, "this credential or session may read and nothing else")
        scope[SESSION] = session
        return None


def _replay(body: bytes, after: Receive) -> Callable[[], Awaitable[Message]]:
    """A body that has been read, handed out once more; then what the connection says."""
    left = [body]

    async def receive() -> Message:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        return await after()

    return receive
