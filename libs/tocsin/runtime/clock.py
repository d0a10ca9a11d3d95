"""The two clocks: UTC for what people and other machines read, awake time for limits."""

import time
from pathlib import Path
from typing import Protocol

import psutil


class Clock(Protocol):
    """What time it is. Loops take one; decisions take its numbers."""

    def now_ms(self) -> int:
        """UTC milliseconds. May step when somebody sets the clock."""
        ...

    def awake_ms(self) -> int:
        """Milliseconds that only ever grow and stand still while the machine sleeps; shared by all processes of one boot."""
        ...


class SystemClock:
    """The machine's clocks. On Linux and macOS the monotonic clock does not count sleep."""

    def now_ms(self) -> int:
        """UTC milliseconds."""
        return time.time_ns() // 1_000_000

    def awake_ms(self) -> int:
        """Milliseconds awake since some moment of this boot."""
        return time.monotonic_ns() // 1_000_000


def boot() -> str:
    """Names this boot of this machine: what was noted in awake time under another name must be shifted."""
    kernel = Path("/proc/sys/kernel/random/boot_id")
    if kernel.exists():
        return kernel.read_text().strip()
    return f"{psutil.boot_time():.0f}"
