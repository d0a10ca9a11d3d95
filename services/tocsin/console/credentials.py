"""Who may read over HTTP without a page, and who may command."""

from dataclasses import dataclass, field
from pathlib import Path

from tocsin.console.core.session import Scope
from tocsin.contract.refusals import Code, Refusal
from tocsin.runtime import instance
from tocsin.runtime.http.bearers import judge, read_bearer


@dataclass(frozen=True)
class Credentials:
    """The bearers that this service takes, each `<instance id>.<secret>`."""

    command: bytes = field(repr=False)
    reader: bytes = field(repr=False)

    def scope_of(self, authorization: bytes) -> Scope | Refusal:
        """What an Authorization header is good for. Refuses: no_credential, foreign_instance."""
        if judge(authorization, self.reader, {}) is None:
            return Scope.READ
        return judge(authorization, self.command, {}) or Scope.COMMAND


def read_credentials(state: Path) -> Credentials | Refusal:
    """The credentials of an instance. Refuses: broken_settings, when one is missing or weak, or both are the same."""
    command, reader = read_bearer(state / instance.COMMAND_CREDENTIAL), read_bearer(state / instance.READER_CREDENTIAL)
    if isinstance(command, Refusal):
        return command
    if isinstance(reader, Refusal):
        return reader
    if command == reader:
        return Refusal(Code.BROKEN_SETTINGS, f"two credentials of {state} are the same: a reader could command")
    return Credentials(command, reader)
