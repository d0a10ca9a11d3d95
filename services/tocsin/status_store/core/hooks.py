"""What one hook event makes of a pane. Times and order come in with it; nothing here reads a clock."""

import re
from collections.abc import Callable, Mapping

import msgspec

from tocsin.agents.agent import Agent
from tocsin.agents.registry import AGENTS
from tocsin.contract.messages import Ask, Evidence, HookReported, Kind, Origin, Task
from tocsin.status_store.core.pane import (
    CALLS_MAX,
    EVENTS_MAX,
    IDENTITIES_MAX,
    Call,
    Child,
    Lead,
    Moment,
    Pane,
    Prompt,
    change,
    close_prompts,
    end_turn,
    resume_turn,
    settle,
    start_turn,
    state_of,
    without_child,
)

TWICE_MS = 250
"""Two equal events without an id of their own within this time are one that was delivered twice."""

CANCEL_KEY_MS = 1_000
"""An ordinary end so soon after Esc or Ctrl+C is the cancelled one, on agents that report both alike."""

ABORT_ECHO_MS = 1_000
"""opencode repeats busy and idle for a moment after an abort; neither starts a turn."""

REGISTERS = frozenset({"startup", "resume", "clear", "fork", "new"})
"""What a session start may say of itself. A compaction, or a word that is not known, changes nothing."""

LEAVES = frozenset({"prompt_input_exit", "logout", "exit", "quit", "user_exit", "user_close", "window_close"})
"""Session ends by which the person has left the agent."""

GOES_ON = frozenset({"clear", "resume"})
"""Session ends behind which another session starts in the same pane."""

ABORTS = frozenset({"abort", "aborted"})

MOVES_IN = frozenset({Kind.SESSION_STARTED, Kind.PROMPTED, Kind.BUSY, Kind.TOOL_STARTED, Kind.TOOL_ENDED, Kind.ASKED, Kind.TURN_ENDED})
"""Events that show another session at work in a pane."""

AGENT_KINDS = frozenset({"agent", "subagent", "workflow", "teammate"})
"""Background work that is itself an agent: it holds a finished turn until it ends."""


def holds_until_its_end(kind: str) -> bool:
    """True for children; shells, monitors and timers hold a finished turn for a limited time only."""
    return kind in AGENT_KINDS or "agent" in kind or "cloud" in kind


def stamp_of(event: HookReported) -> int:
    """What orders the event within its session: the sender's stamp, else our receipt."""
    return event.sent_ms if event.sent_ms is not None else event.at_ms


def hear(pane: Pane, event: HookReported, moment: Moment, seq: int) -> Pane:
    """The pane after `event`, which is held to have happened at `moment` and stands at `seq` of the log.

    An event at or below the pane's sequence, and one that was delivered twice, changes nothing. Refuses nothing.
    """
    if seq and seq <= pane.seq:
        return pane
    identity = _identity(event)
    stamp = stamp_of(event)
    if _is_repeated(pane, event, identity, stamp):
        return _pass_over(change(pane, repeated=pane.repeated + 1), event, seq)
    if event.session != pane.session and not event.child:
        is_known = pane.session is not None and event.kind is not Kind.SESSION_STARTED
        if is_known and (event.session in pane.past_sessions or event.kind not in MOVES_IN):
            return _pass_over(pane, event, seq)  # a straggler of a session that this pane has left, or no sign that another works here
        pane = take_over(pane, event, moment)
    pane = _remember(pane, event, identity, stamp, seq, moment)
    if event.child and event.kind not in (Kind.CHILD_STARTED, Kind.CHILD_ENDED):
        pane = _child_is_alive(pane, event, moment)
    elif pane.rest is not None:
        # The title's rest ends a turn only when no event of that turn comes behind it.
        pane = change(pane, rest=moment)
    before = pane
    pane = STEPS[event.kind](pane, event, moment)
    if not event.child and stamp > pane.stamp:
        pane = change(pane, stamp=stamp)
    if pane is before and state_of(pane) == (pane.state, pane.interrupted):
        return change(pane, evidence=_fresh_evidence(pane))
    return settle(pane, moment.at_ms, Evidence.OBSERVED, cause_of(pane, event))


