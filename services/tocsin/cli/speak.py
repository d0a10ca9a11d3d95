"""The one place where verbs speak to services: by the bus, or from inside a pane that we started by files in the pane's own folder.

Every request carries an id and is repeated under it until it is answered or its time is up, so that it counts once however
often it is asked. Inside such a pane a request is a file that outlives the command: pane-host delivers it and vouches for its
sender. Source: README, decision on reporting from inside a sandbox.
"""

import argparse
import asyncio
import contextlib
import json
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tocsin.cli import shown, typed
from tocsin.cli.callers import Bound, Memory, caller_here, own_folder, pane_here
from tocsin.cli.lines import KEPT, BusLine, FolderLine, Line, Post
from tocsin.cli.main import AWAY, DONE, REFUSED
from tocsin.contract.custody import CustodyCommand, CustodyVerb
from tocsin.contract.faults import Unavailable
from tocsin.contract.ids import HostId
from tocsin.contract.mail import EndWait, MailCommand, MailVerb, SendMail
from tocsin.contract.messages import Body
from tocsin.contract.parties import Caller, Role
from tocsin.contract.refusals import ADVICE, Code, Refusal
from tocsin.contract.run import ANY_RUN, PAGE_MAX, ListRuns, Receipt, Refused, RunCommand, RunVerb
from tocsin.mailbox.core.addresses import run_in

if TYPE_CHECKING:
    from tocsin.bus.bus import Bus

LIMIT_S = 30.0
"""How long a request is repeated when nobody says otherwise."""

LOOK_S = 10.0
"""The same for verbs that only look."""

KEPT_S = 10.0
"""The same for what is kept when nobody answers: an agent need not wait for its delivery."""

ATTEMPT_S_MAX = 10.0
"""How long one attempt waits for its answer: whoever took it may have died."""

PAUSE_S, PAUSE_S_MAX = 0.1, 1.0

END_S_MAX = 0.5
"""How long a caller who hangs up still tries to say so."""


class Options(NamedTuple):
    """What a caller may say of any request."""

    state: Path | None = None
    run: str | None = None
    request: str | None = None
    limit_s: float = LIMIT_S
    person: bool = False


# ---------------------------------------------------------------- speaking


