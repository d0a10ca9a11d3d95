"""The accountant over a real bus and store: what it hears becomes custody, what is to be done is told to the hosts until it is."""

import asyncio
import signal
from pathlib import Path

import pytest

from accountant_builders import World, added, moved, requested, settled
from builders import NOW_MS, a_status
from custody_builders import A1, PERSON, RUNNER
from support import Deadline, Service
from tocsin.bus.bus import Unavailable
from tocsin.bus.nats_bus import connect
from tocsin.contract.custody import ALL, CustodyState, ListCustodies, Release, Retain, UndoRemoval, WorktreeState
from tocsin.contract.hosting import HostFact, ReleaseTerminal, RemoveWorktree, RestoreWorktree, Saw
from tocsin.contract.messages import State
from tocsin.contract.parties import Caller, Role
from tocsin.contract.run import CoordinatorBound, DispatchState, Receipt, RunPurged, TaskKind, TaskState, Where
from tocsin.contract.subjects import HOST_CMD, HOST_FACT, PANE_STATUS
from tocsin.release_accountant.service import Pace
from tocsin.release_accountant.works import VIEW
from tocsin.store.views import Views

S, W = CustodyState, WorktreeState


@pytest.fixture
async def world(nats_server, bus, store):
    one = World(nats_server.url, bus, store)
    async with one.hands():
        yield one


@pytest.fixture
async def going(world):
    """A world in which an accountant is at work on Run r1 with the Task `build`."""
    async with world.accountant():
        await world.run_says(added(), moved(TaskState.READY))
        yield world


async def test_a_worker_is_kept_while_its_work_is_under_review_and_then_released_with_proof_and_its_worktree_removed(going):
    await going.run_says(added("check", kind=TaskKind.REVIEW, reviews="build"))
    await going.starts()
    await going.run_says(moved(TaskState.REPORTED), settled())
    row = await going.becomes(S.RETAINED)
    assert (row.gate, row.obligation) == ("check", None)
    await going.run_says(moved(TaskState.ACCEPTED), moved(TaskState.ACCEPTED, "check"))
    order = await going.ordered(ReleaseTerminal)
    assert order.order == ReleaseTerminal(pane="p1", process=RUNNER)
    await going.host_says(Saw.ARCHIVED, order.step, detail="/archive/a1", count=9)
    await going.host_says(Saw.TREE_ENDED, order.step, count=2)
    removal = await going.ordered(RemoveWorktree)
    await going.host_says(Saw.WORKTREE_TRASHED, removal.step, detail="/w/.tocsin-trash/build")
    async for _ in Deadline(10, "the worktree is in the trash"):
        row = await going.becomes(S.RELEASED)
        if row.worktree is W.TRASHED:
            break
    assert "2 ended" in row.proof
    assert row.archive == "/archive/a1"
    # And back again.
    await going.ask(UndoRemoval())
    back = await going.ordered(RestoreWorktree)
    assert back.order == RestoreWorktree(path="/w/build", trash="/w/.tocsin-trash/build")


async def test_a_fix_round_in_the_same_pane_takes_the_worker_over_from_the_first_round(going):
    await going.starts()
    await going.run_says(moved(TaskState.REPORTED), settled())
    await going.run_says(moved(TaskState.READY))
    async for _ in Deadline(10, "it is held for the fix round"):
        if (await going.becomes(S.RETAINED)).gate == "fix-round":
            break
    await going.run_says(requested("r1.build.2", pane="p1"))
    assert (await going.becomes(S.REUSED)).handed_to == "r1.build.2"
    later = await going.becomes(S.OWNED, "r1.build.2")
    assert (later.pane, later.process, later.worktree) == ("p1", RUNNER, W.STANDING)
    # What the host says of the terminal's first Dispatch is told to whoever has it now.
    await going.host_says(Saw.HUMAN_KEY)
    await going.becomes(S.TAKEN_OVER, "r1.build.2")


