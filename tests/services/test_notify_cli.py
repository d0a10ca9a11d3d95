"""`tocsin mark`, `tocsin notify` and what `tocsin doctor` says of notices: the real commands against a console that serves."""

import json
from collections.abc import AsyncIterator

import pytest

from console_builders import Console, a_console, a_row, announce, tocsin
from support import Deadline
from tocsin.runtime import instance
from webhook_receiver import Receiver


async def listing(console: Console) -> Console:
    """The console once it knows a list of three worktrees."""
    announce(console)
    await console.say(a_row("web", 3), a_row("api-one", 3), a_row("api-two", 3))
    async with console.client(**console.bearer()) as client:
        async for _ in Deadline(10, "the list is there"):
            if (await client.get("/api/worktrees")).status_code == 200:
                break
    return console


@pytest.fixture
async def console(tmp_path, bus, store) -> AsyncIterator[Console]:
    async with a_console(tmp_path / "state", bus, store) as running:
        yield await listing(running)


@pytest.fixture
async def telling(tmp_path, bus, store, receiver: Receiver) -> AsyncIterator[Console]:
    """A console that tells a webhook."""
    async with a_console(tmp_path / "state", bus, store, notify_url=receiver.url, quiet_hours=("00:00-23:59", "23:59-00:00")) as running:
        yield await listing(running)


async def ask(console: Console, *words: str, **environment: str) -> tuple[int, str, str]:
    return await tocsin(*words, "--state", str(console.state), **environment)


# ---------------------------------------------------------------- mark


async def test_a_mark_is_set_shown_and_taken_away_in_a_persons_words(console):
    for words, said in [
        (("list",), "nothing is marked\n"),
        (("urgent", "web"), "web: urgent\n"),
        (("snooze", "web"), "web: urgent, snoozed until it needs you anew\n"),
        (("list",), "web-id: urgent, snoozed until it needs you anew\n"),
        (("clear", "web-id"), "web: not marked\n"),
        (("list",), "nothing is marked\n"),
    ]:
        assert await ask(console, "mark", *words) == (0, said, ""), words


async def test_a_snooze_for_a_time_says_until_when(console):
    code, out, _ = await ask(console, "mark", "snooze", "web", "--for", "2h", "--json")
    told = json.loads(out)
    assert (code, told["worktree"], told["name"]) == (0, "web-id", "web")
    async with console.client(**console.bearer()) as client:
        now_ms = (await client.get("/api/notify")).json()["now"]
    assert 0 <= now_ms + 7_200_000 - told["marks"]["web-id"]["snooze"]["until_ms"] < 60_000
    _, out, _ = await ask(console, "mark", "list")
    assert out.startswith("web-id: snoozed until ")


async def test_a_mark_can_be_cleared_when_its_worktree_has_left_the_list(console):
    assert (await ask(console, "mark", "urgent", "web"))[0] == 0
    await console.say(a_row("api-one", 3))
    async for _ in Deadline(10, "the worktree has left the list"):
        if (await ask(console, "mark", "urgent", "web-id"))[0] == 3:
            break
    assert await ask(console, "mark", "clear", "web-id") == (0, "web-id: not marked\n", "")
    assert await ask(console, "mark", "list") == (0, "nothing is marked\n", "")


REFUSED = [
    ("a worktree that is not there", ("urgent", "nobody"), 3, "no worktree is called nobody"),
    ("clearing what is not there", ("clear", "nobody"), 3, "no worktree is called nobody"),
    ("a name that two begin with", ("snooze", "api"), 3, "api may be any of 2: api-one-id, api-two-id"),
    ("a name that a terminal must not show", ("urgent", "\x1b[2J"), 3, "no worktree is called \ufffd[2J"),
    ("no time at all", ("snooze", "web", "--for", "0"), 2, "more than nothing"),
    ("not a time", ("snooze", "web", "--for", "soon"), 2, "write a time such as"),
    ("more than a day", ("snooze", "web", "--for", "25h"), 2, "at most a day"),
    ("no worktree", ("urgent",), 2, "NAME"),
    ("no action", (), 2, "ACTION"),
]


@pytest.mark.parametrize(("words", "code", "says"), [one[1:] for one in REFUSED], ids=[one[0] for one in REFUSED])
async def test_what_cannot_be_marked_is_refused_with_a_reason_and_marks_nothing(console, words, code, says):
    got, out, err = await tocsin("mark", *words, *(["--state", str(console.state)] if words else []))
    assert (got, out) == (code, "")
    assert says in err
    assert "Traceback" not in err
    assert await ask(console, "mark", "list") == (0, "nothing is marked\n", "")


