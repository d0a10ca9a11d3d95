"""The end of it. `make test-compose` comes here last."""

import socket

import pytest

from system.compose.project import NAME, Project


def test_down_leaves_nothing(project: Project):
    project.compose("down", "-v")
    for what in ("container", "volume", "network"):
        everything = ["-a"] if what == "container" else []
        assert project.run("docker", what, "ls", "-q", *everything, "--filter", f"label=com.docker.compose.project={NAME}") == ""
    for port in project.ports.values():
        with pytest.raises(OSError):  # noqa: PT011 - nobody listens any more
            socket.create_connection(("127.0.0.1", port), timeout=5)
