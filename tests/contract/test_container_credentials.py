"""What `tocsin credentials --containers` writes for the nodes of a NATS cluster."""

import json
from pathlib import Path

from tocsin.cli.main import main
from tocsin.runtime import instance

NODES = ("nats-1", "nats-2", "nats-3")


def configured(folder: Path, *nodes: str) -> dict[str, dict]:
    words = [word for node in nodes for word in ("--node", node)]
    assert main(["credentials", str(folder / "state"), "--containers", str(folder / "containers"), *words]) == 0
    return {path.stem: json.loads(path.read_text()) for path in (folder / "containers" / "nats").glob("*.conf")}


def test_each_node_is_told_of_the_others_and_all_show_each_other_the_same_login(tmp_path: Path):
    configs = configured(tmp_path, *NODES)
    logins = {
        (config["cluster"]["authorization"]["user"], config["cluster"]["authorization"]["password"]) for config in map(configs.get, NODES)
    }
    ((user, password),) = logins
    for node in NODES:
        assert configs[node]["server_name"] == node
        assert configs[node]["cluster"]["routes"] == [f"nats://{user}:{password}@{one}:6222" for one in NODES]
        assert configs[node]["jetstream"]["sync_interval"] == "always"


def test_the_login_of_the_nodes_stays_the_same_and_is_known_to_nobody_else(tmp_path: Path):
    first = configured(tmp_path, *NODES)
    assert configured(tmp_path, *NODES) == first
    password = first["nats-1"]["cluster"]["authorization"]["password"]
    holders = {path.parent.name for path in tmp_path.rglob("*") if path.is_file() and password in path.read_text()}
    assert holders == {"nats"}
    assert (tmp_path / "containers" / "nats" / instance.NATS_ROUTE_CREDENTIAL).stat().st_mode & 0o077 == 0


def test_a_single_server_is_told_of_no_others(tmp_path: Path):
    assert {name: "cluster" in config for name, config in configured(tmp_path).items()} == {"nats": False}
