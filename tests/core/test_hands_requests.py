"""What an agent asks through its folder: identity comes from the pane, and a hostile file is a refusal."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW_MS, a_status
from tocsin.contract.mail import CheckMail, SendMail
from tocsin.contract.messages import CallNow, Task, TurnSeen
from tocsin.contract.parties import Caller, Role
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.run import Receipt, Refused, ReportWork
from tocsin.pane_host.core.requests import (
    BYTES_MAX,
    Answer,
    answer_of,
    command_of,
    id_of,
    is_serial,
    only_looks,
    read_request,
    waits_s,
)
from tocsin.pane_host.core.vouch import is_childs

WORKER = Caller(role=Role.WORKER, name="r1.T1.1", host="h", pane="p1", dispatch="r1.T1.1", vouched=True)
REPORT = {"run": "r1", "ask": {"verb": "report", "report": {"outcome": "succeeded", "body": "done"}}}


def a_file(subject="run", body=REPORT, **fields):
    return json.dumps({"v": 1, "id": "q1", "subject": subject, "body": body, "sent_ms": NOW_MS} | fields).encode()


def asked(subject="run", body=REPORT):
    return command_of(read_request("q1", a_file(subject, body)), WORKER, "r1", NOW_MS)


def test_a_report_reaches_its_run_with_the_caller_that_pane_host_vouches_for():
    command = asked()
    assert isinstance(command.ask, ReportWork)
    assert (command.run, command.request, command.caller) == ("r1", "q1", WORKER)


def test_who_an_agent_claims_to_be_counts_for_nothing():
    claimed = REPORT | {"caller": {"role": "person", "name": "root"}, "at_ms": 1, "v": 9}
    command = asked(body=claimed)
    assert command.caller == WORKER
    assert command.at_ms == NOW_MS


def test_no_agent_has_to_copy_an_id():
    assert asked(body={"ask": REPORT["ask"]}).run == "r1"
    assert asked("mail", {"ask": {"verb": "check"}}).mailbox == "dispatch:r1.T1.1"
    assert asked("mail", {"ask": {"verb": "ask", "question": "Which?"}}).mailbox == "run:r1"


def test_only_a_host_may_say_what_it_observed():
    refusal = asked(body={"ask": {"verb": "observe", "dispatch": "r1.T1.1", "fence": 1, "saw": "exit_proven"}})
    assert refusal.code is Code.BAD_REQUEST


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"\xff\xfe", Code.BAD_TEXT),
        (b"{", Code.BAD_JSON),
        (b"[]", Code.BAD_REQUEST),
        (b"x" * (BYTES_MAX + 1), Code.TOO_LARGE),
        (a_file(id="other"), Code.BAD_REQUEST),
        (a_file(v=2), Code.BAD_REQUEST),
        (a_file(body={"a": json.loads("[" * 60 + "]" * 60)}), Code.TOO_DEEP),
        (b'{"v":1,"id":"q1","subject":"run","body":{"a":' + b"[" * 100_000, Code.TOO_DEEP),
    ],
)
def test_a_file_that_is_no_request_is_refused(raw, code):
    assert read_request("q1", raw).code is code


@pytest.mark.parametrize("body", [{}, {"ask": 7}, {"ask": {"verb": "fly"}}, {"ask": {"verb": "report"}}, {"ask": REPORT["ask"], "run": 7}])
def test_a_body_that_is_no_command_is_refused(body):
    assert asked(body=body).code is Code.BAD_REQUEST


def test_requests_go_to_run_or_mail_alone():
    assert asked("custody").code is Code.BAD_REQUEST


@pytest.mark.parametrize("name", ["q1.json", "A-z_9.json"])
def test_a_plain_name_is_an_id(name):
    assert id_of(name) == name.removesuffix(".json")


@pytest.mark.parametrize("name", ["", ".json", ".q1.json", "../q1.json", "a b.json", "q1.tmp", "q" * 65 + ".json", "q1.json\n", "ü.json"])
def test_anything_else_in_the_folder_is_no_request(name):
    assert id_of(name) is None


@given(st.binary(max_size=200))
def test_no_bytes_make_more_than_a_refusal(raw):
    assert isinstance(read_request("q1", raw), Refusal)


def test_an_answer_is_the_receipt_or_the_refusal():
    receipt = msgspec.json.decode(answer_of(Receipt(request="q1", seq=3)), type=Answer)
    assert (receipt.refused, receipt.body["seq"]) == (False, 3)
    no = msgspec.json.decode(answer_of(Refused.of("q1", Refusal(Code.NOT_LEAD, "a child said it"))), type=Answer)
    assert (no.refused, no.body["code"], no.body["retry"]) == (True, "not_lead", "after_change")
    assert no.body["next"]


def test_a_parked_check_holds_up_no_report_and_is_waited_for_as_long_as_it_asks():
    check = asked("mail", {"ask": {"verb": "check", "wait_ms": 60_000}})
    assert isinstance(check.ask, CheckMail)
    assert (only_looks(check), is_serial(check), waits_s(check)) == (True, False, 70)
    send = asked("mail", {"ask": {"verb": "send", "message": {
        "id": "m1", "type": "status", "sender": "dispatch:r1.T1.1", "subject": "s", "body": "b", "at_ms": 0}}})  # fmt: skip
    assert isinstance(send.ask, SendMail)
    assert (only_looks(send), is_serial(send)) == (False, True)
    assert is_serial(asked())


AGENT_AT_WORK, SHELL = Task(id="c1", kind="agent"), Task(id="s1", kind="shell")
CHILDS_SHELL = CallNow(tool="Bash", target="tocsin", child="c1")
LEADS_SHELL, LEADS_TEST = CallNow(tool="Bash", target="tocsin"), CallNow(tool="Bash", target="make test")
RUNS, ENDED = TurnSeen(number=1, started_ms=1), TurnSeen(number=1, started_ms=1, ended_ms=2)


@pytest.mark.parametrize(
    ("status", "child"),
    [
        (None, False),
        (a_status(turns=(RUNS,), background=(AGENT_AT_WORK,)), False),  # inside the lead's turn nothing tells them apart
        (a_status(turns=(ENDED,), background=(AGENT_AT_WORK,)), True),
        (a_status(turns=(ENDED,), background=(SHELL,)), False),  # the lead's own background shell speaks for it
        (a_status(turns=(ENDED,), background=(Task(id="c1", kind="agent", running=False),)), False),
        (a_status(turns=(ENDED, RUNS), background=(AGENT_AT_WORK,)), False),
        (a_status(turns=(RUNS,), calls=(CHILDS_SHELL,)), True),
        (a_status(turns=(RUNS,), calls=(CHILDS_SHELL, LEADS_TEST)), True),  # of two calls that one which names the command
        (a_status(turns=(RUNS,), calls=(CHILDS_SHELL, LEADS_SHELL)), False),  # either may have said it
        (a_status(turns=(RUNS,), calls=(LEADS_TEST,)), False),  # `make test` may call it
    ],
)
def test_a_call_is_a_childs_when_it_runs_in_a_childs_tool_or_the_leads_turn_has_ended_and_a_child_works(status, child):
    assert is_childs(status) is child
