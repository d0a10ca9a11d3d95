"""Who is woken, by what, and how often: the wake policy.

A wake is a turn of a mailbox's reader that we cause. It is for what the reader has not had: messages are told of once,
however many come before they are read. Everything that a decision needs is in the mailbox's record, so that any replica,
after any restart, decides the same.
"""

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from tocsin.contract.hosting import HostFact, Saw
from tocsin.contract.ids import digest
from tocsin.contract.mail import Rung, WakeState, Woken
from tocsin.contract.messages import PaneStatus
from tocsin.mailbox.core.addresses import dispatch_in
from tocsin.mailbox.core.delivery import ends_wait
from tocsin.mailbox.core.ladder import Reader, Stand, idle_hook_until, may_answer_idle_hook, next_rung, standing
from tocsin.mailbox.core.mailbox import WAKES_PER_HOUR_MAX, Mailbox, wake_id

W = WakeState

LIFE: Mapping[WakeState | None, frozenset[WakeState]] = MappingProxyType(
    {
        None: frozenset({W.DUE, W.HELD, W.OFFERED, W.COALESCED}),
        W.DUE: frozenset({W.HELD, W.OFFERED, W.COALESCED, W.WITHDRAWN, W.UNDELIVERABLE}),
        W.HELD: frozenset({W.DUE, W.HELD, W.OFFERED, W.COALESCED, W.WITHDRAWN, W.UNDELIVERABLE}),
        W.COALESCED: frozenset({W.DUE, W.HELD, W.OFFERED, W.WITHDRAWN}),
        # Offered again: a parked handler takes it, a typed line is written, or the next way is tried.
        W.OFFERED: frozenset({W.OFFERED, W.DELIVERED, W.HELD, W.UNDELIVERABLE, W.WITHDRAWN}),
        W.UNDELIVERABLE: frozenset({W.OFFERED, W.WITHDRAWN}),  # the person has been told, once
        W.DELIVERED: frozenset({W.DELIVERED}),  # more came in its turn, before anything was read
        W.WITHDRAWN: frozenset(),
    }
)
"""What may follow each state of a wake."""

ENDED = frozenset({W.DELIVERED, W.WITHDRAWN})

HOUR_MS = 3_600_000

NOTICE_MS = 45_000
"""How long a wake that nothing can deliver waits for its reader to come by itself; the person is told within 60 s."""

TAKE_MS_MAX = 3_000
"""How long a parked handler has to take a wake: it waits on us, so it is there at once or not at all."""

TURN_MS_MAX = 15_000
"""How long a turn may take to show after the agent has the pointer. Measured: up to 0.3 s; a busy machine is slower."""

TYPE_MS_MAX = 30_000
"""How long typing may take until a turn shows: the order waits in a queue, and the pane is watched before its Enter."""

TYPE_EXPIRES_MS = 20_000
"""An order to type that was not begun by then is not begun: the next way is tried soon after."""

TYPE_AGAIN_MS = 30_000
"""After a refusal because of a draft or dialog, the composer is looked at again; later each time, up to ten times as late."""

TYPE_AGAIN_FACTOR_MAX = 10

NAMED_MAX = 50
"""Messages that the record of a wake names."""


class Look(msgspec.Struct, frozen=True):
    """What a look at a mailbox comes to: a step to record or nothing, whether a channel is to be used then, and when to look again."""

    event: Woken | None = None
    fire: bool = False
    again_ms: int | None = None


NOTHING = Look()


def look(box: Mailbox, reader: Reader, now_ms: int) -> Look:
    """The next step of a mailbox's wake."""
    wake = box.wake if box.wake is not None and box.wake.state not in ENDED else None
    if wake is not None and box.shut is not None:
        return Look(_to(wake, W.WITHDRAWN, now_ms, proof=box.shut))
    if wake is not None and wake.state is W.OFFERED:
        return _offered(box, wake, reader, now_ms)
    if wake is not None and box.newest <= wake.behind:
        return Look(_to(wake, W.WITHDRAWN, now_ms, proof="its mail was read"))
    if box.shut is not None or (wake is None and not box.due):
        return NOTHING
    if box.wait is not None and box.wait.until_ms > now_ms and ends_wait(box, box.wait.types):
        return Look(again_ms=box.wait.until_ms)  # the waiting check is answered: no wake at all
    if wake is None and _joins(box, reader):
        assert box.wake is not None
        return Look(_to(box.wake, W.DELIVERED, now_ms, through=box.newest, messages=_named(box, box.wake)))
    return _choose(box, wake or _new(box, now_ms), reader, now_ms)


