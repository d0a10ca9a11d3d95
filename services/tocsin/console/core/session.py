"""Sessions: a signed note that its bearer may read, or read and command, until a moment. Nobody stores one, so replicas share them."""

import base64
import binascii
import hashlib
import hmac
from enum import StrEnum

import msgspec

SESSION_MS = 7 * 24 * 3_600_000
"""How long a session lasts. A page that is used renews it at half of that, so only one that is forgotten ends."""

_PURPOSE = b"tocsin console session 1"


class Scope(StrEnum):
    """What a session is good for."""

    READ = "read"
    COMMAND = "command"  # and read


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """Who looks at the page. `name` is the user's name where `tocsin open` was run."""

    name: str
    scope: Scope
    until_ms: int


def key_of(command_credential: bytes) -> bytes:
    """The key that signs sessions. Another command credential ends them all."""
    return hmac.digest(command_credential, _PURPOSE, "sha256")


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def sign(session: Session, key: bytes) -> str:
    """The session as a cookie holds it."""
    payload = msgspec.json.encode(session)
    return f"{_encoded(payload)}.{_encoded(hmac.digest(key, payload, 'sha256'))}"


def read(cookie: str, key: bytes, now_ms: int) -> Session | None:
    """The session that a cookie holds; None when it is over, or when we did not sign it."""
    payload_text, _, mac_text = cookie.partition(".")
    try:
        payload, mac = _decoded(payload_text), _decoded(mac_text)
        if not hmac.compare_digest(mac, hmac.digest(key, payload, "sha256")):
            return None
        session = msgspec.json.decode(payload, type=Session)
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        return None
    return session if now_ms < session.until_ms else None


def is_to_renew(session: Session, now_ms: int) -> bool:
    """True when half of it is over."""
    return session.until_ms - now_ms < SESSION_MS // 2


def digest_of(ticket: str) -> str:
    """What a ticket is stored under: the store never holds one that could be used."""
    return hashlib.sha256(ticket.encode(errors="surrogatepass")).hexdigest()
