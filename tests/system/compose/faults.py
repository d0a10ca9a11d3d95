"""Everything is killed, and both servers are frozen and cut off for half a minute: the list goes on, nothing is lost. `make test-compose`."""

import time
from collections.abc import Callable

import pytest

from support import Deadline
from system.compose.project import NAME, SERVICES, Project
from system.compose.reports import Reports

AWAY_S = 30
STILL_S = 5
"""What was on its way when a server went is seen within it."""

BACK_S_MAX = 30
"""Longest wait for the list to go on. What it took stands in the figures."""


@pytest.mark.parametrize("service", sorted(SERVICES))
def test_a_container_that_crashes_comes_back_and_the_list_goes_on(project: Project, reports: Reports, service: str):
    reports.wait_for_news(time.monotonic(), BACK_S_MAX, "the list goes on before")
    (container,) = project.replicas(service)

    def state(field: str) -> str:
        return project.run("docker", "inspect", "-f", f"{{{{.State.{field}}}}}", container).strip()

    started = state("StartedAt")
    project.crash(container)
    killed = time.monotonic()
    for _ in Deadline(BACK_S_MAX, "the engine has started it again"):
        if state("StartedAt") != started and state("Running") == "true":
            break
    for _ in Deadline(BACK_S_MAX, "it is healthy again"):
        if state("Health.Status") == "healthy":
            break
    reports.wait_for_news(killed, BACK_S_MAX, "the list goes on")
    project.note(f"{service} crashed, healthy and the list goes on after", killed)
    reports.all_listed(BACK_S_MAX)


def cut_off(project: Project, server: str) -> Callable[[], object]:
    (container,) = project.replicas(server)
    project.run("docker", "network", "disconnect", f"{NAME}_default", container)
    return lambda: project.run("docker", "network", "connect", "--alias", server, f"{NAME}_default", container)


def freeze(project: Project, server: str) -> Callable[[], object]:
    (container,) = project.replicas(server)
    project.run("docker", "pause", container)
    return lambda: project.run("docker", "unpause", container)


@pytest.mark.parametrize("fault", [freeze, cut_off])
@pytest.mark.parametrize("server", ["nats", "valkey"])
def test_a_server_that_was_away_for_half_a_minute_costs_time_and_no_acknowledged_event(
    project: Project, reports: Reports, server: str, fault: Callable[[Project, str], Callable[[], object]]
):
    reports.wait_for_news(time.monotonic(), BACK_S_MAX, "the list goes on before")
    come_back = fault(project, server)
    gone = time.monotonic()
    time.sleep(AWAY_S)  # that is the fault
    assert reports.unseen(gone + STILL_S) or reports.refused, "the fault was none"
    come_back()
    back = time.monotonic()
    reports.wait_for_news(back, BACK_S_MAX, "the list goes on")
    project.note(f"{server}, {fault.__name__} for {AWAY_S} s: the list goes on after", back)
    reports.all_listed(BACK_S_MAX)
