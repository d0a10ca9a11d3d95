"""Where the processes of an instance show their metrics: their ports, and the file that tells Prometheus of them."""

import json
from pathlib import Path

from tocsin.cli import embedded
from tocsin.runtime import instance

PORTS_TRIED_MAX = 40
"""Four times as many as there are services: beyond it, whichever port is free."""


class Targets:
    """The ports of this life, one for each process."""

    def __init__(self, state: Path) -> None:
        self._file = state / instance.METRICS
        self._ports: dict[str, int] = {}

    def port_of(self, process: str) -> dict[str, str]:
        """What a process must find in its environment. Asked before each of its starts; keeps the file true. Raises Unusable."""
        first = embedded.FIRST_PORTS["metrics"]
        others = {port for name, port in self._ports.items() if name != process}
        block = [port for port in (self._ports.get(process, first), *range(first, first + PORTS_TRIED_MAX)) if port not in others]
        self._ports[process] = next((port for port in block if embedded.port_is_free(port)), None) or embedded.free_port(None, first)
        targets = [{"targets": [f"{embedded.LOOPBACK}:{port}"], "labels": {"process": name}} for name, port in sorted(self._ports.items())]
        instance.write_private(self._file, json.dumps(targets, indent=2).encode() + b"\n")
        return {"TOCSIN_METRICS_PORT": str(self._ports[process])}
