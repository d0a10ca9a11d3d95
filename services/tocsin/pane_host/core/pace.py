"""How long to wait before the next look at the terminals: short while something changes, long when all is quiet."""

BUSY_MS = 250
CALM_MS = 500
QUIET_MS = 1_000

BUSY_FOR_MS = 4_000
CALM_FOR_MS = 15_000
"""After the last change. A person who answers a dialog goes on within seconds."""


def wait_ms(since_change_ms: int) -> int:
    """Milliseconds until the next look, `since_change_ms` after the last change."""
    if since_change_ms < BUSY_FOR_MS:
        return BUSY_MS
    return CALM_MS if since_change_ms < CALM_FOR_MS else QUIET_MS