# -------------------------------------------------------------- notify


async def test_notify_tells_how_a_person_is_told(console):
    assert await ask(console, "notify") == (0, "webhook: none (TOCSIN_NOTIFY_URL)\nquiet hours: none\n", "")
    code, out, _ = await ask(console, "notify", "--test")
    assert (code, out.splitlines()[-1]) == (0, "no webhook: TOCSIN_NOTIFY_URL is not set")


async def test_notify_tells_what_became_of_a_test_and_fails_when_the_webhook_did(telling, receiver):
    hours = "quiet hours: 00:00-23:59, 23:59-00:00, which it is now"
    assert await ask(telling, "notify") == (0, f"webhook: 127.0.0.1, nothing told yet\n{hours}\n", "")
    code, out, _ = await ask(telling, "notify", "--test")
    assert (code, out.splitlines()[-1]) == (0, "webhook: 127.0.0.1 has taken it")
    assert receiver.bodies == ["This is a test: nobody needs you."], "quiet hours hold no test back"
    assert (await ask(telling, "notify"))[1].startswith("webhook: 127.0.0.1, last told at ")
    receiver.statuses = [403]
    code, out, _ = await ask(telling, "notify", "--test", "--json")
    assert (code, json.loads(out)) == (1, {"webhook": "127.0.0.1", "failed": "127.0.0.1 answers 403"})
    code, out, _ = await ask(telling, "notify")
    assert code == 1
    assert "the last one failed at " in out
    assert out.splitlines()[0].endswith(": 127.0.0.1 answers 403")


# ---------------------------------------------------- nobody to be asked

VERBS = [("mark", "list"), ("mark", "urgent", "web"), ("notify",), ("notify", "--test")]


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
async def test_without_a_console_or_its_credential_a_verb_says_what_is_missing_and_what_to_do(console, verb, receiver):
    (console.state / instance.COMMAND_CREDENTIAL).rename(console.state / "kept")
    code, out, err = await ask(console, *verb)
    assert (code, out) == (3, "")
    assert "credential" in err
    assert "next:" in err
    (console.state / "kept").rename(console.state / instance.COMMAND_CREDENTIAL)
    for url, says in [(None, "no console runs"), ("http://127.0.0.1:9", "does not answer")]:
        announce(console, url)
        code, out, err = await ask(console, *verb, "--json")
        assert (code, out) == (4, "")
        assert says in json.loads(err)["message"]
    code, out, err = await tocsin(*verb, "--state", str(console.state / "nothing"))
    assert (code, out) == (4, "")
    assert "no Tocsin runs on" in err


@pytest.mark.parametrize("said", ["[]", '{"detail": "Not Found"}', '{"code": "teapot", "message": "m"}', "<html>"])
async def test_another_program_on_the_consoles_port_is_not_taken_for_it(console, receiver, said):
    receiver.statuses, receiver.answers = [404], said
    announce(console, receiver.url)
    code, out, err = await ask(console, "notify", "--test")
    assert (code, out) == (4, "")
    assert "does not answer" in err


# -------------------------------------------------------------- doctor


async def found(console: Console) -> list[tuple[str, str]]:
    """Level and words of what doctor finds of notices."""
    _, out, err = await ask(console, "doctor", "--json", HOME=str(console.state.parent))
    assert err == ""
    return [(one["level"], one["says"]) for one in json.loads(out)["findings"] if one["check"] == "notify"]


async def test_doctor_names_that_nobody_is_told(console):
    assert await found(console) == [("note", "nobody is told of what needs them but by a page that is open")]


async def test_doctor_does_not_say_that_nobody_is_told_where_it_cannot_ask(console):
    announce(console, "http://127.0.0.1:9")
    assert await found(console) == [("note", "how you are told is not known: the console does not answer")]
    announce(console, None)
    assert await found(console) == [("note", "this machine shows no notices; what tells you elsewhere is not known here")]


async def test_doctor_names_a_webhook_that_failed_until_one_is_taken(telling, receiver):
    assert ("ok", "webhook") in await found(telling)
    receiver.statuses = [500]
    assert (await ask(telling, "notify", "--test"))[0] == 1
    assert ("wrong", "the last notice to the webhook failed: 127.0.0.1 answers 500") in await found(telling)
    assert (await ask(telling, "notify", "--test"))[0] == 0
    assert ("ok", "webhook") in await found(telling)
