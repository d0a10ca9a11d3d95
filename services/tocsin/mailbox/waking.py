"""The loop of wakes: look at a mailbox whenever something changed or its time has come, record the step, then use the channel."""

import asyncio
import heapq
from collections.abc import Callable

from tocsin.bus.bus import Bus, Unavailable
from tocsin.contract.decision import Decision
from tocsin.contract.hosting import HostCommand, HostFact, TypePointer
from tocsin.contract.ids import HostId
from tocsin.contract.mail import IdleAnswer, IdleQuestion, Rung, WakeDue, WakeState, Woken
from tocsin.contract.metrics import ORDERS_SAID, WAKES, WAKES_HELD, tag
from tocsin.contract.parties import Caller, Role
from tocsin.contract.refusals import Refusal
from tocsin.contract.subjects import HOST_CMD, WAKE_DUE
from tocsin.contract.tally import Tally
from tocsin.mailbox.core import delivery, wake
from tocsin.mailbox.core.mailbox import Mailbox
from tocsin.mailbox.panes import Panes
from tocsin.mailbox.store import Mailboxes
from tocsin.runtime.clock import Clock
from tocsin.runtime.logs import log

OTHERS_FIRST_MS = 250
"""Whoever recorded a change looks at once; the other replicas look this much later, in case that one has died."""

AGAIN_MS = 1_000
"""After a step that could not be recorded."""

STEPS_MAX = 8
"""Steps of one look: a wake ends and the next begins. More means that they chase each other."""

SERVICE = Caller(role=Role.SERVICE, name="mailbox")
"""Who records what nobody asked for."""