def take_over(pane: Pane, event: HookReported, moment: Moment) -> Pane:
    """The pane with the session of `event` in it: what the one before it left open is interrupted, what it had finished is past."""
    if pane.session is not None:
        if pane.lead is Lead.WORKING or pane.pending:
            pane = end_turn(pane, moment, stamp_of(event), Lead.INTERRUPTED)
        pane = change(pane, past_sessions=(*pane.past_sessions, pane.session)[-EVENTS_MAX:])
    shells = tuple(child for child in pane.roster if event.detail == "clear" and not holds_until_its_end(child.kind))
    return change(
        close_prompts(pane, lambda prompt: True),
        session=event.session,
        agent=event.agent,
        transcript=None,
        lead=Lead.NONE,
        gone=False,
        roster=shells,
        held=frozenset(),
        turn_id=None,
        turn_started=0,
        turn_ended=0,
        ended_turn_ids=(),
        stamp=0,
        queued=None,
        calls=(),
        child_sessions=(),
    )


def _fresh_evidence(pane: Pane) -> Evidence:
    # A sign of life confirms a state of before a gap; it does not turn an inference into an observation.
    return Evidence.OBSERVED if pane.evidence in (Evidence.RESTORED, Evidence.NO_SIGNAL) else pane.evidence


# ------------------------------------------------------------ identity


def _identity(event: HookReported) -> str:
    parts = (event.session, event.event, event.call or "", event.turn or "", event.child or "", event.tool or "", event.detail or "")
    return "\x1f".join((*parts, event.input_hash or "", event.prompt_hash or ""))


def _is_repeated(pane: Pane, event: HookReported, identity: str, stamp: int) -> bool:
    if event.id in pane.identities:
        return True
    if event.call is not None:
        return identity in pane.identities
    return any(other == identity and abs(stamp - at) <= TWICE_MS for other, at in pane.recent)


TURN_EDGES = frozenset({Kind.PROMPTED, Kind.TURN_ENDED, Kind.TURN_FAILED, Kind.TURN_INTERRUPTED})


def _pass_over(pane: Pane, event: HookReported, seq: int) -> Pane:
    """The pane after an event that moves nothing. Its id is kept: later, when it comes again, the same event could move something."""
    ids = () if event.id in pane.identities else (event.id,)
    return change(pane, seq=seq or pane.seq, identities=(*pane.identities, *ids)[-IDENTITIES_MAX:])


def _remember(pane: Pane, event: HookReported, identity: str, stamp: int, seq: int, moment: Moment) -> Pane:
    ids = (event.id, identity) if event.call is not None else (event.id,)
    # "With nothing between": an edge of a turn makes an equal event behind it a new one.
    recent = () if event.kind in TURN_EDGES else pane.recent
    return change(
        pane,
        seq=seq or pane.seq,
        agent=event.agent,
        hooked=True,
        cwd=pane.cwd or event.cwd,
        transcript=event.transcript or pane.transcript,
        updated_ms=max(pane.updated_ms, moment.at_ms),
        identities=(*pane.identities, *ids)[-IDENTITIES_MAX:],
        recent=(*recent, (identity, stamp))[-4:],
        last_events=(*pane.last_events, event.event)[-EVENTS_MAX:],
        late=pane.late + event.spooled,
    )


# ------------------------------------------------------------- sessions


def _session_started(pane: Pane, event: HookReported, moment: Moment) -> Pane:
    if event.child or (event.detail is not None and event.detail not in REGISTERS):
        return pane
    if stamp_of(event) < pane.stamp:
        return pane  # it comes behind the first prompt of the session that it starts
    return pane if pane.lead is Lead.NONE and not pane.gone else take_over(pane, event, moment)


def _session_ended(pane: Pane, event: HookReported, moment: Moment) -> Pane:
    if event.child or event.session != pane.session:
        return pane
    reason = event.detail or "other"
    was_open = pane.lead is Lead.WORKING or bool(pane.pending)
    if reason in GOES_ON:
        pane = end_turn(pane, moment, stamp_of(event), Lead.INTERRUPTED) if was_open else pane
        return change(close_prompts(pane, lambda prompt: True), lead=Lead.NONE, roster=(), held=frozenset())
    if reason in LEAVES or (reason == "other" and event.attended):
        if was_open:
            pane = end_turn(pane, moment, stamp_of(event), Lead.INTERRUPTED)
        return change(close_prompts(pane, lambda prompt: True), gone=True, roster=(), held=frozenset())
    lead = Lead.INTERRUPTED if was_open or reason in ABORTS else pane.lead
    if lead is not pane.lead or was_open:
        pane = end_turn(pane, moment, stamp_of(event), lead)
    return change(close_prompts(pane, lambda prompt: True), roster=(), held=frozenset())


