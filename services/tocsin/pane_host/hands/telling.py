"""Says facts: each is in its order's journal first, and is said again until the bus has it on record. In order."""

import asyncio
from collections import deque

from tocsin.bus.bus import Bus, Unavailable
from tocsin.contract.hosting import HostFact, Saw
from tocsin.contract.metrics import HOST_FACTS, ORDERS_REFUSED, ORDERS_TAKEN, TYPING_HELD, tag
from tocsin.contract.subjects import HOST_FACT
from tocsin.contract.tally import Tally
from tocsin.pane_host.core.steps import fact_id
from tocsin.pane_host.hands.journal import Page
from tocsin.runtime.logs import log

RETRY_S = 0.5


class Telling:
    """Facts on their way to the bus."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._waiting: deque[tuple[Page, int]] = deque()
        self._more = asyncio.Event()
        self._said = asyncio.Condition()
        self._away = False
        self.tally = Tally(ORDERS_TAKEN)

    def tell(self, page: Page, fact: HostFact) -> int:
        """Have a fact said; returns its number in its order."""
        number = page.fact(fact)
        self._count(page, fact)
        self.again(page, number)
        return number

    def _count(self, page: Page, fact: HostFact) -> None:
        self.tally.add(HOST_FACTS, tag(page.account.order.order), fact.saw)
        if fact.saw in (Saw.TYPE_HELD, Saw.PROMPT_LEFT):
            self.tally.add(TYPING_HELD, fact.code or "")
        elif fact.saw is Saw.REFUSED:
            self.tally.add(ORDERS_REFUSED, fact.code or "")

    def again(self, page: Page, number: int) -> None:
        """Have a noted fact said, whether or not it was said before."""
        self._waiting.append((page, number))
        self._more.set()

    async def until_said(self, page: Page, number: int) -> None:
        """Wait until the bus has it on record."""
        async with self._said:
            await self._said.wait_for(lambda: number in page.account.said)

    async def run(self) -> None:
        """Say what is told, until cancelled."""
        while True:
            await self._more.wait()
            self._more.clear()
            while self._waiting:
                page, number = self._waiting[0]
                fact = page.account.facts[number]
                try:
                    await self._bus.say(HOST_FACT, fact, msg_id=fact_id(fact, number))
                except Unavailable as error:
                    if not self._away:
                        self._away = True
                        log("facts.wait", "warning", why=str(error))
                    await asyncio.sleep(RETRY_S)
                    continue
                self._away = False
                self._waiting.popleft()
                if number not in page.account.said:
                    page.said(number)
                async with self._said:
                    self._said.notify_all()
