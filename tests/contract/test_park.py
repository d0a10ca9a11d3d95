"""The hook command that waits beside an idle session, and the plugins that use it, against a real server."""

import json
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hook_builders import RUNTIMES, SHELLS, Hook, a_hook
from support import Deadline
from tocsin.agents.install.endpoint import write_endpoint
from tocsin.agents.install.opencode import OPENCODE
from tocsin.agents.install.pi import PI

POINTER = "Mail for run r1: run `tocsin mail check`"
HELD = "held"
LEFT_WAITING = "left waiting"


@dataclass
class Parking:
    """A server that answers each look for a wake with the next of `answers`: (status, body), HELD or LEFT_WAITING.

    HELD: until its client goes, or `woken` is set; then with `held_end`. LEFT_WAITING: until its client goes.
    """

    port: int
    answers: "queue.SimpleQueue[tuple[int, bytes] | str]" = field(default_factory=queue.SimpleQueue)
    looks: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    woken: threading.Event = field(default_factory=threading.Event)
    held_end: tuple[int, bytes] = (200, POINTER.encode() + b"\n")
    left: int = 0  # looks that were held when their client went away

    def then(self, *answers: tuple[int, bytes] | str) -> None:
        for answer in answers:
            self.answers.put(answer)

    def write_endpoint(self, hook: Hook) -> None:
        write_endpoint(hook.state, f"http://127.0.0.1:{self.port}", "the-credential", "tocsin.test")

    def until(self, looks: int) -> None:
        for _ in Deadline(30, f"{looks} looks have come"):
            if len(self.looks) >= looks:
                return


