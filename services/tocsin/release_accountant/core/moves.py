"""The moves of a custody that several decisions share: what a policy makes of a worker, and how one is closed."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from tocsin.contract.custody import CustodyEvents, MovedTo, WorktreeDecided
from tocsin.contract.hosting import HostFact
from tocsin.contract.parties import Caller
from tocsin.contract.run import DispatchState, OnSettle
from tocsin.release_accountant.core.custody import SERVICE, WORKER_THERE, Custody, S, W, after
from tocsin.release_accountant.core.life import LIFE, Step
from tocsin.release_accountant.core.notices import HANDING_ON, Hold


class Around(NamedTuple):
    """What a decision needs to know beside the custody itself."""

    now_ms: int
    caller: Caller = SERVICE
    workers_there: tuple[str, ...] = ()  # other custodies that are not over and have the same path on the same host
    gate_is_open: bool = False  # the gate that a request names is open
    is_stranger: bool = False  # the caller is a worker, and the Run is not one that it coordinates


def move(custody: Custody, step: Step, why: str, **fields: Any) -> tuple[CustodyEvents, ...]:
    """The move that LIFE knows, or nothing."""
    to = LIFE.get((custody.state, step))
    return () if to is None else (MovedTo(to=to, why=why, **fields),)


def as_before(custody: Custody) -> dict[str, Any]:
    """What a release that goes on keeps."""
    return {"by": custody.by, "person": custody.person, "worktree": custody.removes_worktree}


def tries_again(custody: Custody) -> tuple[str, ...]:
    """The commands for a release that has not come to its end."""
    return (releases(custody), f"tocsin custody show {custody.id}")


def releases(custody: Custody) -> str:
    """The command that releases it."""
    return f"tocsin custody release {custody.id}{' --person' if custody.taken else ''}"


def become(custody: Custody, events: Iterable[CustodyEvents], around: Around) -> Custody:
    """The custody as it will be after `events`."""
    for event in events:
        custody = after(custody, event, around.now_ms)
    return custody


def close(
    custody: Custody, why: str, around: Around, worktree: bool, by: Caller = SERVICE, person: bool = False
) -> tuple[CustodyEvents, ...]:
    """A new attempt to release it, where LIFE allows one. What a person has taken over waits for that person."""
    if custody.taken and not person:
        return ()
    step = Step.PERSON_CLOSES if person else Step.CLOSE
    return move(custody, step, why, by=by, person=person, worktree=worktree, attempt=custody.attempt + 1)


def ended(custody: Custody, proof: str, fact: HostFact, around: Around) -> tuple[CustodyEvents, ...]:
    """Its end is proven: it is released, and its worktree may go if the release says so."""
    released = move(custody, Step.ENDED, "its end is proven", by=custody.by, proof=proof, proof_ms=fact.at_ms)
    return released + worktree_after(custody, become(custody, released, around), around) if released else ()


def worktree_after(before: Custody, released: Custody, around: Around) -> tuple[CustodyEvents, ...]:
    """What becomes of the worktree of a terminal whose end is proven. `before`: as it was when the proof came."""
    if released.worktree is None or released.worktree.state is not W.STANDING:
        return ()
    if released.taken and not before.person:
        return (kept(released, "a person has worked in it"),)
    if released.removes_worktree:
        return worktree_leaves(released, around, before.why)
    return (kept(released, f"nobody has said that it may go: {before.why}"),)


def kept(custody: Custody, why: str, code: str | None = None) -> WorktreeDecided:
    """The worktree stays, for a reason of ours."""
    return WorktreeDecided(what=W.KEPT, why=why, code=code, next=(releases(custody),))


def worktree_leaves(custody: Custody, around: Around, why: str) -> tuple[CustodyEvents, ...]:
    """Have its host examine the worktree, and move it to the trash if the rules allow that; not while another of ours is in it."""
    assert custody.worktree is not None
    if around.workers_there:
        return (kept(custody, f"{', '.join(around.workers_there[:3])} works in it", WORKER_THERE),)
    return (WorktreeDecided(what=W.LEAVING, why=why, by=around.caller, attempt=custody.worktree.attempt + 1),)


def dispose(custody: Custody, hold: Hold | None, around: Around) -> tuple[CustodyEvents, ...]:
    """What the Task's policy makes of a settled worker of which nobody has decided yet.

    Default: kept while its work is under review, then released. What was abandoned was given up as it is, so its
    agent is ended only when somebody says so: until then it is an obligation.
    """
    policy = custody.on_settle
    waits = policy is OnSettle.ASK or (policy is None and custody.outcome == DispatchState.ABANDONED)
    if custody.state not in (S.OWNED, S.EXPECTED, S.RETAINED):
        return ()
    if policy is OnSettle.RETAIN:
        return move(custody, Step.KEEP, "its Task says so: on_settle is retain")
    if waits:
        return move(custody, Step.LET_GO, "nobody has decided yet")
    if hold is not None and (policy is None or hold.gate == HANDING_ON):
        return move(custody, Step.KEEP, hold.why, gate=hold.gate)
    return close(custody, "its Task says so: on_settle is release" if policy else "its work needs it no longer", around, True)


def exists(custody: Custody, around: Around, why: str) -> tuple[CustodyEvents, ...]:
    """What follows when something of it exists: it is owned, and disposed of if its Dispatch is settled already."""
    if custody.state is S.TAKEN_OVER:
        return move(custody, Step.MADE, custody.why, next=custody.next)
    owned = move(custody, Step.MADE, why, gate=custody.gate)
    if not owned or not custody.settled:
        return owned
    hold = Hold(gate=custody.gate, why=f"{custody.gate} is open") if custody.gate else None
    return owned + dispose(become(custody, owned, around), hold, around)


def take_over(custody: Custody, why: str) -> tuple[CustodyEvents, ...]:
    """It is a person's from here on."""
    return move(custody, Step.KEY, why, next=(f"tocsin custody release {custody.id} --person",))
