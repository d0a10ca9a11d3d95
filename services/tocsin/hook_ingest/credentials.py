"""Who may report, and who may command."""

from dataclasses import dataclass, field
from pathlib import Path

from tocsin.contract.refusals import Code, Refusal
from tocsin.runtime.http.bearers import instance_of, judge, read_bearer


@dataclass(frozen=True)
class Credentials:
    """The two credentials of an instance, each `<instance id>.<secret>`. The one that reports can do nothing else."""

    hook: bytes = field(repr=False)
    command: bytes = field(repr=False)

    def may_report(self, authorization: bytes | None) -> Refusal | None:
        """None when the Authorization header holds the hook credential. Refuses: no_credential, foreign_instance."""
        return judge(authorization, self.hook, {self.command: "this credential is for commands: hooks have one of their own"})

    def may_command(self, authorization: bytes | None) -> Refusal | None:
        """None when the Authorization header holds the command credential. Refuses: no_credential, foreign_instance."""
        return judge(authorization, self.command, {self.hook: "the hook credential can report and nothing else"})


def read_credentials(hook_file: Path, command_file: Path) -> Credentials | Refusal:
    """The credentials of an instance. Refuses: broken_settings, when one is missing or weak, or the two are no pair."""
    hook, command = read_bearer(hook_file), read_bearer(command_file)
    if isinstance(hook, Refusal):
        return hook
    if isinstance(command, Refusal):
        return command
    if hook == command:
        return Refusal(Code.BROKEN_SETTINGS, f"{hook_file} and {command_file} hold the same credential: a hook could command")
    if instance_of(hook) != instance_of(command):
        return Refusal(Code.BROKEN_SETTINGS, f"{hook_file} and {command_file} are of two instances")
    return Credentials(hook, command)
