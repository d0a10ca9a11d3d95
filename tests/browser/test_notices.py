"""Notices and marks in a real browser: asked for once, shown in one tab, and marks that move nothing but the order that is theirs."""

import msgspec
from playwright.async_api import expect

from browser.conftest import violations
from builders import NOW_MS
from console_builders import a_row
from support import Deadline
from tocsin.contract.notices import NoticeDue
from tocsin.contract.subjects import NOTICE_DUE

COUNT = """
window.shown = [];
window.Notification = class extends Notification {
  constructor(title, options) { super(title, options); window.shown.push(`${title}: ${options.body}`); }
};
"""


def a_blocked(name, prompt_ms=NOW_MS, **fields):
    row = a_row(name, 1, **fields)
    return msgspec.structs.replace(row, panes=(msgspec.structs.replace(row.panes[0], prompt_ms=prompt_ms),))


def names(page):
    return page.locator(".row .name")


async def test_notices_are_shown_once_over_all_tabs_to_who_has_asked_for_them(site):
    await site.console.say(a_row("api", 3))
    first = await site.page(permissions=["notifications"])
    await first.context.add_init_script(COUNT)
    second = await first.context.new_page()
    pages = (first, second)
    for page in pages:
        await page.goto(site.url, wait_until="domcontentloaded")
        await expect(names(page)).to_have_text(["api"])
    await site.console.say(a_blocked("api", NOW_MS - 5_000))
    await expect(first.locator("#announcer")).to_contain_text("api needs you")
    button = first.get_by_role("button", name="Notifications")
    await expect(button).to_have_attribute("aria-pressed", "false")
    await button.click()
    await expect(button).to_have_attribute("aria-pressed", "true")
    await expect(second.get_by_role("button", name="Notifications")).to_have_attribute("aria-pressed", "true")
    body = a_blocked("api", NOW_MS)
    pane = msgspec.structs.replace(body.panes[0], reason="asks to run npm")
    await site.console.say(msgspec.structs.replace(body, panes=(pane,)))
    # A notice behind it, which every tab has heard, tells that both have heard the first.
    await site.console.bus.say(NOTICE_DUE, NoticeDue(workspace="default", id="last", at_ms=NOW_MS, title="last", text="one"))
    async for _ in Deadline(20, "it is shown in one of them"):
        told = [one for page in pages for one in await page.evaluate("window.shown")]
        if "last: one" in told:
            break
    for page in pages:
        # Both have heard of it: the list behind it is on their screens.
        await site.console.say(a_row("web", 3))
        await expect(names(page)).to_have_text(["web"])
    told = [one for page in pages for one in await page.evaluate("window.shown")]
    assert sorted(told) == ["api needs you: asks to run npm", "last: one"]


async def test_marks_are_shown_as_such_and_move_rows_in_the_persons_own_order_alone(site):
    await site.console.say(a_blocked("api"), a_row("docs", 2), a_row("web", 3))
    page = await site.page()
    await expect(names(page)).to_have_text(["api", "docs", "web"])
    await page.locator(".row[data-id='web-id'] .line").click()
    await page.get_by_role("button", name="Urgent", exact=True).click()
    await expect(page.locator(".row[data-id='web-id'] .marks")).to_contain_text("⚑")
    await expect(page.get_by_role("button", name="Urgent", exact=True)).to_have_attribute("aria-pressed", "true")
    await page.locator(".row[data-id='web-id'] .line").click()
    await page.locator(".row[data-id='api-id'] .line").click()
    await page.get_by_role("button", name="Snooze until anew").click()
    await expect(page.locator(".row[data-id='api-id'] .marks")).to_contain_text("☾")
    await expect(names(page)).to_have_text(["api", "docs", "web"])
    assert await violations(page) == []
    await page.get_by_role("radio", name="Mine").check()
    await expect(names(page)).to_have_text(["web", "docs", "api"])
    await page.get_by_role("button", name="End the snooze").click()
    await expect(names(page)).to_have_text(["web", "api", "docs"])
