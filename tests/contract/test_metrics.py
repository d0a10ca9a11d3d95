"""The page that a process shows: over HTTP, as Prometheus asks for it, and as its own parser reads it."""

import asyncio
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families

from builders import a_status
from support import Deadline
from tocsin.bus.nats_bus import connect
from tocsin.contract.messages import State
from tocsin.contract.metrics import BUS_PUBLISH, BUS_RECONNECTS, HOOKS_LATE, LEASE, METRICS, PANES
from tocsin.contract.subjects import PANE_STATUS
from tocsin.contract.tally import Sample, Tally, by_word
from tocsin.runtime import metrics
from tocsin.runtime.metrics import metered
from tocsin.runtime.settings import Settings
from tocsin.store.connection import open_store


class Shown:
    """A process's page."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.settings = Settings(metrics_port=0, metrics_port_file=file)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{int(self.file.read_text())}/metrics"

    async def get(self, url: str = "", method: str = "GET", **headers: str) -> httpx.Response:
        async with httpx.AsyncClient(trust_env=False, timeout=20) as client:
            return await client.request(method, url or self.url, headers=headers)

    async def values(self) -> dict[tuple[str, ...], float]:
        """Every sample: its name and its label values in the order of their names."""
        answer = await self.get()
        assert answer.status_code == 200, answer.text
        return dict(values_of(answer.text))


def values_of(text: str) -> Iterator[tuple[tuple[str, ...], float]]:
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            yield (sample.name, *(sample.labels[name] for name in sorted(sample.labels))), sample.value


@pytest.fixture
def page(tmp_path) -> Shown:
    return Shown(tmp_path / "metrics.port")


async def test_each_service_of_a_process_stands_on_its_one_page_under_its_name(page):
    async with metered("sorter", page.settings) as sorter, metered("status-store", page.settings) as store:
        sorter.add(lambda: [Sample(LEASE, (), 1)])
        store.add(lambda: [Sample(LEASE, (), 0)], lambda: by_word(PANES, [State.DONE]))
        found = await page.values()
    assert found["tocsin_lease_held", "sorter"] == 1
    assert found["tocsin_lease_held", "status-store"] == 0
    assert found["tocsin_panes", "status-store", "done"] == 1
    assert found["tocsin_panes", "status-store", "blocked"] == 0
    assert {key[2] for key in found if key[0] == "tocsin_build_info"} == {"sorter", "status-store"}


async def test_it_is_read_anew_each_time_and_what_parts_of_a_service_count_is_added_up(page):
    one, other = Tally(), Tally()
    async with metered("status-store", page.settings) as meter:
        meter.add(one.samples, other.samples)
        one.add(HOOKS_LATE)
        one.time(BUS_PUBLISH, 0.004)
        first = await page.values()
        other.add(HOOKS_LATE, by=2)
        other.time(BUS_PUBLISH, 0.3)
        second = await page.values()
    assert (first["tocsin_hooks_late_total", "status-store"], second["tocsin_hooks_late_total", "status-store"]) == (1, 3)
    assert second["tocsin_bus_publish_seconds_count", "status-store"] == 2
    assert second["tocsin_bus_publish_seconds_bucket", "0.005", "status-store"] == 1
    assert second["tocsin_bus_publish_seconds_bucket", "+Inf", "status-store"] == 2
    assert second["tocsin_bus_publish_seconds_sum", "status-store"] == pytest.approx(0.304)


async def test_every_declared_metric_can_be_read_in_both_of_prometheus_formats(page):
    tally = Tally()
    for metric in METRICS.values():
        if metric.buckets:
            tally.time(metric, 0.1)
        else:
            tally.add(metric, *(label.values[0] if label.values else "word" for label in metric.labels))
    async with metered("sorter", page.settings) as meter:
        meter.add(tally.samples)
        plain = (await page.get()).text
        open_metrics = await page.get(Accept="application/openmetrics-text; version=1.0.0")
    named = {family.name for family in text_string_to_metric_families(plain)}
    assert {name.removesuffix("_total") for name in METRICS} <= named
    assert open_metrics.headers["content-type"].startswith("application/openmetrics-text")
    assert {name.removesuffix("_total") for name in METRICS} <= {family.name for family in openmetrics_families(open_metrics.text)}


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"Host": "127.0.0.1:1"}, 200), ({"Host": "localhost"}, 200), ({"Host": "[::1]:9"}, 200), ({"Host": "evil.example"}, 403),
     ({"Host": "127.0.0.1.evil.example"}, 403), ({"Origin": "http://127.0.0.1:8627"}, 403)],
)  # fmt: skip
async def test_no_web_page_reads_it_by_whatever_name(page, headers, status):
    async with metered("sorter", page.settings):
        assert (await page.get(**headers)).status_code == status


async def test_there_is_nothing_else_and_nothing_can_be_changed(page):
    async with metered("sorter", page.settings):
        assert (await page.get(page.url.removesuffix("/metrics") + "/")).status_code == 404
        assert (await page.get(page.url + "/sorter")).status_code == 404
        assert (await page.get(method="POST")).status_code == 405


async def test_a_client_that_sends_nothing_is_left_and_the_next_is_answered(page, monkeypatch):
    monkeypatch.setattr(metrics, "CLIENT_S_MAX", 0.2)
    async with metered("sorter", page.settings):
        port = int(page.file.read_text())
        _, silent = await asyncio.open_connection("127.0.0.1", port)
        assert (await page.get()).status_code == 200
        silent.close()


async def test_without_a_port_nothing_is_opened(tmp_path):
    file = tmp_path / "port"
    async with metered("sorter", Settings(metrics_port_file=file)) as meter:
        meter.add(lambda: [Sample(LEASE, (), 1)])
        assert not file.exists()


async def test_a_port_that_is_taken_stops_no_service(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        async with metered("sorter", Settings(metrics_port=port)) as meter:
            assert meter.service == "sorter"
    assert "metrics.not_served" in capsys.readouterr().err


async def test_it_is_closed_with_the_last_service_and_opened_again_for_the_next(page):
    async with AsyncExitStack() as first:
        await first.enter_async_context(metered("sorter", page.settings))
        async with metered("mailbox", page.settings):
            pass
        assert ("tocsin_build_info") in (await page.get()).text
        url = page.url
    with pytest.raises(httpx.ConnectError):
        await page.get(url)
    async with metered("sorter", page.settings):
        assert (await page.get()).status_code == 200


async def test_a_loop_that_is_stuck_is_told_as_unavailable(page, monkeypatch):
    monkeypatch.setattr(metrics, "ASKED_S_MAX", 0.05)
    answered = threading.Event()

    def ask(url: str) -> int:
        try:
            return httpx.get(url, trust_env=False, timeout=20).status_code
        finally:
            answered.set()

    def stuck() -> list[Sample]:
        assert answered.wait(30), "the answer came without the loop"
        return []

    async with metered("sorter", page.settings) as meter:
        meter.add(stuck)
        assert await asyncio.to_thread(ask, page.url) == 503


async def test_the_library_is_imported_only_when_somebody_looks():
    code = (
        "import sys, tocsin.sorter.__main__, tocsin.runtime.metrics\n"
        "print([name for name in sys.modules if name.startswith(('prometheus_client', 'wsgiref'))])"
    )
    done = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_reconnects_of_bus_and_store_are_counted_and_publishes_timed(nats_server, valkey_server):
    links = Tally()
    async with connect(nats_server.url, name="test") as bus, open_store(valkey_server.url, tally=links) as redis:
        await bus.say(PANE_STATUS, a_status())
        await redis.ping()
        nats_server.end(signal.SIGKILL)
        valkey_server.end(signal.SIGKILL)
        nats_server.start()
        valkey_server.start()
        async for _ in Deadline(20, "the bus is back"):
            if bus.returns:
                break
        await redis.ping()
        told = {sample.metric: sample.value for sample in bus.samples()}
        assert told[BUS_RECONNECTS] == 1
        assert told[BUS_PUBLISH].total == 1
        assert [sample.value for sample in links.samples()] == [2]
