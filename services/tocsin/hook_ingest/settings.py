"""What hook-ingest reads from its environment, prefix `TOCSIN_`."""

from pathlib import Path
from typing import Literal

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from tocsin.runtime import instance
from tocsin.runtime.settings import Settings, Words

INGEST_PORT = 8627
"""T-O-C-S on a telephone's keys: assigned to nobody, and below the ports that systems hand out by themselves."""


class IngestSettings(Settings):
    """The settings of every service, and these. A variable that is set to nothing counts as not set."""

    model_config = SettingsConfigDict(env_ignore_empty=True)

    ingest_bind: str = "127.0.0.1"
    """Address to listen on. Anything but loopback is for containers, whose published port is on loopback."""
    ingest_port: int = Field(INGEST_PORT, ge=0, le=65535)
    """0: a free one, which the log and `ingest_port_file` tell."""
    ingest_port_file: Path | None = None
    """Where to write the port, once it is listened on."""
    hook_credential_file: Path | None = None
    command_credential_file: Path | None = None
    hash_key_file: Path | None = None
    """Key of the keyed hash in which free text leaves. Like the credentials: a file of the instance's folder, unless named."""
    allowed_hosts: Words = ()
    """More values of the Host header, exactly as clients send them, such as `hook-ingest:8627`."""
    allowed_origins: Words = ()
    """Values of the Origin header that may pass. Hooks have none, web pages have one."""
    ack: Literal["sync", "async"] = "sync"
    """`async`: answer before the bus has the event on record. A kill then loses what is in flight."""
    show_text: Literal["none", "prompts"] = "none"
    """`prompts`: keep a masked excerpt of questions and permissions."""

    @property
    def hook_credential(self) -> Path:
        """The file of the credential that may report."""
        return self.hook_credential_file or self.state / instance.HOOK_CREDENTIAL

    @property
    def command_credential(self) -> Path:
        """The file of the credential that may command."""
        return self.command_credential_file or self.state / instance.COMMAND_CREDENTIAL

    @property
    def hash_key(self) -> Path:
        """The file of the key of the keyed hash."""
        return self.hash_key_file or self.state / instance.HASH_KEY
