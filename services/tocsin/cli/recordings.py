"""What a recording holds, as the messages that services would have had: our own, and those of the driver of real agents."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tocsin.agents.registry import AGENTS
from tocsin.contract.ids import HostId, PaneId, tmux_pane, worktree_id
from tocsin.contract.messages import Body, HookReported, Mark, MarkKind, PaneSeen, PaneTitled, Process, Titled, WorktreeKnown
from tocsin.contract.refusals import Refusal
from tocsin.contract.subjects import SUBJECTS
from tocsin.contract.versions import Unreadable, decode
from tocsin.hook_ingest.core.payload import Envelope, parse, report

START_MS = 1_800_000_000_000
"""The moment at which a recording without dates is held to begin."""

HOST = HostId("recording")
LIFE = "recording"
CANCEL_KEYS = frozenset({"Escape", "C-c"})

RIG_EVENTS = frozenset({"StopRewake", "StartRewake", "HttpStop", "HttpPreToolUse", "notify"})
"""Second handlers that the driver installs beside the real ones, and a legacy notice that is known to be wrong."""


class BadRecording(ValueError):
    """A file that is no recording; the text names file and line."""


@dataclass(frozen=True)
class Recorded:
    """One message and when it came."""

    at_ms: int
    body: Body


def keyed(text: str) -> str:
    """A recording's texts are hashed without a secret: it holds them anyway."""
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).hexdigest()


def read(file: Path, scenario: str | None = None) -> tuple[list[Recorded], list[str]]:
    """The messages of a recording, oldest first, and what of it cannot be played. Raises BadRecording, OSError.

    `scenario`: of the titles beside a driver's recording; by default the last part of the file's name.
    """
    rows = list(_rows(file))
    if rows and "subject" in rows[0][1]:
        return _own(file, rows), []
    if not rows or "kind" not in rows[0][1]:
        raise BadRecording(f"{file}: no recording (neither our rows nor a driver's)")
    return _driven(file, [row for _, row in rows], scenario)