def on_idle(box: Mailbox, reader: Reader, hook_ms: int, goes_on: bool, now_ms: int) -> Look:
    """Its agent's turn is ending, and its hook asks whether there is anything to say. `goes_on`: the turn was itself caused by an answer.

    `hook_ms`: when the hook was received; what shows a turn must be newer.
    """
    wake = box.wake if box.wake is not None and box.wake.state not in ENDED else None
    if box.shut is not None or not (box.newest > wake.behind if wake is not None else box.due):
        return NOTHING
    if wake is not None and (wake.state is W.OFFERED or (goes_on and Rung.IDLE_HOOK in wake.tried)):
        return NOTHING
    if wake is None and _joins(box, reader):
        return NOTHING
    wake = wake or _new(box, now_ms)
    in_a_row = wake.in_a_row if goes_on else 0
    if not may_answer_idle_hook(reader, in_a_row) or (not wake.since_ms and _hour_full_until(box, now_ms) is not None):
        return NOTHING
    offered = _offer(box, wake, Rung.IDLE_HOOK, reader, now_ms, since_ms=hook_ms, deadline_ms=now_ms + TURN_MS_MAX)
    return Look(msgspec.structs.replace(offered, in_a_row=in_a_row + 1), fire=True, again_ms=offered.deadline_ms)


def on_claim(box: Mailbox, reader: Reader, now_ms: int) -> Look:
    """A handler that is parked beside its idle session asks for the wake; one handler gets it."""
    found = Look(box.wake) if box.wake is not None and box.wake.state is W.OFFERED else look(box, reader, now_ms)
    wake = found.event
    if wake is None or wake.state is not W.OFFERED or wake.rung is not Rung.NATIVE or wake.claimed:
        return NOTHING
    if wake.deadline_ms is not None and now_ms >= wake.deadline_ms:
        return NOTHING
    claimed = msgspec.structs.replace(wake, claimed=True, proof="taken by a parked handler", deadline_ms=now_ms + TURN_MS_MAX, at_ms=now_ms)
    return Look(claimed, fire=True, again_ms=claimed.deadline_ms)


def on_typed(box: Mailbox, fact: HostFact, now_ms: int) -> Look:
    """The hands tell what became of an order to type."""
    wake = box.wake
    if wake is None or wake.state is not W.OFFERED or wake.rung is not Rung.TYPED or fact.step != type_step(wake):
        return NOTHING
    match fact.saw:
        case Saw.TYPED:
            return Look(_to(wake, W.OFFERED, now_ms, proof="written", deadline_ms=now_ms + TURN_MS_MAX))
        case Saw.TYPE_HELD | Saw.EXPIRED:
            why = f"{fact.code or fact.saw}: {fact.detail}" if fact.detail else f"{fact.code or fact.saw}"
            again_ms = now_ms + (TYPE_AGAIN_MS * min(wake.tries, TYPE_AGAIN_FACTOR_MAX) if fact.saw is Saw.TYPE_HELD else 0)
            left = tuple(rung for rung in wake.tried if rung is not Rung.TYPED)
            return Look(_to(wake, W.HELD, now_ms, proof=why, deadline_ms=again_ms, tried=left), again_ms=again_ms)
        case Saw.UNKNOWN_STEP:
            # The Enter may have been sent, and is never sent again: a turn shows it, or the next way is tried.
            return Look(_to(wake, W.OFFERED, now_ms, proof="the hands were stopped in the middle", deadline_ms=wake.deadline_ms))
        case Saw.REFUSED:
            return Look(_to(wake, W.OFFERED, now_ms, proof=f"{fact.code}: {fact.detail}", deadline_ms=now_ms), again_ms=now_ms)
    return NOTHING


def type_step(wake: Woken) -> str:
    """The step of the order to type that a wake has given last."""
    return f"{wake.wake}.t{wake.tries}"


