"""The tools of a worker."""

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta

from tocsin.cli import ask, commits, mail, report
from tocsin.cli.speak import Speaker
from tocsin.cli.tools import Change, Limit, Told, Tool, Wait, told
from tocsin.contract.mail import AskQuestion, CheckMail, MailType, ReadMail
from tocsin.contract.run import Beat, GiveVerdict, Outcome, Refused, Report, Verdict


class ReportWork(Change, frozen=True, kw_only=True):
    """Report your work, once, when it is over: what was done, found and left. It is kept when nobody is there to take it."""

    outcome: Outcome
    body: Annotated[str, Meta(min_length=1, description="a few sentences")]
    files: Annotated[tuple[str, ...], Meta(description="files that were changed")] = ()
    commit: Annotated[str | None, Meta(description="the commit that holds the work")] = None
    path: Annotated[str | None, Meta(description="a longer report")] = None

    async def do(self, speaker: Speaker) -> Told:
        """See Tool."""
        commit = self.commit and (commits.full(self.commit) or self.commit)
        claim = Report(outcome=self.outcome, body=self.body, files=self.files, commit=commit, path=self.path)
        return told(await report.send(speaker, claim, None, None))


class Heartbeat(Change, frozen=True, kw_only=True):
    """Say that you are at work and in which phase. It wakes nobody."""

    phase: Annotated[str, Meta(max_length=200)] = ""

    async def do(self, speaker: Speaker) -> Told:
        """See Tool."""
        named = report.worker_run(speaker, None)
        return named if isinstance(named, Refused) else told(await speaker.to_run(Beat(phase=self.phase), named, keep=True))


class Ask(Change, frozen=True, kw_only=True):
    """Ask your coordinator and wait for the answer. No answer yet: call again with `resume`, never ask twice."""

    question: str | None = None
    options: tuple[str, ...] = ()
    resume: Annotated[str | None, Meta(description="id of a question that was asked, to wait again")] = None
    wait_s: Wait = 50

    async def do(self, speaker: Speaker) -> Told:
        """See Tool."""
        question = self.resume
        if question is None:
            mailbox = await mail.own_mailbox(speaker)
            asked = AskQuestion(question=self.question or "", options=self.options)
            receipt = await speaker.to_mailbox(asked, mailbox, keep=True) if isinstance(mailbox, str) else mailbox
            if isinstance(receipt, Refused) or "question" not in receipt.result:
                return told(receipt)
            question = receipt.result["question"]
        answer = await ask.wait(speaker, str(question), float(self.wait_s))
        return answer if isinstance(answer, Refused) else answer._asdict()


class ReviewVerdict(Change, frozen=True, kw_only=True):
    """The verdict of the review that you do, on a commit. It is your report as well."""

    verdict: Verdict
    findings: Annotated[str, Meta(description="what has to change and why")] = ""
    commit: Annotated[str | None, Meta(description="what was judged; default: HEAD where you are")] = None

    async def do(self, speaker: Speaker) -> Told:
        """See Tool."""
        named = report.worker_run(speaker, None)
        if isinstance(named, Refused):
            return named
        given = GiveVerdict(verdict=self.verdict, findings=self.findings, commit=commits.full(self.commit or "HEAD") or self.commit)
        return told(await speaker.to_run(given, named, keep=True))


class MailCheck(Tool, frozen=True, kw_only=True):
    """Take the next batch of your mail, or wait for some. The same batch comes again until it is acked. An empty wait says nothing bad."""

    wait_s: Wait = 0
    types: Annotated[tuple[MailType, ...], Meta(description="what ends the wait; never what is handed out")] = ()
    ack: Annotated[str | None, Meta(description="a Delivery that is dealt with")] = None
    peek: Annotated[bool, Meta(description="look, and take nothing")] = False

    async def do(self, speaker: Speaker) -> Told:
        """See Tool."""
        mailbox = await mail.own_mailbox(speaker)
        if isinstance(mailbox, Refused):
            return mailbox
        asked = CheckMail(types=self.types, ack=self.ack, peek=self.peek)
        return told(await mail.check(speaker, mailbox, asked, float(self.wait_s)))


class MailAck(Change, frozen=True, kw_only=True):
    """A Delivery is dealt with."""

    delivery: str

    async def do(self, speaker: Speaker) -> Told:
        """See Tool."""
        return told(await mail.acked(speaker, self.delivery))


class MailSend(Change, frozen=True, kw_only=True):
    """A message to a worker (its Dispatch), a group of workers (@all, @idle, @AGENT), or `coordinator`. It interrupts nobody's turn."""

    to: str
    body: Annotated[str, Meta(min_length=1)]
    type: Literal["guidance", "status", "escalation"] = "guidance"
    subject: str = ""

    async def do(self, speaker: Speaker) -> Told:
        """See Tool."""
        return told(await mail.send(speaker, self.to, self.body, MailType(self.type), self.subject))


class MailInbox(Tool, frozen=True, kw_only=True):
    """Look at your mail, newest first, read messages too. Takes nothing."""

    unread: bool = False
    before: Annotated[int | None, Meta(description="`next` of the page before")] = None
    limit: Limit = 20

    async def do(self, speaker: Speaker) -> Told:
        """See Tool."""
        mailbox = await mail.own_mailbox(speaker)
        if isinstance(mailbox, Refused):
            return mailbox
        return told(await speaker.look_at_mailbox(ReadMail(before=self.before, limit=self.limit, unread=self.unread), mailbox))


MAIL: Mapping[str, type[Tool]] = {
    "mail_check": MailCheck,
    "mail_ack": MailAck,
    "mail_send": MailSend,
    "mail_inbox": MailInbox,
}
"""What both a worker and a coordinator need."""

WORKER: Mapping[str, type[Tool]] = {"report": ReportWork, "heartbeat": Heartbeat, "ask": Ask, "review_verdict": ReviewVerdict, **MAIL}
"""What a worker needs."""
