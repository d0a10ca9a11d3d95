"""A Run and who takes part in it: workers that do what their Task says, and a coordinator in a pane of its own."""

import json
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from system.loop.installation import AGENT, SCREEN, Installation, Refused
from tocsin.contract.run import TASK_ENDS
from tocsin.contract.subjects import CUSTODY_EVENT, HOST_FACT, MAIL_EVENT, RUN_EVENT

CLAUDE = AGENT.with_name("scripted_claude.py")

NOT_SEEN = 1
"""The exit code of a start that is not seen at work yet."""

POINTED = frozenset({"continued", "rewoken"})
"""Turns of a scripted coordinator that somebody else has caused, other than by keys."""


class Run:
    """A Run, and the verbs on it as its coordinator gives them from a shell."""

    def __init__(self, here: Installation, run: str) -> None:
        self.here = here
        self.id = run

    @classmethod
    def create(cls, here: Installation, objective: str = "a story") -> "Run":
        """A Run whose coordinator is this shell."""
        return cls(here, here.ask("run", "create", objective)["run"])

    # ----------------------------------------------------------- changes

    def add(self, *tasks: dict[str, Any]) -> None:
        """Add a graph of Tasks."""
        file = self.here.folder / f"{self.id}-{len(list(self.here.folder.glob('*.json')))}.json"
        file.write_text(json.dumps([{"title": task["id"], "spec": task["id"], **task} for task in tasks]))
        self.here.ask("task", "add", "--file", str(file), "--run", self.id)

    def start(self, task: str, *place: str, agent: Sequence[str] = (), request: str | None = None) -> dict[str, Any]:
        """Start the scripted agent on a Task; waits until it is at work, or has come to something else. `agent`: its options."""
        return self.here.insist(
            "worker", "start", task, "--run", self.id, *(place or self.some_folder(task)), "--agent", "generic",
            *(["--request", request] if request else []), *self.command(*agent), codes=(0, NOT_SEEN),
        )  # fmt: skip

    def command(self, *options: str) -> list[str]:
        """The program of a scripted worker."""
        return ["--command", shlex.join([sys.executable, str(AGENT), "--control", str(self.here.control), *options])]

    def some_folder(self, task: str) -> list[str]:
        """A plain folder of its own, for work that needs no git."""
        folder = self.here.folder / "plain" / f"{self.id}-{task}"
        folder.mkdir(parents=True, exist_ok=True)
        return ["--where", "existing", "--path", str(folder)]

    def accept(self, task: str, verdict: str = "accept", reason: str = "") -> None:
        """The coordinator's verdict."""
        self.here.ask("task", "accept", task, verdict, "--run", self.id, *(["--reason", reason] if reason else []))

    # ------------------------------------------------------------- looks

    def tasks(self) -> dict[str, dict[str, Any]]:
        """Every Task's row."""
        return {row["task"]: row for row in self.here.ask("task", "list", "--run", self.id, "--limit", "100")["rows"]}

    def answers(self) -> bool:
        """Whether somebody tells of the Run now."""
        return self.here.run("run", "show", self.id).returncode == 0

    def states(self) -> dict[str, str]:
        """Where every Task stands."""
        return {task: row["state"] for task, row in self.tasks().items()}

    def ended(self) -> bool:
        """Whether every Task has ended."""
        return all(state in TASK_ENDS for state in self.states().values())

    def workers(self) -> dict[str, dict[str, Any]]:
        """Every attempt's row."""
        return {row["dispatch"]: row for row in self.here.ask("worker", "list", "--all", "--run", self.id, "--limit", "100")["rows"]}

    def worker(self, dispatch: str) -> dict[str, Any]:
        """One attempt's row."""
        return self.here.ask("worker", "show", dispatch)["worker"]

    def custody(self) -> dict[str, dict[str, Any]]:
        """Every custody's row."""
        return {row["custody"]: row for row in self.here.ask("custody", "list", "--all", "--run", self.id, "--limit", "100")["rows"]}

    def wakes(self) -> list[dict[str, Any]]:
        """The account of the Run's wakes."""
        return self.here.ask("wakes", "--run", self.id)["rows"]

    def check(self, *words: str) -> dict[str, Any]:
        """The next Delivery."""
        return self.here.ask("mail", "check", "--run", self.id, *words, codes=(0, 1))

    def ack(self, delivery: str) -> None:
        """It is dealt with."""
        self.here.ask("mail", "ack", delivery)

    def mail_of(self, type_: str) -> list[dict[str, Any]]:
        """All messages of a type that ever came to the Run, read or not."""
        try:
            rows = self.here.insist("mail", "inbox", "--mailbox", f"run:{self.id}", "--limit", "100")["rows"]
        except Refused as refused:
            # It is made when the record of its Run is heard.
            if refused.code != "not_found":
                raise
            return []
        return [row["message"] for row in rows if row["message"]["type"] == type_]

    def until(self, what: str, holds: Callable[[], Any], seconds: float = 60) -> Any:
        """Wait for a condition; returns what it came to."""
        return self.here.until(what, holds, seconds)

    # ---------------------------------------------------------- the truth

    def events(self) -> list[Any]:
        """Everything that was recorded of the Run, oldest first."""
        return [event for recorded in self.here.record(RUN_EVENT, self.id) for event in recorded.events]

    def mail_events(self, mailbox: str | None = None) -> list[Any]:
        """Everything that was recorded of a mailbox, of the Run's own by default."""
        return [event for recorded in self.here.record(MAIL_EVENT, mailbox or f"run:{self.id}") for event in recorded.events]

    def custody_events(self, dispatch: str) -> list[Any]:
        """Everything that was recorded of a custody."""
        return [event for recorded in self.here.record(CUSTODY_EVENT, dispatch) for event in recorded.events]

    def facts(self, dispatch: str) -> list[Any]:
        """What the hands have said of an attempt."""
        return [fact for fact in self.here.record(HOST_FACT) if fact.dispatch == dispatch]


