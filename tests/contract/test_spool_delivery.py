"""What the real hook command left behind reaches ingest in order, each once; what is torn is set aside."""

import http.server
import os
import subprocess
import threading
import time
from importlib.resources import files

import pytest

from tocsin.agents.install.endpoint import write_endpoint
from tocsin.pane_host.spool import TORN_KEPT, Away, Spool
from tocsin.runtime.clock import SystemClock

HOOK = files("tocsin.agents.install") / "files" / "hook"


class Ingest(http.server.ThreadingHTTPServer):
    """Takes hook events, and answers as it is told."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, dict[str, str], bytes]] = []
        self.status = 200
        ingest = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                ingest.taken.append((self.path, dict(self.headers), body))
                self.send_response(ingest.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Quiet."""

        super().__init__(("127.0.0.1", 0), Handler)


@pytest.fixture
def ingest():
    server = Ingest()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def spool(tmp_path):
    return Spool(tmp_path, SystemClock())


def reached(spool, ingest):
    write_endpoint(spool.state, f"http://127.0.0.1:{ingest.server_address[1]}", "i1.secret", "tocsin.test")


def leave(spool, body: str, sent_ms: int, agent: str = "claude", event: str = "") -> None:
    """Run the real hook command while nobody answers."""
    environment = {**os.environ, "TOCSIN_STATE": str(spool.state), "TOCSIN_SENT_MS": str(sent_ms), "TMUX": "/tmp/s,7,0", "TMUX_PANE": "%3"}
    subprocess.run(["sh", str(HOOK), agent, *([event] if event else [])], input=body.encode(), env=environment, check=True)


def bodies(ingest) -> list[bytes]:
    """What was taken, without the line's end that the hook command puts behind every body, sent or spooled."""
    return [body.removesuffix(b"\n") for _, _, body in ingest.taken]


def test_events_are_delivered_in_the_order_in_which_they_were_sent(spool, ingest):
    for sent_ms in (1_796_000_000_003, 1_796_000_000_001, 1_796_000_000_002):
        leave(spool, f'{{"hook_event_name":"Stop","n":{sent_ms}}}', sent_ms)
    reached(spool, ingest)
    assert spool.deliver() == 0
    assert [body[-2:-1] for body in bodies(ingest)] == [b"1", b"2", b"3"]
    assert (spool.waiting(), spool.counts.delivered) == ([], 3)


def test_an_event_arrives_as_the_hook_would_have_sent_it_and_says_that_it_is_late(spool, ingest):
    leave(spool, '{"a": "b\\n"}', 1_796_000_000_001, "qwen", "Stop")
    reached(spool, ingest)
    before_ms = SystemClock().now_ms()
    spool.deliver()
    ((path, headers, _),) = ingest.taken
    assert (path, bodies(ingest)) == ("/hook/qwen", [b'{"a": "b\\n"}'])
    sent = {name: headers.get(f"X-Tocsin-{name}") for name in ("Event", "Sent", "Tmux", "Tmux-Pane", "Spooled", "Cwd")}
    assert sent == {
        "Event": "Stop", "Sent": "1796000000001", "Tmux": "/tmp/s,7,0", "Tmux-Pane": "%3", "Spooled": "1", "Cwd": os.path.realpath("."),
    }  # fmt: skip
    assert before_ms <= int(headers["X-Tocsin-Sent-Now"]) <= SystemClock().now_ms()
    assert (headers["Host"], headers["Authorization"], headers["Content-Type"]) == ("tocsin.test", "Bearer i1.secret", "application/json")


@pytest.mark.parametrize("status", [500, 503, 401, 421, 429])
def test_an_event_that_could_not_be_taken_now_stays_and_so_do_those_behind_it(spool, ingest, status):
    leave(spool, '{"n":1}', 1_796_000_000_001)
    leave(spool, '{"n":2}', 1_796_000_000_002)
    reached(spool, ingest)
    ingest.status = status
    with pytest.raises(Away, match=str(status)):
        spool.deliver()
    assert (len(spool.waiting()), bodies(ingest)) == (2, [b'{"n":1}'])
    ingest.status = 202
    assert spool.deliver() == 0
    assert bodies(ingest)[1:] == [b'{"n":1}', b'{"n":2}']