@dataclass(frozen=True)
class Speaker:
    """Puts requests on behalf of one caller."""

    line: Line
    caller: Caller
    memory: Memory
    options: Options
    host: str  # this machine
    inside: bool  # in a pane that we started

    async def to_run(self, ask: RunVerb, run: str, *, request: str | None = None, keep: bool = False) -> Receipt | Refused:
        """Ask a Run to change. Repeated under one id while nobody answers; then refused as unavailable.

        `keep`: from inside a pane it outlives this command, and the receipt then says KEPT.
        """
        return await self._run(ask, run, request or self.options.request or new_request(), keep)

    async def look_at_run(self, ask: RunVerb, run: str) -> Receipt | Refused:
        """Ask a Run to tell something."""
        return await self._run(ask, run, new_request(), None)

    async def to_mailbox(self, ask: MailVerb, mailbox: str, *, keep: bool = False) -> Receipt | Refused:
        """Ask a mailbox to change. As `to_run`."""
        return await self._mail(ask, mailbox, self.options.request or new_request(), keep, 0.0)

    async def look_at_mailbox(self, ask: MailVerb, mailbox: str, *, wait_s: float = 0.0) -> Receipt | Refused:
        """Ask a mailbox for what is in it; it may take `wait_s` to answer. A wait that is given up is ended there too."""
        request = new_request()
        answered = False
        try:
            receipt = await self._mail(ask, mailbox, request, None, wait_s)
            answered = not isinstance(receipt, Refused) or receipt.code != Code.UNAVAILABLE
        finally:
            if wait_s and not answered:
                await self._end_wait(mailbox, request)
        return receipt

    async def to_custody(self, ask: CustodyVerb, custody: str) -> Receipt | Refused:
        """Ask a custody to change. As `to_run`."""
        return await self._custody(ask, custody, self.options.request or new_request(), False)

    async def look_at_custody(self, ask: CustodyVerb, custody: str) -> Receipt | Refused:
        """Ask a custody, or all of them, to tell something."""
        return await self._custody(ask, custody, new_request(), None)

    async def which_run(self) -> str | Refused:
        """The Run that is meant: named, else bound to this pane or shell, else this caller's only open one.

        Refuses: run_required, unavailable.

        Outside panes that we started, TOCSIN_RUN is somebody's own word and goes first; inside them it names the Run
        for which the pane works, which a Run of its own precedes.
        """
        bound = self.memory.read()
        here = [bound.run if bound else None, os.environ.get("TOCSIN_RUN")]
        named = self.options.run or next((run for run in (here if self.inside else reversed(here)) if run), None)
        if named:
            return named
        listed = await self.look_at_run(ListRuns(limit=PAGE_MAX), ANY_RUN)
        if isinstance(listed, Refused):
            return listed
        own = [row["run"] for row in listed.result["rows"] if self._is_me(row["coordinator"])]
        if len(own) == 1:
            return str(own[0])
        if own:
            return refusal(Code.RUN_REQUIRED, f"which of your Runs? {', '.join(own)}", *(f"--run {run}" for run in own[:3]))
        return refusal(Code.RUN_REQUIRED, "no Run is named, and this pane or shell is bound to none")

    def _is_me(self, coordinator: dict[str, Any] | None) -> bool:
        mine = (self.caller.host, self.caller.pane, self.caller.name)
        return coordinator is not None and tuple(coordinator.get(field) for field in ("host", "pane", "name")) == mine

    def bind(self, run: str, generation: int | None) -> str | None:
        """Remember a Run for this pane or shell; returns what has to be said about that."""
        kept = self.memory.write(Bound(run=run, generation=generation))
        named = os.environ.get("TOCSIN_RUN")
        if not self.inside and named not in (None, "", run):
            return f"TOCSIN_RUN names {named} and goes first: export TOCSIN_RUN={run}"
        return None if kept else f"it could not be remembered here: export TOCSIN_RUN={run}"

    def forget(self, run: str) -> None:
        """Be bound to `run` no more."""
        bound = self.memory.read()
        if bound is not None and bound.run == run:
            self.memory.write(None)

    def _generation(self, run: str) -> int | None:
        bound = self.memory.read()
        return bound.generation if bound is not None and bound.run == run else None

    async def _run(self, ask: RunVerb, run: str, request: str, keep: bool | None) -> Receipt | Refused:
        command = RunCommand(
            run=run, request=request, caller=self.caller, ask=ask, at_ms=now_ms(), generation=self._generation(run),
            timeout_ms=round(min(self.options.limit_s, ATTEMPT_S_MAX) * 1000),
        )  # fmt: skip
        return await self._put_as_somebody(Post.RUN, command, run, keep, 0.0)

    async def _mail(self, ask: MailVerb, mailbox: str, request: str, keep: bool | None, wait_s: float) -> Receipt | Refused:
        run = run_in(mailbox) or (ask.message.run if isinstance(ask, SendMail) else None)
        generation = self._generation(run) if run else None
        command = MailCommand(mailbox=mailbox, request=request, caller=self.caller, ask=ask, at_ms=now_ms(), generation=generation)
        return await self._put_as_somebody(Post.MAIL, command, run, keep, wait_s)

    async def _put_as_somebody(
        self, post: Post, command: RunCommand | MailCommand, run: str | None, keep: bool | None, wait_s: float
    ) -> Receipt | Refused:
        """As a coordinator; who is none of this Run and never was bound to it here decides as the person that they are."""
        answer = await self._put(post, command, command.request, keep, wait_s)
        bound = self.memory.read()
        is_fenced = isinstance(answer, Refused) and answer.code == Code.CONSUMER_FENCED
        if not is_fenced or self.inside or keep is None or run is None or (bound is not None and bound.run == run):
            return answer
        person = msgspec.structs.replace(self.caller, role=Role.PERSON)
        return await self._put(post, msgspec.structs.replace(command, caller=person), command.request, keep, wait_s)

    async def _custody(self, ask: CustodyVerb, custody: str, request: str, keep: bool | None) -> Receipt | Refused:
        command = CustodyCommand(custody=custody, request=request, caller=self.caller, ask=ask, at_ms=now_ms())
        return await self._put(Post.CUSTODY, command, request, keep, 0.0)

    async def _put(self, post: Post, command: Body, request: str, keep: bool | None, wait_s: float) -> Receipt | Refused:
        """`keep` is None for what changes nothing: nobody needs its id."""
        end, pause = time.monotonic() + self.options.limit_s + wait_s, PAUSE_S
        lost_at: float | None = None
        while True:
            began = time.monotonic()
            attempt_s = max(PAUSE_S, min(end - began, ATTEMPT_S_MAX + wait_s))
            try:
                answer = await self.line.put(post, command, request, attempt_s, bool(keep))
            except Unavailable as error:
                answer = refusal(Code.UNAVAILABLE, str(error))
            except asyncio.CancelledError:
                if keep is not None:
                    note(f"ended before the answer came; the same command with --request {request} finds out")
                raise
            if isinstance(answer, Receipt) or answer.code != Code.UNAVAILABLE:
                return answer
            now = time.monotonic()
            # One that was parked has only now been found to have nobody at its other end.
            if lost_at is None or now - began > ATTEMPT_S_MAX:
                lost_at = now
            if now + pause >= min(end, lost_at + self.options.limit_s):
                return away(answer.message, request if keep is not None else "")
            await asyncio.sleep(pause)
            pause = min(pause * 2, PAUSE_S_MAX)

    async def _end_wait(self, mailbox: str, wait: str) -> None:
        """Best effort: a wait that nobody ends is over at its own time limit."""
        request = new_request()
        command = MailCommand(mailbox=mailbox, request=request, caller=self.caller, ask=EndWait(wait=wait), at_ms=now_ms())
        with contextlib.suppress(Unavailable):
            await self.line.put(Post.MAIL, command, request, END_S_MAX, True)


