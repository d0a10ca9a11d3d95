"""Reading a body: unknown fields are ignored, unknown versions are not guessed at."""

from functools import cache
from typing import TypeVar

import msgspec

from tocsin.contract.messages import Body

B = TypeVar("B", bound=Body)


class Unreadable(ValueError):
    """A message that no retry can help: of an unknown version, or not a body of its subject."""


class _Version(msgspec.Struct):
    v: int = 1


@cache
def _decoder(body: type[B]) -> msgspec.json.Decoder[B]:
    return msgspec.json.Decoder(body)


_version = msgspec.json.Decoder(_Version)


def decode(body: type[B], payload: bytes) -> B:
    """The body that `payload` carries. Raises Unreadable, with a reason that holds no payload."""
    try:
        value: B = _decoder(body).decode(payload)
    except RecursionError as error:
        raise Unreadable("it is nested too deep") from error
    except msgspec.MsgspecError as error:
        reason = str(error)
        try:
            # A newer version may well have another shape: then the version is the better reason.
            version = _version.decode(payload).v
        except msgspec.MsgspecError:
            version = body.VERSION
        if version != body.VERSION:
            reason = f"version {version}, this reader knows {body.VERSION}"
        raise Unreadable(reason) from error
    if value.v != body.VERSION:
        raise Unreadable(f"version {value.v}, this reader knows {body.VERSION}")
    return value
