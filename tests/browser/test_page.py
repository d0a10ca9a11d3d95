"""The page in a real browser: what a person sees, hears and presses through a day."""

import re

import pytest
from playwright.async_api import expect

from browser.conftest import violations
from builders import NOW_MS
from console_builders import a_console, a_row
from tocsin.console.core.day import SLOT_MS, Sample
from tocsin.console.store import ConsoleStore
from tocsin.contract.messages import Evidence
from tocsin.runtime.clock import SystemClock

SETTLE_MS = 3_000


def ago(seconds: float) -> int:
    return SystemClock().now_ms() - int(seconds * 1000)


def names(page):
    return page.locator(".row .name")


def row(page, name):
    return page.locator(f".row[data-id='{name}-id']")


# ---------------------------------------------------------------- getting in


async def test_without_a_session_the_page_says_how_to_get_one_and_shows_nothing_else(site):
    await site.console.say(a_row("secret", 1))
    page = await site.page(login=False)
    await expect(page.get_by_role("heading", name="Log in from a terminal")).to_be_visible()
    await expect(page.get_by_text("tocsin open", exact=True)).to_be_visible()
    await expect(page.get_by_text("secret")).to_have_count(0)
    assert await violations(page) == []


async def test_a_ticket_leaves_the_address_and_the_session_outlives_a_reload(site):
    await site.console.say(a_row("api"))
    page = await site.page()
    await expect(names(page)).to_have_text(["api"])
    assert "ticket" not in page.url
    await page.reload(wait_until="domcontentloaded")
    await expect(names(page)).to_have_text(["api"])


async def test_a_used_ticket_is_told_as_such(site):
    ticket = await site.console.ticket()
    first, second = await site.page(login=False), await site.page(login=False)
    await first.goto(f"{site.url}/#ticket={ticket}")
    await expect(first.locator("#connection")).to_have_text("no list")
    await second.goto(f"{site.url}/#ticket={ticket}")
    await expect(second.get_by_text("That address was used already, or is older than a minute.")).to_be_visible()


async def test_a_session_that_is_over_is_told_and_a_new_one_goes_on_in_the_same_tab(site):
    await site.console.say(a_row("api"))
    page = await site.page()
    await expect(names(page)).to_have_text(["api"])
    await page.context.clear_cookies()
    await site.proxy.cut()
    await site.proxy.open()
    await expect(page.get_by_role("heading", name="Log in from a terminal")).to_be_visible()
    await page.goto(f"{site.url}/#ticket={await site.console.ticket()}")
    await expect(names(page)).to_have_text(["api"])


# ---------------------------------------------------------------- the list


async def test_a_row_shows_class_name_branch_agent_reason_age_and_evidence_and_the_host_when_there_are_several(site):
    await site.console.say(a_row("api", 1, reason="asks to run npm", attention_at=ago(130), evidence=Evidence.INFERRED, dirty=True))
    page = await site.page()
    for part in ("needs you", "api", "feat-api*", "claude", "asks to run npm", "~inferred", "2m"):
        await expect(row(page, "api")).to_contain_text(part)
    await expect(row(page, "api")).not_to_contain_text(" on h")
    await site.console.say(
        a_row("api", 1), a_row("far", host="laptop", evidence=Evidence.STALE), a_row("old", evidence=Evidence.RESTORED), a_row("new")
    )
    await expect(row(page, "far")).to_contain_text("on laptop")
    await expect(row(page, "far")).to_contain_text("!stale")
    await expect(row(page, "old")).to_contain_text("?restored")
    await expect(row(page, "api")).to_contain_text("on h")


async def test_ages_go_on_by_themselves(site):
    await site.console.say(a_row("api", 1, attention_at=ago(5)))
    page = await site.page()
    age = row(page, "api").locator(".age")
    await expect(age).to_have_text(re.compile(r"^\d+s$"))
    first = await age.inner_text()
    await expect(age).not_to_have_text(first)


