"""Keeps the clock that the hook commands of this machine read, right: see hook_clock for what it is good for."""

import contextlib
from dataclasses import dataclass
from pathlib import Path

from tocsin.agents.install.hook_clock import HookClock, read_hook_clock, remove_hook_clock, write_hook_clock
from tocsin.runtime.clock import Clock
from tocsin.runtime.logs import log

UPTIME_GRAIN_MS = 10
"""/proc/uptime leaves off what is less."""

LOOK_MS_MAX = 5
"""A look at both clocks that took longer tells nothing: this process was held up between them."""

STEP_MS = 20
"""A difference above this is a clock that was set: two looks at one clock differ by UPTIME_GRAIN_MS + LOOK_MS_MAX at most."""


@dataclass
class BootClock:
    """The hook clock of the instance `state`; `proc` is where the kernel shows its facts, and on most systems is not there."""

    state: Path
    clock: Clock
    proc: Path = Path("/proc")

    def keep(self) -> None:
        """Write it where it is missing, of another boot, or wrong; remove it where it cannot be told. Blocks; raises nothing.

        A hook's stamp is then up to 25 ms earlier than its moment, and later only by a step of the clock too small to be seen.
        """
        try:
            began = self._measured()
            written = read_hook_clock(self.state)
            if began is None or (written and written.boot == began.boot and abs(written.began_ms - began.began_ms) <= STEP_MS):
                return
            write_hook_clock(self.state, began)
        except (OSError, ValueError):
            # None is better than a wrong one: hook commands then ask date.
            with contextlib.suppress(OSError):
                remove_hook_clock(self.state)
            return
        if written and written.boot == began.boot:
            log("clock.was_set", by_ms=began.began_ms - written.began_ms)

    def _measured(self) -> HookClock | None:
        """When this boot began, or None for a look that took too long. Raises OSError, ValueError where the kernel does not tell."""
        boot = (self.proc / "sys/kernel/random/boot_id").read_text().strip()
        before_ms = self.clock.now_ms()
        seconds = float((self.proc / "uptime").read_text().partition(" ")[0])
        if not 0 <= self.clock.now_ms() - before_ms <= LOOK_MS_MAX:
            return None
        return HookClock(boot, before_ms - round(seconds * 1000) - UPTIME_GRAIN_MS)
