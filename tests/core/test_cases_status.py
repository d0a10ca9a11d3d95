"""Cases from public reports, under their ids: what a right system shows of a pane at each moment. See data/cases.jsonl for each why."""

import pytest

from support import DATA
from tocsin.cli.cases import CasePlayer, read_case
from tocsin.cli.recordings import START_MS
from tocsin.contract.messages import Evidence, State
from tocsin.status_store.core.pane import status

CASES = DATA / "cases.jsonl"

# case -> moment (ms) -> pane -> (state, class, interrupted); None where the pane must show no agent.
EXPECTED: dict[str, dict[int, dict[str, tuple[str, int, bool]]]] = {
    "A01": {
        6050: {"P1": ("working", 3, False)},
        11500: {"P1": ("done", 4, True)},
        19000: {"P2": ("working", 3, False)},
        70000: {"P1": ("working", 3, False)},
    },
    "A02": {4000: {"P1": ("working", 3, False)}, 15000: {"P1": ("done", 2, False)}, 21000: {"P2": ("working", 3, False)}},
    "A04": {3000: {"P1": ("working", 3, False)}, 186000: {"P1": ("done", 2, False)}, 191000: {"P2": ("done", 2, False)}},
    "A06": {
        140: {"P1": ("blocked", 1, False)},
        500: {"P1": ("blocked", 1, False)},
        9000: {"P1": ("working", 3, False)},
        12000: {"P1": ("done", 2, False)},
    },
    "A07": {
        5000: {"P1": ("done", 2, False)},
        8050: {"P1": ("idle", 4, False)},
        600000: {"P1": ("idle", 4, False)},
        610000: {"P1": ("working", 3, False)},
    },
    "A10": {13000: {"P1": ("gone", 4, False)}, 60000: {"P2": ("working", 3, False)}, 1860000: {"P2": ("working", 4, False)}},
    "B01": {
        100: {
            "P1": ("idle", 4, False), "P2": ("idle", 4, False), "P3": ("idle", 4, False), "P4": ("idle", 4, False),
            "P5": ("working", 3, False), "P6": ("idle", 4, False),
        },
    },
    "B03": {1000: {"P1": ("working", 3, False)}, 3920: {"P1": ("working", 3, False)}, 9000: {"P1": ("idle", 4, False)}, 14000: {"P1": ("idle", 4, False)}},
    "B04": {51: {"P1": ("blocked", 1, False)}, 300000: {"P1": ("blocked", 1, False)}, 301000: {"P1": ("working", 3, False)}},
    "C01": {3000: {"P3": ("working", 3, False)}, 6500: {"P1": ("done", 2, False), "P2": ("done", 2, False)}},
    "C03": {
        71000: {"P1": ("working", 3, False), "P3": ("done", 2, False), "P4": ("gone", 4, False)},
        90000: {"P1": ("working", 3, False)},
    },
    "D01": {3000: {"P1": ("done", 2, False)}, 5500: {"P2": ("working", 3, False)}, 9000: {"P1": ("working", 3, False)}},
    "D04": {15000: {"P1": ("working", 3, False)}, 25000: {"P1": ("working", 3, False)}},
    "D05": {8100: {"P1": ("done", 2, False)}, 14000: {"P1": ("working", 3, False)}},
}  # fmt: skip


def played(case: str) -> tuple[CasePlayer, dict]:
    player = CasePlayer()
    steps, moments = read_case(CASES, case)
    return player, {look.at_ms: look for look in player.play(steps, moments)}


@pytest.mark.parametrize("case", sorted(EXPECTED))
def test_a_reported_case_shows_at_each_moment_what_is_true(case: str) -> None:
    _, looks = played(case)
    for at_ms, panes in EXPECTED[case].items():
        for pane, expected in panes.items():
            shown = looks[at_ms].panes[pane]
            assert (shown.state.value, shown.attention_class, shown.interrupted) == expected, f"{case} at {at_ms}, {pane}"


def pane_of(player: CasePlayer, name: str):
    return next(pane for pane in player.playback.panes.panes.values() if pane.pane == name)


