"""`tocsin refusals`: every refusal code, what it means, whether a retry helps, and the next step."""

import argparse
import json

from tocsin.cli.main import DONE
from tocsin.contract.refusals import ADVICE, Retry

RETRIES = {Retry.NEVER: "never", Retry.AFTER_CHANGE: "after a change", Retry.SAME_REQUEST: "the same request again"}


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `refusals`."""
    parser.add_argument("--json", action="store_true", help="machine-readable output")


def run(args: argparse.Namespace) -> int:
    """Print them."""
    if args.json:
        print(
            json.dumps(
                [{"code": code, "meaning": told.meaning, "retry": told.retry, "next": list(told.next)} for code, told in ADVICE.items()]
            )
        )
    else:
        print(document(), end="")
    return DONE


def document() -> str:
    """The page docs/refusals.md."""
    rows = [
        f"| `{code}` | {told.meaning} | {RETRIES[told.retry]} | {'; '.join(f'`{step}`' if step.startswith(('tocsin', '--')) else step for step in told.next)} |"
        for code, told in ADVICE.items()
    ]
    head = [
        "# Refusals",
        "",
        "A refused request changed nothing. Its code is a public word: codes are added, never renamed or reused. Made by `tocsin refusals`.",
        "",
        "| code | meaning | retry | next |",
        "| --- | --- | --- | --- |",
    ]
    return "\n".join([*head, *rows]) + "\n"