async def test_who_begins_to_need_a_person_moves_up_at_once_and_is_the_only_thing_that_is_announced(site):
    await site.console.say(a_row("api", 3), a_row("web", 3))
    page = await site.page()
    await expect(names(page)).to_have_text(["api", "web"])
    await expect(page.locator("#announcer")).to_be_empty()
    await site.console.say(a_row("web", 1, reason="asks to run npm"), a_row("api", 3))
    await expect(names(page)).to_have_text(["web", "api"])
    await expect(page.locator("#announcer")).to_have_text("web needs you: asks to run npm")
    await expect(page.get_by_role("status")).to_have_count(1)
    await site.console.say(a_row("web", 1, reason="asks to run npm"), a_row("api", 2))
    await expect(row(page, "api")).to_contain_text("done")
    await expect(page.locator("#announcer")).to_have_text("web needs you: asks to run npm")


async def test_every_other_move_waits_three_seconds_while_the_rows_say_at_once_what_is_true(site):
    await site.console.say(a_row("api", 3), a_row("web", 3))
    page = await site.page(login=False)
    await page.clock.install()
    await page.goto(f"{site.url}/#ticket={await site.console.ticket()}")
    await expect(names(page)).to_have_text(["api", "web"])
    await page.clock.pause_at(await page.evaluate("Date.now() + 1000"))
    await site.console.say(a_row("web", 2), a_row("api", 3))
    await expect(row(page, "web")).to_contain_text("done")
    await expect(names(page)).to_have_text(["api", "web"])
    await page.clock.run_for(SETTLE_MS - 100)
    await expect(names(page)).to_have_text(["api", "web"])
    await page.clock.run_for(200)
    await expect(names(page)).to_have_text(["web", "api"])


async def test_the_tab_tells_how_many_need_you(site):
    await site.console.say(a_row("api", 1), a_row("web", 1), a_row("docs", 2))
    page = await site.page()
    await expect(page).to_have_title("(2) Tocsin")
    await expect(page.locator("#icon")).to_have_attribute("href", "/icon-needed.svg")
    await site.console.say(a_row("docs", 2), a_row("api"), a_row("web"))
    await expect(page).to_have_title("Tocsin")
    await expect(page.locator("#icon")).to_have_attribute("href", "/bell.svg")


async def test_the_selector_puts_rows_into_each_order_at_once_and_is_remembered(site):
    await site.console.say(a_row("web", 1, active_at=5), a_row("api", active_at=9), a_row("Docs", active_at=1))
    page = await site.page()
    await expect(page.locator(".sorts label").first).to_have_attribute("title", "Agents that need attention, then most recent activity.")
    orders = {
        "Recent": ["api", "web", "Docs"], "Oldest first": ["Docs", "web", "api"], "Name": ["api", "Docs", "web"], "Smart": ["web", "api", "Docs"],
    }  # fmt: skip
    for sort, order in orders.items():
        await page.get_by_role("radio", name=sort, exact=True).check()
        await expect(names(page)).to_have_text(order)
    async with page.expect_request(lambda request: "sort=name&before=smart" in request.url):
        await page.get_by_role("radio", name="Name", exact=True).check()
    await page.reload(wait_until="domcontentloaded")
    await expect(names(page)).to_have_text(orders["Name"])
    await expect(page.get_by_role("radio", name="Name")).to_be_checked()


async def test_an_unread_mark_goes_with_a_look_outlives_a_reload_and_moves_nothing(site):
    rows = [a_row("api", 2, attention_at=ago(10)), a_row("web", 2, attention_at=ago(20)), a_row("idle")]
    await site.console.say(*rows)
    page = await site.page()
    await expect(page.locator(".unread:visible")).to_have_count(2)
    await row(page, "web").get_by_role("button").first.click()
    await expect(row(page, "web").locator(".unread")).to_be_hidden()
    await expect(names(page)).to_have_text(["api", "web", "idle"])
    await page.reload(wait_until="domcontentloaded")
    await expect(page.locator(".unread:visible")).to_have_count(1)
    await expect(names(page)).to_have_text(["api", "web", "idle"])
    await site.console.say(a_row("web", 1, attention_at=ago(0)), rows[0], rows[2])
    await expect(row(page, "web").locator(".unread")).to_be_visible()


