"""Where git, disk, processes, tmux and the ledger disagree, one case a mismatch; and what is none."""

import pytest

from builders import NOW_MS
from custody_builders import RUNNER
from tocsin.contract.custody import CustodyRow, CustodyState, WorktreeState
from tocsin.contract.messages import Process
from tocsin.release_accountant.core.audit import Checkout, Ground, Kind, Marked, Shell, audit

S, W = CustodyState, WorktreeState
REPO, PATH, TRASH = "/src/app", "/src/app-worktrees/build", "/src/app-worktrees/.tocsin-trash/build"
NINE_S_AGO = Process(pid=4712, started_ms=NOW_MS - 9_000, boot="b1")
HELPER = Marked(NINE_S_AGO, "mcp-db", "r1.build.1")


def a_row(**fields):
    """A worker that runs on host h in a worktree that was made for it."""
    defaults = {
        "custody": "r1.build.1",
        "run": "r1",
        "task": "build",
        "state": S.OWNED,
        "since_ms": NOW_MS,
        "why": "its terminal was made on h",
        "host": "h",
        "pane": "p1",
        "process": RUNNER,
        "path": PATH,
        "worktree": W.STANDING,
    }
    return CustodyRow(**(defaults | fields))


def a_ground(**fields):
    """A machine on which all of `a_row` is as the ledger has it."""
    defaults = {
        "host": "h",
        "boot": "b1",
        "shells": [Shell("p1", "/tmp/tmux-1/tocsin %1", RUNNER, "r1.build.1")],
        "marked": [Marked(RUNNER, "claude", "r1.build.1")],
        "running": [RUNNER],
        "checkouts": {REPO: Checkout(REPO, REPO), PATH: Checkout(PATH, REPO, dispatch="r1.build.1")},
        "folders": {PATH},
    }
    return Ground(**(defaults | fields))


NOTHING = {"shells": [], "marked": [], "running": []}


def released(**fields):
    defaults = {"state": S.RELEASED, "outcome": "succeeded", "proof": "tree ended", "worktree": W.TRASHED, "trash": TRASH}
    return a_row(**(defaults | {"worktree_until_ms": NOW_MS + 1} | fields))


