"""Events of one session that bear the same stamp, as hook commands give whose clock has a grain of 10 ms."""

import msgspec
import pytest

from builders import NOW_MS, a_hook
from tocsin.contract.messages import Ask, HookReported, Kind, Origin, State
from tocsin.status_store.core.hooks import hear
from tocsin.status_store.core.pane import Moment, Pane

PROMPT = a_hook(Kind.PROMPTED, origin=Origin.PERSON)
TOOL = {"tool": "Bash", "input_hash": "h"}
ASK = a_hook(Kind.ASKED, ask=Ask.PERMISSION, **TOOL)

# What came in this order, each with the same stamp -> what the pane is shown as, and why.
TIES = [
    ("claude", [PROMPT, a_hook(Kind.TURN_ENDED)], State.DONE, "the end came behind its prompt"),
    ("claude", [PROMPT, a_hook(Kind.TURN_ENDED), PROMPT], State.WORKING, "the next turn came behind the end"),
    ("claude", [PROMPT, ASK], State.BLOCKED, "a question came behind the prompt of its turn"),
    ("claude", [PROMPT, a_hook(Kind.TURN_ENDED), ASK], State.BLOCKED, "somebody is waited for, whatever had ended"),
    ("claude", [PROMPT, ASK, a_hook(Kind.ANSWERED, ask=Ask.PERMISSION)], State.WORKING, "the answer came behind the question"),
    ("claude", [PROMPT, ASK, a_hook(Kind.TOOL_ENDED, **TOOL)], State.WORKING, "what was asked for has been done"),
    ("claude", [PROMPT, a_hook(Kind.TOOL_STARTED, **TOOL), ASK], State.BLOCKED, "the question came behind its call"),
    ("claude", [PROMPT, ASK, a_hook(Kind.TOOL_STARTED, **TOOL)], State.BLOCKED, "a start may be told behind the question for it"),
    ("qwen", [PROMPT, ASK, a_hook(Kind.TOOL_STARTED, **TOOL)], State.WORKING, "here a start is the answer"),
    ("claude", [PROMPT, a_hook(Kind.TURN_ENDED), a_hook(Kind.TOOL_STARTED, **TOOL)], State.DONE, "a straggler reopens no turn"),
    ("claude", [PROMPT, a_hook(Kind.TURN_ENDED), a_hook(Kind.TOOL_ENDED, **TOOL)], State.DONE, "nor does a result"),
    ("claude", [PROMPT, a_hook(Kind.TOOL_ENDED, **TOOL), ASK], State.WORKING, "what has been done is not asked for"),
    ("claude", [a_hook(Kind.SESSION_STARTED, detail="startup"), PROMPT], State.WORKING, "the prompt came behind its session's start"),
]  # fmt: skip


def heard(events: list[HookReported]) -> Pane:
    pane = Pane(host="h", pane="p1")
    for seq, event in enumerate(events, 1):
        at_ms = NOW_MS + seq
        pane = hear(pane, msgspec.structs.replace(event, at_ms=at_ms, sent_ms=NOW_MS), Moment(at_ms=at_ms, awake_ms=at_ms), seq)
    return pane


@pytest.mark.parametrize(("agent", "events", "state", "why"), TIES, ids=[why for *_, why in TIES])
def test_of_events_with_one_stamp_the_order_of_receipt_decides_and_what_had_ended_stays_ended(agent, events, state, why):
    told = [msgspec.structs.replace(event, agent=agent, id=f"e{number}") for number, event in enumerate(events)]
    assert heard(told).state is state, why


def test_two_equal_events_of_one_moment_are_one_that_was_delivered_twice():
    # Their ids are equal as well: nobody could tell them apart, and here nobody has to.
    twins = heard([msgspec.structs.replace(event, id=f"e{number}") for number, event in enumerate([PROMPT, ASK, ASK])])
    assert (twins.prompts_opened, twins.repeated) == (1, 1)
