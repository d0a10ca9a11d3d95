"""What the tests of the loop's verbs share: the command as a process, services of a few lines, a pane's folder with its pane-host."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from support import settled
from tocsin.contract.refusals import Refusal
from tocsin.contract.run import Receipt, Refused
from tocsin.contract.subjects import MAIL_CMD, RUN_CMD

SERVER = {"TMUX": "/tmp/tmux-0/default,4711,0", "TMUX_PANE": "%3"}
PANE = "default.4711.3"

Answer = dict[str, Any] | Refusal


class Command:
    """`tocsin` as a process, on the test's bus, in a folder and pane of the test's choosing."""

    def __init__(self, state: Path, url: str = "nats://127.0.0.1:1", **environment: str) -> None:
        outside = {name: value for name, value in os.environ.items() if not name.startswith(("TOCSIN", "TMUX", "NATS"))}
        self.state = state
        self.environment = {**outside, "NATS_URL": url, "TOCSIN_STATE": str(state), "TOCSIN_HOST": "h", "LOGNAME": "dev", **environment}
        self.cwd = state

    def with_(self, **environment: str) -> "Command":
        other = Command(self.state)
        other.environment = self.environment | environment
        return other

    def start(self, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "tocsin.cli", *words], env=self.environment, cwd=self.cwd, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    async def run(self, *words: str, said: str | None = None) -> tuple[int, str, str]:
        """One verb, while this loop goes on serving it; `said` is its standard input."""
        return await asyncio.to_thread(self.wait, *words, said=said)

    def wait(self, *words: str, said: str | None = None) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, "-m", "tocsin.cli", *words], env=self.environment, cwd=self.cwd, capture_output=True, text=True, timeout=30,
            input=said or "", check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, done.stdout, done.stderr

    async def json(self, *words: str) -> Any:
        code, out, err = await self.run(*words, "--json")
        assert code == 0, err
        return json.loads(out)

    async def refused(self, *words: str) -> dict[str, Any]:
        code, out, err = await self.run(*words, "--json")
        assert (code, out) == (3, ""), (code, out, err)
        return dict(json.loads(err))


@asynccontextmanager
async def serving_commands(bus, subject, answer: Callable[[Any], Answer]) -> AsyncIterator[list[Any]]:
    """A service that answers what the test says to each command; yields the commands that it got."""
    got: list[Any] = []

    async def handle(command: Any) -> Receipt | Refused:
        got.append(command)
        said = answer(command)
        if isinstance(said, Refusal):
            return Refused(request=command.request, code=said.code, message=said.message, retry=said.advice.retry, next=said.advice.next)
        return Receipt(request=command.request, result=said, at_ms=command.at_ms, seq=1)

    async with bus.serve(subject, handle, name="fake"):
        await settled(bus.client)
        yield got


def serving(bus, subject, answer: Callable[[Any], Answer]):
    """The same, for tests to which only what is asked matters."""
    return serving_commands(bus, subject, lambda command: answer(command.ask))


def runs(bus, **answers: Answer):
    """A dispatcher; `answers` by the verb's own word."""
    return serving(bus, RUN_CMD, lambda ask: answers[ask.__struct_config__.tag])


def mails(bus, **answers: Answer):
    """A mailbox; `answers` by the verb's own word."""
    return serving(bus, MAIL_CMD, lambda ask: answers[ask.__struct_config__.tag])


CREATED = {"run": "r1", "generation": 1, "depth": 0, "depth_max": 1, "workers_max": 8}
OWNER = {"role": "coordinator", "name": "dev@h", "host": "h", "pane": PANE}


def a_run_row(**fields: Any) -> dict[str, Any]:
    return {
        "run": "r1", "objective": "build it", "state": "open", "why": "", "generation": 1, "coordinator": OWNER, "depth": 0, "depth_max": 1,
        "parent": None, "workers_max": 8, "tasks": {"ready": 2, "accepted": 1}, "unsettled": 1, "open_gates": 0, "quiet": False,
        "summary": "2 Tasks can be started", "restored": False, "created_ms": 0, "updated_ms": 0,
    } | fields  # fmt: skip


