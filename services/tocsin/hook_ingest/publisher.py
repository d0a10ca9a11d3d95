"""How an event gets onto the bus: before the answer, or, when the user wants it so, after it."""

import asyncio
import contextlib

from tocsin.bus.bus import Bus, Unavailable
from tocsin.contract.messages import HookReported
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.subjects import HOOK_REPORTED
from tocsin.hook_ingest.account import Account
from tocsin.runtime.clock import Clock
from tocsin.runtime.logs import log

SAY_S_MAX = 0.7
"""Longest wait for an ack. The hook command gives up after one second, and spools when it is refused before."""

UNACKED_MAX = 256
"""Events answered before their ack; one more waits for its own."""

RETRY_MS_MAX = 90_000
"""How long such an event is tried. The bus knows a message id for two minutes: a later try could count twice."""

PAUSE_S, PAUSE_S_MAX = 0.05, 2.0
"""Between two tries, doubling."""

DRAIN_S_MAX = 1.0
"""How long a stop waits for the last acks."""


class Publisher:
    """Says each event once, under its id."""

    def __init__(self, bus: Bus, clock: Clock, account: Account, *, answer_first: bool = False) -> None:
        self._bus = bus
        self._clock = clock
        self._account = account
        self._answer_first = answer_first
        self._unacked: set[asyncio.Task[None]] = set()

    async def publish(self, body: HookReported) -> Refusal | None:
        """Say `body`; returns when the bus has it on record, or at once with `answer_first`.

        Refuses: unavailable, within SAY_S_MAX. The event may have arrived all the same; under the same id it counts once.
        """
        if self._answer_first and len(self._unacked) < UNACKED_MAX:
            task = asyncio.create_task(self._until_acked(body))
            self._unacked.add(task)
            self._account.unacked = len(self._unacked)
            task.add_done_callback(self._acked)
            return None
        try:
            await self._say(body)
        except Unavailable:
            return Refusal(Code.UNAVAILABLE, "the bus does not answer")
        return None

    async def drain(self) -> None:
        """Wait DRAIN_S_MAX for the last acks; what has none then is counted and named in the log."""
        if self._unacked:
            _, late = await asyncio.wait(self._unacked, timeout=DRAIN_S_MAX)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)

    def _acked(self, task: asyncio.Task[None]) -> None:
        self._unacked.discard(task)
        self._account.unacked = len(self._unacked)
        with contextlib.suppress(asyncio.CancelledError):
            task.result()

    async def _say(self, body: HookReported) -> None:
        await self._bus.say(HOOK_REPORTED, body, msg_id=body.id)

    async def _until_acked(self, body: HookReported) -> None:
        last_ms = self._clock.awake_ms() + RETRY_MS_MAX
        pause_s = PAUSE_S
        acked = False
        try:
            while not acked and self._clock.awake_ms() < last_ms:
                try:
                    await self._say(body)
                    acked = True
                except Unavailable:
                    await asyncio.sleep(pause_s)
                    pause_s = min(2 * pause_s, PAUSE_S_MAX)
        finally:
            if not acked:
                self._account.never_acked += 1
                log("hook.never_acked", "error", agent=body.agent, event_name=body.event, id=body.id)