class Coordinator:
    """A scripted Claude Code in a pane of this user's own tmux, and the person in front of it."""

    def __init__(self, here: Installation, name: str = "boss") -> None:
        self.here = here
        self.name = name
        self.pid = str(len(list(here.control.iterdir())))
        program = f"exec -a claude {sys.executable} {CLAUDE} --control {here.control} --name {name}"
        rows, columns = map(str, SCREEN)
        size = ("-x", columns, "-y", rows)
        here.tmux("-u", "new-session", "-d", *size, "-s", name, "-c", str(here.home), f"exec bash -c {json.dumps(program)}")
        self.until("it has booted", lambda: self.did("booting"))
        self.person = here.sit_down(name)

    def did(self, *steps: str) -> list[dict[str, Any]]:
        """What it wrote down of these steps, oldest first; without any, all."""
        return [step for step in self.here.did(self.name) if not steps or step["step"] in steps]

    def until(self, what: str, holds: Callable[[], Any], seconds: float = 60) -> Any:
        """Wait for a condition; returns what it came to."""
        return self.here.until(what, holds, seconds)

    def is_at_rest(self) -> bool:
        """Whether every turn that has begun has ended."""
        return len(self.did("typed", "rewoken")) == len(self.did("turn ended"))

    def prompt(self, text: str) -> None:
        """The person types a prompt and sends it; waits for the end of its turn."""
        self.until("it is at rest", self.is_at_rest)
        before = len(self.did("typed"))
        self.person.types(text + "\r")
        self.until("the turn has ended", lambda: len(self.did("typed")) > before and self.is_at_rest())

    def runs(self, *words: str) -> dict[str, Any]:
        """Have it run a verb in its pane; returns what the verb said."""
        before = len(self.did("run"))
        self.prompt("do: run " + " ".join(["tocsin", *words, "--json"]))
        step = self.did("run")[before]
        assert step["code"] == 0, step
        return json.loads(step["out"])

    def create(self) -> Run:
        """A Run of which it is the coordinator."""
        return Run(self.here, self.runs("run", "create", "a-story")["run"])

    def woken(self) -> list[dict[str, Any]]:
        """The turns that somebody else has caused: by its idle hook, by a background hook, or by keys that no person pressed."""
        return [
            step
            for step in self.did()
            if step["step"] in POINTED or (step["step"] == "typed" and not step["text"].startswith(("do:", "I ")))
        ]

    def read(self) -> list[dict[str, Any]]:
        """Every message that it was handed, in order."""
        return [message for step in self.did("mail") if step["code"] == 0 for message in json.loads(step["out"])["messages"]]


def worktrees(here: Installation, repository: Path) -> set[str]:
    """The linked worktrees that git knows of a repository."""
    lines = here.git(repository, "worktree", "list", "--porcelain").splitlines()
    return {line.partition(" ")[2] for line in lines if line.startswith("worktree ")} - {str(repository)}
