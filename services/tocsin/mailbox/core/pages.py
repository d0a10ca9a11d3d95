"""Looking without taking: pages of a mailbox, newest first, and the account of its wakes."""

from collections.abc import Iterable
from typing import Any

import msgspec

from tocsin.contract.mail import ReadMail
from tocsin.mailbox.core.addresses import dispatch_in
from tocsin.mailbox.core.delivery import DELIVERY_BYTES_MAX, size_bytes
from tocsin.mailbox.core.mailbox import Mailbox, wake_id
from tocsin.mailbox.core.wake import HOUR_MS

PAGE_MAX = 100
"""Rows of one page."""


def page(box: Mailbox, ask: ReadMail, askers: Iterable[Mailbox] = ()) -> dict[str, Any]:
    """One page. `next` is what to ask for with `before` to get the page behind it, null when this is the last one.

    `askers`: the mailboxes of a Run's workers, whose open questions are told with its own mail.
    """
    rows: list[dict[str, Any]] = []
    oldest = box.first if ask.unread else box.first - len(box.read)
    number = min(ask.before if ask.before is not None else box.end, box.end) - 1
    bytes_left = DELIVERY_BYTES_MAX
    while number >= oldest and len(rows) < max(1, min(ask.limit, PAGE_MAX)):
        entry = box.unread.get(str(number)) or box.read.get(str(number))
        if entry is not None:
            bytes_left -= size_bytes(entry.message)
            if bytes_left < 0 and rows:
                break
            rows.append({"number": number, "read": number < box.first, "message": entry.message})
        number -= 1
    questions = [question for asker in (box, *askers) for question in _open(asker)]
    return {
        "rows": rows, "unread": box.unread_count, "total": box.end - oldest, "next": number + 1 if number >= oldest else None,
        "questions": sorted(questions, key=lambda question: question["at_ms"]), "delivery": _handed_out(box),
        "waits_until_ms": box.wait.until_ms if box.wait is not None else None,
        "reader": box.reader.name if box.reader is not None else None, "shut": box.shut,
    }  # fmt: skip


def _open(box: Mailbox) -> list[dict[str, Any]]:
    dispatch = dispatch_in(box.address)
    return [
        {"id": some.id, "text": some.text, "options": some.options, "at_ms": some.at_ms, "dispatch": dispatch}
        for some in box.open_questions()
    ]


def _handed_out(box: Mailbox) -> dict[str, Any] | None:
    handed = box.delivery
    if handed is None:
        return None
    messages = [message.id for message in box.numbered(handed.first, handed.last)]
    return {"id": handed.id, "messages": messages, "lease_until_ms": handed.lease_until_ms}


def wakes_page(box: Mailbox, limit: int, now_ms: int) -> dict[str, Any]:
    """The last wakes, newest first, and how many there were within an hour."""
    numbers = range(box.wake_count, max(0, box.wake_count - max(1, min(limit, PAGE_MAX))), -1)
    rows = [msgspec.structs.asdict(box.wakes[name]) for number in numbers if (name := wake_id(box, number)) in box.wakes]
    return {"rows": rows, "hour": sum(at_ms > now_ms - HOUR_MS for at_ms in box.wake_times_ms), "unread": box.unread_count}
