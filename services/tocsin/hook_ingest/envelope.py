"""What the hook command says about an event in headers, because the agent's own body does not hold it."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from tocsin.contract.ids import HostId
from tocsin.contract.refusals import Code, Refusal
from tocsin.hook_ingest.core.payload import Envelope
from tocsin.runtime.http.border import Headers

HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "X-Tocsin-Event": "the agent's name of the event, for agents whose body does not hold it",
        "X-Tocsin-Cwd": "real path of the folder in which the hook ran",
        "X-Tocsin-Sent": "when the hook ran, in UTC milliseconds by its own clock",
        "X-Tocsin-Sent-Now": "for a spooled event: when it is delivered, by the same clock",
        "X-Tocsin-Spooled": "1: the event waited in the spool",
        "X-Tocsin-Tmux": "the hook's $TMUX",
        "X-Tocsin-Tmux-Pane": "the hook's $TMUX_PANE",
        "X-Tocsin-Pane": "the hook's $TOCSIN_PANE",
        "X-Tocsin-Pid": "process id of the agent",
        "X-Tocsin-Attended": "0: nobody is there to answer; 1: somebody is",
        "X-Tocsin-Host": "name of the machine on which the hook ran, when that is not the ingest's",
    }
)
"""Every header of the envelope. All are optional; an empty one counts as not sent."""

DIGITS_MAX = 15
"""Of a number: milliseconds have 13 until the year 2286."""

CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")

YES_OR_NO = {b"1": True, b"true": True, b"0": False, b"false": False}


def _text(value: bytes) -> str | None:
    """The value as text. Bytes that are not UTF-8 become lone surrogates, which no name, path or event can hold."""
    return value.decode(errors="surrogateescape") or None


def _number(value: bytes) -> int | None:
    return int(value) if len(value) <= DIGITS_MAX and value.isdigit() else None


def read_envelope(headers: Headers, own_host: HostId) -> Envelope | Refusal:
    """The envelope of one request; `own_host` stands where the request names no machine.

    A number that cannot be read is dropped, because the event itself is still worth having; what texts are good for is
    decided where they are used. Refuses: bad_field, when the machine's name cannot be one.
    """
    value = headers.get
    try:
        host = value(b"x-tocsin-host", b"").decode()
    except UnicodeDecodeError:
        return Refusal(Code.BAD_FIELD, "X-Tocsin-Host is not UTF-8")
    if CONTROLS.search(host):
        return Refusal(Code.BAD_FIELD, "X-Tocsin-Host holds control characters")
    return Envelope(
        host=HostId(host) if host else own_host,
        cwd=_text(value(b"x-tocsin-cwd", b"")),
        sent_ms=_number(value(b"x-tocsin-sent", b"")),
        sent_now_ms=_number(value(b"x-tocsin-sent-now", b"")),
        spooled=YES_OR_NO.get(value(b"x-tocsin-spooled", b"").lower(), False),
        tmux=_text(value(b"x-tocsin-tmux", b"")),
        tmux_pane=_text(value(b"x-tocsin-tmux-pane", b"")),
        tocsin_pane=_text(value(b"x-tocsin-pane", b"")),
        pid=_number(value(b"x-tocsin-pid", b"")),
        attended=YES_OR_NO.get(value(b"x-tocsin-attended", b"").lower()),
        event=_text(value(b"x-tocsin-event", b"")),
    )
