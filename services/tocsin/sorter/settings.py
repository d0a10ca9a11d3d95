"""What the sorter reads from its environment, prefix `TOCSIN_`. All are milliseconds."""

from pydantic import Field

from tocsin.runtime.settings import Settings
from tocsin.sorter.service import Pace


class SorterSettings(Settings):
    """The settings of every service, and these."""

    settle_ms: int = Field(Pace.settle_ms, ge=0)
    """At most one list in this time."""
    dwell_ms: int = Field(Pace.dwell_ms, ge=0)
    """How long a prompt stands before the bell rings."""
    patience_ms: int = Field(Pace.patience_ms, ge=100)
    """How long a difference stands unpublished before a standby publishes it."""

    @property
    def pace(self) -> Pace:
        """The limits of the loop."""
        return Pace(settle_ms=self.settle_ms, dwell_ms=self.dwell_ms, patience_ms=self.patience_ms)