def _compacted(pane: Pane, event: HookReported, moment: Moment) -> Pane:
    # A manual compaction is a boundary, and no result.
    if event.detail != "manual" or pane.lead is Lead.WORKING:
        return pane
    return change(pane, lead=Lead.NONE)


# ---------------------------------------------------------------- turns


def _prompted(pane: Pane, event: HookReported, moment: Moment) -> Pane:
    if event.child or event.origin is Origin.COMPACTION:
        return pane
    stamp = stamp_of(event)
    agent = AGENTS[event.agent]
    same_turn = event.turn is not None and event.turn == pane.turn_id
    if pane.lead is Lead.WORKING and same_turn:
        if event.origin is not Origin.AGENT and agent.queues_prompts:
            return change(pane, queued=stamp)
        return pane
    if stamp < pane.stamp:
        # Overtaken by events of its own turn, or older than a turn that has ended since: it only names the turn.
        if pane.lead is Lead.WORKING and pane.turn_id is None:
            return change(pane, turn_id=event.turn, turn_started=stamp)
        return pane
    if pane.lead is Lead.WORKING:
        pane = end_turn(pane, moment, stamp, Lead.INTERRUPTED)
        pane = change(pane, held=frozenset())
    was_ended = event.turn is not None and event.turn in pane.ended_turn_ids
    pane = start_turn(pane, moment, stamp, event.turn, event.prompt_hash)
    if was_ended and event.origin is not Origin.AGENT and agent.queues_prompts:
        # Typed while another's stop hook holds the ended turn open: it waits for that hook's turn.
        return change(pane, queued=stamp)
    return change(pane, held=frozenset())


def _busy(pane: Pane, event: HookReported, moment: Moment) -> Pane:
    if event.child or pane.lead is Lead.WORKING:
        return pane
    stamp = stamp_of(event)
    if stamp < pane.turn_ended or (pane.lead is Lead.INTERRUPTED and stamp - pane.turn_ended < ABORT_ECHO_MS):
        return pane
    return start_turn(pane, moment, stamp, event.turn, None)


def _belongs_to_older_turn(pane: Pane, event: HookReported) -> bool:
    if event.turn is not None and pane.turn_id is not None and event.turn != pane.turn_id:
        return event.turn in pane.ended_turn_ids
    return event.turn is None and stamp_of(event) < pane.turn_started


def _turn_ended(pane: Pane, event: HookReported, moment: Moment) -> Pane:
    if event.child:
        return _child_ended(pane, event, moment)
    if _belongs_to_older_turn(pane, event) or (stamp_of(event) < pane.turn_started and event.turn != pane.turn_id):
        return pane
    pane = _with_tasks(pane, event, moment)
    if pane.lead in (Lead.DONE, Lead.INTERRUPTED) and not pane.ended_by_inference:
        # A second end with nothing between: only what still runs may have changed.
        still = frozenset(child.id for child in pane.roster) & pane.held
        return change(pane, held=still) if event.tasks is not None else pane
    if pane.queued is not None and pane.lead is Lead.WORKING:
        turn_id = event.turn if event.turn == pane.turn_id else pane.turn_id
        pane = end_turn(change(pane, turn_id=turn_id), moment, stamp_of(event), Lead.DONE)
        return change(start_turn(pane, moment, stamp_of(event), None, None), held=frozenset())
    agent = AGENTS[event.agent]
    lead = Lead.INTERRUPTED if agent.ends_on_cancel and _cancelled_by_key(pane, moment) else Lead.DONE
    if pane.turn == 0:
        # The first thing heard of this pane is the end of a turn.
        pane = start_turn(pane, moment, stamp_of(event), event.turn, None)
    pane = end_turn(pane, moment, stamp_of(event), lead)
    if event.timers:
        timer = Child(id="timers", kind="timer", heard_awake_ms=moment.awake_ms)
        pane = change(pane, roster=(*pane.roster, timer), held=pane.held | {timer.id})
    return pane


def _with_tasks(pane: Pane, event: HookReported, moment: Moment) -> Pane:
    """The roster as a turn's end lists it. Not listed at all means not known, which is not "none"."""
    if event.tasks is None:
        return pane
    known = {child.id: child for child in pane.roster}
    listed = tuple(
        known.get(task.id) or Child(id=task.id, kind=task.kind, heard_awake_ms=moment.awake_ms)
        for task in event.tasks
        if task.running and task.id not in pane.ended_children
    )
    return change(pane, roster=listed, held=pane.held & {child.id for child in listed})


