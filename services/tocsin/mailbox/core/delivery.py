"""Handing mail over: one fixed batch at a time, the same id and rows until its ack or the end of its lease.

Source: README, decisions on mail (at least once, and a repeat looks like one).
"""

from typing import Any

from tocsin.contract.decision import Decision
from tocsin.contract.mail import (
    DELIVERY_MAX,
    Acked,
    CheckMail,
    Delivered,
    LeaseEnded,
    Looked,
    MailEvent,
    MailType,
    Message,
    Parked,
    WaitEnded,
)
from tocsin.contract.refusals import Code, Refusal
from tocsin.mailbox.core.mailbox import Delivery, Mailbox, fold

LEASE_MS = 10 * 60_000
"""How long a Delivery is its taker's alone. Longer than most turns; an ack that comes later still counts until the next check."""

WAIT_MS_MAX = 55_000
"""Longest time that one request is parked; whoever wants to wait longer asks again. A waiter that was killed is believed no longer."""

DELIVERY_BYTES_MAX = 2 * 1024 * 1024
"""Most text in one Delivery: with its escapes it must fit into one answer of the bus. The oldest message goes at any size."""

AHEAD_SHOWN_MAX = 10
"""Heads of messages shown beyond a Delivery."""

READ_AHEAD_MAX = 1000
"""How far is looked for them, and for what ends a wait for some types: with more unread mail than that, such a wait ends anyway."""


def size_bytes(message: Message) -> int:
    """About what a message takes."""
    return len(message.subject.encode(errors="replace")) + len(message.body.encode(errors="replace")) + 400


def batch_last(box: Mailbox) -> int:
    """Number of the last message of the next batch."""
    last, bytes_left = box.first, DELIVERY_BYTES_MAX - size_bytes(box.at(box.first))
    while last - box.first + 1 < DELIVERY_MAX and last + 1 < box.end:
        bytes_left -= size_bytes(box.at(last + 1))
        if bytes_left < 0:
            break
        last += 1
    return last


def check(box: Mailbox, ask: CheckMail, now_ms: int, wait: str | None = None) -> Decision | Refusal:
    """Take the next Delivery, or the outstanding one again; acks `ask.ack` first. `wait`: the parked check that this answers.

    The result names the Delivery; None when there is no mail. Refuses: stale_delivery, for `ask.ack`.
    """
    events: list[MailEvent] = []
    if ask.ack is not None:
        acked = ack(box, ask.ack)
        if isinstance(acked, Refusal):
            return acked
        events += acked.events
        box = fold(box, acked.events, now_ms)
    if box.delivery is not None:
        if now_ms < box.delivery.lease_until_ms:
            return Decision(tuple(events), {"delivery": box.delivery.id, "repeat": True})
        ended = LeaseEnded(delivery=box.delivery.id)
        events.append(ended)
        box = fold(box, (ended,), now_ms)
    if not box.unread_count:
        return Decision(tuple(events), {"delivery": None})
    last = batch_last(box)
    delivered = Delivered(
        delivery=f"{box.address}.d{box.deliveries + 1}",
        messages=tuple(message.id for message in box.numbered(box.first, last)),
        generation=box.generation,
        lease_until_ms=now_ms + LEASE_MS,
        wait=wait,
    )
    return Decision((*events, delivered), {"delivery": delivered.delivery, "repeat": False})


def ack(box: Mailbox, delivery: str) -> Decision | Refusal:
    """The Delivery is dealt with. Twice is a success, `duplicate`; after its lease it counts while its batch is still free.

    Refuses: bad_request (no id, which names the one that is outstanding), stale_delivery.
    """
    outstanding = box.delivery.id if box.delivery is not None else None
    if not delivery:
        return Refusal(Code.BAD_REQUEST, f"which Delivery? {outstanding or 'None'} is outstanding")
    if delivery in box.acked:
        return Decision(result={"acked": delivery, "late": False, "duplicate": True}, duplicate=True)
    if delivery == outstanding:
        return Decision((Acked(delivery=delivery),), {"acked": delivery, "late": False})
    if box.lapsed is not None and delivery == box.lapsed.id:
        return Decision((Acked(delivery=delivery, late=True),), {"acked": delivery, "late": True})
    return Refusal(Code.STALE_DELIVERY, f"{outstanding or 'no Delivery'} is outstanding here")


def lapse(box: Mailbox, now_ms: int) -> Decision:
    """The end of a lease, when it is time."""
    if box.delivery is None or now_ms < box.delivery.lease_until_ms:
        return Decision()
    return Decision((LeaseEnded(delivery=box.delivery.id),))


def look(box: Mailbox) -> Decision:
    """Its reader has seen what is there; recorded only when that withdraws a wake."""
    return Decision((Looked(),) if box.newest else ())


def ends_wait(box: Mailbox, types: tuple[MailType, ...]) -> bool:
    """Whether there is mail for a check that waits: of one of `types`, or any. An unacked Delivery is mail, too."""
    if not box.unread_count:
        return False
    if not types or box.unread_count > READ_AHEAD_MAX:
        return True
    return any(message.type in types for message in box.numbered(box.first, box.end))


def park(box: Mailbox, wait: str, types: tuple[MailType, ...], by: str, until_ms: int, now_ms: int) -> Decision | Refusal:
    """A check waits from here on. A newer one of the same caller takes the older one's place. Refuses: waiter_exists."""
    parked = Parked(wait=wait, until_ms=until_ms, types=types, by=by)
    if box.wait is None or box.wait.until_ms <= now_ms or box.wait.id == wait:
        return Decision((parked,))
    if box.wait.by != by:
        return Refusal(Code.WAITER_EXISTS, "another check waits on this mailbox")
    return Decision((WaitEnded(wait=box.wait.id), parked))


def end_wait(box: Mailbox, wait: str) -> Decision:
    """It waits no more; nothing when it did not."""
    return Decision((WaitEnded(wait=wait),) if box.wait is not None and box.wait.id == wait else ())


def shown(box: Mailbox, delivery_id: str | None) -> dict[str, Any]:
    """What the answer to a check holds: the Delivery with its messages, and what waits beyond it."""
    delivery = next((some for some in (box.delivery, box.lapsed) if some is not None and some.id == delivery_id), None)
    messages = box.numbered(delivery.first, delivery.last) if delivery is not None else []
    return {"messages": messages, "lease_until_ms": delivery.lease_until_ms if delivery else None, "beyond": beyond(box, delivery)}


def beyond(box: Mailbox, delivery: Delivery | None) -> dict[str, Any]:
    """How many messages wait behind a Delivery, and the heads of the first actionable ones: a batch hides nothing that is newer."""
    first = delivery.last + 1 if delivery is not None else box.first
    ahead: list[dict[str, Any]] = []
    for message in box.numbered(first, first + READ_AHEAD_MAX):
        if box.is_actionable(message.type):
            ahead.append({"id": message.id, "type": message.type, "sender": message.sender, "subject": message.subject})
            if len(ahead) == AHEAD_SHOWN_MAX:
                break
    return {"count": max(0, box.end - first), "actionable": ahead}
