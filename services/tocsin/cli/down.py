"""`tocsin down`: stop what `up` started, and nothing else."""

import argparse
import sys
from pathlib import Path

STOP_S_MAX = 15.0
"""Longer than services and servers take to drain one after the other; beyond it the supervisor is killed."""

POLL_S = 0.05


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which instance."""
    parser.add_argument("--state", type=Path, metavar="DIR", help="the instance's folder (TOCSIN_STATE)")


def run(args: argparse.Namespace) -> int:
    """Stop it, and end what a killed supervisor left behind. Exit codes: 0 nothing runs any more, 3 it is not ours to stop."""
    if sys.platform == "win32":
        print("tocsin: it runs on Linux, on macOS and in WSL2, not on Windows itself", file=sys.stderr)
        return 3
    from tocsin.cli.supervisor import end_others
    from tocsin.runtime import instance

    state = instance.state_folder(args.state)
    reached, supervisor = instance.endpoint(state), instance.holder(state)
    if supervisor is None and reached is not None and reached.keeper == instance.Keeper.COMPOSE:
        print(f"tocsin: {state} belongs to docker compose: docker compose down", file=sys.stderr)
        return 3
    # By number and start time: a number that another program has by now names nobody.
    stopped = supervisor is not None
    if supervisor is not None and end_others([supervisor], STOP_S_MAX):
        print(f"pid {supervisor.pid} did not stop in {STOP_S_MAX:.0f} s and was killed")
    left = [child.process for child in instance.children(state) if child.process is not None and instance.alive(child.process)]
    end_others(left, STOP_S_MAX)
    if not stopped and not left:
        print(f"nothing runs on {state}")
        return 0
    (state / instance.ENDPOINT).unlink(missing_ok=True)
    print(f"stopped: {f'pid {supervisor.pid}' if supervisor else ', '.join(f'pid {process.pid}' for process in left)}")
    return 0