def pointer(box: Mailbox) -> str:
    """The line that tells of mail: how much of what, and how to read it. It orders nothing, because it has no authority to."""
    kinds = Counter(message.type.value for message in box.waiting(NAMED_MAX))
    listed = ", ".join(f"{count} {kind}" if count > 1 else kind for kind, count in sorted(kinds.items()))
    count = sum(kinds.values())
    whose = f"Dispatch {dispatch_in(box.address)}" if not box.is_run else f"Run {box.run}"
    some = "1 message" if count == 1 else f"{count} messages" if count < NAMED_MAX else f"{NAMED_MAX} or more messages"
    return f"Tocsin notice: {some} ({listed}) for {whose}. To read: tocsin mail check"


# ------------------------------------------------------------ the steps


def _new(box: Mailbox, now_ms: int) -> Woken:
    """A wake of which nothing is recorded yet. It goes on counting answers of idle hooks where the last one stopped."""
    return Woken(
        wake=wake_id(box, box.wake_count + 1), content="", state=W.DUE, at_ms=now_ms, behind=box.announced,
        in_a_row=box.wake.in_a_row if box.wake else 0,
    )  # fmt: skip


def _is_recorded(box: Mailbox, wake: Woken) -> bool:
    return box.wake is not None and box.wake.wake == wake.wake


def _to(wake: Woken, state: WakeState, now_ms: int, **fields: object) -> Woken:
    assert state in LIFE[wake.state], f"{wake.state} to {state}"
    return msgspec.structs.replace(wake, state=state, at_ms=now_ms, **({"deadline_ms": None} | fields))


def _first(box: Mailbox, wake: Woken, state: WakeState, now_ms: int, **fields: object) -> Woken:
    """The wake in `state`, with what it is for: its first step, or a later one."""
    assert state in LIFE[wake.state if _is_recorded(box, wake) else None], f"{wake.state} to {state}"
    named = _named(box, wake)
    messages = {"messages": named, "content": digest(*named), "cause": box.waiting(1, wake.behind)[0].type}
    return msgspec.structs.replace(wake, state=state, at_ms=now_ms, **(messages | {"deadline_ms": None} | fields))


def _named(box: Mailbox, wake: Woken) -> tuple[str, ...]:
    return tuple(message.id for message in box.waiting(NAMED_MAX, wake.behind))


def _offer(box: Mailbox, wake: Woken, rung: Rung, reader: Reader, now_ms: int, since_ms: int, deadline_ms: int) -> Woken:
    return _first(
        box, wake, W.OFFERED, now_ms, rung=rung, proof="", through=box.newest, turn=reader.turn, since_ms=since_ms, claimed=False,
        deadline_ms=deadline_ms, tried=(*(some for some in wake.tried if some is not rung), rung), tries=wake.tries + (rung is Rung.TYPED),
    )  # fmt: skip


def _choose(box: Mailbox, wake: Woken, reader: Reader, now_ms: int) -> Look:
    """What becomes of a wake that is not with anybody now."""
    full_until_ms = _hour_full_until(box, now_ms)
    if full_until_ms is not None and not wake.since_ms:
        if _is_recorded(box, wake) and wake.state in (W.COALESCED, W.UNDELIVERABLE):
            return Look(again_ms=full_until_ms)
        why = f"{WAKES_PER_HOUR_MAX} wakes in an hour"
        return Look(_first(box, wake, W.COALESCED, now_ms, rung=Rung.PERSON, proof=why), again_ms=full_until_ms)
    if wake.state is W.HELD and wake.deadline_ms is not None and now_ms < wake.deadline_ms and not reader.in_turn:
        return Look(again_ms=wake.deadline_ms)
    now = standing(reader, now_ms)
    if now.stand is Stand.ABSENT:
        return _nobody(box, wake, now.why, now_ms)
    if now.stand is not Stand.AT_REST:
        return _hold(box, wake, now.why, now.again_ms, now_ms)
    until_ms = idle_hook_until(reader, wake.tried, wake.in_a_row, now_ms)
    if until_ms is not None:
        return Look(again_ms=until_ms)
    choice = next_rung(reader, wake.tried, now_ms)
    if choice.rung is not None:
        deadline_ms = now_ms + (TAKE_MS_MAX if choice.rung is Rung.NATIVE else TYPE_MS_MAX)
        # Of two clocks the later: what the pane has said already proves nothing.
        since_ms = max(now_ms, reader.status.updated_ms if reader.status is not None else 0)
        return Look(_offer(box, wake, choice.rung, reader, now_ms, since_ms, deadline_ms), fire=True, again_ms=deadline_ms)
    if choice.again_ms is not None:
        return _hold(box, wake, choice.why, choice.again_ms, now_ms)
    if wake.tried:
        return _nobody(box, wake, f"no turn followed: {', '.join(wake.tried)}", now_ms)
    return _nobody(box, wake, "its agent is at rest, and has no way in", now_ms)