def _cancelled_by_key(pane: Pane, moment: Moment) -> bool:
    return bool(pane.key_cancels) and pane.key_ms is not None and 0 <= moment.at_ms - pane.key_ms <= CANCEL_KEY_MS


def _turn_failed(pane: Pane, event: HookReported, moment: Moment) -> Pane:
    if event.child or _belongs_to_older_turn(pane, event):
        return pane
    if pane.lead in (Lead.DONE, Lead.INTERRUPTED) and not pane.ended_by_inference:
        return pane
    if pane.turn == 0:
        pane = start_turn(pane, moment, stamp_of(event), event.turn, None)
    return end_turn(pane, moment, stamp_of(event), Lead.DONE)


def _turn_interrupted(pane: Pane, event: HookReported, moment: Moment) -> Pane:
    if event.child:
        return _child_ended(pane, event, moment)
    if _belongs_to_older_turn(pane, event) or (pane.lead is Lead.NONE and not pane.pending):
        return pane
    return end_turn(pane, moment, stamp_of(event), Lead.INTERRUPTED)


def _idle_noticed(pane: Pane, event: HookReported, moment: Moment) -> Pane:
    if not AGENTS[event.agent].idle_notice_ends or pane.lead is not Lead.WORKING or stamp_of(event) < pane.turn_started:
        return pane
    # Its own end or failure may come just behind it, and then counts.
    return end_turn(pane, moment, stamp_of(event), Lead.INTERRUPTED, inferred=True)


# ---------------------------------------------------------------- tools


def _call_of(pane: Pane, event: HookReported) -> Call | None:
    """The newest call that the event speaks of: by its id, else by owner, tool and input."""
    owner = event.child or ""
    for call in reversed(pane.calls):
        if event.call is not None and call.id is not None:
            if call.id == event.call:
                return call
        elif (call.owner, call.tool, call.input_hash) == (owner, event.tool, event.input_hash):
            return call
    return None


def _with_call(pane: Pane, old: Call | None, new: Call) -> Pane:
    return change(pane, calls=(*(call for call in pane.calls if call is not old), new)[-CALLS_MAX:])


def _tool_started(pane: Pane, event: HookReported, moment: Moment) -> Pane:
    stamp = stamp_of(event)
    old = _call_of(pane, event) if event.call is not None else None
    new = Call(
        owner=event.child or "",
        id=event.call,
        tool=event.tool,
        input_hash=event.input_hash,
        target=event.target,
        started=stamp,
        ended=old.ended if old else None,
    )
    pane = _with_call(pane, old, new)
    for prompt in pane.pending:
        # The request came before the announcement of its call: now the call is known.
        if prompt.call is None and prompt.tool is not None and stamp <= prompt.stamp and _speaks_of(event, prompt):
            pane = _change_prompt(pane, prompt, call=event.call)
    if AGENTS[event.agent].starts_after_grant:
        pane = close_prompts(pane, lambda prompt: prompt.stamp <= stamp and _speaks_of(event, prompt))
    if event.child:
        return pane
    if pane.lead is not Lead.WORKING and (stamp > pane.turn_ended or pane.ended_by_inference):
        return resume_turn(pane, moment, stamp)
    return pane


def _speaks_of(event: HookReported, prompt: Prompt) -> bool:
    """True when a tool event is of the call for which the prompt stands."""
    if (event.child or "") != prompt.owner:
        return False
    if prompt.call is not None and event.call is not None:
        return prompt.call == event.call
    if prompt.tool is None or event.tool is None:
        return True  # the agent does not say for what it asked: the next tool event is the sign
    if prompt.tool != event.tool:
        return False
    return prompt.input_hash is None or event.input_hash is None or prompt.input_hash == event.input_hash


def _tool_ended(pane: Pane, event: HookReported, moment: Moment) -> Pane:
    stamp = stamp_of(event)
    old = _call_of(pane, event)
    started = old.started if old else None
    new = Call(
        owner=event.child or "",
        id=event.call or (old.id if old else None),
        tool=event.tool or (old.tool if old else None),
        input_hash=event.input_hash or (old.input_hash if old else None),
        target=event.target or (old.target if old else None),
        started=started,
        ended=stamp,
    )
    pane = _with_call(pane, old, new)
    pane = close_prompts(pane, lambda prompt: _speaks_of(event, prompt))
    if event.launched is not None:
        pane = _with_child(pane, event.launched, moment)
    if event.stopped is not None:
        pane = _forget_child(pane, event.stopped)
    if event.child:
        return pane
    if event.interrupted:
        return change(pane, cancel_awake_ms=moment.awake_ms)
    if pane.queued is not None and stamp >= pane.queued:
        # The queued prompt went to the model beside this result: one end for both.
        pane = change(pane, queued=None)
    if pane.lead is Lead.WORKING:
        return pane
    started_since = started is not None and started > pane.turn_ended
    if pane.lead is Lead.NONE or started_since or (pane.ended_by_inference and stamp > pane.turn_ended):
        return resume_turn(pane, moment, stamp)
    return pane


