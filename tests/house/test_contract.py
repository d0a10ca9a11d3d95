"""What is declared once stays declared once, and the committed contract is the generated one."""

import ast
import json
import re
from pathlib import Path

import pytest

from tocsin.cli import metrics as metrics_page
from tocsin.cli import refusals
from tocsin.cli.asyncapi import document
from tocsin.contract import metrics
from tocsin.contract.metrics import METRICS
from tocsin.contract.refusals import ADVICE, Code
from tocsin.contract.subjects import SUBJECTS
from tocsin.contract.tally import Sort
from tocsin.store import keys

ROOT = Path(__file__).parents[2]
SOURCES = sorted([*(ROOT / "libs").rglob("*.py"), *(ROOT / "services").rglob("*.py")])


def strings_of(file: Path) -> list[str]:
    """Every string of a file that is no docstring."""
    tree = ast.parse(file.read_text())
    docs = {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
        and isinstance(node.body[0].value, ast.Constant)
    }
    return [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docs]


def test_the_committed_asyncapi_document_is_the_generated_one():
    committed = json.loads((ROOT / "docs" / "asyncapi.json").read_text())
    assert committed == json.loads(json.dumps(document())), "run: tocsin asyncapi > docs/asyncapi.json"


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: str(file.relative_to(ROOT)))
def test_only_subjects_py_spells_a_subject(file: Path):
    if file.name == "subjects.py":
        return
    spelled = [text for text in strings_of(file) for name in SUBJECTS if "." in name and re.match(rf"{re.escape(name)}(\.|$)", text)]
    assert not spelled


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: str(file.relative_to(ROOT)))
def test_only_keys_py_spells_a_redis_key(file: Path):
    if file == ROOT / "libs/tocsin/store/keys.py":
        return
    assert not [text for text in strings_of(file) if re.match(rf"{keys.PREFIX}:\S", text)]


def test_every_refusal_code_has_its_advice():
    assert set(ADVICE) == set(Code)
    assert all(advice.next for advice in ADVICE.values())


def test_every_key_of_a_subject_is_a_field_of_its_body():
    for subject in SUBJECTS.values():
        assert set(subject.keys) <= set(subject.body.__struct_fields__), subject.name


def test_the_committed_page_of_refusals_is_the_generated_one():
    assert (ROOT / "docs" / "refusals.md").read_text() == refusals.document(), "run: tocsin refusals > docs/refusals.md"


def test_the_committed_page_of_metrics_is_the_generated_one():
    assert (ROOT / "docs" / "metrics.md").read_text() == metrics_page.document(), "run: tocsin metrics > docs/metrics.md"


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: str(file.relative_to(ROOT)))
def test_only_metrics_py_spells_a_metric(file: Path):
    if file == ROOT / "libs/tocsin/contract/metrics.py":
        return
    assert not set(strings_of(file)) & METRICS.keys()


def test_every_metric_is_read_somewhere_by_the_name_that_declares_it():
    names = {name for name, value in vars(metrics).items() if value in METRICS.values()}
    nodes = [node for file in SOURCES for node in ast.walk(ast.parse(file.read_text()))]
    used = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    used |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    assert names <= used


def test_names_of_metrics_follow_the_customs_of_prometheus():
    for metric in METRICS.values():
        assert re.fullmatch(r"tocsin_[a-z0-9_]+", metric.name)
        assert metric.name.endswith("_total") == (metric.sort is Sort.COUNTER)
        assert not metric.buckets or metric.name.endswith("_seconds")
