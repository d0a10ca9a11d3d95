"""May a worktree go? What was found out about it comes in, a reason to keep it comes out, or none.

Every question has three answers: yes, no, and nobody knows. What nobody knows counts against removal.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from tocsin.contract.subjects import DAY_S

KEEP_MS = 7 * DAY_S * 1000
"""How long a removed worktree can be brought back."""

SHOWN_MAX = 20
"""Files and commits that a reason names; it always counts all."""


class Keep(StrEnum):
    """Why a worktree stays."""

    NOT_THERE = "not_there"
    NOT_OURS = "not_ours"
    OTHER_BRANCH = "other_branch"
    LOCKED = "locked"
    UNKNOWN = "unknown"
    DIRTY = "dirty"
    UNMERGED = "unmerged"
    IN_USE = "in_use"
    CHANGED = "changed"  # after it was looked at
    CANNOT_MOVE = "cannot_move"


@dataclass(frozen=True, kw_only=True)
class Examined:
    """What was found. None: it could not be found out."""

    path: str
    there: bool = True
    ours: bool = False  # our mark lies in its own git folder
    branch: str | None = None  # what it is on now; None: a commit
    made_branch: str | None = None  # what it was made for
    locked: str | None = None  # somebody's reason
    under_way: str | None = None  # a merge, rebase, bisect ... that is not finished
    files: Sequence[str] | None = None  # changed and untracked ones
    commits: Sequence[str] | None = None  # that no other branch, tag or remote has
    merged: bool | None = False  # the content of those commits is in its base all the same (rebased or squashed)
    users: Sequence[str] | None = None  # who is in it: panes and processes


@dataclass(frozen=True)
class Kept:
    """A worktree stays: why, in words for a person, and the commands that would resolve it."""

    code: Keep
    why: str
    next: tuple[str, ...] = ()


def _some(things: Sequence[str]) -> str:
    rest = len(things) - SHOWN_MAX
    return ", ".join(things[:SHOWN_MAX]) + (f" and {rest} more" if rest > 0 else "")


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def reason_to_keep(found: Examined) -> Kept | None:
    """Why the worktree must stay, the first that applies; None when it may go.

    Source: README, decision on removal: only ours, clean, nothing unpushed or unmerged, nobody in it; unknown counts as dirty.
    """
    quoted = f"'{found.path}'"
    if not found.there:
        return Kept(Keep.NOT_THERE, "there is no worktree at that path any more")
    if not found.ours:
        return Kept(Keep.NOT_OURS, "Tocsin did not make it", (f"git worktree remove {quoted}",))
    if found.branch != found.made_branch:
        now = found.branch or "no branch"
        return Kept(Keep.OTHER_BRANCH, f"it was made for {found.made_branch} and is on {now}", (f"git -C {quoted} log --oneline -5",))
    if found.locked is not None:
        return Kept(Keep.LOCKED, f"somebody has locked it: {found.locked or 'no reason given'}", (f"git worktree unlock {quoted}",))
    if found.users is None:
        return Kept(Keep.UNKNOWN, "who is in it could not be found out: unknown counts as in use", ("tocsin doctor",))
    if found.users:
        return Kept(Keep.IN_USE, f"in use by {_some(found.users)}", ("tocsin worker list", "tocsin ls"))
    if found.under_way is not None:
        return Kept(Keep.DIRTY, f"a {found.under_way} is not finished", (f"git -C {quoted} status",))
    if found.files is None or found.commits is None:
        what = "its files" if found.files is None else "its commits"
        return Kept(Keep.UNKNOWN, f"git did not tell the state of {what}: unknown counts as dirty", (f"git -C {quoted} status",))
    if not found.files and (not found.commits or found.merged is True):
        return None
    lost, resolve = [], []
    if found.files:
        lost.append(f"{_count(len(found.files), 'file')} not committed ({_some(found.files)})")
        resolve.append(f"git -C {quoted} status")
    if found.commits and found.merged is not True:
        doubt = " (whether its content was merged could not be found out)" if found.merged is None else ""
        lost.append(
            f"{_count(len(found.commits), 'commit')} that {'exists' if len(found.commits) == 1 else 'exist'} nowhere else ({_some(found.commits)}){doubt}"
        )
        resolve.append(f"git -C {quoted} push -u origin {found.branch}" if found.branch else f"git -C {quoted} branch NAME")
    code = Keep.DIRTY if found.files else Keep.UNMERGED
    return Kept(code, "; ".join(lost), tuple(resolve))
