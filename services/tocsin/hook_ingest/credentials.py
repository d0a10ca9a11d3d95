"""Who may report, and who may command."""

from dataclasses import dataclass, field
from hmac import compare_digest
from pathlib import Path

from tocsin.contract.refusals import Code, Refusal

SECRET_BYTES_MIN = 16
"""A shorter secret can be guessed; those that we make have 43 characters."""


@dataclass(frozen=True)
class Credentials:
    """The two credentials of an instance, each `<instance id>.<secret>`. The one that reports can do nothing else."""

    hook: bytes = field(repr=False)
    command: bytes = field(repr=False)

    @property
    def instance(self) -> bytes:
        """The id of the instance that they belong to."""
        return self.hook.partition(b".")[0]

    def may_report(self, authorization: bytes | None) -> Refusal | None:
        """None when the Authorization header holds the hook credential. Refuses: no_credential, foreign_instance."""
        return self._judge(authorization, self.hook, self.command, "this credential is for commands: hooks have one of their own")

    def may_command(self, authorization: bytes | None) -> Refusal | None:
        """None when the Authorization header holds the command credential. Refuses: no_credential, foreign_instance."""
        return self._judge(authorization, self.command, self.hook, "the hook credential can report and nothing else")

    def _judge(self, authorization: bytes | None, wanted: bytes, other: bytes, other_shown: str) -> Refusal | None:
        if authorization is None:
            return Refusal(Code.NO_CREDENTIAL, "the request shows no credential")
        scheme, _, shown = authorization.partition(b" ")
        if scheme.lower() != b"bearer":
            return Refusal(Code.NO_CREDENTIAL, "the Authorization header is not of the form: Bearer CREDENTIAL")
        if compare_digest(shown, wanted):
            return None
        if compare_digest(shown, other):
            return Refusal(Code.NO_CREDENTIAL, other_shown)
        # The instance's id is no secret; only what follows it is compared in constant time.
        instance, dot, _ = shown.partition(b".")
        if dot and instance != self.instance:
            return Refusal(
                Code.FOREIGN_INSTANCE, "the credential is another instance's: these hooks report to a Tocsin that is not this one"
            )
        return Refusal(Code.NO_CREDENTIAL, "the credential is wrong")


def _content(file: Path) -> bytes | Refusal:
    try:
        return file.read_bytes().strip()
    except OSError as error:
        return Refusal(Code.BROKEN_SETTINGS, f"{file}: {error.strerror}; `tocsin credentials` makes what is missing")


def _bearer(file: Path) -> bytes | Refusal:
    content = _content(file)
    if isinstance(content, Refusal):
        return content
    instance, _, secret = content.partition(b".")
    if not instance or len(secret) < SECRET_BYTES_MIN or len(content.split()) != 1:
        return Refusal(Code.BROKEN_SETTINGS, f"{file} does not hold a credential of the form INSTANCE.SECRET")
    return content


def read_credentials(hook_file: Path, command_file: Path) -> Credentials | Refusal:
    """The credentials of an instance. Refuses: broken_settings, when one is missing or weak, or the two are no pair."""
    hook, command = _bearer(hook_file), _bearer(command_file)
    if isinstance(hook, Refusal):
        return hook
    if isinstance(command, Refusal):
        return command
    if hook == command:
        return Refusal(Code.BROKEN_SETTINGS, f"{hook_file} and {command_file} hold the same credential: a hook could command")
    if hook.partition(b".")[0] != command.partition(b".")[0]:
        return Refusal(Code.BROKEN_SETTINGS, f"{hook_file} and {command_file} are of two instances")
    return Credentials(hook, command)
