"""The panes in Redis: each as JSON in one hash, written by the holder of the lease alone."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec
from redis.asyncio import Redis

from tocsin.status_store.core.binding import Place
from tocsin.status_store.core.pane import Moment, Pane, change
from tocsin.store.fenced import FencedHash, Lease
from tocsin.store.keys import PANES, STATUS_STORE, pane_field

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Pane).decode

GAP_MS = 10_000
"""Nobody was at work for longer than this: open states are memories. Shorter than that is a hand-over."""

AWAKE_FIELDS = ("turn_ended_awake_ms", "cancel_awake_ms", "dialog_gone_awake_ms")


@dataclass(frozen=True)
class Position:
    """How far which log has been read."""

    log: str
    seq: int


@dataclass(frozen=True)
class Loaded:
    """What was stored. `gap`: events may have been lost since."""

    panes: list[Pane]
    position: Position
    gap: bool


class PaneStore:
    """Reads all panes once, writes those that change."""

    def __init__(self, redis: Redis, holder: str, boot: str) -> None:
        self._hash = FencedHash(redis, STATUS_STORE, PANES, holder)
        self._boot = boot

    async def take(self, birth: str, now_ms: int) -> Lease | None:
        """See FencedHash.take."""
        return await self._hash.take(birth, now_ms)

    async def release(self, lease: Lease) -> None:
        """See FencedHash.release."""
        await self._hash.release(lease)

    async def load(self, heard_ms: int | None, now: Moment) -> Loaded:
        """All panes. Limits that ran on another boot go on as if this one had always been. Raises Unavailable."""
        fields, beside = await self._hash.read()
        panes = [_decode(value) for value in fields.values()]
        if beside.get("boot", self._boot) != self._boot:
            shift = (now.awake_ms - max(0, now.at_ms - int(beside["saved_ms"]))) - int(beside["saved_awake_ms"])
            panes = [_shifted(pane, shift) for pane in panes]
        gap = heard_ms is None or now.at_ms - heard_ms > GAP_MS
        return Loaded(panes, Position(beside.get("log", ""), int(beside.get("position", "0"))), gap)

    async def heard_ms(self) -> int | None:
        """When a holder was last at work, or None: ask before taking the lease. Raises Unavailable."""
        _, beside = await self._hash.read()
        return int(beside["heard_ms"]) if "heard_ms" in beside else None

    async def write(self, lease: Lease, panes: Iterable[Pane], gone: Sequence[Place], position: Position, now: Moment) -> None:
        """Store what has changed and how far the log was read, all or nothing. Raises Fenced, Wiped, Unavailable."""
        await self._hash.write(
            lease,
            {pane_field(pane.host, pane.pane): _encode(pane) for pane in panes},
            [pane_field(*place) for place in gone],
            {
                "log": position.log,
                "position": str(position.seq),
                "boot": self._boot,
                "saved_ms": str(now.at_ms),
                "saved_awake_ms": str(now.awake_ms),
            },
        )


def _shifted(pane: Pane, by_ms: int) -> Pane:
    """The pane with all its awake times moved to this boot's clock."""
    moved = {name: value + by_ms for name in AWAKE_FIELDS if (value := getattr(pane, name))}
    roster = tuple(msgspec.structs.replace(child, heard_awake_ms=child.heard_awake_ms + by_ms) for child in pane.roster)
    rest = pane.rest and Moment(at_ms=pane.rest.at_ms, awake_ms=pane.rest.awake_ms + by_ms)
    return change(pane, **moved, roster=roster, rest=rest)
