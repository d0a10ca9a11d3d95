"""`tocsin ask QUESTION`: a worker asks its coordinator and waits for the answer. Asked once, however often it is waited for."""

import argparse
import json
import time
from typing import Any, NamedTuple

from tocsin.cli import mail, shown, speak, typed
from tocsin.cli.lines import KEPT
from tocsin.cli.main import DONE, WANTING
from tocsin.cli.speak import Speaker
from tocsin.contract.mail import AskQuestion, CheckMail, MailType, ReadMail
from tocsin.contract.refusals import Code
from tocsin.contract.run import Refused
from tocsin.mailbox.core.addresses import asker_of, of_dispatch

ANSWER_S = 100.0
"""How long an answer is waited for by default: agents end a command after two minutes, and the wait can go on."""


class Answer(NamedTuple):
    """What came: `body` is None while nothing has. `others`: mail that came with it."""

    question: str
    body: str | None
    sender: str | None
    others: tuple[dict[str, Any], ...]


def arguments(parser: argparse.ArgumentParser) -> None:
    """The question, or the one whose answer is waited for again."""
    parser.add_argument("question", nargs="*", action=typed.Words, metavar="QUESTION", help="- reads standard input")
    parser.add_argument(
        "--option", action="append", type=typed.text, metavar="TEXT", default=[], help="an answer to choose; may be repeated"
    )
    parser.add_argument("--resume", type=typed.name, metavar="ID", help="wait again for the answer to a question that was asked")
    parser.add_argument("--dispatch", type=typed.name, metavar="DISPATCH", help="known from the pane: need not be given")
    speak.arguments(parser, run=False, limit_s=ANSWER_S)


def run(args: argparse.Namespace) -> int:
    """Ask. Exit codes: 0 answered, 1 no answer in this time, 2 bad usage, 3 refused, 4 nobody there."""
    if bool(args.question) == bool(args.resume):
        return typed.usage("ask one thing: tocsin ask QUESTION, or wait again: tocsin ask --resume ID")
    text = args.question

    async def work(speaker: Speaker) -> int:
        question = args.resume
        if text is not None:
            mailbox = await mail.own_mailbox(speaker, of_dispatch(args.dispatch) if args.dispatch else None)
            ask = AskQuestion(question=text, options=tuple(args.option))
            receipt = await speaker.to_mailbox(ask, mailbox, keep=True) if isinstance(mailbox, str) else mailbox
            if isinstance(receipt, Refused):
                return speak.refused(receipt, args.json)
            if receipt.result.get(KEPT):
                speak.done(receipt, args.json)
                speak.note(f"wait for its answer with the same command and --request {receipt.request}")
                return WANTING
            question = receipt.result["question"]
        answer = await wait(speaker, question, args.timeout)
        return speak.refused(answer, args.json) if isinstance(answer, Refused) else _tell(answer, args.json)

    return speak.through(args, work, min(args.timeout, speak.LIMIT_S))


async def wait(speaker: Speaker, question: str, limit_s: float) -> Answer | Refused:
    """The answer, at the latest after `limit_s`. Mail that came with it is handed over too, and all of it acked."""
    mailbox = asker_of(question)
    if mailbox is None:
        return speak.refusal(Code.NOT_FOUND, f"{shown.one_line(question)} is no id of a question", "tocsin mail inbox")
    end = time.monotonic() + limit_s
    # It may have been handed over to a command that did not live to show it.
    looked = await speaker.look_at_mailbox(ReadMail(), mailbox)
    if isinstance(looked, Refused):
        return looked
    others: list[dict[str, Any]] = []
    for row in looked.result["rows"]:
        if row["read"] and _answers(row["message"], question):
            return Answer(question, row["message"]["body"], row["message"]["sender"], ())
    delivery: str | None = None
    while True:
        ask = CheckMail(types=(MailType.ANSWER,), ack=delivery)
        receipt = await mail.check(speaker, mailbox, ask, max(0.0, end - time.monotonic()))
        if isinstance(receipt, Refused):
            return receipt
        delivery = receipt.result["delivery"]
        messages = receipt.result["messages"]
        others += [message for message in messages if not _answers(message, question)]
        for message in messages:
            if _answers(message, question):
                # Not acked is only handed over once more.
                await mail.acked(speaker, str(delivery))
                return Answer(question, message["body"], message["sender"], tuple(others))
        if not messages:
            return Answer(question, None, None, tuple(others))


def _answers(message: dict[str, Any], question: str) -> bool:
    return message["type"] == MailType.ANSWER and message.get("thread") == question


def _tell(answer: Answer, as_json: bool) -> int:
    if as_json:
        print(json.dumps(answer._asdict()))
    else:
        if answer.body is not None:
            print(shown.plain(answer.body))
        for message in answer.others:
            print(shown.plain("\n".join(["", *mail.told(message)])))
    if answer.body is None:
        speak.note(f"no answer yet; the question stands. Wait again with: tocsin ask --resume {answer.question}")
        return WANTING
    return DONE
