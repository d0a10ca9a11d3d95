"""Asking the console over HTTP, as the page does, with a credential of the instance."""

import http.client
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tocsin.contract.refusals import Code, Refusal
from tocsin.runtime import instance

ANSWER_S_MAX = 15.0
"""A little longer than a webhook has for its answer."""


def ask_console(state: Path, path: str, body: dict[str, Any] | None = None) -> dict[str, Any] | Refusal:
    """What the console of an instance answers to a GET of `path`, or to a POST of `body`.

    Refuses: what it refuses; unavailable, when it does not answer; not_running and other_version, when there is none to ask.
    """
    reached = instance.reach(state, version("tocsin"))
    if isinstance(reached, Refusal):
        return reached
    if reached.console_url is None:
        return Refusal(Code.NOT_RUNNING, f"no console runs on {state}")
    return ask_at(reached.console_url, instance.credential(state, instance.COMMAND_CREDENTIAL) or "", path, body)


def ask_at(
    console_url: str, credential: str, path: str, body: dict[str, Any] | None = None, *, seconds_max: float = ANSWER_S_MAX
) -> dict[str, Any] | Refusal:
    """The same for the console at an address. Refuses: what it refuses; unavailable, when it does not answer."""
    place = urlsplit(console_url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port or 80, timeout=seconds_max)
    headers = {"Authorization": f"Bearer {credential}", "Content-Type": "application/json"}
    try:
        connection.request("GET" if body is None else "POST", path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        said: dict[str, Any] = json.loads(answer.read())
        return said if answer.status < 300 else Refusal(Code(said["code"]), str(said["message"]))
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError) as error:
        # The last three: another program has the port, and its answer is not ours.
        return Refusal(Code.UNAVAILABLE, f"the console at {console_url} does not answer ({type(error).__name__})")
    finally:
        connection.close()
