"""The metrics of a process, as Prometheus reads them: one page for all services in it, on an address of its own.

Nothing is imported, started or counted for it until somebody looks: services keep the numbers, and are asked for them then.
"""

import asyncio
import contextlib
import ipaddress
import platform
import socket
import sys
import threading
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tocsin.contract.metrics import BUILD
from tocsin.contract.tally import Metric, Sample, Sort, Source, Spread
from tocsin.runtime.instance import write_private
from tocsin.runtime.listening import bind
from tocsin.runtime.logs import log
from tocsin.runtime.settings import Settings

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

PATH = "/metrics"

ASKED_S_MAX = 2.0
"""How long the loop has for its numbers: one that is stuck shows as an answer of 503."""

CLIENT_S_MAX = 5.0
"""Whoever asks and then neither sends nor reads is left after so long: the next waits behind it."""

LOCAL_NAMES = frozenset({"localhost"})


class Meter:
    """Gathers the sources of one service."""

    def __init__(self, service: str) -> None:
        self.service = service
        self._sources: list[Source] = []

    def add(self, *sources: Source) -> None:
        """Ask these, too, whenever somebody looks."""
        self._sources += sources

    def samples(self) -> Iterator[Sample]:
        """What all of them say now. Counts of one metric that several say are for the page to add up."""
        yield Sample(BUILD, (version("tocsin"), platform.python_version()), 1)
        for source in self._sources:
            yield from source()