async def test_text_of_others_is_text_and_disturbs_nothing(site):
    hostile = "<img src=x onerror=alert(1)>\u202egnp.exe\u0000\n\x1b[31m"
    await site.console.say(a_row("api", 1, reason=hostile, branch=hostile))
    page = await site.page()
    await expect(row(page, "api")).to_contain_text("<img src=x onerror=alert(1)>\ufffdgnp.exe\ufffd")
    assert await page.locator(".rows img").count() == 0


async def test_an_empty_list_tells_how_to_begin_and_no_list_is_told_apart(site):
    page = await site.page()
    await expect(page.get_by_role("heading", name="There is no list")).to_be_visible()
    assert await violations(page) == []
    await site.console.say()
    await expect(page.get_by_role("heading", name="No worktree and no agent yet")).to_be_visible()
    await expect(page.get_by_text("tocsin hooks install")).to_be_visible()
    assert await violations(page) == []
    await site.console.say(a_row("api"))
    await expect(names(page)).to_have_text(["api"])
    await expect(page.get_by_text("tocsin hooks install")).to_be_hidden()


# ---------------------------------------------------------------- cut and resume


async def test_a_cut_is_marked_and_what_happened_meanwhile_comes_once_when_the_line_is_back(site):
    await site.console.say(a_row("api", 3), a_row("web", 3))
    page = await site.page()
    await expect(names(page)).to_have_text(["api", "web"])
    asked = []
    page.on("request", lambda request: asked.append(request.url) if "/api/stream" in request.url else None)
    await page.evaluate(
        """new MutationObserver(() => (window.said ??= []).push(document.getElementById('announcer').textContent))
           .observe(document.getElementById('announcer'), { childList: true, characterData: true, subtree: true })"""
    )
    await site.proxy.cut()
    await expect(page.locator("#connection")).to_have_text(re.compile(r"^reconnecting · as of "))
    assert await violations(page) == []
    await site.console.say(a_row("web", 1, reason="asks to run npm"), a_row("api", 3))
    last = await site.console.say(a_row("web", 1, reason="asks to run npm"), a_row("api", 2), a_row("new"))
    await expect(names(page)).to_have_text(["api", "web"])
    await site.proxy.open()
    await expect(page.locator("#connection")).to_have_text("live")
    await expect(names(page)).to_have_text(["web", "api", "new"])
    await expect(row(page, "api")).to_contain_text("done")
    assert await page.evaluate("window.said") == ["web needs you: asks to run npm"]
    assert all(f"after={last.birth}.1" in url for url in asked)


async def test_a_console_that_was_started_again_is_found_again(site, bus, store):
    await site.console.say(a_row("api"))
    page = await site.page()
    await expect(names(page)).to_have_text(["api"])
    site.console.task.cancel()
    await expect(page.locator("#connection")).to_have_text(re.compile("^reconnecting"))
    async with a_console(site.console.state, bus, store, port=site.console.port, hosts=[f"127.0.0.1:{site.proxy.port}"]):
        await expect(page.locator("#connection")).to_have_text("live")
        await site.console.say(a_row("web", 1), a_row("api"))
        await expect(names(page)).to_have_text(["web", "api"])


async def test_a_bus_that_is_away_is_marked(site, nats_server):
    await site.console.say(a_row("api"))
    page = await site.page()
    await expect(names(page)).to_have_text(["api"])
    nats_server.end()
    await expect(page.locator("#connection")).to_have_text(re.compile("^bus away"))
    await expect(names(page)).to_have_text(["api"])
    nats_server.start()
    await expect(page.locator("#connection")).to_have_text("live", timeout=15_000)


async def test_a_line_that_died_without_a_word_is_noticed_by_its_silence(site):
    await site.console.say(a_row("api"))
    page = await site.page(login=False)
    await page.clock.install()
    await page.goto(f"{site.url}/#ticket={await site.console.ticket()}")
    await expect(names(page)).to_have_text(["api"])
    async with page.expect_request(lambda request: "/api/stream" in request.url and "after=" in request.url):
        await page.clock.fast_forward(30_000)
        await page.clock.run_for(2_000)
    await expect(page.locator("#connection")).to_have_text("live")


