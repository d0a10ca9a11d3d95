"""What follows for a mailbox from what was recorded of its Run: who reads it, where that reader lives, who can be reached, what is told.

All of it has happened, so nothing is refused; each part may come again, and late.
"""

import msgspec

from tocsin.contract.decision import Decision
from tocsin.contract.ids import HostId, PaneId
from tocsin.contract.mail import Answered, Fenced, Joined, Left, MailEvent, Message, Opened, Outdated, Placed, Purged, Shut, WakeState
from tocsin.contract.messages import Process
from tocsin.contract.parties import Caller
from tocsin.mailbox.core.mailbox import Mailbox, fold
from tocsin.mailbox.core.post import arrive
from tocsin.mailbox.core.wake import ENDED


class Post(msgspec.Struct, frozen=True, kw_only=True, tag_field="post"):
    """One thing for one mailbox that follows from what was recorded of a Run. Each may come again, and late."""


class Bind(Post, frozen=True, kw_only=True, tag="bind"):
    """Its coordinator is `reader` from `generation` on."""

    run: str
    generation: int
    reader: Caller


class Open(Post, frozen=True, kw_only=True, tag="open"):
    """A Dispatch exists: its mailbox has a reader before any terminal is attached."""

    run: str
    task: str
    agent: str
    host: HostId


class Place(Post, frozen=True, kw_only=True, tag="place"):
    """Its reader lives in this pane."""

    host: HostId | None
    pane: PaneId
    process: Process | None = None


class Join(Post, frozen=True, kw_only=True, tag="join"):
    """A Dispatch of this Run lives, and takes work that was told as ready."""

    dispatch: str
    agent: str


class Leave(Post, frozen=True, kw_only=True, tag="leave"):
    """It does not any more."""

    dispatch: str


class Close(Post, frozen=True, kw_only=True, tag="close"):
    """Nobody reads it any more; its open questions need no answer."""

    why: str
    by: Caller


class Tell(Post, frozen=True, kw_only=True, tag="tell"):
    """A message for it."""

    message: Message


class Purge(Post, frozen=True, kw_only=True, tag="purge"):
    """Nothing of its Run is kept any more."""


Posts = Bind | Open | Place | Join | Leave | Close | Tell | Purge


def take(box: Mailbox, posts: tuple[Posts, ...], now_ms: int) -> Decision:
    """What these change here; nothing is refused, because all of it has happened."""
    events: list[MailEvent] = []
    for post in posts:
        more = _taken(box, post)
        events += more
        box = fold(box, more, now_ms)
    return Decision(tuple(events))


def _taken(box: Mailbox, post: Posts) -> tuple[MailEvent, ...]:
    match post:
        case Bind():
            return _bound(box, post)
        case Open():
            if box.generation or box.shut is not None:
                return ()
            return (Opened(generation=1, run=post.run, task=post.task, agent=post.agent, host=post.host),)
        case Place():
            host, process = post.host or box.host, post.process or box.process
            if box.shut is not None or (box.host, box.pane, box.process) == (host, post.pane, process):
                return ()
            return (Placed(host=host, pane=post.pane, process=process),)
        case Join():
            outdated = (Outdated(),) if box.last_ready else ()
            return (Joined(dispatch=post.dispatch, agent=post.agent), *outdated) if post.dispatch not in box.members else outdated
        case Leave():
            return (Left(dispatch=post.dispatch),) if post.dispatch in box.members else ()
        case Close():
            closed = tuple(Answered(question=some.id, answer="", by=post.by, closed=True) for some in box.open_questions())
            return (*closed, Shut(why=post.why)) if box.shut is None else closed
        case Tell():
            return arrive(box, post.message).events
        case Purge():
            return (Purged(),)


def _bound(box: Mailbox, bound: Bind) -> tuple[MailEvent, ...]:
    if bound.generation <= box.generation:
        return ()
    if not box.generation:
        reader = bound.reader
        return (Opened(generation=bound.generation, reader=reader, run=bound.run, host=reader.host, pane=reader.pane),)
    fenced = Fenced(generation=bound.generation, reader=bound.reader, before=box.reader)
    if box.wake is None or box.wake.state in ENDED:
        return (fenced,)
    return msgspec.structs.replace(box.wake, state=WakeState.WITHDRAWN, proof="another coordinator took over"), fenced
