"""Every metric: its name, what it counts, its labels and who says it. No other file spells one.

`tocsin metrics` prints them as the page docs/metrics.md. Add metrics; never rename one or give it another meaning: somebody's
alarm is built on it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, get_args

from tocsin.contract.custody import CustodyState, CustodyVerb
from tocsin.contract.hosting import HostOrders, Saw
from tocsin.contract.mail import MailVerb, Rung, WakeState
from tocsin.contract.messages import AttentionCause, State
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.run import DispatchState, Receipt, RunVerb, TaskState
from tocsin.contract.subjects import Party
from tocsin.contract.tally import Label, Metric, Sort, Tally

INGEST, STATUS, SORTER, PANE_HOST = Party.HOOK_INGEST, Party.STATUS_STORE, Party.SORTER, Party.PANE_HOST
DISPATCHER, MAILBOX, ACCOUNTANT, CONSOLE = Party.DISPATCHER, Party.MAILBOX, Party.ACCOUNTANT, Party.CONSOLE
COMMANDED = (DISPATCHER, MAILBOX, ACCOUNTANT)
EVERY = (Party.ANY_SERVICE,)

QUICK_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0)
CHAIN_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


def tag(kind: Any) -> str:
    """The word by which a union tells this request or order from the others."""
    return str(kind.__struct_config__.tag)


def _tags(*unions: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tag(kind) for union in unions for kind in get_args(union)))


AGENT = Label("agent", about="one of Tocsin's agents: claude, codex ...")
CODE = Label("code", tuple(Code), "a refusal's code, see docs/refusals.md")
VERB = Label("verb", _tags(RunVerb, MailVerb, CustodyVerb))
ORDER = Label("order", _tags(HostOrders))
OUTCOME = Label("outcome", ("done", "duplicate", "refused"))
REASON = Label("reason", about="a word, as in the proof that `tocsin wakes` shows")

BUILD = Metric(
    "tocsin_build_info", Sort.GAUGE, "1; says which version runs on which Python.", EVERY,
    (Label("version", about="of Tocsin"), Label("python", about="its version")),
)  # fmt: skip

# ---------------------------------------------------------------- the bus, the store, the ledgers

BUS_PUBLISH = Metric("tocsin_bus_publish_seconds", Sort.HISTOGRAM, "From a publish until the bus has it on record.", EVERY, buckets=QUICK_S)
BUS_FAILED = Metric("tocsin_bus_publish_failed_total", Sort.COUNTER, "Publishes that had no ack in time, or that the bus refused.", EVERY)
BUS_RECONNECTS = Metric("tocsin_bus_reconnects_total", Sort.COUNTER, "How often the connection to NATS came back.", EVERY)
BUS_DEAD = Metric("tocsin_bus_dead_letters_total", Sort.COUNTER, "Messages that nobody could handle, put aside on dead.>.", EVERY)
BUS_DROPPED = Metric(
    "tocsin_bus_dropped_total", Sort.COUNTER, "Messages thrown away on this side, because nobody took those before them.", EVERY
)
BUS_REREAD = Metric("tocsin_bus_reread_total", Sort.COUNTER, "Messages read again because one before them was missing.", EVERY)
STORE_CONNECTIONS = Metric(
    "tocsin_store_connections_total", Sort.COUNTER, "Connections made to Redis or Valkey; it grows when one was cut.",
    (STATUS, SORTER, *COMMANDED, CONSOLE),
)  # fmt: skip
LEASE = Metric("tocsin_lease_held", Sort.GAUGE, "1: this one is at work, 0: it stands by for another.", (STATUS, SORTER))
LEDGER_CONFLICTS = Metric(
    "tocsin_ledger_conflicts_total",
    Sort.COUNTER,
    "Decisions taken again because another replica wrote first.",
    (DISPATCHER, MAILBOX, ACCOUNTANT),
)
LEDGER_RESTORED = Metric(
    "tocsin_ledger_restored_total", Sort.COUNTER, "Runs, mailboxes or custodies put back into a log that was lost.", COMMANDED
)

# ---------------------------------------------------------------- hooks

HOOKS_PUBLISHED = Metric(
    "tocsin_hooks_published_total",
    Sort.COUNTER,
    "Events that were said on the bus, or with ACK=async are about to be.",
    (INGEST,),
    (AGENT,),
)
HOOKS_MEANINGLESS = Metric("tocsin_hooks_meaningless_total", Sort.COUNTER, "Events that were taken and mean nothing.", (INGEST,), (AGENT,))
REQUESTS_REFUSED = Metric(
    "tocsin_requests_refused_total", Sort.COUNTER, "Requests that changed nothing, by reason.", (INGEST, *COMMANDED), (CODE,)
)
REQUESTS_MALFORMED = Metric("tocsin_requests_malformed_total", Sort.COUNTER, "Bytes that are no HTTP request.", (INGEST,))
HOOKS_GONE = Metric("tocsin_hooks_gone_total", Sort.COUNTER, "Clients that left before their body was there.", (INGEST,))
HOOKS_NEVER_ACKED = Metric(
    "tocsin_hooks_never_acked_total", Sort.COUNTER, "Events answered before their ack (ACK=async) that never had one.", (INGEST,)
)
HOOKS_IN_FLIGHT = Metric("tocsin_hooks_in_flight", Sort.GAUGE, "Hooks that wait for their answer now.", (INGEST,))
HOOKS_UNACKED = Metric("tocsin_hooks_unacked", Sort.GAUGE, "Events answered before their ack that have none yet.", (INGEST,))
HANDLERS_PARKED = Metric("tocsin_handlers_parked", Sort.GAUGE, "Handlers that wait beside idle sessions for mail.", (INGEST,))

# ---------------------------------------------------------------- panes and the list

HOOKS_DEDUPLICATED = Metric(
    "tocsin_hooks_deduplicated_total",
    Sort.COUNTER,
    "Events that were delivered twice and counted once; many: a hook is registered twice.",
    (STATUS,),
)
HOOKS_LATE = Metric("tocsin_hooks_late_total", Sort.COUNTER, "Events that came out of a spool.", (STATUS,))
PANES = Metric("tocsin_panes", Sort.GAUGE, "Panes by state; said by the one at work.", (STATUS,), (Label("state", tuple(State)),))
CHAIN = Metric(
    "tocsin_chain_seconds", Sort.HISTOGRAM, "From a hook's receipt until the list that shows it is on record; spooled ones left out.", (SORTER,),
    buckets=CHAIN_S,
)  # fmt: skip
LISTS = Metric("tocsin_lists_published_total", Sort.COUNTER, "Lists that this one has said.", (SORTER,))
LIST_VERSION = Metric("tocsin_list_version", Sort.GAUGE, "Version of the list that stands, whoever said it.", (SORTER,))
ROWS = Metric(
    "tocsin_rows",
    Sort.GAUGE,
    "Worktrees of the list by class: 1 needs you, 2 done, 3 working, 4 idle.",
    (SORTER,),
    (Label("class", ("1", "2", "3", "4")),),
)
ATTENTION_RAISED = Metric(
    "tocsin_attention_raised_total",
    Sort.COUNTER,
    "Alarms: a worktree has begun to need a person.",
    (SORTER,),
    (Label("cause", tuple(AttentionCause)),),
)

# ---------------------------------------------------------------- the loop

COMMANDS = Metric("tocsin_commands_total", Sort.COUNTER, "Requests answered, by verb and outcome.", COMMANDED, (VERB, OUTCOME))
RUNS = Metric("tocsin_runs", Sort.GAUGE, "Runs that are on record.", (DISPATCHER,), (Label("state", ("open", "paused", "closed")),))
TASKS = Metric("tocsin_tasks", Sort.GAUGE, "Tasks of open Runs by state.", (DISPATCHER,), (Label("state", tuple(TaskState)),))
DISPATCHES = Metric(
    "tocsin_dispatches", Sort.GAUGE, "Attempts that are not settled, by state.", (DISPATCHER,), (Label("state", tuple(DispatchState)),)
)
GATES_OPEN = Metric("tocsin_gates_open", Sort.GAUGE, "Questions that wait for a person or a coordinator.", (DISPATCHER,))
ORDERS_SAID = Metric("tocsin_host_orders_said_total", Sort.COUNTER, "Orders given to hosts; one may be given again.", COMMANDED, (ORDER,))
MAIL_UNREAD = Metric("tocsin_mail_unread", Sort.GAUGE, "Messages that nobody has acked.", (MAILBOX,))
MAILBOXES_DUE = Metric("tocsin_mailboxes_due", Sort.GAUGE, "Mailboxes with something for which their reader is woken.", (MAILBOX,))
WAKES = Metric(
    "tocsin_wakes_total", Sort.COUNTER, "Steps in the lives of wakes: due, held, offered, and what became of them; `rung`: the way, none before one is chosen.", (MAILBOX,),
    (Label("state", tuple(WakeState)), Label("rung", (*Rung, "none"))),
)  # fmt: skip
WAKES_HELD = Metric("tocsin_wakes_held_total", Sort.COUNTER, "Why wakes were held.", (MAILBOX,), (REASON,))
CUSTODIES = Metric(
    "tocsin_custodies",
    Sort.GAUGE,
    "Terminals that were made, by what is held true of them.",
    (ACCOUNTANT,),
    (Label("state", tuple(CustodyState)),),
)
OBLIGATIONS = Metric("tocsin_obligations", Sort.GAUGE, "Settled workers that nobody has disposed of yet.", (ACCOUNTANT,))

# ---------------------------------------------------------------- hosts

ORDERS_TAKEN = Metric("tocsin_host_orders_taken_total", Sort.COUNTER, "Orders that this host has begun.", (PANE_HOST,), (ORDER,))
HOST_FACTS = Metric(
    "tocsin_host_facts_total", Sort.COUNTER, "What came of them: each step that was seen, refused or left unknown.", (PANE_HOST,),
    (ORDER, Label("saw", tuple(Saw))),
)  # fmt: skip
TYPING_HELD = Metric(
    "tocsin_typing_held_total", Sort.COUNTER, "Lines that were not typed or not sent, by what stood in the way.", (PANE_HOST,), (REASON,)
)
ORDERS_REFUSED = Metric(
    "tocsin_host_orders_refused_total", Sort.COUNTER, "Orders of which nothing was done, by reason.", (PANE_HOST,), (CODE,)
)
TERMINALS = Metric("tocsin_terminals", Sort.GAUGE, "Terminals seen on this host.", (PANE_HOST,))
AGENTS_SEEN = Metric("tocsin_terminals_with_agent", Sort.GAUGE, "Those in which an agent's process runs.", (PANE_HOST,))
WORKTREES = Metric("tocsin_worktrees", Sort.GAUGE, "Worktrees known on this host.", (PANE_HOST,))
SPOOL_WAITING = Metric("tocsin_spool_waiting", Sort.GAUGE, "Events in the spool that wait to be delivered.", (PANE_HOST,))
SPOOL_AGE = Metric("tocsin_spool_age_seconds", Sort.GAUGE, "Age of the oldest of them; 0 when there is none.", (PANE_HOST,))
SPOOL_ENDED = Metric(
    "tocsin_spool_ended_total",
    Sort.COUNTER,
    "What became of spooled events.",
    (PANE_HOST,),
    (Label("outcome", ("delivered", "refused", "torn")),),
)
SPOOL_LOST = Metric("tocsin_spool_lost", Sort.GAUGE, "Events that hook commands dropped because the spool was full.", (PANE_HOST,))

# ---------------------------------------------------------------- notices to the person

NOTICE_WAY = Label("way", ("webhook", "screen", "desktop", "command"))
NOTICES_SENT = Metric(
    "tocsin_notices_sent_total",
    Sort.COUNTER,
    "Notices that were told: to the webhook, to screens over the bus, and there by the desktop or a command.",
    (CONSOLE, PANE_HOST),
    (NOTICE_WAY,),
)
NOTICES_FAILED = Metric(
    "tocsin_notices_failed_total", Sort.COUNTER, "Attempts to tell one that failed.", (CONSOLE, PANE_HOST), (NOTICE_WAY,)
)
NOTICES_HELD = Metric(
    "tocsin_notices_held_total", Sort.COUNTER, "Notices held back for later.", (CONSOLE,), (Label("why", ("quiet", "snoozed")),)
)
NOTICES_DROPPED = Metric(
    "tocsin_notices_dropped_total",
    Sort.COUNTER,
    "Notices never told, or not to the webhook: what they told of was over, snoozed or a day old, or every attempt failed.",
    (CONSOLE,),
    (Label("why", ("over", "snoozed", "old", "failed")),),
)

# ---------------------------------------------------------------- telemetry of the list

PROMOTIONS = Metric(
    "tocsin_class_1_promotions_total",
    Sort.COUNTER,
    "Worktrees that have moved into class 1.",
    (CONSOLE,),
    (Label("cause", tuple(AttentionCause)),),
)
SWITCHES = Metric(
    "tocsin_smart_to_recent_switches_total", Sort.COUNTER, "Viewers that left the order by attention for the latest first.", (CONSOLE,)
)

METRICS: Mapping[str, Metric] = MappingProxyType({one.name: one for one in list(globals().values()) if isinstance(one, Metric)})
"""All of them, in the order in which they stand here."""


def count_answer(tally: Tally, ask: object, answer: Receipt | Refusal) -> None:
    """Count one answered request of a coordinator, worker or person."""
    if isinstance(answer, Receipt):
        outcome = "duplicate" if answer.duplicate else "done"
    else:
        outcome = "refused"
        tally.add(REQUESTS_REFUSED, answer.code)
    tally.add(COMMANDS, tag(ask), outcome)
