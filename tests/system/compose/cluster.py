"""The overlay with three nodes of NATS: one is killed, then the store is killed and wiped. `make test-compose`."""

import asyncio
import time

import pytest

from builders import A_PERSON
from support import Deadline
from system.compose.project import NAME, SERVICES, Project
from system.compose.reports import Reports, Viewer
from tocsin.bus.bus import Unavailable
from tocsin.bus.nats_bus import connect
from tocsin.bus.streams import all_streams
from tocsin.contract.run import CreateRun, Receipt, RunCommand, new_run_id
from tocsin.contract.subjects import HOOK_REPORTED, RUN_CMD
from tocsin.store.keys import PANES, list_of

NODES = {"nats-1": "nats", "nats-2": "nats-2", "nats-3": "nats-3"}
"""The services of the nodes, by the nodes' names."""

BACK_S_MAX = 40
"""Longest wait for the list to go on. What it took stands in the figures."""


def bus_of(project: Project):
    return connect(f"nats://127.0.0.1:{project.ports['NATS']}", name="test", state=project.state, makes_streams=False)


async def made(project: Project) -> Receipt:
    """The receipt of the one request to make a Run: the first time it makes it, later it finds that it is made."""
    command = RunCommand(
        run=new_run_id(A_PERSON, "before"), request="before", caller=A_PERSON, at_ms=1, ask=CreateRun(objective="outlast the bus")
    )  # fmt: skip
    async with bus_of(project) as bus:
        async for _ in Deadline(BACK_S_MAX, "the dispatcher answers"):
            try:
                answer = await bus.ask(RUN_CMD, command, timeout_s=2)
            except Unavailable:
                continue
            if isinstance(answer, Receipt):
                return answer
    raise AssertionError


@pytest.fixture(scope="module")
def cluster(project: Project) -> Project:
    """The same project with the overlay, on the same volume of the store. A Run was made before."""
    asyncio.run(made(project))
    project.join_cluster()
    began = time.monotonic()
    project.up()
    project.note("three nodes of NATS are up in place of one", began)
    return project


def test_everything_is_healthy_with_three_nodes(cluster: Project):
    states = {name: one["State"] for name, one in cluster.containers().items()}
    assert {name for name, state in states.items() if state.get("Health", {}).get("Status") == "healthy"} == {*SERVICES, *NODES.values()}


async def test_each_stream_is_kept_on_all_three(cluster: Project):
    async with bus_of(cluster) as bus:
        for config in all_streams():
            info = await bus._jetstream.stream_info(config.name)
            assert {info.cluster.leader, *(one.name for one in info.cluster.replicas)} == NODES.keys(), config.name


async def test_what_the_ledgers_knew_on_the_single_server_came_along(cluster: Project):
    assert (await made(cluster)).duplicate


def test_a_node_that_is_killed_and_a_store_that_is_wiped_cost_no_acknowledged_event(cluster: Project, reports: Reports, viewer: Viewer):
    reports.wait_for_news(time.monotonic(), BACK_S_MAX, "the list goes on with three")

    async def leader() -> str:
        async with bus_of(cluster) as bus:
            return (await bus._jetstream.stream_info(HOOK_REPORTED.stream)).cluster.leader

    (victim,) = cluster.replicas(NODES[asyncio.run(leader())])
    cluster.run("docker", "kill", victim)
    killed = time.monotonic()
    reports.wait_for_news(killed, BACK_S_MAX, "the list goes on with two nodes")
    cluster.note("the node that led the log of hooks was killed, the list goes on after", killed)

    (store,) = cluster.replicas("valkey")
    cluster.run("docker", "kill", store)
    cluster.run(
        "docker", "run", "--rm", "-u", "0", "-v", f"{NAME}_valkey-data:/data", "--entrypoint", "sh", f"{NAME}:local", "-c", "rm -rf /data/*"
    )
    cluster.run("docker", "start", store)
    back = time.monotonic()
    reports.wait_for_news(back, BACK_S_MAX, "the list goes on with a store that knows nothing")
    cluster.note("Valkey killed and wiped, the list goes on after", back)
    reports.all_listed(BACK_S_MAX)
    with cluster.store() as refilled:
        for _ in Deadline(BACK_S_MAX, "the store knows all panes and the list again"):
            if refilled.hlen(PANES) >= len(reports.acknowledged) and refilled.exists(list_of("default")):
                break


async def test_what_the_ledgers_knew_is_there_without_the_node_and_after_the_wipe(cluster: Project):
    assert (await made(cluster)).duplicate


def test_the_node_comes_back_and_catches_up(cluster: Project):
    began = time.monotonic()
    cluster.up()
    cluster.note("the node is back and healthy after", began)

    async def all_current() -> None:
        async with bus_of(cluster) as bus:
            async for _ in Deadline(BACK_S_MAX, "all nodes have all of it"):
                found = [await bus._jetstream.stream_info(config.name) for config in all_streams()]
                if all(one.current and not one.offline for info in found for one in info.cluster.replicas):
                    break

    asyncio.run(all_current())
