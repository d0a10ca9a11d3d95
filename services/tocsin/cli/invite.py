"""`tocsin invite`: what another machine needs to join this instance, for `tocsin join` there."""

import argparse
import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tocsin.runtime.instance import Endpoint


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which instance, and how the other machine reaches its bus."""
    parser.add_argument("--state", type=Path, metavar="DIR", help="the instance's folder (TOCSIN_STATE)")
    parser.add_argument("--bus", metavar="URL", help="the bus as the other machine reaches it (default: as this one does, for a tunnel)")
    parser.add_argument(
        "--leaf", metavar="URL", help="instead: this instance's TOCSIN_LEAF_LISTEN as the other machine reaches it, tls://..."
    )
    parser.add_argument("--authority", type=Path, metavar="FILE", help="with --leaf: the certificate that the listener's is signed with")


def run(args: argparse.Namespace) -> int:
    """Print the invitation, which holds a secret. Exit codes: 0, 3 refused, 4 nothing runs here."""
    import msgspec

    from tocsin.cli.invitation import Invitation
    from tocsin.cli.main import refuse
    from tocsin.contract.refusals import Refusal
    from tocsin.runtime import instance

    state = instance.state_folder(args.state)
    reached = instance.reach(state, version("tocsin"))
    if isinstance(reached, Refusal):
        return refuse(reached)
    if reached.keeper is instance.Keeper.JOIN:
        print(f"tocsin: {state} has joined another machine's instance: invite from there", file=sys.stderr)
        return 3
    try:
        authority = args.authority.read_text() if args.authority else None
    except (OSError, UnicodeDecodeError) as error:
        print(f"tocsin: {args.authority}: {error}", file=sys.stderr)
        return 3
    said = Invitation(
        version=version("tocsin"), bus=args.bus or reached.nats_url, leaf=args.leaf, authority=authority, workspace=reached.workspace,
        login=instance.credential(state, instance.NATS_HOST_CREDENTIAL), hash_key=instance.credential(state, instance.HASH_KEY) or "",
    )  # fmt: skip
    print(msgspec.json.encode(said).decode())
    if sys.stdout.isatty() or not (args.bus or args.leaf):
        print(advice(reached, args.bus or args.leaf), file=sys.stderr)
    return 0


def advice(reached: "Endpoint", chosen: str | None) -> str:
    """What a person does with it."""
    from tocsin.cli.embedded import LOOPBACK, without_login

    lines = ["It holds a secret: hand it over by ssh or a file of your own (0600). On the other machine: tocsin join FILE"]
    place = without_login(reached.nats_url).rpartition("/")[2]
    if not chosen and place.startswith(LOOPBACK):
        user = os.environ.get("USER", "USER")
        lines.append(
            f"The bus listens on loopback: there, keep a tunnel open: ssh -N -L {place.rpartition(':')[2]}:{place} {user}@{reached.host}"
        )
    return "\n".join(lines)
