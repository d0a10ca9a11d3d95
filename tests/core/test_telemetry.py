"""What is counted about the list."""

import msgspec
import pytest

from tocsin.console.core.telemetry import DISTRIBUTION_EVERY_MS, Telemetry
from tocsin.contract.ids import HostId, PaneId, WorktreeId
from tocsin.contract.messages import AttentionCause, Evidence, PaneRow, Row, State
from tocsin.contract.metrics import PROMOTIONS, SWITCHES
from tocsin.contract.telemetry import Class1Promotion, ClassDistribution, Counted, SmartToRecentSwitch, TelemetryCounted
from tocsin.listing.orders import KEYS, RECENT, SMART

CLASSES = {State.BLOCKED: 1, State.WAITING: 1, State.DONE: 2, State.WORKING: 3, State.IDLE: 4}


def a_row(name: str, state: State, evidence: Evidence = Evidence.OBSERVED) -> Row:
    pane = PaneRow(id=PaneId("p"), agent="claude", state=state, evidence=evidence, since_ms=0, reason="")
    return Row(
        rank=0, id=WorktreeId(name), name=name, path=f"/w/{name}", host=HostId("h"), attention_class=CLASSES[state], attention_at=0,
        evidence=evidence, reason="", panes=(pane,),
    )  # fmt: skip


def promotions(counted: list[Counted]) -> list[AttentionCause]:
    return [one.cause for one in counted if isinstance(one, Class1Promotion)]


def distributions(counted: list[Counted]) -> list[ClassDistribution]:
    return [one for one in counted if isinstance(one, ClassDistribution)]


# ---------------------------------------------------------------- distribution


def test_a_distribution_counts_the_worktrees_of_each_class():
    rows = [a_row("a", State.BLOCKED), a_row("b", State.DONE), a_row("c", State.DONE), a_row("d", State.IDLE)]
    assert Telemetry().listed(rows, True, 0) == [ClassDistribution(class1=1, class2=2, class3=0, class4=1, total=4)]


def test_distributions_are_told_at_most_every_30_s():
    telemetry = Telemetry()
    told = [
        bool(distributions(telemetry.listed([], True, at)))
        for at in (0, 1, DISTRIBUTION_EVERY_MS - 1, DISTRIBUTION_EVERY_MS, DISTRIBUTION_EVERY_MS + 1)
    ]
    assert told == [True, False, False, True, False]


def test_no_distribution_is_told_while_nobody_sorts_smart():
    telemetry = Telemetry()
    assert telemetry.listed([], False, 0) == []
    assert distributions(telemetry.listed([], True, 1)) != [], "nor is the time used up by it"


# ------------------------------------------------------------------ promotion


@pytest.mark.parametrize(
    ("state", "evidence", "cause"),
    [
        (State.BLOCKED, Evidence.OBSERVED, AttentionCause.BLOCKED),
        (State.WAITING, Evidence.OBSERVED, AttentionCause.WAITING),
        (State.BLOCKED, Evidence.INFERRED, AttentionCause.TITLE),
        (State.WAITING, Evidence.RESTORED, AttentionCause.WAITING),
    ],
)
def test_a_promotion_names_its_cause(state, evidence, cause):
    telemetry = Telemetry()
    telemetry.listed([a_row("a", State.WORKING)], False, 0)
    assert promotions(telemetry.listed([a_row("a", state, evidence)], False, 1)) == [cause]


def test_who_stands_in_class_1_already_is_not_promoted_again():
    telemetry = Telemetry()
    states = (State.WORKING, State.BLOCKED, State.WAITING, State.BLOCKED, State.DONE, State.BLOCKED)
    told = [promotions(telemetry.listed([a_row("a", state)], False, at)) for at, state in enumerate(states)]
    assert told == [[], ["blocked"], [], [], [], ["blocked"]]


def test_the_first_list_promotes_nobody_since_what_was_before_is_not_known():
    assert promotions(Telemetry().listed([a_row("a", State.BLOCKED)], True, 0)) == []


def test_a_worktree_that_is_new_in_the_list_and_needs_somebody_is_promoted():
    telemetry = Telemetry()
    telemetry.listed([a_row("a", State.IDLE)], False, 0)
    assert promotions(telemetry.listed([a_row("a", State.IDLE), a_row("b", State.WAITING)], False, 1)) == ["waiting"]


def test_promotions_have_no_throttle_and_need_no_viewer():
    telemetry = Telemetry()
    telemetry.listed([a_row("a", State.IDLE), a_row("b", State.IDLE)], False, 0)
    counted = telemetry.listed([a_row("a", State.BLOCKED), a_row("b", State.WAITING)], False, 0)
    assert counted == [Class1Promotion(cause=AttentionCause.BLOCKED), Class1Promotion(cause=AttentionCause.WAITING)]


# --------------------------------------------------------------------- switch


@pytest.mark.parametrize("before", [None, SMART, *KEYS])
@pytest.mark.parametrize("after", [SMART, *KEYS])
def test_only_a_change_from_smart_to_recent_is_told(before, after):
    is_told = (before, after) == (SMART, RECENT)
    assert Telemetry().sorted_by(before, after) == ([SmartToRecentSwitch()] if is_told else [])


# ------------------------------------------------------------------- together


def test_what_was_told_is_counted_for_metrics():
    telemetry = Telemetry()
    telemetry.listed([a_row("a", State.IDLE)], False, 0)
    telemetry.listed([a_row("a", State.BLOCKED)], False, 1)
    telemetry.sorted_by(SMART, RECENT)
    told = {(sample.metric, *sample.labels): sample.value for sample in telemetry.samples()}
    assert told == {(PROMOTIONS, "blocked"): 1, (PROMOTIONS, "waiting"): 0, (PROMOTIONS, "title"): 0, (SWITCHES,): 1}


def test_nothing_that_is_told_names_a_worktree():
    telemetry = Telemetry()
    telemetry.listed([a_row("secret", State.IDLE)], True, 0)
    counted = [
        *telemetry.listed([a_row("secret", State.BLOCKED)], True, DISTRIBUTION_EVERY_MS),
        *telemetry.sorted_by(SMART, RECENT),
    ]
    said = [msgspec.json.encode(TelemetryCounted(workspace="default", at_ms=0, counted=one)).decode() for one in counted]
    assert said == [
        '{"v":1,"workspace":"default","at_ms":0,"counted":{"event":"class_1_promotion","cause":"blocked"}}',
        '{"v":1,"workspace":"default","at_ms":0,"counted":{"event":"class_distribution","class1":1,"total":1}}',
        '{"v":1,"workspace":"default","at_ms":0,"counted":{"event":"smart_to_recent_switch"}}',
    ]
