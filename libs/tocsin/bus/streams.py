"""Streams, made from the subjects that declare them."""

from nats.js.api import DiscardPolicy, RetentionPolicy, StorageType, StreamConfig

from tocsin.contract.messages import Body
from tocsin.contract.subjects import SUBJECTS, Kept, Subject

DUPLICATE_WINDOW_S = 120
"""How long the bus remembers message ids: longer than any retry of a publish."""

LATEST_BYTES_MAX = 64 * 1024 * 1024
"""A bound for each stream of last values: 10,000 panes need about half of it. The server reserves it in memory."""


def stream_of(subject: Subject[Body], replicas: int) -> StreamConfig:
    """The stream that keeps `subject` as it declares, on so many nodes of the bus."""
    common = StreamConfig(
        name=subject.stream,
        subjects=[subject.all],
        description=subject.about,
        retention=RetentionPolicy.LIMITS,
        discard=DiscardPolicy.OLD,
        duplicate_window=DUPLICATE_WINDOW_S,
        allow_direct=True,
        num_replicas=replicas,
    )
    if subject.kept is Kept.LATEST:
        return common.evolve(storage=StorageType.MEMORY, max_msgs_per_subject=1, max_bytes=LATEST_BYTES_MAX)
    on_disk = common.evolve(storage=StorageType.FILE, max_age=subject.age_s_max, max_bytes=subject.bytes_max)
    match subject.kept:
        case Kept.LEDGER:
            return on_disk.evolve(discard=DiscardPolicy.NEW)
        case Kept.QUEUE:
            return on_disk.evolve(retention=RetentionPolicy.WORK_QUEUE)
    return on_disk


def all_streams(replicas: int = 1) -> list[StreamConfig]:
    """One per kept subject."""
    return [stream_of(subject, replicas) for subject in SUBJECTS.values() if subject.kept is not Kept.NOT]
