"""The port over NATS JetStream (nats-py)."""

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import urlsplit

import msgspec
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError
from nats.errors import SlowConsumerError
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
from nats.js.errors import APIError, NotFoundError

from tocsin.bus.answers import Answers, Lost, Waiting
from tocsin.bus.bus import Heard, Last
from tocsin.bus.client import Client, fields, times_told_to_stop
from tocsin.bus.streams import all_streams
from tocsin.contract.faults import Overtaken, TooLarge, Unavailable
from tocsin.contract.messages import Body, Dead
from tocsin.contract.metrics import BUS_DEAD, BUS_DROPPED, BUS_FAILED, BUS_PUBLISH, BUS_RECONNECTS, BUS_REREAD
from tocsin.contract.refusals import Code, Refusal
from tocsin.contract.run import Refused
from tocsin.contract.subjects import DEAD, HOST_KNOWN, Kept, Subject
from tocsin.contract.tally import Sample, Tally
from tocsin.contract.versions import Unreadable, decode

B = TypeVar("B", bound=Body)
T = TypeVar("T")

ACK_S_MAX = 2.0
"""Longest wait for a publish to be on record, and for what else is asked of the server, unless a service says otherwise."""

SAY_ATTEMPTS_MAX = 3
IN_FLIGHT_MAX = 1000
"""Publishes of one batch that wait for their acks at once."""

HEARTBEAT_S = 5.0
CLUSTER_HEARTBEAT_S = 2.0
"""In a cluster the node that holds the consumer may be gone while the connection, to another, stands: only silence tells."""

HEARTBEATS_MISSED_MAX = 3
"""A consumer that says nothing, not even its heartbeat, for so many is made anew."""

PENDING_MSGS_MAX = 512 * 1024
"""Messages that one subscription holds before it throws more away. nats-py's own figure;
flow control (32 MB on the way) keeps readings far below it."""

REREAD_S_MIN = 0.2
"""From one making of a consumer to the next because of a gap: who cannot take what is read again either is not to ask without a pause."""

BATCH_MAX = 256
"""Messages handed over at once: one store pipeline of that size takes about 10 ms."""

WRONG_LAST_SEQUENCE = 10071
"""JetStream's error code for an expected last sequence that is not the last."""

HEADERS_BYTES, HEADER_BYTES = len("NATS/1.0\r\n\r\n"), len(": \r\n")
"""What stands around the headers of a message, and around each of them, on the wire."""

REFUSED = "Tocsin-Refused"
"""Header of an answer that is a refusal."""

DRAIN_S_MAX = 3.0
"""How long requests in flight are still answered at a stop."""

JOBS_PENDING_MAX = 256
"""Jobs given out and not done, over all that share one name."""

JOB_WAIT_S, JOB_WAIT_S_MIN = 5.0, 0.05
JOB_ACK_S = 30.0
"""A job that is neither done nor put off for so long is given to another."""

JOB_ATTEMPTS_MAX = 20
"""A job that was given out so many times, and neither done nor put off, is poison: whoever took it has died or hung. It is buried
with its reason, never tried for ever."""

DEAD_BYTES_MAX = 64 * 1024
"""How much is kept of a message that nobody can handle. All of it would not even fit into another message when it is long."""

NAME_IN_USE = 10058
"""JetStream's error code for a stream of that name with another configuration."""

_encoder = msgspec.json.Encoder()


def encode(body: Body) -> bytes:
    """A body as it travels."""
    return _encoder.encode(body)


def _refused_for_size(asked: Body, error: TooLarge) -> Refused:
    return Refused.of(getattr(asked, "request", ""), Refusal(Code.TOO_LARGE, str(error)))


class _Refused(msgspec.Struct):
    err_code: int = 0
    description: str = ""


class _Answer(msgspec.Struct):
    """What JetStream answers to a publish."""

    seq: int = 0
    error: _Refused | None = None


_answer = msgspec.json.Decoder(_Answer)


class _Sent(NamedTuple):
    """A publish whose ack is to come."""

    name: str
    reply: str
    answer: Waiting
    began_s: float


