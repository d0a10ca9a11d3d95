"""What titles, keys, processes, transcripts and the passing of time make of a pane.

A fresh hook stands against a title. A title may do two things to it: close a prompt that it has shown, and end a
turn that it has shown as busy. Everything here that changes a state says so: its evidence is `inferred`.
Source: README, decision 6.
"""

from collections.abc import Callable

from tocsin.agents.agent import TitleSpeech
from tocsin.agents.registry import AGENTS, read_title_of
from tocsin.agents.titles import unknown_glyph
from tocsin.contract.messages import Ask, Evidence, Mark, MarkKind, PaneSeen, Reading, State, TitleNow
from tocsin.status_store.core.hooks import holds_until_its_end, words_of
from tocsin.status_store.core.pane import Child, Lead, Moment, Pane, change, close_prompts, end_turn, settle, without_child

DIALOG_GONE_MS = 1_000
"""A title that leaves "needs you" for rest: without any event for so long, the dialog was refused or dismissed."""

REST_CANCELLED_MS = 2_000
"""A busy title that comes to rest behind a person's key or the agent's own cancel ends the turn after so long."""

REST_ALONE_MS = 5_000
"""The same with nothing else that speaks for an end."""

KEY_BEFORE_REST_MS = 3_000
"""How long before the rest a key may lie to count as its cause; keys are known in steps of a second."""

CHILD_SILENCE_MS = 30 * 60_000
"""A child that says nothing for so long holds its parent's finished turn no longer."""

SHELL_HOLD_MS = 10 * 60_000
"""Longest time for which shells, monitors and timers hold a finished turn: a dev server never ends."""


def _speech(pane: Pane) -> TitleSpeech:
    agent = AGENTS.get(pane.agent or "")
    return agent.titles if agent is not None and pane.hooked else TitleSpeech()


def _infer(pane: Pane, moment: Moment, at_ms: int | None = None, cause: str | None = None) -> Pane:
    return settle(pane, moment.at_ms if at_ms is None else at_ms, Evidence.INFERRED, cause or words_of(pane))


# --------------------------------------------------------------- titles


def show(pane: Pane, text: str, moment: Moment) -> Pane:
    """The pane after its terminal has shown a title."""
    if unknown_glyph(text) is not None:
        return pane  # a new release's animation, perhaps: no evidence of anything, and no edge
    reading = read_title_of(pane.agent, text)
    before = pane.title
    if before is None or before.reading is not reading:
        title = TitleNow(text=text, reading=reading, since_ms=moment.at_ms)
    else:
        title = TitleNow(text=text, reading=reading, since_ms=before.since_ms)
    pane = change(pane, title=title)
    speech = _speech(pane)
    if pane.pending:
        return _show_beside_a_prompt(pane, before, reading, speech, moment)
    return _show_beside_a_turn(pane, reading, speech, moment)


def _show_beside_a_prompt(pane: Pane, before: TitleNow | None, reading: Reading, speech: TitleSpeech, moment: Moment) -> Pane:
    if not speech.needs_you:
        return pane
    if reading is Reading.PERMISSION:
        return change(pane, asked_shown=True, dialog_gone_awake_ms=None)
    if not pane.asked_shown:
        return pane
    if reading is Reading.WORKING:
        lead_asked = any(not prompt.owner for prompt in pane.pending)
        pane = close_prompts(pane, lambda prompt: True)
        if lead_asked and pane.lead is not Lead.WORKING:
            pane = change(pane, lead=Lead.WORKING)
        return _infer(change(pane, busy_shown=True, rest=None), moment)
    if reading is Reading.IDLE and before is not None and before.reading is Reading.PERMISSION:
        return change(pane, dialog_gone_awake_ms=moment.awake_ms)
    return pane


def _show_beside_a_turn(pane: Pane, reading: Reading, speech: TitleSpeech, moment: Moment) -> Pane:
    if reading is Reading.WORKING:
        return change(pane, busy_shown=pane.lead is Lead.WORKING, rest=None)
    may_end = speech.busy and speech.rest and pane.busy_shown and pane.lead is Lead.WORKING
    if reading is Reading.IDLE and may_end and pane.rest is None:
        return change(pane, rest=moment)
    return pane