async def test_a_worker_in_somebody_s_own_pane_is_never_ours_to_close(going):
    await going.run_says(requested(A1, pane="somebody's"))
    await going.becomes(S.EXTERNAL)
    await going.run_says(moved(TaskState.FAILED), settled(to=DispatchState.FAILED))
    answer = await going.ask(Release())
    assert (answer.code, going.orders) == ("lifecycle_conflict", [])


async def test_a_worktree_stays_while_another_worker_is_to_work_in_it(going):
    await going.starts()
    await going.run_says(requested("r1.build.2", where=Where.EXISTING, path="/w/build"), settled(to=DispatchState.FAILED))
    order = await going.ordered(ReleaseTerminal)
    await going.host_says(Saw.TREE_ENDED, order.step)
    row = await going.becomes(S.RELEASED)
    assert (row.worktree, "r1.build.2" in row.worktree_why) == (W.KEPT, True)
    await going.host_says(Saw.REFUSED, dispatch="r1.build.2", code="agent_missing")
    removal = await going.ordered(RemoveWorktree)
    assert removal.dispatch == A1


async def test_a_request_is_done_once_and_meets_its_own_receipt(going):
    await going.starts()
    await going.run_says(moved(TaskState.FAILED), settled(to=DispatchState.ABANDONED))
    async for _ in Deadline(10, "it is settled"):
        if (await going.becomes(S.OWNED)).outcome:
            break
    first = await going.ask(Release(), request="once")
    again = await going.ask(Release(), request="once")
    assert (first.duplicate, again.duplicate, again.seq) == (False, True, first.seq)
    other = await going.ask(Release(worktree=False), request="once")
    assert other.code == "request_mismatch"
    assert len([order for order in going.orders if isinstance(order.order, ReleaseTerminal)]) <= 1


async def test_what_comes_twice_is_recorded_once(going):
    await going.starts()
    before = await going.records()
    fact = HostFact(host="h", dispatch=A1, fence=1, step="keys", saw=Saw.HUMAN_KEY, at_ms=NOW_MS, pane="p1")
    for _ in range(3):
        await going.bus.say(HOST_FACT, fact)
    await going.becomes(S.TAKEN_OVER)
    await going.run_says(moved(TaskState.FAILED), settled(to=DispatchState.FAILED))
    await going.run_says(settled(to=DispatchState.FAILED))
    async for _ in Deadline(10, "it is settled"):
        if (await going.row()).outcome:
            break
    assert await going.records() == before + 2


async def test_a_list_shows_first_who_needs_a_decision_and_says_that_it_is_a_page(going):
    for number in (1, 2, 3):
        await going.starts(f"r1.build.{number}")
    await going.run_says(settled("r1.build.2", DispatchState.ABANDONED))
    async for _ in Deadline(10, "it is an obligation"):
        answer = await going.ask(ListCustodies(run="r1", limit=2), ALL)
        if answer.result["obligations"] == 1:
            break
    assert answer.result["rows"][0]["custody"] == "r1.build.2"
    assert (answer.result["total"], len(answer.result["rows"])) == (3, 2)
    rest = await going.ask(ListCustodies(run="r1", limit=2, after=answer.result["next"]), ALL)
    assert (len(rest.result["rows"]), rest.result["next"]) == (1, None)
    owed = await going.ask(ListCustodies(obligations_only=True), ALL)
    assert [row["custody"] for row in owed.result["rows"]] == ["r1.build.2"]


async def test_a_worker_may_not_touch_what_it_does_not_coordinate(going):
    await going.starts()
    worker = Caller(role=Role.WORKER, name="pane", host="h", pane="p7", dispatch="r0.plan.1", vouched=True)
    answer = await going.ask(Retain(reason="mine"), caller=worker)
    assert answer.code == "not_found"
    assert (await going.ask(ListCustodies(), ALL, worker)).result["total"] == 0
    await going.run_says(CoordinatorBound(generation=1, caller=worker))
    async for _ in Deadline(10, "it coordinates"):
        if isinstance(await going.ask(Retain(reason="mine"), caller=worker), Receipt):
            break


