"""Who asks? The session of a page, or the bearer of a credential. And the border: which pages may ask at all."""

from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie

from tocsin.console.core import session as sessions
from tocsin.console.core.session import Scope, Session
from tocsin.console.credentials import Credentials
from tocsin.contract.refusals import Code, Refusal
from tocsin.runtime.clock import Clock
from tocsin.runtime.http.bearers import instance_of
from tocsin.runtime.http.border import Border, Headers, check_json

BEARER_NAME = "bearer"
"""Stands where a session has its user's name."""

OWN_SITES = frozenset({b"same-origin", b"none"})
"""Values of Sec-Fetch-Site of our own page, and of an address that somebody typed."""


def border_of(port: int, hosts: Iterable[str]) -> Border:
    """The addresses of this console, and the pages that are its own: those of the same addresses."""
    known = Border.around(port, hosts)
    return Border(known.hosts, frozenset(scheme + host for host in known.hosts for scheme in (b"http://", b"https://")))


class Askers:
    """Judges requests by their headers alone."""

    def __init__(self, border: Border, credentials: Credentials, clock: Clock) -> None:
        self._border = border
        self._credentials = credentials
        self._clock = clock
        self.key = sessions.key_of(credentials.command)
        # Browsers keep cookies by host name alone: instances on other ports of this machine must not overwrite ours.
        self.cookie = f"tocsin-{instance_of(credentials.command).decode()}"

    def check_border(self, headers: Headers, *, is_page: bool) -> Refusal | None:
        """None when the request may pass; only a page may be linked to from elsewhere. Refuses: foreign_host, foreign_origin."""
        refusal = self._border.check(headers)
        if refusal is None and not is_page and headers.get(b"sec-fetch-site", b"none") not in OWN_SITES:
            return Refusal(Code.FOREIGN_ORIGIN, "a page of another origin sends the request")
        return refusal

    def check_write(self, headers: Headers, *, by_cookie: bool) -> Refusal | None:
        """None when the request may change something. Refuses: not_json, foreign_origin (a cookie without the page it belongs to)."""
        if by_cookie and b"origin" not in headers:
            return Refusal(Code.FOREIGN_ORIGIN, "a session speaks from its page alone, and the request names no Origin")
        return check_json(headers)

    def who(self, headers: Headers) -> Session | Refusal:
        """Who asks. Refuses: no_session, no_credential, foreign_instance."""
        shown = headers.get(b"authorization")
        if shown is not None:
            scope = self._credentials.scope_of(shown)
            if isinstance(scope, Refusal):
                return scope
            return Session(name=BEARER_NAME, scope=scope, until_ms=self._clock.now_ms() + sessions.SESSION_MS)
        cookies: SimpleCookie = SimpleCookie()
        try:
            cookies.load(headers.get(b"cookie", b"").decode("latin-1"))
        except CookieError:
            return Refusal(Code.NO_SESSION, "the cookies cannot be read")
        found = cookies.get(self.cookie)
        session = sessions.read(found.value, self.key, self._clock.now_ms()) if found is not None else None
        return session or Refusal(Code.NO_SESSION, "this page has no session yet, or it is over")

    def renewed(self, session: Session) -> Session:
        """The same session with all its time before it."""
        return self.fresh(session.name, session.scope)

    def fresh(self, name: str, scope: Scope) -> Session:
        """A session that begins now."""
        return Session(name=name, scope=scope, until_ms=self._clock.now_ms() + sessions.SESSION_MS)

    def set_cookie(self, session: Session) -> str:
        """The Set-Cookie header that gives a page its session: no script reads it, no other site sends it."""
        return f"{self.cookie}={sessions.sign(session, self.key)}; Path=/; Max-Age={sessions.SESSION_MS // 1000}; HttpOnly; SameSite=Strict"

    def drop_cookie(self) -> str:
        """The Set-Cookie header that takes it away."""
        return f"{self.cookie}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict"
