"""What a bench makes of its samples: ratios, what they reach, given gates, and the page."""

import re

import pytest

from bench.page import page
from tocsin.cli.bench.measure import Effort, Series, in_turn, percentile
from tocsin.cli.bench.rows import Reaches, Row, Unit, UnknownGate, failed, gate, table

ABOUT = {
    "python": "3.11.7", "machine": "Linux x86_64", "cpus": 2, "versions": {"tocsin": "0.1.0"},
    "load_before": [1.0, 2.0, 3.0], "load_after": [4.0, 5.0, 6.0], "seconds": 7,
}  # fmt: skip


def a_row(own: list[list[float]], base: list[list[float]] | None = None, **more) -> Row:
    given = {"gate": 3, "stretch": 2} | more
    return Row("name", "question", Series(own), "base", None if base is None else Series(base), **given)


def test_the_ratio_is_taken_inside_each_round_and_its_median_counts():
    # The machine was busy in the second round: both took ten times as long.
    row = a_row([[30, 20, 900], [300, 200, 100], [10, 10, 10]], [[10, 10, 10], [100, 100, 100], [10, 10, 10]])
    assert row.ratios == [3, 2, 1]
    assert row.ratio == 2


def test_a_base_that_is_taken_several_times_counts_so_often():
    assert a_row([[30]], [[10]], times=3).ratio == 1


def test_without_a_base_the_value_itself_counts_in_its_unit():
    assert a_row([[2_500_000_000]], unit=Unit.S).ratio == 2.5


@pytest.mark.parametrize(
    ("own", "more", "reaches"),
    [
        (2.0, False, Reaches.STRETCH),
        (2.1, False, Reaches.GATE),
        (3.1, False, Reaches.MISSED),
        (3.0, True, Reaches.STRETCH),
        (2.0, True, Reaches.GATE),
        (1.9, True, Reaches.MISSED),
    ],
)
def test_a_row_reaches_its_stretch_goal_its_gate_or_neither(own, more, reaches):
    gate, stretch = (2, 3) if more else (3, 2)
    assert a_row([[own]], [[1]], gate=gate, stretch=stretch, more=more).reaches is reaches


def test_a_row_without_figures_reaches_none_and_fails_none():
    row = a_row([[9]], [[1]], gate=None, stretch=None)
    assert row.reaches is Reaches.NONE
    assert row.fields()["met"] is None


def test_programs_get_value_base_ratio_spread_and_what_is_met():
    fields = a_row([[4000], [6000]], [[2000], [2000]]).fields()
    assert fields["value"] == 6.0
    assert fields["base"] == 2.0
    assert fields["ratio"] == 2.5
    assert fields["spread"] == [2, 3]
    assert (fields["gate"], fields["stretch"], fields["met"], fields["stretch_met"]) == (3, 2, True, False)


def test_a_given_gate_fails_when_its_row_does_not_keep_it():
    rows = [a_row([[4]], [[1]])]
    assert failed(rows, {"name": 5.0}) == []
    assert failed(rows, {"name": None}) == ["name: 4 is not ≤ 3 (question)"]
    assert failed(rows, {"name": 3.5}) == ["name: 4 is not ≤ 3.5 (question)"]


@pytest.mark.parametrize("gates", [{"other": 1.0}, {"other": None}])
def test_a_gate_for_what_was_not_measured_is_an_error_and_not_a_pass(gates):
    with pytest.raises(UnknownGate, match="there are: name"):
        failed([a_row([[1]])], gates)


def test_a_row_without_a_gate_can_only_be_held_to_a_given_one():
    rows = [a_row([[4]], [[1]], gate=None, stretch=None)]
    with pytest.raises(UnknownGate):
        failed(rows, {"name": None})
    assert failed(rows, {"name": 5.0}) == []


def test_a_gate_is_given_as_name_or_as_name_and_ratio():
    assert gate("ls") == ("ls", None)
    assert gate("ls=2.5") == ("ls", 2.5)
    with pytest.raises(ValueError, match="could not convert"):
        gate("ls=fast")


def test_percentiles_of_few_samples_are_samples():
    assert percentile([3, 1, 2], 0.5) == 2
    assert percentile([3, 1, 2], 0.99) == 3


async def test_cases_and_bases_are_taken_in_turn_and_warm_up_is_thrown_away():
    taken: list[str] = []

    def case(name: str):
        async def take() -> int:
            taken.append(name)
            return len(taken)

        return take

    found = await in_turn({"own": case("own"), "base": case("base")}, each=2, warm_up=1, rounds=2)
    assert [len(some) for some in found["own"].rounds] == [2, 2]
    assert all(sorted(taken[at : at + 2]) == ["base", "own"] for at in range(0, len(taken), 2))
    assert min(found["own"].all) > 2


def test_a_look_takes_few_samples_and_at_least_one():
    assert Effort(few=True).of(5) == 1
    assert Effort(few=True).of(1000) == 50
    assert Effort().of(1000) == 1000


def test_the_table_shows_small_ratios_as_fractions_and_the_base_below():
    shown = table([a_row([[1000]], [[500_000]], gate=1 / 200, stretch=1 / 400)]).splitlines()
    assert "1/500 (1/500..1/500)" in shown[1]
    assert "≤ 1/200" in shown[1]
    assert shown[1].endswith("stretch")
    assert shown[2].strip().startswith("base")


def test_the_page_says_honestly_what_is_missed_on_which_machine_and_under_which_load():
    rows = [
        Row("good", "is it good?", Series([[1]]), "base", Series([[1]]), 3, 2),
        Row("fair", "is it fair?", Series([[5]]), "base", Series([[2]]), 3, 2),
        Row("bad", "is it bad?", Series([[4]]), "base", Series([[1]]), 3, 2),
        Row("told", "is it told?", Series([[4]]), "base", Series([[1]])),
    ]
    shown = page(rows, ABOUT)
    assert "Of 3 rows with figures 2 keep their gate, 1 of them their stretch goal too." in shown
    assert "Missed: `bad` (is it bad?)." in shown
    assert "Gate but not stretch: `fair` (is it fair?)." in shown
    assert "load average 1.0 2.0 3.0 before and 4.0 5.0 6.0 after" in shown
    assert re.search(r"\| `bad` \| is it bad\? \|.*\| ≤ 3 \| ≤ 2 \| MISSED \|", shown)