async def test_a_silent_host_leaves_the_release_pending_and_its_return_ends_it(world):
    async with world.accountant(Pace(tick_ms=10, look_ms=20, patience_ms=50, again_ms=60_000)):
        await world.run_says(added(), moved(TaskState.READY))
        await world.starts(made=False)
        await world.run_says(moved(TaskState.FAILED), settled(to=DispatchState.FAILED))
        row = await world.becomes(S.RELEASE_PENDING)
        assert row.obligation
        order = await world.ordered(ReleaseTerminal)
        await world.host_says(Saw.ALREADY_ENDED, order.step)
        await world.becomes(S.RELEASED)


async def test_a_worker_may_finish_the_turn_in_which_it_has_reported(going):
    await going.bus.say(PANE_STATUS, a_status(host="h", pane="p1", state=State.WORKING))
    await going.starts()
    await going.run_says(moved(TaskState.REPORTED), moved(TaskState.ACCEPTED), settled())
    await going.becomes(S.RELEASING)
    # Another order goes through meanwhile: this one is not merely late.
    await going.starts("r1.build.2")
    await going.host_says(Saw.HUMAN_KEY, dispatch="r1.build.2")
    await going.becomes(S.TAKEN_OVER, "r1.build.2")
    assert not going.orders
    await going.bus.say(PANE_STATUS, a_status(host="h", pane="p1", state=State.DONE))
    await going.ordered(ReleaseTerminal)


async def test_a_turn_without_an_end_is_waited_for_no_longer_than_its_limit(world):
    async with world.accountant(Pace(tick_ms=10, look_ms=20, finish_ms=50)):
        await world.bus.say(PANE_STATUS, a_status(host="h", pane="p1", state=State.WORKING))
        await world.run_says(added(), moved(TaskState.READY))
        await world.starts()
        await world.run_says(moved(TaskState.FAILED), settled(to=DispatchState.FAILED))
        await world.ordered(ReleaseTerminal)


async def test_what_somebody_asks_to_be_ended_is_ended_at_once(going):
    await going.bus.say(PANE_STATUS, a_status(host="h", pane="p1", state=State.WORKING))
    await going.starts()
    await going.run_says(settled(to=DispatchState.ABANDONED))
    async for _ in Deadline(10, "it is settled"):
        if (await going.row()).outcome:
            break
    await going.ask(Release())
    await going.ordered(ReleaseTerminal)


class Mute:
    """A bus that loses every order."""

    def __init__(self, bus) -> None:
        self._bus = bus

    def __getattr__(self, name):
        return getattr(self._bus, name)

    async def say(self, subject, body, **how):
        if subject is HOST_CMD:
            raise Unavailable("lost")
        return await self._bus.say(subject, body, **how)


async def test_an_order_whose_saying_was_lost_is_said_by_whoever_comes_next(world):
    async with world.accountant(over=Mute):
        await world.run_says(added(), moved(TaskState.READY))
        await world.starts()
        await world.run_says(moved(TaskState.FAILED), settled(to=DispatchState.FAILED))
        await world.becomes(S.RELEASING)
    assert not world.orders
    async with world.accountant():
        await world.ordered(ReleaseTerminal)


async def test_two_replicas_decide_once(world):
    async with world.accountant(), world.accountant():
        await world.run_says(added(), moved(TaskState.READY))
        await world.starts()
        await world.run_says(moved(TaskState.FAILED), settled(to=DispatchState.ABANDONED))
        async for _ in Deadline(10, "it is settled"):
            if (await world.row()).outcome:
                break
        before = await world.records()
        answers = await asyncio.gather(*(world.ask(Release()) for _ in range(6)))
        assert {answer.result["state"] for answer in answers} == {"releasing"}
        assert sum(not answer.result["joined"] for answer in answers) == 1
        assert await world.records() == before + 1
        order = await world.ordered(ReleaseTerminal)
        await world.host_says(Saw.TREE_ENDED, order.step)
        await world.becomes(S.RELEASED)
        assert len([one for one in world.orders if isinstance(one.order, ReleaseTerminal)]) == 1


