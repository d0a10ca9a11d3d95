"""The titles that a terminal showed: numbered, the last few kept, and no flood from spinners."""

import re
from dataclasses import dataclass

from tocsin.agents.titles import GLYPH, SELECTORS
from tocsin.contract.messages import Reading, Titled

TITLES_MAX = 8
"""Titles kept per pane: more than a reader can miss between two polls, few enough to send each time."""

TITLE_CHARS_MAX = 300
"""Longer titles lose their middle: the state stands at the start, the folder at the end."""

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_STATUS = re.compile(rf"^(?:\[ [!.] \] Action Required|{GLYPH})+\s*")
"""What agents put in front of a title and change without saying anything new: spinner frames, blinking marks."""


@dataclass(frozen=True, slots=True)
class TitleLog:
    """What a pane's title has been in this life of pane-host."""

    titles: tuple[Titled, ...] = ()
    reading: Reading | None = None
    plain: str = ""


def shown(title: str) -> str:
    """`title` as it may travel: no control characters, no half characters, no outer blanks, at most TITLE_CHARS_MAX long."""
    clean = _CONTROLS.sub("\ufffd", title).strip()
    if len(clean) <= TITLE_CHARS_MAX:
        return clean
    half = (TITLE_CHARS_MAX - 1) // 2
    return f"{clean[:half]}…{clean[-half:]}"


def plain(title: str) -> str:
    """`title` without the status in front of it, so that two frames of one spinner are equal."""
    return _STATUS.sub("", SELECTORS.sub("", title)).strip()


def noted(log: TitleLog, title: str, reading: Reading, at_ms: int) -> TitleLog:
    """The log with `title` in it; the same object when it says nothing new.

    `reading` is what the title says of the agent that runs there. A frame of the same spinner is no new title: what
    stands keeps the moment at which it began. Source: facts on titles, section 5 (compare states, not texts).
    """
    title = shown(title)
    bare = plain(title)
    if log.titles and (reading, bare) == (log.reading, log.plain):
        return log
    number = log.titles[-1].number + 1 if log.titles else 1
    titles = (*log.titles, Titled(number=number, text=title, at_ms=at_ms))[-TITLES_MAX:]
    return TitleLog(titles, reading, bare)
