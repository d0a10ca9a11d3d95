"""Two machines as two network namespaces, the second by a leaf over TLS and with a clock ten minutes ahead: cut, healed.

`make test-hosts` runs it. Making namespaces needs root on Linux; without that it fails and says so, it does not pass.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from system.hosts.machines import HOOK, Machine

HUB, FAR = "10.87.0.1", "10.87.0.2"
LEAF_PORT = 7422
AHEAD_S = 600
LOST_S_MAX = 60

AGENT = """\
printf '{{"event":"prompted","session":"w1","cwd":"%s"}}' "$PWD" | sh {hook} generic
touch {mark}; exec sleep 600
"""


def do(*words: str) -> None:
    """One step of the set-up, which has to succeed."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"


class Network:
    """Two namespaces with a wire between them."""

    def __init__(self) -> None:
        mark = f"t{os.getpid() % 100_000}"
        self.hub, self.far = f"{mark}a", f"{mark}b"
        for name in (self.hub, self.far):
            do("ip", "netns", "add", name)
            do("ip", "-n", name, "link", "set", "lo", "up")
        do("ip", "link", "add", self.hub, "netns", self.hub, "type", "veth", "peer", "name", self.far, "netns", self.far)
        for name, address in ((self.hub, HUB), (self.far, FAR)):
            do("ip", "-n", name, "address", "add", f"{address}/24", "dev", name)
            do("ip", "-n", name, "link", "set", name, "up")

    def cut(self) -> None:
        """All that is sent is dropped, and nobody is told."""
        do("ip", "-n", self.hub, "link", "set", self.hub, "down")

    def heal(self) -> None:
        do("ip", "-n", self.hub, "link", "set", self.hub, "up")

    def end(self) -> None:
        for name in (self.hub, self.far):
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


@pytest.fixture
def network() -> Iterator[Network]:
    if sys.platform != "linux" or os.geteuid() != 0 or not shutil.which("ip"):
        pytest.fail("two machines are two network namespaces here: run it as root on Linux, with iproute2", pytrace=False)
    made = Network()
    yield made
    made.end()


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    do(
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1", "-subj", "/CN=hub",
        "-addext", f"subjectAltName=IP:{HUB}", "-keyout", str(key), "-out", str(cert),
    )  # fmt: skip
    return cert, key


def told(what: str, began: float) -> None:
    print(f"{time.monotonic() - began:6.1f} s  {what}", flush=True)


def within(name: str) -> tuple[str, ...]:
    return "ip", "netns", "exec", name


def test_a_machine_behind_a_leaf_is_cut_off_and_comes_back_by_itself(network: Network, certificate: tuple[Path, Path], tmp_path: Path):
    cert, key = certificate
    listener = {"TOCSIN_LEAF_LISTEN": f"{HUB}:{LEAF_PORT}", "TOCSIN_LEAF_CERT": str(cert), "TOCSIN_LEAF_KEY": str(key)}
    with (
        Machine(tmp_path, "hub", within=within(network.hub)) as hub,
        Machine(tmp_path, "far", within=within(network.far), ahead_s=AHEAD_S) as far,
    ):
        began = time.monotonic()
        hub.start("up", **listener)
        told("the instance is up", began)
        invitation = hub.tocsin("invite", "--leaf", f"tls://{HUB}:{LEAF_PORT}", "--authority", str(cert)).stdout
        far.start("join", "-", given=invitation)
        told("the second machine has joined", began)

        hub.ask("h")
        far.hook("UserPromptSubmit", "f", prompt="go", prompt_id="p1")
        place = far.folder_of("task")
        script, mark = tmp_path / "agent.sh", tmp_path / "at-work"
        script.write_text(AGENT.format(hook=HOOK, mark=mark))
        run = json.loads(hub.tocsin("run", "create", "a story", "--json").stdout)["run"]
        task = tmp_path / "task.json"
        task.write_text(json.dumps([{"id": "t1", "title": "t1", "spec": "t1"}]))
        assert hub.tocsin("task", "add", "--file", str(task), "--run", run).returncode == 0
        start = ("worker", "start", "t1", "--run", run, "--where", "existing", "--agent", "generic", "--json")
        started = hub.tocsin(*start, "--path", str(place), "--host", "far", "--command", f"sh {script}")
        assert started.returncode == 0, started.stdout + started.stderr
        dispatch = json.loads(started.stdout)["dispatch"]
        told("a worker of a Task is at work there", began)
        before = hub.wait_for(
            "all stand in the list",
            lambda rows: (rows["hub", "h"]["class"], rows["far", "f"]["class"], rows["far", "task"]["class"]) == (1, 3, 3),
        )
        order = [row["id"] for row in before]

        network.cut()
        cut_at = time.monotonic()
        told("its traffic is dropped", began)
        far.hook("PreToolUse", "f", tool_name="Bash", tool_input={"command": "make"}, tool_use_id="t1", prompt_id="p1")
        far.ask("f")
        assert far.spooled() == 3
        rows = hub.wait_for("it is marked", lambda rows: rows["far", "f"]["evidence"] == "unverifiable", LOST_S_MAX)
        told(f"its rows are marked unverifiable, {time.monotonic() - cut_at:.1f} s after the cut", began)
        assert [row["id"] for row in rows] == order
        assert {row["host"] for row in rows if row["evidence"] == "unverifiable"} == {"far"}
        assert [row["class"] for row in rows] == [row["class"] for row in before]

        deadline = time.monotonic() + 180
        while json.loads(hub.tocsin("worker", "show", dispatch, "--json").stdout)["worker"]["state"] != "contact_lost":
            assert time.monotonic() < deadline, "its worker is out of contact"
        told(f"its worker counts as out of contact, {time.monotonic() - cut_at:.1f} s after the cut", began)
        second = hub.tocsin(*start, "--path", str(hub.folder_of("second")), "--command", f"sh {script}")
        assert second.returncode == 3
        told(f"a second editor is refused: {json.loads(second.stderr)['code']}", began)
        assert [finding["says"] for finding in hub.findings("hosts") if "no contact with far" in finding["says"]]

        network.heal()
        healed_at = time.monotonic()
        told("its traffic passes again", began)
        hub.wait_for("it is heard, with what it has spooled", lambda rows: rows["far", "f"]["class"] == 1, 60)
        hub.wait_for("nothing is marked", lambda rows: all(row["evidence"] == "observed" for row in rows.values()), 60)
        told(f"all of it is known again, {time.monotonic() - healed_at:.1f} s after that", began)
        rows = hub.rows()
        asked = next(row for row in rows if row["name"] == "f")
        age_s = time.time() - asked["attention_at"] / 1000
        told(f"the prompt that it has spooled is {age_s:.0f} s old in the list", began)
        assert cut_at - 5 < time.monotonic() - age_s < healed_at
        assert [row["name"] for row in rows] == ["f", "h", "task"]
        deadline = time.monotonic() + 30
        while json.loads(hub.tocsin("worker", "show", dispatch, "--json").stdout)["worker"]["state"] != "running":
            assert time.monotonic() < deadline, "its worker is found as it was"
        told("its worker is found as it was", began)

        (finding,) = hub.findings("hosts")
        assert "the clock of far is 600 s ahead" in finding["says"]
        told(f"doctor: {finding['says']}", began)
        hub.tocsin("worker", "stop", dispatch)