def refusal(code: Code, message: str, *steps: str) -> Refused:
    """A refusal before anybody was asked; `steps` in place of what usually helps."""
    advice = ADVICE[code]
    return Refused(request="", code=code, message=message, retry=advice.retry, next=steps or advice.next)


def away(why: str, request: str = "") -> Refused:
    """Nobody answered in time: what was asked may be under way, and the same id finds out."""
    again = (f"the same command with --request {request}",) if request else ()
    refused = refusal(Code.UNAVAILABLE, why)
    return msgspec.structs.replace(refused, request=request, next=(*again, *refused.next))


def new_request() -> str:
    """An id that no other request has."""
    return f"q{secrets.token_hex(8)}"


def now_ms() -> int:
    """UTC milliseconds, by this machine's clock."""
    return time.time_ns() // 1_000_000


@asynccontextmanager
async def open_speaker(options: Options) -> AsyncIterator[Speaker]:
    """A speaker for who calls from here. Raises Unavailable when there is nobody to speak to within the time limit."""
    from tocsin.runtime import instance

    folder = own_folder()
    if folder is not None:
        # Left out on the way: pane-host tells who asks, whatever a request says.
        caller = Caller(role=Role.WORKER, name=os.environ.get("TOCSIN_DISPATCH") or str(folder))
        reached = instance.endpoint(instance.state_folder(options.state))
        own = reached.host if reached is not None else os.environ.get("TOCSIN_HOST") or socket.gethostname()
        yield Speaker(FolderLine(folder), caller, Memory(folder), options, own, True)
        return
    from tocsin.cli import reading

    place = reading.find(argparse.Namespace(state=options.state, workspace=None))
    if isinstance(place, Refusal):
        raise Unavailable(place.message)
    memory = Memory(instance.state_folder(options.state))
    async with _connected(place, options.limit_s) as bus:
        host = HostId(place.host)
        yield Speaker(BusLine(bus), caller_here(host, await pane_here(bus, host), options.person), memory, options, host, False)


@asynccontextmanager
async def _connected(place: Any, limit_s: float) -> AsyncIterator["Bus"]:
    """The bus, as soon as it answers within the limit: it may be between two lives. Raises Unavailable."""
    from tocsin.cli import reading

    end, pause = time.monotonic() + limit_s, PAUSE_S
    while True:
        connection = reading.connect(place)
        try:
            bus = await connection.__aenter__()
            break
        except Unavailable:
            if time.monotonic() + pause >= end:
                raise
        await asyncio.sleep(pause)
        pause = min(pause * 2, PAUSE_S_MAX)
    try:
        yield bus
    finally:
        await connection.__aexit__(None, None, None)


# ---------------------------------------------------------------- verbs


