"""A coordinator that behaves towards its surroundings as Claude Code does: hooks as installed in its settings, idle hook answers, rewakes.

    bash -c 'exec -a claude python scripted_claude.py --control DIR --name NAME'

Its hooks are the ones in `~/.claude/settings.json`, run as Claude Code runs them: in turn, with the payload on standard input;
those marked `async` beside it, and with `asyncRewake` an exit code 2 wakes the idle session. A `Stop` that is answered with
`block`, or exit code 2, goes on with that text. A line typed into its composer is a prompt: its `do:` lines are carried out
(see scripted_agent). A turn without such lines is one that somebody else has caused: it reads its mail, as the pointer asks.
Every turn is written down with what caused it: `typed`, `continued` or `rewoken`.
"""

import argparse
import itertools
import json
import os
import re
import select
import subprocess
import sys
import tty
from pathlib import Path
from typing import Any

from scripted_agent import STEP, Agent

SETTINGS = Path.home() / ".claude" / "settings.json"
STOPS_MAX = 8
"""How often in a row an answered Stop goes on; then the turn ends all the same."""

POLL_S = 0.05
REWAKE = "<task-notification><summary>Hook feedback</summary></task-notification><system-reminder>{}</system-reminder>"


class Claude(Agent):
    """One session."""

    def __init__(self, control: Path, name: str) -> None:
        super().__init__(control, name, hooks=True)
        self.numbers = itertools.count(1)
        self.background: list[subprocess.Popen[str]] = []

    def fire(self, event: str, **fields: Any) -> str | None:
        """Run the hooks of an event; returns the text with which one of them wants to go on."""
        if not SETTINGS.exists():
            return None
        payload = {"hook_event_name": event, "session_id": self.session, "cwd": str(Path.cwd()), "permission_mode": "default", **fields}
        environment = {**os.environ, "CLAUDE_PID": str(os.getpid()), "CLAUDE_CODE_SESSION_ATTENDED": "1", "CLAUDECODE": "1"}
        wanted: str | None = None
        for group in json.loads(SETTINGS.read_text()).get("hooks", {}).get(event, []):
            for handler in group["hooks"]:
                process = subprocess.Popen(
                    ["sh", "-c", handler["command"]], env=environment, text=True,
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                )  # fmt: skip
                assert process.stdin is not None
                if handler.get("async"):
                    process.stdin.write(json.dumps(payload))
                    process.stdin.close()
                    if handler.get("asyncRewake"):
                        self.background.append(process)
                    continue
                said, problem = process.communicate(json.dumps(payload))
                wanted = wanted or _answer(process.returncode, said, problem)
        return wanted

    def work(self, cause: str, prompt: str) -> None:
        """One turn and what its Stop makes of it."""
        self.note(cause, text=prompt)
        turn = f"{self.session}-{next(self.numbers)}"
        self.fire("UserPromptSubmit", prompt=prompt, prompt_id=turn)
        self.carry_out(prompt)
        for stop in range(STOPS_MAX + 1):
            more = self.fire("Stop", prompt_id=turn, stop_hook_active=stop > 0, background_tasks=[])
            if more is None or stop == STOPS_MAX:
                break
            self.note("continued", text=more)
            self.carry_out(more)
        self.note("turn ended")

    def carry_out(self, prompt: str) -> None:
        """The steps of a prompt; for a pointer, the mail."""
        steps = STEP.findall(prompt)
        for _, step, rest in steps:
            self.act(step, rest.strip())
        if not steps:
            self.take_mail()

    def take_mail(self) -> None:
        """Every message that waits, each Delivery acked."""
        while True:
            done = subprocess.run(
                ["tocsin", "mail", "check", "--json"], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
            )
            self.note("mail", code=done.returncode, out=done.stdout, err=done.stderr)
            found = json.loads(done.stdout) if done.returncode == 0 else {}
            if not found.get("delivery"):
                return
            self.call("ack", "tocsin", "mail", "ack", found["delivery"])

    def rewoken(self) -> str | None:
        """The prompt that a background handler makes which has ended with exit code 2."""
        for process in self.background:
            if process.poll() is not None:
                self.background.remove(process)
                assert process.stderr is not None
                text = process.stderr.read()
                return REWAKE.format(text) if process.returncode == 2 else None
        return None


def _answer(code: int, said: str, problem: str) -> str | None:
    """What a hook wants to go on with: by exit code 2 and stderr, or by a block on stdout."""
    if code == 2:
        return problem
    try:
        answer = json.loads(said)
    except ValueError:
        return None
    return answer.get("reason") if isinstance(answer, dict) and answer.get("decision") == "block" else None


class Composer:
    """The terminal: what was said above, the draft between two rules, and keys as they come. The draft outlives every turn."""

    def __init__(self) -> None:
        self.draft = ""
        tty.setcbreak(sys.stdin)
        print("\033[?2004h", end="")

    def draw(self, state: str) -> None:
        """The screen anew, the cursor behind the draft."""
        rule = "─" * 60
        print(f"\033[2J\033[H{state}\n\n{rule}\n❯ {self.draft}\n{rule}\n  ? for shortcuts\033[4;{3 + len(self.draft)}H", end="", flush=True)

    def read(self) -> str | None:
        """Keys that have come: the prompt that an Enter among them sends, else None. Raises EOFError when the terminal is gone."""
        keys = os.read(sys.stdin.fileno(), 65536).decode(errors="replace")
        if not keys:
            raise EOFError
        sent = None
        for key in re.sub("\033\\[20[01]~", "", keys):
            if key in "\r\n":
                sent, self.draft = (sent or "") + self.draft, ""
            elif key == "\x7f":
                self.draft = self.draft[:-1]
            elif key.isprintable():
                self.draft += key
        return sent


def main() -> None:
    """One session, until its terminal is gone."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--control", type=Path, required=True)
    parser.add_argument("--name", required=True)
    args = parser.parse_args()
    claude, composer = Claude(args.control, args.name), Composer()
    claude.fire("SessionStart", source="startup")
    claude.note("booting")
    composer.draw("at rest")
    while True:
        ready, _, _ = select.select([sys.stdin], [], [], POLL_S)
        cause, prompt = "rewoken", claude.rewoken()
        if prompt is None and ready:
            try:
                cause, prompt = "typed", composer.read()
            except (EOFError, OSError):
                break
        if prompt is not None:
            composer.draw("working")
            claude.work(cause, prompt)
        if prompt is not None or ready:
            composer.draw("at rest")
    claude.fire("SessionEnd", reason="other")


if __name__ == "__main__":
    main()
