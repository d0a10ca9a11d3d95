"""Who is told that something of the loop has moved: a page says what it shows, and hears of that alone.

What has moved is a hint, not a value: the page asks again. So hints are gathered, and a lost one costs nothing once the page asks.
"""

from collections import defaultdict
from collections.abc import Iterable
from enum import StrEnum

from tocsin.contract.run import run_of_dispatch

TOPICS_MAX = 8
"""Topics of one page: what it shows at once, with room."""


class Kind(StrEnum):
    """What moves."""

    RUN = "run"
    MAIL = "mail"
    CUSTODY = "custody"


def topics_of(kind: Kind, run: str) -> tuple[str, str]:
    """What one record is a hint for: `run`, everything of its kind, and `run:<id>`, that of its Run."""
    return kind.value, f"{kind.value}:{run}"


def run_of_mailbox(address: str) -> str:
    """The Run of a mailbox, which is `run:<id>` or `dispatch:<id>`."""
    return run_of_dispatch(address.partition(":")[2])


def is_topic(given: str) -> bool:
    """Whether there is such a topic."""
    kind, mark, run = given.partition(":")
    return kind in set(Kind) and bool(run) == bool(mark)


class Watch:
    """One page: what it shows, and what of that has moved since it was last told."""

    def __init__(self, topics: Iterable[str]) -> None:
        self.topics = frozenset(topics)
        self.moved: set[str] = set()

    def take(self) -> list[str]:
        """What has moved; from here on it counts as told."""
        taken, self.moved = sorted(self.moved), set()
        return taken


class Watches:
    """All pages, by what they show: a hint costs as much as there are pages that show what has moved."""

    def __init__(self) -> None:
        self._by_topic: defaultdict[str, set[Watch]] = defaultdict(set)
        self._gathered: set[str] = set()

    def add(self, watch: Watch) -> None:
        """A page has opened."""
        for topic in watch.topics:
            self._by_topic[topic].add(watch)

    def remove(self, watch: Watch) -> None:
        """It is gone."""
        for topic in watch.topics:
            self._by_topic[topic].discard(watch)
            if not self._by_topic[topic]:
                del self._by_topic[topic]

    def hear(self, kind: Kind, run: str) -> bool:
        """Gather one hint; returns whether any page shows that."""
        shown = [topic for topic in topics_of(kind, run) if topic in self._by_topic]
        self._gathered.update(shown)
        return bool(shown)

    def hear_anything(self) -> bool:
        """Gather that everything may have moved: hints were lost."""
        self._gathered.update(self._by_topic)
        return bool(self._by_topic)

    def tell(self) -> set[Watch]:
        """Hand what was gathered to the pages that show it; returns those that have something to be told."""
        gathered, self._gathered = self._gathered, set()
        told: set[Watch] = set()
        for topic in gathered:
            for watch in self._by_topic.get(topic, ()):
                watch.moved.add(topic)
                told.add(watch)
        return told