async def test_a_wiped_store_and_a_wiped_view_of_runs_change_nothing(world, store):
    async with world.accountant():
        await world.run_says(added(), moved(TaskState.READY))
        await world.starts()
    await store.flushall()
    async with world.accountant():
        await world.becomes(S.OWNED)
        await world.run_says(moved(TaskState.REPORTED), settled())
        assert (await world.becomes(S.RETAINED)).gate == "acceptance"


async def test_a_purged_run_leaves_no_custody_behind_that_is_over(going):
    await going.starts(made=False)
    await going.starts("r1.build.2", made=False)
    await going.run_says(moved(TaskState.FAILED), settled(to=DispatchState.FAILED))
    order = await going.ordered(ReleaseTerminal)
    await going.host_says(Saw.TREE_ENDED, order.step)
    await going.becomes(S.RELEASED)
    await going.run_says(RunPurged())
    async for _ in Deadline(10, "it is forgotten"):
        if await going.row() is None:
            break
    assert await going.records() == 1  # that it is forgotten
    assert (await going.row("r1.build.2")).state is S.OWNED


async def test_a_log_of_runs_that_began_anew_leaves_policies_and_reviews_known(nats_server, valkey_server, store, tmp_path):
    """The bus is wiped while the accountant is away: what it knew of the Runs comes from its own view."""
    async with connect(nats_server.url, name="test") as bus:
        world = World(nats_server.url, bus, store)
        async with world.hands(), world.accountant():
            await world.run_says(added(on_settle="retain"), moved(TaskState.READY))
            await world.starts()
            async for _ in Deadline(10, "the view of the Run is written"):
                if any(
                    view.id == "r1" and b'"r1.build.1"' in b"".join(view.parts.values())
                    for view in [v async for v in Views(store, VIEW).all()]
                ):
                    break
    nats_server.end(signal.SIGKILL)
    for file in sorted((nats_server.folder / "data").rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    nats_server.start()
    async with connect(nats_server.url, name="test") as bus:
        world = World(nats_server.url, bus, store)
        async with world.hands(), world.accountant():
            await world.becomes(S.OWNED)
            await world.run_says(moved(TaskState.FAILED), settled())
            assert "on_settle" in (await world.becomes(S.RETAINED)).why


async def test_it_may_be_killed_at_any_moment_of_a_release(nats_server, valkey_server, bus, store, tmp_path: Path):
    world = World(nats_server.url, bus, store)
    service = Service("tocsin.release_accountant", tmp_path / "state", NATS_URL=nats_server.url, REDIS_URL=valkey_server.url)
    async with world.hands():
        with service:
            await world.run_says(added(), moved(TaskState.READY))
            await world.starts()
            service.end(signal.SIGKILL)
            await world.run_says(moved(TaskState.FAILED), settled(to=DispatchState.FAILED))
            service.start()
            order = await world.ordered(ReleaseTerminal)
            service.end(signal.SIGKILL)
            await world.host_says(Saw.TREE_ENDED, order.step, count=1)
            service.start()
            removal = await world.ordered(RemoveWorktree)
            service.end(signal.SIGKILL)
            await world.host_says(Saw.WORKTREE_KEPT, removal.step, code="dirty", detail="1 file not committed")
            service.start()
            async for _ in Deadline(20, "the worktree is kept"):
                row = await world.row()
                if row is not None and row.worktree is W.KEPT:
                    break
            assert (row.state, row.worktree_why) == (S.RELEASED, "1 file not committed")
            assert await world.ask(Release(person=True), caller=PERSON)
            assert service.end() == 0
