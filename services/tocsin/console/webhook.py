"""Telling a notice to a webhook, as ntfy takes it: the text as the body, the rest in headers. One attempt, with a time limit.

What can be told of a failure names no path, query or credential: an address may itself be a secret.
"""

import asyncio
from base64 import b64encode
from pathlib import Path
from urllib.parse import urlsplit

from tocsin.contract.notices import NoticeDue

ANSWER_S_MAX = 10.0
"""For the whole attempt, from the name of the host to the status of the answer."""

LATER = frozenset({408, 425, 429})
"""Statuses below 500 that say: try again."""

TAGS, URGENT_TAGS = "bell", "rotating_light"
PRIORITY, URGENT_PRIORITY = "default", "urgent"


class Failed(Exception):
    """It was not taken. `for_good`: asking again cannot help."""

    def __init__(self, why: str, *, for_good: bool = False) -> None:
        super().__init__(why)
        self.for_good = for_good


def header(text: str) -> str:
    """A text as a header holds it: as it is when it is plain, else encoded as mail headers are, which ntfy decodes. Never a line break."""
    clean = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return clean if clean.isascii() else f"=?UTF-8?B?{b64encode(clean.encode()).decode()}?="


class Webhook:
    """One address."""

    def __init__(self, url: str, token_file: Path | None = None) -> None:
        self._url = url
        self._token_file = token_file
        parts = urlsplit(url)
        self.host = parts.hostname or ""
        """All that may be told of the address."""
        self.is_open = parts.scheme == "http" and self.host not in ("127.0.0.1", "::1", "localhost")
        """What is sent can be read on its way."""

    async def send(self, notice: NoticeDue) -> None:
        """Tell it. Raises Failed."""
        import httpx  # an installation without a webhook need not load it

        headers = {
            "Title": header(notice.title),
            "Priority": URGENT_PRIORITY if notice.urgent else PRIORITY,
            "Tags": URGENT_TAGS if notice.urgent else TAGS,
            "X-Tocsin-Notice": header(notice.id),
            "Content-Type": "text/plain; charset=utf-8",
            **({"Click": header(notice.click)} if notice.click else {}),
        }
        if self._token_file is not None:
            try:
                token = (await asyncio.to_thread(self._token_file.read_text)).strip()
            except (OSError, UnicodeDecodeError) as error:
                raise Failed(f"the file of its token cannot be read ({type(error).__name__})") from error
            headers["Authorization"] = f"Bearer {token}"
        try:
            async with (
                asyncio.timeout(ANSWER_S_MAX),
                httpx.AsyncClient(timeout=ANSWER_S_MAX, follow_redirects=False) as client,
                # Only the status is wanted: the body of an answer may be of any length.
                client.stream("POST", self._url, content=notice.text.encode(), headers=headers) as answer,
            ):
                status = answer.status_code
        except TimeoutError as error:
            raise Failed(f"{self.host} did not answer within {ANSWER_S_MAX:.0f} s") from error
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError, ValueError) as error:
            raise Failed(f"{self.host} cannot be reached ({type(error).__name__})") from error
        if not 200 <= status < 300:
            raise Failed(f"{self.host} answers {status}", for_good=status < 500 and status not in LATER)