@pytest.fixture
def parking() -> Iterator[Parking]:
    closing = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            told.paths.append(self.path)
            told.looks.append(dict(self.headers))
            answer = told.answers.get()
            if not isinstance(answer, str):
                self.say(*answer)
                return
            self.connection.settimeout(0.02)
            while not (closing.is_set() or (told.woken.is_set() and answer == HELD)):
                try:
                    if self.connection.recv(1) == b"":
                        told.left += 1
                        return
                except TimeoutError:
                    continue
            self.say(*told.held_end)

        def do_POST(self) -> None:
            told.paths.append(self.path)
            self.rfile.read(int(self.headers["Content-Length"]))
            self.say(204, b"")

        def say(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    class Listener(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *args: object) -> None:
            pass  # a client that went away

    listener = Listener(("127.0.0.1", 0), Handler)
    told = Parking(listener.server_address[1])
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield told
    closing.set()
    told.then(*[HELD] * 20)
    listener.shutdown()
    listener.server_close()
    thread.join()


@pytest.fixture(params=SHELLS, ids=lambda words: words[0])
def hook(request: pytest.FixtureRequest, tmp_path: Path, parking: Parking) -> Hook:
    made = a_hook(tmp_path / "home", request.param)
    parking.write_endpoint(made)
    return made


def a_session(session: str = "0f5c-1") -> bytes:
    return json.dumps({"session_id": session, "hook_event_name": "Stop", "last_assistant_message": 'a "session_id":"x"'}).encode()


@dataclass
class Ended:
    code: int
    printed: bytes
    complaint: bytes


def parked(hook: Hook, agent: str = "claude", body: bytes | None = None, env: Mapping[str, str] | None = None) -> "subprocess.Popen[bytes]":
    process = hook.start(agent, "park", env=env)
    assert process.stdin is not None
    process.stdin.write(a_session() if body is None else body)
    process.stdin.close()
    process.stdin = None
    return process


def ended(process: "subprocess.Popen[bytes]") -> Ended:
    printed, complaint = process.communicate(timeout=30)
    return Ended(process.returncode, printed, complaint)


NOTHING = Ended(0, b"", b"")
WOKEN = Ended(2, b"", POINTER.encode() + b"\n")


def at_once(bin_: Path) -> dict[str, str]:
    """An environment in which nothing sleeps, the clock stands, and each pause is written down."""
    bin_.mkdir()
    (bin_ / "sleep").write_text(f'#!/bin/sh\necho "$1" >>{bin_}/pauses\n')
    (bin_ / "date").write_text("#!/bin/sh\necho 1796008554\n")
    for program in bin_.iterdir():
        program.chmod(0o755)
    return {"PATH": f"{bin_}:{os.environ['PATH']}"}


def pauses(bin_: Path) -> list[str]:
    return (bin_ / "pauses").read_text().split() if (bin_ / "pauses").exists() else []


def leftovers(hook: Hook) -> list[str]:
    return sorted(file.name for file in (hook.state / "park").iterdir())


def test_a_wake_is_a_line_on_standard_error_and_the_exit_code_2(hook, parking):
    parking.then(HELD)
    process = parked(hook)
    parking.until(1)
    parking.woken.set()
    assert ended(process) == WOKEN
    assert leftovers(hook) == []


def test_it_says_which_session_waits_in_which_pane(hook, parking):
    parking.then((409, b"{}"))
    env = {"TMUX": "/tmp/t,1,0", "TMUX_PANE": "%3", "TOCSIN_PANE": "t.1.3", "CLAUDE_PID": str(os.getpid())}
    assert ended(parked(hook, env=env)) == NOTHING
    (look,) = parking.looks
    assert parking.paths == ["/park/claude"]
    assert {name: look[name] for name in look if name.startswith(("X-", "Auth", "Host"))} == {
        "Authorization": "Bearer the-credential",
        "Host": "tocsin.test",
        "X-Tocsin-Session": "0f5c-1",
        "X-Tocsin-Cwd": str(hook.home.resolve()),
        "X-Tocsin-Tmux": "/tmp/t,1,0",
        "X-Tocsin-Tmux-Pane": "%3",
        "X-Tocsin-Pane": "t.1.3",
        "X-Tocsin-Pid": str(os.getpid()),
    }


def test_it_looks_again_when_there_is_nothing_yet(hook, parking):
    parking.then((204, b""), (204, b""), (200, POINTER.encode()))
    assert ended(parked(hook)) == WOKEN
    assert len(parking.looks) == 3


@pytest.mark.parametrize("status", [401, 404, 409, 410, 422])
def test_whoever_is_let_go_ends_without_a_word(hook, parking, status):
    parking.then((status, b'{"code":"waiter_exists"}'))
    assert ended(parked(hook)) == NOTHING
    assert leftovers(hook) == []


def test_where_nobody_listens_nothing_waits(hook, parking):
    write_endpoint(hook.state, "http://127.0.0.1:1", "the-credential", "tocsin.test")
    assert ended(parked(hook)) == NOTHING
    (hook.state / "hook.curl").unlink()
    assert ended(parked(hook)) == NOTHING
    assert ended(parked(hook, env={"TOCSIN_STATE": str(hook.home / "nowhere")})) == NOTHING
    assert parking.looks == []


def test_a_server_that_comes_back_is_waited_for(hook, parking, tmp_path):
    parking.then((204, b""), (503, b"{}"), (503, b"{}"), (200, POINTER.encode()))
    assert ended(parked(hook, env=at_once(tmp_path / "bin"))) == WOKEN


def test_a_server_that_stays_away_is_given_up(hook, parking, tmp_path):
    parking.then((204, b""), *[(503, b"{}")] * 40)
    assert ended(parked(hook, env=at_once(tmp_path / "bin"))) == NOTHING
    assert len(parking.looks) == 32
    # A minute of looking, at rest in between.
    assert pauses(tmp_path / "bin") == ["1", *["2"] * 30]


def test_a_server_that_holds_nothing_is_not_asked_without_a_pause(hook, parking, tmp_path):
    parking.then(*[(204, b"")] * 5, (409, b"{}"))
    assert ended(parked(hook, env=at_once(tmp_path / "bin"))) == NOTHING
    assert pauses(tmp_path / "bin") == ["1"] * 5


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b'{"hook_event_name":"Stop"}',
        b'{"session_id":7}',
        b'{"session_id":""}',
        b'{"session_id":"a b\\n"}',
        b'{"session_id":"../x"}',
    ],
)
def test_without_a_session_there_is_nothing_to_wait_for(hook, parking, body):
    assert ended(parked(hook, body=body)) == NOTHING
    assert parking.looks == []


