"""When does the bell ring? Once for each prompt, after it has stood for the dwell; never for a memory.

A permission that a rule grants by itself stands for milliseconds and rings nobody.
"""

DWELL_MS = 1_000
"""How long a prompt must stand. Prompts that no person answers were gone within 300 ms (facts of the agents)."""


class Bell:
    """The prompts that stand in each pane, and up to which of them it has rung. Prompts are known by the moment they began (UTC ms)."""

    def __init__(self, dwell_ms: int = DWELL_MS) -> None:
        self.dwell_ms = dwell_ms
        self._standing: dict[str, tuple[int, ...]] = {}
        self._rung_until: dict[str, int] = {}
        self._waiting: dict[str, tuple[int, int]] = {}  # pane: the oldest prompt not rung for, and when to ring (awake ms)

    def stand(self, pane: str, prompts: tuple[int, ...], now_ms: int, awake_ms: int) -> None:
        """These prompts stand in `pane` now; none: it needs nobody. The dwell counts awake time from when the prompt began."""
        if not prompts:
            self._standing.pop(pane, None)
            self._waiting.pop(pane, None)
            return
        self._standing[pane] = prompts
        new = [at for at in prompts if at > self._rung_until.get(pane, -1)]
        if not new:
            self._waiting.pop(pane, None)
            return
        oldest = min(new)
        if self._waiting.get(pane, (None, 0))[0] != oldest:
            stood_ms = min(max(0, now_ms - oldest), self.dwell_ms)
            self._waiting[pane] = oldest, awake_ms + self.dwell_ms - stood_ms

    def leave(self, pane: str) -> None:
        """The pane is gone."""
        self._standing.pop(pane, None)
        self._waiting.pop(pane, None)
        self._rung_until.pop(pane, None)

    def due(self) -> int | None:
        """When it rings next (awake ms), if nothing changes."""
        return min((at for _, at in self._waiting.values()), default=None)

    def ready(self, awake_ms: int) -> list[str]:
        """Panes to ring for now."""
        return sorted(pane for pane, (_, at) in self._waiting.items() if at <= awake_ms)

    def ring(self, pane: str) -> int:
        """It rings for all that stands in `pane`. Returns what `take_back` needs."""
        before = self._rung_until.get(pane, -1)
        self._rung_until[pane] = max(self._standing[pane])
        del self._waiting[pane]
        return before

    def take_back(self, pane: str, before: int, now_ms: int, awake_ms: int) -> None:
        """It did not ring after all: somebody else has the bell. If that one falls silent, it is still to be rung."""
        self._rung_until[pane] = before
        self.stand(pane, self._standing.get(pane, ()), now_ms, awake_ms)

    def remember(self, pane: str, until_ms: int, now_ms: int, awake_ms: int) -> None:
        """Another life, or another replica, has rung for all that stood in `pane` at `until_ms`."""
        self._rung_until[pane] = max(until_ms, self._rung_until.get(pane, -1))
        self.stand(pane, self._standing.get(pane, ()), now_ms, awake_ms)

    def rung_for(self, pane: str) -> int:
        """When the latest prompt began that stands in `pane`, once it has rung for all of them; 0: it has not, or nothing stands."""
        return max(self._standing[pane]) if self.has_rung(pane) else 0

    def has_rung(self, pane: str) -> bool:
        """True when something stands in `pane` and the bell has rung for all of it."""
        return pane in self._standing and pane not in self._waiting
