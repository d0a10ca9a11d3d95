"""Who may import whom, each rule with its reason. Source: README, "How it is built"."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIBS, SERVICES = ROOT / "libs" / "tocsin", ROOT / "services" / "tocsin"
STANDARD = frozenset(sys.stdlib_module_names)

NOT_IN_A_CORE = frozenset({"asyncio", "time", "random", "os", "secrets", "socket", "subprocess", "threading", "uuid"})
"""A decision that reads a clock, chance or the machine cannot be replayed."""

OUTSIDE = {
    "contract": {"msgspec"},
    "agents": {"msgspec"},
    "bus": {"nats", "msgspec"},
    "store": {"redis"},
    "ledger": {"msgspec"},
    "runtime": {"msgspec", "prometheus_client", "pydantic", "pydantic_settings", "uvloop", "psutil"},
    "listing": {"msgspec"},
}
OURS = {
    "contract": {"contract"},
    "agents": {"agents", "contract"},
    "bus": {"bus", "contract"},
    "store": {"store", "contract"},
    "ledger": {"ledger", "contract", "bus", "store"},
    "runtime": {"runtime", "contract"},
    "listing": {"listing", "contract"},
}


def imports_of(file: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def ours(file: Path) -> set[str]:
    """Second parts of what is imported from here: `contract`, `sorter` ..."""
    return {name.split(".")[1] for name in imports_of(file) if name.startswith("tocsin.")}


def outside(file: Path) -> set[str]:
    """Top names of what is neither ours nor of the standard library."""
    return {name.split(".")[0] for name in imports_of(file)} - STANDARD - {"tocsin", "__future__"}


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def ids(file: Path) -> str:
    return str(file.relative_to(ROOT))


@pytest.mark.parametrize("file", [f for part in OURS for f in files(LIBS / part)], ids=ids)
def test_a_library_imports_only_what_lies_below_it(file: Path):
    part = file.relative_to(LIBS).parts[0]
    assert ours(file) <= OURS[part]
    allowed = OUTSIDE[part] | ({"tomlkit"} if "install" in file.parts else set()) | ({"uvicorn"} if file.match("http/server.py") else set())
    assert outside(file) <= allowed


SERVICE_NAMES = {folder.name for folder in SERVICES.iterdir() if folder.is_dir()} - {"cli", "__pycache__"}


@pytest.mark.parametrize("file", [f for name in sorted(SERVICE_NAMES) for f in files(SERVICES / name)], ids=ids)
def test_no_service_imports_another_they_meet_in_the_contract(file: Path):
    own = file.relative_to(SERVICES).parts[0]
    assert not (ours(file) & (SERVICE_NAMES | {"cli"}) - {own})


@pytest.mark.parametrize("file", [f for name in sorted(SERVICE_NAMES) for f in files(SERVICES / name / "core")], ids=ids)
def test_a_core_decides_from_its_arguments_alone(file: Path):
    own = file.relative_to(SERVICES).parts[0]
    assert ours(file) <= {"contract", "agents", "listing", own}
    assert not any(name.startswith("tocsin.agents.install") for name in imports_of(file))
    assert all(name.startswith(f"tocsin.{own}.core") for name in imports_of(file) if name.startswith(f"tocsin.{own}"))
    assert not (imports_of(file) & NOT_IN_A_CORE)
    assert outside(file) <= {"msgspec"}


@pytest.mark.parametrize("file", [f for name in sorted(SERVICE_NAMES) for f in files(SERVICES / name) if f.name != "__main__.py"], ids=ids)
def test_only_the_wiring_knows_which_bus_it_is(file: Path):
    assert "tocsin.bus.nats_bus" not in imports_of(file)
