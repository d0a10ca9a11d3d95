"""The files that the hook command leaves when nobody answers it. Source: README, decision on the hook command.

A file holds one event: a first line with the agent, the headers that were to be sent, an empty line, the body, an end
mark. It is written under another name and renamed, so what lacks its end mark was torn by a crash or a full disk.
"""

from dataclasses import dataclass
from types import MappingProxyType

FOLDER = "spool"
"""Name of the folder of spooled events inside an instance's folder."""

PATTERN = "*.hook"
"""Names of finished files: `<ms>-<pid>-<KiB>-<tool|event>.hook`. Sorted by name they are in the order of their stamps.

Beside them lie `.*.part`, files that are being written (or were, by a hook command that was killed), and LOST.
"""

LOST = "lost"
"""Name of the file that counts what was dropped to stay within SPOOL_KIB_MAX: one byte an event, `t` for a tool event."""

SPOOL_KIB_MAX = 64 * 1024
"""Most that a spool may hold; beyond it tool events go first, the oldest first. The hook command keeps to it."""

FIRST = b"tocsin-hook 1 "
END = b"\ntocsin-hook-end\n"

HEADERS = MappingProxyType(
    {
        "X-Tocsin-Event": "event",
        "X-Tocsin-Sent": "sent",
        "X-Tocsin-Cwd": "cwd",
        "X-Tocsin-Tmux": "tmux",
        "X-Tocsin-Tmux-Pane": "tmux_pane",
        "X-Tocsin-Pane": "pane",
        "X-Tocsin-Pid": "pid",
        "X-Tocsin-Attended": "attended",
    }
)
"""Every header of the hook command, and the field of Spooled that holds it."""


@dataclass(frozen=True)
class Spooled:
    """One event as the hook command would have sent it. A header that was not known is None; `body` is byte for byte the same."""

    agent: str
    body: bytes
    event: str | None = None
    sent: str | None = None  # UTC ms by the sender's clock, digits
    cwd: str | None = None
    tmux: str | None = None
    tmux_pane: str | None = None
    pane: str | None = None
    pid: str | None = None
    attended: str | None = None

    @property
    def sent_ms(self) -> int | None:
        """When the hook ran, by the sender's clock; None where that clock gives no milliseconds (use the file's own time)."""
        return int(self.sent) if self.sent is not None and self.sent.isascii() and self.sent.isdigit() else None

    def headers(self) -> dict[str, str]:
        """The headers that the hook command would have sent."""
        return {name: value for name, field in HEADERS.items() if (value := getattr(self, field)) is not None}


def parse_spooled(data: bytes) -> Spooled | None:
    """The event in one spool file, or None when the file is torn or none of ours."""
    if not data.startswith(FIRST) or not data.endswith(END) or b"\0" in data:
        return None
    head, blank, body = data[: -len(END)].partition(b"\n\n")
    if not blank:
        return None
    first, *lines = head.decode("utf-8", "replace").split("\n")
    agent = first.removeprefix(FIRST.decode())
    if not agent:
        return None
    fields: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        field = HEADERS.get(name)
        if not colon or field is None:
            return None
        if value.strip():
            fields[field] = value.strip()
    return Spooled(agent=agent, body=body, **fields)
