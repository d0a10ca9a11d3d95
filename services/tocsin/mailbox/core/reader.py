"""Who may read a mailbox: its one consumer, fenced by generation; for a Dispatch the worker that the machine vouches for."""

from tocsin.contract.parties import Caller, Role
from tocsin.contract.refusals import Code, Refusal
from tocsin.mailbox.core.addresses import dispatch_in, is_worker, run_in
from tocsin.mailbox.core.mailbox import Mailbox


def is_same_party(one: Caller, other: Caller) -> bool:
    """Whether two callers are one consumer: the same pane, or outside panes the same name."""
    if one.pane is not None or other.pane is not None:
        return (one.host, one.pane) == (other.host, other.pane)
    return one.name == other.name


def refuse_reader(box: Mailbox, caller: Caller, generation: int | None) -> Refusal | None:
    """None when `caller` may take from this mailbox. `generation`: what the caller holds to be its own, if it knows.

    Refuses: not_found (nobody ever read it, or another Run's), sender_not_assignee, consumer_fenced.
    """
    if not box.generation:
        return Refusal(Code.NOT_FOUND, "there is no such mailbox")
    dispatch = dispatch_in(box.address)
    if dispatch is not None:
        if is_worker(caller) and caller.dispatch == dispatch:
            return None
        return _foreign(box, caller) or Refusal(Code.SENDER_NOT_ASSIGNEE, "only the worker of this Dispatch takes its mail")
    if is_worker(caller):
        return _foreign(box, caller) or Refusal(Code.CONSUMER_FENCED, "the mail of a Run is for its coordinator")
    if generation is not None:
        return None if generation == box.generation else _fenced(box)
    if box.reader is None or is_same_party(box.reader, caller):
        return None
    return _fenced(box)


def refuse_looker(box: Mailbox, caller: Caller) -> Refusal | None:
    """None when `caller` may look without taking: whoever has the command credential, and workers at their own mail.

    Refuses: not_found.
    """
    if not box.generation:
        return Refusal(Code.NOT_FOUND, "there is no such mailbox")
    if caller.role is Role.WORKER and not (is_worker(caller) and caller.dispatch == dispatch_in(box.address)):
        return Refusal(Code.NOT_FOUND, "there is no such mailbox")
    return None


def is_reader(box: Mailbox, caller: Caller, generation: int | None) -> bool:
    """Whether it is the reader itself who looks."""
    return refuse_reader(box, caller, generation) is None


def _foreign(box: Mailbox, caller: Caller) -> Refusal | None:
    """Another Run's worker learns no more than that there is nothing."""
    own = (caller.dispatch or "").partition(".")[0]
    return Refusal(Code.NOT_FOUND, "there is no such mailbox") if is_worker(caller) and own != run_in(box.address) else None


def _fenced(box: Mailbox) -> Refusal:
    return Refusal(Code.CONSUMER_FENCED, f"generation {box.generation} reads this mailbox")
