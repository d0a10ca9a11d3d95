"""The settings that every service has. A service's own stand in its own settings.py."""

import socket
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from tocsin.runtime.folder import DEFAULT_STATE


def _split(value: object) -> object:
    if isinstance(value, str):
        return tuple(word for part in value.split(",") if (word := part.strip()))
    return value


Words = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
"""Words between commas."""


class Settings(BaseSettings):
    """Read from the environment, prefix `TOCSIN_`, except the two addresses that other tools name the same way."""

    model_config = SettingsConfigDict(env_prefix="TOCSIN_", extra="ignore", populate_by_name=True)

    nats_url: str = Field("nats://127.0.0.1:4222", validation_alias="NATS_URL")
    redis_url: str = Field("redis://127.0.0.1:6379/0", validation_alias="REDIS_URL")
    state: Path = DEFAULT_STATE
    """The instance's folder: id, lock, endpoint files, credentials."""
    host: str = Field(default_factory=socket.gethostname)
    """Name of this machine in subjects and on every surface."""
    workspace: str = "default"
    """The list that panes seen from here belong to."""
    log_level: str = "info"
    metrics_port: int | None = Field(None, ge=0, le=65535)
    """Where this process shows its metrics; not set: nowhere, 0: on a free port, which the log and `metrics_port_file` tell."""
    metrics_bind: str = "127.0.0.1"
    """Anything but loopback is for containers, which publish no such port."""
    metrics_port_file: Path | None = None
    """Where to write the port, once it is listened on."""
    makes_streams: bool = True
    """TOCSIN_MAKES_STREAMS: False on a machine that has joined: its credential may not, and the instance's own services do."""
    nats_replicas: int | None = Field(None, ge=1, le=5)
    """On how many nodes of a NATS cluster each stream is kept. Not set: on one, and streams that are there stay as they are."""
