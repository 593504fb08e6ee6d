"""What is made of the options lies there as it would be made, and editors can check specs by it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from ringleaf.experiments.runs.option_texts import OPTIONS_PAGE, SCHEMA, texts
from ringleaf.experiments.runs.request import typed
from ringleaf.experiments.spec.options import options_of
from ringleaf.experiments.workloads.graph.spec import WorkloadSpec

ROOT = Path(__file__).resolve().parents[2]
SPECS = [
    path
    for folder in ("experiments/specs", "examples/course")
    for path in sorted((ROOT / folder).glob("*.yaml"))
    if "layers:" not in path.read_text()  # a model
]


def test_texts_are_as_they_would_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    stale = [str(path) for path, text in texts() if path.read_text() != text]
    assert not stale, f"{', '.join(stale)}: not what the options say; run `make options`"


def test_the_page_of_options_has_each_one_and_cells_that_can_be_read() -> None:
    page = (ROOT / OPTIONS_PAGE).read_text()
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows]
    named = {cell[0].split("`")[1].lstrip("-").replace("-", "_") for cell in cells}

    assert named == set(typed()) | set(options_of(WorkloadSpec))
    for flag, default, meaning in cells:
        assert len(flag) < 30, flag
        assert len(default) < 30, flag
        assert meaning.count(", ") < 15, flag
    for name, option in typed().items():  # make's names can be told
        assert option.variable == name.upper() or f"`{option.variable}`" in page


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    schema = json.loads((ROOT / SCHEMA).read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_specs_that_come_along_fit_the_schema(path: Path, validator: Draft202012Validator) -> None:
    validator.validate(yaml.safe_load(path.read_text()))


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        ({}, True),
        ({"topo": ["fattree", "bcube"], "loss": [0, "1%"], "seed": 7, "pcap": True}, True),
        ({"algo": ["ring", "switchml"], "cases": [{"hosts": 8}]}, True),
        ({"jobs": [{"model": "vgg16", "start": "1us"}], "counts": [1], "entries": 64}, True),
        ({"topology": "fattree"}, False),
        ({"cases": [{"host": 8}]}, False),
        ({"order": "fifo"}, False),
        ({"net": "real"}, False),
        ({"mtu": 1500}, False),
        ({"jobs": [{"model": "vgg16", "rank": 3}]}, False),
        ({"jobs": [{"model": "vgg16"}], "dtype": "int32"}, False),
    ],
)
def test_editors_see_what_is_wrong(
    spec: dict[str, Any], fits: bool, validator: Draft202012Validator
) -> None:
    assert validator.is_valid(spec) is fits
