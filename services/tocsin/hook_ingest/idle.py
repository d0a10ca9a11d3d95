"""What an idle hook is answered, and the handlers that wait beside idle sessions.

A hook that says "my turn has ended" may be answered with a line that starts another turn. Whether there is one, mailbox
decides; here it is asked within the hook's own request, and what does not come at once does not come.
"""

import asyncio
import contextlib
import re
from collections.abc import Iterator, Mapping

from tocsin.agents.agent import Agent, WakeWay
from tocsin.agents.idle import idle_answer
from tocsin.bus.bus import Bus, Unavailable
from tocsin.contract.ids import HostId, PaneId
from tocsin.contract.mail import IdleAnswer, IdleQuestion, WakeDue
from tocsin.contract.messages import HookReported, Kind
from tocsin.contract.metrics import HANDLERS_PARKED
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.subjects import MAIL_IDLE
from tocsin.contract.tally import Sample
from tocsin.hook_ingest.account import Account
from tocsin.hook_ingest.core.body import Payload
from tocsin.hook_ingest.credentials import Credentials
from tocsin.hook_ingest.envelope import read_envelope
from tocsin.runtime.clock import Clock
from tocsin.runtime.http.asgi import App, Receive, Scope, Send, answer_nothing, answer_refusal
from tocsin.runtime.http.border import Border, Headers, joined

IDLE_S_MAX = 0.15
"""How long an idle hook waits for mailbox: the agent looks busy meanwhile, and its user waits."""

CLAIM_S_MAX = 2.0
"""How long a parked handler waits for mailbox: nobody sees it wait."""

PARK_PATH = "/park/"
"""What follows is the agent's name."""

PARK_S = 55.0
"""How long one request of a parked handler is held; it asks again."""

ASK_AGAIN_S = 1.0
"""Pause before mailbox is asked again that did not answer."""

PARKED_MAX = 200
"""Parked handlers at once: one for each idle session, well below the connections that there may be."""

NATIVE = frozenset({WakeWay.NATIVE_PARK, WakeWay.NATIVE_PLUGIN})

SESSION_HEADER = b"x-tocsin-session"
SESSION = re.compile(r"[A-Za-z0-9._-]{1,200}")
"""Ids that agents give their sessions."""


class IdleHooks:
    """Asks mailbox what to say to a session."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def answer(self, agent: Agent, reported: HookReported, goes_on: bool) -> bytes | None:
        """The body to answer this event with, in the agent's own form; None: it is no idle hook, or there is nothing to say."""
        if not is_idle_hook(agent, reported):
            return None
        try:
            pointer = await self.ask(reported.host, reported.pane, agent, reported.session, reported.at_ms, goes_on=goes_on)
        except Unavailable:
            return None
        return idle_answer(agent.name, pointer).encode() if pointer is not None else None

    async def ask(
        self, host: HostId, pane: PaneId | None, agent: Agent, session: str, at_ms: int, *, goes_on: bool = False, parked: bool = False
    ) -> str | None:
        """The line for this session, None when there is none. `goes_on`: its turn was caused by such a line.

        Raises Unavailable when nobody answers in time.
        """
        question = IdleQuestion(
            host=host, pane=pane, agent=agent.name, session=session, stop_hook_active=goes_on, at_ms=at_ms, parked=parked
        )
        answer = await self._bus.ask(MAIL_IDLE, question, timeout_s=CLAIM_S_MAX if parked else IDLE_S_MAX)
        return answer.pointer if isinstance(answer, IdleAnswer) else None


def goes_on(payload: Payload) -> bool:
    """Whether the turn that ends was itself caused by the answer of an idle hook."""
    return payload.fields.get("stop_hook_active") is True


def is_idle_hook(agent: Agent, reported: HookReported) -> bool:
    """Whether this event is the end of a turn of the lead, and its hook still waits for our answer."""
    return (
        reported.kind is Kind.TURN_ENDED and reported.child is None and reported.parent is None and not reported.spooled
        and WakeWay.IDLE_HOOK in agent.wake
    )  # fmt: skip


class _Handler:
    """One request that is held."""

    def __init__(self, pid: int | None) -> None:
        self.pid = pid  # its agent's process, when that has one session at a time
        self.stirred = asyncio.Event()  # look at the mail again
        self.let_go = False  # a newer handler has come in its place


