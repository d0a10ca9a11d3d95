"""More of each service: some share the work, some stand by and take over. `make test-compose`."""

import asyncio
import csv
import http.client
import io
import json
import time

import nats
import pytest

from builders import A_PERSON
from support import Deadline
from system.compose.project import SHARING, STANDING_BY, Project
from system.compose.reports import Reports
from tocsin.bus.bus import Unavailable
from tocsin.bus.nats_bus import connect
from tocsin.cli.embedded import ASK_CLIENTS
from tocsin.contract.custody import ALL, CustodyCommand, ListCustodies
from tocsin.contract.mail import MailCommand, ReadWakes
from tocsin.contract.run import CreateRun, Receipt, RunCommand, new_run_id
from tocsin.contract.subjects import CUSTODY_CMD, MAIL_CMD, RUN_CMD
from tocsin.runtime import instance

REPLICAS = dict.fromkeys(SHARING, 2) | dict.fromkeys(STANDING_BY, 3)
TAKE_OVER_S_MAX = 5
"""What is promised: a lease of 3 s that is looked at every second, or 3 s of patience with a difference."""

FROZEN_S_MAX = 40
"""Longest wait until nothing is given any more to a replica that does not answer. What it took stands in the figures."""

COMMANDS = 40
"""That one of two replicas gets none of so many: once in 500 thousand million."""


@pytest.fixture(scope="module")
def scaled(project: Project) -> Project:
    """The project with replicas."""
    began = time.monotonic()
    project.up(*(word for name, count in REPLICAS.items() for word in ("--scale", f"{name}={count}")))
    project.note(f"2 replicas of {len(SHARING)} services and 3 of {len(STANDING_BY)} are healthy", began)
    return project


def url(project: Project) -> str:
    return f"nats://127.0.0.1:{project.ports['NATS']}"


async def handed_out(project: Project, pattern: str) -> list[int]:
    """How many requests each replica was given by the bus."""
    user, _, password = (instance.credential(project.state, instance.NATS_MONITOR_CREDENTIAL) or "").partition(":")
    bus = await nats.connect(url(project), user=user, password=password)
    try:
        answer = await bus.request(ASK_CLIENTS, b'{"subscriptions_detail": true}', timeout=2)
    finally:
        await bus.close()
    connections = json.loads(answer.data)["data"]["connections"]
    return [one["msgs"] for each in connections for one in each.get("subscriptions_list_detail", ()) if one["subject"] == pattern]


def a_new_run(number: int) -> RunCommand:
    request = f"scaled-{number}"
    return RunCommand(run=new_run_id(A_PERSON, request), request=request, caller=A_PERSON, at_ms=1, ask=CreateRun(objective="share"))


def test_all_replicas_are_healthy(scaled: Project):
    assert {name: len(scaled.replicas(name)) for name in REPLICAS} == REPLICAS


def test_the_front_gives_each_hook_ingest_its_share(scaled: Project, reports: Reports):
    (front,) = scaled.replicas("front")
    look = "exec 3<>/dev/tcp/127.0.0.1/8404 && printf 'GET /stats;csv HTTP/1.0\\r\\n\\r\\n' >&3 && sed '1,/^\\r*$/d' <&3"
    for _ in Deadline(30, "each has been given some"):
        rows = csv.DictReader(io.StringIO(scaled.run("docker", "exec", front, "bash", "-c", look)))
        given = [int(row["stot"]) for row in rows if row["# pxname"] == "hook-ingest" and row["status"] == "UP"]
        if len(given) == REPLICAS["hook-ingest"] + 1 and min(given) > 0:  # each replica, and all of them together
            break


def test_the_front_passes_on_what_the_service_checks_host_credential_and_the_largest_body(scaled: Project):
    credential = instance.credential(scaled.state, instance.HOOK_CREDENTIAL)
    host = f"127.0.0.1:{scaled.ports['INGEST']}"

    def answered(bytes_of_body: int = 0, **changed: str) -> int:
        body = b'{"event":"busy","session":"s","cwd":"/story/large","more":"' + b"x" * bytes_of_body + b'"}'
        headers = {"Host": host, "Authorization": f"Bearer {credential}", "Content-Type": "application/json"} | changed
        connection = http.client.HTTPConnection("127.0.0.1", scaled.ports["INGEST"], timeout=20)
        try:
            connection.request("POST", "/hook/generic", body, headers)
            return connection.getresponse().status
        finally:
            connection.close()

    assert [answered(), answered(16 * 1024 * 1024 - 1024)] == [204, 204]
    assert [answered(Host="evil.example"), answered(Authorization="Bearer guessed")] == [421, 401]