# -------------------------------------------------------------- prompts


def _asked(pane: Pane, event: HookReported, moment: Moment) -> Pane:
    stamp = stamp_of(event)
    owner = event.child or ""
    ask = event.ask or Ask.PERMISSION
    if event.attended is False or event.reviewed:
        return pane  # nobody can answer, or nobody is asked
    if pane.auto_reviewed_turn is not None and pane.auto_reviewed_turn == (event.turn or pane.turn_id) and ask is Ask.PERMISSION:
        return pane
    call = _call_of(pane, event)
    if call is not None and call.ended is not None and (event.call is not None or call.ended >= stamp):
        return pane  # answered already: its end was seen first
    for prompt in pane.pending:
        if prompt.owner == owner and _same_ask(prompt, event, call):
            if prompt.call is None and event.call is not None:
                return _change_prompt(pane, prompt, call=event.call)
            return pane
    if not owner:
        if pane.lead is not Lead.WORKING:
            if stamp < pane.turn_ended and not pane.ended_by_inference:
                return pane
            pane = resume_turn(pane, moment, stamp)
        pane = close_prompts(pane, lambda prompt: not prompt.owner and prompt.tool is None and prompt.call is None)
    number = pane.prompts_opened + 1
    new = Prompt(
        number=number,
        ask=ask,
        since_ms=moment.at_ms,
        stamp=stamp,
        owner=owner,
        call=event.call or (call.id if call else None),
        tool=event.tool,
        input_hash=event.input_hash,
        target=event.target,
        excerpt=event.excerpt,
    )
    return change(pane, pending=(*pane.pending, new), prompts_opened=number, asked_shown=False, dialog_gone_awake_ms=None)


def _same_ask(prompt: Prompt, event: HookReported, call: Call | None) -> bool:
    if event.call is not None and prompt.call is not None:
        return event.call == prompt.call
    if prompt.tool is None and event.tool is None:
        return event.call is None and prompt.call is None
    return prompt.tool == event.tool and prompt.input_hash == event.input_hash and (call is None or prompt.call in (None, call.id))


def _change_prompt(pane: Pane, prompt: Prompt, **fields: str | None) -> Pane:
    new = msgspec.structs.replace(prompt, **fields)
    return change(pane, pending=tuple(new if one is prompt else one for one in pane.pending))


def _ask_noticed(pane: Pane, event: HookReported, moment: Moment) -> Pane:
    # Seconds late, and mostly of a prompt that is known: it must not move anything then.
    if pane.pending or pane.lead is not Lead.WORKING or event.attended is False or stamp_of(event) < pane.stamp:
        return pane
    number = pane.prompts_opened + 1
    new = Prompt(number=number, ask=event.ask or Ask.PERMISSION, since_ms=moment.at_ms, stamp=stamp_of(event), owner=event.child or "")
    return change(pane, pending=(new,), prompts_opened=number, asked_shown=False)


def _answered(pane: Pane, event: HookReported, moment: Moment) -> Pane:
    owner = event.child or ""

    def is_answered(prompt: Prompt) -> bool:
        if event.call is not None and prompt.call is not None:
            return prompt.call == event.call
        return prompt.owner == owner and (event.ask is None or prompt.ask is event.ask)

    return close_prompts(pane, is_answered)


def _denied(pane: Pane, event: HookReported, moment: Moment) -> Pane:
    return close_prompts(pane, lambda prompt: _speaks_of(event, prompt))


# ------------------------------------------------------------- children


def _with_child(pane: Pane, task: Task, moment: Moment) -> Pane:
    if task.id in pane.ended_children:
        return pane  # its end was seen first
    roster = tuple(child for child in pane.roster if child.id != task.id)
    return change(pane, roster=(*roster, Child(id=task.id, kind=task.kind, heard_awake_ms=moment.awake_ms))[-CALLS_MAX:])