def _rows(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(file.read_text().splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise BadRecording(f"{file}:{number}: not JSON ({error})") from error
        if not isinstance(row, dict):
            raise BadRecording(f"{file}:{number}: not a JSON object")
        yield number, row


def _own(file: Path, rows: Iterable[tuple[int, Mapping[str, Any]]]) -> list[Recorded]:
    recorded = []
    for number, row in rows:
        subject = SUBJECTS.get(str(row.get("subject")))
        if subject is None or not isinstance(row.get("at_ms"), int):
            raise BadRecording(f"{file}:{number}: no subject of ours, or no at_ms")
        try:
            recorded.append(Recorded(row["at_ms"], decode(subject.body, json.dumps(row.get("body")).encode())))
        except Unreadable as error:
            raise BadRecording(f"{file}:{number}: {error}") from error
    return sorted(recorded, key=lambda one: one.at_ms)


# ----------------------------------------------- recordings of real agents


def _driven(file: Path, rows: list[dict[str, Any]], scenario: str | None) -> tuple[list[Recorded], list[str]]:
    client, _, rest = file.stem.partition("-")
    reader = _Driven(client)
    titles = file.with_name(f"titles-{client}.jsonl")
    if titles.exists():
        wanted = scenario or rest.rpartition("-")[2]
        shown = [row for _, row in _rows(titles) if row.get("scenario") == wanted]
        # What tmux shows is what our host would see; the raw sequences stand in where it was not asked.
        kind = "pane_title" if any(row.get("kind") == "pane_title" for row in shown) else "osc"
        rows = rows + [row for row in shown if row.get("kind") == kind]
    rows.sort(key=lambda row: float(row.get("t", 0)))
    for row in rows:
        reader.take(row)
    return reader.recorded, reader.unplayed


class _Driven:
    """Turns the driver's rows into messages: its keys and transcript rows are what the host would have seen, never hooks."""

    def __init__(self, client: str) -> None:
        self.recorded: list[Recorded] = []
        self.unplayed: list[str] = []
        self._client = client
        self._environment: dict[str, str] = {}
        self._session = ""
        self._titles: list[Titled] = []
        self._marks: list[Mark] = []
        self._folder: str | None = None
        self._known: set[str] = set()
        self._pane: PaneId | None = None

    def take(self, row: Mapping[str, Any]) -> None:
        """One row."""
        at_ms = START_MS + round(float(row.get("t", 0)) * 1000)
        match row.get("kind"):
            case "hook":
                self._hook(row, at_ms)
            case "pane_title" | "osc":
                self._title(str(row.get("text", "")), at_ms)
            case "driver":
                self._driver(row, at_ms)

    def _hook(self, row: Mapping[str, Any], at_ms: int) -> None:
        event, payload = str(row.get("event")), row.get("payload")
        agent = AGENTS.get(str(row.get("agent", self._client)))
        if agent is None or not isinstance(payload, dict) or event in RIG_EVENTS:
            return
        # Plugin clients record their environment once, at start.
        self._environment = row.get("env") or self._environment
        env = self._environment
        cwd = row.get("cwd") or payload.get("cwd") or payload.get("directory") or self._folder
        self._folder = self._folder or cwd
        if cwd and cwd not in self._known:
            self._known.add(cwd)
            name = cwd.rstrip("/").rpartition("/")[2] or cwd
            known = WorktreeKnown(host=HOST, worktree=worktree_id(HOST, cwd), path=cwd, name=name, at_ms=at_ms, active_ms=START_MS)
            self.recorded.append(Recorded(at_ms, known))
        self._see(at_ms, agent_cwd=cwd, env=env)
        attended = {"0": False, "1": True}.get(env.get("CLAUDE_CODE_SESSION_ATTENDED", ""))
        pid = env.get("CLAUDE_PID", "")
        envelope = Envelope(
            host=HOST, cwd=cwd, sent_ms=at_ms, sent_now_ms=None, spooled=False, tmux=env.get("TMUX"), tmux_pane=env.get("TMUX_PANE"),
            tocsin_pane=None, pid=int(pid) if pid.isdigit() else None, attended=attended, event=event,
        )  # fmt: skip
        body = parse(json.dumps(payload).encode())
        said = body if isinstance(body, Refusal) else report(agent, event, body, envelope, at_ms, keyed)
        if isinstance(said, Refusal):
            self.unplayed.append(f"{event}: {said.message}")
        elif said is not None:
            self._session = said.session
            self.recorded.append(Recorded(at_ms, said))

    def _title(self, text: str, at_ms: int) -> None:
        number = self._titles[-1].number + 1 if self._titles else 1
        self._titles = [*self._titles, Titled(number=number, text=text, at_ms=at_ms)][-8:]
        self.recorded.append(Recorded(at_ms, PaneTitled(host=HOST, pane=self._terminal(), life=LIFE, titles=tuple(self._titles))))

    def _driver(self, row: Mapping[str, Any], at_ms: int) -> None:
        keys = row.get("keys")
        if row.get("step") == "start":
            self._say_seen(at_ms)
        elif row.get("step") == "transcript":
            # Its `keys` are those of the transcript's JSON line.
            if row.get("says"):
                mark = Mark(number=len(self._marks) + 1, kind=MarkKind.INTERRUPTED, session=self._session, at_ms=at_ms)
                self._marks.append(mark)
                self._say_seen(at_ms)
        elif isinstance(keys, list) and keys:
            self._say_seen(at_ms, key_ms=at_ms, cancels=bool(CANCEL_KEYS & set(map(str, keys))))

    def _terminal(self) -> PaneId:
        return self._pane or PaneId("default.0.0")

    def _see(self, at_ms: int, agent_cwd: str | None, env: Mapping[str, str]) -> None:
        """The first hook that names its terminal tells what the host saw there all along."""
        server, pane = env.get("TMUX", "").rpartition(",")[0], env.get("TMUX_PANE")
        if self._pane is None and server and pane:
            self._pane = tmux_pane(server, pane)
            self.recorded = [Recorded(one.at_ms, _moved(one.body, self._pane)) for one in self.recorded]
        if self._folder is not None and not any(isinstance(one.body, PaneSeen) and one.body.cwd for one in self.recorded):
            self._say_seen(at_ms)

    def _say_seen(self, at_ms: int, key_ms: int | None = None, cancels: bool | None = None) -> None:
        seen = PaneSeen(
            host=HOST, pane=self._terminal(), life=LIFE, at_ms=at_ms, agent=self._client, process=Process(pid=1, started_ms=START_MS, boot=LIFE),
            cwd=self._folder, last_key_ms=key_ms, cancel_key=cancels, marks=tuple(self._marks[-8:]),
        )  # fmt: skip
        self.recorded.append(Recorded(at_ms, seen))


def _moved(body: Body, pane: PaneId) -> Body:
    return msgspec.structs.replace(body, pane=pane) if isinstance(body, PaneSeen | PaneTitled) else body


def events_of(recorded: Iterable[Recorded]) -> int:
    """How many hook events a recording holds."""
    return sum(isinstance(one.body, HookReported) for one in recorded)
