"""What is still owed: settled workers without a disposition, each with the command that gives it one."""

from typing import NamedTuple

from tocsin.contract.custody import CustodyState as S
from tocsin.release_accountant.core.custody import Custody
from tocsin.release_accountant.core.moves import releases


class Obligation(NamedTuple):
    """Why a worker still needs a disposition, and what gives it one."""

    why: str
    next: tuple[str, ...]


def obligation(custody: Custody) -> Obligation | None:
    """What is owed for this worker; None when it has a disposition, or its Dispatch is not settled.

    Dispositions are reused, retained, taken over by a person, released with proof, and not ours.
    """
    release = releases(custody)
    decide = (release, f"tocsin custody retain {custody.id} --reason WHY")
    match custody.state:
        case S.RELEASE_UNKNOWN:
            return Obligation(custody.why, custody.next or (release,))
        case S.RELEASE_PENDING:
            return Obligation(custody.why, ("wait until its host is back", "tocsin doctor"))
        case S.RELEASING:
            return Obligation("its end is being proven", (f"tocsin custody show {custody.id}",))
        case S.OWNED if custody.settled:
            return Obligation(f"its Dispatch is {custody.outcome}, and nobody has decided what becomes of its worker", decide)
        case S.EXPECTED if custody.settled:
            return Obligation(f"its Dispatch is {custody.outcome}, and {custody.host} has not told what it has made of it", (release,))
    return None