def test_the_session_is_found_in_json_with_spaces(hook, parking):
    parking.then((409, b"{}"))
    parked_body = b'{"hook_event_name": "Stop", "session_id":   "s-1", "cwd": "/w"}'
    assert ended(parked(hook, body=parked_body)) == NOTHING
    assert parking.looks[0]["X-Tocsin-Session"] == "s-1"


def test_it_reports_nothing_and_keeps_nothing_for_later(hook, parking):
    parking.then((500, b"{}"))
    assert ended(parked(hook)) == NOTHING
    assert parking.paths == ["/park/claude"]
    assert not (hook.state / "spool").exists()


@pytest.mark.parametrize("signalled", [signal.SIGTERM, signal.SIGHUP])
def test_it_ends_at_once_with_its_terminal_and_leaves_nothing_running(hook, parking, signalled):
    parking.then(HELD)
    process = parked(hook, env={"CLAUDE_PID": str(os.getpid())})
    parking.until(1)
    process.send_signal(signalled)
    assert ended(process) == NOTHING
    for _ in Deadline(30, "its request has ended too"):
        if parking.left == 1:
            break
    assert leftovers(hook) == []


def test_it_does_not_outlive_a_client_that_was_killed(hook, parking):
    client = subprocess.Popen(["sleep", "60"])
    parking.then(HELD, HELD)
    parking.held_end = (204, b"")
    process = parked(hook, env={"CLAUDE_PID": str(client.pid)})
    parking.until(1)
    client.kill()
    client.wait()
    parking.woken.set()
    assert ended(process) == NOTHING
    assert len(parking.looks) == 1
    assert leftovers(hook) == []


def test_only_the_newest_call_of_one_client_wakes_it_whatever_its_session(hook, parking):
    env = {"CLAUDE_PID": str(os.getpid())}
    parking.then(HELD, HELD)
    older = parked(hook, body=a_session("before-clear"), env=env)
    parking.until(1)
    newer = parked(hook, body=a_session("after-clear"), env=env)
    parking.until(2)
    parking.woken.set()
    assert (ended(older), ended(newer)) == (NOTHING, WOKEN)
    assert leftovers(hook) == []


def test_what_an_older_call_of_the_same_session_was_given_wakes_it_also_when_a_newer_call_has_come_meanwhile(hook, parking):
    """The end of a turn starts the newer call and makes held mail due at once: the server may say it to the older one, and says it once."""
    env = {"CLAUDE_PID": str(os.getpid())}
    parking.then(HELD, LEFT_WAITING)
    older = parked(hook, env=env)
    parking.until(1)
    newer = parked(hook, env=env)
    parking.until(2)
    parking.woken.set()
    assert ended(older) == WOKEN
    assert newer.poll() is None
    newer.terminate()
    assert ended(newer) == NOTHING
    assert leftovers(hook) == []


def test_two_clients_wait_beside_each_other(hook, parking):
    other = subprocess.Popen(["sleep", "60"])
    try:
        parking.then(HELD, HELD)
        waiting = [parked(hook, env={"CLAUDE_PID": str(pid)}) for pid in (os.getpid(), other.pid)]
        parking.until(2)
        parking.woken.set()
        assert [ended(process) for process in waiting] == [WOKEN, WOKEN]
    finally:
        other.kill()
        other.wait()


# ------------------------------------------------------------ the plugins

