"""How callers put mail into a mailbox: what is sent, asked and answered, and who may."""

import re
from collections.abc import Mapping

from tocsin.contract.decision import Decision
from tocsin.contract.mail import GROUP_MARK, SENDABLE, Answered, Arrived, Asked, AskQuestion, MailType, Message, Spread
from tocsin.contract.messages import State
from tocsin.contract.parties import Caller, Role
from tocsin.contract.refusals import Code, Refusal
from tocsin.mailbox.core.addresses import AT_REST, EVERYONE, IDLE, dispatch_in, is_worker, of_dispatch, run_in
from tocsin.mailbox.core.mailbox import Mailbox
from tocsin.mailbox.core.reader import is_same_party

UNREAD_MAX = 10_000
"""Unread messages above which senders are refused. What a Run's own record makes mail of always comes in: its Run is bounded."""

QUESTIONS_MAX = 200
"""Questions of one Dispatch, answered ones included: one that asks more often does not know its Task."""

BODY_BYTES_MAX = 1024 * 1024
SUBJECT_MAX = 200
"""Characters of a message's one line."""

CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def refuse_sender(box: Mailbox, caller: Caller, run: Mailbox | None, generation: int | None) -> Refusal | None:
    """None when `caller` may write into this mailbox. `run`: the mailbox of the Run that it belongs to.

    A worker writes within its own Run; a coordinator that another has replaced is fenced; whoever has the command
    credential and is nobody's agent may write anywhere. Refuses: not_found, no_reader, consumer_fenced, sender_not_assignee.
    """
    if caller.role is Role.WORKER and not is_worker(caller):
        return Refusal(Code.SENDER_NOT_ASSIGNEE, "nobody vouches that a worker says this")
    if is_worker(caller) and run_in(of_dispatch(caller.dispatch or "")) != run_in(box.address):
        return Refusal(Code.NOT_FOUND, "there is no such mailbox")
    if not box.generation:
        return Refusal(Code.NO_READER, "there is no such mailbox")
    if box.shut is not None:
        return Refusal(Code.NO_READER, f"nobody reads it any more: {box.shut}")
    if caller.role is Role.COORDINATOR and run is not None and not is_worker(caller):
        return _refuse_replaced(run, caller, generation)
    return None


def _refuse_replaced(run: Mailbox, caller: Caller, generation: int | None) -> Refusal | None:
    fenced = Refusal(Code.CONSUMER_FENCED, f"generation {run.generation} coordinates this Run")
    if generation is not None:
        return None if generation == run.generation else fenced
    return None if run.reader is None or is_same_party(run.reader, caller) else fenced


def refuse_message(message: Message) -> Refusal | None:
    """None when the message may be sent as it is. Refuses: bad_request, too_large."""
    if message.type not in SENDABLE:
        return Refusal(Code.BAD_REQUEST, f"a {message.type} is not sent: it is made by what it tells of")
    if not message.body.strip() and not message.subject.strip():
        return Refusal(Code.BAD_REQUEST, "the message is empty")
    return refuse_text(message.subject, message.body)


def refuse_text(subject: str, body: str) -> Refusal | None:
    """None when a text fits. Refuses: bad_request, too_large."""
    if len(subject) > SUBJECT_MAX:
        return Refusal(Code.BAD_REQUEST, f"the subject is one line of at most {SUBJECT_MAX} characters")
    if len(body.encode(errors="replace")) > BODY_BYTES_MAX:
        return Refusal(Code.TOO_LARGE, f"a message holds at most {BODY_BYTES_MAX} bytes; a file and its path hold more")
    return None


def plain(text: str) -> str:
    """A text without what could move a terminal: control characters become U+FFFD, but for tabs and line ends."""
    return CONTROLS.sub("\ufffd", text.replace("\r\n", "\n"))


def send(box: Mailbox, message: Message) -> Decision | Refusal:
    """Put a message of a caller into the mailbox. Refuses: asker_waits, with the question's id; mailbox_full."""
    waits_for = box.open_questions()
    if waits_for:
        return Refusal(Code.ASKER_WAITS, f"it waits for the answer to question {waits_for[0].id}: reply to that")
    if box.unread_count >= UNREAD_MAX:
        return Refusal(Code.MAILBOX_FULL, f"{box.unread_count} messages are unread there")
    return arrive(box, message)


