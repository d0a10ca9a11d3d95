"""A case from a public report, played through the services' own cores: a state of every pane at each moment of a look."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tocsin.agents.registry import AGENTS
from tocsin.cli.playback import Playback, Shown
from tocsin.cli.recordings import HOST, LIFE, START_MS, BadRecording, keyed
from tocsin.contract.ids import PaneId, WorktreeId
from tocsin.contract.messages import HookReported, PaneSeen, PaneTitled, Process, Titled, WorktreeKnown
from tocsin.contract.refusals import Refusal
from tocsin.hook_ingest.core.payload import Envelope, parse, report
from tocsin.status_store.store import GAP_MS

CANCEL_KEYS = frozenset({"Esc", "Ctrl+C"})

NOT_OURS = frozenset({"t", "do", "pane", "agent", "event", "sent", "spooled", "tool", "input", "text", "note", "pid"})
"""Fields of a step that are no field of the agent's payload."""

MOVES_NOTHING = frozenset({"note", "look", "view"})
"""A look never moves a rank; that it does not is what such a step is there to show."""


@dataclass
class Look:
    """What is shown at one moment of a case."""

    at_ms: int
    panes: dict[str, Shown]
    order: list[str]
    raised: int


@dataclass
class CasePlayer:
    """One case. `unplayed` names the steps that need more than hooks, titles, keys and processes."""

    playback: Playback = field(default_factory=lambda: Playback(START_MS))
    unplayed: list[str] = field(default_factory=list)
    _sessions: dict[str, str] = field(default_factory=dict)
    _agents: dict[str, str] = field(default_factory=dict)
    _titles: dict[str, list[Titled]] = field(default_factory=dict)
    _spool: list[HookReported] = field(default_factory=list)
    _stopped_ms: int | None = None

    def play(self, steps: list[Mapping[str, Any]], moments: list[int]) -> Iterator[Look]:
        """Play the steps; yields what is shown at each `look` and at each of `moments` (ms from the start)."""
        timed: list[tuple[int, Mapping[str, Any] | None]] = [(int(step["t"]), step) for step in steps]
        looks = {int(step["t"]) for step in steps if step["do"] == "look"}
        timed += [(at, None) for at in sorted(looks | set(moments))]
        for at_ms, step in sorted(timed, key=lambda one: (one[0], one[1] is None)):
            self.playback.until(START_MS + at_ms)
            if step is not None:
                self._step(step)
            if step is None:
                self._drain_spool()
                yield self._look(at_ms)

    def _look(self, at_ms: int) -> Look:
        panes = {str(shown.pane): shown for shown in self.playback.shown()}
        return Look(at_ms, panes, [row.name for row in self.playback.rows()], len(self.playback.raised))

    def _step(self, step: Mapping[str, Any]) -> None:
        match step["do"]:
            case "hook":
                self._hook(step)
            case "title":
                self._title(step)
            case "key":
                self._see(step, last_key_ms=self.playback.now_ms, cancel_key=step.get("key") in CANCEL_KEYS)
            case "proc" if "exit" in str(step.get("event")):
                self._agents.pop(self._place(step)[0], None)
                self._see(step, live="terminal" not in str(step.get("event")))
            case "proc":
                pass  # it hangs: nobody hears of that
            case "stop hub":
                self._stopped_ms = self.playback.now_ms
            case "start hub" | "restart hub":
                stopped_ms = self.playback.now_ms if self._stopped_ms is None else self._stopped_ms
                self.playback.restart(gap=self.playback.now_ms - stopped_ms > GAP_MS)
            case "fault" if "cut in half" in str(step.get("what")) and self._spool:
                self._spool.pop()
            case done if done in MOVES_NOTHING:
                pass
            case _:
                self.unplayed.append(json.dumps(step, ensure_ascii=False))

    def _place(self, step: Mapping[str, Any]) -> tuple[PaneId, str]:
        """The pane, and the folder of its worktree: `W1/P1` lies in W1, a bare pane in a worktree of its own."""
        name = str(step["pane"])
        worktree = name.rpartition("/")[0] or name
        path = f"/cases/{worktree}"
        known = WorktreeKnown(host=HOST, worktree=WorktreeId(worktree), path=path, name=worktree, at_ms=self.playback.now_ms)
        self.playback.play(known)
        return PaneId(name.rpartition("/")[2]), path

    def _see(self, step: Mapping[str, Any], **told: Any) -> None:
        pane, path = self._place(step)
        agent = self._agents.get(pane)
        process = Process(pid=1, started_ms=START_MS, boot=LIFE) if agent is not None else None
        seen: dict[str, Any] = {"process": process, "cwd": path, "agent": agent, **told}
        self.playback.play(PaneSeen(host=HOST, pane=pane, life=LIFE, at_ms=self.playback.now_ms, **seen))

    def _title(self, step: Mapping[str, Any]) -> None:
        pane, _ = self._place(step)
        self._see(step)
        titles = self._titles.setdefault(pane, [])
        titles.append(Titled(number=len(titles) + 1, text=str(step["text"]), at_ms=self.playback.now_ms))
        self.playback.play(PaneTitled(host=HOST, pane=pane, life=LIFE, titles=tuple(titles[-8:])))

    def _hook(self, step: Mapping[str, Any]) -> None:
        pane, path = self._place(step)
        name = str(step.get("agent", "claude"))
        if self._agents.get(pane) != name:
            self._agents[pane] = name
            self._see(step)
        payload = {key: value for key, value in step.items() if key not in NOT_OURS}
        payload["session_id"] = self._sessions[pane] = str(step.get("session_id") or self._sessions.get(pane) or f"session of {pane}")
        if "tool" in step:
            payload["tool_name"] = step["tool"]
        if "input" in step:
            payload["tool_input"] = {"command": step["input"]}
        if "text" in step:
            payload["prompt"] = step["text"]
        sent_ms = START_MS + int(step["sent"]) if "sent" in step else None
        spooled = bool(step.get("spooled"))
        envelope = Envelope(
            host=HOST, cwd=path, sent_ms=sent_ms, tocsin_pane=pane, spooled=spooled, sent_now_ms=self.playback.now_ms, attended=True
        )
        body = parse(json.dumps(payload).encode())
        said = body if isinstance(body, Refusal) else report(AGENTS[name], str(step["event"]), body, envelope, self.playback.now_ms, keyed)
        if isinstance(said, Refusal):
            self.unplayed.append(f"{json.dumps(step, ensure_ascii=False)}: {said.message}")
        elif said is not None and spooled:
            self._spool.append(said)
        elif said is not None:
            self.playback.play(said)

    def _drain_spool(self) -> None:
        """Late, and behind what was live meanwhile: the hardest moment for it."""
        for said in sorted(self._spool, key=lambda said: said.sent_ms or 0):
            self.playback.play(said)
        self._spool.clear()


def read_case(file: Path, case: str) -> tuple[list[Mapping[str, Any]], list[int]]:
    """Steps and moments of one case of a file of cases. Raises BadRecording, OSError."""
    for number, line in enumerate(file.read_text().splitlines(), 1):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise BadRecording(f"{file}:{number}: not JSON ({error})") from error
        if row.get("id") == case:
            return row["input"], sorted({int(check["at"]) for check in row["expected"]})
    raise BadRecording(f"{file}: no case {case}")