STAND_IN = {
    "opencode": """
import { Tocsin } from "./loaded.mjs"
const said = (what) => console.log(JSON.stringify(what))
const tui = new Proxy({}, { get: () => said({ composer: true }) })
const client = { session: { promptAsync: async (asked) => said({ woken: asked }) }, tui }
const hooks = await Tocsin({ client, directory: process.cwd() })
const play = {
  event: (type, properties) => hooks.event({ event: { type, properties } }),
  config: async (config) => { await hooks.config(config); said({ config }) },
}
""",
    "pi": """
import load from "./loaded.mjs"
const said = (what) => console.log(JSON.stringify(what))
const on = {}
load({ on: (name, hook) => { on[name] = hook }, sendUserMessage: (text, options) => said({ woken: { text, options } }) })
const ctx = { cwd: process.cwd(), isIdle: () => true, sessionManager: { getSessionId: () => "pi-1" } }
const play = { event: (type, properties) => on[type]({ type, ...properties }, ctx) }
""",
}
"""A stand-in for each agent: it loads our file and plays to it what stands on its input, one JSON list a line."""

LISTEN = """
import readline from "node:readline"
for await (const line of readline.createInterface({ input: process.stdin })) {
  const [how, ...what] = JSON.parse(line)
  await play[how](...what)
}
process.exit()
"""


@dataclass
class Playing:
    process: "subprocess.Popen[bytes]"

    def play(self, *what: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(what).encode() + b"\n")
        self.process.stdin.flush()

    def said(self) -> dict[str, object]:
        assert self.process.stdout is not None
        told: dict[str, object] = json.loads(self.process.stdout.readline())
        return told

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)


