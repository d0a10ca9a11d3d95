"""Is this process at work? A file that its loop touches; `python -m tocsin.runtime.health` looks at it."""

import os
import sys
import tempfile
import time
from pathlib import Path

BEAT_S = 2.0
SILENCE_S_MAX = 10.0
"""Five missed beats: a loop that is stuck, not one that is busy."""


def beat_file() -> Path:
    """Where this process touches; a container holds one service, so one place is enough there."""
    return Path(os.environ.get("TOCSIN_BEAT_FILE") or Path(tempfile.gettempdir()) / "tocsin.beat")


def beat() -> None:
    """Say that the loop turns."""
    beat_file().touch()


def check() -> int:
    """0 when the last beat is fresh, else 1 with the reason on stderr."""
    try:
        age_s = time.time() - beat_file().stat().st_mtime
    except OSError as error:
        print(f"no beat: {error}", file=sys.stderr)
        return 1
    if age_s > SILENCE_S_MAX:
        print(f"the last beat is {age_s:.0f} s old", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(check())
