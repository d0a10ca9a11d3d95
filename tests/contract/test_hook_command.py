"""The installed hook command, in the shells that may be a machine's `sh`, against a real server."""

import json
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hook_builders import RUNTIMES, SHELLS, Hook, a_hook
from support import DATA, Deadline
from tocsin.agents.install.endpoint import Endpoint, read_endpoint, write_endpoint
from tocsin.agents.install.hook_clock import NAME as CLOCK
from tocsin.agents.install.machine import HookCommand, Machine, packaged
from tocsin.agents.install.opencode import OPENCODE
from tocsin.agents.install.pi import PI
from tocsin.agents.registry import AGENTS
from tocsin.agents.spool import HEADERS, LOST, Spooled, parse_spooled
from tocsin.pane_host.boot_clock import BootClock
from tocsin.runtime.clock import SystemClock

CREDENTIAL = "the-credential"


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Server:
    """An HTTP server that keeps what it is sent, and answers as it is told. `hangs`: it never does."""

    port: int
    status: int = 204
    answer: bytes = b""
    hangs: bool = False
    requests: list[Request] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@pytest.fixture
def server() -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            # http.server reads header bytes as Latin-1.
            headers = {name: value.encode("latin-1").decode() for name, value in self.headers.items()}
            told.requests.append(Request(self.path, headers, body))
            if told.hangs:
                told.released.wait()
                return
            self.send_response(told.status)
            self.send_header("Content-Length", str(len(told.answer)))
            self.end_headers()
            self.wfile.write(told.answer)

        def log_message(self, *args: object) -> None:
            pass

    class Listener(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 200

        def handle_error(self, *args: object) -> None:
            pass  # a client that went away after its second

    listener = Listener(("127.0.0.1", 0), Handler)
    told = Server(listener.server_address[1])
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield told
    told.released.set()
    listener.shutdown()
    listener.server_close()
    thread.join()


@pytest.fixture(params=SHELLS, ids=lambda words: words[0])
def hook(request: pytest.FixtureRequest, tmp_path: Path) -> Hook:
    return a_hook(tmp_path / "home", request.param)


@pytest.fixture
def told_where(hook: Hook, server: Server) -> Hook:
    """A hook whose instance is up."""
    write_endpoint(hook.state, server.url, CREDENTIAL, "tocsin.test")
    return hook


@pytest.fixture
def down(hook: Hook) -> Hook:
    """A hook whose instance has been up, and is not."""
    write_endpoint(hook.state, "http://127.0.0.1:1", CREDENTIAL, "tocsin.test")
    return hook


def test_an_event_arrives_with_its_body_and_all_that_its_process_knows(told_where, server, tmp_path):
    folder = tmp_path / "ein Ördner 'q' \"d\" $HOME"
    folder.mkdir()
    body = json.dumps({"hook_event_name": "Stop", "text": "é 💥 \\n $HOME `id` $(id) %s \\x41 'q'"}, ensure_ascii=False).encode()
    env = {
        "TMUX": "/tmp/tmux-1/default,12,0",
        "TMUX_PANE": "%3",
        "TOCSIN_PANE": "default.12.3",
        "CLAUDE_PID": "77",
        "CLAUDE_CODE_SESSION_ATTENDED": "1",
    }
    assert told_where.run("claude", body=body, cwd=folder, env=env) == b""
    (request,) = server.requests
    assert (request.path, request.body) == ("/hook/claude", body + b"\n")
    kept = {name: request.headers.get(name) for name in (*HEADERS, "Authorization", "Host", "Content-Type", "Expect")}
    assert re.fullmatch(r"\d{13}|", kept.pop("X-Tocsin-Sent") or "")
    assert kept == {
        "X-Tocsin-Event": None,
        "X-Tocsin-Cwd": str(folder.resolve()),
        "X-Tocsin-Tmux": "/tmp/tmux-1/default,12,0",
        "X-Tocsin-Tmux-Pane": "%3",
        "X-Tocsin-Pane": "default.12.3",
        "X-Tocsin-Pid": "77",
        "X-Tocsin-Attended": "1",
        "Authorization": f"Bearer {CREDENTIAL}",
        "Host": "tocsin.test",
        "Content-Type": "application/json",
        "Expect": None,
    }


def test_the_event_is_named_where_the_payload_does_not_name_it(told_where, server):
    told_where.run("copilot", "agentStop", body=b'{"sessionId":"s"}')
    assert (server.requests[0].path, server.requests[0].headers["X-Tocsin-Event"]) == ("/hook/copilot", "agentStop")


def test_bytes_that_are_no_text_arrive_as_they_are(told_where, server):
    body = bytes(range(1, 256)) * 20 + b"."
    told_where.run(body=body)
    assert server.requests[0].body == body + b"\n"


def test_a_body_of_several_megabytes_arrives_whole(told_where, server):
    body = b'{"x":"' + b"0123456789" * 600_000 + b'"}'
    told_where.run(body=body)
    assert server.requests[0].body == body + b"\n"
    # Waiting for leave to send it could take the whole second.
    assert "Expect" not in server.requests[0].headers


def test_only_the_answer_200_is_printed(told_where, server):
    server.status, server.answer = 200, b'{"decision":"block",\n"reason":"mail 200"}'
    assert told_where.run() == server.answer + b"\n"
    server.answer = b""
    assert told_where.run() == b""
    server.status, server.answer = 422, b'{"code":"bad_field"}'
    assert told_where.run() == b""
    assert told_where.files() == []


def test_what_a_value_of_the_environment_holds_stays_one_value_or_is_left_out(told_where, server):
    hostile = {
        "TMUX": "x\r\nX-Evil: 1",
        "TMUX_PANE": '%1" -o /tmp/evil\n',
        "TOCSIN_PANE": "@/etc/passwd",
        "CLAUDE_PID": "7\x1b[0m",
        "CLAUDE_CODE_SESSION_ATTENDED": "1\nurl = http://127.0.0.1:1",
    }
    told_where.run(env=hostile)
    (request,) = server.requests
    sent = {name: value for name, value in request.headers.items() if name.startswith("X-")}
    assert {
        name: sent.get(name)
        for name in ("X-Tocsin-Tmux", "X-Tocsin-Tmux-Pane", "X-Tocsin-Pane", "X-Tocsin-Pid", "X-Tocsin-Attended", "X-Evil")
    } == {
        "X-Tocsin-Tmux": None,
        "X-Tocsin-Tmux-Pane": None,
        "X-Tocsin-Pane": "@/etc/passwd",
        "X-Tocsin-Pid": None,
        "X-Tocsin-Attended": None,
        "X-Evil": None,
    }


def test_a_folder_whose_name_holds_a_line_end_is_left_out(told_where, server, tmp_path):
    folder = tmp_path / "a\nX-Evil: 1"
    folder.mkdir()
    told_where.run(cwd=folder)
    assert not {"X-Tocsin-Cwd", "X-Evil"} & set(server.requests[0].headers)


def test_the_folder_is_the_real_one(told_where, server, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    told_where.run(cwd=tmp_path / "link", env={"PWD": str(tmp_path / "link")})
    assert server.requests[0].headers["X-Tocsin-Cwd"] == str((tmp_path / "real").resolve())


def test_an_agent_that_claude_code_started_does_not_pass_for_its_process(told_where, server):
    told_where.run("codex", env={"CLAUDE_PID": "77", "CLAUDE_CODE_SESSION_ATTENDED": "1"})
    assert not {"X-Tocsin-Pid", "X-Tocsin-Attended"} & set(server.requests[0].headers)


def test_the_user_s_curl_settings_and_proxies_have_no_say(told_where, server):
    (told_where.home / ".curlrc").write_text('proxy = "http://127.0.0.1:1"\nurl = "http://127.0.0.1:1"\n')
    told_where.run(env={"http_proxy": "http://127.0.0.1:1", "ALL_PROXY": "http://127.0.0.1:1"})
    assert len(server.requests) == 1


def test_no_argument_of_any_process_holds_the_credential(told_where, server, tmp_path):
    spy = tmp_path / "bin"
    spy.mkdir()
    (spy / "curl").write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >"{tmp_path}/arguments"\nexec "{shutil.which("curl")}" "$@"\n')
    (spy / "curl").chmod(0o755)
    told_where.run(env={"PATH": f"{spy}:{os.environ['PATH']}"})
    arguments = (tmp_path / "arguments").read_text()
    assert len(server.requests) == 1
    assert arguments.startswith("-q\n")
    assert CREDENTIAL not in arguments
    assert str(server.port) not in arguments


def test_the_time_of_an_event_is_its_own_when_the_caller_knows_it(told_where, server):
    told_where.run(env={"TOCSIN_SENT_MS": "1796008554851"})
    told_where.run(env={"TOCSIN_SENT_MS": "soon"})
    assert [request.headers.get("X-Tocsin-Sent") for request in server.requests] == ["1796008554851", None]


def test_the_stamp_is_the_time_in_milliseconds_or_none(told_where, server):
    before_ms = time.time_ns() // 1_000_000
    told_where.run()
    after_ms = time.time_ns() // 1_000_000
    sent = server.requests[0].headers.get("X-Tocsin-Sent")
    assert sent is None or before_ms <= int(sent) <= after_ms


def test_the_stamp_of_the_clock_that_pane_host_keeps_is_the_time_in_hundredths_of_a_second(told_where, server):
    # Where the kernel does not tell, and in a shell that has a clock of its own, this is the test above.
    BootClock(told_where.state, SystemClock()).keep()
    before_ms = time.time_ns() // 1_000_000
    told_where.run()
    after_ms = time.time_ns() // 1_000_000
    assert before_ms - 25 <= int(server.requests[0].headers["X-Tocsin-Sent"]) <= after_ms


BOOT = "2be27013-fd94-444d-8b5a-05d42c6b0a4c"
BEGAN = f"{BOOT} 1796000000000\n"
UPTIME = "12345.67 999.00\n"

# The clock's file, what the kernel shows as its boot and the time since, and the stamp; None: date was asked.
CLOCKS = [
    (BEGAN, BOOT, UPTIME, "1796012345670", "when the boot began, and the time since"),
    (BEGAN, BOOT, "7.08 1.00\n", "1796000007080", "08 is no octal number"),
    (BEGAN, BOOT, "0.09 0.00\n", "1796000000090", "in the first second"),
    (BEGAN, BOOT, "123456789.99 0.00\n", "1919456789990", "after four years"),
    (None, BOOT, UPTIME, None, "nobody keeps a clock"),
    (BEGAN, "another", UPTIME, None, "it is of an earlier boot"),
    (BEGAN, None, UPTIME, None, "the kernel does not name its boots"),
    (BEGAN, BOOT, None, None, "the kernel does not tell the time since"),
    ("", BOOT, UPTIME, None, "an empty file"),
    (f"{BOOT}\n", BOOT, UPTIME, None, "half a line"),
    (BEGAN[:-1], BOOT, UPTIME, None, "a line without its end"),
    (f"{BOOT} 999999999999\n", BOOT, UPTIME, None, "a digit less"),
    (f"{BOOT} 179600000000x\n", BOOT, UPTIME, None, "no number"),
    (f"{BOOT} 0796000000000\n", BOOT, UPTIME, None, "an octal number"),
    (f"{BOOT} -796000000000\n", BOOT, UPTIME, None, "before 1970"),
    (f"{BOOT} 1796000000000 7\n", BOOT, UPTIME, None, "more than was agreed"),
    (f"{BOOT} $(date)+1234567\n", BOOT, UPTIME, None, "a command"),
    (BEGAN, BOOT, "\n", None, "nothing"),
    (BEGAN, BOOT, "12345 999\n", None, "whole seconds"),
    (BEGAN, BOOT, "12345.6 999\n", None, "tenths"),
    (BEGAN, BOOT, ".67 999\n", None, "no seconds"),
    (BEGAN, BOOT, "08.67 999\n", None, "seconds in octal"),
    (BEGAN, BOOT, "-5.00 999\n", None, "before the boot"),
    (BEGAN, BOOT, "a[b].67 999\n", None, "an expression"),
]


@pytest.mark.parametrize(("clock", "boot", "uptime", "sent", "why"), CLOCKS, ids=[why for *_, why in CLOCKS])
def test_a_shell_without_a_clock_of_its_own_starts_no_process_for_the_time(told_where, server, tmp_path, clock, boot, uptime, sent, why):
    kernel, spy = tmp_path / "proc", tmp_path / "bin"
    for file, text in (
        (told_where.state / CLOCK, clock),
        (kernel / "sys/kernel/random/boot_id", boot and f"{boot}\n"),
        (kernel / "uptime", uptime),
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        if text is not None:
            file.write_text(text)
    spy.mkdir()
    (spy / "date").write_text(f'#!/bin/sh\n: >"{tmp_path}/asked"\necho 1796008554851\n')
    (spy / "date").chmod(0o755)
    # The shells that do have one are to be old, and the kernel is to be this one.
    text = told_where.program.read_text().replace("EPOCHREALTIME", "NO_SUCH_CLOCK").replace("/proc/", f"{kernel}/")
    told_where.program.write_text(text)
    told_where.run(env={"PATH": f"{spy}:{os.environ['PATH']}"})
    counted = subprocess.run([*told_where.shell, "-c", "echo $((1796000000000 + 0))"], capture_output=True, check=True).stdout
    if counted != b"1796000000000\n":
        sent = None  # mksh counts in 32 bits, and has a clock of its own
    assert server.requests[0].headers["X-Tocsin-Sent"] == (sent or "1796008554851"), why
    assert (tmp_path / "asked").exists() == (sent is None), why


def test_without_milliseconds_in_date_the_arrival_decides(told_where, server, tmp_path):
    old = tmp_path / "bin"
    old.mkdir()
    (old / "date").write_text("#!/bin/sh\ncase $1 in *N*) echo 1796008554N ;; *) echo 1796008554 ;; esac\n")
    (old / "date").chmod(0o755)
    env = {"PATH": f"{old}:{os.environ['PATH']}"}
    told_where.run(env=env)
    sent = server.requests[0].headers.get("X-Tocsin-Sent")
    # A shell that has a clock of its own asks nobody.
    assert sent is None or len(sent) == 13
    write_endpoint(told_where.state, "http://127.0.0.1:1", CREDENTIAL, "tocsin.test")
    told_where.run(env=env)
    (event,) = told_where.spooled()
    assert (event.sent_ms is None) == (sent is None)
    assert told_where.files()[0].name.startswith("1796008554000-" if sent is None else event.sent or "-")


def test_when_nobody_listens_the_event_is_kept_as_it_would_have_been_sent(told_where, server, tmp_path):
    folder = tmp_path / "wörk"
    folder.mkdir()
    body = '{"hook_event_name":"Stop","text":"é\\n $HOME\\u0000"}\n\n'.encode() + bytes(range(128, 256))
    env = {
        "TMUX": "/tmp/t,1,0",
        "TMUX_PANE": "%3",
        "TOCSIN_PANE": "t.1.3",
        "CLAUDE_PID": "7",
        "CLAUDE_CODE_SESSION_ATTENDED": "0",
        "TOCSIN_SENT_MS": "1796008554851",
    }
    told_where.run("claude", "Stop", body=body, cwd=folder, env=env)
    write_endpoint(told_where.state, "http://127.0.0.1:1", CREDENTIAL, "tocsin.test")
    assert told_where.run("claude", "Stop", body=body, cwd=folder, env=env) == b""
    (event,) = told_where.spooled()
    (request,) = server.requests
    assert event.agent == "claude"
    assert event.sent_ms == 1796008554851
    # The same bytes and the same time make the same message id: an event that was taken after all counts once.
    assert event.body == request.body
    assert event.headers() == {name: value for name, value in request.headers.items() if name in HEADERS}


@pytest.mark.parametrize("status", [500, 503])
def test_an_event_that_the_server_could_not_take_is_kept(told_where, server, status):
    server.status = status
    assert told_where.run() == b""
    assert len(told_where.spooled()) == 1


@pytest.mark.parametrize("status", [400, 401, 404, 413, 422])
def test_an_event_that_is_refused_is_not_kept(told_where, server, status):
    server.status = status
    told_where.run()
    assert len(server.requests) == 1
    assert told_where.files() == []


def test_a_server_that_hangs_is_left_and_the_event_kept(told_where, server):
    server.hangs = True
    told_where.run()
    assert len(server.requests) == len(told_where.spooled()) == 1


def test_without_curl_the_event_is_kept(told_where, tmp_path):
    bare = tmp_path / "bin"
    bare.mkdir()
    for name in ("cat", "date", "mkdir", "mv", "rm", *[words[0] for words in SHELLS]):
        (bare / name).symlink_to(shutil.which(name) or name)
    told_where.run(env={"PATH": str(bare)})
    assert len(told_where.spooled()) == 1


def test_before_the_instance_says_where_it_is_the_event_is_kept(hook):
    hook.state.mkdir(parents=True)
    hook.run()
    assert len(hook.spooled()) == 1


def test_without_an_instance_nothing_is_made_and_all_input_is_read(hook):
    hook.run(body=b"x" * 1_000_000)
    assert not hook.state.exists()
    assert hook.run(env={"TOCSIN_STATE": str(hook.home / "nowhere")}) == b""


def test_another_instance_is_reached_by_its_folder(hook, server, tmp_path):
    write_endpoint(tmp_path / "other state", server.url, CREDENTIAL, "tocsin.test")
    hook.run(env={"TOCSIN_STATE": str(tmp_path / "other state")})
    assert len(server.requests) == 1


@pytest.mark.parametrize("words", [("../evil",), ("Claude",), ("claude", "a b"), ("claude", "x\nX-Evil: 1"), ("",)])
def test_words_that_no_installer_writes_are_passed_over(told_where, server, words):
    told_where.run(*words)
    assert server.requests == []
    assert told_where.files() == []


def test_what_is_kept_is_for_the_user_s_eyes_alone(down):
    down.run()
    assert (down.state / "spool").stat().st_mode & 0o777 == 0o700
    assert [file.stat().st_mode & 0o777 for file in down.files()] == [0o600]


def test_a_large_body_is_kept_whole(down):
    body = b'{"x":"' + b"0123456789" * 600_000 + b'"}'
    down.run(body=body)
    assert down.spooled()[0].body == body + b"\n"


def test_events_of_one_moment_each_arrive_once_or_are_kept_once(told_where, server):
    bodies = [json.dumps({"hook_event_name": "PostToolUse", "n": number}).encode() for number in range(12)]
    together = [told_where.start("claude") for _ in bodies]
    for process, body in zip(together, bodies, strict=True):
        assert process.stdin is not None
        process.stdin.write(body)
    for process in together:
        process.communicate(timeout=30)
    arrived = [request.body for request in server.requests] + [event.body for event in told_where.spooled()]
    # A busy machine can take longer than the second that a hook waits: then an event arrives and is kept, with one id.
    assert sorted(set(arrived)) == sorted(body + b"\n" for body in bodies)


def test_events_of_one_moment_are_kept_each_in_a_file(down):
    together = [down.start("claude") for _ in range(12)]
    for number, process in enumerate(together):
        assert process.stdin is not None
        process.stdin.write(b'{"n":%d}' % number)
    for process in together:
        process.communicate(timeout=30)
    assert sorted(event.body for event in down.spooled()) == sorted(b'{"n":%d}\n' % number for number in range(12))
    assert list((down.state / "spool").glob(".*")) == []


def filled(hook: Hook, names: Sequence[str]) -> None:
    """A spool that holds files of the sizes that their names state."""
    (hook.state / "spool").mkdir(parents=True)
    for name in names:
        (hook.state / "spool" / name).touch()


def test_a_full_spool_lets_go_of_tool_events_first_the_oldest_first(down):
    tools = [f"179600855{number:04}-1-8192-tool.hook" for number in range(1, 8)]
    filled(down, ["1796008550000-1-8192-event.hook", *tools])
    down.run(body=b'{"hook_event_name":"PreToolUse"}')
    *left, newest = [file.name for file in down.files()]
    assert left == ["1796008550000-1-8192-event.hook", *tools[2:]]
    assert newest.endswith("-4-tool.hook")
    assert (down.state / "spool" / LOST).read_bytes() == b"tt"


def test_a_full_spool_without_tool_events_lets_go_of_no_more_than_it_must(down):
    filled(down, [f"179600855000{number}-1-8192-event.hook" for number in range(8)])
    down.run(body=b'{"hook_event_name":"Stop"}')
    assert [file.name[:13] for file in down.files()][:-1] == [f"179600855000{number}" for number in range(1, 8)]
    assert (down.state / "spool" / LOST).read_bytes() == b"e"


def test_an_event_that_no_server_would_take_is_dropped_and_counted(down):
    down.run("pi", "tool_execution_end", body=b"x" * (17 * 1024 * 1024))
    assert down.files() == []
    assert (down.state / "spool" / LOST).read_bytes() == b"t"


@pytest.mark.parametrize(
    ("words", "body", "kind"),
    [
        (("claude",), {"hook_event_name": "PreToolUse"}, "tool"),
        (("claude",), {"session_id": "s", "hook_event_name": "PostToolUseFailure"}, "tool"),
        (("claude",), {"hook_event_name": "PermissionRequest"}, "event"),
        (("claude",), {"hook_event_name": "UserPromptSubmit", "prompt": '"hook_event_name": "PreToolUse"'}, "event"),
        (("gemini",), {"hook_event_name": "BeforeTool"}, "tool"),
        (("gemini",), {"hook_event_name": "BeforeAgent"}, "event"),
        (("cursor",), {"hook_event_name": "beforeShellExecution"}, "tool"),
        (("cursor",), {"hook_event_name": "beforeSubmitPrompt"}, "event"),
        (("cursor",), {"hook_event_name": "afterAgentResponse"}, "event"),
        (("copilot", "postToolUse"), {}, "tool"),
        (("copilot", "notification"), {}, "event"),
        (("opencode", "tool.execute.before"), {}, "tool"),
        (("opencode", "permission.asked"), {}, "event"),
        (("pi", "tool_execution_start"), {}, "tool"),
    ],
)
def test_tool_events_are_told_from_those_that_a_person_waits_for(tmp_path, words, body, kind):
    for number, (spaced, shell) in enumerate([(spaced, shell) for shell in SHELLS for spaced in (True, False)]):
        down = a_hook(tmp_path / str(number), shell)
        down.state.mkdir(parents=True)
        down.run(*words, body=json.dumps(body, separators=None if spaced else (",", ":")).encode())
        assert down.files()[0].name.rpartition("-")[2] == f"{kind}.hook"


A_FILE = (
    b"tocsin-hook 1 claude\nX-Tocsin-Event: \nX-Tocsin-Sent: 1796008554851\nX-Tocsin-Cwd: /w\n\n"
    + b'{"a":\n\n"b"}\n'
    + b"\ntocsin-hook-end\n"
)


def test_a_spooled_event_is_read_back():
    assert parse_spooled(A_FILE) == Spooled(agent="claude", body=b'{"a":\n\n"b"}\n', sent="1796008554851", cwd="/w")


def test_a_torn_file_is_known_wherever_it_was_torn():
    assert [parse_spooled(A_FILE[:length]) for length in range(len(A_FILE))] == [None] * len(A_FILE)
    assert parse_spooled(A_FILE[:40] + b"\0" * 10 + A_FILE[50:]) is None


def test_a_file_of_somebody_else_is_none_of_ours():
    for foreign in (
        b"",
        b"{}",
        A_FILE.replace(b"hook 1", b"hook 2"),
        A_FILE.replace(b" claude", b" "),
        A_FILE.replace(b"Tocsin-Cwd", b"Evil"),
    ):
        assert parse_spooled(foreign) is None


def test_the_endpoint_is_read_back_and_only_the_user_may_read_it(tmp_path):
    state = tmp_path / "state"
    told = Endpoint("http://127.0.0.1:4711", 'a"b\\c', "localhost:4711")
    write_endpoint(state, told.url, told.credential, told.host)
    assert read_endpoint(state) == told
    assert ((state / "hook.curl").stat().st_mode & 0o777, state.stat().st_mode & 0o777) == (0o600, 0o700)
    with pytest.raises(ValueError, match="control character"):
        write_endpoint(state, told.url, 'x"\nurl = "http://evil', told.host)
    assert read_endpoint(state) == told
    (state / "hook.curl").write_text("url = nowhere\n")
    assert read_endpoint(state) is None
    assert read_endpoint(tmp_path / "nowhere") is None


RUNNER = {
    "opencode": """
import { Tocsin } from "./loaded.mjs"
const hooks = await Tocsin({ directory: process.argv[2] })
const say = ({ event, payload }) =>
  hooks[event] ? hooks[event](payload.input, payload.output) : hooks.event({ event: { type: event, properties: payload } })
""",
    "pi": """
import load from "./loaded.mjs"
const hooks = {}
load({ on: (name, hook) => { hooks[name] = hook } })
const say = ({ event, payload }) =>
  hooks[event]?.(payload, {
    cwd: process.argv[2],
    isIdle: () => payload.idle,
    sessionManager: { getSessionId: () => payload.session },
  })
""",
}
"""A stand-in for each agent: it loads our file and plays recorded events to it, then stays."""


def recorded(agent: str, scenario: str) -> list[dict[str, object]]:
    (file,) = (DATA / "captures").glob(f"{agent}-*-{scenario}.jsonl")
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    return [
        {"event": row["event"], "payload": row["payload"]} for row in rows if row["kind"] == "hook" and not row["event"].endswith(".load")
    ]


def keyed(text: str) -> str:
    return f"hash of {text}"


def played(runtime: str, agent: str, events: Sequence[Mapping[str, object]], home: Path, *, stays: bool = True) -> subprocess.Popen[bytes]:
    """The agent's stand-in, which has been given `events` in order."""
    (home / "loaded.mjs").write_text({"opencode": OPENCODE, "pi": PI}[agent].text())
    (home / "events.json").write_text(json.dumps(events))
    tail = 'import fs from "node:fs"\nfor (const one of JSON.parse(fs.readFileSync("events.json"))) await say(one)\nconsole.log("played")\n'
    tail += "setInterval(() => {}, 1000)\n" if stays else "process.exit()\n"
    (home / "run.mjs").write_text(RUNNER[agent] + tail)
    process = subprocess.Popen(
        [runtime, "run.mjs", str(home)],
        cwd=home,
        env={"PATH": os.environ["PATH"], "HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"played\n"
    return process


def ended(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


if RUNTIMES:

    @pytest.mark.parametrize("runtime", RUNTIMES)
    @pytest.mark.parametrize(
        ("agent", "scenario"),
        [("opencode", "b"), ("opencode", "d"), ("opencode", "e"), ("opencode", "j"), ("pi", "a"), ("pi", "d"), ("pi", "g")],
    )
    def test_what_a_plugin_sends_means_what_the_agent_said(runtime, agent, scenario, server, tmp_path):
        hook = a_hook(tmp_path / "home", ["sh"])
        write_endpoint(hook.state, server.url, CREDENTIAL, "tocsin.test")
        events = recorded(agent, scenario)
        translate = AGENTS[agent].translate
        told = [(event["event"], translate(event["event"], event["payload"], keyed)) for event in events]
        # `input` and `turn_*` of pi are steps inside a turn: nothing that we need.
        wanted = [(name, meaning) for name, meaning in told if meaning is not None and name not in ("input", "turn_start", "turn_end")]
        assert wanted
        process = played(runtime, agent, events, hook.home)
        played_ms = time.time_ns() // 1_000_000
        try:
            for _ in Deadline(30, "every event has arrived"):
                if len(server.requests) >= len(wanted):
                    break
        finally:
            ended(process)
        sent = [(request.headers["X-Tocsin-Event"], json.loads(request.body)) for request in server.requests]
        assert [(name, translate(name, payload, keyed)) for name, payload in sent] == wanted
        stamps = [int(request.headers["X-Tocsin-Sent"]) for request in server.requests]
        assert stamps == sorted(stamps)
        # Their own times, although most of them were sent later.
        assert stamps[-1] <= played_ms
        assert {request.headers["X-Tocsin-Cwd"] for request in server.requests} == {str(hook.home.resolve())}

    @pytest.mark.parametrize("runtime", RUNTIMES)
    def test_an_agent_that_leaves_takes_no_event_along(runtime, server, tmp_path):
        hook = a_hook(tmp_path / "home", ["sh"])
        write_endpoint(hook.state, server.url, CREDENTIAL, "tocsin.test")
        events = [{"event": "agent_end", "payload": {"type": "agent_end", "messages": [], "session": f"s{number}"}} for number in range(5)]
        process = played(runtime, "pi", events, hook.home, stays=False)
        process.communicate(timeout=30)
        for _ in Deadline(30, "every event has arrived"):
            if len(server.requests) >= len(events):
                break
        assert {json.loads(request.body)["session"] for request in server.requests} == {f"s{number}" for number in range(5)}

    @pytest.mark.parametrize("runtime", RUNTIMES)
    def test_a_plugin_takes_strange_events_and_a_missing_hook_command_calmly(runtime, tmp_path):
        tmp_path.joinpath("home").mkdir()
        strange = [
            {"event": "session.status", "payload": {}},
            {"event": "session.created", "payload": {"info": 7}},
            {"event": "chat.message", "payload": {}},
        ]
        process = played(runtime, "opencode", strange, tmp_path / "home")
        assert process.poll() is None
        ended(process)


def test_the_installed_file_is_the_packaged_one(tmp_path):
    command = HookCommand(tmp_path)
    command.write()
    assert command.path.read_text() == packaged("hook")
    assert (command.path.stat().st_mode & 0o777, command.version()) == (0o755, 3)
    assert OPENCODE.file(Machine(tmp_path)) == tmp_path / ".config/opencode/plugin/tocsin.js"