def playing(agent: str, home: Path, words: Sequence[str] = (), env: Mapping[str, str] | None = None) -> Playing:
    (home / "loaded.mjs").write_text({"opencode": OPENCODE, "pi": PI}[agent].text())
    (home / "run.mjs").write_text(STAND_IN[agent] + LISTEN)
    return Playing(
        subprocess.Popen(
            [RUNTIMES[0], "run.mjs", *words],
            cwd=home,
            env={"PATH": os.environ["PATH"], "HOME": str(home), **(env or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
    )


if RUNTIMES:

    @pytest.fixture
    def home(tmp_path: Path, parking: Parking) -> Path:
        hook = a_hook(tmp_path / "home", ["sh"])
        parking.write_endpoint(hook)
        return hook.home

    def test_opencode_is_woken_by_a_message_and_never_by_its_composer(home, parking):
        parking.then(HELD)
        agent = playing("opencode", home)
        agent.play("event", "session.created", {"sessionID": "ses_1", "info": {"id": "ses_1"}})
        agent.play("event", "session.idle", {"sessionID": "ses_1"})
        parking.until(1)
        parking.woken.set()
        assert agent.said() == {"woken": {"path": {"id": "ses_1"}, "body": {"parts": [{"type": "text", "text": POINTER}]}}}
        agent.end()
        assert [path for path in parking.paths if path.startswith("/park")] == ["/park/opencode"]

    def test_pi_is_woken_from_its_start_on(home, parking):
        parking.then(HELD)
        agent = playing("pi", home)
        agent.play("event", "session_start", {"reason": "startup"})
        parking.until(1)
        assert parking.looks[0]["X-Tocsin-Session"] == "pi-1"
        parking.woken.set()
        assert agent.said() == {"woken": {"text": POINTER, "options": {"deliverAs": "followUp"}}}
        agent.end()

    WORK = {
        "opencode": (("session.idle", {"sessionID": "ses_1"}), ("session.status", {"sessionID": "ses_1", "status": {"type": "busy"}})),
        "pi": (("agent_end", {"messages": []}), ("before_agent_start", {"prompt": "go on"})),
    }

    @pytest.mark.parametrize("agent", WORK)
    def test_nothing_waits_beside_a_session_that_works(agent, home, parking):
        idle, busy = WORK[agent]
        parking.then(HELD, HELD)
        player = playing(agent, home)
        player.play("event", *idle)
        parking.until(1)
        player.play("event", *busy)
        for _ in Deadline(30, "the waiting call has ended"):
            if parking.left == 1:
                break
        player.play("event", *idle)
        parking.until(2)
        player.end()
        for _ in Deadline(30, "the waiting call has ended with the agent"):
            if parking.left == 2:
                break

    def test_of_opencode_s_sessions_only_leads_are_woken_and_each_by_one_call(home, parking):
        parking.then(HELD, HELD, HELD)
        agent = playing("opencode", home)
        agent.play("event", "session.created", {"sessionID": "ses_2", "info": {"id": "ses_2", "parentID": "ses_1"}})
        agent.play("event", "session.idle", {"sessionID": "ses_2"})
        agent.play("event", "session.idle", {"sessionID": "ses_1"})
        parking.until(1)
        agent.play("event", "session.idle", {"sessionID": "ses_1"})
        parking.until(2)
        for _ in Deadline(30, "the older call has ended"):
            if parking.left == 1:
                break
        agent.end()
        assert {look["X-Tocsin-Session"] for look in parking.looks} == {"ses_1"}

    PANE = {"TMUX": "/tmp/t,1,0", "TMUX_PANE": "%3", "TOCSIN_PANE": "t.1.3"}

    @pytest.mark.parametrize(
        ("words", "is_pane"),
        [
            ((), True),
            (("run", "serve the web page"), True),
            (("run", "web"), True),
            (("serve",), False),
            (("--log-level", "DEBUG", "web"), False),
        ],
    )
    def test_opencode_as_a_server_is_no_pane_s(words, is_pane, home, parking):
        parking.then((409, b"{}"))
        agent = playing("opencode", home, words, PANE)
        agent.play("event", "session.idle", {"sessionID": "ses_1"})
        parking.until(1)
        agent.end()
        shown = [parking.looks[0].get(name, "") for name in ("X-Tocsin-Tmux", "X-Tocsin-Tmux-Pane", "X-Tocsin-Pane")]
        assert shown == (["/tmp/t,1,0", "%3", "t.1.3"] if is_pane else ["", "", ""])

    OURS = {rule: "allow" for verb in ("report", "heartbeat", "ask", "mail", "review") for rule in (f"tocsin {verb}", f"tocsin {verb} *")}

    @pytest.mark.parametrize(
        ("given", "wanted"),
        [
            ({}, {}),
            ({"permission": {"edit": "ask"}}, {"permission": {"edit": "ask"}}),
            ({"permission": "ask"}, {"permission": {"*": "ask", "bash": {"*": "ask", **OURS}}}),
            ({"permission": {"bash": "ask", "edit": "ask"}}, {"permission": {"edit": "ask", "bash": {"*": "ask", **OURS}}}),
            ({"permission": {"*": "deny", "bash": "ask"}}, {"permission": {"*": "deny", "bash": {"*": "ask", **OURS}}}),
            ({"permission": {"bash": "allow", "*": "ask"}}, {"permission": {"*": "ask", "bash": {"*": "ask", **OURS}}}),
            (
                {"permission": {"bash": {"git *": "allow", "*": "ask", "* --force*": "deny"}}},
                {"permission": {"bash": {"git *": "allow", "*": "ask", **OURS, "* --force*": "deny"}}},
            ),
            (
                {"agent": {"build": {"permission": {"bash": "ask"}}, "plan": {"permission": {"edit": "deny"}}, "x": {}}},
                {"agent": {"build": {"permission": {"bash": {"*": "ask", **OURS}}}, "plan": {"permission": {"edit": "deny"}}, "x": {}}},
            ),
        ],
    )
    def test_in_our_panes_opencode_allows_exactly_the_reporting_commands_on_top_of_the_user_s_rules(given, wanted, home):
        agent = playing("opencode", home, env={"TOCSIN_FOLDER": "/f"})
        agent.play("config", given)
        told = agent.said()
        agent.end()
        # The order counts: the last rule that matches decides.
        assert json.dumps(told) == json.dumps({"config": wanted})

    def test_outside_our_panes_opencode_keeps_the_user_s_rules(home):
        agent = playing("opencode", home)
        agent.play("config", {"permission": "ask"})
        assert agent.said() == {"config": {"permission": "ask"}}
        agent.end()
