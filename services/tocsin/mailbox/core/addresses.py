"""Addresses: `run:<id>` is a coordinator's mailbox, `dispatch:<id>` a worker's, `@...` a group of workers of one Run."""

from tocsin.contract.mail import DISPATCH_MARK, GROUP_MARK, RUN_MARK
from tocsin.contract.messages import State
from tocsin.contract.parties import Caller, Role

PERSON = "person"
"""The address of whoever has the command credential and owns no Run: it can send, and has no mailbox."""

EVERYONE = f"{GROUP_MARK}all"
IDLE = f"{GROUP_MARK}idle"

AT_REST = frozenset({State.IDLE, State.DONE})


def of_run(run: str) -> str:
    """The address of a Run's coordinator."""
    return RUN_MARK + run


def of_dispatch(dispatch: str) -> str:
    """The address of a Dispatch's worker."""
    return DISPATCH_MARK + dispatch


def run_in(address: str) -> str | None:
    """The Run that an address belongs to; a Dispatch names it in front of its first dot. None for a group or anything else."""
    if address.startswith(RUN_MARK):
        return address.removeprefix(RUN_MARK) or None
    if address.startswith(DISPATCH_MARK):
        return address.removeprefix(DISPATCH_MARK).partition(".")[0] or None
    return None


def dispatch_in(address: str) -> str | None:
    """The Dispatch whose mailbox an address is, or None."""
    return address.removeprefix(DISPATCH_MARK) or None if address.startswith(DISPATCH_MARK) else None


def is_group(address: str) -> bool:
    """Whether it is a group."""
    return address.startswith(GROUP_MARK)


def is_worker(caller: Caller) -> bool:
    """Whether the machine vouches that the worker of a Dispatch asks."""
    return caller.vouched and caller.dispatch is not None


def sender_of(caller: Caller, run: str | None) -> str:
    """The address that a message of `caller` comes from; `run`: the Run that it coordinates, if any."""
    if is_worker(caller):
        return of_dispatch(caller.dispatch or "")
    return of_run(run) if run is not None and caller.role is not Role.PERSON else PERSON


def asker_of(question: str) -> str | None:
    """The mailbox of who asked a question: its id begins with the Dispatch. None when it is no id of a question."""
    dispatch, mark, number = question.rpartition(".q")
    return of_dispatch(dispatch) if mark and dispatch and number.isalnum() else None
