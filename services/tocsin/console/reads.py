"""Asks services what they hold, on behalf of pages that look. Pages that look at the same thing at the same time cost one request."""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from tocsin.bus.bus import Bus, Unavailable
from tocsin.contract.custody import CustodyCommand, CustodyVerb
from tocsin.contract.ids import BadName
from tocsin.contract.mail import MailCommand, MailVerb
from tocsin.contract.messages import Body
from tocsin.contract.parties import Caller, Role
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.run import Receipt, Refused, RunCommand, RunVerb
from tocsin.contract.subjects import CUSTODY_CMD, MAIL_CMD, RUN_CMD, Subject
from tocsin.runtime.clock import Clock

ASK_S_MAX = 5.0
"""A service that is there answers a read in milliseconds; a page that hears nothing asks again by itself."""

SHARED_S = 1.0
"""How long an answer is handed to others who ask the same. What a host shows of a worker moves without a record."""

Told = dict[str, Any] | Refusal | Refused
"""What a read verb answers: its result, or why there is none."""

LOOKER = Caller(role=Role.PERSON, name="console")
"""Reads are the same for everybody who may read, so they are asked in one name."""


class _Key(NamedTuple):
    subject: str
    aggregate: str
    ask: bytes


class Reads:
    """`heard`: a number that grows with everything that is recorded; an answer from before is not handed out any more."""

    def __init__(self, bus: Bus, clock: Clock, heard: Callable[[], int]) -> None:
        self._bus = bus
        self._clock = clock
        self._heard = heard
        self._known = -1
        self._shared: dict[_Key, asyncio.Task[Told]] = {}
        self._count = 0

    async def run(self, ask: RunVerb, run: str) -> Told:
        """Ask a Run, or about all of them. Refuses: as the verb does; bad_field, unavailable."""
        command = RunCommand(run=run, request=self._request(), caller=LOOKER, ask=ask, at_ms=self._clock.now_ms())
        return await self._share(_Key(RUN_CMD.name, run, msgspec.json.encode(ask)), RUN_CMD, command)

    async def mailbox(self, ask: MailVerb, mailbox: str) -> Told:
        """Ask a mailbox. Refuses: as `run`."""
        command = MailCommand(mailbox=mailbox, request=self._request(), caller=LOOKER, ask=ask, at_ms=self._clock.now_ms())
        return await self._share(_Key(MAIL_CMD.name, mailbox, msgspec.json.encode(ask)), MAIL_CMD, command)

    async def custody(self, ask: CustodyVerb, custody: str) -> Told:
        """Ask a custody, or about all of them. Refuses: as `run`."""
        command = CustodyCommand(custody=custody, request=self._request(), caller=LOOKER, ask=ask, at_ms=self._clock.now_ms())
        return await self._share(_Key(CUSTODY_CMD.name, custody, msgspec.json.encode(ask)), CUSTODY_CMD, command)

    def _request(self) -> str:
        self._count += 1
        return f"look-{self._count}"

    async def _share(self, key: _Key, subject: Subject[Any], command: Body) -> Told:
        heard = self._heard()
        if heard != self._known:
            self._known = heard
            self._shared.clear()
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = asyncio.create_task(self._ask(subject, command))
            asyncio.get_running_loop().call_later(SHARED_S, self._forget, key, found)
        # Shielded: who hangs up ends nobody else's question.
        return await asyncio.shield(found)

    def _forget(self, key: _Key, task: "asyncio.Task[Told]") -> None:
        if self._shared.get(key) is task:
            del self._shared[key]

    async def _ask(self, subject: Subject[Any], command: Body) -> Told:
        try:
            said = await self._bus.ask(subject, command, timeout_s=ASK_S_MAX)
        except BadName as error:
            return Refusal(Code.BAD_FIELD, f"{subject.keys[0]}: {error}")
        except Unavailable as error:
            return Refusal(Code.UNAVAILABLE, str(error))
        if isinstance(said, Receipt):
            return said.result
        assert isinstance(said, Refused), said
        return said
