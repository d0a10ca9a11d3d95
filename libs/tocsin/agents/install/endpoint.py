"""Where hook commands find the instance that they report to: one file of curl options in its folder.

curl reads address and credential from it, so neither is ever in an argument. One file serves all agents: the hook
command adds the path `/hook/AGENT` itself.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from tocsin.agents.install.settings_file import replace_file

NAME = "hook.curl"
"""Name of the file inside the instance's folder."""

_OPTION = re.compile(r'^(url|header) = "((?:[^"\\]|\\["\\])*)"$')


@dataclass(frozen=True)
class Endpoint:
    """Where hooks go. `url` is scheme, address and port; `host` is the Host header that the server takes."""

    url: str
    credential: str
    host: str


def write_endpoint(state: Path, url: str, credential: str, host: str) -> None:
    """Tell the hook commands of the instance `state` where to report; for the user's eyes alone (0600), replaced at once.

    Makes the folder when it is missing. Raises ValueError for a value with a control character, OSError.
    """
    options = [("url", url), ("header", f"Authorization: Bearer {credential}"), ("header", f"Host: {host}")]
    if any(re.search(r"[\x00-\x1f\x7f]", value) for _, value in options):
        raise ValueError("an address, credential or host holds a control character")
    lines = [f'{name} = "{_quoted(value)}"' for name, value in options]
    # The user's proxies are not asked the way to their own machine.
    lines += ['noproxy = "*"', "globoff"]
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace_file(state / NAME, ("\n".join(lines) + "\n").encode(), mode=0o600)


def read_endpoint(state: Path) -> Endpoint | None:
    """What `write_endpoint` wrote, or None when there is no such file or it is none of ours."""
    try:
        text = (state / NAME).read_text()
    except (OSError, UnicodeDecodeError):
        return None
    found = [(match[1], re.sub(r"\\(.)", r"\1", match[2])) for line in text.splitlines() if (match := _OPTION.match(line))]
    headers = dict(value.split(": ", 1) for name, value in found if name == "header" and ": " in value)
    url = dict(found).get("url")
    credential = headers.get("Authorization", "").removeprefix("Bearer ")
    if not url or not credential or "Host" not in headers:
        return None
    return Endpoint(url, credential, headers["Host"])


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')
