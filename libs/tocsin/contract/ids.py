"""Names of things, and how a name becomes one token of a subject or key."""

import hashlib
from typing import NewType
from urllib.parse import unquote_to_bytes

HostId = NewType("HostId", str)
PaneId = NewType("PaneId", str)
SourceId = NewType("SourceId", str)
WorktreeId = NewType("WorktreeId", str)
WorkspaceId = NewType("WorkspaceId", str)

DEFAULT_WORKSPACE = WorkspaceId("default")

TOKEN_BYTES_MAX = 200
"""Longest name in bytes before encoding; NATS carries longer subjects, people do not read them."""

_PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
_ENCODED = tuple(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in range(256))


class BadName(ValueError):
    """A name that cannot become a token: empty, too long, or no text."""


def token(name: str) -> str:
    """`name` as one subject token: every byte outside `[A-Za-z0-9_-]` percent-encoded, so `a.b`, `*` and `>` stay one place.

    Reversible with `from_token`. Raises BadName when `name` is empty, over TOKEN_BYTES_MAX bytes, or holds a lone surrogate.
    """
    try:
        raw = name.encode()
    except UnicodeEncodeError as error:
        raise BadName("a name holds half a character (a lone surrogate)") from error
    if not raw:
        raise BadName("a name is empty")
    if len(raw) > TOKEN_BYTES_MAX:
        raise BadName(f"a name has {len(raw)} bytes, the limit is {TOKEN_BYTES_MAX}")
    if not raw.translate(None, _PLAIN):
        return name  # nothing to encode in it: nearly every name
    return "".join([_ENCODED[byte] for byte in raw])


def from_token(text: str) -> str:
    """The name that `token` encoded."""
    return unquote_to_bytes(text).decode()


def digest(*parts: str) -> str:
    """16 hexadecimal digits that stand for `parts`; the separator keeps ("ab", "c") apart from ("a", "bc")."""
    return hashlib.blake2b("\x1f".join(parts).encode(errors="surrogatepass"), digest_size=8).hexdigest()


def session_source(agent: str, session: str) -> SourceId:
    """The source of events whose environment does not name their pane."""
    return SourceId(f"s-{digest(agent, session)}")


def tmux_pane(server: str, pane: str) -> PaneId:
    """The pane of a tmux server life. `server` is the value of $TMUX without its session: `socket,pid`.

    Pane numbers start again with each server, so the server's pid is part of the identity.
    """
    socket, _, pid = server.rpartition(",")
    return PaneId(f"{socket.rpartition('/')[2]}.{pid}.{pane.lstrip('%')}")


def worktree_id(host: HostId, path: str) -> WorktreeId:
    """Readable and unique: the folder's name, then a digest of host and real path."""
    folder = path.rstrip("/").rpartition("/")[2].encode()[:80].decode(errors="ignore")
    return WorktreeId(f"{folder or 'root'}-{digest(host, path)[:8]}")
