"""One changed pane in the sorter beside a whole sort, and how it grows with the list.

CPU time, not the clock on the wall: on a busy machine a long sort would wait for its turn, and a short change would not.
"""

import gc
import itertools
import time

from builders import NOW_MS, a_status
from tocsin.cli.bench.measure import Effort, Take, in_turn
from tocsin.cli.bench.rows import Row
from tocsin.contract.ids import worktree_id
from tocsin.contract.messages import PaneStatus, State, WorktreeKnown
from tocsin.sorter.core.attention import Pane
from tocsin.sorter.core.board import Board, pane_key
from tocsin.sorter.core.ranking import Index, Worktree, rank

SIZES = (100, 1_000, 10_000)
PANES = 4
"""In each worktree, as in the measurements from which the figures come."""

STATES = (State.WORKING, State.BLOCKED, State.DONE, State.WAITING)
EACH, WARM_UP = 40, 10
CHANGES = 20
"""Changes of one sample: one alone is too short for the clock."""

STRIDE = 7919
"""Prime to all sizes: changes fall all over the list."""


class List:
    """A board of so many worktrees with four panes in each, and the bare order of the same."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.board = Board("default", NOW_MS)
        self.moments = itertools.count(1)
        self.picks = itertools.count()
        for number in range(size):
            path = f"/repo/{number}"
            known = WorktreeKnown(
                worktree=worktree_id("h", path), workspace="default", host="h", path=path, name=f"tree {number}", at_ms=NOW_MS
            )
            self.board.hear_worktree(known, NOW_MS, NOW_MS)
            for pane in range(PANES):
                self.hear(self.status(number, pane))
        self.board.refresh(NOW_MS, NOW_MS)
        self.worktrees, self.panes = self._held()
        self.index = self._indexed()

    def _held(self) -> tuple[list[Worktree], dict[str, tuple[Pane, ...]]]:
        index = self.board._index
        worktrees = [index.worktree(one) for one in sorted(index.order())]
        return worktrees, {worktree.id: tuple(index.panes(worktree.id)) for worktree in worktrees}

    def _indexed(self) -> Index:
        index = Index(NOW_MS)
        for worktree in self.worktrees:
            index.put_worktree(worktree)
            for pane in self.panes[worktree.id]:
                index.put_pane(worktree.id, pane)
        return index

    def status(self, number: int, pane: int) -> PaneStatus:
        """What a pane says next."""
        moment = next(self.moments)
        return a_status(
            pane=f"p{number}.{pane}", cwd=f"/repo/{number}", session=f"s{number}.{pane}", seq=moment, state=STATES[moment % len(STATES)],
            since_ms=NOW_MS + moment, updated_ms=NOW_MS + moment,
        )  # fmt: skip

    def hear(self, status: PaneStatus) -> None:
        """The board is told."""
        self.board.hear_status(status, status.updated_ms, status.updated_ms)

    def next_statuses(self) -> list[PaneStatus]:
        """News of panes all over the list."""
        return [self.status(next(self.picks) * STRIDE % self.size, number % PANES) for number in range(CHANGES)]

    def change(self) -> Take:
        """One pane changes: heard, placed, put in order, and its row made anew."""

        async def take() -> int:
            statuses = self.next_statuses()
            began_ns = time.thread_time_ns()
            for status in statuses:
                self.hear(status)
                self.board.refresh(status.updated_ms, status.updated_ms)
            return (time.thread_time_ns() - began_ns) // CHANGES

        return take

    def place(self) -> Take:
        """The same for the order alone, which is what a sort makes."""

        async def take() -> int:
            statuses = self.next_statuses()
            news = [(worktree_id("h", status.cwd), self.board._pane(pane_key(status.host, status.pane), status)) for status in statuses]
            began_ns = time.thread_time_ns()
            for worktree, pane in news:
                self.index.put_pane(worktree, pane)
            taken_ns = time.thread_time_ns() - began_ns
            self.index.changed.clear()
            self.index.moved.clear()
            return taken_ns // CHANGES

        return take

    def sort(self) -> Take:
        """All worktrees are put in order from nothing."""

        async def take() -> int:
            began_ns = time.thread_time_ns()
            rank(self.worktrees, self.panes, NOW_MS, lambda worktree: worktree.id)
            return time.thread_time_ns() - began_ns

        return take

    def remake(self) -> Take:
        """All worktrees are put in order from nothing, and all rows are made anew."""
        sort = self.sort()

        async def take() -> int:
            taken_ns = await sort()
            self.board._shown.clear()
            self.board._index.changed.update(self.board.order())
            began_ns = time.thread_time_ns()
            self.board.refresh(NOW_MS, NOW_MS)
            return taken_ns + time.thread_time_ns() - began_ns

        return take


async def measure(effort: Effort) -> list[Row]:
    """The rows on the sorter's core."""
    few, some, many = map(List, SIZES)
    again = List(some.size)
    gc.collect()
    gc.freeze()  # four lists lie in this process: collecting the others would be charged to the long sort
    cases = {
        "place": some.place(), "few": few.change(), "some": some.change(), "many": many.change(), "sort": some.sort(),
        "remake": again.remake(),
    }  # fmt: skip
    found = await in_turn(cases, effort.of(EACH), effort.of(WARM_UP), effort.rounds)
    sort, limits = "one full sort", (1 / 200, 1 / 400)
    return [
        Row("place", "one changed pane, 1,000 worktrees: its place in the order (CPU)", found["place"], sort, found["sort"], *limits),
        Row(
            "place-and-row", "one changed pane, 1,000 worktrees, with its row made anew (CPU)", found["some"],
            "one full sort, with all rows made anew", found["remake"], *limits,
        ),
        Row("growth", "one changed pane, 10,000 worktrees, with its row (CPU)", found["many"], "100 worktrees", found["few"], 8, 5),
    ]  # fmt: skip
