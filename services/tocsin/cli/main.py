"""The command line: finds the verb, imports its file, runs it.

Each verb is a module of this package with `arguments(parser)`, which adds its options, and `run(args) -> int`,
which does it and returns the exit code.

Exit codes: 0 done, or kept on this machine for delivery; 1 found wanting, also what did not come about in the time that was
given (no mail, no answer, no turn start seen); 2 bad usage; 3 refused; 4 unavailable: the same request again; 128 and the
signal's number when a signal ended it.
"""

import argparse
import importlib
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tocsin.contract.refusals import Refusal


VERBS = {
    "up": "start everything on this machine and show where the list is",
    "down": "stop what `up` started",
    "ls": "the ranked list, once",
    "watch": "the ranked list, live in this terminal",
    "line": "the list in one line, for tmux, a prompt or a status line",
    "why": "why a worktree stands where it stands, or above another",
    "jump": "find a worktree and select its tmux pane",
    "open": "the page, in your browser",
    "mark": "what is urgent to you, and what you do not want to hear of now",
    "notify": "how you are told of what needs you, and a test of it",
    "hooks": "install, uninstall or check the agents' hooks",
    "doctor": "what is wrong here, and the remedy",
    "run": "a coordinator's Runs: create, use, list, show, pause, resume, close, purge",
    "task": "what is to be done: add, list, show, update, accept, reopen, cancel",
    "worker": "who does it: start, list, show, read, stop, abandon, supersede",
    "mail": "take, ack, send and answer messages",
    "gate": "a question on a Task, and its answer",
    "review": "a review's verdict",
    "report": "a worker's claim that its work is over",
    "heartbeat": "a worker lives and is in a phase; wakes nobody",
    "ask": "a worker's question; waits for the answer",
    "wakes": "the account of the turns that were caused",
    "request": "what became of a request whose answer was lost",
    "custody": "who owns each terminal and worktree that we made",
    "audit": "git, disk, processes, tmux and ledgers side by side",
    "ledger": "verify or rebuild what is on record",
    "mcp": "the loop as tools for agents, over standard input and output",
    "skill": "the loop in one page, for an agent that is to coordinate",
    "record": "export the last hours of events",
    "replay": "play a recording in virtual time, with no server",
    "rank": "rank worktrees given in a file",
    "asyncapi": "the bus contract as AsyncAPI 3",
    "refusals": "every refusal code, with its next step",
    "metrics": "every metric that services show, with its labels",
    "invite": "what another machine needs to join this instance",
    "join": "take part in another machine's instance",
    "bench": "what Tocsin costs on this machine, each figure beside its base",
    "pane-host": "run the hands and eyes of this machine",
    "serve": "run one service (what the containers do)",
    "credentials": "make the credentials of an instance folder, once",
}

DONE, WANTING, USAGE, REFUSED, AWAY = range(5)


def module_of(verb: str) -> str:
    """The module that does `verb`."""
    return f"tocsin.cli.{verb.replace('-', '_')}"


def refuse(refusal: "Refusal", as_json: bool = False) -> int:
    """Say on stderr why nothing was done and what to do next; returns the exit code."""
    from tocsin.contract.refusals import Code

    # The machinery does not answer; all others are an answer.
    away = {Code.UNAVAILABLE, Code.NO_LIST, Code.NOT_RUNNING, Code.OTHER_VERSION}
    if as_json:
        print(json.dumps(refusal.public()), file=sys.stderr)
    else:
        print(f"tocsin: {refusal.message}", file=sys.stderr)
        for step in refusal.advice.next:
            print(f"  next: {step}", file=sys.stderr)
    return AWAY if refusal.code in away else REFUSED


class _Version(argparse.Action):
    """Looks the version up only when it is asked for: that costs as much as all else that a quick verb does."""

    def __init__(self, option_strings: Sequence[str], **options: Any) -> None:
        super().__init__(option_strings, nargs=0, default=argparse.SUPPRESS, **options)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"tocsin {version('tocsin')}")
        parser.exit()


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; returns its exit code."""
    if sys.platform == "win32":
        print("tocsin: Windows is supported inside WSL2 only. Nothing was installed or changed.", file=sys.stderr)
        return REFUSED
    words = list(sys.argv[1:] if argv is None else argv)
    args = parser_for(words).parse_args(words)
    try:
        return int(importlib.import_module(module_of(args.verb)).run(args))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader (head, less) went away: that is its right.
        sys.stderr.close()
        return DONE


def parser_for(words: Sequence[str]) -> argparse.ArgumentParser:
    """What understands these words."""
    parser = argparse.ArgumentParser(prog="tocsin", description="Which of your coding agents needs you now?")
    parser.add_argument("--version", action=_Version, help="say which version this is, and end")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    first = words[0] if words else ""
    # Of thirty verbs only the one that is asked for is prepared: the others are for the list of all.
    for verb, about in {first: VERBS[first]}.items() if first in VERBS else VERBS.items():
        one = verbs.add_parser(verb, help=about, description=about[0].upper() + about[1:] + ".")
        if verb == first:
            importlib.import_module(module_of(verb)).arguments(one)
    return parser


if __name__ == "__main__":
    sys.exit(main())
