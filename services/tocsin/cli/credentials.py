"""`tocsin credentials DIR`: make the credentials of an instance folder, once; for containers also their configurations.

With `--containers` it is the first container of docker-compose.yml, and the only one that starts as root: it has no
network, makes the host's folder belong to whoever owns the checkout, and the containers' folders to the user that they
run as. What exists is kept, so it may run at every start.
"""

import argparse
import os
import sys
import time
from importlib.metadata import version
from pathlib import Path


def arguments(parser: argparse.ArgumentParser) -> None:
    """The folder, and what containers need beside it."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="the instance's folder, on the host")
    parser.add_argument("--containers", type=Path, metavar="DIR", help="write services/, nats/ and valkey/ there, for the containers")
    parser.add_argument("--node", action="append", default=[], metavar="HOST", help="a node of a NATS cluster; gets nats/HOST.conf")
    parser.add_argument("--user", type=int, default=None, metavar="UID", help="user and group that the containers run as")
    parser.add_argument("--data", type=Path, action="append", default=[], metavar="DIR", help="a volume that the containers write to")


def run(args: argparse.Namespace) -> int:
    """Make what is missing. Exit codes: 0 all is there, 3 the folder cannot be used."""
    from tocsin.runtime import instance

    state = instance.state_folder(args.folder)
    try:
        copies = args.containers / "services" if args.containers else None
        instance.create(state, made_before=copies)
        instance.create_server_credentials(state, [*instance.NATS_USERS, instance.REDIS_CREDENTIAL], made_before=copies)
        if args.containers and copies:
            for_containers(state, copies, args.containers, args.data, args.user, args.node)
    except instance.Unusable as error:
        print(f"tocsin: {error}", file=sys.stderr)
        return 3
    print(f"credentials are in {state}")
    return 0


def for_containers(state: Path, copies: Path, folder: Path, volumes: list[Path], user: int | None, nodes: list[str]) -> None:
    """Copies and configurations below `folder`, readable by `user` alone, and the host's endpoint files. Raises Unusable."""
    from tocsin.agents.install.endpoint import write_endpoint
    from tocsin.cli import embedded
    from tocsin.runtime import instance

    def held(name: str) -> str:
        return instance.credential(state, name) or ""

    for part in (copies, folder / "nats", folder / "valkey"):
        instance.make_folder(part)
    for name in (instance.ID, instance.HASH_KEY, *instance.BEARERS, *instance.NATS_USERS, instance.REDIS_CREDENTIAL):
        instance.write_private(copies / name, f"{held(name)}\n".encode())
    logins = {user: held(name) for name, user in instance.NATS_USERS.items()}

    def bus(name: str, cluster: embedded.Cluster | None = None) -> bytes:
        return embedded.nats_config(
            name=name,
            listen=f"{EVERYWHERE}:4222",
            store="/data",
            http="127.0.0.1:8222",
            cluster=cluster,
            logins=logins,
        ).encode()

    instance.write_private(folder / "nats" / "nats.conf", bus("tocsin"))
    if nodes:
        instance.create_server_credentials(folder / "nats", [instance.NATS_ROUTE_CREDENTIAL])
        login = instance.credential(folder / "nats", instance.NATS_ROUTE_CREDENTIAL) or ""
        cluster = embedded.Cluster(f"{EVERYWHERE}:6222", tuple(f"{node}:6222" for node in nodes), login)
        for node in nodes:
            instance.write_private(folder / "nats" / f"{node}.conf", bus(node, cluster))
    store = embedded.valkey_config(folder="/data", password=held(instance.REDIS_CREDENTIAL), bind=EVERYWHERE, port=6379)
    instance.write_private(folder / "valkey" / "valkey.conf", store.encode())

    ports = {name: os.environ.get(f"TOCSIN_{name}_PORT") or default for name, default in DEFAULT_PORTS.items()}
    ingest = f"127.0.0.1:{ports['INGEST']}"
    instance.write_endpoint(
        state,
        instance.Endpoint(
            version=version("tocsin"),
            instance=held(instance.ID),
            keeper=instance.Keeper.COMPOSE,
            nats_url=f"nats://127.0.0.1:{ports['NATS']}",
            redis_url=f"redis://127.0.0.1:{ports['REDIS']}/0",
            ingest_url=f"http://{ingest}",
            console_url=f"http://127.0.0.1:{ports['CONSOLE']}",
            host=os.environ.get("TOCSIN_HOST") or "localhost",
            workspace=os.environ.get("TOCSIN_WORKSPACE") or "default",
            since_ms=time.time_ns() // 1_000_000,
            ready=True,
        ),
    )
    write_endpoint(state, f"http://{ingest}", held(instance.HOOK_CREDENTIAL), ingest)

    mounts = embedded.read_mounts()
    for volume in volumes:
        lost = embedded.volatile(str(volume), mounts)
        if lost:
            print(f"warning: {lost}", file=sys.stderr)
    if os.geteuid() == 0:
        give(state, state.parent.stat().st_uid, state.parent.stat().st_gid)
        if user is not None:
            for mine in (copies, folder / "nats", folder / "valkey"):
                give(mine, user, user)
            for volume in volumes:
                os.chown(volume, user, user)  # not what lies in it: a server may be at work there


EVERYWHERE = "0.0.0.0"  # noqa: S104 - inside the containers' own network; docker-compose.yml publishes on loopback

DEFAULT_PORTS = {"INGEST": "8627", "CONSOLE": "8628", "NATS": "4222", "REDIS": "6379"}
"""Where docker-compose.yml publishes on loopback, unless the environment says otherwise."""


def give(folder: Path, user: int, group: int) -> None:
    """Make a folder and what lies in it belong to somebody. Raises Unusable."""
    from tocsin.runtime import instance

    try:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, user, group, follow_symlinks=False)
    except OSError as error:
        raise instance.why(error, folder) from error
