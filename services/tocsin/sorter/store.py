"""The last published list in Redis, for a start at which the bus has lost it."""

from redis.asyncio import Redis
from redis.exceptions import RedisError

from tocsin.bus.bus import Unavailable
from tocsin.contract.ids import WorkspaceId
from tocsin.contract.messages import WorktreesSorted
from tocsin.contract.versions import Unreadable, decode
from tocsin.store import keys


class ListStore:
    """Holds one list for each workspace. Only who publishes writes it, so the last write wins."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    async def load(self, workspace: WorkspaceId) -> WorktreesSorted | None:
        """The last list, or None when there is none that can be read. Raises Unavailable."""
        try:
            found = await self._redis.get(keys.list_of(workspace))
        except RedisError as error:
            raise Unavailable(f"the store: {type(error).__name__}") from error
        if found is None:
            return None
        try:
            return decode(WorktreesSorted, found.encode() if isinstance(found, str) else found)
        except Unreadable:
            # Another version wrote it: a start without it is only slower to show something.
            return None

    async def save(self, workspace: WorkspaceId, encoded: bytes) -> None:
        """Keep this list. Raises Unavailable."""
        try:
            await self._redis.set(keys.list_of(workspace), encoded)
        except RedisError as error:
            raise Unavailable(f"the store: {type(error).__name__}") from error
