"""What was taken and what was refused: counters, and one line of the log per code and second."""

from collections import Counter

from tocsin.contract.refusals import Code, Refusal
from tocsin.runtime.clock import Clock
from tocsin.runtime.logs import log

EXPOSITION_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""The Prometheus text format."""


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

    def exposition(self) -> str:
        """All counters as Prometheus reads them."""
        lines: list[str] = []

        def family(name: str, kind: str, about: str, *samples: tuple[str, int]) -> None:
            lines.append(f"# HELP {name} {about}")
            lines.append(f"# TYPE {name} {kind}")
            lines.extend(f"{name}{labels} {value}" for labels, value in samples)

        def by_agent(counts: Counter[str]) -> list[tuple[str, int]]:
            return [(f'{{agent="{agent}"}}', count) for agent, count in sorted(counts.items())]

        family(
            "tocsin_hooks_published_total",
            "counter",
            "Events that were said on the bus, or with ACK=async are about to be.",
            *by_agent(self.published),
        )
        family("tocsin_hooks_meaningless_total", "counter", "Events that were taken and mean nothing.", *by_agent(self.meaningless))
        family(
            "tocsin_requests_refused_total", "counter", "Requests that changed nothing, by reason.",
            *((f'{{code="{code}"}}', self.refused[code]) for code in Code),
        )  # fmt: skip
        family("tocsin_requests_malformed_total", "counter", "Bytes that are no HTTP request.", ("", self.malformed))
        family("tocsin_hooks_gone_total", "counter", "Clients that left before their body was there.", ("", self.gone))
        family(
            "tocsin_hooks_never_acked_total",
            "counter",
            "Events answered before their ack (ACK=async) that never had one.",
            ("", self.never_acked),
        )
        family("tocsin_hooks_in_flight", "gauge", "Hooks that wait for their answer now.", ("", self.in_flight))
        family("tocsin_hooks_unacked", "gauge", "Events answered before their ack that have none yet.", ("", self.unacked))
        return "\n".join(lines) + "\n"
