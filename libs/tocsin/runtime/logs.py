"""One line per event on stderr: a time, a level, the event's name, and its ids as fields. Never a payload."""

import json
import sys
import time
from typing import Any

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
_threshold = LEVELS["info"]
_service = "tocsin"


def set_up(service: str, level: str = "info") -> None:
    """Name the service that logs, and the lowest level that is written."""
    global _service, _threshold
    _service, _threshold = service, LEVELS.get(level.lower(), LEVELS["info"])


def log(event: str, level: str = "info", **fields: Any) -> None:
    """Write one line. `event` is a past-tense name like `batch.stored`; fields are ids, counts and codes."""
    if LEVELS[level] < _threshold:
        return
    line = {"at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "level": level, "service": _service, "event": event, **fields}
    print(json.dumps(line, default=str), file=sys.stderr, flush=True)
