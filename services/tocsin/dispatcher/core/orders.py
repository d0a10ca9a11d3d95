"""Which orders an attempt's host must have, by what is on record. Saying one twice does no harm: hosts know (dispatch, fence, step)."""

from collections.abc import Iterator

from tocsin.contract.hosting import HostCommand, StartAgent, StopAgent
from tocsin.contract.run import DispatchState
from tocsin.dispatcher.core.observe import START, STOP
from tocsin.dispatcher.core.run import Dispatch, Run

START_MS_MAX = 600_000
"""A start that no host has carried out for so long is not wanted any more: its coordinator has gone on."""


def orders_of(run: Run, now_ms: int) -> Iterator[HostCommand]:
    """The orders that hosts must have for a Run and may not have yet."""
    for name in (*run.unsettled, *run.withdrawn):
        yield from _orders(run, run.dispatches[name], now_ms)


def _orders(run: Run, dispatch: Dispatch, now_ms: int) -> Iterator[HostCommand]:
    is_fresh = now_ms < dispatch.requested_ms + START_MS_MAX
    match dispatch.state:
        case DispatchState.REQUESTED | DispatchState.CONTACT_LOST if not dispatch.touched:
            order = StartAgent(run=run.id, task=dispatch.task, launch=dispatch.launch, brief=dispatch.brief)
            yield HostCommand(
                host=dispatch.launch.host, dispatch=dispatch.id, fence=dispatch.fence, step=START, order=order, at_ms=now_ms,
                expires_ms=dispatch.requested_ms + START_MS_MAX,
            )  # fmt: skip
        case DispatchState.STOPPING:
            yield _stop(dispatch, dispatch.stops, now_ms)
        case DispatchState.SUPERSEDED | DispatchState.ABANDONED if is_fresh:
            # Its start may still lie with a host that is away: it must not begin when that one is back.
            yield _stop(dispatch, 0, now_ms)


def _stop(dispatch: Dispatch, number: int, now_ms: int) -> HostCommand:
    process = dispatch.processes[-1] if dispatch.processes else None
    return HostCommand(
        host=dispatch.launch.host, dispatch=dispatch.id, fence=dispatch.fence, step=f"{STOP}.{number}", at_ms=now_ms,
        order=StopAgent(pane=dispatch.pane, process=process),
    )  # fmt: skip
