"""`tocsin replay`: what would have been shown, and in which order, event by event."""

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tocsin.cli.main import DONE, USAGE

if TYPE_CHECKING:
    from tocsin.cli.playback import Shown

POLICIES = ("smart", "recent", "oldest-first", "name")


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `replay`."""
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="a recording of `tocsin record`, or of real agents; with --case, a file of cases",
    )
    parser.add_argument("--case", metavar="ID", help="play this case; one line for each look")
    parser.add_argument("--scenario", help="which titles of the file beside a driver's recording; default: the last part of its name")
    parser.add_argument(
        "--policy",
        action="append",
        choices=POLICIES,
        help="how the final order is made; may be given more than once, to see them side by side",
    )
    parser.add_argument("--json", action="store_true", help="JSON lines (also without this: there is no other form)")


def run(args: argparse.Namespace) -> int:
    """Play and print; returns the exit code. What cannot be played is named on stderr."""
    from tocsin.cli.recordings import BadRecording

    try:
        unplayed = _play_case(args.files[0], args.case) if args.case else _play(args.files, args.scenario, args.policy or ["smart"])
    except (BadRecording, OSError) as error:
        print(f"tocsin: {error}", file=sys.stderr)
        return USAGE
    for step in unplayed:
        print(f"not played: {step}", file=sys.stderr)
    return DONE


def _print(line: dict[str, Any]) -> None:
    print(json.dumps(line, ensure_ascii=False))


def told_of(shown: "Shown") -> dict[str, Any]:
    """What is shown of a pane, as every line of a replay says it."""
    return {
        "state": shown.state,
        "class": shown.attention_class,
        "interrupted": shown.interrupted,
        "evidence": shown.evidence,
        "cause": shown.cause,
    }


def _play(files: Iterable[Path], scenario: str | None, policies: list[str]) -> list[str]:
    from tocsin.cli.playback import Playback
    from tocsin.cli.recordings import read
    from tocsin.listing.orders import ordered

    recorded, unplayed = [], []
    for file in files:
        messages, left = read(file, scenario)
        recorded += messages
        unplayed += left
    recorded.sort(key=lambda one: one.at_ms)
    if not recorded:
        _print({"order": []})
        return unplayed
    start_ms = recorded[0].at_ms
    playback = Playback(start_ms)
    told = 0

    def tell() -> None:
        nonlocal told
        for change in playback.changes[told:]:
            shown = change.shown
            _print({"t": round((change.at_ms - start_ms) / 1000, 3), "pane": shown.pane, **told_of(shown)})
        told = len(playback.changes)

    for one in recorded:
        playback.until(one.at_ms)
        playback.play(one.body)
        tell()
    tell()
    for policy in policies:
        order = [row.id for row in ordered(playback.rows(), policy)]
        _print({"order": order} if policies == ["smart"] else {"policy": policy, "order": order})
    return unplayed


def _play_case(file: Path, case: str) -> list[str]:
    from tocsin.cli.cases import CasePlayer, read_case

    steps, moments = read_case(file, case)
    player = CasePlayer()
    for look in player.play(steps, moments):
        panes = {pane: told_of(shown) for pane, shown in look.panes.items()}
        _print({"t": look.at_ms / 1000, "panes": panes, "order": look.order, "raised": look.raised})
    return player.unplayed
