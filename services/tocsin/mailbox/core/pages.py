"""Looking without taking: pages of a mailbox, newest first, and the account of its wakes."""

from typing import Any

import msgspec

from tocsin.contract.mail import ReadMail
from tocsin.mailbox.core.delivery import DELIVERY_BYTES_MAX, size_bytes
from tocsin.mailbox.core.mailbox import Mailbox, wake_id
from tocsin.mailbox.core.wake import HOUR_MS

PAGE_MAX = 100
"""Rows of one page."""


def page(box: Mailbox, ask: ReadMail) -> dict[str, Any]:
    """One page. `next` is what to ask for with `before` to get the page behind it, null when this is the last one."""
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
    questions = [{"id": some.id, "text": some.text, "options": some.options, "at_ms": some.at_ms} for some in box.open_questions()]
    return {
        "rows": rows, "unread": box.unread_count, "total": box.end - oldest, "next": number + 1 if number >= oldest else None,
        "questions": questions,
    }  # fmt: skip


def wakes_page(box: Mailbox, limit: int, now_ms: int) -> dict[str, Any]:
    """The last wakes, newest first, and how many there were within an hour."""
    numbers = range(box.wake_count, max(0, box.wake_count - max(1, min(limit, PAGE_MAX))), -1)
    rows = [msgspec.structs.asdict(box.wakes[name]) for number in numbers if (name := wake_id(box, number)) in box.wakes]
    return {"rows": rows, "hour": sum(at_ms > now_ms - HOUR_MS for at_ms in box.wake_times_ms), "unread": box.unread_count}
