"""Credentials that are shown as `Authorization: Bearer INSTANCE.SECRET`: reading their files, and judging what is shown."""

from collections.abc import Mapping
from hmac import compare_digest
from pathlib import Path

from tocsin.contract.refusals import Code, Refusal

SECRET_BYTES_MIN = 16
"""A shorter secret can be guessed; those that we make have 43 characters."""


def read_bearer(file: Path) -> bytes | Refusal:
    """The credential in a file. Refuses: broken_settings, when it is missing, weak, or of another form."""
    try:
        content = file.read_bytes().strip()
    except OSError as error:
        return Refusal(Code.BROKEN_SETTINGS, f"{file}: {error.strerror}; `tocsin credentials` makes what is missing")
    instance, _, secret = content.partition(b".")
    if not instance or len(secret) < SECRET_BYTES_MIN or len(content.split()) != 1:
        return Refusal(Code.BROKEN_SETTINGS, f"{file} does not hold a credential of the form INSTANCE.SECRET")
    return content


def instance_of(credential: bytes) -> bytes:
    """The id of the instance that a credential belongs to; it is no secret."""
    return credential.partition(b".")[0]


def judge(authorization: bytes | None, wanted: bytes, others: Mapping[bytes, str]) -> Refusal | None:
    """None when an Authorization header holds `wanted`. Refuses: no_credential, foreign_instance.

    `others`: further credentials of the instance, and what to say to who shows one of them.
    """
    if authorization is None:
        return Refusal(Code.NO_CREDENTIAL, "the request shows no credential")
    scheme, _, shown = authorization.partition(b" ")
    if scheme.lower() != b"bearer":
        return Refusal(Code.NO_CREDENTIAL, "the Authorization header is not of the form: Bearer CREDENTIAL")
    if compare_digest(shown, wanted):
        return None
    for other, about in others.items():
        if compare_digest(shown, other):
            return Refusal(Code.NO_CREDENTIAL, about)
    # The instance's id is no secret; only what follows it is compared in constant time.
    instance, dot, _ = shown.partition(b".")
    if dot and instance != instance_of(wanted):
        return Refusal(Code.FOREIGN_INSTANCE, "the credential is another instance's: who shows it belongs to a Tocsin that is not this one")
    return Refusal(Code.NO_CREDENTIAL, "the credential is wrong")
