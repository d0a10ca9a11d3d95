"""What was taken and what was refused: counters, and one line of the log per code and second."""

from collections import Counter
from collections.abc import Iterator

from tocsin.contract.metrics import (
    HOOKS_GONE,
    HOOKS_IN_FLIGHT,
    HOOKS_MEANINGLESS,
    HOOKS_NEVER_ACKED,
    HOOKS_PUBLISHED,
    HOOKS_UNACKED,
    REQUESTS_MALFORMED,
    REQUESTS_REFUSED,
)
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.tally import Sample
from tocsin.runtime.clock import Clock
from tocsin.runtime.logs import log


class Account:
    """Counters of one process. Labels are agents and codes that we know, so what a client sends cannot add any."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.published: Counter[str] = Counter()
        self.meaningless: Counter[str] = Counter()
        self.refused: Counter[Code] = Counter()
        self.gone = 0
        self.malformed = 0
        self.never_acked = 0
        self.in_flight = 0
        self.unacked = 0
        self._lines: dict[str, tuple[int, int]] = {}

    def refuse(self, refusal: Refusal) -> None:
        """Count a refusal and say it, unless this second already had a line for its code."""
        self.refused[refusal.code] += 1
        self._say("hook.refused", refusal.code, message=refusal.message)

    def malform(self) -> None:
        """Count bytes that are no HTTP request."""
        self.malformed += 1
        self._say("http.malformed", "malformed")

    def _say(self, event: str, code: str, **fields: str) -> None:
        second = self._clock.awake_ms() // 1000
        last, unsaid = self._lines.get(code, (-1, 0))
        if last == second:
            self._lines[code] = second, unsaid + 1
            return
        self._lines[code] = second, 0
        log(event, "warning", code=code, **fields, **({"unsaid_before": unsaid} if unsaid else {}))

    def samples(self) -> Iterator[Sample]:
        """All counters. Codes that did not occur are 0, so that the first refusal is seen as one."""
        for agent, count in self.published.items():
            yield Sample(HOOKS_PUBLISHED, (agent,), count)
        for agent, count in self.meaningless.items():
            yield Sample(HOOKS_MEANINGLESS, (agent,), count)
        for code in Code:
            yield Sample(REQUESTS_REFUSED, (code.value,), self.refused[code])
        yield Sample(REQUESTS_MALFORMED, (), self.malformed)
        yield Sample(HOOKS_GONE, (), self.gone)
        yield Sample(HOOKS_NEVER_ACKED, (), self.never_acked)
        yield Sample(HOOKS_IN_FLIGHT, (), self.in_flight)
        yield Sample(HOOKS_UNACKED, (), self.unacked)
