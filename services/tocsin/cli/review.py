"""`tocsin review verdict WORD`: what a review has found, from the worker of the review Task, on a commit. It is that worker's report as well."""

import argparse

from tocsin.cli import commits, speak, typed
from tocsin.cli.report import worker_run
from tocsin.cli.speak import Speaker
from tocsin.cli.task import task_id
from tocsin.contract.run import GiveVerdict, Refused, Verdict


def arguments(parser: argparse.ArgumentParser) -> None:
    """The verdict."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    verdict = actions.add_parser("verdict", help="give the verdict of the review that this pane does")
    verdict.add_argument("verdict", choices=list(Verdict), metavar="VERDICT", help="accept, rework or reject")
    verdict.add_argument("--findings", type=typed.text, metavar="TEXT", help="what has to change and why; - reads standard input")
    verdict.add_argument("--commit", type=typed.text, metavar="SHA", help="what was judged (default: HEAD of this folder)")
    verdict.add_argument("--task", type=task_id, metavar="TASK", help="the review Task: known from the pane, need not be given")
    speak.arguments(verdict, limit_s=speak.KEPT_S)


def run(args: argparse.Namespace) -> int:
    """Give it. Exit codes: 0 taken, or kept for delivery; 3 refused; 4 nobody there and no place to keep it."""

    async def work(speaker: Speaker) -> int:
        named = worker_run(speaker, None)
        commit = commits.full(args.commit or "HEAD") or args.commit
        ask = GiveVerdict(verdict=Verdict(args.verdict), findings=args.findings or "", commit=commit, task=args.task)
        receipt = await speaker.to_run(ask, named, keep=True) if isinstance(named, str) else named
        if isinstance(receipt, Refused):
            return speak.refused(receipt, args.json)
        return speak.done(receipt, args.json, f"verdict: {args.verdict}" + (f" on {ask.commit[:12]}" if ask.commit else ""))

    return speak.through(args, work)