# ----------------------------------------------------------------- keys


def press(pane: Pane, at_ms: int, cancels: bool | None) -> Pane:
    """The pane after a person's key. A key alone ends nothing."""
    if pane.key_ms is not None and at_ms < pane.key_ms:
        return pane
    return change(pane, key_ms=at_ms, key_cancels=cancels)


def _rest_has_a_cause(pane: Pane) -> bool:
    """A person's key shortly before the rest (or since), or the agent's own cancel in this turn."""
    if pane.cancel_awake_ms is not None:
        return True
    if pane.key_ms is None or pane.rest is None or not pane.turns:
        return False
    return pane.key_ms > pane.turns[-1].started_ms and pane.key_ms >= pane.rest.at_ms - KEY_BEFORE_REST_MS


# ------------------------------------------------- terminal and process


def see(pane: Pane, seen: PaneSeen, moment: Moment) -> Pane:
    """The pane after its host has looked: liveness, process, keys and transcript marks."""
    if seen.life != pane.life:
        pane = change(pane, life=seen.life, mark_number=0, title_number=0)
    # Of a session without a terminal the host knows only its transcript: that says nothing about its being alive.
    live = seen.live if seen.locator is not None or not seen.live else pane.live
    pane = change(pane, live=live, workspace=seen.workspace, locator=seen.locator or pane.locator)
    if seen.last_key_ms is not None:
        pane = press(pane, seen.last_key_ms, seen.cancel_key)
    for mark in seen.marks:
        if mark.number > pane.mark_number:
            pane = change(read_mark(pane, mark, moment), mark_number=mark.number)
    if not seen.live:
        return _end(pane, moment, "its terminal is gone")
    known = pane.process
    if seen.process == known:
        return change(pane, cwd=pane.cwd or seen.cwd, agent=pane.agent or seen.agent)
    if known is not None and pane.hooked and not pane.gone:
        pane = _end(pane, moment, "its process has ended")
    if seen.process is None:
        return change(pane, process=None)
    return _move_in(pane, seen, moment)


def _end(pane: Pane, moment: Moment, cause: str) -> Pane:
    if pane.gone:
        return pane
    if pane.lead is Lead.WORKING or pane.pending:
        pane = end_turn(pane, moment, pane.stamp, Lead.INTERRUPTED)
    pane = close_prompts(pane, lambda prompt: True)
    return _infer(change(pane, gone=True, roster=(), held=frozenset()), moment, cause=cause)


def _move_in(pane: Pane, seen: PaneSeen, moment: Moment) -> Pane:
    """Another agent process lives in the terminal: what was known of the one before it counts no more."""
    if pane.process is None and pane.hooked and not pane.gone and pane.agent == seen.agent:
        return change(pane, process=seen.process, cwd=pane.cwd or seen.cwd)  # its hooks were faster than the look
    pane = change(
        pane, process=seen.process, agent=seen.agent, session=seen.session, cwd=seen.cwd, hooked=False, gone=False, lead=Lead.NONE,
        transcript=None, evidence=Evidence.NO_SIGNAL, turn_id=None, stamp=0, turn_started=0, turn_ended=0, calls=(), queued=None,
    )  # fmt: skip
    return settle(pane, moment.at_ms, Evidence.NO_SIGNAL, "no event yet")


def read_mark(pane: Pane, mark: Mark, moment: Moment) -> Pane:
    """The pane after a line of its transcript."""
    if mark.session != pane.session:
        return pane
    if mark.kind is MarkKind.AUTO_REVIEWED:
        pane = change(pane, auto_reviewed_turn=mark.turn)
        if not pane.pending or mark.turn not in (None, pane.turn_id):
            return pane
        return _infer(close_prompts(pane, lambda prompt: not prompt.owner and prompt.ask is Ask.PERMISSION), moment)
    if mark.turn is not None and mark.turn in pane.ended_turn_ids and mark.turn != pane.turn_id:
        return pane
    if pane.lead is not Lead.WORKING and not pane.pending:
        return pane
    pane = end_turn(pane, moment, pane.stamp, Lead.INTERRUPTED, inferred=True)
    return _infer(pane, moment, cause="its transcript says so")