def test_the_pages_stream_comes_through_the_front_as_it_is_said(scaled: Project, reports: Reports):
    credential = instance.credential(scaled.state, instance.COMMAND_CREDENTIAL)
    connection = http.client.HTTPConnection("127.0.0.1", scaled.ports["CONSOLE"], timeout=FROZEN_S_MAX)
    try:
        connection.request("GET", "/api/stream", headers={"Authorization": f"Bearer {credential}"})
        stream = connection.getresponse()
        assert (stream.status, stream.headers.get_content_type()) == (200, "text/event-stream")
        seen: set[str] = set()
        for _ in Deadline(FROZEN_S_MAX, "the stream tells of what is reported while it stands"):
            said = stream.readline().decode()
            assert said, "the stream has ended"
            seen |= {path for path in list(reports.acknowledged) if f'"{path}"' in said}
            if len(seen) > 3:
                break
    finally:
        connection.close()


async def test_dispatcher_mailbox_and_accountant_share_their_requests(scaled: Project):
    async with connect(url(scaled), name="test", state=scaled.state, makes_streams=False) as bus:
        for number in range(COMMANDS):
            run = a_new_run(number)
            await bus.ask(RUN_CMD, run, timeout_s=5)
            asked = {"request": run.request, "caller": A_PERSON, "at_ms": 1}
            await bus.ask(MAIL_CMD, MailCommand(mailbox=f"run:{run.run}", ask=ReadWakes(), **asked), timeout_s=5)
            await bus.ask(CUSTODY_CMD, CustodyCommand(custody=ALL, ask=ListCustodies(), **asked), timeout_s=5)
    for service, subject in (("dispatcher", RUN_CMD), ("mailbox", MAIL_CMD), ("release-accountant", CUSTODY_CMD)):
        shares = await handed_out(scaled, subject.all)
        assert (len(shares), min(shares) > 0) == (REPLICAS[service], True), (service, shares)


async def test_replicas_that_are_frozen_are_left_out(scaled: Project, reports: Reports):
    frozen = [scaled.replicas(name)[0] for name in SHARING]
    scaled.run("docker", "pause", *frozen)
    since = time.monotonic()
    try:
        await asyncio.to_thread(reports.wait_for_news, since, FROZEN_S_MAX, "hooks are taken")
        scaled.note("a replica of each sharing service is frozen, a hook is in the list after", since)
        answered_in_a_row = 0
        async with connect(url(scaled), name="test", state=scaled.state, makes_streams=False) as bus:
            async for _ in Deadline(FROZEN_S_MAX, "every request is answered"):
                try:
                    await bus.ask(RUN_CMD, a_new_run(0), timeout_s=1)
                    answered_in_a_row += 1
                except Unavailable:
                    answered_in_a_row = 0
                if answered_in_a_row == COMMANDS:
                    break
        scaled.note("and every request is answered after", since)
    finally:
        scaled.run("docker", "unpause", *frozen)


def test_another_status_store_takes_over_when_the_active_one_is_killed(scaled: Project, reports: Reports):
    reports.wait_for_news(time.monotonic(), 30, "the list goes on before")
    scaled.run("docker", "kill", scaled.active_status_store())
    killed = time.monotonic()
    reports.wait_for_news(killed, TAKE_OVER_S_MAX, "another status-store is at work")
    scaled.note("status-store killed, another is at work after", killed)
    reports.all_listed(TAKE_OVER_S_MAX)


def test_another_sorter_takes_over_when_the_active_one_is_killed(scaled: Project, reports: Reports):
    reports.wait_for_news(time.monotonic(), 30, "the list goes on before")
    scaled.run("docker", "kill", scaled.active_sorter())
    killed = time.monotonic()
    reports.wait_for_news(killed, TAKE_OVER_S_MAX, "another sorter is at work")
    scaled.note("sorter killed, another is at work after", killed)
    reports.all_listed(TAKE_OVER_S_MAX)


async def test_requests_are_answered_while_replicas_are_killed(scaled: Project, reports: Reports):
    victims = [scaled.replicas(name)[0] for name in SHARING]
    answered: list[object] = []
    async with connect(url(scaled), name="test", state=scaled.state, makes_streams=False) as bus:

        async def ask_all() -> None:
            for number in range(COMMANDS, 2 * COMMANDS):
                while True:
                    try:
                        answered.append(await bus.ask(RUN_CMD, a_new_run(number), timeout_s=2))
                        break
                    except Unavailable:
                        continue

        asking = asyncio.create_task(ask_all())
        await asyncio.to_thread(scaled.run, "docker", "kill", *victims)
        await asyncio.wait_for(asking, 60)
    assert [type(answer) for answer in answered] == [Receipt] * COMMANDS
    await asyncio.to_thread(reports.all_listed, 10)
