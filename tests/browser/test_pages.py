"""The pages of the loop in a real browser: what they show as it happens, and what a person does there."""

import itertools
import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from browser.conftest import Site, violations
from dispatcher_builders import a_review, a_spec
from loop_builders import Loop, a_loop
from tocsin.contract.hosting import Saw
from tocsin.contract.run import Accept, AcceptTask, ListGates, OpenGate, ResolveGate, UpdateTask, Verdict

NARROW = {"width": 390, "height": 844}


@pytest_asyncio.fixture(loop_scope="session")
async def loop(nats_server, store, bus) -> AsyncIterator[Loop]:
    async with a_loop(nats_server.url, store, bus) as running:
        yield running


async def at(site: Site, path: str, **context: object) -> Page:
    """A page that has logged in and gone there."""
    page = await site.page(**context)
    await expect(page.locator("#nav a").first).to_be_visible()
    await page.goto(f"{site.url}{path}", wait_until="domcontentloaded")
    return page


def node(page: Page, task: str):
    return page.locator(f".node[data-task='{task}']")


def row(page: Page, key: str):
    return page.locator(f"tr[data-key='{key}']")


def counted(page: Page, path: str) -> list[str]:
    """The requests of every command that the page sends to `path` from now on."""
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.post_data_json["request"]) if request.url.endswith(path) else None)
    return sent


# ---------------------------------------------------------------- Runs


async def test_the_picture_of_a_run_follows_what_happens_and_the_table_says_the_same(site, loop):
    await loop.create(a_spec("build", title="Build it"), a_spec("ship", "build"), a_review("check", "build"))
    page = await at(site, f"/runs/{loop.run}")
    await expect(node(page, "build")).to_have_attribute("data-state", "ready")
    await expect(node(page, "ship")).to_have_attribute("data-state", "pending")
    await expect(page.locator(".edge")).to_have_count(2)
    await expect(page.locator(".edge.reviews")).to_have_count(1)
    dispatch = await loop.begin("build", "codex")
    await expect(node(page, "build")).to_have_attribute("data-state", "dispatched")
    await expect(node(page, "build")).to_contain_text("codex working")
    await expect(row(page, "build")).to_contain_text("dispatched")
    await expect(row(page, "build").get_by_role("link", name="codex")).to_be_visible()
    await loop.report(dispatch)
    await expect(node(page, "build")).to_have_attribute("data-state", "reported")
    await loop.of_run(AcceptTask(task="build", verdict=Verdict.ACCEPT))
    await expect(node(page, "build")).to_have_attribute("data-state", "accepted")
    await expect(node(page, "ship")).to_have_attribute("data-state", "ready")
    await expect(row(page, "ship")).to_contain_text("ready")
    await expect(page.locator(".graph svg")).to_have_attribute("aria-hidden", "true")


async def test_each_task_stands_behind_all_that_it_waits_for(site, loop):
    await loop.create(*[a_spec(f"t{n}", *([f"t{n - 1}"] if n else [])) for n in range(6)], a_spec("far", "t0", "t4"), a_spec("free"))
    page = await at(site, f"/runs/{loop.run}")
    await expect(page.locator(".node")).to_have_count(8)
    left = {
        name: (await node(page, name).locator("rect").first.bounding_box() or {})["x"] for name in ("free", "t0", "t1", "t4", "t5", "far")
    }
    assert left["free"] == left["t0"] < left["t1"] < left["t4"] < left["t5"] == left["far"]
    boxes = [await box.bounding_box() or {} for box in await page.locator(".node-box").all()]
    spans = sorted((box["x"], box["y"], box["height"]) for box in boxes)
    assert all(one[0] != two[0] or one[1] + one[2] <= two[1] for one, two in itertools.pairwise(spans)), "none covers another"


