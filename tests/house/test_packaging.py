"""The wheel holds everything, and `tocsin` stays a namespace that two source roots share."""

import json
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = [ROOT / "libs" / "tocsin", ROOT / "services" / "tocsin"]

IMPORT_ALL = """
import importlib, json, sys
sys.path[:0] = json.loads(sys.argv[1])
for name in json.loads(sys.argv[2]):
    module = importlib.import_module(name)
    assert module.__file__.startswith(sys.path[0]), f"{name} comes from {module.__file__}"
"""


def files_of_the_tree() -> set[str]:
    """Every file below both source roots, as it should lie in the wheel."""
    return {
        f"tocsin/{path.relative_to(source)}"
        for source in SOURCES
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def packages() -> list[Path]:
    return sorted(path.parent for source in SOURCES for path in source.glob("*/__init__.py"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_the_namespace_itself_is_no_package(source: Path):
    assert not (source / "__init__.py").exists()


def test_no_two_source_roots_hold_the_same_package():
    names = [path.name for path in packages()]
    assert len(names) == len(set(names))


def test_every_package_is_typed():
    assert [path.name for path in packages() if not (path / "py.typed").exists()] == []


def test_every_folder_of_modules_is_a_package():
    folders = {path.parent for source in SOURCES for path in source.rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []


def test_the_wheel_holds_every_file_of_both_source_roots(wheel: Path):
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("tocsin/")}
    assert inside == files_of_the_tree()


def test_the_wheel_brings_the_command_and_the_licence(wheel: Path):
    archive = zipfile.ZipFile(wheel)
    information = next(name for name in archive.namelist() if name.endswith("entry_points.txt")).rpartition("/")[0]
    assert "tocsin = tocsin.cli.main:main" in archive.read(f"{information}/entry_points.txt").decode()
    assert f"{information}/licenses/LICENSE" in archive.namelist()


def test_everything_in_the_wheel_imports_from_the_wheel_alone(wheel: Path, tmp_path: Path):
    zipfile.ZipFile(wheel).extractall(tmp_path)
    modules = sorted(
        ".".join(Path(name).with_suffix("").parts).removesuffix(".__init__")
        for name in files_of_the_tree()
        if name.endswith(".py") and name != "tocsin/cli/__main__.py"  # which is the command
    )
    # -S: no .pth file is read, so the editable install of this checkout is not found beside the wheel.
    places = [str(tmp_path), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    done = subprocess.run(
        [sys.executable, "-S", "-P", "-c", IMPORT_ALL, json.dumps(places), json.dumps(modules)],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_every_pinned_name_is_a_version_and_no_address():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert [line for line in lines if "==" not in line or "/" in line] == []