# ----------------------------------------------------------------- time


Rule = tuple[int, Callable[[Pane, Moment], Pane]]


def _rules(pane: Pane) -> list[Rule]:
    """The limits that run for a pane: when each passes (awake ms) and what it then does. Each ends itself by what it does."""
    rules: list[Rule] = []
    if pane.dialog_gone_awake_ms is not None and pane.pending:
        rules.append((pane.dialog_gone_awake_ms + DIALOG_GONE_MS, _dialog_was_refused))
    if pane.lead is Lead.WORKING:
        if pane.rest is not None and not pane.pending and not pane.roster:
            if _rest_has_a_cause(pane):
                rules.append((pane.rest.awake_ms + REST_CANCELLED_MS, _turn_was_cancelled))
            else:
                rules.append((pane.rest.awake_ms + REST_ALONE_MS, _turn_seems_ended))
    else:
        rules.extend((_hold_end(pane, child), _let_go) for child in pane.roster if child.id in pane.held)
    return rules


def _hold_end(pane: Pane, child: Child) -> int:
    if holds_until_its_end(child.kind):
        return max(child.heard_awake_ms, pane.turn_ended_awake_ms) + CHILD_SILENCE_MS
    return pane.turn_ended_awake_ms + SHELL_HOLD_MS


def _dialog_was_refused(pane: Pane, moment: Moment) -> Pane:
    lead_asked = any(not prompt.owner for prompt in pane.pending)
    pane = close_prompts(pane, lambda prompt: True)
    if lead_asked:
        pane = end_turn(pane, moment, pane.stamp, Lead.INTERRUPTED, inferred=True)
    return _infer(pane, moment, cause="the dialog has left its title")


def _turn_was_cancelled(pane: Pane, moment: Moment) -> Pane:
    pane = end_turn(pane, moment, pane.stamp, Lead.INTERRUPTED, inferred=True)
    return _infer(pane, moment, cause="a key was pressed, then its title came to rest")


def _turn_seems_ended(pane: Pane, moment: Moment) -> Pane:
    pane = end_turn(pane, moment, pane.stamp, Lead.DONE, inferred=True)
    return _infer(pane, moment, cause="its title rests and nothing is heard")


def _let_go(pane: Pane, moment: Moment) -> Pane:
    """What has held a finished turn for too long holds it no more; shells do so as of the turn's end."""
    for child in pane.roster:
        if child.id in pane.held and _hold_end(pane, child) <= moment.awake_ms:
            is_over = holds_until_its_end(child.kind)
            pane = without_child(pane, child.id) if is_over else change(pane, held=pane.held - {child.id})
    if pane.held or pane.lead is Lead.WORKING:
        return settle(pane, moment.at_ms, pane.evidence, words_of(pane))
    return _infer(
        pane,
        moment,
        at_ms=pane.turn_ended_ms,
        cause=f"{len(pane.roster)} still in the background" if pane.roster else "nothing holds it any more",
    )


def due_ms(pane: Pane) -> int | None:
    """The next moment (awake ms) at which time alone changes the pane, or None."""
    return min((at for at, _ in _rules(pane)), default=None)


def pass_time(pane: Pane, moment: Moment) -> Pane:
    """The pane once `moment` has come. A limit passes at its own moment, however late we look."""
    while (rules := _rules(pane)) and (first := min(rules, key=lambda rule: rule[0]))[0] <= moment.awake_ms:
        at, rule = first
        pane = rule(pane, Moment(at_ms=moment.at_ms - (moment.awake_ms - at), awake_ms=at))
    return pane


def restore(pane: Pane) -> Pane:
    """The pane as it is known after a gap in which events may have been lost: an open state is a memory, not a sight."""
    if pane.state in (State.WORKING, State.BLOCKED, State.WAITING):
        return change(pane, evidence=Evidence.RESTORED)
    return pane
