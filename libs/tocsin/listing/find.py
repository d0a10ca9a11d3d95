"""Which row does somebody mean? By exact names for commands that must not guess, by a few letters for a jump."""

from collections.abc import Iterable, Sequence

from tocsin.contract.messages import Row
from tocsin.contract.refusals import Code, Refusal


def resolve(rows: Sequence[Row], named: str) -> Row | Refusal:
    """The worktree that `named` means: its id, its name, or the beginning of either, if only one fits. Refuses: not_found."""
    for fits in (
        [row for row in rows if row.id == named],
        [row for row in rows if row.name == named],
        [row for row in rows if row.id.startswith(named) or row.name.startswith(named)],
    ):
        if len(fits) == 1:
            return fits[0]
        if fits:
            several = ", ".join(clean(row.id) for row in fits[:5])
            return Refusal(Code.NOT_FOUND, f"{clean(named)} may be any of {len(fits)}: {several}")
    return Refusal(Code.NOT_FOUND, f"no worktree is called {clean(named)}")


def clean(text: str) -> str:
    """Text that a terminal or a log may show: names of branches and folders may hold anything."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def grade(text: str, query: str) -> int:
    """How well `text` fits, 0 best: equal, begins so, contains it, has its letters in order; 4 not at all. Case does not count."""
    text, query = text.casefold(), query.casefold()
    if text == query:
        return 0
    if text.startswith(query):
        return 1
    if query in text:
        return 2
    letters = iter(text)
    return 3 if all(letter in letters for letter in query) else 4


def choose(rows: Iterable[Row], query: str) -> Row | None:
    """The best fit by name, branch or id; of equal fits the one that most needs a person. None: nothing fits."""
    graded = [(min(grade(text, query) for text in (row.name, row.branch or row.name, row.id)), row.rank, row) for row in rows]
    best = min(graded, key=lambda one: one[:2], default=None)
    return best[2] if best is not None and best[0] < 4 else None