def _forget_child(pane: Pane, child: str) -> Pane:
    return change(without_child(pane, child), ended_children=(*pane.ended_children, child)[-CALLS_MAX:])


def _child_is_alive(pane: Pane, event: HookReported, moment: Moment) -> Pane:
    assert event.child is not None
    known = next((child for child in pane.roster if child.id == event.child), None)
    return _with_child(pane, Task(id=event.child, kind=known.kind if known else "agent"), moment)


def _child_started(pane: Pane, event: HookReported, moment: Moment) -> Pane:
    if event.parent is not None and event.session not in pane.child_sessions:
        pane = change(pane, child_sessions=(*pane.child_sessions, event.session)[-CALLS_MAX:])
    return _with_child(pane, Task(id=event.child or event.session, kind="agent"), moment)


def _child_ended(pane: Pane, event: HookReported, moment: Moment) -> Pane:
    return _forget_child(pane, event.child or event.session)


def _noted(pane: Pane, event: HookReported, moment: Moment) -> Pane:
    return pane


STEPS: Mapping[Kind, Callable[[Pane, HookReported, Moment], Pane]] = {
    Kind.SESSION_STARTED: _session_started,
    Kind.SESSION_ENDED: _session_ended,
    Kind.PROMPTED: _prompted,
    Kind.BUSY: _busy,
    Kind.TOOL_STARTED: _tool_started,
    Kind.TOOL_ENDED: _tool_ended,
    Kind.TOOL_FAILED: _tool_ended,
    Kind.ASKED: _asked,
    Kind.ANSWERED: _answered,
    Kind.DENIED: _denied,
    Kind.ASK_NOTICED: _ask_noticed,
    Kind.TURN_ENDED: _turn_ended,
    Kind.TURN_FAILED: _turn_failed,
    Kind.TURN_INTERRUPTED: _turn_interrupted,
    Kind.IDLE_NOTICED: _idle_noticed,
    Kind.CHILD_STARTED: _child_started,
    Kind.CHILD_ENDED: _child_ended,
    Kind.COMPACTED: _compacted,
    Kind.NOTED: _noted,
}


# ---------------------------------------------------------------- words


def cause_of(pane: Pane, event: HookReported) -> str:
    """One line for a person: why the pane is in the state that `event` brought it to."""
    agent: Agent = AGENTS[event.agent]
    if pane.gone:
        return f"{agent.label} has left ({event.detail or event.event})"
    if pane.lead is Lead.DONE and not pane.pending and not pane.held and event.kind is Kind.TURN_FAILED:
        return f"its turn has failed ({event.detail or event.event})"
    return words_of(pane)


def words_of(pane: Pane) -> str:
    """One line for a person, from the facts of the pane alone."""
    if pane.gone:
        return "has ended"
    if pane.pending:
        return asks(pane.pending[-1])
    if pane.lead is Lead.WORKING:
        return "works on its turn"
    if pane.held:
        return f"its turn has ended, {len(pane.held)} still running in the background"
    return {Lead.DONE: "has finished its turn", Lead.INTERRUPTED: "was interrupted"}.get(pane.lead, "is at its prompt")


_VERBS = (
    ("run", re.compile(r"bash|shell|exec|command|terminal|powershell", re.IGNORECASE)),
    ("edit", re.compile(r"edit|write|patch|replace|notebook", re.IGNORECASE)),
    ("fetch", re.compile(r"fetch|web|http", re.IGNORECASE)),
    ("read", re.compile(r"read|view|grep|glob|search|list", re.IGNORECASE)),
)
"""What a tool does, by words in its name: agents name their tools alike, and none of them says."""

_WANTS = {
    Ask.PERMISSION: "asks for a permission",
    Ask.QUESTION: "asks a question",
    Ask.PLAN: "asks to approve its plan",
    Ask.FORM: "asks to fill in a form",
}


def asks(prompt: Prompt) -> str:
    """What a standing prompt wants, as a reason line: "asks to run npm", "asks to edit app.py", "asks a question"."""
    line = _WANTS[prompt.ask]
    if prompt.ask is Ask.PERMISSION and prompt.tool:
        verb = next((verb for verb, tools in _VERBS if tools.search(prompt.tool)), None)
        line = f"asks to {verb} {prompt.target}" if verb and prompt.target else f"asks to use {prompt.tool}"
    if prompt.owner:
        line += ", for a child agent"
    return f"{line}: {prompt.excerpt}" if prompt.excerpt else line
