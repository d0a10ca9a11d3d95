"""What an agent asks through its pane's folder: read with suspicion.

It is completed with what pane-host knows, never with what the agent claims to be.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from tocsin.contract.mail import AckMail, CheckMail, MailCommand, ReadMail
from tocsin.contract.messages import Body
from tocsin.contract.nesting import DEPTH_MAX, is_too_deep
from tocsin.contract.parties import Caller
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.run import Observe, Refused, RunCommand

BYTES_MAX = 1024 * 1024
"""Of one request file."""

NAME = re.compile(r"([A-Za-z0-9_-]{1,64})\.json")
"""A request's file is its id and this end. Anything else in the folder is no request."""

ANSWER_S_MAX = 60.0
WAIT_MS_MAX = 3_600_000


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A request as it lies in the folder. Times are the client's, UTC ms."""

    v: int
    id: str
    subject: str
    body: dict[str, Any]
    cwd: str | None = None
    pid: int | None = None
    sent_ms: int = 0


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What is put into the folder for it. `body`: a Receipt, or a Refused when `refused`."""

    v: int = 1
    refused: bool
    body: dict[str, Any]


def id_of(name: str) -> str | None:
    """The id that a file name stands for; None for what is no request."""
    found = NAME.fullmatch(name)
    return found[1] if found else None


def read_request(file_id: str, raw: bytes) -> Asked | Refusal:
    """The request in a file. Refuses: too_large, bad_text, bad_json, too_deep, bad_request."""
    if len(raw) > BYTES_MAX:
        return Refusal(Code.TOO_LARGE, f"a request may have {BYTES_MAX} bytes")
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return Refusal(Code.BAD_TEXT, "a request must be UTF-8")
    try:
        asked = msgspec.json.decode(text, type=Asked)
    except RecursionError:
        return Refusal(Code.TOO_DEEP, "a request may not be nested so deep")
    except msgspec.ValidationError as error:
        return Refusal(Code.BAD_REQUEST, str(error))
    except msgspec.DecodeError:
        return Refusal(Code.BAD_JSON, "a request must be one JSON object")
    if is_too_deep(asked.body):
        return Refusal(Code.TOO_DEEP, f"a request may be nested {DEPTH_MAX} deep")
    if asked.v != 1:
        return Refusal(Code.BAD_REQUEST, f"requests of version {asked.v} are not known")
    if asked.id != file_id:
        return Refusal(Code.BAD_REQUEST, "the request's id is not its file's name")
    return asked


def command_of(asked: Asked, caller: Caller, run: str, at_ms: int) -> RunCommand | MailCommand | Refusal:
    """The command that a request asks for, said by `caller`, who is vouched for. Refuses: bad_request.

    What the agent need not say is filled in: its Run, its own mailbox for reading, its Run's for the rest.
    """
    known: Mapping[str, Any] = {"request": asked.id, **asked.body, "v": 1, "at_ms": at_ms, "caller": msgspec.to_builtins(caller)}
    verb = asked.body.get("ask", {}).get("verb") if isinstance(asked.body.get("ask"), dict) else None
    try:
        if asked.subject == "run":
            command = msgspec.convert({"run": run, **known}, RunCommand)
            if isinstance(command.ask, Observe):
                return Refusal(Code.BAD_REQUEST, "only a host may say what it observed")
            return command
        if asked.subject == "mail":
            own = verb in ("check", "ack", "inbox", "end_wait", "wakes")
            return msgspec.convert({"mailbox": f"dispatch:{caller.dispatch}" if own else f"run:{run}", **known}, MailCommand)
    except msgspec.ValidationError as error:
        return Refusal(Code.BAD_REQUEST, str(error))
    return Refusal(Code.BAD_REQUEST, "a request is put to run or mail")


def waits_s(command: RunCommand | MailCommand) -> float:
    """How long an answer may take before the request is put again."""
    if isinstance(command, MailCommand):
        wait_ms = command.ask.wait_ms if isinstance(command.ask, CheckMail) else 0
        return 10.0 + min(max(wait_ms, 0), WAIT_MS_MAX) / 1000
    return min(max(command.timeout_ms / 1000, 1.0), ANSWER_S_MAX)


def only_looks(command: RunCommand | MailCommand) -> bool:
    """True for a request that nobody needs an answer to once its caller has gone."""
    return isinstance(command, MailCommand) and isinstance(command.ask, CheckMail | ReadMail)


def is_serial(command: RunCommand | MailCommand) -> bool:
    """True for what must reach its service in the order in which it was asked; a parked wait must hold up nothing."""
    return not only_looks(command) and not (isinstance(command, MailCommand) and isinstance(command.ask, AckMail))


def answer_of(result: Body) -> bytes:
    """The answer file for what a service said."""
    return msgspec.json.encode(Answer(refused=isinstance(result, Refused), body=msgspec.to_builtins(result)))
