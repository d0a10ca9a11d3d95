"""Every recording of a real agent replays to what was on its screen. The timelines are written by hand, see data/timelines."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from support import DATA
from tocsin.cli.playback import Playback
from tocsin.cli.recordings import START_MS, read
from tocsin.contract.messages import HookReported

TIMELINES = sorted((DATA / "timelines").glob("*.json"))
SLACK_S = 0.01


@dataclass(frozen=True)
class Seen:
    """What a pane is shown as from a moment on."""

    from_s: float
    state: str
    interrupted: bool


def replayed(recording: Path, until_s: float, grain_ms: int = 1) -> dict[str, list[Seen]]:
    """What is shown of each pane, by the number of its terminal; a pane counts as idle before its first line.

    `grain_ms`: what the stamps of the hooks' clock are multiples of.
    """
    recorded, _ = read(recording)
    playback = Playback(START_MS)
    for one in recorded:
        if one.at_ms > START_MS + until_s * 1000:
            break
        playback.until(one.at_ms)
        body = one.body
        if isinstance(body, HookReported) and body.sent_ms is not None:
            body = msgspec.structs.replace(body, sent_ms=body.sent_ms - body.sent_ms % grain_ms)
        playback.play(body)
    playback.until(START_MS + round(until_s * 1000))
    panes: dict[str, list[Seen]] = {}
    for change in playback.changes:
        pane = f"%{change.shown.pane.rpartition('.')[2]}"
        seen = panes.setdefault(pane, [Seen(0.0, "idle", False)])
        now = Seen((change.at_ms - START_MS) / 1000, change.shown.state.value, change.shown.interrupted)
        if (now.state, now.interrupted) != (seen[-1].state, seen[-1].interrupted):
            seen.append(now)
    return panes


def allowed(step: dict, seen: Seen) -> bool:
    states = step["state"] if isinstance(step["state"], list) else [step["state"]]
    return seen.state in states and (seen.state != "done" or seen.interrupted == step["interrupted"])


def faults(steps: list[dict], seen: Iterable[Seen], until_s: float) -> list[str]:
    """Where what is shown is not what may be shown: a step may be shown from its `from` until the `by` of the next one."""
    seen = list(seen)
    found = []
    solid = [index for index, step in enumerate(steps) if not step.get("flash")]

    def end_of(index: int) -> float:
        """Until when a step may be shown: the `by` of the next step that must come."""
        following = [other for other in solid if other > index]
        return steps[following[0]]["by"] if following else until_s

    for number, one in enumerate(seen):
        begin = one.from_s
        end = seen[number + 1].from_s if number + 1 < len(seen) else until_s
        # Covered moment by moment: the windows of all steps that allow this state must cover its whole time.
        at = begin
        for index, step in enumerate(steps):
            starts, ends = step["from"] - SLACK_S, end_of(index) + SLACK_S
            if allowed(step, one) and starts <= at + SLACK_S:
                at = max(at, min(ends, end))
        if at + SLACK_S < end:
            found.append(f"{one.state}{'+int' if one.interrupted else ''} shown {begin:.3f}..{end:.3f}, not allowed from {at:.3f}")
    return found


@pytest.mark.parametrize("file", TIMELINES, ids=lambda file: file.stem)
def test_a_recording_shows_what_was_on_its_screen(file: Path) -> None:
    timeline = json.loads(file.read_text())
    panes = replayed(DATA / "captures" / timeline["recording"], timeline["until"])
    names = sorted({step.get("pane", "%0") for step in timeline["steps"]})
    problems = []
    for name in names:
        steps = [step for step in timeline["steps"] if step.get("pane", "%0") == name]
        seen = panes.get(name, [Seen(0.0, "idle", False)])
        seen[0] = Seen(steps[0]["from"], "idle", False)
        problems += [f"{name}: {fault}" for fault in faults(steps, seen, timeline["until"])]
        final = timeline["final"][name] if timeline["panes"] == 2 else timeline["final"]
        if not allowed(final, seen[-1]):
            problems.append(f"{name}: ends as {seen[-1]}, should be {final}")
    assert not problems, "\n".join([timeline["what"], *problems])


@pytest.mark.parametrize("file", TIMELINES, ids=lambda file: file.stem)
def test_stamps_in_hundredths_of_a_second_show_what_finer_ones_show(file: Path) -> None:
    # Some hook commands have no finer clock: several events of a session may then have one stamp.
    timeline = json.loads(file.read_text())
    recording = DATA / "captures" / timeline["recording"]
    assert replayed(recording, timeline["until"], grain_ms=10) == replayed(recording, timeline["until"])


def test_every_recording_has_a_timeline() -> None:
    recordings = {file.stem for file in (DATA / "captures").glob("*.jsonl") if not file.name.startswith("titles-")}
    assert recordings == {file.stem for file in TIMELINES}