def test_a02_the_history_of_a_turn_with_a_subagent_holds_exactly_one_done() -> None:
    player, _ = played("A02")
    pane = pane_of(player, "P1")
    assert [past.state for past in pane.history] == [State.WORKING]
    assert pane.state is State.DONE


def test_a04_the_end_of_a_turn_that_leaves_work_in_the_background_is_recorded_at_once() -> None:
    steps, _ = read_case(CASES, "A04")
    player = CasePlayer()
    for _ in player.play([step for step in steps if step["t"] <= 3000], [3000]):
        pane = pane_of(player, "P1")
        assert pane.state is State.WORKING
        assert pane.turns[-1].ended_ms is not None
        assert not player.playback.raised


def test_a10_a_silent_pane_is_stale_and_not_dead() -> None:
    _, looks = played("A10")
    assert looks[1860000].panes["P2"].evidence is Evidence.STALE


def test_b01_a_path_that_holds_an_agents_name_is_no_agent() -> None:
    _, looks = played("B01")
    assert {pane: shown.evidence for pane, shown in looks[100].panes.items() if pane in ("P1", "P2", "P3", "P6")} == dict.fromkeys(
        ("P1", "P2", "P3", "P6"), Evidence.NO_SIGNAL
    )


def test_b04_the_moment_of_a_prompt_is_when_it_was_asked_and_no_title_moves_it() -> None:
    steps, moments = read_case(CASES, "B04")
    player = CasePlayer()
    began_ms = {look.at_ms: player.playback.rows()[0].attention_at - START_MS for look in player.play(steps, moments)}
    assert began_ms[51] == began_ms[300000] == 51


def test_c01_looks_move_nothing() -> None:
    _, looks = played("C01")
    assert looks[3000].order == looks[6500].order == ["W2", "W1", "W3"]


def test_c03_restored_states_are_unconfirmed_and_ring_nobody() -> None:
    _, looks = played("C03")
    assert looks[71000].panes["P1"].evidence is Evidence.RESTORED
    assert looks[71000].panes["P3"].evidence is Evidence.OBSERVED
    assert looks[71000].raised == 1, "W4 rang before the hub was stopped, and nothing rings for what is restored"
    assert looks[90000].panes["P1"].evidence is Evidence.OBSERVED


def test_d01_stragglers_move_nothing_and_the_end_keeps_its_moment() -> None:
    player, _ = played("D01")
    pane = pane_of(player, "P1")
    done = [past for past in pane.history if past.state is State.DONE]
    assert len(done) == 1
    assert done[0].since_ms - pane.turns[0].started_ms == 1500


def test_d04_late_events_are_counted_and_none_is_applied_twice() -> None:
    player, _ = played("D04")
    assert pane_of(player, "P1").late == 2, "three were spooled, one of them was torn"


def test_d05_a_hook_that_is_registered_twice_counts_once() -> None:
    player, looks = played("D05")
    pane = pane_of(player, "P1")
    assert [past.state for past in pane.history][:4] == [State.WORKING, State.BLOCKED, State.WORKING, State.DONE]
    assert looks[8100].raised == 1
    assert pane.turn == 3, "the prompts at 9000 and 14000 are two, though their text is equal"


def test_b03_an_unknown_glyph_is_no_edge_and_is_counted_once() -> None:
    player, looks = played("B03")
    assert looks[9000].panes["P1"] == looks[14000].panes["P1"]
    assert player.playback.panes.unknown_glyphs == {"⬖", "⬗"}


def test_a_status_names_the_calls_in_flight_and_whose_they_are() -> None:
    steps, _ = read_case(CASES, "A02")
    player = CasePlayer()
    seen = {look.at_ms: status(pane_of(player, "P1")).calls for look in player.play(steps, [700, 2000, 4100])}
    assert [(call.tool, call.child) for call in seen[700]] == [("Agent", None), ("Read", "a1")]
    assert [(call.tool, call.child) for call in seen[2000]] == [("Agent", None)]
    assert seen[4100] == ()
