"""What is counted about the list, to judge its order by. Local: it stays on this bus. No ids, no paths, no names of worktrees."""

from tocsin.contract.ids import WorkspaceId
from tocsin.contract.messages import AttentionCause, Body, Part


class Counted(Part, frozen=True, kw_only=True, tag_field="event"):
    """One thing counted."""


class ClassDistribution(Counted, frozen=True, kw_only=True, tag="class_distribution"):
    """How many worktrees stand in each class: with none in 1 to 3, too few agents report. At most every 30 s, while a viewer sorts smart."""

    class1: int = 0
    class2: int = 0
    class3: int = 0
    class4: int = 0
    total: int = 0


class Class1Promotion(Counted, frozen=True, kw_only=True, tag="class_1_promotion"):
    """A worktree has moved into class 1. Many by title: agents there do not report."""

    cause: AttentionCause


class SmartToRecentSwitch(Counted, frozen=True, kw_only=True, tag="smart_to_recent_switch"):
    """A viewer has left the order by attention for the latest first."""


AnyCounted = ClassDistribution | Class1Promotion | SmartToRecentSwitch


class TelemetryCounted(Body, frozen=True, kw_only=True):
    """Something about the list was counted. Each console counts for its own viewers."""

    workspace: WorkspaceId
    at_ms: int
    counted: AnyCounted
