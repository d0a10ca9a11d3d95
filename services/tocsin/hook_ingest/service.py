"""The hook route: admit, read, understand, say, answer; an idle hook with what there is to say to its session.

An ASGI callable of its own, because a framework around it would cost more than all that it does.
"""

from collections.abc import Mapping

from tocsin.agents.agent import Agent, Keyed
from tocsin.contract.ids import HostId
from tocsin.contract.messages import HookReported
from tocsin.contract.refusals import Code, Refusal
from tocsin.hook_ingest.account import Account
from tocsin.hook_ingest.core.payload import BODY_BYTES_MAX, Payload, parse, report
from tocsin.hook_ingest.credentials import Credentials
from tocsin.hook_ingest.envelope import read_envelope
from tocsin.hook_ingest.idle import IdleHooks, answer_body, goes_on
from tocsin.hook_ingest.publisher import Publisher
from tocsin.runtime.clock import Clock
from tocsin.runtime.http.asgi import Bodies, Disconnected, Receive, Scope, Send, answer_nothing, answer_refusal
from tocsin.runtime.http.border import Border, Headers, check_json, joined
from tocsin.runtime.skew import Skew

HOOK_PATH = "/hook/"
"""What follows is the agent's name."""

IN_FLIGHT_MAX = 256
"""Hooks that may wait for their answer at once; more are refused, and spool. Agents wait for their hooks, so each has few."""


class HookIngest:
    """Answers `POST /hook/{agent}`."""

    def __init__(
        self,
        *,
        agents: Mapping[str, Agent],
        border: Border,
        credentials: Credentials,
        keyed: Keyed,
        host: HostId,
        show_text: bool,
        publisher: Publisher,
        clock: Clock,
        account: Account,
        idle: IdleHooks,
        skew: Skew | None = None,
    ) -> None:
        self._agents = agents
        self._border = border
        self._credentials = credentials
        self._keyed = keyed
        self._host = host
        self._show_text = show_text
        self._publisher = publisher
        self._skew = skew or Skew()
        self._clock = clock
        self._account = account
        self._idle = idle
        self._bodies = Bodies(BODY_BYTES_MAX)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request: 204, 200 with the agent's own JSON for an idle hook that is to go on, or a refusal with its status."""
        at_ms = self._clock.now_ms()
        headers = joined(scope["headers"])
        agent = self._admit(scope["method"], scope["path"].removeprefix(HOOK_PATH), headers)
        if isinstance(agent, Refusal):
            self._account.refuse(agent)
            await answer_refusal(agent, send, unread=receive)
            return
        self._account.in_flight += 1
        try:
            await self._take(agent, headers, at_ms, receive, send)
        except Disconnected:
            self._account.gone += 1
        finally:
            self._account.in_flight -= 1

    def hurry(self) -> None:
        """Do not wait long for bodies that are still arriving: the service is told to stop."""
        self._bodies.hurry()

    def _admit(self, method: str, name: str, headers: Headers) -> Agent | Refusal:
        """The agent that reports, before any byte of the body is read."""
        if method != "POST":
            return Refusal(Code.NOT_FOUND, "hooks are reported with POST")
        refusal = self._border.check(headers) or check_json(headers) or self._credentials.may_report(headers.get(b"authorization"))
        if refusal is not None:
            return refusal
        agent = self._agents.get(name)
        if agent is None:
            return Refusal(Code.UNKNOWN_AGENT, "there is no agent of the name that the path ends with")
        if self._account.in_flight >= IN_FLIGHT_MAX:
            return Refusal(Code.UNAVAILABLE, "too many hooks wait for their answer")
        return agent

    async def _take(self, agent: Agent, headers: Headers, at_ms: int, receive: Receive, send: Send) -> None:
        length = headers.get(b"content-length", b"")
        body = await self._bodies.read(receive, int(length) if length.isdigit() else 0)
        if isinstance(body, Refusal):
            self._account.refuse(body)
            await answer_refusal(body, send, unread=receive)
            return
        payload = parse(body)
        reported = payload if isinstance(payload, Refusal) else self._understand(agent, headers, payload, at_ms)
        is_continued = isinstance(payload, Payload) and goes_on(payload)
        del body, payload  # up to BODY_BYTES_MAX, and the bus may take its time
        if reported is None:
            self._account.meaningless[agent.name] += 1
            await answer_nothing(send)
            return
        refusal = reported if isinstance(reported, Refusal) else await self._publisher.publish(reported)
        if refusal is not None:
            self._account.refuse(refusal)
            await answer_refusal(refusal, send)
            return
        self._account.published[agent.name] += 1
        answer = None
        if isinstance(reported, HookReported):
            # On record first: what is said to the agent never costs the event.
            answer = await self._idle.answer(agent, reported, is_continued)
        if answer is None:
            await answer_nothing(send)
        else:
            await answer_body(answer, send)

    def _understand(self, agent: Agent, headers: Headers, payload: Payload, at_ms: int) -> HookReported | Refusal | None:
        envelope = read_envelope(headers, self._host)
        if isinstance(envelope, Refusal):
            return envelope
        # Hooks and this ingest share a machine and its clock, unless the hook names another.
        ahead_ms = self._skew.ahead_ms if envelope.host == self._host else 0
        return report(agent, envelope.event, payload, envelope, at_ms, self._keyed, show_text=self._show_text, ahead_ms=ahead_ms)
