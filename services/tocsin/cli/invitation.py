"""What a machine is told that is to join an instance. It holds a secret: a login that may do what a host does, and no more."""

import msgspec

FILE = "invitation.json"
"""Where a machine that has joined keeps it, readable by its owner alone."""


class Invitation(msgspec.Struct, frozen=True, kw_only=True):
    """Where the instance's bus is and how one logs in. `leaf`: the hub's listener for leaves, instead of `bus`."""

    version: str
    bus: str
    workspace: str
    hash_key: str  # prompts leave every machine as hashes under one key, so that they can be told to be the same
    login: str | None = None  # None: the address holds it
    leaf: str | None = None
    authority: str | None = None  # a certificate (PEM) for the leaf's link
    host: str | None = None  # how the machine that keeps it is called


class BadInvitation(Exception):
    """This is no invitation; the text says what to do."""


def read(text: bytes) -> Invitation:
    """An invitation as `tocsin invite` prints it. Raises BadInvitation."""
    try:
        return msgspec.json.decode(text, type=Invitation)
    except msgspec.MsgspecError as error:
        raise BadInvitation(f"this is no invitation ({error}): make one where the instance runs, with `tocsin invite > FILE`") from error
