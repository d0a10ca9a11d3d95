"""What our own services tell a custody, beside the requests of callers (`contract/custody.py`): observed or recorded, never wished."""

from tocsin.contract.hosting import HostFact
from tocsin.contract.ids import HostId, PaneId
from tocsin.contract.messages import Part, Process
from tocsin.contract.run import OnSettle


class Notice(Part, frozen=True, kw_only=True, tag_field="notice"):
    """Something that a custody is told."""


class Hold(Part, frozen=True, kw_only=True):
    """What holds a settled worker. `gate`: a review Task, a gate, or one of the words of `work.py`."""

    gate: str
    why: str


HANDING_ON = "handing-on"
"""The gate of a terminal that an attempt was requested for: it goes to that one, whatever the policy."""


class Requested(Notice, frozen=True, kw_only=True, tag="requested"):
    """Its Dispatch was requested. `path`: where it is to work, as far as the request says that."""

    run: str
    task: str
    fence: int
    host: HostId
    path: str | None = None


class Inherits(Notice, frozen=True, kw_only=True, tag="inherits"):
    """It gets the terminal of an earlier Dispatch, with its worktree and whose it is."""

    earlier: str
    host: HostId
    pane: PaneId
    process: Process | None
    path: str
    worktree_made: bool
    branch: str | None
    taken_over: bool


class WorksElsewhere(Notice, frozen=True, kw_only=True, tag="works_elsewhere"):
    """It works in a terminal that was not made by us."""

    host: HostId
    pane: PaneId


class HandedOn(Notice, frozen=True, kw_only=True, tag="handed_on"):
    """A later Dispatch gets its terminal."""

    dispatch: str


class HasSettled(Notice, frozen=True, kw_only=True, tag="has_settled"):
    """Its Dispatch has its outcome. `hold`: what holds its worker now."""

    host: HostId
    outcome: str
    on_settle: OnSettle | None
    hold: Hold | None


class HoldChanged(Notice, frozen=True, kw_only=True, tag="hold_changed"):
    """What holds its worker now; None: nothing does any more."""

    hold: Hold | None


class Observed(Notice, frozen=True, kw_only=True, tag="observed"):
    """What its host has seen."""

    fact: HostFact


class HostSilent(Notice, frozen=True, kw_only=True, tag="host_silent"):
    """Its host has not answered the order of this attempt."""

    attempt: int


class TimePassed(Notice, frozen=True, kw_only=True, tag="time_passed"):
    """A time that was given has passed. `hold`: what holds its worker now."""

    hold: Hold | None


class PlaceFree(Notice, frozen=True, kw_only=True, tag="place_free"):
    """Nobody else works in its worktree any more."""


class RunPurged(Notice, frozen=True, kw_only=True, tag="run_purged"):
    """Nothing of its Run is kept any more."""


Notices = (
    Requested | Inherits | WorksElsewhere | HandedOn | HasSettled | HoldChanged | Observed | HostSilent | TimePassed | PlaceFree | RunPurged
)