async def test_a_line_stays_cut_for_a_while_and_the_run_is_true_again_without_a_reload(site, loop):
    await loop.create(a_spec("build"))
    page = await at(site, f"/runs/{loop.run}")
    await expect(node(page, "build")).to_have_attribute("data-state", "ready")
    await site.proxy.cut()
    await expect(page.locator("#connection")).to_have_attribute("data-state", "cut")
    await loop.begin("build")
    await site.proxy.open()
    await expect(node(page, "build")).to_have_attribute("data-state", "dispatched")


async def test_a_task_is_opened_by_keyboard_from_the_table_and_closing_it_leads_back(site, loop):
    await loop.create(a_spec("build", title="Build it", spec="Build all of it, with tests."))
    page = await at(site, f"/runs/{loop.run}")
    await page.get_by_role("link", name="build", exact=True).focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="build", exact=True)).to_be_focused()
    assert page.url.endswith(f"/runs/{loop.run}/build")
    await expect(page.get_by_text("No attempt yet")).to_be_visible()
    await loop.of_run(UpdateTask(task="build", title="Build it well"))
    await expect(page.locator(".task-name")).to_have_text("Build it well")
    await expect(page.get_by_role("heading", name="build", exact=True)).to_be_focused()
    await page.get_by_role("link", name="Close the Task").click()
    await expect(page.get_by_role("link", name="build", exact=True)).to_be_focused()
    await expect(page.locator(".panel")).to_be_hidden()
    await page.go_back()
    await expect(page.locator(".panel")).to_be_visible()


async def test_a_run_that_is_not_there_is_told_and_not_shown_as_empty(site, loop):
    page = await at(site, "/runs/nowhere")
    await expect(page.locator(".outdated")).to_contain_text("This is not current")
    await expect(page.get_by_text("No Task yet.")).to_be_hidden()


async def test_long_lists_say_how_long_they_are_and_show_more_when_asked(site, loop):
    await loop.create(*[a_spec(f"t{number}") for number in range(201)])
    page = await at(site, f"/runs/{loop.run}")
    await expect(page.locator("tbody tr")).to_have_count(200)
    await expect(page.get_by_text("200 of 201")).to_be_visible()
    await page.get_by_role("button", name="Show more").click()
    await expect(page.locator("tbody tr")).to_have_count(201)
    await expect(page.get_by_text("200 of 201")).to_be_hidden()


# ---------------------------------------------------------------- what a person does


async def test_a_gate_is_answered_once_though_it_is_clicked_twice_and_nothing_moves_before_the_answer(site, loop):
    await loop.create(a_spec("ship"))
    await loop.of_run(OpenGate(task="ship", question="May it go out?", options=("yes", "after the weekend"), to="person"))
    page = await at(site, f"/runs/{loop.run}")
    await expect(page.get_by_role("heading", name="One answer is awaited")).to_be_visible()
    sent = counted(page, "/api/run/commands")
    await page.get_by_role("button", name="Answer").click()
    box = page.get_by_role("dialog")
    await expect(box).to_contain_text("May it go out?")
    await box.get_by_role("button", name="Answer it").click()
    await expect(box.get_by_role("alert")).to_have_text("Choose a decision.")
    assert sent == []
    await box.get_by_label("Accept: the Task goes on").check()
    await box.get_by_role("button", name="after the weekend").click()
    await box.get_by_role("button", name="Answer it").dblclick()
    await expect(box).to_have_count(0)
    await expect(page.locator("#announcer")).to_have_text("The gate on ship is answered")
    await expect(node(page, "ship")).to_have_attribute("data-state", "ready")
    await expect(page.locator(".needs")).to_be_hidden()
    assert len(sent) == 1
    gates = (await loop.of_run(ListGates(all=True)))["rows"]
    assert [(gate["verdict"], gate["answer"]) for gate in gates] == [("accept", "after the weekend")]