class Page:
    """What one process serves. Made by the first of its services, closed by the last."""

    def __init__(self, bound: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        self.meters: list[Meter] = []
        self._socket = bound
        self._loop = loop
        self._server: Any = None

    def open(self) -> None:
        """Answer whoever asks from now on."""
        self._socket.setblocking(False)
        self._socket.listen()
        self._loop.add_reader(self._socket, self._asked)

    def close(self) -> None:
        """Answer nobody any more."""
        self._loop.remove_reader(self._socket)
        self._socket.close()

    def _asked(self) -> None:
        # A thread for one request: what it costs to write the page delays nothing that the loop has to do.
        self._loop.remove_reader(self._socket)
        threading.Thread(target=self._answer, name="metrics", daemon=True).start()

    def _answer(self) -> None:
        try:
            if self._server is None:
                self._server = _server_of(self._socket, self._application())
            self._server.handle_request()
        finally:
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                self._loop.call_soon_threadsafe(self._listen_on)

    def _listen_on(self) -> None:
        if self._socket.fileno() >= 0:
            self._loop.add_reader(self._socket, self._asked)

    def _application(self) -> "WSGIApplication":
        from prometheus_client import CollectorRegistry, ProcessCollector, make_wsgi_app

        registry = CollectorRegistry()
        registry.register(_Collected(self))
        ProcessCollector(registry=registry)
        page: WSGIApplication = make_wsgi_app(registry)
        is_local = _is_local(self._socket.getsockname()[0])

        def answer(environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
            # A name that leads a browser to this machine is no reason to tell its page anything.
            if environ.get("HTTP_ORIGIN") or (is_local and not _is_local(_name_in(environ.get("HTTP_HOST", "")))):
                return _refuse(start, "403 Forbidden")
            if environ["PATH_INFO"] != PATH:
                return _refuse(start, "404 Not Found")
            try:
                return page(environ, start)
            except TimeoutError:
                return _refuse(start, "503 Service Unavailable")

        return answer

    def families(self) -> list[Any]:
        """All metrics in the library's form. Asks the loop, which owns the numbers; raises TimeoutError when it does not answer."""
        asked = asyncio.run_coroutine_threadsafe(self._gather(), self._loop)
        try:
            return list(_families(asked.result(ASKED_S_MAX)))
        except TimeoutError:
            asked.cancel()
            raise

    async def _gather(self) -> list[tuple[str, Sample]]:
        return [(meter.service, sample) for meter in self.meters for sample in meter.samples()]


class _Collected:
    """The library's name for a source."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def collect(self) -> Iterable[Any]:
        return self._page.families()

    def describe(self) -> Iterable[Any]:
        return ()


def _families(samples: Iterable[tuple[str, Sample]]) -> Iterator[Any]:
    """Samples in the library's form, by metric. What several parts of a service counted under one name is added up."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

    found: dict[Metric, dict[tuple[str, ...], float | Spread]] = {}
    for service, sample in samples:
        values = found.setdefault(sample.metric, {})
        key = (service, *sample.labels)
        values[key] = _sum(values[key], sample.value) if key in values else sample.value
    for metric, values in found.items():
        names = ["service", *(label.name for label in metric.labels)]
        if metric.sort is Sort.HISTOGRAM:
            times = HistogramMetricFamily(metric.name, metric.about, labels=names)
            for key, value in values.items():
                assert isinstance(value, Spread)
                bounds = [
                    *((str(bound), float(count)) for bound, count in zip(metric.buckets, value.up_to, strict=True)),
                    ("+Inf", float(value.total)),
                ]
                times.add_metric(key, bounds, value.sum)
            yield times
            continue
        family = (CounterMetricFamily if metric.sort is Sort.COUNTER else GaugeMetricFamily)(metric.name, metric.about, labels=names)
        for key, value in values.items():
            assert not isinstance(value, Spread)
            family.add_metric(key, value)
        yield family


def _sum(one: float | Spread, other: float | Spread) -> float | Spread:
    if isinstance(one, Spread) and isinstance(other, Spread):
        up_to = tuple(a + b for a, b in zip(one.up_to, other.up_to, strict=True))
        return Spread(up_to, one.total + other.total, one.sum + other.sum)
    assert not isinstance(one, Spread)
    assert not isinstance(other, Spread)
    return one + other


def _server_of(bound: socket.socket, application: "WSGIApplication") -> Any:
    """The standard library's HTTP server on a socket that is bound already. One request at a time, HTTP/1.0, then it closes."""
    from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

    class Quiet(WSGIRequestHandler):
        timeout = CLIENT_S_MAX

        def log_message(self, *words: object) -> None:
            """Nothing: a request every few seconds is no news."""

    address, port = bound.getsockname()[:2]

    class Patient(WSGIServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """A client that left, or that neither sent nor read."""
            log("metrics.client_failed", "debug", error=repr(sys.exception()))

    server = Patient((address, port), Quiet, bind_and_activate=False)
    server.socket.close()
    server.socket = bound
    server.server_name, server.server_port = address, port
    server.setup_environ()
    server.set_app(application)
    return server


def _refuse(start: "StartResponse", status: str) -> Iterable[bytes]:
    start(status, [("Content-Type", "text/plain; charset=utf-8")])
    return [f"{status}\n".encode()]


def _name_in(host: str) -> str:
    """The name in a Host header, without its port."""
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]


def _is_local(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name in LOCAL_NAMES


_page: Page | None = None
"""This process's; its services share it."""


@asynccontextmanager
async def metered(service: str, settings: Settings) -> AsyncIterator[Meter]:
    """The meter of a service; served with those of the process's other services while `metrics_port` is set.

    A port that cannot be had stops no service: the log says so, and Prometheus shows it as down.
    """
    global _page
    meter = Meter(service)
    if settings.metrics_port is None:
        yield meter
        return
    page = _page
    if page is None:
        page = _page = _opened(settings.metrics_bind, settings.metrics_port, settings.metrics_port_file)
    if page is None:
        yield meter
        return
    page.meters.append(meter)
    try:
        yield meter
    finally:
        page.meters.remove(meter)
        if not page.meters:
            page.close()
            _page = None


def _opened(address: str, port: int, port_file: Path | None) -> Page | None:
    try:
        bound = bind(address, port, socket.AI_PASSIVE)
    except OSError as error:
        log("metrics.not_served", "warning", address=address, port=port, reason=error.strerror)
        return None
    page = Page(bound, asyncio.get_running_loop())
    page.open()
    chosen: int = bound.getsockname()[1]
    if port_file is not None:
        write_private(port_file, f"{chosen}\n".encode())
    log("metrics.served", address=address, port=chosen)
    return page
