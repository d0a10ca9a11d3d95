"""What the console reads from its environment, prefix `TOCSIN_`."""

from pathlib import Path

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from tocsin.runtime.settings import Settings, Words

CONSOLE_PORT = 8628
"""The one behind hook-ingest's."""


class ConsoleSettings(Settings):
    """The settings of every service, and these. A variable that is set to nothing counts as not set."""

    model_config = SettingsConfigDict(env_ignore_empty=True)

    console_bind: str = "127.0.0.1"
    """Address to listen on. Anything but loopback is for containers, whose published port is on loopback."""
    console_port: int = Field(CONSOLE_PORT, ge=0, le=65535)
    """0: a free one, which the log tells."""
    console_hosts: Words = ()
    """More `host:port` under which browsers reach it, such as that of a published port; pages of these origins may speak to it."""
    notify_url: str = Field("", repr=False)
    """Where what needs a person is posted to, as ntfy takes it; empty: nowhere. It may hold a secret, so nothing shows it whole."""
    notify_token_file: Path | None = None
    """A file with the token that is shown there; read for each notice."""
    notify_click: str = ""
    """The address that a notice opens; empty: the page as this machine reaches it."""
    quiet_hours: Words = ()
    """Spans such as 22:00-07:00 in which only what is marked urgent is told."""
    timezone: str = ""
    """Whose hours they are, as Europe/Berlin; empty: those of this machine."""
