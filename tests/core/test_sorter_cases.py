"""The given cases of the order, one test each, under their ids."""

import json

import pytest

from support import DATA
from tocsin.cli.rank import Case, decide, read

GIVEN = json.loads((DATA / "sort-cases.json").read_text())
CASES = read((DATA / "sort-cases.json").read_bytes())


def test_all_given_cases_are_here():
    assert len(CASES) == 131


@pytest.mark.parametrize(("case", "given"), list(zip(CASES, GIVEN, strict=True)), ids=[case["id"] for case in GIVEN])
def test_case(case: Case, given: dict):
    decided = decide(case)
    assert decided == {"id": given["id"], "order": given["expected"], "classes": given["classes"]}, given["why"]