class Parking:
    """Answers `GET /park/{agent}`: 200 with the line when the idle session has a wake, 204 when it may ask again, 409 when a
    newer handler waits in its place: of the same session, or of the session that the same process has begun since."""

    def __init__(
        self, rest: App, *, agents: Mapping[str, Agent], border: Border, credentials: Credentials, host: HostId, idle: IdleHooks,
        clock: Clock, account: Account,
    ) -> None:  # fmt: skip
        self._rest = rest
        self._agents = agents
        self._border = border
        self._credentials = credentials
        self._host = host
        self._idle = idle
        self._clock = clock
        self._account = account
        self._parked: dict[tuple[HostId, str, str], _Handler] = {}
        self._closing = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["path"].startswith(PARK_PATH):
            await self._park(scope, receive, send)
        else:
            await self._rest(scope, receive, send)

    def samples(self) -> Iterator[Sample]:
        """How many wait."""
        yield Sample(HANDLERS_PARKED, (), len(self._parked))

    def close(self) -> None:
        """Let all handlers go: they ask again, and find whoever is there then."""
        self._closing = True
        for handler in self._parked.values():
            handler.stirred.set()

    def stir_all(self) -> None:
        """Have all handlers look: hints may have been lost."""
        for handler in self._parked.values():
            handler.stirred.set()

    def stir(self, hint: WakeDue) -> None:
        """Have the handlers of a session look; of all sessions on its host when the hint names none."""
        for (host, _, session), handler in self._parked.items():
            if host == hint.host and hint.session in (None, session):
                handler.stirred.set()

    async def _park(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = joined(scope["headers"])
        admitted = self._admit(scope["method"], scope["path"].removeprefix(PARK_PATH), headers)
        envelope = read_envelope(headers, self._host)
        refusal = next((some for some in (admitted, envelope) if isinstance(some, Refusal)), None)
        if refusal is not None:
            self._account.refuse(refusal)
            await answer_refusal(refusal, send, unread=receive)
        elif not isinstance(admitted, Refusal) and not isinstance(envelope, Refusal):
            await self._hold(*admitted, envelope.host, envelope.pid, receive, send)

    def _admit(self, method: str, name: str, headers: Headers) -> tuple[Agent, str] | Refusal:
        """The agent and session of a handler."""
        refusal = self._border.check(headers) or self._credentials.may_report(headers.get(b"authorization"))
        if refusal is not None:
            return refusal
        if method != "GET":
            return Refusal(Code.NOT_FOUND, "a handler parks with GET")
        agent = self._agents.get(name)
        if agent is None or not agent.wake & NATIVE:
            return Refusal(Code.UNKNOWN_AGENT, "there is no agent of that name whose handlers park")
        session = headers.get(SESSION_HEADER, b"").decode(errors="replace")
        if SESSION.fullmatch(session) is None:
            return Refusal(Code.BAD_FIELD, "X-Tocsin-Session names no session")
        if len(self._parked) >= PARKED_MAX:
            return Refusal(Code.UNAVAILABLE, "too many handlers are parked")
        return agent, session

    async def _hold(self, agent: Agent, session: str, host: HostId, pid: int | None, receive: Receive, send: Send) -> None:
        key = host, agent.name, session
        for other, older in self._parked.items():
            # Claude Code lets the handler of a session live on behind /clear, where it would wait for mail that cannot come.
            if other == key or (pid is not None and other[:2] == key[:2] and older.pid == pid):
                older.let_go = True
                older.stirred.set()
        handler = self._parked[key] = _Handler(pid)
        gone = asyncio.create_task(_gone(receive))
        gone.add_done_callback(lambda _: handler.stirred.set())
        pointer: str | None = None
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PARK_S):
                    while pointer is None and not (handler.let_go or gone.done() or self._closing):
                        handler.stirred.clear()
                        again_s: float | None = None
                        try:
                            pointer = await self._idle.ask(host, None, agent, session, self._clock.now_ms(), parked=True)
                        except Unavailable:
                            again_s = ASK_AGAIN_S
                        if pointer is None:
                            with contextlib.suppress(TimeoutError):
                                async with asyncio.timeout(again_s):
                                    await handler.stirred.wait()
        finally:
            gone.cancel()
            if self._parked.get(key) is handler:
                del self._parked[key]
        if pointer is not None:
            await _answer_line(pointer, send)
        elif handler.let_go:
            await answer_refusal(Refusal(Code.WAITER_EXISTS, "a newer handler waits in its place"), send)
        else:
            await answer_nothing(send)


async def _gone(receive: Receive) -> None:
    """Return when the client has left."""
    while (await receive())["type"] != "http.disconnect":
        continue


async def answer_body(body: bytes, send: Send) -> None:
    """200 with JSON that the hook command hands to its agent."""
    await _answer(body, b"application/json", send)


async def _answer_line(text: str, send: Send) -> None:
    await _answer(text.encode() + b"\n", b"text/plain; charset=utf-8", send)


async def _answer(body: bytes, type_: bytes, send: Send) -> None:
    headers = [(b"content-type", type_), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
