"""One hook of one agent into one HookReported: what happened, to whom, and when on two clocks. Keeps no free text."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from tocsin.agents import fields
from tocsin.agents.agent import Agent, BadPayload, Keyed, Translated, UnknownEvent
from tocsin.contract.ids import BadName, HostId, PaneId, SourceId, digest, session_source, tmux_pane, token
from tocsin.contract.messages import HookReported, Kind
from tocsin.contract.refusals import Code, Refusal
from tocsin.hook_ingest.core.body import BODY_BYTES_MAX, Payload, parse
from tocsin.hook_ingest.core.excerpt import asked_text, masked_excerpt

__all__ = ["BODY_BYTES_MAX", "Envelope", "Payload", "masked_excerpt", "parse", "report"]

SENT_BEHIND_MS_MAX = 24 * 60 * 60 * 1000
"""Oldest stamp of a sender that may order events, before receipt."""

SENT_AHEAD_MS_MAX = 2_000
"""Newest one, after receipt: clocks of two machines differ; beyond this a clock is wrong."""

PID_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Envelope:
    """What the hook command says beside the agent's body. Nothing but `host` need be there, and nothing is trusted to be well formed."""

    host: HostId
    cwd: str | None = None  # real path of the folder in which the hook ran
    sent_ms: int | None = None  # by the sender's clock
    sent_now_ms: int | None = None  # by the same clock, when a spooled event is delivered
    spooled: bool = False
    tmux: str | None = None  # $TMUX: socket, pid, session
    tmux_pane: str | None = None  # $TMUX_PANE
    tocsin_pane: str | None = None  # $TOCSIN_PANE
    pid: int | None = None
    attended: bool | None = None  # False: headless, nobody can answer
    event: str | None = None  # the agent's name for the event, where only the hook command knows it


def report(
    agent: Agent,
    event: str | None,
    payload: Payload,
    envelope: Envelope,
    at_ms: int,
    keyed: Keyed,
    *,
    show_text: bool = False,
    ahead_ms: int = 0,
) -> HookReported | Refusal | None:
    """What `payload` reports; None for an event that means nothing. `at_ms` is the receipt, UTC by our clock.

    `ahead_ms`: how far the sender's clock is known to be ahead of ours, which is taken off its stamp.

    `keyed` makes the keyed hashes in which prompts and inputs leave; with `show_text` questions and permissions keep a
    masked excerpt beside them. Refuses: unknown_event, bad_field. Source: README, decisions on hooks and on two times.
    """
    try:
        meaning = agent.translate(event or envelope.event, payload.fields, keyed)
        if meaning is None:
            return None
        pane = _pane(envelope) if agent.trusts_environment else None
        source = SourceId(pane) if pane is not None else session_source(agent.name, meaning.session)
        token(envelope.host)
        token(source)
    except UnknownEvent as error:
        return Refusal(Code.UNKNOWN_EVENT, str(error))
    except (BadPayload, BadName) as error:
        return Refusal(Code.BAD_FIELD, str(error))
    folder = fields.as_path(envelope.cwd)
    known: dict[str, Any] = {name: getattr(meaning, name) for name in Translated.__struct_fields__}
    known["cwd"] = (folder or meaning.cwd) if agent.hooks_run_in_cwd else meaning.cwd
    known["excerpt"] = _excerpt(meaning, payload.fields) if show_text else None
    return HookReported(
        id=_message_id(agent, source, meaning, payload, envelope, at_ms),
        host=envelope.host,
        source=source,
        agent=agent.name,
        pane=pane,
        at_ms=_happened_ms(envelope, at_ms),
        sent_ms=_ordering_ms(envelope, at_ms, ahead_ms),
        spooled=envelope.spooled,
        attended=envelope.attended,
        pid=envelope.pid if envelope.pid is not None and 0 < envelope.pid <= PID_MAX else None,
        **known,
    )


def _pane(envelope: Envelope) -> PaneId | None:
    """The pane that the environment names. Raises BadPayload for a name that hides control characters or is too long."""
    hints: Mapping[str, Any] = MappingProxyType({"TOCSIN_PANE": envelope.tocsin_pane, "TMUX_PANE": envelope.tmux_pane})
    named = fields.identity(hints, "TOCSIN_PANE")
    if named is not None:
        return PaneId(named)
    number = fields.identity(hints, "TMUX_PANE")
    server, _, _session = (envelope.tmux or "").rpartition(",")
    socket, _, pid = server.rpartition(",")
    if number is None or not fields.as_path(socket):
        return None
    if not (_is_number(pid) and number.startswith("%") and _is_number(number[1:])):
        return None  # another multiplexer's idea of these variables
    return tmux_pane(server, number)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 10


def _ordering_ms(envelope: Envelope, at_ms: int, ahead_ms: int) -> int | None:
    """The sender's stamp in our time, if it may order events: not from a clock that is plainly wrong, and nobody knows how far."""
    sent_ms = None if envelope.sent_ms is None else envelope.sent_ms - ahead_ms
    if sent_ms is None or not at_ms - SENT_BEHIND_MS_MAX <= sent_ms <= at_ms + SENT_AHEAD_MS_MAX:
        return None
    return sent_ms


def _happened_ms(envelope: Envelope, at_ms: int) -> int:
    """When it happened by our clock: now, or as long ago as the sender's own clock says that it has waited in the spool."""
    if not envelope.spooled or envelope.sent_ms is None or envelope.sent_now_ms is None:
        return at_ms
    age_ms = max(0, envelope.sent_now_ms - envelope.sent_ms)
    return max(0, at_ms - age_ms)


def _message_id(agent: Agent, source: SourceId, meaning: Translated, payload: Payload, envelope: Envelope, at_ms: int) -> str:
    # Where the sender has no clock, equal bodies are two events: losing one is worse than counting one twice.
    sent = f"sent {envelope.sent_ms}" if envelope.sent_ms is not None else f"at {at_ms}"
    # A program may say the same words in two panes at once, and many senders' clocks have a grain of 10 ms.
    return digest(envelope.host, agent.name, source, meaning.event, payload.digest, sent)


def _excerpt(meaning: Translated, payload: Mapping[str, Any]) -> str | None:
    text = asked_text(payload) if meaning.kind is Kind.ASKED else None
    return masked_excerpt(text) if text else None
