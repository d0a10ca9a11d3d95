"""The dispatcher's own settings."""

from pathlib import Path

from pydantic import Field

from tocsin.runtime.instance import HASH_KEY
from tocsin.runtime.settings import Settings


class DispatcherSettings(Settings):
    """Read from the environment, prefix `TOCSIN_`."""

    host_workers_max: int = Field(16, ge=1, le=1000)
    """Unsettled attempts on one host, over all Runs. A Run has a limit of its own."""

    hash_key_file: Path | None = None
    """Where the key of the keyed hashes lies; default: in the instance's folder."""

    @property
    def hash_key(self) -> Path:
        """The key by which a prompt is known again in what an agent's hook names."""
        return self.hash_key_file or self.state / HASH_KEY