def _hold(box: Mailbox, wake: Woken, why: str, again_ms: int | None, now_ms: int) -> Look:
    is_held = _is_recorded(box, wake) and wake.state is W.HELD and wake.proof == why
    if is_held or wake.state is W.UNDELIVERABLE:
        return Look(again_ms=again_ms)
    return Look(_first(box, wake, W.HELD, now_ms, rung=None, proof=why), again_ms=again_ms)


def _nobody(box: Mailbox, wake: Woken, why: str, now_ms: int) -> Look:
    """No channel: the person is told, at once when all ways have been tried, else when the reader does not come by itself."""
    if wake.state is W.UNDELIVERABLE:
        return NOTHING
    if wake.tried:
        return Look(_first(box, wake, W.UNDELIVERABLE, now_ms, rung=Rung.PERSON, proof=why))
    if not _is_recorded(box, wake) or wake.state is not W.DUE:
        deadline_ms = now_ms + NOTICE_MS
        return Look(_first(box, wake, W.DUE, now_ms, rung=None, proof=why, deadline_ms=deadline_ms), again_ms=deadline_ms)
    if wake.deadline_ms is not None and now_ms < wake.deadline_ms:
        return Look(again_ms=wake.deadline_ms)
    return Look(_first(box, wake, W.UNDELIVERABLE, now_ms, rung=Rung.PERSON, proof=why))


def _offered(box: Mailbox, wake: Woken, reader: Reader, now_ms: int) -> Look:
    if box.seen >= wake.through or box.read_ms > wake.at_ms:
        return Look(_to(wake, W.DELIVERED, now_ms, proof="its mail was read", turn=reader.turn))
    proof = _turn_after(wake, reader.status)
    if proof is not None:
        # What came until the turn began is told by it as well.
        return Look(_to(wake, W.DELIVERED, now_ms, proof=proof, turn=reader.turn, through=max(wake.through, box.newest)))
    if box.newest <= wake.behind:
        return Look(_to(wake, W.WITHDRAWN, now_ms, proof="nothing is left to tell"))
    if wake.deadline_ms is not None and now_ms < wake.deadline_ms:
        return Look(again_ms=wake.deadline_ms)
    return _choose(box, wake, reader, now_ms)


def _turn_after(wake: Woken, status: PaneStatus | None) -> str | None:
    """What shows a turn of the model behind the offer, or None."""
    if status is None:
        return None
    if status.turn > wake.turn:
        return f"turn {status.turn} has started"
    last = status.turns[-1] if status.turns else None
    if last is not None and last.ended_ms is not None and last.ended_ms > wake.since_ms:
        return f"turn {last.number} went on and has ended"
    if last is not None and last.ended_ms is None and status.updated_ms > wake.since_ms:
        return f"turn {last.number} goes on"
    return None


def _joins(box: Mailbox, reader: Reader) -> bool:
    """Whether the turn that the last wake caused still runs, and nothing was read in it: what comes now is found with the rest."""
    wake = box.wake
    return (
        wake is not None
        and wake.state is W.DELIVERED
        and box.seen < wake.through
        and box.read_ms <= wake.since_ms
        and reader.in_turn
        and reader.turn == wake.turn
    )


def _hour_full_until(box: Mailbox, now_ms: int) -> int | None:
    """When the hour's budget has room again; None: it has."""
    times_ms = box.wake_times_ms
    if len(times_ms) < WAKES_PER_HOUR_MAX or times_ms[0] + HOUR_MS <= now_ms:
        return None
    return times_ms[0] + HOUR_MS
