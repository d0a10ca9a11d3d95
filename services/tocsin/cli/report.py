"""`tocsin report OUTCOME TEXT`: a worker's claim that its work is over. It is kept when nobody is there to take it."""

import argparse

from tocsin.cli import commits, speak, typed
from tocsin.cli.lines import OWN
from tocsin.cli.speak import Speaker
from tocsin.contract.refusals import Code
from tocsin.contract.run import Outcome, Receipt, Refused, Report, ReportWork, run_of_dispatch


def arguments(parser: argparse.ArgumentParser) -> None:
    """What came of it."""
    parser.add_argument("outcome", choices=list(Outcome), metavar="OUTCOME", help="succeeded or failed")
    parser.add_argument(
        "body",
        nargs="+",
        action=typed.Words,
        metavar="TEXT",
        help="what was done, found and left, in a few sentences; - reads standard input",
    )
    parser.add_argument(
        "--file", action="append", type=typed.text, metavar="FILE", default=[], help="a file that was changed; may be repeated"
    )
    parser.add_argument("--commit", type=typed.text, metavar="SHA", help="the commit that holds the work, also as HEAD or a branch")
    parser.add_argument("--path", type=typed.text, metavar="FILE", help="a longer report")
    parser.add_argument("--task", type=typed.name, metavar="TASK", help="known from the pane: need not be given")
    parser.add_argument("--dispatch", type=typed.name, metavar="DISPATCH", help="known from the pane: need not be given")
    speak.arguments(parser, limit_s=speak.KEPT_S)


def run(args: argparse.Namespace) -> int:
    """Report. Exit codes: 0 taken, or kept for delivery; 3 refused; 4 nobody there and no place to keep it."""

    async def work(speaker: Speaker) -> int:
        commit = args.commit and (commits.full(args.commit) or args.commit)
        report = Report(outcome=Outcome(args.outcome), body=args.body, files=tuple(args.file), commit=commit, path=args.path)
        receipt = await send(speaker, report, args.task, args.dispatch)
        if isinstance(receipt, Refused):
            return speak.refused(receipt, args.json)
        return speak.done(receipt, args.json, f"reported: {args.outcome}")

    return speak.through(args, work)


async def send(speaker: Speaker, report: Report, task: str | None, dispatch: str | None) -> Receipt | Refused:
    """Put the report to its Run; inside a pane it outlives this command."""
    named = worker_run(speaker, dispatch)
    if isinstance(named, Refused):
        return named
    return await speaker.to_run(ReportWork(report=report, task=task, dispatch=dispatch), named, keep=True)


def worker_run(speaker: Speaker, dispatch: str | None) -> str | Refused:
    """The Run for which a worker speaks: that of the Dispatch that is named, else its pane's own. Refuses: run_required."""
    if dispatch or speaker.options.run:
        return run_of_dispatch(dispatch) if dispatch else speaker.options.run or OWN
    if speaker.inside:
        return OWN
    return speak.refusal(Code.RUN_REQUIRED, "this is no pane of a worker: name the Dispatch", "--dispatch DISPATCH", "--run RUN")