# ---------------------------------------------------------------- keyboard


async def test_the_keyboard_moves_opens_and_closes(site):
    await site.console.say(a_row("api", 1, reason="asks to run npm"), a_row("web", 2), a_row("docs"))
    page = await site.page()
    await expect(names(page)).to_have_count(3)
    focused = page.locator(":focus")

    async def on(name):
        await expect(focused.locator(".name")).to_have_text(name)

    for key, name in (
        ("j", "api"),
        ("j", "web"),
        ("ArrowDown", "docs"),
        ("j", "docs"),
        ("k", "web"),
        ("ArrowUp", "api"),
        ("End", "docs"),
        ("Home", "api"),
    ):
        await page.keyboard.press(key)
        await on(name)
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    details = row(page, "web").locator(".details")
    await expect(details).to_contain_text("web is 2 of 3: done since ")
    await expect(details).to_contain_text("api stands above web: needs you (asks to run npm) comes before done (web says so)")
    await expect(details).to_contain_text("cd /work/web")
    assert await violations(page) == []
    await page.keyboard.press("Escape")
    await expect(details).to_be_hidden()
    await on("web")
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    assert await violations(page) == []
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await on("web")


async def test_the_list_is_one_stop_of_the_tab_key(site):
    await site.console.say(a_row("api"), a_row("web"), a_row("docs"))
    page = await site.page()
    await expect(names(page)).to_have_count(3)
    assert await page.locator(".line[tabindex='0']").count() == 1


async def test_the_focus_stays_on_its_row_when_rows_move(site):
    await site.console.say(a_row("api", 3), a_row("web", 3), a_row("docs", 3))
    page = await site.page()
    await expect(names(page)).to_have_count(3)
    for _ in range(3):
        await page.keyboard.press("j")
    await page.evaluate("document.activeElement.addEventListener('blur', () => { window.lost = true; })")
    await site.console.say(a_row("docs", 1), a_row("api", 3), a_row("web", 3))
    await expect(names(page)).to_have_text(["docs", "api", "web"])
    await expect(page.locator(":focus .name")).to_have_text("docs")
    await site.console.say(a_row("web", 1), a_row("docs", 1), a_row("api", 3))
    await expect(names(page)).to_have_text(["web", "docs", "api"])
    await expect(page.locator(":focus .name")).to_have_text("docs")
    await page.keyboard.press("j")
    await expect(page.locator(":focus .name")).to_have_text("api")


async def test_the_palette_has_the_order_of_the_list_finds_by_letters_and_goes_there(site):
    await site.console.say(a_row("payments", 1), a_row("api", 2), a_row("pi", 3))
    page = await site.page()
    await expect(names(page)).to_have_count(3)
    await page.keyboard.press("Control+k")
    options = page.get_by_role("option")
    await expect(options.locator(".name")).to_have_text(["payments", "api", "pi"])
    await expect(options.first).to_have_attribute("aria-selected", "true")
    assert await violations(page) == []
    await page.keyboard.type("pi")
    await expect(options.locator(".name")).to_have_text(["pi", "api", "payments"])
    await page.keyboard.press("ArrowDown")
    await expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Go to api")
    await expect(dialog).to_contain_text("cd /work/api")
    assert await violations(page) == []
    await page.keyboard.press("Escape")
    await page.keyboard.press("/")
    await page.keyboard.type("zzz")
    await expect(page.get_by_text("No worktree fits.")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)


# ---------------------------------------------------------------- looks


