"""Faults of the machinery, which no caller asked for. (What a request did wrong is a refusal, see refusals.py.)"""


class Unavailable(Exception):
    """The bus or the store does not answer. The same request may be tried again; nothing is known to have changed."""


class TooLarge(Unavailable):
    """One message is larger than the bus takes. Nothing was sent, and sending it again cannot help."""


class Overtaken(Exception):
    """Somebody else wrote first: the expected last sequence is no longer the last."""