def test_an_event_that_is_refused_for_what_it_is_is_not_sent_again(spool, ingest):
    leave(spool, "[]", 1_796_000_000_001)
    reached(spool, ingest)
    ingest.status = 422
    assert spool.deliver() == 0
    assert (spool.waiting(), spool.counts.refused, spool.counts.delivered) == ([], 1, 0)


def test_a_crash_between_taking_and_deleting_sends_the_very_same_event_again(spool, ingest, monkeypatch):
    leave(spool, '{"n":1}', 1_796_000_000_001)
    reached(spool, ingest)
    with monkeypatch.context() as patched:
        patched.setattr("pathlib.Path.unlink", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            spool.deliver()
    Spool(spool.state, SystemClock()).deliver()
    first, second = ingest.taken
    assert (first[2], first[1]["X-Tocsin-Sent"]) == (second[2], second[1]["X-Tocsin-Sent"])


def test_a_sender_without_a_clock_has_the_time_of_its_file_at_every_attempt(spool, ingest):
    leave(spool, '{"n":1}', 1_796_000_000_001)
    (file,) = spool.waiting()
    file.write_bytes(file.read_bytes().replace(b"X-Tocsin-Sent: 1796000000001", b"X-Tocsin-Sent:"))
    os.utime(file, ns=(0, 1_796_000_000_777_000_000))
    reached(spool, ingest)
    spool.deliver()
    assert ingest.taken[0][1]["X-Tocsin-Sent"] == "1796000000777"


def test_torn_files_are_set_aside_and_counted_and_hold_nothing_up(spool, ingest):
    leave(spool, '{"n":1}', 1_796_000_000_001)
    leave(spool, '{"n":2}', 1_796_000_000_002)
    torn = spool.waiting()[0]
    torn.write_bytes(torn.read_bytes()[:-5])
    foreign = spool.folder / "1796000000000-1-1-event.hook"
    foreign.write_bytes(spool.waiting()[1].read_bytes().replace(b"hook 1 claude", b"hook 1 ../x"))
    reached(spool, ingest)
    assert spool.deliver() == 0
    assert (bodies(ingest), spool.counts.torn) == ([b'{"n":2}'], 2)
    assert sorted(file.name for file in (spool.folder / "torn").iterdir()) == sorted([torn.name, foreign.name])


def test_a_file_that_is_being_written_is_left_alone_until_its_writer_must_be_dead(spool, ingest):
    leave(spool, '{"n":1}', 1_796_000_000_001)
    reached(spool, ingest)
    part = spool.folder / ".1796000000002-9.part"
    part.write_bytes(b"tocsin-hook 1 cl")
    spool.deliver()
    assert part.exists()
    os.utime(part, (time.time() - 3600, time.time() - 3600))
    spool.deliver()
    assert (part.exists(), spool.counts.torn, len(ingest.taken)) == (False, 1, 1)


def test_only_the_last_torn_files_are_kept(spool, ingest):
    leave(spool, '{"n":1}', 1_796_000_000_001)
    reached(spool, ingest)
    for number in range(TORN_KEPT + 20):
        (spool.folder / f"1796000{number:06}-1-1-event.hook").write_bytes(b"torn")
    spool.deliver()
    assert len(list((spool.folder / "torn").iterdir())) == TORN_KEPT
    assert spool.counts.torn == TORN_KEPT + 20


def test_without_an_endpoint_or_an_answer_events_wait(spool, ingest):
    leave(spool, '{"n":1}', 1_796_000_000_001)
    with pytest.raises(Away, match="endpoint"):
        spool.deliver()
    reached(spool, ingest)
    ingest.shutdown()
    ingest.server_close()
    with pytest.raises(Away, match="no answer"):
        spool.deliver()
    assert len(spool.waiting()) == 1


def test_an_empty_spool_asks_nobody(spool):
    assert spool.deliver() == 0
    spool.folder.mkdir()
    assert spool.deliver() == 0


def test_what_hook_commands_had_to_drop_is_counted(spool):
    spool.folder.mkdir()
    assert spool.lost() == 0
    (spool.folder / "lost").write_bytes(b"tte")
    assert spool.lost() == 3