def arrive(box: Mailbox, message: Message) -> Decision:
    """The message is in the mailbox; one that is in it already makes no second one."""
    if message.id in box.known:
        return Decision(result={"message": message.id}, duplicate=True)
    return Decision((Arrived(message=message),), {"message": message.id})


def question_id(dispatch: str, request_hash: str) -> str:
    """The id of a question: it names who asked."""
    return f"{dispatch}.q{request_hash}"


def ask(box: Mailbox, question: str, asked: AskQuestion) -> Decision | Refusal:
    """The worker whose mailbox this is waits for an answer. Refuses: no_reader, bad_request, too_large, mailbox_full."""
    if not box.is_open:
        return Refusal(Code.NO_READER, f"the Dispatch is over: {box.shut}" if box.shut else "there is no such Dispatch")
    if question in box.questions:
        return Decision(result={"question": question}, duplicate=True)
    if not asked.question.strip():
        return Refusal(Code.BAD_REQUEST, "the question is empty")
    refusal = refuse_text("", asked.question)
    if refusal is not None:
        return refusal
    if len(box.questions) >= QUESTIONS_MAX:
        return Refusal(Code.MAILBOX_FULL, f"this Dispatch has asked {QUESTIONS_MAX} questions")
    new = Asked(question=question, dispatch=dispatch_in(box.address) or "", text=asked.question, options=asked.options)
    return Decision((new,), {"question": question})


def question_mail(box: Mailbox, question: str) -> Message:
    """A question as its Run gets it."""
    asked = box.questions[question]
    return Message(
        id=question, type=MailType.QUESTION, sender=box.address, subject=first_line(asked.text), body=asked.text, at_ms=asked.at_ms,
        run=box.run, task=box.task, dispatch=dispatch_in(box.address), thread=question, options=asked.options,
    )  # fmt: skip


def reply(box: Mailbox, question: str, body: str, sender: str, by: Caller, now_ms: int) -> Decision | Refusal:
    """Answer a question of the worker whose mailbox this is, once. Refuses: not_found, already_decided, bad_request, too_large."""
    asked = box.questions.get(question)
    if asked is None:
        return Refusal(Code.NOT_FOUND, f"there is no question {question}")
    if asked.answer is not None or asked.closed:
        return Refusal(Code.ALREADY_DECIDED, "it has its answer" if asked.answer is not None else "who asked is gone")
    if not body.strip():
        return Refusal(Code.BAD_REQUEST, "the answer is empty")
    refusal = refuse_text("", body)
    if refusal is not None:
        return refusal
    message = Message(
        id=f"{question}.a", type=MailType.ANSWER, sender=sender, subject=first_line(body), body=body, at_ms=now_ms, run=box.run,
        task=box.task, dispatch=dispatch_in(box.address), thread=question,
    )  # fmt: skip
    return Decision(
        (Answered(question=question, answer=body, by=by), Arrived(message=message)), {"question": question, "message": message.id}
    )


def members_of(run: Mailbox, group: str, states: Mapping[str, State | None], but: str | None) -> tuple[str, ...] | Refusal:
    """The live Dispatches that a group of this Run reaches now. `states`: how the panes of those that can be reached stand, None
    where nothing is known; `but`: the sender itself.

    Refuses: no_reader, when it reaches nobody.
    """
    agent = group.removeprefix(GROUP_MARK)
    reached = tuple(
        member.dispatch
        for member in sorted(run.members.values(), key=lambda member: member.dispatch)
        if member.dispatch != but
        and member.dispatch in states
        and (group == EVERYONE or (states.get(member.dispatch) in AT_REST if group == IDLE else member.agent == agent))
    )
    return reached or Refusal(Code.NO_READER, f"{group} reaches no worker of this Run now")


def spread(group: str, to: tuple[str, ...]) -> Decision:
    """It is settled whom a message to a group reaches."""
    return Decision((Spread(group=group, to=to),), {"to": list(to)})


def first_line(text: str) -> str:
    """The one line that stands for a text."""
    line = text.strip().partition("\n")[0].strip()
    return line if len(line) <= SUBJECT_MAX else line[: SUBJECT_MAX - 1] + "…"