async def test_a_refusal_is_shown_with_its_next_step_and_other_words_are_another_request(site, loop):
    await loop.create(a_spec("ship"))
    gate = (await loop.of_run(OpenGate(task="ship", question="May it go out?")))["gate"]
    page = await at(site, f"/runs/{loop.run}")
    sent = counted(page, "/api/run/commands")
    await page.get_by_role("button", name="Answer").click()
    box = page.get_by_role("dialog")
    await box.get_by_label(re.compile("^Reject")).check()
    await box.get_by_role("button", name="Answer it").click()
    await expect(box.get_by_role("alert")).to_contain_text("reject needs an answer that says why")
    await loop.of_run(ResolveGate(gate=gate, verdict=Verdict.ACCEPT))
    await box.get_by_label(re.compile("^Answer")).fill("not yet")
    await box.get_by_role("button", name="Answer it").click()
    await expect(box.get_by_role("alert")).to_contain_text("already_decided")
    await expect(box.get_by_role("alert")).to_contain_text("tocsin gate list")
    await box.get_by_role("button", name="Answer it").click()
    await expect(box.get_by_role("alert")).to_contain_text("already_decided")
    assert len(sent) == 3
    assert sent[0] != sent[1] == sent[2]
    assert await violations(page) == []


async def test_a_command_without_an_answer_is_asked_again_as_the_same_one(site, loop):
    await loop.create(a_spec("build"))
    dispatch = await loop.begin("build")
    question = await loop.ask(dispatch, "left or right?", "left", "right")
    page = await at(site, f"/runs/{loop.run}")
    sent = counted(page, "/api/mail/commands")
    await page.get_by_role("button", name=f"Answer: {question}").click()
    box = page.get_by_role("dialog")
    await box.get_by_role("button", name="left", exact=True).click()

    async def taken_and_lost(route) -> None:
        await route.fetch()  # the console takes it, and its answer never comes
        await route.abort()

    await page.route("**/api/mail/commands", taken_and_lost)
    await box.get_by_role("button", name="Send the answer").click()
    await expect(box.get_by_role("alert")).to_contain_text("It may have been taken")
    await expect(box.get_by_label("Answer")).to_be_disabled()
    await page.unroute("**/api/mail/commands")
    await box.get_by_role("button", name="Ask again").click()
    await expect(page.locator("#announcer")).to_have_text(f"{dispatch} has its answer")
    assert len(sent) == 2
    assert sent[0] == sent[1]
    (mail,) = (await loop.until_unread(1, f"dispatch:{dispatch}"))["rows"]
    assert mail["message"]["body"] == "left"
    await expect(page.locator(".needs")).to_be_hidden()


async def test_a_reported_task_goes_back_with_a_reason_and_then_is_accepted(site, loop):
    await loop.create(a_spec("build"), a_spec("ship", "build"))
    await loop.report(await loop.begin("build"), body="It is built.")
    page = await at(site, f"/runs/{loop.run}/build")
    await expect(page.locator(".panel")).to_contain_text("It is built.")
    await page.get_by_role("button", name="Rework: build").click()
    box = page.get_by_role("dialog")
    await box.get_by_role("button", name="Rework").click()
    await expect(box.get_by_role("alert")).to_have_text("Say what has to change: it goes to the worker.")
    await box.get_by_label("Why").fill("The errors name no column.")
    await box.get_by_role("button", name="Rework").click()
    await expect(page.locator(".panel")).to_contain_text("The errors name no column.")
    await expect(node(page, "build")).to_contain_text("round 2 of 3")
    await loop.report(await loop.begin("build"))
    await page.get_by_role("button", name="Accept: build").click()
    await expect(page.get_by_role("dialog")).to_contain_text("It unlocks ship.")
    await page.get_by_role("dialog").get_by_role("button", name="Accept").click()
    await expect(node(page, "ship")).to_have_attribute("data-state", "ready")


