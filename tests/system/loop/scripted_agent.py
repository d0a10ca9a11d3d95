"""A coding agent that does what its Task says, line by line: a worker of the acceptance stories, started as agent `generic`.

    python scripted_agent.py --control DIR [--boot-s N] [--no-hooks] [--within PROGRAM]

Its brief is the file that TOCSIN_BRIEF names. Its steps are the lines of the brief that begin with `do:` (in every attempt) or `do N:` (in the attempt with fence N):

| step | what it does |
|---|---|
| `write FILE TEXT`, `commit MESSAGE` | as an agent works: in its folder, with git |
| `run COMMAND` | a shell command |
| `beat COUNT PHASE` | that many heartbeats |
| `report OUTCOME TEXT` | `tocsin report` |
| `verdict WORD FINDINGS` | `tocsin review verdict`, on the commit at HEAD of its folder |
| `ask QUESTION` | `tocsin ask`, until it is answered |
| `mail` | `tocsin mail check` |
| `mark NAME`, `await NAME` | makes a file in the control folder, waits for one: how a test and its worker meet |
| `hook EVENT` | an event of its own beside those of its turn |
| `exit CODE`, `die` | ends its process: by itself, or by SIGKILL |

Without a step left its turn ends. Then it stays, as agents do, and takes each line that is typed into its pane for the
prompt of another turn. Its hooks go through the installed hook command. It needs nothing but Python's own library, and
writes what it did and got to `<Dispatch>.jsonl` in the control folder, one line a step.
"""

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HOOK = Path.home() / ".local" / "share" / "tocsin" / "hook"
POLL_S = 0.02
STEP = re.compile(r"^\s*do(?: (\d+))?: (\S+) ?(.*)$", re.MULTILINE)


class Agent:
    """One life of it."""

    def __init__(self, control: Path, dispatch: str, hooks: bool, within: str | None = None) -> None:
        self.control = control
        self.dispatch = dispatch
        self.hooks = hooks
        # As in real agents, tool calls run in the sandbox, and hooks outside.
        self.within = [within, os.environ["TOCSIN_STATE"], os.environ["TOCSIN_FOLDER"]] if within else []
        self.session = f"{dispatch}-{os.getpid()}"

    def note(self, step: str, **what: Any) -> None:
        """Write down what was done, whole lines only."""
        line = json.dumps({"step": step, "pid": os.getpid(), "at_ms": time.time_ns() // 1_000_000, **what}) + "\n"
        with (self.control / f"{self.dispatch}.jsonl").open("a") as log:
            log.write(line)

    def hook(self, event: str, **fields: str) -> None:
        """Report an event as agents do; the answer is not ours to use."""
        if self.hooks:
            body = json.dumps({"event": event, "session": self.session, **fields})
            subprocess.run([HOOK, "generic"], input=body, text=True, check=False)

    def call(self, step: str, *words: str) -> None:
        """Run a command and show it, as agents do with tool calls."""
        print(f"$ {shlex.join(words)}", flush=True)
        done = subprocess.run([*self.within, *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        self.note(step, words=words, code=done.returncode, out=done.stdout, err=done.stderr)

    def act(self, step: str, rest: str) -> None:
        """Do one step."""
        first, _, more = rest.partition(" ")
        match step:
            case "write":
                Path(first).write_text(more + "\n")
                self.note(step, file=first)
            case "commit":
                self.call(step, "git", "add", "--all")
                self.call(step, "git", "commit", "--quiet", "--message", rest)
            case "run":
                self.call(step, "sh", "-c", rest)
            case "beat":
                for _ in range(int(first)):
                    self.call(step, "tocsin", "heartbeat", more)
            case "report":
                self.call(step, "tocsin", "report", first, more)
            case "verdict":
                self.call(step, "tocsin", "review", "verdict", first, *(["--findings", more] if more else []))
            case "ask":
                self.call(step, "tocsin", "ask", rest)
            case "mail":
                self.call(step, "tocsin", "mail", "check")
            case "mark":
                (self.control / first).touch()
            case "await":
                while not (self.control / first).exists():
                    time.sleep(POLL_S)
            case "hook":
                self.hook(first)
            case "exit":
                self.note(step)
                self.hook("left")
                sys.exit(int(first or "0"))
            case "die":
                self.note(step)
                os.kill(os.getpid(), signal.SIGKILL)
            case _:
                self.note("unknown", word=step)

    def turn(self, prompt: str) -> None:
        """Work through the steps of one prompt."""
        attempt = self.dispatch.rpartition(".")[2]
        self.hook("prompted")
        for number, step, rest in STEP.findall(prompt):
            if number in ("", attempt):
                self.act(step, rest.strip())
        self.note("turn ended")
        self.hook("ended")


def main() -> None:
    """Boot, work, and stay at the prompt."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--control", type=Path, required=True)
    parser.add_argument("--boot-s", type=float, default=0.0)
    parser.add_argument("--no-hooks", action="store_true")
    parser.add_argument("--within", help="its tool calls are run by this program")
    args = parser.parse_args()
    agent = Agent(args.control, os.environ.get("TOCSIN_DISPATCH", "nobody.0"), not args.no_hooks, args.within)
    agent.note("booting", folder=str(Path.cwd()), environment={k: v for k, v in os.environ.items() if k.startswith("TOCSIN")})
    time.sleep(args.boot_s)
    agent.hook("started")
    agent.turn(Path(os.environ["TOCSIN_BRIEF"]).read_text())
    while True:
        print("> ", end="", flush=True)
        line = sys.stdin.readline()
        if not line:
            break
        agent.note("typed", text=line.rstrip("\n"))
        agent.turn(line)


if __name__ == "__main__":
    main()
