"""Several machines, one list: one that is cut off, one whose clock is off, one that has another's name."""

import asyncio
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import Deadline
from system.hosts.machines import Machine
from system.hosts.relay import Relay
from tocsin.bus.nats_bus import connect
from tocsin.contract.messages import HookReported
from tocsin.contract.subjects import HOOK_REPORTED
from tocsin.runtime import instance

LOST_S_MAX = 60
"""A host counts as out of contact after 35 s without a word; the rest is for a busy machine."""

AHEAD_S = 600


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Machine]:
    with Machine(tmp_path, "hub") as machine:
        yield machine.start("up")


@pytest.fixture
def wire(hub: Machine) -> Iterator[Relay]:
    reached = instance.endpoint(hub.state)
    assert reached is not None
    with Relay(reached.nats_url) as relay:
        yield relay


def invited(hub: Machine, *words: str) -> str:
    """What the hub tells a machine that is to join."""
    done = hub.tocsin("invite", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def reported(hub: Machine, host: str) -> list[HookReported]:
    """What the log of the hub holds of the hooks of one machine, in its order."""

    async def read() -> list[HookReported]:
        reached = instance.endpoint(hub.state)
        assert reached is not None
        found: list[HookReported] = []
        async with connect(reached.nats_url, name="test", state=hub.state, makes_streams=False) as bus:
            end = await bus.end_of(HOOK_REPORTED, host)
            async with bus.read(HOOK_REPORTED, host, after=0) as reading:
                async for batch in reading:
                    found += [heard.body for heard in batch]
                    if batch[-1].seq >= end:
                        return found
        raise AssertionError

    return asyncio.run(read())


def order(machine: Machine) -> list[tuple[str, str]]:
    return [(row["host"], row["name"]) for row in machine.rows()]


def test_a_host_that_is_cut_off_keeps_its_rows_as_last_known_and_comes_back_by_itself_with_what_it_has_spooled(
    hub: Machine, wire: Relay, tmp_path: Path
):
    with Machine(tmp_path, "far") as far:
        far.start("join", "-", given=invited(hub, "--bus", wire.url))
        far.hook("UserPromptSubmit", "f", prompt="go", prompt_id="p1")
        hub.ask("h")
        before = hub.wait_for(
            "both stand in the list, alike on both machines",
            lambda rows: rows["far", "f"]["class"] == 3 and rows["hub", "h"]["class"] == 1 and order(far) == order(hub),
        )
        assert [row["evidence"] for row in before] == ["observed", "observed"]

        wire.cut()
        far.hook("PreToolUse", "f", tool_name="Bash", tool_input={"command": "make"}, tool_use_id="t1", prompt_id="p1")
        far.hook("PostToolUse", "f", tool_name="Bash", tool_input={"command": "make"}, tool_use_id="t1", prompt_id="p1")
        far.hook("Stop", "f")
        assert far.spooled() == 3
        cut_off = hub.wait_for("the far one is marked", lambda rows: rows["far", "f"]["evidence"] == "unverifiable", LOST_S_MAX)
        assert [(row["host"], row["class"], row["attention_at"]) for row in cut_off] == [
            (row["host"], row["class"], row["attention_at"]) for row in before
        ]
        near, remote = cut_off
        assert (near["evidence"], near["reason"]) == ("observed", before[0]["reason"])
        assert remote["reason"] == before[1]["reason"] + "; no contact with far"
        assert [(pane["state"], pane["evidence"]) for pane in remote["panes"]] == [("working", "unverifiable")]
        (finding,) = hub.findings("hosts")
        assert "no contact with far" in finding["says"]

        wire.heal()
        hub.wait_for(
            "the far one is heard again, and what it has done",
            lambda rows: (rows["far", "f"]["evidence"], rows["far", "f"]["class"]) == ("observed", 2),
        )
        for _ in Deadline(20, "the spool is empty"):
            if not far.spooled():
                break
        events = reported(hub, "far")
        assert [event.event for event in events] == ["UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"]
        assert hub.findings("hosts") == []


def test_a_clock_ten_minutes_ahead_moves_no_row_no_age_and_no_spooled_event_and_doctor_names_it(hub: Machine, wire: Relay, tmp_path: Path):
    with Machine(tmp_path, "far", ahead_s=AHEAD_S) as far:
        far.start("join", "-", given=invited(hub, "--bus", wire.url))
        far.ask("first")
        hub.wait_for("it is in the list", lambda rows: rows["far", "first"]["class"] == 1)
        hub.ask("second")
        hub.wait_for("the later one stands above", lambda rows: rows["hub", "second"]["rank"] == 1 and rows["far", "first"]["rank"] == 2)
        far.ask("third")
        now_ms = time.time() * 1000
        rows = hub.wait_for("and the latest above both", lambda rows: rows["far", "third"]["rank"] == 1)
        assert [row["name"] for row in rows] == ["third", "second", "first"]
        assert all(now_ms - 60_000 < row["attention_at"] < now_ms + 5_000 for row in rows)
        assert all(row["active_at"] < now_ms + 5_000 for row in rows)
        shown = far.tocsin("ls").stdout
        assert "third (far)" in shown
        assert all(f" {minutes}m " not in shown for minutes in range(5, 15)), shown

        # What waits in the spool is as old as the sender's clock says, whatever that shows.
        far.process.send_signal(signal.SIGSTOP)
        far.signal("hook-ingest", signal.SIGKILL)
        far.ask("spooled")
        spooled_ms = time.time() * 1000
        assert far.spooled() == 2
        hub.ask("after")
        hub.wait_for("a later one is there first", lambda rows: rows["hub", "after"]["class"] == 1)
        far.process.send_signal(signal.SIGCONT)
        rows = hub.wait_for("all of the spooled one is there", lambda rows: rows["far", "spooled"]["class"] == 1)
        assert [row["name"] for row in rows] == ["after", "spooled", "third", "second", "first"]
        assert rows[1]["attention_at"] <= spooled_ms + 500, "but for the error with which a clock is measured"

        for machine in (hub, far):
            (finding,) = machine.findings("hosts")
            assert "the clock of far is 600 s ahead" in finding["says"]


def test_a_second_machine_under_the_same_name_is_refused_with_the_name_of_the_first(hub: Machine, wire: Relay, tmp_path: Path):
    (tmp_path / "twin").mkdir()
    with Machine(tmp_path, "far") as far, Machine(tmp_path / "twin", "far") as twin:
        invitation = invited(hub, "--bus", wire.url)
        far.start("join", "-", given=invitation)
        far.ask("f")
        hub.wait_for("it is in the list", lambda rows: rows["far", "f"]["class"] == 1)

        refused = twin.tocsin("join", "-", given=invitation)
        assert refused.returncode == 3
        assert f"the host name far is another machine's: {far_label(far)}" in refused.stderr
        assert "TOCSIN_HOST=NAME" in refused.stderr
        assert not (twin.state / "pane-host.sight.json").exists()

        # Also the eyes alone, started by hand, do not look under another's name.
        alone = twin.tocsin("pane-host", "--nats", wire.url, TOCSIN_MAKES_STREAMS="false")
        assert alone.returncode == 1
        assert "the host name far is another machine's" in alone.stderr
        assert hub.findings("hosts") == []
        assert [(row["host"], row["evidence"]) for row in hub.rows()] == [("far", "observed")]

        # Under a name of its own it is welcome, and the name is kept.
        twin.environment.pop("TOCSIN_HOST")
        twin.start("join", "--host", "other")
        twin.ask("t")
        hub.wait_for("both are there", lambda rows: rows["far", "f"]["class"] == rows["other", "t"]["class"] == 1)
        twin.end()
        twin.start("join")
        assert instance.endpoint(twin.state).host == "other"


def far_label(machine: Machine) -> str:
    """How a machine is told to people: by its system's name and its folder."""
    import socket

    return f"{socket.gethostname()} ({machine.state})"


def test_a_machine_that_has_joined_may_not_do_what_services_do(hub: Machine, wire: Relay, tmp_path: Path):
    with Machine(tmp_path, "far") as far:
        far.start("join", "-", given=invited(hub, "--bus", wire.url))
        assert instance.credential(far.state, instance.NATS_CREDENTIAL) == instance.credential(hub.state, instance.NATS_HOST_CREDENTIAL)
        for secret in (instance.HOOK_CREDENTIAL, instance.COMMAND_CREDENTIAL):
            assert instance.credential(far.state, secret) != instance.credential(hub.state, secret)
        assert far.tocsin("up").returncode == 3
        assert far.tocsin("invite").returncode == 3


def test_what_cannot_be_joined_is_said_with_the_next_step(tmp_path: Path):
    with Machine(tmp_path, "far") as far:
        nothing = far.tocsin("join")
        assert (nothing.returncode, "tocsin invite" in nothing.stderr) == (2, True)
        nonsense = far.tocsin("join", "-", given="{}")
        assert (nonsense.returncode, "tocsin invite > FILE" in nonsense.stderr) == (2, True)
        absent = far.tocsin("join", "-", given='{"version":"0","bus":"nats://127.0.0.1:9","workspace":"default","hash_key":"k"}')
        assert absent.returncode == 4
        assert "nats://127.0.0.1:9 cannot be reached (connection refused)" in absent.stderr
        assert "Traceback" not in nothing.stderr + nonsense.stderr + absent.stderr
