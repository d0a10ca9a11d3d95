"""Event-sourced aggregates: an append-only log with optimistic concurrency on the bus, and its view in the store.

How a service uses it (`RUN_EVENT` stands for any subject that is kept as a ledger):

    # core/run.py, pure: a msgspec Struct (frozen) whose fields are plain values and `Table`s of plain values
    class Run(msgspec.Struct, frozen=True, kw_only=True):
        id: str
        tasks: Table[str, Task] = msgspec.field(default_factory=Table)
    def blank(run: str) -> Run: ...                        # nothing has been recorded yet
    def evolve(run: Run, recorded: RunRecorded) -> Run: ... # the state after one record: all of its events
    # store.py
    FAMILY = Family(RUN_EVENT, Run, blank, evolve)
    # service.py
    async with Ledger(bus, views, FAMILY, clock.now_ms, log) as ledger:   # views = Views(redis, RUN_EVENT.name)
        await ledger.ready()
        answer = await ledger.run("r1", decide, request=..., caller=..., payload=command.ask, at_ms=...)

`decide(state) -> Decision | Refusal` is pure and may be called more than once (`tocsin.contract.decision`). A `Decision`
without events is a success that records nothing. `run` finds the receipt of a repeated request, decides, appends with the expected last
sequence, and answers a Receipt or a Refusal; it never raises for a bus that is away (code `unavailable`: the same request
may come again). A request id of "" keeps no receipt: for commands that may repeat by nature (heartbeats).

Receipts are kept by the ledger beside the state; families do not model them. `Restored` must be in the union of the
family's events (`from tocsin.contract.run import Restored`); the ledger writes and folds it, `evolve` never sees it.

State of all aggregates is in memory: `ledger.state(id)` as it stands here, `await ledger.fresh(id)` as the log has it
now (None: nothing recorded), `ledger.states()` all. `ledger.changes()` iterates (id, record, seq, before, after) for every
record that this replica folds, whoever wrote it, and nothing for what was there before `ready()`.
"""

from tocsin.contract.decision import Decision
from tocsin.ledger.family import Family
from tocsin.ledger.ledger import Change, Ledger

__all__ = ["Change", "Decision", "Family", "Ledger"]