class Waking:
    """Looks after the wakes of all mailboxes. Any number of replicas do: a step that another has recorded is not taken again."""

    def __init__(self, bus: Bus, boxes: Mailboxes, panes: Panes, clock: Clock) -> None:
        self._bus = bus
        self._boxes = boxes
        self._panes = panes
        self._clock = clock
        self._due: list[tuple[int, str]] = []
        self._asked: dict[str, int] = {}
        self._stir = asyncio.Event()
        self.tally = Tally()

    def look_soon(self, address: str, delay_ms: int = 0) -> None:
        """Look at this mailbox after `delay_ms`."""
        self._look_at(address, self._clock.now_ms() + delay_ms)

    def _look_at(self, address: str, at_ms: int) -> None:
        if self._asked.get(address, at_ms + 1) <= at_ms:
            return
        self._asked[address] = at_ms
        heapq.heappush(self._due, (at_ms, address))
        self._stir.set()

    def look_at_all(self) -> None:
        """Look at every mailbox in which something may be open: at a start, and when changes were missed."""
        for address, box in self._boxes.states().items():
            self._panes.settle(box)
            if box.newest or box.delivery is not None or (box.wake is not None and box.wake.state not in wake.ENDED):
                self.look_soon(address)

    async def run(self) -> None:
        """Look, one mailbox after another, until cancelled."""
        await self._panes.known()
        await self._say_again()
        while True:
            self._stir.clear()
            address = self._next()
            if address is not None:
                await self._look(address)
                continue
            wait_ms = self._due[0][0] - self._clock.now_ms() if self._due else None
            try:
                async with asyncio.timeout(wait_ms / 1000 if wait_ms is not None else None):
                    await self._stir.wait()
            except TimeoutError:
                continue

    def _next(self) -> str | None:
        while self._due and self._due[0][0] <= self._clock.now_ms():
            at_ms, address = heapq.heappop(self._due)
            if self._asked.get(address) == at_ms:
                del self._asked[address]
                return address
        return None

    async def _say_again(self) -> None:
        """What was offered may not have been said: orders to type are done once, and a hint does no harm."""
        for box in self._boxes.states().values():
            offered = box.wake
            if offered is not None and offered.state is wake.W.OFFERED and not offered.proof:
                await self._fire(box, offered)

    # --------------------------------------------------------- one mailbox

    async def _look(self, address: str) -> None:
        box = self._boxes.state(address)
        for _ in range(STEPS_MAX):
            if box is None:
                return
            now_ms = self._clock.now_ms()
            if not await self._lapse(box, now_ms):
                return
            found = wake.look(box, self._panes.reader(box), now_ms)
            if found.event is None:
                if found.again_ms is not None:
                    self._look_at(address, max(found.again_ms, now_ms + 1))
                return
            taken = await self._take(address, lambda box: wake.look(box, self._panes.reader(box), self._clock.now_ms()))
            if taken is None:
                return
            if taken.event is not None:
                log("wake.stepped", wake=taken.event.wake, state=taken.event.state, rung=taken.event.rung, proof=taken.event.proof)
                if taken.fire:
                    await self._fire(box, taken.event)
                if taken.again_ms is not None:
                    self._look_at(address, max(taken.again_ms, now_ms + 1))
            box = self._boxes.state(address)
        self.look_soon(address, AGAIN_MS)

    async def _lapse(self, box: Mailbox, now_ms: int) -> bool:
        """End a lease whose time is up; False when that could not be recorded."""
        if box.delivery is None:
            return True
        if now_ms < box.delivery.lease_until_ms:
            self._look_at(box.address, box.delivery.lease_until_ms)
            return True
        return await self._record(box.address, lambda box: delivery.lapse(box, now_ms))

    async def _take(self, address: str, decide: Callable[[Mailbox], wake.Look]) -> wake.Look | None:
        """Record the step that `decide` finds; the look with what was recorded, or None when nothing could be."""
        found = wake.NOTHING

        def decided(box: Mailbox) -> Decision:
            nonlocal found
            found = decide(box)
            return Decision((found.event,)) if found.event is not None else Decision()

        if not await self._record(address, decided):
            return None
        if found.event is not None:
            self._count(found.event)
        return found

    def _count(self, event: Woken) -> None:
        self.tally.add(WAKES, event.state, event.rung or "none")
        if event.state is WakeState.HELD:
            # A proof begins with the reason, in words of ours; what stands behind a colon is told by a host.
            self.tally.add(WAKES_HELD, event.proof.partition(":")[0].replace(" ", "_"))

    async def _record(self, address: str, decide: Callable[[Mailbox], Decision]) -> bool:
        recorded = await self._boxes.run(address, decide, request="", caller=SERVICE, payload=None, at_ms=self._clock.now_ms())
        if isinstance(recorded, Refusal):
            log("wake.not_recorded", "warning", mailbox=address, code=recorded.code)
            self.look_soon(address, AGAIN_MS)
            return False
        return True

    async def _fire(self, box: Mailbox, event: Woken) -> None:
        """Use the channel. What is lost here is found by its deadline."""
        reader = self._panes.reader(box)
        if box.host is None or box.pane is None:
            return
        now_ms = self._clock.now_ms()
        text = wake.pointer(box)
        try:
            if event.rung is Rung.NATIVE:
                session = reader.status.session if reader.status is not None else None
                await self._bus.say(
                    WAKE_DUE, WakeDue(host=box.host, pane=box.pane, wake=event.wake, session=session, pointer=text, at_ms=now_ms)
                )
            elif event.rung is Rung.TYPED:
                await self._say_order(box, event, text, now_ms)
        except Unavailable as error:
            log("wake.not_said", "warning", wake=event.wake, reason=str(error))

    async def _say_order(self, box: Mailbox, event: Woken, text: str, now_ms: int) -> None:
        assert box.host is not None
        assert box.pane is not None
        reader = self._panes.reader(box)
        process = reader.status.process if reader.status is not None else None
        step = wake.type_step(event)
        order = HostCommand(
            host=HostId(box.host),
            dispatch=box.address,
            fence=box.generation,
            step=step,
            order=TypePointer(pane=box.pane, process=process or box.process, text=text, wake=event.wake),
            at_ms=now_ms,
            expires_ms=event.at_ms + wake.TYPE_EXPIRES_MS,
        )
        await self._bus.say(HOST_CMD, order, msg_id=f"{box.address}.{box.generation}.{step}")
        self.tally.add(ORDERS_SAID, tag(order.order))

    # ------------------------------------------------------------- others

    async def answer_idle(self, question: IdleQuestion) -> IdleAnswer:
        """What to say to a session whose turn is ending, or whose parked handler asks: at once, or nothing."""
        place = self._panes.of_session(question.host, question.pane, question.agent, question.session)
        if place is None:
            return IdleAnswer()
        for address in sorted(self._panes.addresses(place)):
            box = self._boxes.state(address)
            if box is None:
                continue

            def decide(box: Mailbox) -> wake.Look:
                reader, now_ms = self._panes.reader(box), self._clock.now_ms()
                if question.parked:
                    return wake.on_claim(box, reader, now_ms)
                return wake.on_idle(box, reader, question.at_ms, question.stop_hook_active, now_ms)

            if decide(box).event is None:
                continue
            taken = await self._take(address, decide)
            if taken is not None and taken.event is not None:
                if taken.again_ms is not None:
                    self._look_at(address, taken.again_ms)
                return IdleAnswer(pointer=wake.pointer(box), wake=taken.event.wake)
        return IdleAnswer()

    async def hear_typed(self, fact: HostFact) -> None:
        """What became of an order to type."""
        if self._boxes.state(fact.dispatch) is None:
            return
        await self._take(fact.dispatch, lambda box: wake.on_typed(box, fact, self._clock.now_ms()))
        self.look_soon(fact.dispatch)
