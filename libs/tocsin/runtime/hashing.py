"""The keyed hash of an instance: the only form in which free text leaves the intake, and in which others know it again."""

import hashlib
from collections.abc import Callable
from pathlib import Path

from tocsin.contract.refusals import Code, Refusal

KEY_BYTES_MIN = 16
"""A shorter key can be guessed; those that we make have 43 characters."""

HASH_BYTES = 16


def read_keyed(key_file: Path) -> Callable[[str], str] | Refusal:
    """The keyed hash of an instance: 32 hexadecimal digits. Refuses: broken_settings, when the key is missing or weak."""
    try:
        content = key_file.read_bytes().strip()
    except OSError as error:
        return Refusal(Code.BROKEN_SETTINGS, f"{key_file}: {error.strerror}; `tocsin credentials` makes what is missing")
    if len(content) < KEY_BYTES_MIN:
        return Refusal(Code.BROKEN_SETTINGS, f"{key_file} does not hold a key")
    key = hashlib.blake2b(content).digest()  # any length of file becomes the longest key that the hash takes

    def keyed(text: str) -> str:
        return hashlib.blake2b(text.encode(errors="surrogatepass"), key=key, digest_size=HASH_BYTES).hexdigest()

    return keyed