@pytest.mark.parametrize("width", [320, 390, 900])
async def test_a_narrow_screen_shows_everything_without_a_sideways_scroll(site, width):
    long = "a-name-that-is-rather-long-and-has-no-end-to-speak-of"
    await site.console.say(a_row(long, 1, branch="feature/" + long, reason="asks to run " + "x" * 120), a_row("far", host="laptop"))
    page = await site.page()
    await page.set_viewport_size({"width": width, "height": 800})
    await expect(names(page)).to_have_count(2)
    assert await page.evaluate("document.documentElement.scrollWidth") <= width
    for part in (".badge", ".name", ".reason", ".age"):
        await expect(page.locator(f".row {part}").first).to_be_in_viewport()
    assert await violations(page) == []


async def lightness(page) -> float:
    return await page.evaluate(
        "getComputedStyle(document.body).backgroundColor.match(/[\\d.]+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0)"
    )


async def test_dark_and_light_follow_the_system_until_one_is_chosen_and_both_can_be_read(site):
    rows = [
        a_row("api", 1, evidence=Evidence.INFERRED),
        a_row("web", 2),
        a_row("docs", 3, evidence=Evidence.RESTORED),
        a_row("old", host="far", evidence=Evidence.STALE),
    ]
    await site.console.say(*rows)
    page = await site.page(color_scheme="dark")
    await expect(names(page)).to_have_count(4)
    dark = await lightness(page)
    assert await violations(page) == []
    await page.emulate_media(color_scheme="light")
    light = await lightness(page)
    assert light > dark
    assert await violations(page) == []
    await page.get_by_role("button", name="Theme: as the system").click()
    assert await lightness(page) == dark
    await page.reload(wait_until="domcontentloaded")
    await expect(names(page)).to_have_count(4)
    assert await lightness(page) == dark
    await page.get_by_role("button", name="Theme: dark").click()
    await page.emulate_media(color_scheme="dark")
    assert await lightness(page) == light


async def test_who_wants_less_motion_sees_none(site):
    await site.console.say(a_row("api", 3), a_row("web", 3))
    page = await site.page(reduced_motion="reduce")
    await expect(names(page)).to_have_count(2)
    await site.console.say(a_row("web", 1), a_row("api", 3))
    await expect(names(page)).to_have_text(["web", "api"])
    assert await page.evaluate("document.getAnimations().length") == 0


async def test_the_picture_of_the_day_outlives_a_reload_and_says_in_words_what_it_shows(site, store):
    now = SystemClock().now_ms() // SLOT_MS
    kept = ConsoleStore(store, "default")
    for back, waits in ((9, ()), (8, (20, 40)), (3, (3600,))):
        await kept.put_sample(Sample(slot=now - back, counts=(1, 2, 3, 4), waits_s=waits))
    await site.console.say(a_row("api"))
    page = await site.page()
    for _ in range(2):
        day = page.get_by_role("complementary", name="The last 24 hours")
        await expect(day).to_contain_text("3 answered, half of them within 40s; the longest waited 1h.")
        await expect(day.get_by_role("img", name=re.compile("1 needed you, 2 done, 3 working, 4 idle"))).to_be_visible()
        # Nobody knows what happened between the two runs of samples: each has its own areas.
        await expect(day.locator(".area.class-1")).to_have_count(2)
        await expect(day.locator(".plot .dot")).to_have_count(3)
        assert await violations(page) == []
        await page.reload(wait_until="domcontentloaded")


async def test_a_list_from_before_a_restart_is_marked(site):
    await site.console.say(a_row("api"), restored=True, at_ms=NOW_MS)
    page = await site.page()
    await expect(page.locator("#connection")).to_have_text(re.compile("^from before a restart"))


async def test_a_page_of_an_older_version_offers_to_be_loaded_again(site):
    await site.console.say(a_row("api"))
    page = await site.page()
    await expect(names(page)).to_have_text(["api"])

    session = await page.evaluate("fetch('/api/session').then((answer) => answer.json())")
    await page.route("**/api/session", lambda route: route.fulfill(json={**session, "version": "9.9.9"}))
    await site.proxy.cut()
    await expect(page.locator("#connection")).to_have_text(re.compile("^reconnecting"))
    await site.proxy.open()
    await expect(page.get_by_role("button", name="Reload for 9.9.9")).to_be_visible()