def a_task_row(**fields: Any) -> dict[str, Any]:
    return {
        "task": "api", "title": "the API", "spec": "write it", "kind": "work", "reviews": None, "deps": [], "parent": None,
        "accept": "coordinator", "max_rounds": 3, "on_settle": None, "agent": "codex", "state": "ready", "why": "", "blocked_by": [],
        "round": 0, "findings": None, "attempts": 0, "current": None, "gate": None, "report": None, "updated_ms": 0,
    } | fields  # fmt: skip


def a_worker_row(**fields: Any) -> dict[str, Any]:
    return {
        "dispatch": "r1.api.1", "run": "r1", "task": "api", "title": "the API", "fence": 1, "current": True, "agent": "codex", "host": "h",
        "pane": "tocsin.1.2", "path": "/w/api", "state": "running", "since_ms": 0, "why": "", "code": None, "liveness": "live",
        "liveness_reason": "", "outcome": "in_progress", "activity": "working", "activity_reason": "", "attention": [],
        "requires_action": False, "human_wait": "none", "turn_start": "seen", "heartbeat": "fresh", "heartbeat_ms": 61_000, "phase": "reviewing",
        "custody": "owned", "next": {"kind": "none", "command": []}, "report": None, "late_reports": 0, "requested_ms": 0, "settled_ms": None,
    } | fields  # fmt: skip


def a_shown_worker(**fields: Any) -> dict[str, Any]:
    launch = {"agent": "codex", "host": "h", "placement": {"where": "new-child", "branch": "api"}}
    return {"worker": a_worker_row(**fields), "launch": launch, "brief": "", "late_reports": [], "refused": []}


def a_message(**fields: Any) -> dict[str, Any]:
    return {
        "id": "m1", "type": "report", "sender": "dispatch:r1.api.1", "subject": "done", "body": "done\nall tests pass", "at_ms": 1_000,
        "task": "api",
    } | fields  # fmt: skip


def a_delivery(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "delivery": "run:r1.d1" if messages else None, "repeat": False, "messages": list(messages), "lease_until_ms": 2_000 if messages else None,
        "beyond": {"count": 0, "actionable": []},
    } | fields  # fmt: skip


STARTED = {"dispatch": "r1.api.1", "task": "api", "fence": 1, "host": "h", "state": "requested"}

ASKED = {"question": "r1.api.1.qa7"}
ANSWERED = a_message(id="r1.api.1.qa7.a", type="answer", sender="run:r1", body="81", subject="81", thread="r1.api.1.qa7")
EMPTY_INBOX = {"rows": [], "total": 0, "next": None}


class PaneHost:
    """Answers the request files of one pane's folder, as pane-host does."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.got: list[dict[str, Any]] = []

    def command(self, state: Path) -> Command:
        """`tocsin` as a worker in that pane runs it."""
        return Command(state, TOCSIN_FOLDER=str(self.folder), TOCSIN_PANE="p", TOCSIN_RUN="r1", TOCSIN_DISPATCH="r1.api.1")

    def waiting(self) -> list[Path]:
        return sorted((self.folder / "requests").glob("*.json"))

    def take(self, answer: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        for file in self.waiting():
            request = json.loads(file.read_bytes())
            self.got.append(request | {"mode": file.stat().st_mode & 0o777, "file": file.stem})
            file.unlink()
            beside = self.folder / "answers" / "new"
            beside.parent.mkdir(exist_ok=True)
            beside.write_text(json.dumps({"v": 1} | answer(request)))
            beside.rename(beside.with_name(f"{file.stem}.json"))

    @asynccontextmanager
    async def serving(self, answer: Callable[[dict[str, Any]], dict[str, Any]]) -> AsyncIterator[None]:
        async def serve() -> None:
            while True:
                self.take(answer)
                await asyncio.sleep(0.01)

        task = asyncio.create_task(serve())
        try:
            yield
        finally:
            task.cancel()


def taken(**result: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda request: {"refused": False, "body": {"v": 1, "request": request["body"]["request"], "result": result}}
