"""Runs as a family of the ledger: their log, and their views in the store."""

from tocsin.contract.run import RunRecorded
from tocsin.contract.subjects import RUN_EVENT
from tocsin.dispatcher.core.reads import is_unresolved
from tocsin.dispatcher.core.run import DERIVED, Run, blank, derive, evolve, refilled
from tocsin.ledger import Family

FAMILY: Family[Run, RunRecorded] = Family(
    RUN_EVENT,
    Run,
    blank,
    evolve,
    derived=DERIVED,
    derive=derive,
    unresolved=is_unresolved,
    over=lambda run: run.purged,
    refilled=refilled,
)
