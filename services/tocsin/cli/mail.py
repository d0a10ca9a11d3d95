"""`tocsin mail`: takes the mail of this pane or Run, one fixed batch at a time, acks it, and sends, answers and looks."""

import argparse
import json
import time
from collections.abc import Mapping
from typing import Any

from tocsin.cli import reading, shown, speak, typed
from tocsin.cli.lines import OWN
from tocsin.cli.main import DONE, WANTING
from tocsin.cli.report import worker_run
from tocsin.cli.speak import Speaker
from tocsin.contract.mail import (
    DISPATCH_MARK,
    GROUP_MARK,
    RUN_MARK,
    SENDABLE,
    AckMail,
    CheckMail,
    MailType,
    Message,
    ReadMail,
    ReplyMail,
    SendMail,
)
from tocsin.contract.refusals import Code
from tocsin.contract.run import Receipt, Refused
from tocsin.mailbox.core.addresses import asker_of, of_dispatch, of_run

SLICE_S = 50.0
"""Longest time that one request is parked; a longer wait is several, so that one whose other end died is found out."""

COORDINATOR = "coordinator"
"""How a worker names who coordinates its Run."""

WAIT_S = 600.0
"""How long `--wait` waits when nobody says otherwise."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What to do with which mailbox."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    check_ = actions.add_parser("check", help="take the next batch; the same one again until it is acked")
    check_.add_argument(
        "--wait", nargs="?", type=typed.seconds, const=WAIT_S, default=0.0, metavar="TIME", help="until there is mail (10m)"
    )
    check_.add_argument("--types", type=mail_types, default=(), metavar="TYPE,...", help="what ends the wait; never what is handed out")
    check_.add_argument("--ack", type=typed.name, metavar="DELIVERY", help="a batch that is dealt with, in the same request")
    check_.add_argument("--peek", action="store_true", help="look, and take nothing")
    ack = actions.add_parser("ack", help="the batch is dealt with")
    ack.add_argument("delivery", type=typed.name, metavar="DELIVERY")
    send = actions.add_parser("send", help="a message to a worker, a group of workers, or a coordinator")
    send.add_argument("to", type=typed.name, metavar="TO", help="a Dispatch, run:ID, coordinator, @all, @idle or @AGENT")
    send.add_argument("body", nargs="+", action=typed.Words, metavar="TEXT", help="- reads standard input")
    send.add_argument("--type", choices=sorted(SENDABLE), default=MailType.GUIDANCE, help="default guidance")
    send.add_argument("--subject", type=typed.text, metavar="TEXT", help="its one line (default: the first one of the text)")
    reply = actions.add_parser("reply", help="answer a question by its id")
    reply.add_argument("question", type=typed.name, metavar="QUESTION")
    reply.add_argument("body", nargs="+", action=typed.Words, metavar="ANSWER", help="- reads standard input")
    inbox = actions.add_parser("inbox", help="look at what is there and what was read, newest first; takes nothing")
    inbox.add_argument("--before", type=typed.count, metavar="N", help="go on where the page before ended")
    inbox.add_argument("--limit", type=typed.count, default=50, metavar="N", help="messages of a page (default 50)")
    inbox.add_argument("--unread", action="store_true", help="only what is not acked")
    for action in (check_, inbox):
        action.add_argument("--mailbox", type=typed.name, metavar="ADDRESS", help="run:ID or dispatch:ID (default: your own)")
        speak.arguments(action, changes=False, limit_s=speak.LOOK_S)
    for action in (ack, send, reply):
        speak.arguments(action, run=action is send)


def mail_types(given: str) -> tuple[MailType, ...]:
    """Types of messages with commas between them. Raises ArgumentTypeError."""
    try:
        return tuple(MailType(word.strip()) for word in given.split(",") if word.strip())
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}; there are {', '.join(MailType)}") from error


def run(args: argparse.Namespace) -> int:
    """Do it. Exit codes: 0, 1 when a wait found nothing, 3 refused, 4 nobody there."""
    return speak.through(args, lambda speaker: ACTIONS[args.action](args, speaker))


async def own_mailbox(speaker: Speaker, named: str | None = None) -> str | Refused:
    """The mailbox that is meant: named, else that of the worker whose pane this is, else that of the Run. Refuses: as `which_run`."""
    if named is not None:
        return named
    if speaker.inside and not speaker.options.run:
        return OWN
    run = await speaker.which_run()
    return of_run(run) if isinstance(run, str) else run


# ---------------------------------------------------------------- taking


async def _check(args: argparse.Namespace, speaker: Speaker) -> int:
    mailbox = await own_mailbox(speaker, args.mailbox)
    ask = CheckMail(types=args.types, ack=args.ack, peek=args.peek)
    receipt = await check(speaker, mailbox, ask, args.wait) if isinstance(mailbox, str) else mailbox
    if isinstance(receipt, Refused):
        return speak.refused(receipt, args.json)
    if args.json:
        print(json.dumps(receipt.result))
    else:
        print(shown.plain("\n".join(handed(receipt.result))))
    return WANTING if args.wait and not receipt.result["messages"] else DONE


async def check(speaker: Speaker, mailbox: str, ask: CheckMail, wait_s: float) -> Receipt | Refused:
    """Take what is there, or wait for it; a long wait is asked in slices. An empty answer says nothing bad about anybody."""
    end = time.monotonic() + wait_s
    while True:
        slice_s = max(0.0, min(SLICE_S, end - time.monotonic()))
        now = CheckMail(wait_ms=round(slice_s * 1000), peek=ask.peek, types=ask.types, ack=ask.ack)
        receipt = await speaker.look_at_mailbox(now, mailbox, wait_s=slice_s)
        if isinstance(receipt, Refused) or receipt.result["messages"] or time.monotonic() >= end:
            return receipt
        # What was acked with the first slice is acked.
        ask = CheckMail(peek=ask.peek, types=ask.types)


def handed(result: Mapping[str, Any]) -> list[str]:
    """What a check has handed out, for a person or an agent to read."""
    messages, delivery, beyond = result["messages"], result["delivery"], result["beyond"]
    lines = []
    for message in messages:
        lines += [*told(message), ""]
    if delivery:
        again = ", once more" if result.get("repeat") else ""
        until = f"; yours until {reading.time_of(result['lease_until_ms'])}" if result["lease_until_ms"] else ""
        lines.append(f"{_count(messages)}{again}{until}. When dealt with: tocsin mail ack {delivery}")
    elif not messages:
        lines.append("No mail that ends this wait." if beyond["count"] else "No mail.")
    if beyond["count"]:
        lines.append(f"{beyond['count']} more behind them" + ("".join(f"; {_head(one)}" for one in beyond["actionable"])))
    return lines


def _count(messages: list[Any]) -> str:
    return "1 message" if len(messages) == 1 else f"{len(messages)} messages"


def _head(message: Mapping[str, Any]) -> str:
    return f"{message['type']} from {message['sender']}: {shown.one_line(message['subject'], 60)}"


def told(message: Mapping[str, Any]) -> list[str]:
    """One message in full."""
    task = f", Task {message['task']}" if message.get("task") else ""
    code = f" [{message['code']}]" if message.get("code") else ""
    lines = [f"[{message['id']}] {message['type']}{code} from {message['sender']}{task}, {reading.time_of(message['at_ms'])}"]
    body = message["body"].rstrip()
    if message["subject"] and not body.startswith(message["subject"].rstrip("…")):
        lines.append(f"  {message['subject']}")
    lines += [f"  {line}" for line in body.split("\n") if body]
    if message.get("options"):
        lines.append(f"  choose: {' | '.join(message['options'])}")
    if message["type"] == MailType.QUESTION:
        lines.append(f"  answer: tocsin mail reply {message['id']} ANSWER")
    return lines


async def _ack(args: argparse.Namespace, speaker: Speaker) -> int:
    receipt = await acked(speaker, args.delivery)
    if isinstance(receipt, Refused):
        return speak.refused(receipt, args.json)
    return speak.done(receipt, args.json, f"acked: {args.delivery}")


async def acked(speaker: Speaker, delivery: str) -> Receipt | Refused:
    """Ack a Delivery; its id names its mailbox."""
    mailbox, mark, _ = delivery.rpartition(".d")
    if not mark or not mailbox.startswith((RUN_MARK, DISPATCH_MARK)):
        return speak.refusal(Code.STALE_DELIVERY, f"{shown.one_line(delivery)} is no id of a Delivery")
    return await speaker.to_mailbox(AckMail(delivery=delivery), mailbox)


# ---------------------------------------------------------------- saying


async def _send(args: argparse.Namespace, speaker: Speaker) -> int:
    receipt = await send(speaker, args.to, args.body, MailType(args.type), args.subject or "")
    if isinstance(receipt, Refused):
        return speak.refused(receipt, args.json)
    reached = receipt.result.get("to")
    return speak.done(receipt, args.json, "sent" + (f" to {', '.join(reached)}" if reached else f" to {args.to}"))


async def send(speaker: Speaker, to: str, body: str, type_: MailType, subject: str) -> Receipt | Refused:
    """Send it. `to`: an address, a Dispatch, a group, or `coordinator` for the one of this Run. Refuses: not_found."""
    run = worker_run(speaker, None) if speaker.inside else None
    if to == COORDINATOR or to.startswith(GROUP_MARK):
        # Both belong to the Run of who sends.
        run = run if run is not None else await speaker.which_run()
        if isinstance(run, Refused):
            return run
        address = to if to != COORDINATOR else of_run(run) if run else OWN
    elif to.startswith((RUN_MARK, DISPATCH_MARK)):
        address = to
    elif "." in to:
        address = of_dispatch(to)
    else:
        steps = ("tocsin worker list", "TO: a Dispatch, run:ID, coordinator, @all, @idle or @AGENT")
        return speak.refusal(Code.NOT_FOUND, f"{shown.one_line(to)} is no address", *steps)
    line = subject or shown.one_line(body.strip().partition("\n")[0], 200)
    # Who sends it, and when, is told by who takes it in: a repeat of this request must say the same.
    message = Message(id="", type=type_, sender="", subject=line, body=body, at_ms=0, run=run if isinstance(run, str) else None)
    return await speaker.to_mailbox(SendMail(message=message), address, keep=True)


async def _reply(args: argparse.Namespace, speaker: Speaker) -> int:
    receipt = await reply(speaker, args.question, args.body)
    if isinstance(receipt, Refused):
        return speak.refused(receipt, args.json)
    return speak.done(receipt, args.json, f"answered: {args.question}")


async def reply(speaker: Speaker, question: str, body: str) -> Receipt | Refused:
    """Answer a question; its id names who asked. Refuses: not_found."""
    mailbox = asker_of(question)
    if mailbox is None:
        return speak.refusal(Code.NOT_FOUND, f"{shown.one_line(question)} is no id of a question", "tocsin mail inbox")
    return await speaker.to_mailbox(ReplyMail(question=question, body=body), mailbox)


# ---------------------------------------------------------------- looking


async def _inbox(args: argparse.Namespace, speaker: Speaker) -> int:
    mailbox = await own_mailbox(speaker, args.mailbox)
    ask = ReadMail(before=args.before, limit=args.limit, unread=args.unread)
    receipt = await speaker.look_at_mailbox(ask, mailbox) if isinstance(mailbox, str) else mailbox
    if isinstance(receipt, Refused):
        return speak.refused(receipt, args.json)
    if args.json:
        print(json.dumps(receipt.result))
    else:
        print(shown.plain("\n".join(_page(receipt.result, str(mailbox), args.unread))))
    return DONE


def _page(result: Mapping[str, Any], mailbox: str, unread: bool) -> list[str]:
    lines = []
    for row in result["rows"]:
        head, *rest = told(row["message"])
        lines += [f"{row['number']}{'' if row['read'] else ' unread'} {head}", *rest, ""]
    if not result["rows"]:
        lines.append(f"No mail in {mailbox}.")
    if result["next"] is not None:
        more = " --unread" if unread else ""
        lines.append(
            f"{len(result['rows'])} of {result['total']}; older ones: tocsin mail inbox --mailbox {mailbox}{more} --before {result['next']}"
        )
    return lines


ACTIONS = {"check": _check, "ack": _ack, "send": _send, "reply": _reply, "inbox": _inbox}