def arguments(parser: argparse.ArgumentParser, *, changes: bool = True, run: bool = True, limit_s: float = LIMIT_S) -> None:
    """The options of every verb that speaks to a service. `changes`: it can be repeated under its id."""
    parser.add_argument("--json", action="store_true", help="machine-readable output")
    parser.add_argument("--state", type=Path, metavar="DIR", help="the instance's folder (TOCSIN_STATE)")
    parser.add_argument(
        "--timeout", type=typed.seconds, metavar="SECONDS", default=limit_s, help=f"how long to try (default {limit_s:g} s)"
    )
    if run:
        parser.add_argument("--run", type=typed.name, metavar="RUN", help="another Run than the one you are bound to (TOCSIN_RUN)")
    if changes:
        parser.add_argument("--request", type=typed.name, metavar="ID", help="the id of an earlier request, to have it once and only once")
        parser.add_argument("--person", action="store_true", help="you are a person and decide this yourself")


def options_of(args: argparse.Namespace) -> Options:
    """The options that `arguments` has read."""
    return Options(
        state=args.state, run=getattr(args, "run", None), request=getattr(args, "request", None), limit_s=args.timeout,
        person=getattr(args, "person", False),
    )  # fmt: skip


def through(args: argparse.Namespace, work: Callable[[Speaker], Awaitable[int]], limit_s: float | None = None) -> int:
    """Do `work` as who calls; returns its exit code, 4 when nobody is there, 130 or 143 when it was ended.

    An end by a signal goes the same way as Ctrl+C, so that a wait is given up at the other end too. `limit_s`: of each
    request, when `--timeout` is the time limit of something else.
    """
    options = options_of(args)
    if limit_s is not None:
        options = options._replace(limit_s=limit_s)

    async def speak() -> int:
        loop, this = asyncio.get_running_loop(), asyncio.current_task()
        assert this is not None
        ended: list[int] = []

        def end(number: int) -> None:
            ended.append(number)
            this.cancel()

        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, end, number)
        try:
            async with open_speaker(options) as speaker:
                return await work(speaker)
        except Unavailable as error:
            return refused(away(str(error)), args.json)
        except asyncio.CancelledError:
            if not ended:
                raise
            return 128 + ended[0]

    return asyncio.run(speak())


def why(refused: Refused) -> dict[str, Any]:
    """A refusal as `--json` prints it."""
    fields = {"code": refused.code, "message": refused.message, "retry": refused.retry, "next": list(refused.next)}
    return fields | ({"request": refused.request} if refused.request else {})


def refused(refusal: Refused, as_json: bool) -> int:
    """Say on stderr why nothing was done and what to do next; returns the exit code."""
    if as_json:
        print(json.dumps(why(refusal)), file=sys.stderr)
    else:
        print(f"tocsin: {shown.plain(refusal.message)} [{shown.plain(refusal.code)}]", file=sys.stderr)
        own = (
            ("you are a person and decide this yourself: --person",) if refusal.code == Code.CONSUMER_FENCED and sys.stdin.isatty() else ()
        )
        for step in (*refusal.next, *own):
            print(f"  next: {shown.plain(step)}", file=sys.stderr)
    return AWAY if refusal.code in (Code.UNAVAILABLE, Code.NO_LIST, Code.HOST_AWAY) else REFUSED


def note(text: str) -> None:
    """Say something beside the result, to the person alone."""
    print(f"tocsin: {shown.plain(text)}", file=sys.stderr)


def told(receipt: Receipt) -> dict[str, Any]:
    """A receipt as `--json` prints it: what it came to, and the id under which it can be asked again."""
    return {**receipt.result, "request": receipt.request, "duplicate": receipt.duplicate, "at_ms": receipt.at_ms}


def done(receipt: Receipt, as_json: bool, *lines: str) -> int:
    """Print what was done; returns 0. The id goes along, so that the same request can be repeated."""
    if as_json:
        print(json.dumps(told(receipt)))
        return DONE
    for line in lines:
        print(shown.plain(line))
    if receipt.result.get(KEPT):
        print(f"nobody is there to take it now: it is kept on this machine and will be delivered by itself (request {receipt.request})")
    elif receipt.duplicate:
        print(f"it had been done before (request {receipt.request})")
    elif receipt.request:  # a heartbeat may come twice by nature, and keeps none
        print(f"request {receipt.request}")
    return DONE
