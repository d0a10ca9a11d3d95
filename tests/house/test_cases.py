"""Every case of tests/data/cases.jsonl is a test that carries its id: in its name, in its docstring, or as the parameter that it is run with."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data" / "cases.jsonl"
IDS = [json.loads(line)["id"] for line in DATA.read_text().splitlines()]


class Shown(NamedTuple):
    """One test function; `parameter` as pytest names it, "" for none."""

    name: str
    says: str = ""
    parameter: str = ""


def carries(test: Shown, case: str) -> bool:
    """Whether a test is about a case. A parameter is the whole id: other tables have ids that only begin like ours."""
    # In a name, `_` is what stands between words.
    text = f"{test.name.replace('_', ' ')} {test.says}"
    return test.parameter == case or re.search(rf"\b{case}\b", text, re.IGNORECASE) is not None


def missing(cases: Iterable[str], tests: Iterable[Shown]) -> list[str]:
    """The cases that no test carries."""
    found = list(tests)
    return [case for case in cases if not any(carries(test, case) for test in found)]


def functions_of(source: str) -> Iterator[Shown]:
    """The test functions of a file."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield Shown(node.name, ast.get_docstring(node) or "")


def reads_cases(source: str) -> bool:
    """Whether a file plays the cases themselves."""
    return any(isinstance(node, ast.Constant) and node.value == DATA.name for node in ast.walk(ast.parse(source)))


def listed_in(listing: str) -> Iterator[Shown]:
    """The tests of a listing by pytest, `path::name[parameter]` a line."""
    for line in listing.splitlines():
        if found := re.fullmatch(r"\S+::(\w+)(?:\[(.*)\])?", line):
            yield Shown(found[1], parameter=found[2] or "")


def collected(files: Iterable[Path]) -> list[Shown]:
    """What pytest would run of these files."""
    words = [
        sys.executable,
        "-m",
        "pytest",
        "--collect-only",
        "-o",
        "addopts=--import-mode=importlib -q",
        "-p",
        "no:cacheprovider",
        *map(str, files),
    ]
    return list(listed_in(subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout))


def test_every_given_case_is_a_test_under_its_id():
    sources = {file: file.read_text() for file in sorted((ROOT / "tests").rglob("test_*.py")) if file != Path(__file__)}
    tests = [test for source in sources.values() for test in functions_of(source)]
    played = collected(file for file, source in sources.items() if reads_cases(source))
    assert len(IDS) == len(set(IDS)) > 0
    assert missing(IDS, [*tests, *played]) == []


def test_a_case_counts_by_a_whole_word_of_a_test_s_name_or_docstring_or_by_a_whole_parameter():
    source = '''
# B01
def test_k06_one_signal_ends_it(): ...
async def test_a_start_goes_on():
    """I01: effects are keyed."""
def helper_b02(): ...
def test_that_says_b03_nowhere(): "B04"
'''
    tests = [
        *functions_of(source),
        *listed_in("tests/x.py::test_case[A01-four-classes]\ntests/x.py::test_played[A02]\n\n2 tests collected in 0.1s"),
    ]
    given = ["K06", "K0", "I01", "B01", "B02", "B03", "B04", "A01", "A02", "C01"]
    assert missing(given, tests) == ["K0", "B01", "B02", "A01", "C01"]
    assert missing(["E04"], [Shown("test_e041_is_another")]) == ["E04"]
    assert not reads_cases('"""See cases.jsonl."""')
    assert reads_cases('CASES = DATA / "cases.jsonl"')
