"""Sums of small values in switches: their error is shown, and it is warned of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import running

import ringleaf
from ringleaf.collectives.aggregate import in_network_allreduce
from ringleaf.collectives.definition import demands
from ringleaf.collectives.schedule import Collective
from ringleaf.experiments.checking.confirm import confirms
from ringleaf.experiments.checking.data import Given
from ringleaf.experiments.checking.verdict import Tolerance
from ringleaf.experiments.workloads.collective.rows import (
    CollectiveRow,
)

TOPO = "leafspine,leaves=1,spines=1,hosts=3"
FIXED = ("atp", "netreduce", "sharp")
"""Systems that multiply by one scale, 2^20; A2TP and ESA have ATP's workers."""


def of_two(algo: str, value: float) -> CollectiveRow:
    """Return the row of a run in which two workers have a value in each element."""
    tensors = [np.full(256, value, np.float32)] * 2
    [row] = ringleaf.run(topo=TOPO, algo=algo, tensors=tensors, servers=1).rows
    assert isinstance(row, CollectiveRow)
    return row


@pytest.mark.parametrize("algo", FIXED)
def test_what_fixed_point_flushes_is_wrong(algo: str) -> None:
    """1e-7 times 2^20 is 0.1, which is rounded to 0: a bound above all values excuses nothing."""
    assert of_two(algo, 1e-7).wrong == 2 * 256


@pytest.mark.parametrize("algo", FIXED)
def test_what_fixed_point_rounds_is_an_error_of_a_part(algo: str) -> None:
    """1e-5 times 2^20 is 10.49, which is rounded to 10: a part of 0.0463 is lost."""
    row = of_two(algo, 1e-5)

    assert row.wrong == 0
    assert row.error == pytest.approx(1 - 10 / (1e-5 * 2**20), rel=1e-3)


def test_exponents_of_blocks_keep_small_values() -> None:
    """SwitchML's unit is a part of the block's largest value, however small that is."""
    row = of_two("switchml", 1e-7)

    assert row.wrong == 0
    assert row.error is not None
    assert row.error < 1e-6


def measured(results: list[float], sums: list[list[float]]) -> float:
    """Return the error of some results for two ranks, where any error is allowed."""
    given = [np.array(each, np.float32) for each in sums]
    schedule = in_network_allreduce(2, "atp")
    errors: list[float] = []
    tolerance = Tolerance(lambda parts: np.full(parts.shape[1], 9.0))
    wanted = demands(Collective.ALLREDUCE, 2, 1, 0)
    both = [np.array(results, np.float32)] * 2
    assert confirms(schedule, wanted, Given(given), both, tolerance, errors=errors)
    return max(errors)


def test_the_error_is_the_greatest_of_any_element_and_of_magnitudes() -> None:
    """3 + -1 is 2: 2.5 is off by 0.5 of 4. 0 + 0 is nothing to be a part of."""
    assert measured([2.5, 8, 0], [[3, 4, 0], [-1, 4, 0]]) == pytest.approx(0.125)
    assert measured([2, 6, 0], [[3, 4, 0], [-1, 4, 0]]) == pytest.approx(0.25)
    assert measured([2, 8, 0], [[3, 4, 0], [-1, 4, 0]]) == 0


def told(algo: str, scale: float, folder: Path) -> str:
    """Return what a run on normal numbers times a scale prints, in one line."""
    numbers = np.random.default_rng(1)
    tensors = [(scale * numbers.standard_normal(1024)).astype(np.float32) for _ in range(2)]
    lines: list[str] = []
    given = {"topo": TOPO, "algo": algo, "size": "4K", "servers": "1", "out": str(folder)}
    running.run(given, emit=lines.append, drawn=False, inputs=tensors)
    return " ".join(line.strip("# ") for line in lines)


@pytest.mark.parametrize(("scale", "warns"), [(1.0, False), (1e-5, True)])
def test_the_table_has_the_error_and_warns_where_values_are_rounded_away(
    scale: float, warns: bool, tmp_path: Path
) -> None:
    page = told("atp", scale, tmp_path / "run")

    assert "relerr" in page.split()
    assert ("small values are rounded away; scale the tensor" in page) == warns


def test_the_table_has_no_error_where_hosts_add(tmp_path: Path) -> None:
    assert "relerr" not in told("ring", 1e-5, tmp_path / "run")
