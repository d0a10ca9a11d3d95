"""What the console reads from its environment, prefix `TOCSIN_`."""

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