async def test_a_worker_is_stopped_and_another_abandoned_and_the_dialog_names_whom(site, loop):
    await loop.create(a_spec("build"), a_spec("other"))
    build, other = await loop.begin("build"), await loop.begin("other", "codex")
    page = await at(site, "/workers")
    await page.get_by_role("button", name=f"Stop: {build}").click()
    box = page.get_by_role("dialog")
    await expect(box).to_contain_text("Ends the worker of Task build: claude on h")
    await page.keyboard.press("Escape")
    await expect(box).to_have_count(0)
    await expect(page.get_by_role("button", name=f"Stop: {build}")).to_be_focused()
    assert (await loop.worker(build))["state"] == "running"
    await page.keyboard.press("Enter")
    await box.get_by_role("button", name="Stop it").click()
    await expect(row(page, build)).to_contain_text("stopping")
    await page.get_by_role("button", name=f"Abandon: {other}").click()
    await box.get_by_label("Why").fill("its machine is gone")
    await box.get_by_role("button", name="Abandon it").click()
    assert (await loop.until(other, "abandoned"))["why"].startswith("its machine is gone")


async def test_a_custody_is_retained_released_and_undone(site, loop):
    await loop.create(a_spec("build", on_settle="ask", accept=Accept.AUTO))
    dispatch = await loop.begin("build")
    page = await at(site, "/custody")
    await expect(row(page, dispatch)).to_contain_text("not settled")
    await expect(row(page, dispatch).get_by_role("button", name="Release")).to_have_count(0)
    await loop.report(dispatch)
    await expect(row(page, dispatch)).to_contain_text("! owed")
    await page.get_by_role("button", name=f"Retain: {dispatch}").click()
    box = page.get_by_role("dialog")
    await box.get_by_label("Why").fill("I look at it")
    await box.get_by_label("One hour").check()
    await box.get_by_role("button", name="Retain it").click()
    await expect(row(page, dispatch)).to_contain_text("I look at it, until")
    await page.get_by_role("button", name=f"Release: {dispatch}").click()
    await expect(box.get_by_role("checkbox")).to_be_checked()
    await box.get_by_role("button", name="Release it").click()
    await expect(row(page, dispatch)).to_contain_text("releasing")
    await loop.released(dispatch)
    await page.get_by_label("All").check()
    await page.get_by_role("button", name=f"Undo: {dispatch}").click()
    await box.get_by_role("button", name="Bring it back").click()
    await expect(row(page, dispatch)).to_contain_text("returning")
    await loop.fact(dispatch, Saw.WORKTREE_RESTORED, "restore-2")


async def test_a_session_that_may_only_look_is_offered_nothing_to_press(site, loop):
    await loop.create(a_spec("build"))
    await loop.of_run(OpenGate(task="build", question="May it begin?"))
    page = await site.page(login=False)
    await page.goto(f"{site.url}/runs/{loop.run}#ticket={await site.console.ticket(scope='read')}", wait_until="domcontentloaded")
    await expect(page.get_by_text("May it begin?")).to_be_visible()
    await expect(page.locator("main .action:visible")).to_have_count(0)


# ---------------------------------------------------------------- mail, wakes, audit


async def test_mail_shows_what_comes_and_a_message_that_is_open_stays_open(site, loop):
    await loop.create(a_spec("build"), a_spec("other"))
    await loop.report(await loop.begin("build"), body="It is built.")
    page = await at(site, "/mail")
    await expect(row(page, loop.run)).to_contain_text("build succeeded")
    await page.get_by_role("link", name=loop.run).click()
    await expect(page.locator(".message")).to_have_count(1)
    await page.locator(".message summary").click()
    await expect(page.get_by_text("It is built.")).to_be_visible()
    await loop.ask(await loop.begin("other"), "left or right?")
    await expect(page.locator(".message")).to_have_count(2)
    await expect(page.get_by_role("heading", name="One question is open")).to_be_visible()
    await expect(page.get_by_text("It is built.")).to_be_visible()
    await expect(page.get_by_text("2 unread of 2. Read by claude.")).to_be_visible()


async def test_wakes_show_their_cause_and_what_they_wait_for(site, loop):
    await loop.create(a_spec("build"))
    page = await at(site, f"/wakes/{loop.run}")
    await expect(page.get_by_text("It has woken nobody.")).to_be_visible()
    await loop.report(await loop.begin("build"))
    await expect(page.locator("tbody tr")).to_contain_text("nothing is known of a pane in which it is read")
    await expect(page.locator("tbody tr")).to_contain_text("report")


