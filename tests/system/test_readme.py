"""What the README shows works as it stands there."""

import ast
import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from support import Deadline
from tocsin.cli.main import VERBS, parser_for
from tocsin.runtime import instance

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
EXAMPLES = ROOT / "examples"
NODE_CLIENT = "@nats-io/transport-node@3.4.0"


@pytest.fixture
def home(tmp_path):
    """A home in which `tocsin up` runs on its default folder."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in {"NATS_URL", "REDIS_URL", "TMUX"} and not name.startswith("TOCSIN_")
    } | {"HOME": str(tmp_path), "TMUX_TMPDIR": str(tmp_path)}
    state = tmp_path / ".local" / "state" / "tocsin"
    with (tmp_path / "up.log").open("w") as log:
        up = subprocess.Popen([sys.executable, "-m", "tocsin.cli", "up"], env=environment, stdout=log, stderr=log)
    for _ in Deadline(60, "up is ready"):
        reached = instance.endpoint(state)
        if reached is not None and reached.ready:
            break
    yield tmp_path, environment, state, reached
    up.send_signal(signal.SIGTERM)
    up.wait(30)


def in_python(folder: Path) -> list[str]:
    """The README's own text."""
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL)[1]
    assert len(code.strip().splitlines()) <= 14
    return [sys.executable, "-u", "-c", code]


def in_node(folder: Path) -> list[str]:
    """The example with the package that its head tells to install."""
    example = folder / "node" / "subscriber.mjs"
    example.parent.mkdir()
    shutil.copy(EXAMPLES / example.name, example)
    subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", NODE_CLIENT], cwd=example.parent, check=True, capture_output=True
    )
    return ["node", str(example)]


@pytest.mark.parametrize("example", [in_python, in_node])
def test_the_subscriber_gets_the_last_list_on_connect_and_every_change_after_it(home, example):
    folder, environment, state, reached = home
    command = example(folder)

    def report(event: str, session: str) -> None:
        cwd = folder / session
        cwd.mkdir(exist_ok=True)
        answer = httpx.post(
            f"{reached.ingest_url}/hook/claude",
            json={"hook_event_name": event, "session_id": session, "cwd": str(cwd)},
            headers={"Authorization": f"Bearer {instance.credential(state, instance.HOOK_CREDENTIAL)}", "X-Tocsin-Cwd": str(cwd)},
            trust_env=False,
        )
        assert answer.status_code == 204

    def names() -> list[str]:
        listed = subprocess.run(
            [sys.executable, "-m", "tocsin.cli", "ls", "--json"], env=environment, capture_output=True, text=True, check=False
        )
        return [row["name"] for row in json.loads(listed.stdout)["worktrees"]] if listed.returncode == 0 else []

    report("UserPromptSubmit", "first")
    for _ in Deadline(20, "the first is listed"):
        if names() == ["first"]:
            break
    subscriber = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert ast.literal_eval(subscriber.stdout.readline()) == ["first"], "the list as it stands"
        report("Stop", "second")
        assert ast.literal_eval(subscriber.stdout.readline()) == ["second", "first"], "and the change"
    finally:
        subscriber.kill()
        subscriber.wait()


STANDS_FOR = {"DISPATCH": "r1.t1.1", "...": "t1"}
SHOWN = re.compile(r"`(tocsin [^`|\[]+)`|^(?:  )?(tocsin [^#|\[\n]*)", re.MULTILINE)


@pytest.mark.parametrize("page", ["README.md", "libs/tocsin/agents/skill.md", "docs/status-lines.md"])
def test_every_command_that_is_shown_is_understood(page, capsys):
    shown = [shlex.split((inline or line).rstrip("& "), posix=True) for inline, line in SHOWN.findall((ROOT / page).read_text())]
    assert shown
    for program, *words in shown:
        assert program == "tocsin"
        given = [STANDS_FOR.get(word, word) for word in words]
        with contextlib.suppress(SystemExit):
            parser_for(given).parse_args(given)
        problem = capsys.readouterr().err
        # It may be named without what it needs; what it is given is understood.
        assert problem == "" or "arguments are required" in problem, f"tocsin {' '.join(words)}: {problem}"


def test_every_verb_is_in_the_readme():
    told = set(re.findall(r"tocsin ([a-z-]+)", README)) | set(re.findall(r"`(uninstall|status|down|replay)`", README))
    assert set(VERBS) - {"serve", "credentials"} <= told


def test_every_decision_says_what_it_rules_out():
    decisions = re.search(r"### Decisions\n(.*?)\n### ", README, re.DOTALL)[1]
    entries = re.split(r"\n(?=\d+\. )", decisions)[1:]
    assert len(entries) >= 10
    assert all("*Rules out:*" in entry for entry in entries)
