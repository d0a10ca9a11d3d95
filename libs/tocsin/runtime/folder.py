"""Where an instance's state folder is. Apart, because even the quickest verbs ask for it."""

import os
from pathlib import Path

DEFAULT_STATE = Path.home() / ".local" / "state" / "tocsin"


def state_folder(given: str | Path | None = None) -> Path:
    """The real path of the state folder: `--state`, else TOCSIN_STATE, else the default. It need not exist."""
    return Path(given or os.environ.get("TOCSIN_STATE") or DEFAULT_STATE).expanduser().resolve()