CASES = {
    "all is as the ledger has it": ([a_row()], a_ground(), []),
    "a settled worker without a disposition": (
        [a_row(outcome="succeeded", obligation="nobody has decided", next=("tocsin custody release r1.build.1",))],
        a_ground(),
        [(Kind.OBLIGATION, "r1.build.1", "tocsin custody release r1.build.1")],
    ),
    "an obligation on another machine": (
        [a_row(host="other", state=S.RELEASE_PENDING, outcome="failed", obligation="other does not answer", next=("tocsin doctor",))],
        a_ground(),
        [(Kind.OBLIGATION, "r1.build.1", "tocsin doctor")],
    ),
    "its terminal is gone, and its dispatch is not settled": (
        [a_row()], a_ground(**NOTHING), [(Kind.TERMINAL_GONE, "r1.build.1", "tocsin worker show r1.build.1")],
    ),
    "a retained terminal is gone": (
        [a_row(state=S.RETAINED, outcome="succeeded")],
        a_ground(**NOTHING),
        [(Kind.TERMINAL_GONE, "r1.build.1", "tocsin custody release r1.build.1")],
    ),
    "a person's terminal is gone": (
        [a_row(state=S.TAKEN_OVER, outcome="succeeded")],
        a_ground(**NOTHING),
        [(Kind.TERMINAL_GONE, "r1.build.1", "tocsin custody release r1.build.1 --person")],
    ),
    "its process number belongs to another process now": (
        [a_row(state=S.RETAINED, outcome="succeeded")],
        a_ground(marked=[], running=[Process(pid=RUNNER.pid, started_ms=RUNNER.started_ms + 60_000, boot="b1")]),
        [(Kind.TERMINAL_GONE, "r1.build.1", "tocsin custody release r1.build.1")],
    ),
    "its machine has started anew": (
        [a_row(state=S.RETAINED, outcome="succeeded")],
        a_ground(boot="b2", **NOTHING),
        [(Kind.TERMINAL_GONE, "r1.build.1", "tocsin custody release r1.build.1")],
    ),
    "its start time was measured a little differently": (
        [a_row()], a_ground(running=[Process(pid=RUNNER.pid, started_ms=RUNNER.started_ms + 40, boot="b1")]), [],
    ),
    "what its agent had started lives (H06)": (
        [a_row(outcome="failed")],
        a_ground(shells=[], running=[], marked=[HELPER]),
        [(Kind.LEFT_BEHIND, "r1.build.1", "tocsin custody release r1.build.1")],
    ),
    "something of a released worker lives": (
        [released()],
        a_ground(shells=[], running=[], marked=[HELPER], folders={TRASH}),
        [(Kind.ALIVE_AFTER_RELEASE, "r1.build.1", "tocsin custody release r1.build.1 --again")],
    ),
    "what carries the mark of a terminal that was handed on is its later owner's": (
        [
            a_row(state=S.REUSED, outcome="succeeded", handed_to="r1.build.2", worktree=None),
            a_row(custody="r1.build.2", state=S.OWNED),
        ],
        a_ground(), [],
    ),
    "a terminal of ours of which no ledger knows": (
        [], a_ground(checkouts={}), [(Kind.UNOWNED_TERMINAL, "p1", "tmux -S /tmp/tmux-1/tocsin capture-pane -p -t %1")],
    ),
    "a process of ours of which no ledger knows": (
        [], a_ground(shells=[], running=[], marked=[HELPER], checkouts={}), [(Kind.UNOWNED_PROCESS, "r1.build.1", "kill 4712")],
    ),
    "somebody's own terminal": ([], a_ground(shells=[Shell("p9", "s %9", RUNNER, None)], marked=[], checkouts={}), []),
    "its worktree is not there": (
        [released(worktree=W.KEPT)],
        a_ground(**NOTHING, folders=set()),
        [(Kind.WORKTREE_MISSING, PATH, "tocsin custody release r1.build.1")],
    ),
    "git does not know its worktree": (
        [a_row()], a_ground(checkouts={REPO: Checkout(REPO, REPO)}), [(Kind.WORKTREE_UNLISTED, PATH, f"ls -la {PATH}")],
    ),
    "a worktree that nobody has decided about": (
        [released(worktree=W.STANDING)],
        a_ground(**NOTHING),
        [(Kind.WORKTREE_LEFT, PATH, "tocsin custody release r1.build.1")],
    ),
    "a worktree that is kept for a reason": ([released(worktree=W.KEPT, worktree_why="3 files")], a_ground(**NOTHING), []),
    "something is where a purged worktree was": (
        [released(worktree=W.PURGED)], a_ground(**NOTHING), [(Kind.WORKTREE_LEFT, PATH, f"ls -la {PATH}")],
    ),
    "another attempt has its worktree where a purged one was": (
        [released(worktree=W.PURGED, process=NINE_S_AGO), a_row(custody="r1.build.2")], a_ground(marked=[Marked(RUNNER, "claude", "r1.build.2")]), [],
    ),
    "a worktree of ours of which no ledger knows": (
        [], a_ground(**NOTHING), [(Kind.WORKTREE_UNOWNED, PATH, f"git -C {PATH} status")],
    ),
    "git lists what is not there": (
        [],
        a_ground(**NOTHING, checkouts={PATH: Checkout(PATH, REPO, prunable=True)}),
        [(Kind.WORKTREE_PRUNABLE, PATH, f"git -C {REPO} worktree prune -v")],
    ),
    "a worktree in the trash": ([released()], a_ground(**NOTHING, folders={TRASH}, checkouts={}), []),
    "the trash has lost a worktree": (
        [released()], a_ground(**NOTHING, folders=set()), [(Kind.TRASH_MISSING, TRASH, "tocsin custody undo r1.build.1")],
    ),
    "the trash keeps a worktree for too long": (
        [released(worktree_until_ms=NOW_MS)], a_ground(**NOTHING, folders={TRASH}), [(Kind.TRASH_OVERDUE, TRASH, "tocsin doctor")],
    ),
    "nothing could be looked into": (
        [a_row(), released(custody="r1.fix.1")],
        a_ground(shells=None, marked=None, running=None, checkouts=None, folders={PATH, TRASH}), [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_every_mismatch_is_named_with_the_command_that_resolves_it(name):
    rows, ground, expected = CASES[name]
    assert [(one.kind, one.what, one.next[0]) for one in audit(rows, ground, NOW_MS)] == expected


def test_every_kind_of_mismatch_has_its_case():
    assert {kind for _, _, expected in CASES.values() for kind, _, _ in expected} == set(Kind)


def test_what_was_left_behind_is_listed_with_its_age():
    (found,) = audit([a_row(outcome="failed")], a_ground(shells=[], running=[], marked=[HELPER]), NOW_MS)
    assert "mcp-db 4712, 9 s old" in found.why
