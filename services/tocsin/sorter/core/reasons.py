"""Why does a pane stand where it stands? One line and the kind of evidence, from the same facts that decided its class.

What a hook has brought about is told in status-store's words; what this pane's title or its silence means is told here.
No line holds an age: a list is published when something in it has changed, and ages always do.
"""

import re
import unicodedata

from tocsin.contract.messages import Evidence, PaneStatus, Reading, State
from tocsin.sorter.core.attention import NEEDS_YOU

REASON_CHARS_MAX = 200
TITLE_CHARS_MAX = 120

UNCONFIRMED = ", not confirmed since a restart"
"""What is only remembered is never shown as certain."""

_PLAIN = {
    State.BLOCKED: "asks for a permission",
    State.WAITING: "asks a question",
    State.WORKING: "works on its turn",
    State.DONE: "has finished its turn",
}
"""What a state is called that came without a cause."""

_BLINK = re.compile(r"^\[ [!.] ] ")


def topic(title: str) -> str:
    """A title without the glyphs before it: those are animations, and a row that differs in them has not changed."""
    text = _BLINK.sub("", title.strip())
    start = 0
    while start < len(text) and (unicodedata.category(text[start])[0] in "SZC" or text[start] in "\ufe0e\ufe0f"):
        start += 1
    return "".join(char for char in text[start:] if char.isprintable())[:TITLE_CHARS_MAX]


def _hooked(status: PaneStatus) -> str:
    """The cause that came with the status, and what it leaves out."""
    line = status.cause or _PLAIN.get(status.state, "is at its prompt")
    if status.state in NEEDS_YOU and len(status.prompts) > 1:
        line += f", and {len(status.prompts) - 1} more"
    return line + UNCONFIRMED if status.evidence is Evidence.RESTORED else line


def explain(status: PaneStatus, fresh: bool, speaks: bool) -> tuple[State, Evidence, str, int]:
    """State, evidence, reason and moment (UTC ms) of a pane as its row shows them.

    `fresh`: its hook counts. `speaks`: its title may be heard, which it is when the hook does not count.
    """
    if fresh:
        return status.state, status.evidence, _hooked(status)[:REASON_CHARS_MAX], status.since_ms
    title = status.title
    if speaks and title is not None and title.reading is Reading.PERMISSION:
        return State.BLOCKED, Evidence.INFERRED, "its title says that it needs you", title.since_ms
    if speaks and title is not None and title.reading is Reading.WORKING:
        return State.WORKING, Evidence.INFERRED, "its title says that it works", title.since_ms
    if status.hooked:
        return status.state, Evidence.STALE, "no contact for 30 min: stale", status.since_ms
    if speaks and title is not None and title.reading is Reading.IDLE:
        return State.IDLE, Evidence.INFERRED, "its title says that it rests", title.since_ms
    return State.IDLE, Evidence.NO_SIGNAL, f"no signal from {status.agent}" if status.agent else "no agent", status.since_ms


def cut_off(reason: str, host: str) -> str:
    """The last known reason of a pane whose host is out of contact: neither dead nor done, and not certain either."""
    tail = f"; no contact with {host}"
    return reason[: REASON_CHARS_MAX - len(tail)] + tail