def batches(all_of_them: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """`size` at a time, in their order."""
    return (all_of_them[at : at + size] for at in range(0, len(all_of_them), size))


class NatsBus:
    """The Bus port over one connection. Made by `connect`."""

    def __init__(
        self,
        client: Client,
        service: str,
        makes_streams: bool = True,
        replicas: int | None = None,
        pending_msgs_max: int = PENDING_MSGS_MAX,
        ack_s_max: float = ACK_S_MAX,
    ) -> None:
        self.client = client
        self._makes_streams = makes_streams
        self._replicas = replicas
        # Any node answers a direct request, and one that lags behind would deny what has been acknowledged: several are asked by their leader.
        self.clustered = (replicas or 1) > 1
        self.pending_msgs_max = pending_msgs_max
        self.service = service
        self.returns = 0
        self.poison = 0
        self.dropped = 0
        """Messages that were thrown away on this side, because nobody took those before them."""
        self.reread = 0
        """Messages that were asked for again because one before them was missing."""
        self._tally = Tally(BUS_FAILED)
        self._jetstream: JetStreamContext = client.jetstream(timeout=ACK_S_MAX)
        self._readings: set[_Subscribed[Any]] = set()
        self._missed: dict[Subscription, Callable[[], None]] = {}
        self._answers = Answers(client, ack_s_max)

    def samples(self) -> Iterator[Sample]:
        """What this connection has been through."""
        yield from self._tally.samples()
        yield Sample(BUS_RECONNECTS, (), self.returns)
        yield Sample(BUS_DEAD, (), self.poison)
        yield Sample(BUS_DROPPED, (), self.dropped)
        yield Sample(BUS_REREAD, (), self.reread)

    # ------------------------------------------------------------ saying

    async def say(self, subject: Subject[B], body: B, *, msg_id: str | None = None, after: int | None = None) -> int:
        """See Bus.say."""
        return await self.say_encoded(subject, subject.of(body), encode(body), msg_id=msg_id, after=after)

    async def say_encoded(
        self, subject: Subject[B], name: str, payload: bytes, *, msg_id: str | None = None, after: int | None = None
    ) -> int:
        """See Bus.say_encoded."""
        if subject.kept is Kept.NOT:
            if not self.client.is_connected:
                raise Unavailable("the bus is away")
            self._check_size(name, payload)
            await self.client.publish(name, payload)
            return 0
        headers: dict[str, str] = {}
        if msg_id is not None:
            headers["Nats-Msg-Id"] = msg_id
        if after is not None:
            headers["Nats-Expected-Last-Subject-Sequence"] = str(after)
        return await self._publish(name, payload, headers or None)

    async def say_all(self, subject: Subject[B], bodies: Sequence[B]) -> None:
        """See Bus.say_all."""
        left = [(subject.of(body), encode(body)) for body in bodies]
        for _ in range(SAY_ATTEMPTS_MAX):
            left = [one for some in batches(left, IN_FLIGHT_MAX) for one in await self._publish_all(some)]
            if not left:
                return
        raise Unavailable(f"{len(left)} of {len(bodies)} messages on {subject.name} have no ack")

    async def _publish_all(self, messages: Sequence[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
        """Publish all, then wait for all acks; returns those without. (A task for each would cost more than its encoding.)"""
        unacked: list[tuple[str, bytes]] = []
        sent: list[tuple[tuple[str, bytes], _Sent]] = []
        try:
            for message in messages:
                try:
                    sent.append((message, await self._send(*message)))
                except Unavailable:
                    unacked.append(message)
            for message, one in sent:
                try:
                    await self._acked(one)
                except Unavailable:
                    unacked.append(message)
        finally:
            for _, one in sent:
                self._answers.forget(one.reply)
        return unacked

    async def _publish(self, name: str, payload: bytes, headers: dict[str, str] | None) -> int:
        return await self._acked(await self._send(name, payload, headers))

    async def _send(self, name: str, payload: bytes, headers: dict[str, str] | None = None) -> "_Sent":
        if not self.client.is_connected:
            raise Unavailable("the bus is away")
        self._check_size(name, payload, headers)
        reply, answer = self._answers.expect()
        sent = _Sent(name, reply, answer, time.perf_counter())
        try:
            await self.client.publish(name, payload, reply=reply, headers=headers)
        except NatsError as error:
            self._answers.forget(reply)
            raise self._without_ack(sent, error) from error
        except BaseException:
            self._answers.forget(reply)
            raise
        return sent

    def _check_size(self, name: str, payload: bytes, headers: dict[str, str] | None = None) -> None:
        """Raises TooLarge. The server counts the headers too, which nats-py does not, and closes the whole connection over one byte."""
        size = len(payload)
        if headers is not None:
            size += HEADERS_BYTES + sum(len(key.encode()) + len(value.encode()) + HEADER_BYTES for key, value in headers.items())
        if size > self.client.max_payload:
            self._tally.add(BUS_FAILED)
            raise TooLarge(f"a message on {name} would have {size} bytes, the bus takes {self.client.max_payload}")

    async def _acked(self, sent: "_Sent") -> int:
        try:
            said = await sent.answer
        except (TimeoutError, Lost) as error:
            raise self._without_ack(sent, error) from error
        finally:
            self._answers.forget(sent.reply)
        # Nobody's: no stream takes this subject, its store is being made again.
        answer = _answer.decode(said.data) if said.data else _Answer(error=_Refused(description="no stream keeps it"))
        self._tally.time(BUS_PUBLISH, time.perf_counter() - sent.began_s)
        if answer.error is None:
            return answer.seq
        if answer.error.err_code == WRONG_LAST_SEQUENCE:
            raise Overtaken(sent.name)
        self._tally.add(BUS_FAILED)
        raise Unavailable(f"the bus refused {sent.name}: {answer.error.description}")

    def _without_ack(self, sent: "_Sent", error: Exception) -> Unavailable:
        self._tally.add(BUS_FAILED)
        return Unavailable(f"no ack for {sent.name}: {type(error).__name__}")

    # ----------------------------------------------------------- hearing

    @asynccontextmanager
    async def read(self, subject: Subject[B], *keys: str, after: int) -> AsyncIterator["_Subscribed[B]"]:
        """See Bus.read."""
        async with self._subscribed(subject, keys, after) as reading:
            yield reading

    @asynccontextmanager
    async def follow(self, subject: Subject[B], *keys: str) -> AsyncIterator["_Subscribed[B]"]:
        """See Bus.follow."""
        async with self._subscribed(subject, keys, None) as reading:
            yield reading

    @asynccontextmanager
    async def _subscribed(self, subject: Subject[B], keys: tuple[str, ...], after: int | None) -> AsyncIterator["_Subscribed[B]"]:
        reading = _Subscribed(self, subject, subject.at(*keys), after)
        self._readings.add(reading)
        watch = asyncio.create_task(reading.keep_alive())
        try:
            yield reading
        finally:
            self._readings.discard(reading)
            # A cancel that meets the very end of a request of nats-py is swallowed by `wait_for` (Python 3.11): ask again.
            while not watch.done():
                watch.cancel()
                await asyncio.wait({watch}, timeout=0.05)
            await reading.close()

    async def last(self, subject: Subject[B], *keys: str) -> Last[B] | None:
        """See Bus.last."""
        try:
            raw = await self._jetstream.get_msg(subject.stream, subject=subject.at(*keys), direct=not self.clustered)
        except NotFoundError:
            return None
        except (TimeoutError, NatsError) as error:
            raise Unavailable(f"no answer for {subject.name}: {type(error).__name__}") from error
        if raw.data is None:
            return None
        try:
            return Last(decode(subject.body, raw.data), raw.seq or 0)
        except Unreadable:
            return Last(None, raw.seq or 0)

    # --------------------------------------------------- requests and jobs

    async def ask(self, subject: Subject[B], body: B, *, timeout_s: float) -> Body:
        """See Bus.ask."""
        assert subject.answer is not None
        if not self.client.is_connected:
            raise Unavailable("the bus is away")
        name, payload = subject.of(body), encode(body)
        try:
            self._check_size(name, payload)
        except TooLarge as error:
            return _refused_for_size(body, error)
        reply, answer = self._answers.expect(timeout_s)
        try:
            await self.client.publish(name, payload, reply=reply)
            said = await answer
        except (TimeoutError, Lost, NatsError) as error:
            raise Unavailable(f"nobody answers on {subject.name}: {type(error).__name__}") from error
        finally:
            self._answers.forget(reply)
        if said.is_nobodys:
            raise Unavailable(f"nobody serves {subject.name}")
        refused = said.headers is not None and REFUSED in fields(said.headers)
        try:
            return decode(Refused if refused else subject.answer, said.data)
        except Unreadable as error:
            raise Unavailable(f"the answer on {subject.name} is of another version: {error}") from error

    @asynccontextmanager
    async def serve(self, subject: Subject[B], handler: Callable[[B], Awaitable[Body]], *, name: str) -> AsyncIterator[None]:
        """See Bus.serve."""
        running: set[asyncio.Task[None]] = set()

        async def answer(message: Msg) -> None:
            try:
                body = decode(subject.body, message.data)
            except Unreadable as error:
                await self.bury(message.subject, message.data, str(error), 0)
                return
            result = await handler(body)
            payload = encode(result)
            try:
                self._check_size(message.subject, payload)
            except TooLarge as error:
                # Whoever asked would wait, and ask again, for an answer that can never be sent.
                result = _refused_for_size(body, error)
                payload = encode(result)
            headers = {REFUSED: "1"} if isinstance(result, Refused) else None
            with contextlib.suppress(NatsError):
                await self.client.publish(message.reply, payload, headers=headers)

        async def hear(message: Msg) -> None:
            if message.reply:
                task = asyncio.create_task(answer(message))
                running.add(task)
                task.add_done_callback(running.discard)

        subscription = await self.client.subscribe(subject.all, queue=name, cb=hear)
        try:
            yield
        finally:
            with contextlib.suppress(NatsError):
                await subscription.drain()  # type: ignore[no-untyped-call]
            if running:
                await asyncio.wait(running, timeout=DRAIN_S_MAX)

    @asynccontextmanager
    async def hear(self, subject: Subject[B], handler: Callable[[B], None], missed: Callable[[], None]) -> AsyncIterator[None]:
        """See Bus.hear."""

        async def hear(message: Msg) -> None:
            with contextlib.suppress(Unreadable):
                handler(decode(subject.body, message.data))

        subscription = await self.client.subscribe(subject.all, cb=hear, pending_msgs_limit=self.pending_msgs_max)
        self._missed[subscription] = missed
        try:
            yield
        finally:
            del self._missed[subscription]
            with contextlib.suppress(NatsError):
                await subscription.unsubscribe()

    @asynccontextmanager
    async def work(self, subject: Subject[B], *keys: str, name: str) -> AsyncIterator["_Jobs[B]"]:
        """See Bus.work."""
        jobs = _Jobs(self, subject, subject.at(*keys), name)
        try:
            yield jobs
        finally:
            await jobs.let_go()

    async def end_of(self, subject: Subject[B], *keys: str) -> int:
        """See Bus.end_of."""
        try:
            raw = await self._jetstream.get_msg(subject.stream, subject=subject.at(*keys), direct=not self.clustered)
        except NotFoundError:
            return 0
        except (TimeoutError, NatsError) as error:
            raise Unavailable(f"no answer for {subject.name}: {type(error).__name__}") from error
        return raw.seq or 0

    async def erase(self, subject: Subject[B], *keys: str) -> None:
        """See Bus.erase."""
        request = msgspec.json.encode({"filter": subject.at(*keys)})
        try:
            await self.client.request(f"$JS.API.STREAM.PURGE.{subject.stream}", request, timeout=ACK_S_MAX)
        except (TimeoutError, NatsError) as error:
            raise Unavailable(f"{subject.name} could not be purged: {type(error).__name__}") from error

    async def birth(self, subject: Subject[B]) -> str:
        """See Bus.birth."""
        return str((await self._stream_info(subject))["created"])

    async def end(self, subject: Subject[B]) -> int:
        """See Bus.end."""
        state = (await self._stream_info(subject))["state"]
        return int(state["last_seq"]) if state["messages"] else 0

    async def clock_ahead_ms(self) -> int:
        """See Bus.clock_ahead_ms."""
        asked_ns = time.time_ns()
        said = datetime.fromisoformat(str((await self._stream_info(HOST_KNOWN))["ts"]))
        return (asked_ns + time.time_ns()) // 2_000_000 - round(said.timestamp() * 1000)

    async def _stream_info(self, subject: Subject[B]) -> dict[str, Any]:
        try:
            reply = await self.client.request(f"$JS.API.STREAM.INFO.{subject.stream}", timeout=ACK_S_MAX)
        except (TimeoutError, NatsError) as error:
            raise Unavailable(f"no answer about {subject.stream}: {type(error).__name__}") from error
        info: dict[str, Any] = msgspec.json.decode(reply.data)
        if "created" not in info:
            raise Unavailable(f"there is no stream {subject.stream} yet")
        return info

    # ------------------------------------------------------- connection

    async def listen(self) -> None:
        """Be ready to say; once, before the first say."""
        await self._answers.listen(self.client)

    def lost(self) -> None:
        """The connection is lost."""
        self._answers.lose()

    async def make_streams(self) -> None:
        """Make what is missing and bring the rest up to what `subjects.py` declares. Raises Unavailable."""
        for config in all_streams(self._replicas or 1):
            try:
                try:
                    await self._jetstream.add_stream(config)
                except APIError as error:
                    if error.err_code != NAME_IN_USE:
                        raise
                    # It is there with another configuration: an older version made it, or one that was told of more nodes.
                    if self._replicas is None:
                        config.num_replicas = (await self._jetstream.stream_info(config.name or "")).config.num_replicas
                    await self._jetstream.update_stream(config)
            except APIError as error:
                raise Unavailable(f"the stream {config.name} could not be made: {error.description}") from error
            except (TimeoutError, NatsError) as error:
                raise Unavailable(f"the stream {config.name} could not be made: {type(error).__name__}") from error

    async def came_back(self) -> None:
        """After a reconnect: streams in memory may be gone, consumers too."""
        while self._makes_streams:
            try:
                await self.make_streams()
                break
            except (Unavailable, NatsError):
                if self.client.is_closed:
                    return
                await asyncio.sleep(0.2)
        self.returns += 1
        for reading in self._readings:
            reading.renew()
        for missed in self._missed.values():
            missed()

    def drop(self, subscription: Subscription | None) -> None:
        """A message of that subscription was thrown away: whoever hears there is told."""
        self.dropped += 1
        if subscription in self._missed:
            self._missed[subscription]()

    async def bury(self, subject: str, payload: bytes, reason: str, at_ms: int) -> bool:
        """Put a message that nobody can handle where a person can look at it, its beginning if it is long; False when that cannot be now."""
        self.poison += 1
        if len(payload) > DEAD_BYTES_MAX:
            reason = f"{reason} (the first {DEAD_BYTES_MAX} of {len(payload)} bytes)"
        dead = Dead(service=self.service, subject=subject, reason=reason, at_ms=at_ms, body=payload[:DEAD_BYTES_MAX])
        try:
            await self.say(DEAD, dead)
        except Unavailable as error:
            # Whoever reads goes on: what nobody can read must not keep back what everybody can.
            logging.getLogger(__name__).error("poison on %s could not be put aside: %s", subject, error)
            return False
        return True


class _Job(Generic[B]):
    """One message of a work consumer."""

    def __init__(self, jobs: "_Jobs[B]", message: Msg, body: B) -> None:
        self._jobs = jobs
        self.message = message
        self.body = body
        self.seq = message.metadata.sequence.stream
        self.attempt = message.metadata.num_delivered

    async def done(self) -> None:
        """See Job.done."""
        try:
            await self.message.ack_sync(timeout=ACK_S_MAX)
        except (TimeoutError, NatsError) as error:
            raise Unavailable(f"the bus did not take that a job is done: {type(error).__name__}") from error

    async def again(self, delay_s: float) -> None:
        """See Job.again."""
        self._jobs.put_off(self, delay_s)


@dataclass(frozen=True, eq=False)
class _PutOff(Generic[B]):
    """A job that is to be handed out again, and the task that tells the bus so."""

    at_s: float  # by the loop's clock
    job: _Job[B]
    keeping: "asyncio.Task[None]"


async def _keep(message: Msg) -> None:
    """Tell the bus again and again that a message is worked on, until cancelled."""
    while True:
        with contextlib.suppress(NatsError):
            await message.in_progress()
        await asyncio.sleep(JOB_ACK_S / 3)


class _Jobs(Generic[B]):
    """A durable pull consumer that replicas share; made anew when the bus has lost it.

    What is put off stays here until its time has come, and the bus is told that it is worked on. Given back, each time would count
    as an attempt, and a job that only waits for room on a disk would soon pass for poison.
    """

    def __init__(self, bus: NatsBus, subject: Subject[B], pattern: str, name: str) -> None:
        self._bus = bus
        self._subject = subject
        self._pattern = pattern
        self._name = name
        self._loop = asyncio.get_running_loop()
        self._put_off: list[_PutOff[B]] = []
        self._returns = bus.returns

    async def __aiter__(self) -> AsyncIterator[_Job[B]]:
        while True:
            try:
                subscription = await self._bus._jetstream.pull_subscribe(
                    self._pattern,
                    durable=self._name,
                    stream=self._subject.stream,
                    config=ConsumerConfig(ack_policy=AckPolicy.EXPLICIT, ack_wait=JOB_ACK_S, max_ack_pending=JOBS_PENDING_MAX),
                )
                try:
                    while True:
                        due = await self._due()
                        if due is not None:
                            yield due
                            continue
                        told = times_told_to_stop()
                        message: Msg | None = None
                        with contextlib.suppress(TimeoutError):
                            # One at a time: a fetch of several waits out its whole time when another replica takes the rest.
                            (message,) = await subscription.fetch(1, timeout=self._wait_s())
                        if times_told_to_stop() > told:  # and `wait_for` has forgotten it
                            if message is not None:
                                await message.nak()
                            raise asyncio.CancelledError
                        if message is None:
                            continue
                        job = await self._job(message)
                        if job is not None:
                            yield job
                finally:
                    # A pull that nobody waits for would take the next job and keep it until its time is up.
                    with contextlib.suppress(NatsError):
                        await subscription.unsubscribe()
            except (NatsError, TimeoutError):
                # The server is away, or has lost the consumer: until it is back there is no work.
                await asyncio.sleep(0.2)

    def put_off(self, job: _Job[B], delay_s: float) -> None:
        """Hand `job` out again when so much time has passed."""
        keeping = asyncio.create_task(_keep(job.message))
        self._put_off.append(_PutOff(self._loop.time() + delay_s, job, keeping))

    async def let_go(self) -> None:
        """Give back what is put off: another may have it now."""
        given, self._put_off = self._put_off, []
        for one in given:
            one.keeping.cancel()
            with contextlib.suppress(NatsError):
                await one.job.message.nak()

    async def _due(self) -> _Job[B] | None:
        """A job that was put off, when its time has come."""
        if self._returns != self._bus.returns:
            # The log may be another one by now, and what a handler knows of it too.
            self._returns = self._bus.returns
            await self.let_go()
        due = min(self._put_off, key=lambda one: one.at_s, default=None)
        if due is None or due.at_s > self._loop.time():
            return None
        self._put_off.remove(due)
        due.keeping.cancel()
        with contextlib.suppress(NatsError):
            await due.job.message.in_progress()
        due.job.attempt += 1
        return due.job

    def _wait_s(self) -> float:
        """How long to wait for another job: until the next one that was put off is due."""
        left_s = min((one.at_s - self._loop.time() for one in self._put_off), default=JOB_WAIT_S)
        return min(max(left_s, JOB_WAIT_S_MIN), JOB_WAIT_S)

    async def _job(self, message: Msg) -> _Job[B] | None:
        reason = ""
        if message.metadata.num_delivered > JOB_ATTEMPTS_MAX:
            reason = f"not done after {JOB_ATTEMPTS_MAX} attempts"
        try:
            body = decode(self._subject.body, message.data)
        except Unreadable as error:
            reason = str(error)
        if not reason:
            return _Job(self, message, body)
        if await self._bus.bury(message.subject, message.data, reason, int(message.metadata.timestamp.timestamp() * 1000)):
            await message.term()
        return None


class _Delivered(NamedTuple):
    """A message, and where it stands in its stream and in what its consumer delivered."""

    subject: bytes
    data: bytes
    stream_seq: int
    consumer_seq: int
    at_ms: int

    @classmethod
    def of(cls, subject: bytes, reply: bytes, data: bytes) -> "_Delivered":
        """From the reply subject: `$JS.ACK.<stream>.<consumer>.<deliveries>.<stream seq>.<consumer seq>.<ns>.<pending>`."""
        tokens = reply.split(b".")
        return cls(subject, data, int(tokens[-4]), int(tokens[-3]), int(tokens[-2]) // 1_000_000)


class _Subscribed(Generic[B]):
    """One ephemeral, ordered consumer that is made anew whenever a message is missing or it falls silent.

    nats-py's own `fetch` costs a task per message and its ordered consumer does not survive a server
    restart, so messages come by callback from a push consumer, and their order is checked here.
    """

    def __init__(self, bus: NatsBus, subject: Subject[B], pattern: str, after: int | None) -> None:
        self._bus = bus
        self._loop = asyncio.get_running_loop()
        self._subject = subject
        self._pattern = pattern
        self._after = after  # None: last values
        self._heartbeat_s = CLUSTER_HEARTBEAT_S if bus.clustered else HEARTBEAT_S
        self._queue: deque[_Delivered] = deque()
        self._wake = asyncio.Event()
        self._renew = asyncio.Event()
        self._renew.set()
        self._missing = False
        self._subscription: Subscription | None = None
        self._life = 0
        self._consumer_seq = 0
        self._initial_left: int | None = None
        self._heard_at = 0.0
        self._made_at = -REREAD_S_MIN
        self._flow_replies: deque[str] = deque()

    def renew(self) -> None:
        """Have the consumer made anew."""
        self._renew.set()

    def miss(self) -> None:
        """A message is missing: read again."""
        self._missing = True
        self.renew()

    async def keep_alive(self) -> None:
        """Make the consumer whenever it is needed, until cancelled."""
        while True:
            try:
                async with asyncio.timeout(self._heartbeat_s):
                    await self._renew.wait()
            except TimeoutError:
                if self._loop.time() - self._heard_at < HEARTBEATS_MISSED_MAX * self._heartbeat_s or not self._bus.client.is_connected:
                    continue
            if self._missing:
                await asyncio.sleep(max(0.0, self._made_at + REREAD_S_MIN - self._loop.time()))
            self._renew.clear()
            self._made_at = self._loop.time()
            try:
                await self._make()
            except (TimeoutError, NatsError):
                await asyncio.sleep(0.2)
                self._renew.set()

    async def close(self) -> None:
        """Stop hearing. The server forgets the consumer by itself."""
        if self._subscription is not None:
            with contextlib.suppress(NatsError):
                await self._subscription.unsubscribe()

    async def _make(self) -> None:
        # First of all: what the old one still delivers, or lacks, is of no concern any more.
        self._life += 1
        life = self._life
        missing, self._missing = self._missing, False
        if self._after is None:
            self._queue.clear()
            start: dict[str, Any] = {"deliver_policy": DeliverPolicy.LAST_PER_SUBJECT}
        else:
            # What is in the queue was counted in _after already: go on behind it.
            start = {"deliver_policy": DeliverPolicy.BY_START_SEQUENCE, "opt_start_seq": self._after + 1}
        self._consumer_seq = 0
        self._initial_left = None
        self._flow_replies.clear()
        await self.close()
        client = self._bus.client
        inbox = client.new_inbox()

        def hear(subject: bytes, reply: bytes, data: bytes, headers: bytes | None) -> None:
            # What an abandoned consumer still delivers is not part of the order.
            if life == self._life:
                self._hear(subject, reply, data, headers)

        self._subscription = await client.subscribe_at_once(inbox, hear)
        info = await self._bus._jetstream.add_consumer(
            self._subject.stream,
            ConsumerConfig(
                filter_subject=self._pattern,
                deliver_subject=inbox,
                ack_policy=AckPolicy.NONE,
                max_deliver=1,
                mem_storage=True,
                num_replicas=1,
                flow_control=True,
                idle_heartbeat=self._heartbeat_s,
                inactive_threshold=30.0,
                **start,
            ),
        )
        self._heard_at = self._loop.time()
        delivered = info.delivered.consumer_seq if info.delivered else 0
        to_come = (info.num_pending or 0) + (delivered or 0)
        if missing:
            self._bus.reread += to_come
            logging.getLogger(__name__).warning(
                "%s: messages were missing, %d are read again (since the start: %d dropped, %d read again)",
                self._subject.name, to_come, self._bus.dropped, self._bus.reread,
            )  # fmt: skip
        if self._after is None:
            self._initial_left = to_come
            self._wake.set()

    def _hear(self, subject: bytes, reply: bytes, data: bytes, headers: bytes | None) -> None:
        self._heard_at = self._loop.time()
        if headers and not data:
            # Flow control and heartbeats; no body of ours is empty.
            told = fields(headers)
            # Flow control is answered when what came before it has been taken: that bounds the queue.
            asked = reply.decode() or told.get("Nats-Consumer-Stalled")
            if asked:
                self._flow_replies.append(asked)
                self._wake.set()
            if int(told.get("Nats-Last-Consumer") or 0) > self._consumer_seq:
                self.miss()
            return
        if len(self._queue) >= self._bus.pending_msgs_max:
            self._bus.dropped += 1
            self.miss()
            return
        message = _Delivered.of(subject, reply, data)
        if message.consumer_seq != self._consumer_seq + 1:
            self.miss()
            return
        self._consumer_seq = message.consumer_seq
        if self._after is not None:
            self._after = message.stream_seq
        self._queue.append(message)
        self._wake.set()

    async def __aiter__(self) -> AsyncIterator[Sequence[Heard[B]]]:
        handed, life = 0, 0
        while True:
            await self._wake.wait()
            self._wake.clear()
            if life != self._life:
                handed, life = 0, self._life
            while self._queue:
                raw = [self._queue.popleft() for _ in range(min(len(self._queue), BATCH_MAX))]
                handed += len(raw)
                batch = [heard for message in raw if (heard := await self._heard(message)) is not None]
                if batch:
                    yield batch
            if self._initial_left is not None and life == self._life and handed >= self._initial_left:
                self._initial_left = None
                yield ()
            while self._flow_replies:
                with contextlib.suppress(NatsError):
                    await self._bus.client.publish(self._flow_replies.popleft(), b"")

    async def _heard(self, message: _Delivered) -> Heard[B] | None:
        try:
            return Heard(decode(self._subject.body, message.data), message.stream_seq)
        except Unreadable as error:
            await self._bus.bury(message.subject.decode(), message.data, str(error), message.at_ms)
            return None


CREDENTIAL_FILE = "nats.credential"


def read_credential(file: Path) -> dict[str, Any]:
    """`user:password` of a credential file as keyword arguments for a connection; nothing when there is no file."""
    try:
        user, _, password = file.read_text().strip().partition(":")
    except FileNotFoundError:
        return {}
    return {"user": user, "password": password}


@asynccontextmanager
async def connect(
    url: str,
    *,
    name: str,
    state: Path | None = None,
    credential: str = CREDENTIAL_FILE,
    makes_streams: bool = True,
    replicas: int | None = None,
    pending_msgs_max: int = PENDING_MSGS_MAX,
    ack_s_max: float = ACK_S_MAX,
) -> AsyncIterator[NatsBus]:
    """A bus as service `name`; waits for the server, and for its streams, as long as it takes.

    `state`: the instance's folder, which holds the credential file (0600, `user:password`).
    `makes_streams`: False for one that only reads what services say.
    `replicas`: on how many nodes of a cluster each stream is kept; None leaves those that are there as they are.
    `pending_msgs_max`: what one reader may leave lying.
    `ack_s_max`: longest wait for a publish to be on record; beyond it the bus counts as away.
    """
    came_back: set[asyncio.Task[None]] = set()

    async def on_return() -> None:
        task = asyncio.create_task(bus.came_back())
        came_back.add(task)
        task.add_done_callback(came_back.discard)

    async def on_loss() -> None:
        bus.lost()

    async def on_error(error: Exception) -> None:
        """Told on every failed attempt to connect, which itself goes on; and on every message that was thrown away."""
        if isinstance(error, SlowConsumerError):
            bus.drop(error.sub)

    client = Client()
    await client.connect(
        url,
        name=name,
        max_reconnect_attempts=-1,
        reconnect_time_wait=0.2,  # type: ignore[arg-type]
        connect_timeout=2,
        allow_reconnect=True,
        ping_interval=10,
        disconnected_cb=on_loss,
        reconnected_cb=on_return,
        error_cb=on_error,
        drain_timeout=2,
        # A login in the address is meant: ours would take its place.
        **(read_credential(state / credential) if state and urlsplit(url).username is None else {}),
    )
    bus = NatsBus(client, name, makes_streams, replicas, pending_msgs_max, ack_s_max)
    try:
        await bus.listen()
        told = ""
        while makes_streams:
            try:
                await bus.make_streams()
                break
            except Unavailable as error:
                if str(error) != told:
                    told = str(error)
                    logging.getLogger(__name__).warning("%s", told)
                await asyncio.sleep(0.2)
        yield bus
    finally:
        for task in list(came_back):
            task.cancel()
        # OSError: what nats-py still had to send meets a server that has gone.
        with contextlib.suppress(NatsError, OSError):
            await client.drain() if client.is_connected else await client.close()
