"""One Chromium for all tests of the page; each test has a console, a bus and a browser profile of its own."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import redis.asyncio as redis
from playwright.async_api import Browser, Page, async_playwright, expect

from console_builders import Console, Proxy, a_console
from tocsin.bus.nats_bus import NatsBus, connect

FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync",
)  # fmt: skip
AXE = (Path(__file__).parent / "vendor" / "axe-core-4.14.1" / "axe.min.js").read_text()
expect.set_options(timeout=20_000)  # a limit for a machine that is busy, not an expectation

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A browser belongs to the loop that started it: all tests here share one."""
    for item in items:
        if Path(item.path).is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Chromium of this machine (TOCSIN_TEST_BROWSER names another); without one, Playwright's own (`playwright install chromium`)."""
    program = os.environ.get("TOCSIN_TEST_BROWSER") or next((found for name in PROGRAMS if (found := shutil.which(name))), None)
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield chromium
        await chromium.close()


@pytest_asyncio.fixture(loop_scope="session")
async def bus(nats_server) -> AsyncIterator[NatsBus]:
    async with connect(nats_server.url, name="test") as connected:
        yield connected


@pytest_asyncio.fixture(loop_scope="session")
async def store(valkey_server) -> AsyncIterator["redis.Redis"]:
    client = redis.Redis.from_url(valkey_server.url)
    yield client
    await client.aclose()


@dataclass
class Site:
    """The console behind a line that can be cut, and pages that look at it."""

    console: Console
    proxy: Proxy
    browser: Browser
    stack: AsyncExitStack
    problems: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.proxy.port}"

    async def page(self, *, login: bool = True, **context: Any) -> Page:
        """A page in a profile of its own."""
        profile = await self.stack.enter_async_context(await self.browser.new_context(viewport={"width": 1280, "height": 800}, **context))
        page = await profile.new_page()
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        ticket = f"#ticket={await self.console.ticket(name='dev')}" if login else ""
        await page.goto(f"{self.url}/{ticket}", wait_until="domcontentloaded")
        return page


@asynccontextmanager
async def a_site(folder: Path, bus: NatsBus, store: "redis.Redis", browser: Browser) -> AsyncIterator[Site]:
    proxy = Proxy()
    await proxy.open()
    async with a_console(folder, bus, store, hosts=[f"127.0.0.1:{proxy.port}"]) as console, AsyncExitStack() as stack:
        proxy.to = console.port
        yield Site(console, proxy, browser, stack)
    await proxy.cut()


@pytest_asyncio.fixture(loop_scope="session")
async def site(tmp_path, bus, store, browser) -> AsyncIterator[Site]:
    async with a_site(tmp_path / "state", bus, store, browser) as running:
        yield running
        assert running.problems == []


async def violations(page: Page) -> list[str]:
    """What axe-core finds, each with the element and what it says of it."""
    await page.evaluate(AXE)
    found = await page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [f"{rule['id']}: {node['html']} {node['failureSummary']}" for rule in found["violations"] for node in rule["nodes"]]