async def test_audit_shows_what_is_owed_and_the_command_that_looks_at_the_machine(site, loop):
    await loop.create(a_spec("build", on_settle="ask", accept=Accept.AUTO))
    page = await at(site, "/audit")
    await expect(page.get_by_text("tocsin audit", exact=True)).to_be_visible()
    await expect(page.get_by_text("Nothing is owed")).to_be_visible()
    dispatch = await loop.begin("build")
    await loop.report(dispatch)
    await expect(row(page, dispatch)).to_contain_text("build")
    await expect(row(page, "h")).to_contain_text("! 1")


# ---------------------------------------------------------------- every page


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_no_page_breaks_a_rule_of_accessibility(site, loop, scheme):
    await loop.create(a_spec("build"), a_review("check", "build"), a_spec("ship", "build", accept=Accept.GATE), a_spec("spike"))
    build = await loop.begin("build")
    await loop.ask(build, "left or right?", "left", "right")
    await loop.report(await loop.begin("spike"))
    await loop.of_run(OpenGate(task="ship", question="May it go out?", options=("yes", "no")))
    page = await at(site, "/runs", color_scheme=scheme)
    path = build.replace(".", "/")
    addresses = {
        "/runs": "tr[data-key]", f"/runs/{loop.run}/spike": ".panel .attempts li", "/workers": "tr[data-key]", f"/workers/{path}": ".pairs",
        "/mail": "tr[data-key]", f"/mail/{loop.run}": ".message", "/wakes": "tr[data-key]", f"/wakes/{loop.run}": "tr[data-key]",
        "/custody": "tr[data-key]", f"/custody/{path}": ".history li", "/audit": "tr[data-key]",
    }  # fmt: skip
    found = {}
    for address, sign in addresses.items():
        await page.goto(f"{site.url}{address}", wait_until="domcontentloaded")
        await expect(page.locator(sign).first).to_be_visible()
        if wrong := await violations(page):
            found[address] = wrong
    await page.goto(f"{site.url}/runs/{loop.run}", wait_until="domcontentloaded")
    await page.get_by_role("button", name="Answer").first.click()
    if wrong := await violations(page):
        found["dialog"] = wrong
    assert found == {}


async def test_on_a_narrow_screen_rows_are_cards_and_nothing_is_wider_than_the_screen(site, loop):
    await loop.create(a_spec("build", title="Build it, and " + "x" * 80), a_spec("ship", "build"))
    dispatch = await loop.begin("build")
    page = await at(site, "/runs")
    await page.set_viewport_size(NARROW)
    path = dispatch.replace(".", "/")
    await loop.ask(dispatch, "x" * 200)
    addresses = {
        f"/runs/{loop.run}/build": ".attempts li", "/custody": "tr[data-key]", "/audit": "tr[data-key]", f"/mail/{loop.run}": ".message",
        f"/workers/{path}": ".pairs", "/workers": "tr[data-key]",
    }  # fmt: skip
    for address, sign in addresses.items():
        await page.goto(f"{site.url}{address}", wait_until="domcontentloaded")
        await expect(page.locator(sign).first).to_be_visible()
        assert await page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"], address
    assert await violations(page) == []


async def test_names_that_hold_markup_or_turn_the_writing_direction_are_text(site, loop):
    await loop.create(a_spec("build", title="<img src=x onerror=alert(1)>\u202eevil"), objective="<b>bold</b>")
    page = await at(site, f"/runs/{loop.run}")
    await expect(row(page, "build")).to_contain_text("<img src=x onerror=alert(1)>")
    await expect(page.locator(".objective")).to_contain_text("<b>bold</b>")
    assert await page.locator("main img, main b").count() == 0
    assert "\u202e" not in await page.locator("main").inner_text()
