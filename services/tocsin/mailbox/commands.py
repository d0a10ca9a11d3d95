"""Requests to mailboxes, answered with a receipt or refused."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from tocsin.contract.decision import Decision
from tocsin.contract.ids import digest
from tocsin.contract.mail import (
    AckMail,
    AskQuestion,
    CheckMail,
    EndWait,
    MailCommand,
    MailType,
    Message,
    ReadMail,
    ReadWakes,
    ReplyMail,
    SendMail,
)
from tocsin.contract.messages import Body, State
from tocsin.contract.metrics import count_answer
from tocsin.contract.parties import Caller, Role
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.run import Receipt, Refused
from tocsin.contract.tally import Tally
from tocsin.mailbox.core import delivery, post
from tocsin.mailbox.core.addresses import asker_of, is_group, is_worker, of_dispatch, of_run, run_in, sender_of
from tocsin.mailbox.core.mailbox import WAKES_PER_HOUR_MAX, Mailbox, blank
from tocsin.mailbox.core.pages import page, wakes_page
from tocsin.mailbox.core.reader import is_reader, refuse_looker, refuse_reader
from tocsin.mailbox.panes import Panes
from tocsin.mailbox.store import Mailboxes
from tocsin.mailbox.waits import Waits
from tocsin.mailbox.waking import SERVICE, Waking
from tocsin.runtime.clock import Clock

Answer = Receipt | Refusal


class Commands:
    """Answers `mail.cmd`."""

    def __init__(self, boxes: Mailboxes, panes: Panes, waits: Waits, waking: Waking, clock: Clock) -> None:
        self._boxes = boxes
        self._panes = panes
        self._waits = waits
        self._waking = waking
        self._clock = clock
        self.tally = Tally()

    async def answer(self, command: MailCommand) -> Body:
        """A Receipt, or Refused."""
        found = await self._decide(msgspec.structs.replace(command, caller=self._party(command)))
        count_answer(self.tally, command.ask, found)
        return Refused.of(command.request, found) if isinstance(found, Refusal) else found

    def _party(self, command: MailCommand) -> Caller:
        """Who asks, in this mailbox's Run: a worker is the coordinator of a Run that it has made below its own Dispatch."""
        caller, run = command.caller, self._run_of(command.mailbox)
        if run is None or run.reader is None or not is_worker(caller) or run.reader.dispatch != caller.dispatch:
            return caller
        return msgspec.structs.replace(caller, role=Role.COORDINATOR, dispatch=None)

    async def _decide(self, command: MailCommand) -> Answer:
        if not command.request:
            return Refusal(Code.BAD_REQUEST, "a request has an id")
        if is_group(command.mailbox):
            if isinstance(command.ask, SendMail):
                return await self._send_to_group(command, command.ask)
            return Refusal(Code.BAD_REQUEST, "a group can only be sent to")
        if run_in(command.mailbox) is None:
            return Refusal(Code.NOT_FOUND, "a mailbox is run:ID or dispatch:ID")
        match command.ask:
            case SendMail():
                return await self._send(command, command.ask.message, command.mailbox, command.request)
            case CheckMail():
                return await self._peek(command, command.ask) if command.ask.peek else await self._check(command, command.ask)
            case AckMail():
                return await self._ack(command, command.ask, command.request)
            case AskQuestion():
                return await self._ask(command, command.ask)
            case ReplyMail():
                return await self._reply(command, command.ask)
            case ReadMail():
                return await self._read(command, command.ask)
            case ReadWakes():
                return await self._wakes(command, command.ask)
            case EndWait():
                return await self._end_wait(command, command.ask)

    async def _run(self, command: MailCommand, address: str, request: str, decide: Callable[[Mailbox], Decision | Refusal]) -> Answer:
        answer = await self._boxes.run(
            address, decide, request=request, caller=command.caller, payload=command.ask, at_ms=self._clock.now_ms()
        )
        if isinstance(answer, Receipt) and answer.seq:
            self._waking.look_soon(address)
        return answer

    async def _fresh(self, address: str) -> Mailbox | Refusal:
        found = await self._boxes.fresh(address)
        return blank(address) if found is None else found

    def _run_of(self, address: str) -> Mailbox | None:
        return self._boxes.state(of_run(run_in(address) or ""))

    # --------------------------------------------------------------- sending

    async def _send(self, command: MailCommand, message: Message, address: str, request: str) -> Answer:
        refusal = post.refuse_message(message)
        if refusal is not None:
            return refusal
        sent = self._filled(command, message, address)
        run = self._run_of(address)

        def decide(box: Mailbox) -> Decision | Refusal:
            return post.refuse_sender(box, command.caller, run, command.generation) or post.send(box, sent)

        return await self._run(command, address, request, decide)

    def _filled(self, command: MailCommand, message: Message, address: str) -> Message:
        run = run_in(address)
        return msgspec.structs.replace(
            message,
            id=f"m{digest(command.caller.fingerprint, command.request)}",
            sender=sender_of(command.caller, run),
            subject=post.plain(message.subject).replace("\n", " ") or post.first_line(message.body),
            body=post.plain(message.body),
            at_ms=self._clock.now_ms(),
            run=run,
            dispatch=command.caller.dispatch if is_worker(command.caller) else message.dispatch,
        )

    async def _send_to_group(self, command: MailCommand, ask: SendMail) -> Answer:
        caller, group = command.caller, command.mailbox
        name = run_in(of_dispatch(caller.dispatch or "")) if is_worker(caller) else ask.message.run
        if not name:
            return Refusal(Code.RUN_REQUIRED, "a group is of one Run: which?")
        refusal = post.refuse_message(ask.message)
        if refusal is not None:
            return refusal

        def decide(run: Mailbox) -> Decision | Refusal:
            refusal = post.refuse_sender(run, caller, run, command.generation)
            if refusal is not None:
                return refusal
            states = self._states(member for member in run.members if self._is_open(member))
            but = caller.dispatch if is_worker(caller) else None
            to = post.members_of(run, group, states, but)
            return to if isinstance(to, Refusal) else post.spread(group, to)

        settled = await self._run(command, of_run(name), command.request, decide)
        if isinstance(settled, Refusal):
            return settled
        sent, skipped = [], {}
        for dispatch in settled.result["to"]:
            one = await self._send(command, ask.message, of_dispatch(dispatch), command.request)
            if isinstance(one, Refusal) and one.code is Code.UNAVAILABLE:
                return one  # the same request goes on where this one stopped
            if isinstance(one, Refusal):
                skipped[dispatch] = one.code.value
            else:
                sent.append(dispatch)
        return msgspec.structs.replace(settled, result={"group": group, "to": sent, "skipped": skipped})

    def _is_open(self, dispatch: str) -> bool:
        box = self._boxes.state(of_dispatch(dispatch))
        return box is not None and box.is_open

    def _states(self, dispatches: Iterable[str]) -> dict[str, State | None]:
        found: dict[str, State | None] = {}
        for dispatch in dispatches:
            box = self._boxes.state(of_dispatch(dispatch))
            status = self._panes.reader(box).status if box is not None else None
            found[dispatch] = status.state if status is not None else None
        return found

    # ------------------------------------------------------------- questions

    async def _ask(self, command: MailCommand, ask: AskQuestion) -> Answer:
        caller = command.caller
        if not is_worker(caller):
            return Refusal(Code.SENDER_NOT_ASSIGNEE, "only the worker of a Dispatch asks: nobody vouches for that here")
        address = of_dispatch(caller.dispatch or "")
        if run_in(address) != run_in(command.mailbox):
            return Refusal(Code.NOT_FOUND, "there is no such mailbox")
        asked = msgspec.structs.replace(ask, question=post.plain(ask.question), options=tuple(map(post.plain, ask.options)))
        question = post.question_id(caller.dispatch or "", digest(caller.fingerprint, command.request)[:8])
        answer = await self._run(command, address, command.request, lambda box: post.ask(box, question, asked))
        if isinstance(answer, Refusal):
            return answer
        # Whoever asks repeats the request until it is answered, so a stop between the two loses nothing.
        return await self.tell_question(address, question) or answer

    async def tell_question(self, address: str, question: str) -> Refusal | None:
        """Have a question in the mailbox of its Run; nothing when it is there. Refuses: unavailable."""
        box = self._boxes.state(address)
        run = of_run(run_in(address) or "")
        if box is None or question not in box.questions:
            return None
        mail = post.question_mail(box, question)
        told = await self._boxes.run(
            run, lambda box: post.arrive(box, mail), request=f"ask.{question}", caller=SERVICE, payload=mail, at_ms=self._clock.now_ms()
        )
        self._waking.look_soon(run)
        return told if isinstance(told, Refusal) else None

    async def _reply(self, command: MailCommand, ask: ReplyMail) -> Answer:
        caller = command.caller
        address = asker_of(ask.question)
        if address is None or run_in(address) != run_in(command.mailbox):
            return Refusal(Code.NOT_FOUND, f"there is no question {ask.question or '(no id)'}")
        if is_worker(caller):
            return Refusal(Code.SENDER_NOT_ASSIGNEE, "a question is answered by the coordinator or a person")
        run = self._run_of(address)
        sender = sender_of(caller, run_in(address))

        def decide(box: Mailbox) -> Decision | Refusal:
            answer = post.reply(box, ask.question, post.plain(ask.body), sender, caller, self._clock.now_ms())
            if isinstance(answer, Refusal):
                return answer
            return post.refuse_sender(box, caller, run, command.generation) or answer

        return await self._run(command, address, command.request, decide)

    # ------------------------------------------------------------ Deliveries

    async def _ack(self, command: MailCommand, ask: AckMail, request: str) -> Answer:
        def decide(box: Mailbox) -> Decision | Refusal:
            return refuse_reader(box, command.caller, command.generation) or delivery.ack(box, ask.delivery)

        return await self._run(command, command.mailbox, request, decide)

    async def _check(self, command: MailCommand, ask: CheckMail) -> Answer:
        if ask.wait_ms > 0:
            return await self._wait(command, ask)
        return self._shown(command.mailbox, await self._take(command, ask), 0)

    async def _take(self, command: MailCommand, ask: CheckMail, wait: str | None = None) -> Answer:
        now_ms = self._clock.now_ms()

        def decide(box: Mailbox) -> Decision | Refusal:
            return refuse_reader(box, command.caller, command.generation) or delivery.check(box, ask, now_ms, wait)

        return await self._run(command, command.mailbox, command.request, decide)

    def _shown(self, address: str, answer: Answer, waited_ms: int) -> Answer:
        if isinstance(answer, Refusal):
            return answer
        box = self._boxes.state(address) or blank(address)
        id_ = answer.result.get("delivery")
        result: dict[str, Any] = {**answer.result, **delivery.shown(box, id_), "generation": box.generation, "waited_ms": waited_ms}
        if answer.duplicate:
            result["repeat"] = True
        if id_ is not None and id_ in box.acked:
            result["acked"] = True
        return msgspec.structs.replace(answer, result=result)

    async def _wait(self, command: MailCommand, ask: CheckMail) -> Answer:
        """Parked until there is mail, the time is up, the caller hangs up, or a newer reader or wait takes its place."""
        address, wait = command.mailbox, command.request
        if ask.ack is not None:
            acked = await self._ack(command, AckMail(delivery=ask.ack), f"{wait}.ack")
            if isinstance(acked, Refusal):
                return acked
        ask = msgspec.structs.replace(ask, ack=None)
        started_ms = self._clock.now_ms()
        until_ms = started_ms + min(ask.wait_ms, delivery.WAIT_MS_MAX)
        is_parked = False
        with self._waits.at(address) as changed:
            while True:
                changed.clear()
                box = self._boxes.state(address)
                now_ms = self._clock.now_ms()
                is_over = now_ms >= until_ms or self._waits.closing or (is_parked and not _waits_there(box, wait))
                if is_over or (box is not None and delivery.ends_wait(box, ask.types)):
                    return await self._end_of_wait(command, ask, wait if is_parked else None, now_ms - started_ms)
                if not is_parked:
                    parked = await self._park(command, wait, ask.types, until_ms)
                    if isinstance(parked, Refusal):
                        return parked
                    is_parked = True
                    continue
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout((until_ms - now_ms) / 1000):
                        await changed.wait()

    async def _park(self, command: MailCommand, wait: str, types: tuple[MailType, ...], until_ms: int) -> Answer:
        by = command.caller.fingerprint

        def decide(box: Mailbox) -> Decision | Refusal:
            refusal = refuse_reader(box, command.caller, command.generation)
            return refusal or delivery.park(box, wait, types, by, until_ms, self._clock.now_ms())

        return await self._run(command, command.mailbox, "", decide)

    async def _end_of_wait(self, command: MailCommand, ask: CheckMail, wait: str | None, waited_ms: int) -> Answer:
        """What a wait is answered with: the Delivery if there is mail for it, else nothing."""

        def decide(box: Mailbox) -> Decision | Refusal:
            refusal = refuse_reader(box, command.caller, command.generation)
            if refusal is not None:
                return refusal
            if delivery.ends_wait(box, ask.types) and (wait is None or _waits_there(box, wait)):
                taken = delivery.check(box, ask, self._clock.now_ms(), wait)
                if isinstance(taken, Decision) and taken.events:
                    return taken
                ended = delivery.end_wait(box, wait or "")
                return taken if isinstance(taken, Refusal) else Decision(ended.events, taken.result)
            return Decision(delivery.end_wait(box, wait or "").events, {"delivery": None, "repeat": False})

        # Only what hands mail over keeps a receipt: an empty wait may be asked again under the same id.
        box = self._boxes.state(command.mailbox)
        has_mail = box is not None and delivery.ends_wait(box, ask.types)
        answer = await self._run(command, command.mailbox, command.request if has_mail else "", decide)
        if isinstance(answer, Receipt):
            answer = msgspec.structs.replace(answer, request=command.request)
        return self._shown(command.mailbox, answer, waited_ms)

    async def _end_wait(self, command: MailCommand, ask: EndWait) -> Answer:
        def decide(box: Mailbox) -> Decision | Refusal:
            return refuse_reader(box, command.caller, command.generation) or delivery.end_wait(box, ask.wait)

        return await self._run(command, command.mailbox, "", decide)

    # --------------------------------------------------------------- looking

    async def _look(self, command: MailCommand) -> Mailbox | Refusal:
        """The mailbox, for whoever may look. When it is its reader who does, it is told no more of what it can see."""
        box = await self._fresh(command.mailbox)
        if isinstance(box, Refusal):
            return box
        refusal = refuse_looker(box, command.caller)
        if refusal is not None:
            return refusal
        if box.newest and is_reader(box, command.caller, command.generation):
            looked = await self._run(command, command.mailbox, "", delivery.look)
            return looked if isinstance(looked, Refusal) else box
        return box

    async def _peek(self, command: MailCommand, ask: CheckMail) -> Answer:
        if ask.wait_ms > 0:
            waited = await self._peek_later(command, ask)
            if waited is not None:
                return waited
        box = await self._look(command)
        if isinstance(box, Refusal):
            return box
        last = delivery.batch_last(box) if box.unread_count else 0
        result = {
            "delivery": None, "repeat": False, "messages": box.numbered(box.first, last), "lease_until_ms": None,
            "beyond": delivery.beyond(box, None), "generation": box.generation,
        }  # fmt: skip
        return Receipt(request=command.request, result=result, at_ms=self._clock.now_ms())

    async def _peek_later(self, command: MailCommand, ask: CheckMail) -> Refusal | None:
        """Return once there is something to see, or time is up. It holds no place: others may wait as well."""
        until_ms = self._clock.now_ms() + min(ask.wait_ms, delivery.WAIT_MS_MAX)
        box = await self._fresh(command.mailbox)
        refusal = box if isinstance(box, Refusal) else refuse_looker(box, command.caller)
        if refusal is not None:
            return refusal
        with self._waits.at(command.mailbox) as changed:
            while not self._waits.closing and (left_ms := until_ms - self._clock.now_ms()) > 0:
                changed.clear()
                now = self._boxes.state(command.mailbox)
                if now is not None and delivery.ends_wait(now, ask.types):
                    break
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(left_ms / 1000):
                        await changed.wait()
        return None

    async def _read(self, command: MailCommand, ask: ReadMail) -> Answer:
        box = await self._look(command)
        if isinstance(box, Refusal):
            return box
        askers = [found for member in box.members if (found := self._boxes.state(of_dispatch(member))) is not None]
        return Receipt(request=command.request, result=page(box, ask, askers), at_ms=self._clock.now_ms())

    async def _wakes(self, command: MailCommand, ask: ReadWakes) -> Answer:
        box = await self._fresh(command.mailbox)
        if isinstance(box, Refusal):
            return box
        refusal = refuse_looker(box, command.caller)
        if refusal is not None:
            return refusal
        now_ms = self._clock.now_ms()
        return Receipt(request=command.request, result=wakes_page(box, ask.limit, now_ms) | {"hour_max": WAKES_PER_HOUR_MAX}, at_ms=now_ms)


def _waits_there(box: Mailbox | None, wait: str) -> bool:
    return box is not None and box.wait is not None and box.wait.id == wait
