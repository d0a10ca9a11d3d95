"""The family of mailboxes in the ledger."""

from tocsin.contract.mail import MailRecorded
from tocsin.contract.subjects import MAIL_EVENT
from tocsin.ledger import Family, Ledger
from tocsin.mailbox.core.mailbox import Mailbox, blank, evolve


def _over(box: Mailbox) -> bool:
    return box.purged


FAMILY = Family(MAIL_EVENT, Mailbox, blank, evolve, over=_over)

Mailboxes = Ledger[Mailbox, MailRecorded]
"""All mailboxes, as the log has them."""
